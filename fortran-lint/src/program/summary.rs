//! What a procedure does for its caller: the library calls that concern what the caller can reach. Never holds anything
//! of the procedure's own file.

use crate::mpi::{Binding, Procedure};
use crate::parse::Attributes;

/// What one argument of an effect is to the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actual {
    /// A dummy argument, by its position, or a component of it: the caller's actual argument.
    Dummy(u32, Vec<Box<str>>),
    /// A variable that a module or COMMON holds, by the name that all units share, or a component of it.
    Shared(Box<str>, Vec<Box<str>>),
    /// The function result, or a component of it: what the caller assigns it to.
    Result(Vec<Box<str>>),
    /// A constant of the library, by its name.
    Constant(Box<str>),
    /// A whole number.
    Number(u64),
    /// Anything else.
    Own,
}

/// Whether an effect happens on every way through the procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// It does.
    Always,
    /// It may not.
    Perhaps,
}

/// One library call that a procedure makes for its caller, itself or through another procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// What is called.
    pub procedure: &'static Procedure,
    /// The arguments in the order of the library's procedure.
    pub args: Vec<Actual>,
    /// Whether it always happens.
    pub certainty: Certainty,
    /// By which door the library is reached.
    pub binding: Binding,
}

/// How a procedure uses a dummy argument apart from its effects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Use {
    /// It looks at the value, or hands it to somebody who may.
    pub is_read: bool,
    /// It changes the value, or hands it to somebody who may.
    pub is_written: bool,
    /// It hands it to a procedure that is not seen, on every way, so that the compiler must have it in memory and load it
    /// again behind the call.
    pub is_shielded: bool,
    /// It hands it to a procedure that is not seen, on some way.
    pub is_given_away: bool,
}

/// One dummy argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dummy {
    /// Its name.
    pub name: Box<str>,
    /// Its attributes.
    pub attributes: Attributes,
    /// The caller's array may have gaps and comes without a copy.
    pub is_spread: bool,
    /// How it is used.
    pub usage: Use,
}

/// What a procedure does for its caller.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The library calls, in the order of the text.
    pub effects: Vec<Effect>,
    /// The dummy arguments in order.
    pub dummies: Vec<Dummy>,
    /// COMMON blocks that it declares, or a procedure that it calls; blank COMMON has no name.
    pub blocks: Vec<Box<str>>,
    /// It calls a procedure that is not seen, which may finish what modules and COMMON hold.
    pub calls_unknown: bool,
    /// Where it stands: file and line.
    pub place: String,
}

impl Summary {
    /// The position of the dummy argument of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.dummies.iter().position(|dummy| &*dummy.name == name)
    }
}
