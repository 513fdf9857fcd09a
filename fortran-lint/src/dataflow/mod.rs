//! What the statements of a unit do to variables, in every order in which they can run. Never knows a rule.

mod address;
mod analysis;
mod ends;
mod epochs;
mod event;
mod handle;
mod inline;
mod open;
mod operation;
mod sites;
mod summarize;

pub use address::HiddenBuffers;
pub use analysis::{Analysis, FileContext, Protection, Step, calls_library};
pub use epochs::{Epochs, Fault};
pub use event::{By, Call, Event, EventKind, PassedTo, is_intrinsic};
pub use inline::{Inlined, InlinedCall};
pub use open::{Change, States, Track};
pub use operation::{Handle, Memory, Operation, Phase, Window};
pub use summarize::{n_entries, summarize};
