//! A whole program as Rust text: scalars, layout, sweeps, boundaries, reductions and the loop over steps.
//!
//! Fields lie in plain private memory, so that sweeps vectorise; what travels is packed into a window
//! (`prelude/exchange.rs`). Parameters are read at start, so one text serves all sizes and numbers of ranks.
//! Never decides anything that changes a result: the order of all work is that of the IR's documentation.

mod output;
mod sweep;

use std::collections::HashMap;

use rma_source::Diagnostic;

use self::sweep::Sweep;

use super::expression::{Naming, Printer, type_name};
use super::names::Names;
use super::prelude;
use super::prelude::space::{Cut, Demand};
use super::writer::Writer;
use crate::ir::{
    AXES_MAX, Access, Colour, Decompose, End, ExprId, ExprKind, FieldId, FieldKind, Format, Init, Initially,
    LetId, LetKind, Level, ParamId, Place, Program, ReduceOp, Reduction, ReductionId, Scalars, Side,
    SideRule, Statement, TimeRule, Type, Update, When,
};
use crate::messages::Code;

/// What the emitted program cannot do yet, in the order of the text; empty when it can do everything.
pub(super) fn missing(program: &Program) -> Vec<Diagnostic> {
    let unsupported = |what: &str, span, help: &str| {
        Code::Unsupported
            .error(format!("{what} is not supported yet"))
            .label(span, "the program that is built cannot write this")
            .note("the formats that a run writes are png and npy; a probe writes csv")
            .help(help)
    };
    let mut missing = Vec::new();
    for output in &program.outputs {
        for format in &output.formats {
            let word = match format {
                Format::Gif { .. } => "gif",
                Format::Vtk => "vtk",
                Format::Csv => "csv",
                Format::Png { .. } | Format::Npy => continue,
            };
            missing.push(unsupported(&format!("`output … as {word}`"), output.span, "write png or npy"));
        }
    }
    if let Some(checkpoint) = &program.checkpoint {
        missing.push(unsupported(
            "`checkpoint`",
            checkpoint.span,
            "write npy with `output`, and read it with `init u = file \"NAME.npy\"`",
        ));
    }
    missing.sort_by_key(|diagnostic| diagnostic.primary().map(|label| label.span));
    missing
}

/// Text of the program. `source` is what the user wrote, for comments.
pub(super) fn emit(program: &Program, source: &str) -> String {
    Emitter::new(program, source).emit()
}

/// Whether a number of ranks fits the program's grids; the sentence that the emitted program would say if not.
pub(super) fn check_ranks(
    program: &Program,
    scalars: &Scalars,
    ranks: usize,
    flag: Option<Cut>,
) -> Result<(), String> {
    let emitter = Emitter::new(program, "");
    for (index, grid) in program.grids.iter().enumerate() {
        let n_axes = grid.axes.len();
        let (part_min, whole_min) = emitter.least(index, n_axes);
        let mut points = [1; AXES_MAX];
        for (axis, declared) in grid.axes.iter().enumerate() {
            points[AXES_MAX - n_axes + axis] = scalars.checked(program, declared.len).i64();
        }
        let demand =
            Demand { points, n_axes, part_min: part_min.map(i64::from), whole_min: whole_min.map(i64::from) };
        let names: Vec<&str> = grid.axes.iter().map(|axis| axis.index.as_str()).collect();
        let written = written_cut(program, n_axes);
        prelude::space::cut(ranks, flag.unwrap_or(written), &demand, &format!("grid {}", grid.name), &names)?;
    }
    Ok(())
}

/// How the program says that a grid of some axes is cut.
fn written_cut(program: &Program, n_axes: usize) -> Cut {
    match &program.plan.decompose.done {
        Decompose::Rows => Cut::Rows,
        Decompose::Parts(parts) if parts.len() == n_axes => {
            let mut counts = [1; AXES_MAX];
            for (count, part) in counts.iter_mut().zip(parts) {
                *count = *part as usize;
            }
            Cut::Parts(counts)
        }
        _ => Cut::Blocks,
    }
}

/// Names that the emitted functions use for themselves.
const RESERVED: [&str; 24] = [
    "s",
    "n",
    "q",
    "to",
    "bad",
    "first",
    "point",
    "at",
    "value",
    "step",
    "t",
    "t_before",
    "team",
    "halo",
    "events",
    "rank",
    "layout",
    "fields",
    "arguments",
    "i0",
    "i1",
    "i2",
    "stale",
    "best",
];

struct FieldCode {
    name: String,
    ty: &'static str,
    n_axes: usize,
    below: [u32; AXES_MAX],
    above: [u32; AXES_MAX],
    is_box: bool,
    /// Some access reaches beyond a fixed side.
    reads_beyond_fixed: bool,
    /// A statement writes it while another point of it is read.
    has_snapshot: Vec<Level>,
}

impl FieldCode {
    fn slot(&self, axis: usize) -> usize {
        AXES_MAX - self.n_axes + axis
    }

    fn level(&self, level: Level) -> String {
        match level {
            Level::Now => self.name.clone(),
            Level::Next => format!("{}_next", self.name),
            Level::Prev => format!("{}_prev", self.name),
        }
    }

    fn snapshot(&self, level: Level) -> String {
        format!("{}_before", self.level(level))
    }

