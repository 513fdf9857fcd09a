//! The table of codes: every diagnostic has its code here and its page in `docs/dsl/errors.md`.
//! Never reuses a code for another meaning.

use rma_source::{Diagnostic, Level};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// A stable code.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// As messages show it.
            pub fn text(self) -> &'static str {
                match self {
                    $(Code::$name => $code,)*
                }
            }
        }
    };
}

codes! {
    /// A name that nothing declares.
    Undeclared = "E0001",
    /// Wrong number of indices, or fields of different grids together.
    DimensionMismatch = "E0002",
    /// An index that is not the axis' own name plus or minus a whole number.
    IndexForm = "E0003",
    /// A level that the field does not keep.
    LevelNotKept = "E0004",
    /// An update in place that reads neighbours that it also writes.
    ReadWriteConflict = "E0005",
    /// An update whose left side is not the point itself.
    StoreToNeighbour = "E0006",
    /// A schedule that is not legal for the program.
    MissingAssurance = "E0007",
    /// A read, probe or source outside the grid without a rule.
    OutsideGrid = "E0008",
    /// Boundary rules that are doubled or half periodic.
    BoundaryRules = "E0009",
    /// A point that a staggered field does not have.
    IllegalStaggering = "E0010",
    /// A real number where an integer is needed.
    IntegerReal = "E0011",
    /// Two updates of one field in one step.
    OrderDependence = "E0012",
    /// A coloured update that reads its own colour.
    OwnColour = "E0013",
    /// A parameter outside its range.
    ParamOutOfRange = "E0014",
    /// `--set` of something that is not a parameter.
    UnknownSetting = "E0015",
    /// `--set` of something that is not a number of the right kind.
    SettingNotANumber = "E0016",
    /// Arithmetic that fails before the first step.
    ArithmeticAtStart = "E0017",
    /// Too few points for the accesses.
    GridTooSmall = "E0018",
    /// Too many points to hold.
    GridTooLarge = "E0019",
    /// An `every` that is not positive.
    IntervalNotPositive = "E0020",
    /// Text that is not of the language.
    Syntax = "E0021",
    /// Nesting, text or expansion beyond a limit.
    TooLarge = "E0022",
    /// A part of the language that is not supported yet.
    Unsupported = "E0023",
    /// Two declarations of one name.
    DeclaredTwice = "E0024",
    /// A statement that must be there once, missing or doubled.
    Missing = "E0025",
    /// Types that do not fit an operator or a use.
    TypeMismatch = "E0026",
    /// A name used as something that it is not.
    WrongUse = "E0027",
    /// A number, option or word out of its range.
    BadOption = "E0028",
    /// A declaration that uses itself.
    Cycle = "E0029",
    /// A parameter, function or let that nothing uses.
    Unused = "W0001",
    /// A field that nothing looks at.
    FieldUnread = "W0002",
    /// A step that makes errors grow.
    Unstable = "W0003",
}

impl Code {
    /// Errors start with `E`, warnings with `W`.
    pub fn level(self) -> Level {
        match self.text().starts_with('E') {
            true => Level::Error,
            false => Level::Warning,
        }
    }

    /// A finding of this code.
    pub fn error(self, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.level(), self.text(), title)
    }
}

/// The nearest of some names to a misspelt one, if any is near.
pub fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(1);
    names
        .filter(|name| *name != wrong)
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Number of insertions, deletions, replacements and swaps of adjacent characters between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if WORD_MAX < a.len().max(b.len()) {
        return usize::MAX;
    }
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if 1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// Longest word that is compared.
const WORD_MAX: usize = 64;
