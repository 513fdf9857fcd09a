//! What a program shows: printed lines, probes, files, and the end. Never changes a field.

use super::{Emitter, parenthesised};
use crate::back::rust::writer::Writer;
use crate::ir::{Format, When};

impl Emitter<'_> {
    pub(super) fn emit_print(&self, w: &mut Writer, print: &crate::ir::Print) {
        let items: Vec<String> = print
            .items
            .iter()
            .map(|item| {
                let value = self.block_text(item.value);
                let known: Vec<String> = item
                    .needs
                    .iter()
                    .map(|id| format!("s.{}_known", self.scalars.reductions[id.index()]))
                    .collect();
                let text = match known.is_empty() {
                    true => format!("show({value})"),
                    false => format!(
                        "if {} {{ show({value}) }} else {{ String::from(\"-\") }}",
                        known.join(" && ")
                    ),
                };
                format!("({:?}, {text})", item.label)
            })
            .collect();
        w.block("if rank == 0", |w| w.line(format_args!("events.print(&[{}])?;", items.join(", "))));
    }

    pub(super) fn emit_probe(&self, w: &mut Writer, probe: &crate::ir::Probe) {
        let code = &self.fields[probe.field.index()];
        self.emit_nearest(w, probe.field, &probe.position);
        w.block(format_args!("if f.{}.own.contains(point)", code.name), |w| {
            w.line(format_args!(
                "probe(\"{}.csv\", {:?}, s.step, s.t, f.{}.get(point))?;",
                probe.name.escape_default(),
                self.program.fields[probe.field.index()].name,
                code.name
            ));
        });
    }

    pub(super) fn emit_output(&self, w: &mut Writer, output: &crate::ir::Output) {
        for id in &output.fields {
            let field = &self.program.fields[id.index()];
            let code = &self.fields[id.index()];
            w.block(
                format_args!("if let Some(values) = gather(team, &layout.{0}, &f.{0})?", code.name),
                |w| {
                    for format in &output.formats {
                        let step = match output.when {
                            When::Every(_) => "Some(s.step)",
                            When::AtEnd => "None",
                        };
                        let path = |extension: &str| {
                            format!("file_name(PROGRAM, {:?}, {step}, {extension:?})", field.name)
                        };
                        match format {
                            Format::Npy => w.line(format_args!(
                                "events.npy(&{}, layout.{}.points(), &values)?;",
                                path("npy"),
                                code.name
                            )),
                            Format::Png { colormap } => {
                                let grid = &self.program.grids[field.grid.index()];
                                let axes: Vec<String> = (0..code.n_axes)
                                    .map(|axis| {
                                        let declared = &grid.axes[axis];
                                        let name = declared.coordinate.as_ref().unwrap_or(&declared.index);
                                        let coordinate = self.block_text(field.positions[axis]);
                                        let at = |point: &str| {
                                            format!("{{ let i{axis}: i64 = {point}; {coordinate} }}")
                                        };
                                        let last = format!(
                                            "layout.{}.shape.points[{}] - 1",
                                            code.name,
                                            code.slot(axis)
                                        );
                                        format!("({name:?}, {}, {})", at("0"), at(&last))
                                    })
                                    .collect();
                                w.block_then("events.picture(&Frame", ", &values)?;", |w| {
                                    w.line(format_args!("path: &{},", path("png")));
                                    let title = format!("{}  {}  step ", self.program.name, field.name);
                                    w.line(format_args!("title: &format!(\"{{}}{{}}\", {title:?}, s.step),"));
                                    w.line(format_args!("colormap: {colormap:?},"));
                                    w.line(format_args!("points: layout.{}.points(),", code.name));
                                    w.line(format_args!("axes: &[{}],", axes.join(", ")));
                                });
                            }
                            Format::Gif { .. } | Format::Vtk | Format::Csv => {}
                        }
                    }
                },
            );
        }
    }

    pub(super) fn emit_end(&self, w: &mut Writer) {
        w.line("// A rank that failed in its last step is noticed before anything is said to be finished.");
        w.line("team.barrier()?;");
        for print in self.program.prints.iter().filter(|print| print.when == When::AtEnd) {
            self.emit_print(w, print);
        }
        for probe in self.program.probes.iter().filter(|probe| probe.when == When::AtEnd) {
            self.emit_probe(w, probe);
        }
        for output in &self.program.outputs {
            match output.when {
                When::AtEnd => self.emit_output(w, output),
                When::Every(every) => {
                    w.block(format_args!("if s.step % {} != 0", parenthesised(&self.scalar(every))), |w| {
                        self.emit_output(w, output);
                    });
                }
            }
        }
        w.block("if rank == 0", |w| w.line("events.say(&format!(\"steps {}\", s.step))?;"));
        for (field, code) in self.program.fields.iter().zip(&self.fields) {
            w.block(
                format_args!("if let Some(values) = gather(team, &layout.{0}, &f.{0})?", code.name),
                |w| {
                    w.line(format_args!(
                        "events.digest({:?}, digest(&layout.{1}.shape, &values, layout.{1}.free))?;",
                        field.name, code.name
                    ));
                    w.line(format_args!(
                        "events.dump({:?}, layout.{}.points(), &values)?;",
                        field.name, code.name
                    ));
                },
            );
        }
        w.line("Ok(())");
    }
}
