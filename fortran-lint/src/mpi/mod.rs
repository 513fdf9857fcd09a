//! What is known about the procedures of MPI. Data, read from one table; never code about one procedure.

mod binding;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use binding::{Binding, Bindings, Promise};

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
    /// It prepares an operation whose buffer is handed over in parts while the operation runs.
    Partitioned,
    /// It hands a part of such a buffer over.
    Ready,
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
    /// It ends one.
    SplitEnd,
    /// It opens memory to others.
    WinCreate,
    /// It closes a window for good.
    WinFree,
    /// It takes memory out of a window.
    WinDetach,
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
    /// It answers one-sided events with memory of the caller, and so completes the caller's own.
    Offer,
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
    /// It gives memory to the library, which uses it until it is taken back.
    Attach,
    /// It takes such memory back.
    Detach,
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
    /// Memory that the library keeps using.
    Attached,
    /// Memory that the library lets go or frees.
    Released,
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
    /// The bindings in which it plays that part, where the interfaces differ.
    pub bindings: Bindings,
    /// Bindings of which some library declares it INTENT(IN), although the library may change what it names.
    pub read_only: Bindings,
}

impl Argument {
    /// The part that it plays in a binding.
    pub fn part_in(&self, binding: Binding) -> Part {
        if self.bindings.has(binding) { self.part } else { Part::Other }
    }
}

/// One procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its name in lower case.
    pub name: &'static str,
    /// What it does.
    pub class: Class,
    /// The bindings that have it.
    pub bindings: Bindings,
    /// Its arguments in order.
    pub arguments: Vec<Argument>,
}

/// Rows by name.
type Rows = HashMap<&'static str, Procedure>;

static PROCEDURES: LazyLock<Rows> = LazyLock::new(|| {
    let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    // A test holds that every row is understood.
    rows.filter_map(|line| row(line).ok()).map(|procedure| (procedure.name, procedure)).collect()
});

/// The procedure of that name, in lower case.
pub fn find(name: &str) -> Option<&'static Procedure> {
    if let Some(procedure) = PROCEDURES.get(name) {
        return Some(procedure);
    }
    let rest = name.strip_prefix("rma_").or_else(|| name.strip_prefix("pmpi_"));
    let plain = match rest {
        Some(rest) => format!("mpi_{rest}"),
        None => name.to_string(),
    };
    let counted = plain.strip_suffix("_c").filter(|_| plain.starts_with("mpi_"));
    PROCEDURES.get(plain.as_str()).or_else(|| PROCEDURES.get(counted?))
}

/// All rows, in no order.
pub fn all() -> impl Iterator<Item = &'static Procedure> {
    PROCEDURES.values()
}

/// Whether the name belongs to the library, known or not.
pub fn is_library_name(name: &str) -> bool {
    ["mpi_", "pmpi_", "mpix_", "rma_", "pgo_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Procedures and macros that a code puts around those of the library, described as rows of the table.
#[derive(Clone, Default, Debug)]
pub struct Wrappers {
    rows: HashMap<&'static str, &'static Procedure>,
}

impl Wrappers {
    /// Adds a row. It lives as long as the program, as those of the table do.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the row.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let procedure = row(Box::leak(text.to_ascii_lowercase().into_boxed_str()))?;
        match self.rows.insert(procedure.name, Box::leak(Box::new(procedure))) {
            Some(old) => Err(format!("`{}` is described twice", old.name)),
            None => Ok(()),
        }
    }

    /// The procedure of that name, in lower case: what the code says about itself comes before the table.
    pub fn find(&self, name: &str) -> Option<&'static Procedure> {
        self.rows.get(name).copied().or_else(|| find(name))
    }

    /// Whether a call of that name is of interest.
    pub fn concerns(&self, name: &str) -> bool {
        is_library_name(name) || self.rows.contains_key(name)
    }
}

fn row(line: &'static str) -> Result<Procedure, String> {
    let mut words = line.split_ascii_whitespace();
    let (Some(name), Some(does)) = (words.next(), words.next()) else {
        return Err(
            "a row is the name of a procedure, what it does, and its arguments, as in `halo_recv nonblocking buf:out n request:request`"
                .to_string(),
        );
    };
    let (does, bindings) = marked(does, '@', Bindings::ALL)?;
    let class = word_of(CLASSES, does, "what a procedure does")?;
    let arguments = words.map(argument).collect::<Result<Vec<Argument>, String>>()?;
    Ok(Procedure { name, class, bindings, arguments })
}

fn argument(word: &'static str) -> Result<Argument, String> {
    let (keyword, marks) = match word.split_once(':') {
        Some((keyword, marks)) => (keyword, Some(marks)),
        None => (word, None),
    };
    let Some(marks) = marks else {
        let (bindings, read_only) = (Bindings::ALL, Bindings::NONE);
        return Ok(Argument { keyword, part: Part::Other, bindings, read_only });
    };
    let (marks, read_only) = marked(marks, '!', Bindings::NONE)?;
    let (part, bindings) = marked(marks, '@', Bindings::ALL)?;
    Ok(Argument { keyword, part: word_of(PARTS, part, "the part of an argument")?, bindings, read_only })
}

