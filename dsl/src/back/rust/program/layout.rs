//! Scalars, grids and fields: what is read or computed once at start. Never writes a loop over points.

use super::{Emitter, kept, parenthesised, written_cut};
use crate::back::rust::expression::type_name;
use crate::back::rust::writer::Writer;
use crate::ir::{AXES_MAX, End, ExprId, ExprKind, FieldId, LetKind, Place, Side, SideRule, TimeRule, Type};

impl<'a> Emitter<'a> {
    pub(super) fn emit_scalars(&self, w: &mut Writer) {
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

    pub(super) fn emit_static_lets(&self, w: &mut Writer, n_params: usize, is_written: &mut [bool]) {
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

    pub(super) fn emit_fields(&self, w: &mut Writer) {
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

    pub(super) fn emit_grid(&self, w: &mut Writer, index: usize, grid: &crate::ir::Grid) {
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
    pub(super) fn least(&self, grid: usize, n_axes: usize) -> ([u32; AXES_MAX], [u32; AXES_MAX]) {
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

    pub(super) fn emit_placed(&self, w: &mut Writer, id: FieldId, field: &crate::ir::Field) {
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
}
