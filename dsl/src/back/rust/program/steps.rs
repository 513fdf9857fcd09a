//! The loop over steps and what happens in one. Never writes a loop over points.

use super::sweep::Sweep;
use super::{Emitter, accesses, add_copy, has_sponge, kept, parenthesised, update_name};
use crate::back::rust::expression::Printer;
use crate::back::rust::writer::Writer;
use crate::ir::{
    AXES_MAX, End, ExprId, ExprKind, FieldId, FieldKind, Init, Initially, Level, ReduceOp, Side, SideRule,
    Statement, Type, When,
};

impl<'a> Emitter<'a> {
    pub(super) fn emit_solve(&self, w: &mut Writer) {
        w.block("fn main() -> std::process::ExitCode", |w| {
            w.line("rma::run(|team| catch(|| solve(team)))");
        });
        w.line("");
        w.block("fn solve(team: &rma::Team) -> Result<(), Failure>", |w| {
            w.line("let rank = team.rank().0 as usize;");
            w.line("let arguments = Arguments::parse(std::env::args().skip(1))?;");
            w.line("arguments.check_names(PARAMETERS)?;");
            w.line("let mut s = Scalars::at_start(&arguments)?;");
            w.line("let layout = Layout::new(rank, team.size() as usize, arguments.cut, &s)?;");
            w.line("let mut f = Fields::new(&layout)?;");
            let routed: Vec<String> = self
                .program
                .fields
                .iter()
                .zip(&self.fields)
                .map(|(field, code)| format!("(&layout.{}, {})", code.name, field.levels))
                .collect();
            w.line(format_args!("let mut halo = Halo::new(team, &[{}])?;", routed.join(", ")));
            w.line("let mut events = Reporter::new(rank)?;");
            w.line("");
            self.emit_initial(w);
            w.line("");
            w.block("loop", |w| {
                self.emit_step(w);
                self.emit_after_step(w);
            });
            w.line("");
            self.emit_end(w);
        });
    }

    pub(super) fn emit_initial(&self, w: &mut Writer) {
        for (index, field) in self.program.fields.iter().enumerate() {
            let code = &self.fields[index];
            for (level, init) in &field.init {
                if *level == Level::Prev && field.levels < 3 {
                    continue;
                }
                let name = code.level(*level);
                match init {
                    Init::Zero => {}
                    Init::Value(value) => w.block("", |w| {
                        w.line(format_args!("let s = &s.at({});", level.shift()));
                        w.block(format_args!("for point in f.{name}.own.points()"), |w| {
                            w.line(format_args!("let {} = point;", code.pattern()));
                            w.line(format_args!("f.{name}.set(point, {});", self.block_text(*value)));
                        });
                    }),
                    Init::File(file) => w.line(format_args!(
                        "read_npy({file:?}, &layout.{}.shape, {}, &mut f.{name})?;",
                        code.name, code.n_axes
                    )),
                }
            }
            if field.fixed_sides().next().is_some() {
                for level in kept(field.levels) {
                    w.line(format_args!(
                        "fix_{}(&mut f.{}, &layout.{}, &s.at({}));",
                        code.name,
                        code.level(*level),
                        code.name,
                        level.shift()
                    ));
                }
            }
        }
        for (field, code) in self.program.fields.iter().zip(&self.fields) {
            if field.ty.is_real() {
                w.line(format_args!(
                    "check_finite({:?}, &f.{1}, &layout.{1}, 0, rank)?;",
                    field.name, code.name
                ));
            }
        }
        let initial: Vec<usize> = (0..self.program.reductions.len())
            .filter(|index| self.program.reductions[*index].initially == Initially::Run)
            .collect();
        for index in initial {
            let mut copies = Vec::new();
            for access in self.program.exprs.accesses(self.program.reductions[index].value) {
                let level = if access.level == Level::Next { Level::Now } else { access.level };
                add_copy(self.program, &mut copies, self.program.reductions[index].over, &access, level);
            }
            w.line("s.begin_step();");
            self.emit_exchange(w, &copies, 0);
            let call = self.reduction_call(index, Some(Level::Now));
            w.line(format_args!("let total = combine(team, vec![{call}])?.remove(0);"));
            self.emit_take(w, index, "total");
        }
    }

    /// A call of `reduce_…`; `Next` may stand for another level.
    pub(super) fn reduction_call(&self, index: usize, next: Option<Level>) -> String {
        let reduction = &self.program.reductions[index];
        let over = &self.fields[reduction.over.index()];
        let sweep = Sweep::new(self, &[reduction.value], over, None, &[]);
        let mut arguments: Vec<String> = sweep
            .levels
            .iter()
            .map(|(_, (field, level), _)| {
                let level = if *level == Level::Next { next.unwrap_or(Level::Next) } else { *level };
                format!("&f.{}", self.fields[field.index()].level(level))
            })
            .collect();
        arguments.push(format!("layout.{}.owned()", over.name));
        arguments.push(String::from("&s"));
        format!("reduce_{index}({})", arguments.join(", "))
    }

