//! A whole program as Rust text: scalars, layout, sweeps, boundaries, reductions and the loop over steps.
//!
//! Fields lie in plain private memory, so that sweeps vectorise; what travels is packed into a window
//! (`prelude/exchange.rs`). Parameters are read at start, so one text serves all sizes and numbers of ranks.
//! Never decides anything that changes a result: the order of all work is that of the IR's documentation.

mod layout;
mod loops;
mod output;
mod steps;
mod sweep;

use std::collections::HashMap;

use rma_source::Diagnostic;

use super::expression::{Naming, Printer, type_name};
use super::names::Names;
use super::prelude;
use super::prelude::space::{Cut, Demand};
use super::writer::Writer;
use crate::ir::{
    AXES_MAX, Access, Decompose, End, ExprId, ExprKind, FieldId, Format, LetId, LetKind, Level, ParamId,
    Place, Program, ReductionId, Scalars, Side, SideRule, Statement, Update,
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
