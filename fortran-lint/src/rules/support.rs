//! What several rules say in the same words: levels, related places, remedies, reasons. Never finds anything itself.

use rma_source::{FileId, Span};

use super::repair;
use crate::dataflow::{Analysis, By, Event, EventKind, Memory, PassedTo};
use crate::finding::{Finding, Level, Related};
use crate::model::Storage;
use crate::mpi::{Binding, Class, Part};
use crate::parse::{Attributes, Symbol};
use crate::program::ProcedureId;

/// Which way the register copy is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The program reads an old copy.
    Load,
    /// The library does not see the newest value.
    Store,
}

/// How a rule treats a dummy argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OnDummy {
    /// The level stays.
    Keep,
    /// A warning: the caller may have protected it.
    Warn,
}

/// A level, lowered for a variable with SAVE, which compilers were never seen to break, and for a dummy argument.
pub(super) fn level(a: &Analysis<'_>, variable: Symbol, base: Level, on_dummy: OnDummy) -> Level {
    let resolved = a.resolve(variable);
    let is_saved = resolved.attributes.has(Attributes::SAVE);
    let is_dummy = resolved.storage == Storage::Dummy && on_dummy == OnDummy::Warn;
    match is_saved || is_dummy {
        true => base.max(Level::Warning),
        false => base,
    }
}

/// The name of a procedure as messages show it.
pub(super) fn shown(a: &Analysis<'_>, call: u32) -> String {
    a.name(a.calls[call as usize].name).to_ascii_uppercase()
}

/// A finding without its reasons and remedies.
pub(super) fn finding(
    a: &Analysis<'_>,
    rule: &'static str,
    level: Level,
    variable: Symbol,
    span: Span,
    message: String,
) -> Finding {
    Finding {
        rule,
        level,
        span,
        file: FileId(0),
        label: "",
        message,
        variable: a.name(variable).to_string(),
        because: Vec::new(),
        related: Vec::new(),
        remedies: Vec::new(),
        repairs: Vec::new(),
    }
}

/// Names the declaration, unless it is the primary place.
pub(super) fn relate_declaration(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol) {
    match a.resolve(variable).declared {
        Some(declared) if declared != finding.span => {
            relate(
                finding,
                declared,
                "declared here, neither in COMMON nor VOLATILE nor ASYNCHRONOUS".to_string(),
            );
        }
        _ => {}
    }
}

/// Adds a related place once.
pub(super) fn relate(finding: &mut Finding, span: Span, message: String) {
    let related = Related { span, file: FileId(0), message };
    if !finding.related.contains(&related) {
        finding.related.push(related);
    }
}

/// Adds the remedies that compile in the unit's binding, the cheapest first, and the place for a sync call.
pub(super) fn propose(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol, sync_place: &str) {
    repair::declare(a, finding, variable);
    let name = a.name(variable);
    let resolved = a.resolve(variable);
    let is_dynamic =
        resolved.attributes.has(Attributes::ALLOCATABLE) || resolved.attributes.has(Attributes::POINTER);
    let is_dummy = resolved.storage == Storage::Dummy;
    // With an implicit interface some compilers refuse an actual argument that is VOLATILE or ASYNCHRONOUS.
    let has_attributes = matches!(a.binding, Binding::UseMpi | Binding::F08) && repair::has_attributes(a);
    let mut add = |text: String| finding.remedies.push(text);
    if has_attributes {
        add(match is_dummy {
            true => format!("declare `{name}` ASYNCHRONOUS, here and in the caller"),
            false => format!("declare `{name}` ASYNCHRONOUS"),
        });
    }
    if !is_dummy && !is_dynamic {
        add(format!("put `{name}` in a COMMON block"));
    }
    if !is_dummy {
        add(format!("make `{name}` a module variable"));
    }
    if has_attributes {
        add(format!("declare `{name}` VOLATILE, which slows down every access"));
    }
    // MPICH 4.0 has an MPI_F_SYNC_REG for the older bindings that writes through a second argument.
    add(match a.binding {
        Binding::F08 => format!("call MPI_F_SYNC_REG({name}) {sync_place}"),
        _ => format!(
            "call an empty external routine, compiled apart, with `{name}` as its argument {sync_place}"
        ),
    });
}

