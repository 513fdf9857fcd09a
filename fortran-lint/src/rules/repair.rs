//! Edits that follow a remedy: which declaration compiles for this variable in this unit, and where a call goes. Never
//! edits a text.

use rma_source::{FileId, Span};

use crate::dataflow::Analysis;
use crate::finding::{Action, Finding, Repair};
use crate::model::{Step, Storage, Unit, UnitId};
use crate::mpi::Binding;
use crate::options::Standard;
use crate::parse::{Attributes, ExprId, ExprKind, Statement, StatementKind, Symbol, UnitKind};

/// The attribute that is enough for a variable that calls change, and costs least.
const CHEAP: &str = "ASYNCHRONOUS";
/// The attribute that makes every access a load or a store.
const STRICT: &str = "VOLATILE";

/// Longest name of a COMMON block that is made.
const NAME_BYTES_MAX: usize = 60;

/// Where a call keeps the variable in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In front of the statement with this place.
    Before(Span),
    /// Behind it.
    Behind(Span),
}

/// Adds the edit of the declaration, or where none compiles nothing.
pub(super) fn declare(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol) {
    let Some((places, owner)) = declarations(a, variable) else { return };
    let owner = a.file.model.unit(owner);
    let mut add = |action| finding.repairs.push(Repair { action, places: places.clone(), unit: a.id.0 });
    // A caller without an explicit interface must not pass anything to a dummy argument with such an attribute.
    let is_bare_dummy = a.resolve(variable).storage == Storage::Dummy && owner.parent.is_none();
    match a.binding {
        Binding::UseMpi | Binding::F08 if !has_attributes(a) => {
            if may_be_common(a, variable, owner) {
                add(Action::Common(block_name(a, variable, owner)));
            }
        }
        Binding::UseMpi | Binding::F08 if !is_bare_dummy => {
            add(Action::Declare(CHEAP));
            add(Action::Declare(STRICT));
        }
        // With an implicit interface some compilers refuse an actual argument that has such an attribute.
        Binding::UseMpi | Binding::F08 => {}
        Binding::Mpif | Binding::Unknown => {
            if may_be_common(a, variable, owner) {
                add(Action::Common(block_name(a, variable, owner)));
            }
        }
    }
}

/// Whether the standard asked for has the attributes that keep variables in memory.
pub(super) fn has_attributes(a: &Analysis<'_>) -> bool {
    a.file.options.standard >= Standard::F2003
}

/// Adds the edit that makes every access count, for a loop without calls.
pub(super) fn declare_volatile(a: &Analysis<'_>, finding: &mut Finding, variable: Symbol) {
    let Some((places, owner)) = declarations(a, variable) else { return };
    // As above; a pointer is no actual argument of a call without an interface.
    let is_bare_argument = matches!(a.binding, Binding::Mpif | Binding::Unknown)
        && !a.resolve(variable).attributes.has(Attributes::POINTER);
    if is_bare_argument || !has_attributes(a) {
        return;
    }
    let is_dummy = a.resolve(variable).storage == Storage::Dummy;
    let is_bare_dummy = is_dummy && a.file.model.unit(owner).parent.is_none();
    if !is_bare_dummy {
        finding.repairs.push(Repair { action: Action::Declare(STRICT), places, unit: a.id.0 });
    }
}

/// Adds the edit that calls the library's empty routine, or that of the code. That of the code comes first where the
/// declaration would have to be COMMON, which is another place for the variable.
pub(super) fn call(a: &Analysis<'_>, finding: &mut Finding, place: Place) {
    let own = a.file.options.sync_routine.clone();
    let of_library = (a.binding == Binding::F08 && sees_sync_reg(a)).then(|| "MPI_F_SYNC_REG".to_string());
    let Some(routine) = own.or(of_library) else { return };
    let (span, action) = match place {
        Place::Before(span) => (span, Action::CallBefore(routine)),
        Place::Behind(span) => (span, Action::CallBehind(routine)),
    };
    let Some(span) = statement_at(a, span) else { return };
    let repair = Repair { action, places: vec![(FileId(0), span)], unit: a.id.0 };
    let is_last_resort = matches!(a.binding, Binding::UseMpi | Binding::F08);
    let at = if is_last_resort { finding.repairs.len() } else { 0 };
    finding.repairs.insert(at, repair);
}

/// The statement that holds a place.
fn statement_at(a: &Analysis<'_>, span: Span) -> Option<Span> {
    let statements = &a.file.tree.statements;
    let behind = statements.partition_point(|statement| statement.span.start <= span.start);
    let statement = &statements[behind.checked_sub(1)?];
    (span.end <= statement.span.end).then_some(statement.span)
}