    pub(super) fn emit_take(&self, w: &mut Writer, index: usize, total: &str) {
        let reduction = &self.program.reductions[index];
        let name = &self.scalars.reductions[index];
        let value = match (reduction.op, reduction.ty) {
            (ReduceOp::Norm2, _) => format!("{total}.real().sqrt()"),
            (ReduceOp::Sum, Type::U64) => format!("{total}.integer() as u64"),
            (_, Type::I64) => format!("{total}.integer()"),
            (_, Type::U64) => format!("({total}.integer() as u64) ^ (1 << 63)"),
            _ => format!("{total}.real()"),
        };
        w.line(format_args!("s.{name} = {value};"));
        w.line(format_args!("s.{name}_known = true;"));
    }

    /// Refreshes the halos of some levels: one transfer per neighbour, then the points outside the grid.
    pub(super) fn emit_exchange(&self, w: &mut Writer, copies: &[(FieldId, Level)], shift: i64) {
        let copies: Vec<&(FieldId, Level)> = copies.iter().collect();
        if copies.is_empty() {
            return;
        }
        let levels: Vec<String> = copies
            .iter()
            .map(|(field, level)| {
                format!("({}, &mut f.{})", field.index(), self.fields[field.index()].level(*level))
            })
            .collect();
        w.line(format_args!("let stale = halo.exchange(&mut [{}])?;", levels.join(", ")));
        for (bit, (field, level)) in copies.iter().enumerate() {
            if self.has_outside(*field) {
                let code = &self.fields[field.index()];
                let is_constant = self.program.fields[field.index()].kind == FieldKind::Constant;
                let shift = if is_constant { 0 } else { shift + level.shift() };
                w.block(format_args!("if stale & {} != 0", 1u64 << bit), |w| {
                    w.line(format_args!(
                        "outside_{}(&mut f.{}, &layout.{}, &s.at({shift}));",
                        code.name,
                        code.level(*level),
                        code.name
                    ));
                });
            }
        }
    }

    pub(super) fn emit_step(&self, w: &mut Writer) {
        let program = self.program;
        w.line("s.begin_step();");
        w.line(format_args!("let mut is_bad = [false; {}];", program.fields.len()));
        for (index, field) in program.fields.iter().enumerate() {
            let id = FieldId::new(index);
            let code = &self.fields[index];
            if field.levels == 1 {
                continue;
            }
            let next = code.level(Level::Next);
            if self.needs_copy(id) {
                w.line(format_args!("f.{next}.copy_from(&f.{}, layout.{}.owned());", code.name, code.name));
                w.line(format_args!("f.{next}.fresh = false;"));
            }
            if field.fixed_sides().next().is_some() && !self.fixes_steadily(id) {
                w.line(format_args!(
                    "is_bad[{index}] |= fix_{0}(&mut f.{next}, &layout.{0}, &s.at(1));",
                    code.name
                ));
            }
        }
        // Levels that nothing in the step changes travel together at its start.
        let mut early: Vec<(FieldId, Level)> = Vec::new();
        let mut late: Vec<Vec<(FieldId, Level)>> = Vec::new();
        let mut written: Vec<(FieldId, Level)> = Vec::new();
        for statement in &program.statements {
            let mut mine = Vec::new();
            for update in statement.updates() {
                for access in accesses(program, update) {
                    let is_early =
                        access.level != Level::Next && !written.contains(&(access.field, access.level));
                    add_copy(
                        program,
                        if is_early { &mut early } else { &mut mine },
                        update.field,
                        &access,
                        access.level,
                    );
                }
            }
            late.push(mine);
            written.extend(statement.updates().iter().map(|update| self.target(update)));
        }
        self.emit_exchange(w, &early, 0);
        for (number, statement) in program.statements.iter().enumerate() {
            self.emit_exchange(w, &late[number], 0);
            self.emit_statement(w, number, statement);
        }
        self.emit_sources(w);
        self.emit_sponges(w);
        for (index, field) in program.fields.iter().enumerate() {
            let id = FieldId::new(index);
            if field.kind == FieldKind::Constant || field.fixed_sides().next().is_none() {
                continue;
            }
            let is_touched = field.levels == 1 && !self.fixes_steadily(id)
                || program.sources.iter().any(|source| source.field == id)
                || has_sponge(field);
            if is_touched {
                let code = &self.fields[index];
                let produced = if field.levels == 1 { Level::Now } else { Level::Next };
                w.line(format_args!(
                    "is_bad[{index}] |= fix_{0}(&mut f.{1}, &layout.{0}, &s.at(1));",
                    code.name,
                    code.level(produced)
                ));
                w.line(format_args!("f.{}.fresh = false;", code.level(produced)));
            }
        }
    }

