//! The tolerant tree of one file: statements in order, expressions in one arena. Never knows what a name means.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use rma_source::Span;

use crate::source::{Inclusion, Origin};

/// A name of the file, in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(pub u32);

/// All names of a file.
#[derive(Default, Debug)]
pub struct Symbols {
    index: HashMap<Box<str>, Symbol, BuildHasherDefault<Quick>>,
    names: Vec<Box<str>>,
}

/// A hash that takes little time for short names.
#[derive(Clone, Copy, Default, Debug)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR).rotate_left(29);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u8(&mut self, _: u8) {
        // The end of a text: names alone are hashed.
    }

    fn finish(&self) -> u64 {
        // The table takes the low bits for the place and the high ones for the tag.
        self.0 ^ (self.0 >> 32)
    }
}

impl Symbols {
    /// The symbol of `name`, which is in lower case.
    pub fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.index.get(name) {
            return symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(name.into());
        self.index.insert(name.into(), symbol);
        symbol
    }

    /// All names, in the order of their symbols.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The symbol of a name that the file uses.
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.index.get(name).copied()
    }

    /// All names of the file.
    pub fn all(&self) -> impl Iterator<Item = (Symbol, &str)> {
        self.names.iter().enumerate().map(|(i, name)| (Symbol(i as u32), &**name))
    }

    /// The name.
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }
}

/// A name and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The name.
    pub symbol: Symbol,
    /// The place.
    pub span: Span,
}

/// Index of an expression in its [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExprId(pub u32);

/// A list of expressions in its [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct List {
    start: u32,
    length: u32,
}

impl List {
    pub(super) fn moved(self, by: u32) -> List {
        List { start: self.start + by, length: self.length }
    }
}

/// An expression with its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The place.
    pub span: Span,
}

/// The shapes of expressions.
#[derive(Clone, Copy, Debug)]
pub enum ExprKind {
    /// A name alone.
    Name(Symbol),
    /// An array element, a section, a substring or a function reference: the syntax is the same.
    Reference {
        /// What is subscripted or called.
        base: ExprId,
        /// The subscripts or arguments.
        args: List,
    },
    /// `base%name`.
    Component {
        /// The parent object.
        base: ExprId,
        /// The component.
        name: Symbol,
    },
    /// A literal.
    Literal(Literal),
    /// Operands and the text of the operators between them; precedence is of no concern here.
    Operation {
        /// The operators in order, as one text.
        operators: Symbol,
        /// The operands.
        operands: List,
    },
    /// `(x)`, which is an expression and no variable any more.
    Paren(ExprId),
    /// `(re, im)`.
    Complex(ExprId, ExprId),
    /// `low:high:stride`.
    Section {
        /// First index.
        low: Option<ExprId>,
        /// Last index.
        high: Option<ExprId>,
        /// Step.
        stride: Option<ExprId>,
    },
    /// `name = value` in an argument list.
    Keyword {
        /// The keyword.
        name: Symbol,
        /// The value.
        value: ExprId,
    },
    /// `(/ … /)` or `[ … ]`.
    Array(List),
    /// `(items, i = 1, n)`.
    ImpliedDo {
        /// What is repeated.
        items: List,
        /// The loop variable.
        variable: Symbol,
        /// Its bounds.
        bounds: List,
    },
    /// `*10` or `&10` in a call.
    AlternateReturn(u32),
    /// `*` as a bound, a format or a unit; `..` as a rank.
    Star,
    /// `%val(x)` and its kin.
    Percent {
        /// `val`, `ref` or `loc`.
        name: Symbol,
        /// The argument.
        value: ExprId,
    },
    /// `name => target` in ASSOCIATE.
    Alias {
        /// The new name.
        name: Symbol,
        /// What it stands for.
        value: ExprId,
    },
    /// Nothing, as between two commas.
    Missing,
}

/// Literals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// A whole number; too large ones saturate.
    Int(u64),
    /// Any other number.
    Real,
    /// A character or Hollerith constant.
    Text,
    /// `.true.`
    True,
    /// `.false.`
    False,
}

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// Its label.
    pub label: Option<u32>,
    /// From its first to its last character.
    pub span: Span,
}

