//! The plan: when halos travel, and what was asked for against what is done.
//!
//! Post-condition: before each statement and reduction every halo that it reads is filled and not written since. Never
//! changes what is computed: a schedule that is not legal is an error, not a substitute.

#[cfg(test)]
mod test;

use rma_source::{Applicability, Diagnostic, Span};

use crate::Settings;
use crate::ir::{
    Access, Decompose, Epoch, Exchange, Extent, FieldId, FieldKind, HaloCopy, Level, LockMode, Overlap, Plan,
    Planned, Program, PscwMode, Shape, Stage, Statement, StepPart, TimeBlock,
};
use crate::messages::{Code, did_you_mean};
use crate::syntax::ast::{self, ExprKind, StatementKind};

/// Fills in the plan from the file's statements and the flags, which win.
pub fn schedule(
    program: &mut Program,
    statements: &[&ast::Statement],
    settings: &Settings,
) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let asked = Asked::read(program, statements, &mut diagnostics);
    let (prologue, parts, reductions) = exchanges(program);
    let plan = Plan {
        decompose: decompose(asked.decompose, settings.decompose.clone()),
        epoch: epoch(program, asked.epoch, settings.epoch, &parts, &reductions, &mut diagnostics),
        overlap: overlap(asked.overlap, settings.overlap),
        block: block(asked.block, settings.block),
        prologue,
        parts,
        reductions,
    };
    program.plan = plan;
    program.stage = Stage::Planned;
    diagnostics
}

/// What the file asks for.
#[derive(Default)]
struct Asked {
    decompose: Option<(Decompose, Span)>,
    epoch: Option<(Epoch, Span)>,
    overlap: Option<(Overlap, Span)>,
    block: Option<(TimeBlock, Span)>,
}

impl Asked {
    fn read(program: &Program, statements: &[&ast::Statement], diagnostics: &mut Vec<Diagnostic>) -> Asked {
        let mut asked = Asked::default();
        for statement in statements {
            let span = statement.span;
            let first = match &statement.kind {
                StatementKind::Decompose(written) => {
                    let first = asked.decompose.as_ref().map(|(_, span)| *span);
                    if let Some(value) = read_decompose(program, written, span, diagnostics) {
                        asked.decompose = Some((value, span));
                    }
                    first
                }
                StatementKind::Epoch { style, mode } => {
                    let first = asked.epoch.map(|(_, span)| span);
                    let text = match mode {
                        Some(mode) => format!("{}({})", style.text, mode.text),
                        None => style.text.clone(),
                    };
                    match Epoch::parse(&text) {
                        Some(value) => asked.epoch = Some((value, span)),
                        None => {
                            let guess = did_you_mean(&text, EPOCHS.into_iter());
                            diagnostics.push(word(&text, "an epoch style", &EPOCHS, style.span, guess));
                        }
                    }
                    first
                }
                StatementKind::Overlap(name) => {
                    let first = asked.overlap.map(|(_, span)| span);
                    match Overlap::parse(&name.text) {
                        Some(value) => asked.overlap = Some((value, span)),
                        None => {
                            let guess = did_you_mean(&name.text, ["core", "none"].into_iter());
                            diagnostics.push(word(
                                &name.text,
                                "an overlap",
                                &["core", "none"],
                                name.span,
                                guess,
                            ));
                        }
                    }
                    first
                }
                StatementKind::Block { what, depth } => {
                    let first = asked.block.map(|(_, span)| span);
                    match (&*depth.bare().kind, what.text.as_str()) {
                        (ExprKind::Int(n @ 1..=BLOCK_MAX), "time") => {
                            asked.block = Some((TimeBlock(*n as u32), span));
                        }
                        (_, "time") => diagnostics.push(
                            Code::BadOption
                                .error(format!("a time block is a written number from 1 to {BLOCK_MAX}"))
                                .label(depth.span, "not such a number")
                                .note("it is the number of steps between two exchanges")
                                .suggest("for example", depth.span, "8", Applicability::Unsafe),
                        ),
                        _ => {
                            diagnostics.push(word(&what.text, "a block", &["time"], what.span, Some("time")))
                        }
                    }
                    first
                }
                _ => None,
            };
            if let Some(first) = first {
                diagnostics.push(
                    Code::DeclaredTwice
                        .error("this part of the schedule is written twice")
                        .label(span, "written again here")
                        .label(first, "first written here")
                        .note("a program has one schedule")
                        .help("remove one of them"),
                );
            }
        }
        asked
    }
}