    /// `[_, i0, i1]`
    fn pattern(&self) -> String {
        let names: Vec<String> = (0..AXES_MAX)
            .map(|slot| match slot.checked_sub(AXES_MAX - self.n_axes) {
                Some(axis) => format!("i{axis}"),
                None => String::from("_"),
            })
            .collect();
        format!("[{}]", names.join(", "))
    }

    /// `[0, i0 - 1, i1]`
    fn point(&self, offset: &[i32; AXES_MAX], last: &str) -> String {
        let parts: Vec<String> = (0..AXES_MAX)
            .map(|slot| match slot.checked_sub(AXES_MAX - self.n_axes) {
                None => String::from("0"),
                Some(axis) => {
                    let name = if axis + 1 == self.n_axes { String::from(last) } else { format!("i{axis}") };
                    match offset[axis] {
                        0 => name,
                        by if by < 0 => format!("{name} - {}", by.unsigned_abs()),
                        by => format!("{name} + {by}"),
                    }
                }
            })
            .collect();
        format!("[{}]", parts.join(", "))
    }
}

/// Scalars by their names in the struct `Scalars`.
struct ScalarNames {
    params: Vec<String>,
    lets: Vec<String>,
    reductions: Vec<String>,
}

/// Writes scalars as members of `s`.
struct Members<'a> {
    prefix: &'a str,
    names: &'a ScalarNames,
    n_axes: usize,
    accesses: HashMap<(FieldId, Level, [i32; AXES_MAX]), String>,
}

impl Naming for Members<'_> {
    fn param(&self, id: ParamId) -> String {
        format!("{}{}", self.prefix, self.names.params[id.index()])
    }

    fn named(&self, id: LetId) -> String {
        format!("{}{}", self.prefix, self.names.lets[id.index()])
    }

    fn reduction(&self, id: ReductionId) -> String {
        format!("{}{}", self.prefix, self.names.reductions[id.index()])
    }

    fn known(&self, id: ReductionId) -> String {
        format!("{}{}_known", self.prefix, self.names.reductions[id.index()])
    }

    fn index(&self, axis: usize) -> String {
        format!("i{axis}")
    }

    fn step(&self) -> String {
        format!("{}step", self.prefix)
    }

    fn time(&self) -> String {
        format!("{}t", self.prefix)
    }

    fn access(&self, access: &Access) -> String {
        self.accesses[&(access.field, access.level, access.offset)].clone()
    }

    fn last_axis(&self) -> usize {
        self.n_axes.saturating_sub(1)
    }
}

struct Emitter<'a> {
    program: &'a Program,
    source: &'a str,
    fields: Vec<FieldCode>,
    scalars: ScalarNames,
}

impl<'a> Emitter<'a> {
    fn new(program: &'a Program, source: &'a str) -> Emitter<'a> {
        let mut names = Names::with(&["step", "t", "t_before"]);
        let params = program.params.iter().map(|param| names.give(&param.name)).collect();
        let lets = program.lets.iter().map(|named| names.give(&named.name)).collect();
        let reductions = program
            .reductions
            .iter()
            .map(|reduction| {
                let name = names.give(&reduction.name);
                names.give(&format!("{name}_known"));
                name
            })
            .collect();
        let scalars = ScalarNames { params, lets, reductions };
        let mut names = Names::with(&RESERVED);
        let mut fields: Vec<FieldCode> = program
            .fields
            .iter()
            .map(|field| {
                let name = names.give(&field.name);
                for suffix in ["next", "prev", "before", "next_before"] {
                    names.give(&format!("{name}_{suffix}"));
                }
                FieldCode {
                    name,
                    ty: type_name(field.ty),
                    n_axes: field.places.len(),
                    below: [0; AXES_MAX],
                    above: [0; AXES_MAX],
                    is_box: false,
                    reads_beyond_fixed: false,
                    has_snapshot: Vec::new(),
                }
            })
            .collect();
        for (home, accesses, is_everywhere) in all_accesses(program) {
            for access in accesses {
                let n_axes = program.fields[access.field.index()].places.len();
                let extra: Vec<u32> =
                    (0..n_axes).map(|axis| shortfall(program, home, access.field, axis)).collect();
                let code = &mut fields[access.field.index()];
                let n_moved = access.offset.iter().filter(|by| **by != 0).count();
                code.is_box |= 1 < n_moved;
                for (axis, &by) in access.offset.iter().enumerate() {
                    code.below[axis] = code.below[axis].max(by.min(0).unsigned_abs());
                    let extra = extra.get(axis).copied().unwrap_or(0);
                    let above = by + extra as i32;
                    code.above[axis] = code.above[axis].max(above.max(0).unsigned_abs());
                    // Points that are updated lie at least one point inside a fixed side of their own field.
                    let is_near = extra == 0 && by.abs() <= 1 && access.field == home && !is_everywhere;
                    code.reads_beyond_fixed |= by != 0 && !is_near || extra != 0;
                }
            }
        }
        let mut emitter = Emitter { program, source, fields, scalars };
        for statement in &program.statements {
            for (field, level) in emitter.snapshots(statement) {
                let levels = &mut emitter.fields[field.index()].has_snapshot;
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
        }
        emitter
    }