/// What a type is before its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseType {
    /// INTEGER
    Integer,
    /// REAL
    Real,
    /// DOUBLE PRECISION
    DoublePrecision,
    /// COMPLEX
    Complex,
    /// DOUBLE COMPLEX
    DoubleComplex,
    /// LOGICAL
    Logical,
    /// CHARACTER: a parenthesis may be a substring.
    Character,
    /// BYTE of DEC Fortran.
    Byte,
    /// A derived type, by name where it has one; `TYPE(*)` and `CLASS(*)` have none.
    Derived(Option<Symbol>),
    /// A procedure.
    Procedure,
    /// Whatever the preprocessor makes of a macro.
    Macro,
}

/// Kind of a number, or length of characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Not given.
    Default,
    /// `*8`
    Bytes(u32),
    /// `(8)`, `(kind=wp)`, `(len=n)`
    Value(ExprId),
}

/// Declared type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeSpec {
    /// The type.
    pub base: BaseType,
    /// Its kind or length.
    pub kind: Kind,
}

/// What IMPLICIT gives to names by their first letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImplicitRule {
    /// The first letter.
    pub first: u8,
    /// The last letter.
    pub last: u8,
    /// The type.
    pub spec: TypeSpec,
}

/// Attributes of a declaration, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(u32);

impl Attributes {
    /// None.
    pub const NONE: Attributes = Attributes(0);
    /// VOLATILE
    pub const VOLATILE: Attributes = Attributes(1);
    /// ASYNCHRONOUS
    pub const ASYNCHRONOUS: Attributes = Attributes(1 << 1);
    /// TARGET
    pub const TARGET: Attributes = Attributes(1 << 2);
    /// POINTER
    pub const POINTER: Attributes = Attributes(1 << 3);
    /// ALLOCATABLE
    pub const ALLOCATABLE: Attributes = Attributes(1 << 4);
    /// SAVE, by the statement, by initialisation or by DATA.
    pub const SAVE: Attributes = Attributes(1 << 5);
    /// CONTIGUOUS
    pub const CONTIGUOUS: Attributes = Attributes(1 << 6);
    /// PARAMETER
    pub const PARAMETER: Attributes = Attributes(1 << 7);
    /// EXTERNAL, or a procedure declaration.
    pub const EXTERNAL: Attributes = Attributes(1 << 8);
    /// INTRINSIC
    pub const INTRINSIC: Attributes = Attributes(1 << 9);
    /// VALUE
    pub const VALUE: Attributes = Attributes(1 << 10);
    /// OPTIONAL
    pub const OPTIONAL: Attributes = Attributes(1 << 11);
    /// INTENT(IN)
    pub const INTENT_IN: Attributes = Attributes(1 << 12);
    /// Any other, such as PUBLIC.
    pub const OTHER: Attributes = Attributes(1 << 13);
    /// NOPASS
    pub const NOPASS: Attributes = Attributes(1 << 14);

    /// Whether all of `other` are here.
    pub fn has(self, other: Attributes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Attributes) -> Attributes {
        Attributes(self.0 | other.0)
    }
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 15] = [
            "volatile",
            "asynchronous",
            "target",
            "pointer",
            "allocatable",
            "save",
            "contiguous",
            "parameter",
            "external",
            "intrinsic",
            "value",
            "optional",
            "intent(in)",
            "other",
            "nopass",
        ];
        let set: Vec<&str> =
            NAMES.iter().enumerate().filter(|(i, _)| self.0 >> i & 1 == 1).map(|(_, &name)| name).collect();
        write!(f, "[{}]", set.join(" "))
    }
}

/// One declared name.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// The name.
    pub name: Name,
    /// Bounds, where the declaration gives them.
    pub shape: Option<List>,
    /// A length or kind of its own, as in `c*4`.
    pub length: Option<Kind>,
    /// It has an initial value, which implies SAVE.
    pub is_initialised: bool,
    /// The name behind `=>`: the procedure that is bound to this name of a type.
    pub bound_to: Option<Symbol>,
}

/// A COMMON block of a statement.
#[derive(Clone, Debug)]
pub struct CommonBlock {
    /// Its name; `None` is blank COMMON.
    pub name: Option<Symbol>,
    /// Its members.
    pub members: Vec<Entity>,
}