/// Deepest time block.
pub const BLOCK_MAX: u64 = 1024;

/// All epoch styles as written.
pub const EPOCHS: [&str; 10] = [
    "auto",
    "fence",
    "pscw(strong)",
    "pscw(weak)",
    "pscw(nocheck)",
    "checkerboard",
    "lock(shared)",
    "lock(exclusive)",
    "offer",
    "offer(collective)",
];

impl Epoch {
    /// From the language's words; also for `--epoch`.
    pub fn parse(text: &str) -> Option<Epoch> {
        Some(match text {
            "auto" => Epoch::Auto,
            "fence" => Epoch::Fence,
            "pscw(strong)" => Epoch::Pscw(PscwMode::Strong),
            "pscw(weak)" => Epoch::Pscw(PscwMode::Weak),
            "pscw(nocheck)" => Epoch::Pscw(PscwMode::Nocheck),
            "checkerboard" => Epoch::Checkerboard,
            "lock(shared)" => Epoch::Lock(LockMode::Shared),
            "lock(exclusive)" => Epoch::Lock(LockMode::Exclusive),
            "offer" => Epoch::Offer,
            "offer(collective)" => Epoch::OfferCollective,
            _ => return None,
        })
    }

    /// As written.
    pub fn text(self) -> &'static str {
        match self {
            Epoch::Auto => "auto",
            Epoch::Fence => "fence",
            Epoch::Pscw(PscwMode::Strong) => "pscw(strong)",
            Epoch::Pscw(PscwMode::Weak) => "pscw(weak)",
            Epoch::Pscw(PscwMode::Nocheck) => "pscw(nocheck)",
            Epoch::Checkerboard => "checkerboard",
            Epoch::Lock(LockMode::Shared) => "lock(shared)",
            Epoch::Lock(LockMode::Exclusive) => "lock(exclusive)",
            Epoch::Offer => "offer",
            Epoch::OfferCollective => "offer(collective)",
        }
    }
}

impl Decompose {
    /// From the language's words or `2x2`; for `--decompose`.
    pub fn parse(text: &str) -> Option<Decompose> {
        match text {
            "rows" => Some(Decompose::Rows),
            "blocks" => Some(Decompose::Blocks),
            _ => {
                let parts: Vec<u32> = text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?;
                (parts.len() <= crate::ir::AXES_MAX && !parts.contains(&0)).then_some(Decompose::Parts(parts))
            }
        }
    }
}

impl Overlap {
    /// From the language's words; also for `--overlap`.
    pub fn parse(text: &str) -> Option<Overlap> {
        match text {
            "core" => Some(Overlap::Core),
            "none" => Some(Overlap::None),
            _ => None,
        }
    }
}

fn word(text: &str, what: &str, words: &[&str], span: Span, guess: Option<&str>) -> Diagnostic {
    let diagnostic = Code::BadOption
        .error(format!("`{text}` is not {what}"))
        .label(span, "no such word")
        .note(format!("expected one of {}", words.join(", ")));
    match guess {
        Some(guess) => diagnostic.help(format!("did you mean `{guess}`?")),
        None => diagnostic.help(format!("write `{}`", words[0])),
    }
}