/// Adds the reasons why remedies that were tried fail.
pub(super) fn explain(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol, side: Side, after: u32) {
    let resolved = a.resolve(variable);
    let mut weak = Vec::new();
    for (attribute, word) in [
        (Attributes::TARGET, "TARGET"),
        (Attributes::POINTER, "POINTER"),
        (Attributes::ALLOCATABLE, "ALLOCATABLE"),
        (Attributes::SAVE, "SAVE"),
    ] {
        if resolved.attributes.has(attribute) {
            weak.push(word);
        }
    }
    if resolved.is_equivalenced {
        weak.push("EQUIVALENCE");
    }
    if !weak.is_empty() {
        because(finding, "FR19");
        let place = resolved.attribute_place.or(resolved.declared);
        if let Some(place) = place {
            relate(finding, place, format!("{} does not keep a variable in memory", weak.join(" and ")));
        }
    }
    let is_late_standard = a.file.options.standard >= crate::options::Standard::F2003;
    if resolved.attributes.has(Attributes::ASYNCHRONOUS) && !is_late_standard {
        because(finding, "FR19");
    }
    explain_lost_attributes(a, finding, variable);
    for (i, event) in a.events.iter().enumerate() {
        let EventKind::Pass { variable: own, to, .. } = event.kind else { continue };
        if own != variable || (side == Side::Load && i as u32 <= after) {
            continue;
        }
        match to {
            PassedTo::User(call) if a.calls[call as usize].args.len() == 1 => {
                let name = shown(a, call);
                match a.shields_store(event, Memory::whole(variable)) {
                    true => misplaced(finding, event, side, &name),
                    false => {
                        because(finding, "FR13");
                        relate(
                            finding,
                            event.span,
                            format!("{name} is part of the program, so that the compiler can look into it"),
                        );
                    }
                }
            }
            PassedTo::Library(call, Part::Location) if !a.hidden.feeds_datatype(call) => {
                let name = shown(a, call);
                if side == Side::Load && !a.shields_load(event, Memory::whole(variable)) {
                    because(finding, "FR19");
                    relate(
                        finding,
                        event.span,
                        format!(
                            "module `mpi` may declare this argument of {name} INTENT(IN), so that nothing is reloaded"
                        ),
                    );
                } else {
                    misplaced(finding, event, side, &name);
                }
            }
            PassedTo::Library(call, _) if a.class_of(call) == Some(Class::SyncReg) => {
                misplaced(finding, event, side, &shown(a, call));
            }
            _ => {}
        }
    }
}

/// Attributes of the other side of a call: of the dummy argument that a wrapper has for the variable, or of the actual
/// arguments that callers have for a dummy argument.
fn explain_lost_attributes(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol) {
    let name = a.name(variable);
    for event in &a.events {
        let EventKind::Pass { variable: own, to: PassedTo::Library(call, part), .. } = event.kind else {
            continue;
        };
        if own != variable || !matches!(part, Part::Buffer(_) | Part::Window) {
            continue;
        }
        let Some(dummy) = a.dummy_of(call, event) else { continue };
        let word = match () {
            () if dummy.attributes.has(Attributes::ASYNCHRONOUS) => "ASYNCHRONOUS",
            () if dummy.attributes.has(Attributes::VOLATILE) => "VOLATILE",
            () => continue,
        };
        because(finding, "FR18");
        let message = format!("`{}` of {} is {word}, and `{name}` here is not", dummy.name, shown(a, call));
        relate(finding, event.span, message);
    }
    let resolved = a.resolve(variable);
    let position = a.unit.dummies.iter().position(|dummy| *dummy == variable);
    let (Storage::Dummy, Some(position)) = (resolved.storage, position) else { return };
    let id = ProcedureId { file: a.file.index, unit: a.id.0, entry: 0 };
    let actuals = a.file.program.protected_actuals.get(&(id, position as u32));
    if let (Some(actual), Some(declared)) = (actuals.and_then(|actuals| actuals.first()), resolved.declared) {
        because(finding, "FR18");
        let message =
            format!("`{}` is {} in the caller ({}), and lost here", actual.name, actual.remedy, actual.place);
        relate(finding, declared, message);
    }
}