/// Kinds of program units and procedures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnitKind {
    /// PROGRAM, or statements without a header.
    Program,
    /// SUBROUTINE
    Subroutine,
    /// FUNCTION
    Function,
    /// MODULE
    Module,
    /// SUBMODULE
    Submodule,
    /// BLOCK DATA
    BlockData,
    /// `MODULE PROCEDURE name` of a submodule.
    ModuleProcedure,
}

/// Kinds of block constructs that only nest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockKind {
    /// ASSOCIATE
    Associate,
    /// BLOCK
    Block,
    /// CRITICAL
    Critical,
    /// WHERE
    Where,
    /// FORALL
    Forall,
    /// CHANGE TEAM
    Team,
}

/// How a loop ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DoKind {
    /// `DO i = 1, n` or DO CONCURRENT.
    Counted,
    /// `DO WHILE`.
    While,
    /// `DO` without control.
    Forever,
}

/// Input and output statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// READ and DECODE: items are written to.
    Read,
    /// WRITE, PRINT and ENCODE: items are read.
    Write,
    /// OPEN, CLOSE, INQUIRE and the others.
    Control,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// Start of a program unit or procedure.
    Unit {
        /// Its kind.
        kind: UnitKind,
        /// Its name.
        name: Option<Name>,
        /// Its dummy arguments.
        dummies: Vec<Name>,
        /// Name of the function result where it differs.
        result: Option<Name>,
        /// Declared in the prefix of a function: the result is characters.
        prefix: Option<TypeSpec>,
    },
    /// ENTRY
    Entry {
        /// Its name.
        name: Name,
        /// Its dummy arguments.
        dummies: Vec<Name>,
    },
    /// CONTAINS
    Contains,
    /// END of a program unit; `None` for the bare word.
    EndUnit(Option<UnitKind>),
    /// INTERFACE
    Interface {
        /// The name that its procedures share, where it is a name.
        generic: Option<Name>,
    },
    /// Procedures that share a name: that of their INTERFACE, or the one that GENERIC gives them.
    Specific {
        /// The name that GENERIC gives, where it is a name.
        generic: Option<Name>,
        /// The procedures, or the names that they are bound to.
        procedures: Vec<Name>,
    },
    /// END INTERFACE
    EndInterface,
    /// TYPE definition, or a DEC STRUCTURE, with its name where it has one.
    TypeDefinition(Option<Name>),
    /// END TYPE
    EndType,
    /// A type declaration.
    Declaration {
        /// The type.
        spec: TypeSpec,
        /// Attributes common to all names.
        attributes: Attributes,
        /// DIMENSION attribute.
        shape: Option<List>,
        /// The names.
        entities: Vec<Entity>,
    },
    /// VOLATILE, SAVE, DIMENSION and the other attribute statements.
    Attribute {
        /// What it gives.
        attributes: Attributes,
        /// To whom; empty means everything, as in a bare SAVE.
        entities: Vec<Entity>,
    },
    /// COMMON
    Common(Vec<CommonBlock>),
    /// EQUIVALENCE
    Equivalence(Vec<List>),
    /// IMPLICIT
    Implicit {
        /// It is IMPLICIT NONE.
        is_none: bool,
        /// The types of letters.
        rules: Vec<ImplicitRule>,
    },
    /// NAMELIST: groups and their members.
    Namelist(Vec<(Name, Vec<Name>)>),
    /// `ASSIGN label TO variable`
    Assign {
        /// The label.
        label: u32,
        /// The variable.
        variable: ExprId,
    },
    /// USE
    Use {
        /// The module.
        module: Name,
        /// ONLY was given.
        has_only: bool,
        /// Local names and the names in the module.
        names: Vec<(Symbol, Symbol)>,
    },
    /// INCLUDE
    Include {
        /// The name of the file.
        name: String,
        /// Whether its statements follow.
        inclusion: Inclusion,
    },
    /// Cray `POINTER (p, x)`: pointer and pointee.
    CrayPointer(Vec<(Name, Entity)>),
    /// DATA: the names that get values.
    Data(Vec<Symbol>),
    /// FORMAT
    Format,
    /// `variable = value`, or a statement function.
    Assignment {
        /// Left side.
        target: ExprId,
        /// Right side.
        value: ExprId,
    },
    /// `pointer => target`.
    PointerAssignment {
        /// Left side.
        target: ExprId,
        /// Right side.
        value: ExprId,
    },
    /// CALL
    Call {
        /// The procedure.
        procedure: ExprId,
        /// The arguments.
        args: List,
    },
    /// `IF (condition) statement`: the statement follows in the list.
    IfStatement(ExprId),
    /// `IF (condition) THEN`
    IfThen(ExprId),
    /// ELSE IF
    ElseIf(ExprId),
    /// ELSE
    Else,
    /// END IF
    EndIf,
    /// `IF (x) 10, 20, 30`
    ArithmeticIf {
        /// The value.
        value: ExprId,
        /// The labels.
        labels: Vec<u32>,
    },
    /// DO
    Do {
        /// How it ends.
        kind: DoKind,
        /// The label of its last statement.
        end_label: Option<u32>,
        /// Construct name.
        name: Option<Symbol>,
        /// Loop variable, where there is one.
        variable: Option<ExprId>,
        /// Bounds or condition.
        control: List,
    },
    /// END DO
    EndDo,
    /// CONTINUE
    Continue,
    /// GO TO with one label or several (computed, or all of an assigned list).
    Goto {
        /// The labels.
        labels: Vec<u32>,
        /// What selects among them.
        selector: Option<ExprId>,
    },
    /// CYCLE
    Cycle(Option<Symbol>),
    /// EXIT
    Exit(Option<Symbol>),
    /// RETURN
    Return,
    /// STOP and ERROR STOP
    Stop,
    /// SELECT CASE, SELECT TYPE, SELECT RANK
    Select(Option<ExprId>),
    /// CASE and its kin; `true` for the default.
    Case {
        /// It is the default case.
        is_default: bool,
    },
    /// END SELECT
    EndSelect,
    /// Start of a block that only nests.
    BlockStart {
        /// Its kind.
        kind: BlockKind,
        /// Mask, associations.
        args: List,
    },
    /// ELSEWHERE
    ElseWhere(List),
    /// End of such a block.
    BlockEnd(BlockKind),
    /// `WHERE (mask) statement` and `FORALL (…) statement`: the statement follows in the list.
    Masked(List),
    /// Input and output.
    Io {
        /// Its kind.
        kind: IoKind,
        /// Control list.
        control: List,
        /// Items.
        items: List,
    },
    /// ALLOCATE
    Allocate(List),
    /// DEALLOCATE
    Deallocate(List),
    /// NULLIFY
    Nullify(List),
    /// Understood, and of no concern here.
    Other,
    /// Not understood.
    Unknown,
}

