//! Footprints: which points each statement reads, how wide halos are, and that every side that an access crosses has a
//! rule.
//!
//! Post-condition: `reads` and `halo` are filled in, every access that leaves the grid has a rule, and no update in
//! place reads a neighbour that it writes. Never changes what is computed.

#[cfg(test)]
mod test;

use rma_source::{Applicability, Diagnostic, Span};

use crate::ir::{
    Access, Colour, End, ExprId, ExprKind, FieldId, FieldKind, Level, Place, Program, Side, SideRule, Stage,
    Statement, Update,
};
use crate::messages::Code;
use crate::types::Facts;

/// Fills in footprints and reports accesses that no rule covers.
pub fn shape(program: &mut Program, facts: &Facts) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    fill_reads(program);
    fill_halos(program);
    for statement in &program.statements {
        for update in statement.updates() {
            let fixed = |side| program.fields[update.field.index()].is_fixed(side);
            outside(program, facts, &update.reads, update.field, fixed, &mut diagnostics);
            if let Statement::Update(update) = statement {
                in_place(program, facts, update, &mut diagnostics);
            }
        }
    }
    for source in &program.sources {
        let reads = program.exprs.accesses(source.value);
        if let Some(access) = reads.iter().find(|access| access.offset.iter().any(|&offset| offset != 0)) {
            diagnostics.push(
                Code::Unsupported
                    .error("a source that reads a neighbour is not supported yet")
                    .label(access.span, "not the point itself")
                    .note("a source acts at one point, after all halos of the step have travelled")
                    .help("compute the value in a field of its own, and read that at the point"),
            );
        }
        outside(program, facts, &reads, source.field, |_| false, &mut diagnostics);
    }
    for reduction in &program.reductions {
        if reduction.over.index() < program.fields.len() {
            outside(program, facts, &reduction.reads, reduction.over, |_| false, &mut diagnostics);
        }
    }
    constant_boundaries(program, &mut diagnostics);
    program.stage = Stage::Shaped;
    diagnostics
}

fn fill_reads(program: &mut Program) {
    let exprs = &program.exprs;
    let reads = |value: ExprId, condition: Option<ExprId>| {
        let mut reads = exprs.accesses(value);
        for access in condition.iter().flat_map(|&condition| exprs.accesses(condition)) {
            if !reads.iter().any(|other| other.same_place(&access)) {
                reads.push(access);
            }
        }
        reads
    };
    for statement in &mut program.statements {
        let updates = match statement {
            Statement::Update(update) => std::slice::from_mut(update),
            Statement::Together(updates) => updates,
        };
        for update in updates {
            update.reads = reads(update.value, update.condition);
        }
    }
    for reduction in &mut program.reductions {
        reduction.reads = reads(reduction.value, None);
    }
}

fn fill_halos(program: &mut Program) {
    let mut all: Vec<Access> = Vec::new();
    all.extend(program.statements.iter().flat_map(Statement::updates).flat_map(|update| &update.reads));
    all.extend(program.reductions.iter().flat_map(|reduction| &reduction.reads));
    all.extend(program.sources.iter().flat_map(|source| program.exprs.accesses(source.value)));
    for access in all {
        let field = &mut program.fields[access.field.index()];
        for (axis, extent) in field.halo.iter_mut().enumerate() {
            *extent = extent.with(access.offset[axis]);
        }
    }
}

/// Number of points along an axis, less that of a whole axis.
fn shortage(program: &Program, field: FieldId, axis: usize) -> i32 {
    let field = &program.fields[field.index()];
    i32::from(field.places[axis] == Place::Half && !field.is_periodic(axis))
}

fn outside(
    program: &Program,
    facts: &Facts,
    reads: &[Access],
    over: FieldId,
    is_fixed: impl Fn(Side) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut reported: Vec<(FieldId, Side)> = Vec::new();
    for access in reads {
        let field = &program.fields[access.field.index()];
        for &side in Side::of(field.places.len()) {
            let offset = access.offset[side.axis];
            let fixed = i32::from(is_fixed(side));
            let beyond = match side.end {
                End::Low => -offset - fixed,
                // The last point computed may lie beyond the last point read even at offset 0.
                End::High => {
                    let longer =
                        shortage(program, access.field, side.axis) - shortage(program, over, side.axis);
                    offset + longer - fixed
                }
            };
            let has_rule = !matches!(field.rule(side), SideRule::None);
            if beyond <= 0 || has_rule || facts.doubtful.contains(&access.field) {
                continue;
            }
            if reported.contains(&(access.field, side)) {
                continue;
            }
            reported.push((access.field, side));
            let axis = &program.grids[field.grid.index()].axes[side.axis].index;
            let points = if beyond == 1 { "point" } else { "points" };
            let has_none = field.sides.iter().all(|rule| matches!(rule, SideRule::None));
            let (code, title) = match has_none {
                true => (
                    Code::BoundaryRules,
                    format!(
                        "`{}` has no boundary rules, and this reads beyond its {} side",
                        field.name,
                        side.name()
                    ),
                ),
                false => (
                    Code::OutsideGrid,
                    format!("this reads `{}` beyond its {} side, which has no rule", field.name, side.name()),
                ),
            };
            let found = code
                .error(title)
                .label(access.span, format!("`{}` is {beyond} {points} outside along `{axis}`", as_written(program, access)))
                .label(field.span, "declared here")
                .note("a value beyond the grid comes from a rule: a value, an expression, mirror, neumann, periodic or sponge")
                .help(format!("write for example `boundary {}: {} = 0`", field.name, side.name()));
            if !diagnostics.contains(&found) {
                diagnostics.push(found);
            }
        }
    }
}