/// Says of the calls that a finding names, where they are calls of procedures of the program, what these call.
pub(super) fn name_wrappers(a: &Analysis<'_>, finding: &mut Finding) {
    for call in 0..a.calls.len() as u32 {
        let record = &a.calls[call as usize];
        let (Some((caller, _)), Some(procedure)) = (record.within, record.procedure) else { continue };
        let callee = a.calls[caller as usize].callee;
        let Some(summary) = callee.and_then(|callee| a.file.program.summaries.get(&callee)) else { continue };
        let is_named = |span: Span| span == record.span;
        if is_named(finding.span) || finding.related.iter().any(|related| is_named(related.span)) {
            let message = format!(
                "{} ({}) calls {}",
                shown(a, call),
                summary.place,
                procedure.name.to_ascii_uppercase()
            );
            relate(finding, record.span, message);
        }
    }
}

fn misplaced(finding: &mut Finding, event: &Event, side: Side, name: &str) {
    because(finding, "FR14");
    let message = match side {
        Side::Load => format!("{name} does not stand on every way from the synchronization to the access"),
        Side::Store => {
            format!("{name} does not stand between the store and the call that lets others see it")
        }
    };
    relate(finding, event.span, message);
}

fn because(finding: &mut Finding, code: &'static str) {
    if !finding.because.contains(&code) {
        finding.because.push(code);
        finding.because.sort_unstable();
    }
}

/// Whether the event looks at the variable in code that the compiler can see: a read, or an argument of a procedure of
/// the program.
pub(super) fn is_load(a: &Analysis<'_>, event: &Event, memory: Memory) -> bool {
    match event.kind {
        EventKind::Read { .. } => a.concerns(event, memory),
        EventKind::Pass { to: PassedTo::User(call), .. } => {
            // To be an argument is an access, too, whatever the procedure does with it; only one that certainly writes
            // looks at nothing.
            let usage = a.usage(call, event);
            a.concerns(event, memory)
                && !a.is_opaque(&a.calls[call as usize])
                && (usage.is_read || !usage.is_written)
        }
        _ => false,
    }
}

/// Whether the event assigns the memory, so that the value may stay in a register.
pub(super) fn is_store(a: &Analysis<'_>, event: &Event, memory: Memory) -> bool {
    matches!(event.kind, EventKind::Write { by: By::Statement, .. }) && a.concerns(event, memory)
}

/// Leaves out calls that were meant as remedies, so that the finding stands at the access behind them; they stay when
/// there is nothing else. What is left is in the order of the text.
pub(super) fn without_attempts<T: Copy>(
    a: &Analysis<'_>,
    accesses: &[T],
    event_of: impl Fn(&T) -> u32,
) -> Vec<T> {
    let is_attempt = |access: &T| match a.events[event_of(access) as usize].kind {
        EventKind::Pass { to: PassedTo::User(call), .. } => a.calls[call as usize].args.len() == 1,
        _ => false,
    };
    let mut kept: Vec<T> = accesses.iter().copied().filter(|access| !is_attempt(access)).collect();
    if kept.is_empty() {
        kept = accesses.to_vec();
    }
    kept.sort_by_key(event_of);
    kept
}

/// "and 3 other places" behind a message, or nothing.
pub(super) fn others(n: usize) -> String {
    match n {
        0 => String::new(),
        1 => ", and in one other place".to_string(),
        n => format!(", and in {n} other places"),
    }
}