/// A word and the bindings behind its mark.
fn marked(word: &'static str, mark: char, without: Bindings) -> Result<(&'static str, Bindings), String> {
    match word.split_once(mark) {
        Some((word, bindings)) => Ok((word, Bindings::parse(bindings)?)),
        None => Ok((word, without)),
    }
}

fn word_of<T: Copy>(table: &[(&'static str, T)], word: &str, what: &str) -> Result<T, String> {
    match table.iter().find(|(own, _)| *own == word) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = table.iter().map(|(own, _)| *own).collect();
            Err(format!("`{word}` is no word for {what}; the words are {}", words.join(", ")))
        }
    }
}

const PARTS: &[(&str, Part)] = &[
    ("in", Part::Buffer(Direction::In)),
    ("out", Part::Buffer(Direction::Out)),
    ("inout", Part::Buffer(Direction::InOut)),
    ("window", Part::Window),
    ("attached", Part::Attached),
    ("released", Part::Released),
    ("type", Part::Type),
    ("request", Part::Request),
    ("requests", Part::Requests),
    ("win", Part::Win),
    ("location", Part::Location),
    ("address", Part::Address),
    ("newtype", Part::NewType),
    ("displs", Part::Displacements),
    ("types", Part::Types),
    ("state", Part::State),
    ("callback", Part::Callback),
    ("flag", Part::Flag),
];

const CLASSES: &[(&str, Class)] = &[
    ("blocking", Class::Blocking),
    ("nonblocking", Class::Nonblocking),
    ("persistent", Class::Persistent),
    ("partitioned", Class::Partitioned),
    ("ready", Class::Ready),
    ("start", Class::Start),
    ("finish", Class::Finish),
    ("finish-some", Class::FinishSome),
    ("test", Class::Test),
    ("request-free", Class::RequestFree),
    ("split", Class::Split),
    ("split-end", Class::SplitEnd),
    ("win-create", Class::WinCreate),
    ("win-free", Class::WinFree),
    ("win-detach", Class::WinDetach),
    ("fence", Class::Fence),
    ("post", Class::Post),
    ("access", Class::Access),
    ("complete", Class::Complete),
    ("wait", Class::Wait),
    ("wait-test", Class::WaitTest),
    ("lock", Class::Lock),
    ("unlock", Class::Unlock),
    ("flush", Class::Flush),
    ("win-sync", Class::WinSync),
    ("transfer", Class::Transfer),
    ("offer", Class::Offer),
    ("barrier", Class::Barrier),
    ("address", Class::Address),
    ("datatype", Class::Datatype),
    ("sync-reg", Class::SyncReg),
    ("callback", Class::Callback),
    ("attach", Class::Attach),
    ("detach", Class::Detach),
    ("plain", Class::Plain),
];

#[cfg(test)]
mod test {
    use super::{Class, PROCEDURES, Part, TABLE, Wrappers, find, row};

    #[test]
    fn every_row_is_understood() {
        let rows: Vec<_> = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        for line in &rows {
            assert!(row(line).is_ok(), "{line}: {:?}", row(line));
        }
        assert_eq!(PROCEDURES.len(), rows.len(), "a row of the table is repeated");
    }

    #[test]
    fn other_prefixes_lead_to_the_same_row() {
        assert_eq!(find("rma_sync_reg").map(|procedure| procedure.class), Some(Class::SyncReg));
        assert_eq!(find("pmpi_irecv"), find("mpi_irecv"));
        assert_eq!(find("irecv"), None);
        assert_eq!(find("mpi_irecv_c"), find("mpi_irecv"));
        assert_eq!(find("pmpi_put_c"), find("mpi_put"));
        // This one has more arguments in its large form.
        assert_ne!(find("mpi_type_get_contents_c"), find("mpi_type_get_contents"));
    }

    #[test]
    fn a_wrapper_is_a_row_and_a_bad_row_is_told() {
        let mut wrappers = Wrappers::default();
        wrappers.add("Halo_Recv nonblocking buf:out n request:request").expect("the row is right");
        let found = wrappers.find("halo_recv").expect("the row is there");
        assert_eq!((found.class, found.arguments[2].part), (Class::Nonblocking, Part::Request));
        assert!(
            wrappers.concerns("halo_recv") && wrappers.concerns("mpi_send") && !wrappers.concerns("work")
        );
        assert_eq!(wrappers.find("mpi_send"), find("mpi_send"));
        for (text, part) in [
            ("halo_recv plain", "described twice"),
            ("lonely", "a row is the name"),
            ("x sometimes buf:out", "`sometimes` is no word for what a procedure does"),
            (
                "x blocking buf:outward",
                "`outward` is no word for the part of an argument; the words are in, out",
            ),
        ] {
            let error = wrappers.add(text).expect_err("the row is wrong");
            assert!(error.contains(part), "{error}");
        }
    }
}
