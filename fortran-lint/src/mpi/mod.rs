//! What is known about the procedures of MPI. Data, read from one table; never code about one procedure.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The table, in the shape that its own head explains.
const TABLE: &str = include_str!("procedures.txt");

/// What a procedure does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// It has finished with its buffers when it returns.
    Blocking,
    /// It starts an operation on its buffers.
    Nonblocking,
    /// It prepares an operation on its buffers.
    Persistent,
    /// It starts what was prepared.
    Start,
    /// It ends all operations that its requests stand for.
    Finish,
    /// It ends some of them.
    FinishSome,
    /// It may end them.
    Test,
    /// It gives a request away.
    RequestFree,
    /// It begins a split-collective operation, whose end names the buffer again.
    Split,
    /// It opens memory to others.
    WinCreate,
    /// It closes a window for good.
    WinFree,
    /// Fence.
    Fence,
    /// It starts an exposure epoch.
    Post,
    /// It starts an access epoch.
    Access,
    /// It ends an access epoch.
    Complete,
    /// It ends an exposure epoch.
    Wait,
    /// It may end one.
    WaitTest,
    /// Lock.
    Lock,
    /// Unlock.
    Unlock,
    /// It completes transfers inside an epoch.
    Flush,
    /// It synchronizes the two copies of a window.
    WinSync,
    /// It moves data to or from a window.
    Transfer,
    /// All processes meet.
    Barrier,
    /// It tells the address of a variable.
    Address,
    /// It makes a datatype.
    Datatype,
    /// It does nothing, which the compiler must not know.
    SyncReg,
    /// It registers procedures that are called later.
    Callback,
    /// Anything else.
    Plain,
}

/// Which way data goes through a choice buffer, as the library sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The library reads the buffer.
    In,
    /// The library writes it.
    Out,
    /// Both.
    InOut,
}

impl Direction {
    /// The library may write the buffer.
    pub fn writes(self) -> bool {
        self != Direction::In
    }

    /// The library may read the buffer.
    pub fn reads(self) -> bool {
        self != Direction::Out
    }
}

/// The part that an argument plays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// A choice buffer.
    Buffer(Direction),
    /// The memory of a window.
    Window,
    /// The datatype of the buffer before it.
    Type,
    /// One request.
    Request,
    /// An array of requests.
    Requests,
    /// The window.
    Win,
    /// The variable whose address is taken.
    Location,
    /// Where the address goes.
    Address,
    /// The datatype that is made.
    NewType,
    /// Displacements or addresses.
    Displacements,
    /// Datatypes that a new one is made of.
    Types,
    /// A variable that a callback will reach.
    State,
    /// A procedure that is called later.
    Callback,
    /// True when the request has finished.
    Flag,
    /// Anything else.
    Other,
}

/// One argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument {
    /// Its keyword.
    pub keyword: &'static str,
    /// Its part.
    pub part: Part,
}

/// One procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its name in lower case.
    pub name: &'static str,
    /// What it does.
    pub class: Class,
    /// Its arguments in order.
    pub arguments: Vec<Argument>,
}

static PROCEDURES: LazyLock<HashMap<&'static str, Procedure>> =
    LazyLock::new(|| TABLE.lines().filter_map(row).map(|procedure| (procedure.name, procedure)).collect());

/// The procedure of that name, in lower case.
pub fn find(name: &str) -> Option<&'static Procedure> {
    if let Some(procedure) = PROCEDURES.get(name) {
        return Some(procedure);
    }
    let rest = name.strip_prefix("rma_").or_else(|| name.strip_prefix("pmpi_"))?;
    PROCEDURES.get(format!("mpi_{rest}").as_str())
}

/// Whether the name belongs to the library, known or not.
pub fn is_library_name(name: &str) -> bool {
    ["mpi_", "pmpi_", "mpix_", "rma_", "pgo_"].iter().any(|prefix| name.starts_with(prefix))
}

fn row(line: &'static str) -> Option<Procedure> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().filter(|name| !name.starts_with('#'))?;
    let class = class(words.next()?)?;
    let arguments = words.map(argument).collect::<Option<Vec<Argument>>>()?;
    Some(Procedure { name, class, arguments })
}

fn argument(word: &'static str) -> Option<Argument> {
    let (keyword, part) = match word.split_once(':') {
        Some((keyword, part)) => (keyword, part_named(part)?),
        None => (word, Part::Other),
    };
    Some(Argument { keyword, part })
}

fn part_named(word: &str) -> Option<Part> {
    Some(match word {
        "in" => Part::Buffer(Direction::In),
        "out" => Part::Buffer(Direction::Out),
        "inout" => Part::Buffer(Direction::InOut),
        "window" => Part::Window,
        "type" => Part::Type,
        "request" => Part::Request,
        "requests" => Part::Requests,
        "win" => Part::Win,
        "location" => Part::Location,
        "address" => Part::Address,
        "newtype" => Part::NewType,
        "displs" => Part::Displacements,
        "types" => Part::Types,
        "state" => Part::State,
        "callback" => Part::Callback,
        "flag" => Part::Flag,
        _ => return None,
    })
}

fn class(word: &str) -> Option<Class> {
    Some(match word {
        "blocking" => Class::Blocking,
        "nonblocking" => Class::Nonblocking,
        "persistent" => Class::Persistent,
        "start" => Class::Start,
        "finish" => Class::Finish,
        "finish-some" => Class::FinishSome,
        "test" => Class::Test,
        "request-free" => Class::RequestFree,
        "split" => Class::Split,
        "win-create" => Class::WinCreate,
        "win-free" => Class::WinFree,
        "fence" => Class::Fence,
        "post" => Class::Post,
        "access" => Class::Access,
        "complete" => Class::Complete,
        "wait" => Class::Wait,
        "wait-test" => Class::WaitTest,
        "lock" => Class::Lock,
        "unlock" => Class::Unlock,
        "flush" => Class::Flush,
        "win-sync" => Class::WinSync,
        "transfer" => Class::Transfer,
        "barrier" => Class::Barrier,
        "address" => Class::Address,
        "datatype" => Class::Datatype,
        "sync-reg" => Class::SyncReg,
        "callback" => Class::Callback,
        "plain" => Class::Plain,
        _ => return None,
    })
}

#[cfg(test)]
mod test {
    use super::{Class, PROCEDURES, TABLE, find};

    #[test]
    fn every_row_is_understood() {
        let n_rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(PROCEDURES.len(), n_rows, "a row of the table is malformed or repeated");
    }

    #[test]
    fn other_prefixes_lead_to_the_same_row() {
        assert_eq!(find("rma_sync_reg").map(|procedure| procedure.class), Some(Class::SyncReg));
        assert_eq!(find("pmpi_irecv"), find("mpi_irecv"));
        assert_eq!(find("irecv"), None);
    }
}