/// What stands between statements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// `#if`
    If,
    /// `#else`
    Else,
    /// `#endif`
    EndIf,
}

/// An included file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Include {
    /// The name that the source gives.
    pub name: String,
    /// Whether its statements follow.
    pub inclusion: Inclusion,
    /// Where it is named.
    pub span: Span,
}

/// Included files that declare constants and procedures only.
const HARMLESS_INCLUDES: &[&str] = &["mpif.h", "mpif-ext.h", "mpif-config.h", "mpiof.h"];

impl Include {
    /// Whether it is a file that was not read and may declare variables.
    pub fn may_hold_names(&self) -> bool {
        let file = self.name.rsplit('/').next().unwrap_or(&self.name);
        self.inclusion == Inclusion::Missing
            && !HARMLESS_INCLUDES.iter().any(|known| file.eq_ignore_ascii_case(known))
    }
}

/// The tree of one file and of what it includes. Places are those of the expanded text.
#[derive(Debug)]
pub struct Tree {
    /// Names.
    pub symbols: Symbols,
    /// Statements in order.
    pub statements: Vec<Statement>,
    /// Preprocessor marks: each stands before the statement with that index.
    pub marks: Vec<(u32, Mark)>,
    /// `#include` lines, each with the index of the statement behind.
    pub includes: Vec<(u32, Include)>,
    /// The way from places to files.
    pub origin: Origin,
    /// Why statements were not understood, by their indices.
    pub reasons: HashMap<u32, Box<str>>,
    exprs: Vec<Expr>,
    lists: Vec<ExprId>,
    has_missing_files: bool,
    /// Names that were seen to stand for types although nothing defines them.
    macro_types: Vec<Box<str>>,
}

