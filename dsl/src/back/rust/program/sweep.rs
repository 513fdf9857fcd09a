//! One loop over points: which rows it reads, and what is computed once per sweep or per row. Never knows which statement
//! the loop is for.

use std::collections::{BTreeMap, HashMap};

use super::{Emitter, FieldCode, Members, RESERVED};
use crate::back::rust::expression::{Printer, Varies, type_name};
use crate::back::rust::names::Names;
use crate::back::rust::writer::Writer;
use crate::ir::{AXES_MAX, Access, ExprId, ExprKind, FieldId, Level};

/// What a loop over points reads: rows of levels, and values that are constant in the sweep or the row.
pub(super) struct Sweep {
    n_axes: usize,
    /// Argument, place and element type of each level that is read, except the target's own point.
    pub(super) levels: Vec<(String, (FieldId, Level), &'static str)>,
    /// Row argument, level argument, offset, element type.
    rows: Vec<(String, String, FieldId, [i32; AXES_MAX], &'static str)>,
    /// How each access is written in the row function.
    texts: HashMap<(FieldId, Level, [i32; AXES_MAX]), String>,
    /// Name, definition and type of what the sweep computes once.
    sweep_constants: Vec<(ExprId, String, Vec<String>, String, &'static str)>,
    /// The same for each row.
    row_constants: Vec<(ExprId, String, Vec<String>, String, &'static str)>,
    pub(super) uses_last_index: bool,
}

impl Sweep {
    pub(super) fn new(
        emitter: &Emitter<'_>,
        roots: &[ExprId],
        home: &FieldCode,
        target: Option<(FieldId, Level)>,
        snapshots: &[(FieldId, Level)],
    ) -> Sweep {
        let program = emitter.program;
        let mut accessed: Vec<Access> = Vec::new();
        let mut uses_last_index = false;
        for root in roots {
            for access in program.exprs.accesses(*root) {
                if !accessed.iter().any(|other| other.same_place(&access)) {
                    accessed.push(access);
                }
            }
            program.exprs.visit(*root, |_, expr| {
                uses_last_index |= matches!(expr.kind, ExprKind::Index(axis) if axis + 1 == home.n_axes);
            });
        }
        let mut names = Names::with(&RESERVED);
        let mut levels: BTreeMap<(FieldId, Level), String> = BTreeMap::new();
        let mut ordered = Vec::new();
        let mut rows = Vec::new();
        let mut texts = HashMap::new();
        for access in &accessed {
            let place = (access.field, access.level);
            let key = (access.field, access.level, access.offset);
            if Some(place) == target && !snapshots.contains(&place) {
                texts.insert(key, String::from("to[q]"));
                continue;
            }
            let code = &emitter.fields[access.field.index()];
            let argument = levels.entry(place).or_insert_with(|| {
                let argument = names.give(&code.level(access.level));
                ordered.push((argument.clone(), place, code.ty));
                argument
            });
            let offset: String = (0..code.n_axes)
                .map(|axis| match access.offset[axis] {
                    0 => String::from("_0"),
                    by if by < 0 => format!("_m{}", by.unsigned_abs()),
                    by => format!("_p{by}"),
                })
                .collect();
            let row = names.give(&format!("{argument}{offset}"));
            texts.insert(key, format!("{row}[q]"));
            rows.push((row, argument.clone(), access.field, access.offset, code.ty));
        }
        let mut sweep = Sweep {
            n_axes: home.n_axes,
            levels: ordered,
            rows,
            texts,
            sweep_constants: Vec::new(),
            row_constants: Vec::new(),
            uses_last_index,
        };
        let mut printer = sweep.point_printer(emitter);
        let define = |printer: &mut Printer<'_, Members<'_>>, id: ExprId, wish: &str, names: &mut Names| {
            let (lines, texts) = printer.expressions(&[id]);
            let name = names.give(wish);
            printer.bind(id, name.clone());
            (id, name, lines, texts[0].clone(), type_name(program.exprs[id].ty))
        };
        let wish = |id: ExprId, emitter: &Emitter<'_>, other: &str| match program.exprs[id].kind {
            ExprKind::Param(param) => emitter.scalars.params[param.index()].clone(),
            ExprKind::Let(named) => emitter.scalars.lets[named.index()].clone(),
            _ => other.to_string(),
        };
        let constants = printer.invariants(roots, Varies::Row);
        sweep.sweep_constants = constants
            .into_iter()
            .map(|id| define(&mut printer, id, &wish(id, emitter, "c"), &mut names))
            .collect();
        let constants = printer.invariants(roots, Varies::Point);
        sweep.row_constants = constants
            .into_iter()
            .map(|id| define(&mut printer, id, &wish(id, emitter, "r"), &mut names))
            .collect();
        sweep
    }

    /// Prints expressions inside the loop over a row.
    pub(super) fn point_printer<'b>(&self, emitter: &'b Emitter<'_>) -> Printer<'b, Members<'b>> {
        let mut members = emitter.members(self.n_axes);
        members.accesses.clone_from(&self.texts);
        let mut printer = Printer::new(emitter.program, members);
        for (id, name, ..) in self.sweep_constants.iter().chain(&self.row_constants) {
            printer.bind(*id, name.clone());
        }
        printer
    }

    pub(super) fn emit_head(&self, w: &mut Writer) {
        for (_, name, lines, text, ty) in &self.sweep_constants {
            emit_definition(w, name, lines, text, ty);
        }
        w.line("let n = at.row_len();");
    }

    pub(super) fn emit_row_constants(&self, w: &mut Writer) {
        for (_, name, lines, text, ty) in &self.row_constants {
            emit_definition(w, name, lines, text, ty);
        }
    }

    /// `[_, i0, first]`
    pub(super) fn row_pattern(&self, home: &FieldCode) -> String {
        let names: Vec<String> = (0..AXES_MAX)
            .map(|slot| match slot.checked_sub(AXES_MAX - home.n_axes) {
                Some(axis) if axis + 1 == home.n_axes => String::from("first"),
                Some(axis) => format!("i{axis}"),
                None => String::from("_"),
            })
            .collect();
        format!("[{}]", names.join(", "))
    }

    pub(super) fn row_arguments(&self, emitter: &Emitter<'_>) -> Vec<String> {
        let mut arguments: Vec<String> = self
            .rows
            .iter()
            .map(|(_, level, field, offset, _)| {
                let code = &emitter.fields[field.index()];
                format!("{level}.row({}, n)", code.point(offset, "first"))
            })
            .collect();
        arguments
            .extend(self.sweep_constants.iter().chain(&self.row_constants).map(|(_, name, ..)| name.clone()));
        if self.uses_last_index {
            arguments.push(String::from("first"));
        }
        arguments
    }

    pub(super) fn row_parameters(&self) -> Vec<String> {
        let mut parameters: Vec<String> =
            self.rows.iter().map(|(row, _, _, _, ty)| format!("{row}: &[{ty}]")).collect();
        let constants = self.sweep_constants.iter().chain(&self.row_constants);
        parameters.extend(constants.map(|(_, name, _, _, ty)| format!("{name}: {ty}")));
        if self.uses_last_index {
            parameters.push(String::from("first: i64"));
        }
        parameters
    }

    /// Gives all rows one length, so that the loop checks none.
    pub(super) fn emit_cuts(&self, w: &mut Writer) {
        for (row, ..) in &self.rows {
            w.line(format_args!("let {row} = &{row}[..n];"));
        }
    }
}

fn emit_definition(w: &mut Writer, name: &str, lines: &[String], text: &str, ty: &str) {
    match lines.is_empty() {
        true => w.line(format_args!("let {name}: {ty} = {text};")),
        false => w.line(format_args!("let {name}: {ty} = {{ {} {text} }};", lines.join(" "))),
    }
}
