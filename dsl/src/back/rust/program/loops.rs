//! The loops over points: updates, reductions, boundaries. Never decides when one runs.

use super::sweep::Sweep;
use super::{Emitter, FieldCode, parenthesised};
use crate::back::rust::expression::type_name;
use crate::back::rust::writer::Writer;
use crate::ir::{AXES_MAX, Colour, End, FieldId, Level, ReduceOp, Reduction, Side, SideRule, Type, Update};

impl<'a> Emitter<'a> {
    /// The sweep of one update. Returns marks (see `numbers::mark`) of the values it produced.
    pub(super) fn emit_update(
        &self,
        w: &mut Writer,
        name: &str,
        update: &Update,
        snapshots: &[(FieldId, Level)],
    ) {
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

    pub(super) fn emit_reduction(&self, w: &mut Writer, index: usize, reduction: &Reduction) {
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
    pub(super) fn emit_boundary(&self, w: &mut Writer, id: FieldId) {
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

    pub(super) fn emit_outside(
        &self,
        w: &mut Writer,
        field: &crate::ir::Field,
        code: &FieldCode,
        side: Side,
    ) {
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
}