impl Tree {
    /// A tree without statements.
    pub fn new(origin: Origin) -> Tree {
        Tree {
            symbols: Symbols::default(),
            statements: Vec::new(),
            marks: Vec::new(),
            includes: Vec::new(),
            origin,
            reasons: HashMap::new(),
            exprs: Vec::new(),
            lists: Vec::new(),
            has_missing_files: false,
            macro_types: Vec::new(),
        }
    }

    /// Notes that a name stands for a type although nothing defines it.
    pub(super) fn note_macro_type(&mut self, name: &str) {
        if !self.is_macro_type(name) {
            self.macro_types.push(name.into());
        }
    }

    /// Whether a name was seen to stand for a type.
    pub(super) fn is_macro_type(&self, name: &str) -> bool {
        self.macro_types.iter().any(|own| **own == *name)
    }

    /// Names that were seen to stand for types.
    pub(super) fn macro_types(&self) -> &[Box<str>] {
        &self.macro_types
    }

    /// A tree for a part of this one's text, which knows of the files that are missing.
    pub(super) fn part(&self) -> Tree {
        Tree {
            has_missing_files: self.has_missing_files,
            macro_types: self.macro_types.clone(),
            ..Tree::new(self.origin.clone())
        }
    }

    /// Notes an `#include` line before the statement with that index.
    pub(super) fn add_include(&mut self, at: u32, include: Include) {
        self.has_missing_files |= include.inclusion == Inclusion::Missing;
        self.includes.push((at, include));
    }

    pub(super) fn n_exprs(&self) -> u32 {
        self.exprs.len() as u32
    }

    pub(super) fn n_list_items(&self) -> u32 {
        self.lists.len() as u32
    }

    /// Adds all expressions of another tree, changed as the functions say.
    pub(super) fn take_exprs(
        &mut self,
        from: &Tree,
        kind: impl Fn(ExprKind) -> ExprKind,
        span: impl Fn(Span) -> Span,
        n_before: u32,
    ) {
        self.exprs
            .extend(from.exprs.iter().map(|expr| Expr { kind: kind(expr.kind), span: span(expr.span) }));
        self.lists.extend(from.lists.iter().map(|id| ExprId(id.0 + n_before)));
    }

    /// Adds a mark before the next statement; a condition around nothing leaves no trace.
    pub(super) fn mark(&mut self, mark: Mark) {
        let at = self.statements.len() as u32;
        if mark == Mark::EndIf {
            let here = |(place, mark): &&(u32, Mark)| *place == at && *mark != Mark::EndIf;
            let n_else = self.marks.iter().rev().take_while(here).position(|(_, mark)| *mark == Mark::If);
            if let Some(n_else) = n_else {
                self.marks.truncate(self.marks.len() - n_else - 1);
                return;
            }
        }
        self.marks.push((at, mark));
    }

    /// Whether a file that may define macros was not found so far.
    pub(super) fn has_missing_files(&self) -> bool {
        self.has_missing_files
    }

    /// Says of the INCLUDE lines from `from` on whether their files were read.
    pub(super) fn note_inclusions(&mut self, from: usize) {
        for statement in &mut self.statements[from..] {
            if let StatementKind::Include { inclusion, .. } = &mut statement.kind {
                *inclusion = self.origin.inclusion(statement.span.start);
            }
        }
    }

    /// Gives back room that was taken for growth: a run holds the trees of all files.
    pub(super) fn shrink(&mut self) {
        self.statements.shrink_to_fit();
        self.exprs.shrink_to_fit();
        self.lists.shrink_to_fit();
    }

    /// Bytes that it takes, about: what statements hold beside themselves is guessed.
    pub fn weight(&self) -> usize {
        /// What a list of names or an entry of a table takes.
        const PIECE: usize = 48;
        let statements = self.statements.len() * (size_of::<Statement>() + PIECE);
        let exprs = self.exprs.len() * size_of::<Expr>() + self.lists.len() * size_of::<ExprId>();
        statements + exprs + (self.symbols.len() + self.marks.len() + self.includes.len()) * PIECE * 2
    }