fn read_decompose(
    program: &Program,
    written: &ast::Decompose,
    span: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Decompose> {
    match written {
        ast::Decompose::Named(name) => match Decompose::parse(&name.text) {
            Some(value) => Some(value),
            None => {
                let guess = did_you_mean(&name.text, ["rows", "blocks"].into_iter());
                diagnostics.push(word(&name.text, "a decomposition", &["rows", "blocks"], name.span, guess));
                None
            }
        },
        ast::Decompose::Parts(parts) => {
            let mut counts = Vec::new();
            for part in parts {
                match *part.bare().kind {
                    ExprKind::Int(n @ 1..=0xffff) => counts.push(n as u32),
                    _ => {
                        diagnostics.push(
                            Code::BadOption
                                .error("a number of parts is a written number from 1 to 65535")
                                .label(part.span, "not such a number")
                                .note("the product of the parts is the number of ranks")
                                .suggest("for example", part.span, "2", Applicability::Unsafe),
                        );
                        return None;
                    }
                }
            }
            let mut axes = program.grids.iter().map(|grid| grid.axes.len());
            if axes.any(|n_axes| n_axes != counts.len()) {
                diagnostics.push(
                    Code::DimensionMismatch
                        .error(format!("{} numbers of parts are given", counts.len()))
                        .label(span, "one is needed for each axis")
                        .note("every grid of the program is split in the same way")
                        .help("write `blocks` to have them chosen"),
                );
                return None;
            }
            Some(Decompose::Parts(counts))
        }
    }
}

fn planned<T: Clone>(written: Option<(T, Span)>, flag: Option<T>, default: T, why: &str) -> Planned<T> {
    match (flag, written) {
        (Some(value), _) => Planned {
            asked: Some(value.clone()),
            span: None,
            done: value,
            why: String::from("as the flag says"),
        },
        (None, Some((value, span))) => Planned {
            asked: Some(value.clone()),
            span: Some(span),
            done: value,
            why: String::from("as written"),
        },
        (None, None) => Planned { asked: None, span: None, done: default, why: String::from(why) },
    }
}

fn decompose(written: Option<(Decompose, Span)>, flag: Option<Decompose>) -> Planned<Decompose> {
    planned(written, flag, Decompose::Blocks, "blocks have the shortest edges")
}

fn overlap(written: Option<(Overlap, Span)>, flag: Option<Overlap>) -> Planned<Overlap> {
    planned(written, flag, Overlap::None, "not asked for")
}

fn block(written: Option<(TimeBlock, Span)>, flag: Option<u32>) -> Planned<TimeBlock> {
    let mut plan = planned(written, flag.map(TimeBlock), TimeBlock(1), "not asked for");
    if plan.done != TimeBlock(1) {
        plan.done = TimeBlock(1);
        plan.why = String::from(
            "time tiling is not supported yet, so halos travel in each step; results are the same",
        );
    }
    plan
}

fn epoch(
    program: &Program,
    written: Option<(Epoch, Span)>,
    flag: Option<Epoch>,
    parts: &[StepPart],
    reductions: &[Exchange],
    diagnostics: &mut Vec<Diagnostic>,
) -> Planned<Epoch> {
    let mut plan = planned(written, flag, Epoch::Auto, "nothing is asked for");
    let needs_proof = matches!(plan.done, Epoch::Pscw(PscwMode::Nocheck) | Epoch::Checkerboard);
    let exchanges = parts.iter().map(|part| &part.exchange).chain(reductions);
    let one_sided = exchanges.flat_map(|exchange| &exchange.copies).find_map(|copy| {
        let axis = copy.halo.iter().position(|extent| (extent.lo == 0) != (extent.hi == 0))?;
        Some((copy, axis))
    });
    if let (true, Some((copy, axis))) = (needs_proof, one_sided) {
        let field = &program.fields[copy.field.index()];
        let index = &program.grids[field.grid.index()].axes[axis].index;
        let read = program
            .statements
            .iter()
            .flat_map(Statement::updates)
            .flat_map(|update| &update.reads)
            .find(|access| access.field == copy.field && access.offset[axis] != 0);
        let mut found = Code::MissingAssurance.error(format!(
            "`{}` is not proven for this program: `{}` is read on one side of `{index}` only",
            plan.done.text(),
            field.name
        ));
        if let Some(span) = plan.span {
            found = found.label(span, "asked for here");
        }
        if let Some(access) = read {
            found = found.label(access.span, "the one-sided read");
        }
        diagnostics.push(
            found
                .note("a start without check needs the neighbour's post before it; that is known only if each neighbour also waits for this rank")
                .help("write `epoch pscw(weak)`, or `epoch auto`"),
        );
    }
    if plan.done == Epoch::Auto {
        plan.done = Epoch::Fence;
        plan.why = String::from("fences are legal for every program");
    }
    plan
}

/// A halo that is needed or filled.
#[derive(Clone)]
struct Need {
    field: FieldId,
    level: Level,
    halo: Vec<Extent>,
    shape: Shape,
}

impl Need {
    fn merge(&mut self, other: &Need) {
        for (extent, more) in self.halo.iter_mut().zip(&other.halo) {
            *extent = extent.max(*more);
        }
        if other.shape == Shape::Box {
            self.shape = Shape::Box;
        }
    }

    fn covers(&self, other: &Need) -> bool {
        let is_wide = self.halo.iter().zip(&other.halo).all(|(own, more)| own.max(*more) == *own);
        is_wide && (self.shape == Shape::Box || other.shape == Shape::Star)
    }
}

fn needs(program: &Program, reads: &[Access]) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for access in reads {
        let n_axes = program.fields[access.field.index()].places.len();
        let n_away = access.offset.iter().filter(|offset| **offset != 0).count();
        if n_away == 0 {
            continue;
        }
        let need = Need {
            field: access.field,
            level: access.level,
            halo: (0..n_axes).map(|axis| Extent::default().with(access.offset[axis])).collect(),
            shape: if n_away == 1 { Shape::Star } else { Shape::Box },
        };
        add(&mut needs, need);
    }
    needs
}