/// An access with its offsets from the point, as `u.next[i-1,j]`; functions and halves are worked in.
fn as_written(program: &Program, access: &Access) -> String {
    let field = &program.fields[access.field.index()];
    let axes = &program.grids[field.grid.index()].axes;
    let indices: Vec<String> = (0..field.places.len())
        .map(|axis| {
            let half = match field.places[axis] {
                Place::Whole => "",
                Place::Half => "+1/2",
            };
            match access.offset[axis] {
                0 => format!("{}{half}", axes[axis].index),
                offset => format!("{}{offset:+}{half}", axes[axis].index),
            }
        })
        .collect();
    let level = match access.level {
        Level::Prev => ".prev",
        Level::Now => "",
        Level::Next => ".next",
    };
    format!("{}{level}[{}]", field.name, indices.join(","))
}

/// Updates in place that read what they write.
fn in_place(program: &Program, facts: &Facts, update: &Update, diagnostics: &mut Vec<Diagnostic>) {
    let field = &program.fields[update.field.index()];
    if field.levels != 1 {
        return;
    }
    for access in &update.reads {
        let is_away = access.offset.iter().any(|&offset| offset != 0);
        if access.field != update.field || !is_away {
            continue;
        }
        let is_own_colour = access.offset.iter().sum::<i32>() % 2 == 0;
        match update.colour {
            None => {
                let (place, levels) = match facts.levels.get(&update.field) {
                    Some(&count) => (count, "2"),
                    None => (Span::at(field.span.end as usize), " levels 2"),
                };
                diagnostics.push(
                    Code::ReadWriteConflict
                        .error(format!("this update of `{}` reads a neighbour that it also writes", field.name))
                        .label(access.span, format!("reads `{}`", as_written(program, access)))
                        .label(update.target, format!("writes `{}` at every point", field.name))
                        .note("with one level the result would depend on the order in which points are computed")
                        .suggest(
                            "keep the old values: declare two levels",
                            place,
                            levels,
                            Applicability::Unsafe,
                        )
                        .help(format!(
                            "or write `together {{ update {} = … }}`, or one `update red` and one `update black`",
                            field.name
                        )),
                );
                return;
            }
            Some(colour) if is_own_colour => {
                let word = match colour {
                    Colour::Red => "red",
                    Colour::Black => "black",
                };
                diagnostics.push(
                    Code::OwnColour
                        .error(format!("this {word} update of `{}` reads a {word} neighbour", field.name))
                        .label(access.span, format!("`{}` is {word} too", as_written(program, access)))
                        .label(update.target, format!("writes all {word} points"))
                        .note("points of one colour are computed in any order, so they may read the other colour only")
                        .help("read neighbours at an odd distance, or declare two levels"),
                );
                return;
            }
            Some(_) => {}
        }
    }
}

/// Halos of constant fields travel once, so their rules must not change.
fn constant_boundaries(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    for field in &program.fields {
        if field.kind != FieldKind::Constant {
            continue;
        }
        for rule in &field.sides {
            let (SideRule::Fixed(value) | SideRule::Neumann { slope: value, .. }) = rule else { continue };
            let mut moving = None;
            program.exprs.visit(*value, |_, expr| {
                if let ExprKind::Time | ExprKind::Step | ExprKind::Reduction(_) = expr.kind {
                    moving = Some(expr.span);
                }
            });
            if let Some(span) = moving {
                diagnostics.push(
                    Code::Unsupported
                        .error("a boundary of a constant field that changes in time is not supported yet")
                        .label(span, "changes from step to step")
                        .label(field.span, format!("`{}` is constant", field.name))
                        .note("values of constant fields are exchanged once")
                        .help(format!("write an update, such as `update {0} = {0}`", field.name)),
                );
            }
        }
    }
}