    /// Takes room for the tree of so many bytes of text.
    pub(super) fn expect(&mut self, n_bytes: usize) {
        self.statements.reserve(n_bytes / 96);
        self.exprs.reserve(n_bytes / 24);
        self.lists.reserve(n_bytes / 32);
    }

    /// The files in which statements were not understood.
    pub(super) fn files_with_unknown(&self) -> BTreeSet<u32> {
        if self.reasons.is_empty() {
            return BTreeSet::new();
        }
        let unknown =
            self.statements.iter().filter(|statement| matches!(statement.kind, StatementKind::Unknown));
        unknown.map(|statement| self.origin.place(statement.span).file).collect()
    }

    /// How many statements were not understood.
    pub fn n_unknown(&self) -> usize {
        self.statements.iter().filter(|statement| matches!(statement.kind, StatementKind::Unknown)).count()
    }

    /// The expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    /// The expressions of a list.
    pub fn list(&self, list: List) -> &[ExprId] {
        &self.lists[list.start as usize..(list.start + list.length) as usize]
    }

    /// All expressions.
    pub fn exprs(&self) -> impl Iterator<Item = (ExprId, &Expr)> {
        self.exprs.iter().enumerate().map(|(i, expr)| (ExprId(i as u32), expr))
    }

    /// The place of an expression.
    pub fn span(&self, id: ExprId) -> Span {
        self.expr(id).span
    }

    /// Adds an expression.
    pub fn add(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.exprs.push(Expr { kind, span });
        ExprId(self.exprs.len() as u32 - 1)
    }

    /// Adds a list.
    pub fn add_list(&mut self, items: &[ExprId]) -> List {
        let start = self.lists.len() as u32;
        self.lists.extend_from_slice(items);
        List { start, length: items.len() as u32 }
    }

    /// The name at the bottom of a designator: `a` of `a(i)%b(j)`.
    pub fn root(&self, id: ExprId) -> Option<Symbol> {
        match self.expr(id).kind {
            ExprKind::Name(symbol) => Some(symbol),
            ExprKind::Reference { base, .. } | ExprKind::Component { base, .. } => self.root(base),
            _ => None,
        }
    }

    /// Whether two expressions are written the same way.
    pub fn same(&self, left: ExprId, right: ExprId) -> bool {
        use ExprKind as E;
        if left == right {
            return true;
        }
        let same_option = |a: Option<ExprId>, b: Option<ExprId>| match (a, b) {
            (Some(a), Some(b)) => self.same(a, b),
            (None, None) => true,
            _ => false,
        };
        match (self.expr(left).kind, self.expr(right).kind) {
            (E::Name(a), E::Name(b)) => a == b,
            (E::Reference { base: a, args: p }, E::Reference { base: b, args: q }) => {
                self.same(a, b) && self.same_list(p, q)
            }
            (E::Component { base: a, name: p }, E::Component { base: b, name: q }) => {
                p == q && self.same(a, b)
            }
            (E::Literal(Literal::Int(a)), E::Literal(Literal::Int(b))) => a == b,
            (E::Paren(a), E::Paren(b)) => self.same(a, b),
            (E::Operation { operators: o, operands: a }, E::Operation { operators: p, operands: b }) => {
                o == p && self.same_list(a, b)
            }
            (E::Section { low: a, high: b, stride: c }, E::Section { low: d, high: e, stride: f }) => {
                same_option(a, d) && same_option(b, e) && same_option(c, f)
            }
            (E::Star, E::Star) => true,
            _ => false,
        }
    }

    /// Whether two lists are written the same way.
    pub fn same_list(&self, left: List, right: List) -> bool {
        let (left, right) = (self.list(left), self.list(right));
        left.len() == right.len() && left.iter().zip(right).all(|(&a, &b)| self.same(a, b))
    }

    /// The value of a whole-number literal.
    pub fn int(&self, id: ExprId) -> Option<u64> {
        match self.expr(id).kind {
            ExprKind::Literal(Literal::Int(value)) => Some(value),
            _ => None,
        }
    }
}