fn add(needs: &mut Vec<Need>, need: Need) {
    match needs.iter_mut().find(|other| other.field == need.field && other.level == need.level) {
        Some(other) => other.merge(&need),
        None => needs.push(need),
    }
}

/// The level that an update writes.
fn written_level(program: &Program, field: FieldId) -> Level {
    match program.fields[field.index()].levels {
        1 => Level::Now,
        _ => Level::Next,
    }
}

fn exchanges(program: &Program) -> (Exchange, Vec<StepPart>, Vec<Exchange>) {
    let is_constant = |need: &Need| program.fields[need.field.index()].kind == FieldKind::Constant;
    let statement_needs: Vec<Vec<Need>> = program
        .statements
        .iter()
        .map(|statement| {
            let reads: Vec<Access> =
                statement.updates().iter().flat_map(|update| update.reads.clone()).collect();
            needs(program, &reads)
        })
        .collect();
    let reduction_needs: Vec<Vec<Need>> =
        program.reductions.iter().map(|reduction| needs(program, &reduction.reads)).collect();
    let source_reads: Vec<Access> =
        program.sources.iter().flat_map(|source| program.exprs.accesses(source.value)).collect();
    let mut constants: Vec<Need> = Vec::new();
    let everything = statement_needs.iter().chain(&reduction_needs).flatten().cloned();
    for need in everything.chain(needs(program, &source_reads)).filter(is_constant) {
        add(&mut constants, need);
    }
    let mut filled: Vec<Need> = constants.clone();
    let mut parts = Vec::new();
    for (k, statement) in program.statements.iter().enumerate() {
        let mut copies: Vec<Need> = Vec::new();
        for need in &statement_needs[k] {
            if filled
                .iter()
                .any(|other| other.field == need.field && other.level == need.level && other.covers(need))
            {
                continue;
            }
            // What later statements read before the level is written again travels in the same exchange.
            let mut whole = need.clone();
            for (later, statement) in program.statements.iter().enumerate().skip(k) {
                for other in &statement_needs[later] {
                    if other.field == need.field && other.level == need.level {
                        whole.merge(other);
                    }
                }
                let is_written = statement.updates().iter().any(|update| {
                    update.field == need.field && written_level(program, update.field) == need.level
                });
                if is_written {
                    break;
                }
            }
            add(&mut copies, whole.clone());
            add(&mut filled, whole);
        }
        for update in statement.updates() {
            let level = written_level(program, update.field);
            filled.retain(|other| other.field != update.field || other.level != level);
        }
        parts.push(StepPart {
            exchange: exchange(copies),
            statement: k,
            snapshot: snapshot(program, statement),
        });
    }
    // Sources and boundaries write the produced levels after the statements.
    filled.retain(|need| is_constant(need) || need.level == Level::Prev);
    let mut reductions = Vec::new();
    for wanted in reduction_needs {
        let mut copies = Vec::new();
        for need in wanted {
            let is_filled = filled
                .iter()
                .any(|other| other.field == need.field && other.level == need.level && other.covers(&need));
            if !is_filled {
                add(&mut copies, need.clone());
                add(&mut filled, need);
            }
        }
        reductions.push(exchange(copies));
    }
    (exchange(constants), parts, reductions)
}

fn exchange(needs: Vec<Need>) -> Exchange {
    let copies = needs
        .into_iter()
        .map(|need| HaloCopy { field: need.field, level: need.level, halo: need.halo, shape: need.shape })
        .collect();
    Exchange { copies }
}

fn snapshot(program: &Program, statement: &Statement) -> Vec<FieldId> {
    let Statement::Together(updates) = statement else { return Vec::new() };
    let mut fields = Vec::new();
    for update in updates {
        let is_read =
            updates.iter().flat_map(|update| &update.reads).any(|access| access.field == update.field);
        if is_read && program.fields[update.field.index()].levels == 1 && !fields.contains(&update.field) {
            fields.push(update.field);
        }
    }
    fields
}