    fn members<'b>(&'b self, n_axes: usize) -> Members<'b> {
        Members { prefix: "s.", names: &self.scalars, n_axes, accesses: HashMap::new() }
    }

    /// Text of an expression without accesses.
    fn scalar(&self, id: ExprId) -> String {
        Printer::new(self.program, self.members(0)).expression(id)
    }

    /// Text of an expression as the body of a block.
    fn block_text(&self, id: ExprId) -> String {
        let (lines, texts) = Printer::new(self.program, self.members(0)).expressions(&[id]);
        if lines.is_empty() { texts[0].clone() } else { format!("{{ {} {} }}", lines.join(" "), texts[0]) }
    }

    fn quote(&self, span: rma_source::Span) -> String {
        let text = self.source.get(span.start as usize..span.end as usize).unwrap_or("");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Levels of which a statement needs a copy from before it.
    fn snapshots(&self, statement: &Statement) -> Vec<(FieldId, Level)> {
        let mut found: Vec<(FieldId, Level)> = Vec::new();
        let mut written: Vec<(FieldId, Level)> = Vec::new();
        for update in statement.updates() {
            let target = self.target(update);
            for access in accesses(self.program, update) {
                let place = (access.field, access.level);
                let is_shifted = access.offset.iter().any(|by| *by != 0);
                let is_own = place == target && is_shifted;
                let is_earlier = written.contains(&place) && access.level == Level::Now;
                if (is_own || is_earlier) && !found.contains(&place) {
                    found.push(place);
                }
            }
            written.push(target);
        }
        found
    }

    fn target(&self, update: &Update) -> (FieldId, Level) {
        let level =
            if self.program.fields[update.field.index()].levels == 1 { Level::Now } else { Level::Next };
        (update.field, level)
    }

    /// Whether an expression may give another value at another step.
    fn is_steady(&self, id: ExprId) -> bool {
        let mut is_steady = true;
        self.program.exprs.visit(id, |_, expr| match expr.kind {
            ExprKind::Time | ExprKind::Step | ExprKind::Reduction(_) | ExprKind::Known(_) => {
                is_steady = false
            }
            ExprKind::Let(named) if self.program.lets[named.index()].kind == LetKind::PerStep => {
                is_steady = false
            }
            _ => {}
        });
        is_steady
    }

    fn fixes_steadily(&self, field: FieldId) -> bool {
        self.program.fields[field.index()].fixed_sides().all(|(_, value)| self.is_steady(value))
    }

    /// Whether halo points beyond a side are read at all.
    fn is_filled(&self, field: FieldId, side: Side) -> bool {
        let code = &self.fields[field.index()];
        let width = match side.end {
            End::Low => code.below[side.axis],
            End::High => code.above[side.axis],
        };
        match self.program.fields[field.index()].rule(side) {
            SideRule::Fixed(_) => width != 0 && code.reads_beyond_fixed,
            SideRule::Mirror | SideRule::Neumann { .. } => width != 0,
            SideRule::None | SideRule::Periodic | SideRule::Sponge { .. } => false,
        }
    }

    fn has_outside(&self, field: FieldId) -> bool {
        let n_axes = self.fields[field.index()].n_axes;
        Side::of(n_axes).iter().any(|side| self.is_filled(field, *side))
    }

    fn emit(&self) -> String {
        let mut w = Writer::default();
        w.line(format_args!(
            "//! Program `{}`, written by rma-dsl. One text for every size, decomposition and number of ranks.",
            self.program.name
        ));
        w.line("#![forbid(unsafe_code)]");
        w.line(
            "#![allow(dead_code, unused_variables, unused_imports, unused_mut, unused_parens, clippy::all)]",
        );
        w.line("");
        self.emit_prelude(&mut w);
        self.emit_scalars(&mut w);
        self.emit_fields(&mut w);
        for (number, statement) in self.program.statements.iter().enumerate() {
            for (part, update) in statement.updates().iter().enumerate() {
                self.emit_update(&mut w, &update_name(number, part), update, &self.snapshots(statement));
            }
        }
        for index in 0..self.program.fields.len() {
            self.emit_boundary(&mut w, FieldId::new(index));
        }
        for (index, reduction) in self.program.reductions.iter().enumerate() {
            self.emit_reduction(&mut w, index, reduction);
        }
        self.emit_solve(&mut w);
        w.finish()
    }

    fn emit_prelude(&self, w: &mut Writer) {
        w.block("mod prelude", |w| {
            for (name, text) in prelude::FILES {
                w.block(format_args!("pub mod {name}"), |w| w.verbatim(without_tests(text)));
            }
        });
        w.line("");
        w.line("use prelude::exchange::*;");
        w.line("use prelude::files::*;");
        w.line("use prelude::numbers::*;");
        w.line("use prelude::space::*;");
        w.line("use prelude::sums::*;");
        w.line("");
    }

    fn emit_scalars(&self, w: &mut Writer) {
        let program = self.program;
        let quoted: Vec<String> = program.params.iter().map(|param| format!("{:?}", param.name)).collect();
        w.line(format_args!("const PROGRAM: &str = {:?};", program.name));
        w.line(format_args!("const PARAMETERS: &[&str] = &[{}];", quoted.join(", ")));
        w.line("");
        w.line("/// Parameters, named scalars, reductions and the time.");
        w.line("#[derive(Clone, Copy, Default)]");
        w.block("struct Scalars", |w| {
            for (param, name) in program.params.iter().zip(&self.scalars.params) {
                w.line(format_args!("{name}: {},", type_name(param.ty)));
            }
            for (named, name) in program.lets.iter().zip(&self.scalars.lets) {
                w.line(format_args!("{name}: {},", type_name(named.ty)));
            }
            for (reduction, name) in program.reductions.iter().zip(&self.scalars.reductions) {
                w.line(format_args!("{name}: {},", type_name(reduction.ty)));
                w.line(format_args!("{name}_known: bool,"));
            }
            w.line("/// Completed steps.");
            w.line("step: i64,");
            w.line("t: f64,");
            w.line("t_before: f64,");
        });
        w.line("");
        w.block("impl Scalars", |w| {
            w.line("/// Everything that is known before the first step.");
            w.block("fn at_start(arguments: &Arguments) -> Result<Scalars, String>", |w| {
                w.line("let mut s = Scalars::default();");
                let mut is_written = vec![false; program.lets.len()];
                for (index, param) in program.params.iter().enumerate() {
                    self.emit_static_lets(w, index, &mut is_written);
                    let (reader, name) =
                        (if param.ty == Type::I64 { "int" } else { "real" }, &self.scalars.params[index]);
                    let bound = |bound: Option<ExprId>| match bound {
                        Some(bound) => format!("Some({})", self.scalar(bound)),
                        None => String::from("None"),
                    };
                    w.line(format_args!(
                        "s.{name} = arguments.{reader}({:?}, {}, {}, {})?;",
                        param.name,
                        self.scalar(param.default),
                        bound(param.min),
                        bound(param.max)
                    ));
                }
                self.emit_static_lets(w, program.params.len(), &mut is_written);
                w.line("Ok(s)");
            });
            w.line("");
            w.line("/// What depends on reductions, at the start of a step.");
            w.block("fn begin_step(&mut self)", |w| {
                w.line("let s = self;");
                for (named, name) in program.lets.iter().zip(&self.scalars.lets) {
                    if named.kind == LetKind::PerStep {
                        w.line(format_args!("s.{name} = {};", self.block_text(named.value)));
                    }
                }
                if let (TimeRule::RunningSum, Some(dt)) = (program.time.rule, program.time.dt) {
                    w.block("if s.step == 0", |w| {
                        w.line(format_args!("s.t_before = s.t - {};", parenthesised(&self.block_text(dt))));
                    });
                }
            });
            w.line("");
            w.line("/// As seen `shift` steps later.");
            w.block("fn at(&self, shift: i64) -> Scalars", |w| {
                w.line("let mut s = *self;");
                w.line("s.step += shift;");
                match (program.time.rule, program.time.dt) {
                    (TimeRule::Product, Some(dt)) => {
                        w.line(format_args!(
                            "s.t = s.step as f64 * {};",
                            parenthesised(&self.block_text(dt))
                        ));
                    }
                    (TimeRule::RunningSum, Some(dt)) => w.line(format_args!(
                        "s.t = match shift {{ 0 => s.t, 1 => s.t + {}, _ => s.t_before }};",
                        parenthesised(&self.block_text(dt))
                    )),
                    _ => {}
                }
                w.line("s");
            });
            w.line("");
            w.line("/// Completes a step.");
            w.block("fn end_step(&mut self)", |w| {
                w.line("let t_before = self.t;");
                w.line("*self = self.at(1);");
                w.line("self.t_before = t_before;");
            });
        });
        w.line("");
    }

    fn emit_static_lets(&self, w: &mut Writer, n_params: usize, is_written: &mut [bool]) {
        for (index, named) in self.program.lets.iter().enumerate() {
            if named.kind != LetKind::Static || is_written[index] {
                continue;
            }
            let mut is_ready = true;
            self.program.exprs.visit(named.value, |_, expr| match expr.kind {
                ExprKind::Param(id) => is_ready &= id.index() < n_params,
                ExprKind::Let(id) => is_ready &= is_written[id.index()],
                _ => {}
            });
            if is_ready {
                is_written[index] = true;
                w.line(format_args!("s.{} = {};", self.scalars.lets[index], self.block_text(named.value)));
            }
        }
    }

    fn emit_fields(&self, w: &mut Writer) {
        let program = self.program;
        w.line("/// Where the fields lie.");
        w.block("struct Layout", |w| {
            for code in &self.fields {
                w.line(format_args!("{}: Placed,", code.name));
            }
        });
        w.line("");
        w.block("impl Layout", |w| {
            w.block(
                "fn new(rank: usize, n_ranks: usize, cut: Option<Cut>, s: &Scalars) -> Result<Layout, String>",
                |w| {
                    for (index, grid) in program.grids.iter().enumerate() {
                        self.emit_grid(w, index, grid);
                    }
                    w.block_then("Ok(Layout", ")", |w| {
                        for (index, field) in program.fields.iter().enumerate() {
                            self.emit_placed(w, FieldId::new(index), field);
                        }
                    });
                },
            );
        });
        w.line("");
        w.line("/// The values at this rank.");
        w.block("struct Fields", |w| {
            for (field, code) in program.fields.iter().zip(&self.fields) {
                for level in kept(field.levels) {
                    w.line(format_args!("{}: Level<{}>,", code.level(*level), code.ty));
                }
                for level in &code.has_snapshot {
                    w.line(format_args!("{}: Level<{}>,", code.snapshot(*level), code.ty));
                }
            }
        });
        w.line("");
        w.block("impl Fields", |w| {
            w.block("fn new(layout: &Layout) -> Result<Fields, String>", |w| {
                w.block_then("Ok(Fields", ")", |w| {
                    for (field, code) in program.fields.iter().zip(&self.fields) {
                        let levels = kept(field.levels).iter().map(|level| code.level(*level));
                        for name in levels.chain(code.has_snapshot.iter().map(|level| code.snapshot(*level)))
                        {
                            w.line(format_args!(
                                "{name}: Level::new(&layout.{0}.shape, &layout.{0}.place)?,",
                                code.name
                            ));
                        }
                    }
                });
            });
        });
        w.line("");
    }

    fn emit_grid(&self, w: &mut Writer, index: usize, grid: &crate::ir::Grid) {
        let n_axes = grid.axes.len();
        let first = AXES_MAX - n_axes;
        let mut points = vec![String::from("1"); AXES_MAX];
        for (axis, declared) in grid.axes.iter().enumerate() {
            points[first + axis] = self.scalar(declared.len);
        }
        let (part_min, whole_min) = self.least(index, n_axes);
        let names: Vec<String> = grid.axes.iter().map(|axis| format!("{:?}", axis.index)).collect();
        let written = format!("Cut::{:?}", written_cut(self.program, n_axes));
        w.block_then("let demand = Demand", ";", |w| {
            w.line(format_args!("points: [{}],", points.join(", ")));
            w.line(format_args!("n_axes: {n_axes},"));
            w.line(format_args!("part_min: {part_min:?},"));
            w.line(format_args!("whole_min: {whole_min:?},"));
        });
        let what = format!("grid {}", grid.name);
        w.line(format_args!(
            "let grid_{index} = prelude::space::cut(n_ranks, cut.unwrap_or({written}), &demand, {what:?}, &[{}])?;",
            names.join(", ")
        ));
    }

    /// The fewest points that a part of a grid needs per axis, and an axis that is not cut.
    fn least(&self, grid: usize, n_axes: usize) -> ([u32; AXES_MAX], [u32; AXES_MAX]) {
        let first = AXES_MAX - n_axes;
        let (mut part_min, mut whole_min) = ([1; AXES_MAX], [1; AXES_MAX]);
        for (field, code) in self.program.fields.iter().zip(&self.fields) {
            if field.grid.index() != grid {
                continue;
            }
            for axis in 0..n_axes {
                let width = code.below[axis].max(code.above[axis]);
                let rule = |end| field.rule(Side { axis, end });
                let is_mirror =
                    [End::Low, End::High].iter().any(|end| matches!(rule(*end), SideRule::Mirror));
                let is_shorter = field.places[axis] == Place::Half && !field.is_periodic(axis);
                let part = width + u32::from(is_mirror && width != 0) + u32::from(is_shorter);
                part_min[first + axis] = part_min[first + axis].max(part);
                if field.is_periodic(axis) {
                    whole_min[first + axis] = whole_min[first + axis].max(width);
                }
            }
        }
        (part_min, whole_min)
    }

    fn emit_placed(&self, w: &mut Writer, id: FieldId, field: &crate::ir::Field) {
        let code = &self.fields[id.index()];
        let first = AXES_MAX - code.n_axes;
        let spread = |per_axis: &dyn Fn(usize) -> String, rest: &str| {
            let parts: Vec<String> = (0..AXES_MAX)
                .map(|slot| if slot < first { rest.to_string() } else { per_axis(slot - first) })
                .collect();
            format!("[{}]", parts.join(", "))
        };
        let grid = &self.program.grids[field.grid.index()];
        let len = |axis: usize| self.scalar(field.lens[axis]);
        let is_fixed = |axis, end| field.is_fixed(Side { axis, end });
        w.block_then(format_args!("{}: Placed", code.name), ",", |w| {
            w.block_then("shape: Shape", ",", |w| {
                w.line(format_args!("grid: {},", spread(&|axis| self.scalar(grid.axes[axis].len), "1")));
                w.line(format_args!("points: {},", spread(&len, "1")));
                w.line(format_args!("below: {},", spread(&|axis| code.below[axis].to_string(), "0")));
                w.line(format_args!("above: {},", spread(&|axis| code.above[axis].to_string(), "0")));
                w.line(format_args!(
                    "periodic: {},",
                    spread(&|axis| field.is_periodic(axis).to_string(), "false")
                ));
                w.line(format_args!("reach: {},", if code.is_box { "Reach::Box" } else { "Reach::Star" }));
            });
            w.line(format_args!("place: Place::of(rank, grid_{}),", field.grid.index()));
            w.line(format_args!("n_axes: {},", code.n_axes));
            let low = spread(&|axis| u32::from(is_fixed(axis, End::Low)).to_string(), "0");
            let high = spread(
                &|axis| format!("{} - {}", parenthesised(&len(axis)), u32::from(is_fixed(axis, End::High))),
                "1",
            );
            w.line(format_args!("free: Region {{ lo: {low}, hi: {high} }},"));
        });
    }

    /// The sweep of one update. Returns marks (see `numbers::mark`) of the values it produced.
    fn emit_update(&self, w: &mut Writer, name: &str, update: &Update, snapshots: &[(FieldId, Level)]) {
        let (target_field, target_level) = self.target(update);
        let target = &self.fields[target_field.index()];
        let ty = self.program.fields[target_field.index()].ty;
        let mut roots = vec![update.value];
        roots.extend(update.condition);
        let sweep = Sweep::new(self, &roots, target, Some((target_field, target_level)), snapshots);
        let mark = match ty {
            Type::F64 => Some(("u64", "mark(value)")),
            Type::F32 => Some(("u32", "mark32(value)")),
            _ => None,
        };
        w.line(format_args!("/// `{}`", self.quote(update.span)));
        let mut parameters = vec![format!("to: &mut Level<{}>", target.ty)];
        parameters.extend(sweep.levels.iter().map(|(argument, _, ty)| format!("{argument}: &Level<{ty}>")));
        parameters.push(String::from("at: Region"));
        parameters.push(String::from("s: &Scalars"));
        w.block(format_args!("fn {name}({}) -> bool", parameters.join(", ")), |w| {
            sweep.emit_head(w);
            if let Some((mark_ty, _)) = mark {
                w.line(format_args!("let mut bad: {mark_ty} = 0;"));
            }
            w.block(format_args!("for {} in at.rows()", sweep.row_pattern(target)), |w| {
                sweep.emit_row_constants(w);
                let mut arguments = vec![format!("to.row_mut({}, n)", target.point(&[0; AXES_MAX], "first"))];
                arguments.extend(sweep.row_arguments(self));
                if let Some(colour) = update.colour {
                    let sum: Vec<String> = (0..target.n_axes - 1)
                        .map(|axis| format!("i{axis}"))
                        .chain([String::from("first")])
                        .collect();
                    let shift = if colour == Colour::Red { "" } else { " + 1" };
                    arguments.push(format!("(({}{shift}) & 1) as usize", sum.join(" + ")));
                }
                let call = format!("{name}_row({})", arguments.join(", "));
                w.line(if mark.is_some() { format!("bad |= {call};") } else { format!("{call};") });
            });
            w.line(match mark {
                Some((mark_ty, _)) => format!("bad >> ({mark_ty}::BITS - 1) != 0"),
                None => String::from("false"),
            });
        });
        w.line("");
        let mut parameters = vec![format!("to: &mut [{}]", target.ty)];
        parameters.extend(sweep.row_parameters());
        if update.colour.is_some() {
            parameters.push(String::from("start: usize"));
        }
        w.line("#[inline(always)]");
        let result = mark.map_or(String::new(), |(ty, _)| format!(" -> {ty}"));
        w.block(format_args!("fn {name}_row({}){result}", parameters.join(", ")), |w| {
            w.line("let n = to.len();");
            sweep.emit_cuts(w);
            if let Some((mark_ty, _)) = mark {
                w.line(format_args!("let mut bad: {mark_ty} = 0;"));
            }
            let range = if update.colour.is_some() { "(start..n).step_by(2)" } else { "0..n" };
            w.block(format_args!("for q in {range}"), |w| {
                if sweep.uses_last_index {
                    w.line(format_args!("let i{} = first + q as i64;", target.n_axes - 1));
                }
                let store = |w: &mut Writer, value: &str| {
                    w.line(format_args!("let value: {} = {value};", target.ty));
                    w.line("to[q] = value;");
                    if let Some((_, mark)) = mark {
                        w.line(format_args!("bad |= {mark};"));
                    }
                };
                let mut printer = sweep.point_printer(self);
                match update.condition {
                    Some(condition) => {
                        let (lines, texts) = printer.expressions(&[condition]);
                        lines.iter().for_each(|line| w.line(line));
                        w.block(format_args!("if {}", texts[0]), |w| {
                            let (lines, texts) = printer.expressions(&[update.value]);
                            lines.iter().for_each(|line| w.line(line));
                            store(w, &texts[0]);
                        });
                    }
                    None => {
                        let (lines, texts) = printer.expressions(&[update.value]);
                        lines.iter().for_each(|line| w.line(line));
                        store(w, &texts[0]);
                    }
                }
            });
            if mark.is_some() {
                w.line("bad");
            }
        });
        w.line("");
    }

    fn emit_reduction(&self, w: &mut Writer, index: usize, reduction: &Reduction) {
        let over = &self.fields[reduction.over.index()];
        let ty = self.program.exprs[reduction.value].ty;
        let sweep = Sweep::new(self, &[reduction.value], over, None, &[]);
        w.line(format_args!("/// `{}`: this rank's share.", self.quote(reduction.span)));
        let mut parameters: Vec<String> =
            sweep.levels.iter().map(|(argument, _, ty)| format!("{argument}: &Level<{ty}>")).collect();
        parameters.push(String::from("at: Region"));
        parameters.push(String::from("s: &Scalars"));
        let as_f64 =
            |value: &str| if ty == Type::F64 { value.to_string() } else { format!("{value} as f64") };
        let (share, start, add, result) = match (reduction.op, ty) {
            (ReduceOp::Max, Type::I64) => {
                ("i64", "i64::MIN", String::from("best = best.max(value)"), "Share::Max(best)")
            }
            (ReduceOp::Min, Type::I64) => {
                ("i64", "i64::MAX", String::from("best = best.min(value)"), "Share::Min(best)")
            }
            (ReduceOp::Max, Type::U64) => {
                ("u64", "0", String::from("best = best.max(value)"), "Share::Max((best ^ (1 << 63)) as i64)")
            }
            (ReduceOp::Min, Type::U64) => (
                "u64",
                "u64::MAX",
                String::from("best = best.min(value)"),
                "Share::Min((best ^ (1 << 63)) as i64)",
            ),
            (ReduceOp::Max, _) => (
                "i64",
                "i64::MIN",
                format!("best = best.max(max_key({}))", as_f64("value")),
                "Share::Max(best)",
            ),
            (ReduceOp::Min, _) => (
                "i64",
                "i64::MAX",
                format!("best = best.min(min_key({}))", as_f64("value")),
                "Share::Min(best)",
            ),
            (ReduceOp::Sum, Type::I64 | Type::U64) => {
                ("i64", "0", String::from("best = best.wrapping_add(value as i64)"), "Share::Wrapping(best)")
            }
            (ReduceOp::Sum, _) => (
                "ExactSum",
                "ExactSum::default()",
                format!("best.add({})", as_f64("value")),
                "Share::Sum(best)",
            ),
            (ReduceOp::Norm2, _) => (
                "ExactSum",
                "ExactSum::default()",
                format!("best.add({})", as_f64("(value * value)")),
                "Share::Sum(best)",
            ),
        };
        let name = format!("reduce_{index}");
        w.block(format_args!("fn {name}({}) -> Share", parameters.join(", ")), |w| {
            sweep.emit_head(w);
            w.line(format_args!("let mut best: {share} = {start};"));
            w.block(format_args!("for {} in at.rows()", sweep.row_pattern(over)), |w| {
                sweep.emit_row_constants(w);
                let mut arguments = vec![String::from("n"), String::from("best")];
                arguments.extend(sweep.row_arguments(self));
                w.line(format_args!("best = {name}_row({});", arguments.join(", ")));
            });
            w.line(result);
        });
        w.line("");
        w.line("#[inline(always)]");
        let mut parameters = vec![String::from("n: usize"), format!("mut best: {share}")];
        parameters.extend(sweep.row_parameters());
        w.block(format_args!("fn {name}_row({}) -> {share}", parameters.join(", ")), |w| {
            sweep.emit_cuts(w);
            w.block("for q in 0..n", |w| {
                if sweep.uses_last_index {
                    w.line(format_args!("let i{} = first + q as i64;", over.n_axes - 1));
                }
                let mut printer = sweep.point_printer(self);
                let (lines, texts) = printer.expressions(&[reduction.value]);
                lines.iter().for_each(|line| w.line(line));
                w.line(format_args!("let value: {} = {};", type_name(ty), texts[0]));
                w.line(format_args!("{add};"));
            });
            w.line("best");
        });
        w.line("");
    }

    /// Functions that set a field's fixed points and the points outside the grid.
    fn emit_boundary(&self, w: &mut Writer, id: FieldId) {
        let field = &self.program.fields[id.index()];
        let code = &self.fields[id.index()];
        if field.fixed_sides().next().is_some() {
            w.line(format_args!("/// Points of `{}` that a boundary fixes, at the time of `s`.", field.name));
            w.block(
                format_args!(
                    "fn fix_{}(level: &mut Level<{}>, placed: &Placed, s: &Scalars) -> bool",
                    code.name, code.ty
                ),
                |w| {
                    w.line("let mut is_bad = false;");
                    for (side, value) in field.fixed_sides() {
                        let end = if side.end == End::Low { "low" } else { "high" };
                        w.line(format_args!("// {}", side.name()));
                        w.block(
                            format_args!("for point in placed.{end}({}).points()", code.slot(side.axis)),
                            |w| {
                                w.line(format_args!("let {} = point;", code.pattern()));
                                w.line(format_args!("let value: {} = {};", code.ty, self.block_text(value)));
                                w.line("is_bad |= !value.is_finite_value();");
                                w.line("level.set(point, value);");
                            },
                        );
                    }
                    w.line("is_bad");
                },
            );
            w.line("");
        }
        if !self.has_outside(id) {
            return;
        }
        w.line(format_args!("/// Points of `{}` outside the grid, at the time of `s`.", field.name));
        w.block(
            format_args!(
                "fn outside_{}(level: &mut Level<{}>, placed: &Placed, s: &Scalars)",
                code.name, code.ty
            ),
            |w| {
                // A corner is found axis by axis, first axis first, so the first axis is filled last.
                for axis in (0..code.n_axes).rev() {
                    for end in [End::Low, End::High] {
                        let side = Side { axis, end };
                        if self.is_filled(id, side) {
                            self.emit_outside(w, field, code, side);
                        }
                    }
                }
            },
        );
        w.line("");
    }

    fn emit_outside(&self, w: &mut Writer, field: &crate::ir::Field, code: &FieldCode, side: Side) {
        let slot = code.slot(side.axis);
        let (outside, mirror, last) = match side.end {
            End::Low => {
                (format!("outside_below({slot})"), format!("mirror_below({slot})"), String::from("0"))
            }
            End::High => {
                let points = format!("placed.shape.points[{slot}]");
                (
                    format!("outside_above({slot}, {points})"),
                    format!("mirror_above({slot}, {points})"),
                    format!("{points} - 1"),
                )
            }
        };
        // Beyond a periodic axis that comes first, the point is the one it wraps to.
        let wraps = |w: &mut Writer| {
            for earlier in (0..side.axis).filter(|axis| field.is_periodic(*axis)) {
                let points = format!("placed.shape.points[{}]", code.slot(earlier));
                w.line(format_args!("let i{earlier} = i{earlier}.rem_euclid({points});"));
            }
        };
        w.line(format_args!("// {}", side.name()));
        match field.rule(side) {
            SideRule::Fixed(value) => w.block(format_args!("for point in level.{outside}.points()"), |w| {
                w.line(format_args!("let {} = point;", code.pattern()));
                wraps(w);
                w.line(format_args!("level.set(point, {});", self.block_text(*value)));
            }),
            SideRule::Mirror => w.line(format_args!("level.{mirror};")),
            SideRule::Neumann { spacing, slope } => {
                w.block(format_args!("for point in level.{outside}.points()"), |w| {
                    w.line(format_args!("let {} = point;", code.pattern()));
                    wraps(w);
                    w.line(format_args!("let last = {last};"));
                    let distance = match side.end {
                        End::Low => format!("-i{}", side.axis),
                        End::High => format!("i{} - last", side.axis),
                    };
                    w.line(format_args!("let distance = ({distance}) as {};", code.ty));
                    w.line(format_args!("let i{} = last;", side.axis));
                    w.line("let mut edge = point;");
                    w.line(format_args!("edge[{slot}] = last;"));
                    let ty = code.ty;
                    w.line(format_args!(
                        "let spacing = {} as {ty};",
                        parenthesised(&self.block_text(*spacing))
                    ));
                    w.line(format_args!("let slope = {} as {ty};", parenthesised(&self.block_text(*slope))));
                    w.line("level.set(point, level.get(edge) + (distance * spacing) * slope);");
                });
            }
            SideRule::None | SideRule::Periodic | SideRule::Sponge { .. } => {}
        }
    }

    fn emit_solve(&self, w: &mut Writer) {
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

    fn emit_initial(&self, w: &mut Writer) {
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
    fn reduction_call(&self, index: usize, next: Option<Level>) -> String {
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

    fn emit_take(&self, w: &mut Writer, index: usize, total: &str) {
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
    fn emit_exchange(&self, w: &mut Writer, copies: &[(FieldId, Level)], shift: i64) {
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

    fn emit_step(&self, w: &mut Writer) {
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
    fn needs_copy(&self, id: FieldId) -> bool {
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

    fn emit_statement(&self, w: &mut Writer, number: usize, statement: &Statement) {
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

    fn emit_sources(&self, w: &mut Writer) {
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
    fn emit_nearest(&self, w: &mut Writer, field: FieldId, position: &[ExprId]) {
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

    fn emit_sponges(&self, w: &mut Writer) {
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

    fn emit_after_step(&self, w: &mut Writer) {
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

    fn emit_due_reductions(&self, w: &mut Writer) {
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

    fn uses_reduction(&self, id: ExprId) -> bool {
        let mut uses = false;
        self.program.exprs.visit(id, |_, expr| {
            uses |= matches!(expr.kind, ExprKind::Reduction(_) | ExprKind::Known(_));
        });
        uses
    }
}

/// By how many points a field that is read ends before the field for whose points it is read.
fn shortfall(program: &Program, home: FieldId, read: FieldId, axis: usize) -> u32 {
    let is_shorter = |field: FieldId| {
        let field = &program.fields[field.index()];
        field.places[axis] == Place::Half && !field.is_periodic(axis)
    };
    u32::from(is_shorter(read) && !is_shorter(home))
}

/// Every access by the field at whose points it is made, and whether these are all points, fixed ones included.
fn all_accesses(program: &Program) -> Vec<(FieldId, Vec<Access>, bool)> {
    let mut all = Vec::new();
    for statement in &program.statements {
        for update in statement.updates() {
            all.push((update.field, accesses(program, update), false));
        }
    }
    for reduction in &program.reductions {
        all.push((reduction.over, program.exprs.accesses(reduction.value), true));
    }
    for source in &program.sources {
        all.push((source.field, program.exprs.accesses(source.value), true));
    }
    all
}

fn accesses(program: &Program, update: &Update) -> Vec<Access> {
    let mut all = program.exprs.accesses(update.value);
    if let Some(condition) = update.condition {
        all.extend(program.exprs.accesses(condition));
    }
    all
}

/// Notes that a level's halo is needed, if an access made at the points of `home` can leave what a rank owns.
fn add_copy(
    program: &Program,
    copies: &mut Vec<(FieldId, Level)>,
    home: FieldId,
    access: &Access,
    level: Level,
) {
    let n_axes = program.fields[access.field.index()].places.len();
    let leaves =
        (0..n_axes).any(|axis| access.offset[axis] != 0 || shortfall(program, home, access.field, axis) != 0);
    if leaves && !copies.contains(&(access.field, level)) {
        copies.push((access.field, level));
    }
}

fn has_sponge(field: &crate::ir::Field) -> bool {
    field.sides.iter().any(|rule| matches!(rule, SideRule::Sponge { .. }))
}

fn kept(levels: u32) -> &'static [Level] {
    match levels {
        1 => &[Level::Now],
        2 => &[Level::Now, Level::Next],
        _ => &[Level::Now, Level::Next, Level::Prev],
    }
}

fn update_name(number: usize, part: usize) -> String {
    match part {
        0 => format!("update_{number}"),
        _ => format!("update_{number}_{part}"),
    }
}

fn parenthesised(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if is_plain { text.to_string() } else { format!("({text})") }
}

/// A prelude file as it goes into programs: without its tests.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]").map_or(text, |(before, _)| before)
}
