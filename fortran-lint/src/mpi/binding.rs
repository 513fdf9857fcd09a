//! The doors to the library, and what their interfaces say about arguments. Never about what a call does.

use super::{Class, Direction, Part, Procedure};

/// By which door a unit reaches MPI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Binding {
    /// `include 'mpif.h'`: no interfaces.
    Mpif,
    /// `use mpi`
    UseMpi,
    /// `use mpi_f08`
    F08,
    /// Through something that is not seen.
    #[default]
    Unknown,
}

/// Some of the three bindings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bindings(u8);

/// The words for them in the table.
const WORDS: &[(&str, Binding)] =
    &[("mpif", Binding::Mpif), ("mpi", Binding::UseMpi), ("mpi_f08", Binding::F08)];

impl Bindings {
    /// None of them.
    pub const NONE: Bindings = Bindings(0);
    /// All of them.
    pub const ALL: Bindings = Bindings(0b111);

    /// Words with commas between them.
    pub(super) fn parse(text: &str) -> Result<Bindings, String> {
        let mut set = 0;
        for word in text.split(',') {
            match WORDS.iter().position(|(own, _)| *own == word) {
                Some(at) => set |= 1 << at,
                None => return Err(format!("`{word}` is no binding; the bindings are mpif, mpi, mpi_f08")),
            }
        }
        Ok(Bindings(set))
    }

    /// Whether one is among them. What is not known is taken for the oldest.
    pub fn has(self, binding: Binding) -> bool {
        let at = WORDS.iter().position(|(_, own)| *own == binding).unwrap_or_default();
        self.0 >> at & 1 == 1
    }
}

/// What an interface promises about an actual argument, as far as compilers build on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// There is no interface, or one that lets the procedure change the argument.
    Nothing,
    /// INTENT(IN): the argument is the same when the call returns.
    Unchanged,
}

impl Procedure {
    /// What the interface of a binding promises about the argument at a place.
    pub fn promise(&self, at: usize, binding: Binding) -> Promise {
        let Some(argument) = self.arguments.get(at) else { return Promise::Nothing };
        let has_interface = matches!(binding, Binding::UseMpi | Binding::F08) && self.bindings.has(binding);
        let is_in = argument.part == Part::Buffer(Direction::In) && self.class != Class::SyncReg;
        match (has_interface && is_in) || argument.read_only.has(binding) {
            true => Promise::Unchanged,
            false => Promise::Nothing,
        }
    }

    /// Whether the interface of `mpi_f08` declares the argument ASYNCHRONOUS, because the library works on it when the call
    /// has returned. The other bindings say no such thing.
    pub fn is_asynchronous(&self, at: usize) -> bool {
        let lives_on = matches!(
            self.class,
            Class::Nonblocking
                | Class::Persistent
                | Class::Partitioned
                | Class::Split
                | Class::SplitEnd
                | Class::Transfer
                | Class::WinCreate
                | Class::Attach
                | Class::SyncReg
        );
        lives_on
            && self.arguments.get(at).is_some_and(|argument| {
                matches!(argument.part, Part::Buffer(_) | Part::Window | Part::Attached)
            })
    }
}