/// The statements that declare the variable, one in each branch of an `#if`, or the last declaration of the unit where
/// none does, and the unit.
fn declarations(a: &Analysis<'_>, variable: Symbol) -> Option<(Vec<(FileId, Span)>, UnitId)> {
    let resolved = a.resolve(variable);
    if let Some(declared) = resolved.declared {
        let owner = ancestors(a).find(|&id| a.file.model.unit(id).variables.contains_key(&variable))?;
        let mut places = vec![(FileId(0), statement_at(a, declared)?)];
        for statement in statements(a, owner) {
            let StatementKind::Declaration { entities, .. } = &statement.kind else { continue };
            let place = (FileId(0), statement.span);
            if entities.iter().any(|entity| entity.name.symbol == variable) && !places.contains(&place) {
                places.push(place);
            }
        }
        return Some((places, owner));
    }
    let mut last = None;
    for statement in statements(a, a.id) {
        use StatementKind as S;
        match statement.kind {
            S::Unit { .. }
            | S::Use { .. }
            | S::Implicit { .. }
            | S::Include { .. }
            | S::Declaration { .. }
            | S::Attribute { .. }
            | S::Common(_)
            | S::Equivalence(_)
            | S::CrayPointer(_) => last = Some(statement.span),
            S::Other | S::Data(_) | S::Format => {}
            _ => break,
        }
    }
    Some((vec![(FileId(0), last?)], a.id))
}

fn statements<'a>(a: &'a Analysis<'_>, id: UnitId) -> impl Iterator<Item = &'a Statement> {
    a.file.model.unit(id).body.iter().filter_map(|step| match step {
        Step::Statement(i) => Some(&a.file.tree.statements[*i as usize]),
        Step::Mark(_) => None,
    })
}

fn ancestors<'a>(a: &'a Analysis<'_>) -> impl Iterator<Item = UnitId> + 'a {
    std::iter::successors(Some(a.id), |&id| a.file.model.unit(id).parent)
}

/// Whether a unit around sees MPI_F_SYNC_REG by its USE statements.
fn sees_sync_reg(a: &Analysis<'_>) -> bool {
    let name = |symbol: Symbol| a.file.tree.symbols.name(symbol);
    ancestors(a).flat_map(|id| &a.file.model.unit(id).uses).any(|used| {
        let is_listed = || used.names.iter().any(|(own, _)| name(*own) == "mpi_f_sync_reg");
        name(used.module) == "mpi_f08" && (!used.has_only || is_listed())
    })
}

/// Whether the variable may stand in a COMMON block: a fixed size, no value from the start, no attribute against it.
fn may_be_common(a: &Analysis<'_>, variable: Symbol, owner: &Unit) -> bool {
    let resolved = a.resolve(variable);
    let against = [
        Attributes::ALLOCATABLE,
        Attributes::POINTER,
        Attributes::SAVE,
        Attributes::PARAMETER,
        Attributes::EXTERNAL,
        Attributes::VALUE,
    ];
    if resolved.storage == Storage::Dummy
        || resolved.is_equivalenced
        || against.iter().any(|&attribute| resolved.attributes.has(attribute))
    {
        return false;
    }
    let Some(own) = &resolved.variable else { return true };
    let is_result =
        owner.kind == UnitKind::Function && owner.name.is_some_and(|name| name.symbol == variable);
    let has_length = own.is_character && owner.kind != UnitKind::Program;
    let is_fixed =
        own.shape.is_none_or(|shape| a.file.tree.list(shape).iter().all(|&bound| is_constant(a, bound)));
    !own.is_derived() && !own.is_pointee && !is_result && !has_length && is_fixed
}

/// Whether the compiler knows the value.
fn is_constant(a: &Analysis<'_>, id: ExprId) -> bool {
    let tree = a.file.tree;
    match tree.expr(id).kind {
        ExprKind::Literal(_) => true,
        ExprKind::Name(name) => a.resolve(name).attributes.has(Attributes::PARAMETER),
        ExprKind::Operation { operands, .. } => {
            tree.list(operands).iter().all(|&operand| is_constant(a, operand))
        }
        ExprKind::Paren(inner) => is_constant(a, inner),
        ExprKind::Section { low, high: Some(high), stride: None } => {
            low.is_none_or(|low| is_constant(a, low)) && is_constant(a, high)
        }
        _ => false,
    }
}

/// A name for the block that nothing else in the file has, and no procedure of the program.
fn block_name(a: &Analysis<'_>, variable: Symbol, owner: &Unit) -> String {
    let unit = owner.name.map_or("main", |name| a.name(name.symbol));
    let mut name = format!("{unit}_{}", a.name(variable));
    name.truncate(NAME_BYTES_MAX);
    while a.file.tree.symbols.find(&name).is_some() || a.file.program.procedures.has(&name) {
        name.push('x');
    }
    name
}
