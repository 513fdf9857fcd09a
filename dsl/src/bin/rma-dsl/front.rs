//! Reading a program, showing what was found, and describing it. Never builds or runs anything.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

use rma_dsl::back::rust;
use rma_dsl::ir::{CompareOp, Decompose, Epoch, Exchange, ExprId, ExprKind, Program, Scalars, Type, Value};
use rma_dsl::{Settings, compile_front};
use rma_source::{Diagnostic, SourceMap, render};

use crate::Stop;

/// A program that may run.
pub(crate) struct Loaded {
    /// The program.
    pub(crate) program: Program,
    /// What the user wrote.
    pub(crate) text: String,
    /// Its scalars under the settings.
    pub(crate) scalars: Scalars,
    /// Where messages find its lines.
    map: SourceMap,
}

impl Loaded {
    /// Refuses what the Rust back end cannot do yet.
    pub(crate) fn supported(&self) -> Result<(), Stop> {
        match rust::missing(&self.program).as_slice() {
            [] => Ok(()),
            missing => Err(self.refused(missing)),
        }
    }

    /// Shows what is wrong on standard error.
    pub(crate) fn refused(&self, diagnostics: &[Diagnostic]) -> Stop {
        show(&self.map, diagnostics);
        Stop::Reported
    }
}

/// Reads and checks a program; warnings and errors go to standard error.
pub(crate) fn load(file: &Path, settings: &Settings) -> Result<Loaded, Stop> {
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let map = SourceMap::single(file.display().to_string(), text.clone());
    match compile_front(&text, settings) {
        Ok(compiled) => {
            show(&map, &compiled.warnings);
            Ok(Loaded { program: compiled.program, text, scalars: compiled.scalars, map })
        }
        Err(diagnostics) => {
            show(&map, &diagnostics);
            Err(Stop::Reported)
        }
    }
}

fn show(map: &SourceMap, diagnostics: &[Diagnostic]) {
    if !diagnostics.is_empty() {
        let colour =
            if std::io::stderr().is_terminal() { render::Colour::Ansi } else { render::Colour::Never };
        eprintln!("{}", render::all(map, diagnostics, colour).trim_end());
    }
}

/// A table of the program's parameters.
pub(crate) fn parameters(program: &Program) -> String {
    if program.params.is_empty() {
        return format!("program {} has no parameters\n", program.name);
    }
    let defaults = Scalars::evaluate(program, &[]).ok();
    let shown = |id: ExprId| {
        let value = defaults.as_ref().and_then(|scalars| scalars.scalar(program, id).ok());
        value.map_or(String::from("?"), |value| value.to_string())
    };
    let rows: Vec<[String; 5]> = program
        .params
        .iter()
        .map(|param| {
            let range = match (param.min, param.max) {
                (None, None) => String::new(),
                (min, max) => {
                    format!("{}..{}", min.map(shown).unwrap_or_default(), max.map(shown).unwrap_or_default())
                }
            };
            let ty = if param.ty == Type::I64 { "int" } else { "real" };
            [param.name.clone(), ty.to_string(), shown(param.default), range, param.doc.clone()]
        })
        .collect();
    let head = ["parameter", "type", "default", "range", "meaning"].map(String::from);
    let mut widths = [0; 5];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format!("Parameters of program {} (set with --set NAME=VALUE):\n\n", program.name);
    for row in [&head].into_iter().chain(&rows) {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end()); // A string takes all.
    }
    text
}

/// The typed representation as text.
pub(crate) fn ir_text(program: &Program) -> String {
    format!("{program:#?}\n")
}

/// What is done, what was asked for and why, and what travels when.
pub(crate) fn plan_text(program: &Program) -> String {
    let plan = &program.plan;
    let cut = match &plan.decompose.done {
        Decompose::Rows => String::from("rows"),
        Decompose::Blocks => String::from("blocks"),
        Decompose::Parts(parts) => parts.iter().map(u32::to_string).collect::<Vec<_>>().join("x"),
    };
    let overlap = match plan.overlap.asked {
        None => String::from("none (not asked for)"),
        Some(_) => {
            String::from("none (the core is not computed while halos travel yet; results are the same)")
        }
    };
    let mut lines = vec![
        format!("program {}", program.name),
        format!("decompose {cut} ({})", plan.decompose.why),
        format!("epoch {} ({})", plan.epoch.done.text(), plan.epoch.why),
        format!("overlap {overlap}"),
        format!("block time {} ({})", plan.block.done.0, plan.block.why),
        format!("once: {}", exchange_text(program, &plan.prologue)),
    ];
    for part in &plan.parts {
        lines.push(format!(
            "before statement {}: {}",
            part.statement + 1,
            exchange_text(program, &part.exchange)
        ));
    }
    for (reduction, exchange) in program.reductions.iter().zip(&plan.reductions) {
        lines.push(format!("before {}: {}", reduction.name, exchange_text(program, exchange)));
    }
    lines.join("\n") + "\n"
}

fn exchange_text(program: &Program, exchange: &Exchange) -> String {
    if exchange.copies.is_empty() {
        return String::from("nothing travels");
    }
    let copies: Vec<String> = exchange
        .copies
        .iter()
        .map(|copy| {
            let field = &program.fields[copy.field.index()];
            let axes = &program.grids[field.grid.index()].axes;
            let widths: Vec<String> = axes
                .iter()
                .zip(&copy.halo)
                .map(|(axis, extent)| format!("{} lo {} hi {}", axis.index, extent.lo, extent.hi))
                .collect();
            format!("{} {:?} ({}, {:?})", field.name, copy.level, widths.join(", "), copy.shape)
        })
        .collect();
    format!("halo of {} in one transfer per neighbour", copies.join("; "))
}

/// A sentence, if the schedule is one that the back end does not have.
pub(crate) fn missing_schedule(program: &Program) -> Option<String> {
    match program.plan.epoch.done {
        Epoch::Auto | Epoch::Fence => None,
        other => Some(format!(
            "epoch {} is legal here, but the Rust back end cannot do it yet; it has `fence`, which gives the same bits",
            other.text()
        )),
    }
}

/// The step at which the run ends at the latest, if `until` says so: `… or step >= N`.
pub(crate) fn steps_max(program: &Program, scalars: &Scalars) -> Option<u64> {
    limit(program, scalars, program.until)
}

fn limit(program: &Program, scalars: &Scalars, id: ExprId) -> Option<u64> {
    let exprs = &program.exprs;
    match exprs[id].kind {
        ExprKind::Or(a, b) => match (limit(program, scalars, a), limit(program, scalars, b)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        ExprKind::Compare(op, a, b) if matches!(exprs[a].kind, ExprKind::Step) => {
            let mut is_static = true;
            exprs.visit(b, |_, expr| match expr.kind {
                ExprKind::Step
                | ExprKind::Time
                | ExprKind::Index(_)
                | ExprKind::Access(_)
                | ExprKind::Reduction(_)
                | ExprKind::Known(_) => is_static = false,
                ExprKind::Let(named) => is_static &= scalars.lets[named.index()].is_some(),
                _ => {}
            });
            let bound = match is_static.then(|| scalars.scalar(program, b)) {
                Some(Ok(Value::I64(bound))) => u64::try_from(bound).ok()?,
                _ => return None,
            };
            match op {
                CompareOp::Ge | CompareOp::Eq => Some(bound),
                CompareOp::Gt => Some(bound + 1),
                _ => None,
            }
        }
        _ => None,
    }
}