    /// Whether `Next` must start as a copy: some point of it is not written, or it is read before it is.
    pub(super) fn needs_copy(&self, id: FieldId) -> bool {
        for statement in &self.program.statements {
            for update in statement.updates() {
                let reads_next = accesses(self.program, update)
                    .iter()
                    .any(|access| access.field == id && access.level == Level::Next);
                if reads_next {
                    return true;
                }
                if update.field == id && update.colour.is_none() && update.condition.is_none() {
                    return false;
                }
            }
        }
        true
    }

    pub(super) fn emit_statement(&self, w: &mut Writer, number: usize, statement: &Statement) {
        let snapshots = self.snapshots(statement);
        for (field, level) in &snapshots {
            let code = &self.fields[field.index()];
            w.line(format_args!(
                "f.{}.data.copy_from_slice(&f.{}.data);",
                code.snapshot(*level),
                code.level(*level)
            ));
        }
        for (part, update) in statement.updates().iter().enumerate() {
            let (field, level) = self.target(update);
            let code = &self.fields[field.index()];
            let mut roots = vec![update.value];
            roots.extend(update.condition);
            let sweep = Sweep::new(self, &roots, code, Some((field, level)), &snapshots);
            let mut arguments = vec![format!("&mut f.{}", code.level(level))];
            arguments.extend(sweep.levels.iter().map(|(_, (field, level), _)| {
                let read = &self.fields[field.index()];
                let name = if snapshots.contains(&(*field, *level)) {
                    read.snapshot(*level)
                } else {
                    read.level(*level)
                };
                format!("&f.{name}")
            }));
            arguments.push(format!("layout.{}.work()", code.name));
            arguments.push(String::from("&s"));
            w.line(format_args!("// {}", self.quote(update.span)));
            let call = format!("{}({})", update_name(number, part), arguments.join(", "));
            match self.program.fields[field.index()].ty.is_real() {
                true => w.line(format_args!("is_bad[{}] |= {call};", field.index())),
                false => w.line(format_args!("{call};")),
            }
            w.line(format_args!("f.{}.fresh = false;", code.level(level)));
        }
    }

    pub(super) fn emit_sources(&self, w: &mut Writer) {
        for source in &self.program.sources {
            let field = &self.program.fields[source.field.index()];
            let code = &self.fields[source.field.index()];
            let level = if field.levels == 1 { Level::Now } else { Level::Next };
            let name = code.level(level);
            let read = self.program.exprs.accesses(source.value);
            let mut copies = Vec::new();
            for access in &read {
                add_copy(self.program, &mut copies, source.field, access, access.level);
            }
            w.line(format_args!("// {}", self.quote(source.span)));
            self.emit_exchange(w, &copies, 0);
            self.emit_nearest(w, source.field, &source.position);
            w.block(format_args!("if f.{name}.own.contains(point)"), |w| {
                w.line(format_args!("let {} = point;", code.pattern()));
                let mut members = self.members(code.n_axes);
                for access in &read {
                    let other = &self.fields[access.field.index()];
                    let last = format!("i{}", other.n_axes - 1);
                    let text = format!(
                        "f.{}.get({})",
                        other.level(access.level),
                        other.point(&access.offset, &last)
                    );
                    members.accesses.insert((access.field, access.level, access.offset), text);
                }
                let mut printer = Printer::new(self.program, members);
                let (lines, texts) = printer.expressions(&[source.value]);
                lines.iter().for_each(|line| w.line(line));
                let sum = match field.ty {
                    Type::I64 | Type::U64 => format!("f.{name}.get(point).wrapping_add({})", texts[0]),
                    _ => format!("f.{name}.get(point) + {}", parenthesised(&texts[0])),
                };
                w.line(format_args!("f.{name}.set(point, {sum});"));
                let index = source.field.index();
                w.line(format_args!("is_bad[{index}] |= !f.{name}.get(point).is_finite_value();"));
            });
            w.line(format_args!("f.{name}.fresh = false;"));
        }
    }

    /// `let point = …`: the grid point that is nearest to a position.
    pub(super) fn emit_nearest(&self, w: &mut Writer, field: FieldId, position: &[ExprId]) {
        let code = &self.fields[field.index()];
        let declared = &self.program.fields[field.index()];
        let mut parts = vec![String::from("0"); AXES_MAX];
        for (axis, wanted) in position.iter().enumerate() {
            let slot = code.slot(axis);
            let coordinate = self.block_text(declared.positions[axis]);
            parts[slot] = format!(
                "nearest({}, layout.{}.shape.points[{slot}], |i{axis}: i64| {coordinate})",
                self.block_text(*wanted),
                code.name
            );
        }
        w.line(format_args!("let point = [{}];", parts.join(", ")));
    }

