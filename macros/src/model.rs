//! What an annotated function says, as plain data with spans. Never parses and never produces code.
//!
//! The body is kept as syntax with *holes*: every expression that means a transfer or a local access has been cut out
//! and stands in [`Body::accesses`]. What matters for legality stands beside it as a tree of [`Step`]s, so that the
//! checker looks at data and not at syntax.

use proc_macro2::{Ident, TokenStream};
use syn::{Expr, ItemFn};

/// The macro that stands for a hole until `expand.rs` fills it.
pub(crate) const HOLE: &str = "__rma_hole";

/// An annotated function.
pub(crate) struct Function {
    /// The epochs that enclose the body, outermost first.
    pub(crate) layers: Vec<Layer>,
    /// The function as it was written, with the holes cut into its body.
    pub(crate) item: ItemFn,
    /// What the holes stand for, and what happens in which order.
    pub(crate) body: Body,
}

/// One epoch on one window.
pub(crate) struct Layer {
    pub(crate) kind: Kind,
    /// The name that the body uses.
    pub(crate) window: Ident,
    /// The window: the name itself, or what stands behind `=`.
    pub(crate) place: Place,
    /// The ranks that the epoch opens, if it names any.
    pub(crate) targets: Option<Expr>,
    /// The ranks that may come, if the epoch names any; `None` is "any".
    pub(crate) origins: Option<Expr>,
    /// How many origins the closing call waits for.
    pub(crate) count: Option<Expr>,
    pub(crate) info: Info,
    /// What ends a body of kind `offer`.
    pub(crate) offer: Option<Offer>,
}

/// The offer at the end of a body.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) tag: Expr,
    /// The buffer that is offered, if any.
    pub(crate) over: Option<Expr>,
    pub(crate) events: Events,
}

/// What an offer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    Puts,
    Gets,
    Both,
}

/// How the window of a layer is reached from the function's parameters.
pub(crate) enum Place {
    /// A parameter that is a reference.
    Reference,
    /// A parameter that owns its window.
    Owned,
    /// An expression, after `=`.
    Expression(Box<Expr>),
}

/// The kinds of epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// fence … fence, by everyone.
    Fence,
    /// start … complete, at the origin.
    Access,
    /// post … wait, at the target.
    Exposure,
    /// post, start … complete, wait: both at once.
    Exchange,
    /// lock … unlock of an exclusive lock.
    LockExclusive,
    /// lock … unlock of a shared lock.
    LockShared,
    /// A private epoch that reads and writes.
    Local,
    /// A private epoch that reads.
    LocalRead,
    /// Events on a team, without a window, and the offer that ends them.
    Offer,
}

impl Kind {
    /// The word that the attribute uses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Fence => "fence",
            Kind::Access => "access",
            Kind::Exposure => "exposure",
            Kind::Exchange => "exchange",
            Kind::LockExclusive | Kind::LockShared => "lock",
            Kind::Local | Kind::LocalRead => "local",
            Kind::Offer => "offer",
        }
    }

    /// The call that ends the epoch, as a noun with article, for messages.
    pub(crate) fn closing(self) -> &'static str {
        match self {
            Kind::Fence => "the fence",
            Kind::Access => "the COMPLETE",
            Kind::Exposure => "the WAIT",
            Kind::Exchange => "the COMPLETE and WAIT",
            Kind::LockExclusive | Kind::LockShared => "the UNLOCK",
            Kind::Local | Kind::LocalRead => "the return of the view",
            Kind::Offer => "the offer",
        }
    }

    /// Whether the window is private to the body: a slice, reached by plain loads and stores.
    pub(crate) fn is_private(self) -> bool {
        matches!(self, Kind::Local | Kind::LocalRead)
    }

    /// Whether the epoch's window must be borrowed mutably, since others may write to it meanwhile.
    pub(crate) fn opens_own_window(self) -> bool {
        matches!(self, Kind::Fence | Kind::Exposure | Kind::Exchange | Kind::Local)
    }
}

/// What the opening call may take for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Info {
    Strong,
    Weak,
    /// With the reason that the programmer gave.
    NoCheck(String),
}

/// The operations that combine what arrives with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Sum,
    Prod,
    Min,
    Max,
    And,
    Or,
    Xor,
    Replace,
}

impl Operation {
    /// The name of the type in the runtime.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Sum => "Sum",
            Operation::Prod => "Prod",
            Operation::Min => "Min",
            Operation::Max => "Max",
            Operation::And => "And",
            Operation::Or => "Or",
            Operation::Xor => "Xor",
            Operation::Replace => "Replace",
        }
    }
}

/// A part of a window: `[i]` or `[a..b]`.
pub(crate) struct Section {
    pub(crate) index: Box<Expr>,
}

/// `u.at(rank)[section]`.
pub(crate) struct Remote {
    pub(crate) rank: Box<Expr>,
    pub(crate) section: Section,
    /// `team.combine(rank)[section]`: the event goes on with the next one.
    pub(crate) goes_on: bool,
}