    pub(super) fn emit_sponges(&self, w: &mut Writer) {
        for (index, field) in self.program.fields.iter().enumerate() {
            if !has_sponge(field) {
                continue;
            }
            let code = &self.fields[index];
            let mut levels = vec![if field.levels == 1 { Level::Now } else { Level::Next }];
            if field.levels == 3 {
                levels.push(Level::Now);
            }
            for level in levels {
                let name = code.level(level);
                for side in Side::of(code.n_axes) {
                    let SideRule::Sponge { width, strength } = field.rule(*side) else { continue };
                    let slot = code.slot(side.axis);
                    let end = if side.end == End::Low { "below" } else { "above" };
                    w.line(format_args!(
                        "sponge_{end}(&mut f.{name}, {slot}, layout.{}.shape.points[{slot}], {}, {});",
                        code.name,
                        self.scalar(*width),
                        self.scalar(*strength)
                    ));
                }
                w.line(format_args!("f.{name}.fresh = false;"));
            }
        }
    }

    pub(super) fn emit_after_step(&self, w: &mut Writer) {
        let program = self.program;
        self.emit_due_reductions(w);
        for (index, field) in program.fields.iter().enumerate() {
            let code = &self.fields[index];
            if field.levels == 3 {
                w.line(format_args!("std::mem::swap(&mut f.{0}_prev, &mut f.{0});", code.name));
            }
            if 2 <= field.levels {
                w.line(format_args!("std::mem::swap(&mut f.{0}, &mut f.{0}_next);", code.name));
            }
        }
        w.line("s.end_step();");
        for (index, field) in program.fields.iter().enumerate() {
            if field.ty.is_real() && field.kind == FieldKind::Evolving {
                let code = &self.fields[index];
                w.block(format_args!("if is_bad[{index}]"), |w| {
                    w.line(format_args!(
                        "check_finite({:?}, &f.{1}, &layout.{1}, s.step, rank)?;",
                        field.name, code.name
                    ));
                });
            }
        }
        for print in &program.prints {
            if let When::Every(every) = print.when {
                w.block(format_args!("if s.step % {} == 0", parenthesised(&self.scalar(every))), |w| {
                    self.emit_print(w, print);
                });
            }
        }
        for probe in &program.probes {
            if let When::Every(every) = probe.when {
                w.block(format_args!("if s.step % {} == 0", parenthesised(&self.scalar(every))), |w| {
                    self.emit_probe(w, probe);
                });
            }
        }
        for output in &program.outputs {
            if let When::Every(every) = output.when {
                w.block(format_args!("if s.step % {} == 0", parenthesised(&self.scalar(every))), |w| {
                    self.emit_output(w, output);
                });
            }
        }
        w.line("events.progress(s.step)?;");
        w.block(format_args!("if {}", self.block_text(program.until)), |w| w.line("break;"));
    }

    pub(super) fn emit_due_reductions(&self, w: &mut Writer) {
        let program = self.program;
        let mut next = 0;
        while next < program.reductions.len() {
            // Those that use no reduction before them travel together.
            let mut group = vec![next];
            next += 1;
            while next < program.reductions.len() && !self.uses_reduction(program.reductions[next].value) {
                group.push(next);
                next += 1;
            }
            w.line("let mut shares = Vec::new();");
            for &index in &group {
                let reduction = &program.reductions[index];
                w.line(format_args!("// {}", self.quote(reduction.span)));
                w.line(format_args!(
                    "let due_{index} = (s.step + 1) % {} == 0;",
                    parenthesised(&self.scalar(reduction.every))
                ));
                w.block(format_args!("if due_{index}"), |w| {
                    let mut copies = Vec::new();
                    for access in program.exprs.accesses(reduction.value) {
                        add_copy(program, &mut copies, reduction.over, &access, access.level);
                    }
                    self.emit_exchange(w, &copies, 0);
                    w.line(format_args!("shares.push({});", self.reduction_call(index, None)));
                });
            }
            w.line("let mut totals = combine(team, shares)?.into_iter();");
            for &index in &group {
                w.block(
                    format_args!("if let Some(total) = if due_{index} {{ totals.next() }} else {{ None }}"),
                    |w| {
                        self.emit_take(w, index, "total");
                    },
                );
            }
        }
    }

    pub(super) fn uses_reduction(&self, id: ExprId) -> bool {
        let mut uses = false;
        self.program.exprs.visit(id, |_, expr| {
            uses |= matches!(expr.kind, ExprKind::Reduction(_) | ExprKind::Known(_));
        });
        uses
    }
}