/// Where the data of a put or an accumulate come from.
pub(crate) enum Origin {
    /// One value.
    Value(Box<Expr>),
    /// A buffer, borrowed or handed over.
    Buffer(Box<Expr>),
    /// A part of one's own window, by layer.
    Own { layer: usize, section: Section },
}

/// Where the data of a get go.
pub(crate) enum Destination {
    /// Into a pending value that the closed epoch opens.
    Pending,
    /// Into a pending vector.
    PendingVec,
    /// Into a buffer that is borrowed until the epoch ends.
    Buffer(Box<Expr>),
    /// Into a part of one's own window, by layer.
    Own { layer: usize, section: Section },
}

/// One transfer or local access that the body performs.
pub(crate) struct Access {
    /// The layer whose window is reached.
    pub(crate) layer: usize,
    pub(crate) act: Act,
    /// The expression as written, for messages to point at.
    pub(crate) written: TokenStream,
}

/// What an access does.
pub(crate) enum Act {
    Put {
        to: Remote,
        from: Origin,
    },
    Get {
        from: Remote,
        into: Destination,
    },
    Accumulate {
        to: Remote,
        operation: Operation,
        from: Origin,
    },
    FetchOp {
        at: Remote,
        operation: Operation,
        value: Box<Expr>,
    },
    CompareSwap {
        at: Remote,
        expected: Box<Expr>,
        new: Box<Expr>,
    },
    /// `u.fence()`, in the middle of a fence epoch.
    Fence,
    /// `u[i]` as a value, which may be what the body returns.
    Load {
        section: Section,
        returned: bool,
    },
    /// `u[i] = value`.
    Store {
        section: Section,
        value: Box<Expr>,
    },
    /// `u[i] += value` and kin; the operator without its `=`.
    Update {
        section: Section,
        operator: Box<syn::BinOp>,
        value: Box<Expr>,
    },
    /// `buffer.copy_from_slice(&u[a..b])`.
    Read {
        section: Section,
        buffer: Box<Expr>,
    },
    /// `u[a..b].copy_from_slice(&buffer)`.
    Write {
        section: Section,
        buffer: Box<Expr>,
    },
    /// `u.store(i, value)` or `u.write(i, &buffer)`: a store by the handle's own call.
    Called(Box<syn::ExprMethodCall>),
}

impl Act {
    /// The far end, if the act has one.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        match self {
            Act::Put { to, .. } | Act::Accumulate { to, .. } => Some(to),
            Act::Get { from, .. } => Some(from),
            Act::FetchOp { at, .. } | Act::CompareSwap { at, .. } => Some(at),
            Act::Fence
            | Act::Load { .. }
            | Act::Store { .. }
            | Act::Update { .. }
            | Act::Read { .. }
            | Act::Write { .. }
            | Act::Called(_) => None,
        }
    }

    /// The word that messages use.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Act::Put { .. } => "put",
            Act::Get { .. } => "get",
            Act::Accumulate { .. } => "accumulate",
            Act::FetchOp { .. } => "fetch-and-op",
            Act::CompareSwap { .. } => "compare-and-swap",
            Act::Fence => "fence",
            Act::Load { .. } | Act::Read { .. } => "load",
            Act::Store { .. } | Act::Update { .. } | Act::Write { .. } | Act::Called(_) => "store",
        }
    }
}

/// The accesses of a body and the order of what concerns them.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) accesses: Vec<Access>,
    pub(crate) steps: Vec<Step>,
    /// Parameters that are references: handing one over hands over what it borrows.
    pub(crate) borrowed: Vec<Ident>,
}

/// What happens in a body, as far as legality depends on it.
pub(crate) enum Step {
    /// The access of this number is performed.
    Access(usize),
    /// A variable is mentioned.
    Use(Ident),
    /// A name is bound anew.
    Bind(Ident),
    /// A mid-epoch fence of a layer: everything before it is complete.
    Fence(usize),
    /// Any number of rounds.
    Loop(Vec<Step>),
    /// One of these.
    Branch(Vec<Vec<Step>>),
    /// Control leaves this sequence.
    Leave,
}

// Small readings of expressions, the same for whoever looks at the model.

/// The expression inside parentheses and invisible groups.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => bare(&paren.expr),
        Expr::Group(group) => bare(&group.expr),
        other => other,
    }
}

/// The name, if the expression is nothing but a name.
pub(crate) fn variable(expr: &Expr) -> Option<&Ident> {
    match bare(expr) {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// The variable whose memory a buffer expression hands over as a whole: `buffer`, `&buffer`, `&mut buffer`,
/// `&buffer[..]`. A part of a buffer is left to the borrow checker, which knows which parts are apart.
pub(crate) fn tracked(expr: &Expr) -> Option<&Ident> {
    match bare(expr) {
        Expr::Reference(reference) => tracked(&reference.expr),
        Expr::Index(index) => match bare(&index.index) {
            Expr::Range(range) if range.start.is_none() && range.end.is_none() => tracked(&index.expr),
            _ => None,
        },
        other => variable(other),
    }
}

/// Whether the expression is this word.
pub(crate) fn is_word(expr: &Expr, word: &str) -> bool {
    variable(expr).is_some_and(|name| name == word)
}
