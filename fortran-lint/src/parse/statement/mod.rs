//! One statement at a time: assignment first, then the keyword it begins with, whose grammar takes every token of it.
//! Never looks at another statement.

mod control;
mod declaration;
mod io;
mod specification;
mod unit;

use rma_source::Span;

use self::declaration::attribute_named;
use super::cursor::{Cursor, Parsed};
use super::expr::Expressions;
use super::keyword;
use super::tree::*;
use super::types::intrinsic_named;
use crate::form::Form;
use crate::lex::TokenKind as T;

/// Parses one statement into the tree; `IF (…) statement` becomes two.
pub(super) fn parse(tree: &mut Tree, c: &mut Cursor<'_>, label: Option<u32>) -> Parsed<()> {
    let mut label = label;
    loop {
        let start = c.span();
        let kind = classify(tree, c, label)?;
        let follows = is_prefix_of_another(&kind);
        let span = match follows {
            true => start.to(c.last_span()),
            false => start.to(end_span(c)),
        };
        tree.statements.push(Statement { kind, label, span });
        if !follows {
            return c.expect_end();
        }
        label = None;
    }
}

fn end_span(c: &mut Cursor<'_>) -> Span {
    let at = c.position();
    c.skip_to_end();
    let span = c.last_span();
    c.rewind(at);
    span
}

fn classify(tree: &mut Tree, c: &mut Cursor<'_>, label: Option<u32>) -> Parsed<StatementKind> {
    let mut p = Parser { e: Expressions::new(tree) };
    // `name: do`
    let mut construct = None;
    if c.kind(0) == T::Word && c.kind(1) == T::Colon {
        construct = Some(p.name(c)?.symbol);
        c.bump();
    }
    if c.kind(0) != T::Word {
        return Err(c.fail("a keyword or a name"));
    }
    if label.is_some() && c.word(0) == "format" && c.kind(1) == T::Open && is_format(c) {
        c.skip_to_end();
        return Ok(StatementKind::Format);
    }
    match assignment_operator(c) {
        Some(T::Equals) => {
            let target = p.e.designator(c)?;
            c.expect(T::Equals)?;
            let value = p.e.expr(c)?;
            // a = b = c and a = b, c of old extensions are not understood.
            return Ok(StatementKind::Assignment { target, value });
        }
        Some(_) => {
            let target = p.e.designator(c)?;
            c.expect(T::Arrow)?;
            let value = p.e.expr(c)?;
            return Ok(StatementKind::PointerAssignment { target, value });
        }
        None => {}
    }
    let start = c.position();
    let keyword = keyword::take(c);
    let understood = match keyword {
        Some(keyword) => p.keyword(c, keyword, construct),
        None => Err(c.fail("a keyword")),
    };
    match understood {
        Ok(kind) if c.is_end() || is_prefix_of_another(&kind) => Ok(kind),
        // In free form a whole word is the keyword; in fixed form a macro's name may begin with one.
        _ if keyword.is_some() && c.form == Form::Free && keyword != Some("attributes") => match understood {
            Ok(_) => Err(c.fail("the end of the statement")),
            Err(error) => Err(error),
        },
        _ => {
            if understood.is_ok() {
                c.fail("the end of the statement");
            }
            c.restart(start);
            p.macro_statement(c)
        }
    }
}

fn is_prefix_of_another(kind: &StatementKind) -> bool {
    matches!(kind, StatementKind::IfStatement(_) | StatementKind::Masked(_))
}

/// Whether the statement is one designator followed by `=` or `=>` that no keyword explains.
fn assignment_operator(c: &Cursor<'_>) -> Option<T> {
    let mut i = 1;
    loop {
        match c.kind(i) {
            T::Open | T::OpenBracket => i = c.matching(i)?,
            T::Percent | T::Dot if c.kind(i + 1) == T::Word => i += 2,
            T::Equals => break,
            T::Arrow => return Some(T::Arrow),
            _ => return None,
        }
    }
    // DO 10 I = 1, 5 without blanks.
    if c.form == Form::Fixed && i == 1 && c.word(0).starts_with("do") {
        let has_comma = c.find_outside(2, |kind| matches!(kind, T::Comma | T::End));
        if has_comma.is_some_and(|at| c.kind(at) == T::Comma) {
            return None;
        }
    }
    Some(T::Equals)
}

/// A FORMAT statement is one parenthesis over edit descriptors, which are words, numbers, literals and separators.
/// An assignment to an array of that name goes on behind it.
fn is_format(c: &Cursor<'_>) -> bool {
    let mut depth = 0usize;
    let mut i = 1;
    loop {
        match c.kind(i) {
            T::Open => depth += 1,
            T::Close if depth == 0 => return false,
            T::Close => depth -= 1,
            T::End => return depth == 0,
            _ if depth == 0 => return false,
            T::Equals | T::Arrow | T::Ampersand | T::OpenBracket | T::CloseBracket => return false,
            _ => {}
        }
        i += 1;
    }
}

struct Parser<'t> {
    e: Expressions<'t>,
}

impl Parser<'_> {
    fn name(&mut self, c: &mut Cursor<'_>) -> Parsed<Name> {
        let (name, span) = c.name()?;
        Ok(Name { symbol: self.e.intern(name), span })
    }

    fn optional_name(&mut self, c: &mut Cursor<'_>) -> Parsed<Option<Name>> {
        if c.is_end() { Ok(None) } else { self.name(c).map(Some) }
    }

    /// Names between commas.
    fn names(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<Name>> {
        let mut names = vec![self.name(c)?];
        while c.eat(T::Comma) {
            names.push(self.name(c)?);
        }
        Ok(names)
    }

    fn optional_arguments(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        if c.kind(0) == T::Open { self.e.arguments(c) } else { Ok(List::default()) }
    }

    fn keyword(
        &mut self,
        c: &mut Cursor<'_>,
        keyword: &str,
        construct: Option<Symbol>,
    ) -> Parsed<StatementKind> {
        use StatementKind as S;
        Ok(match keyword {
            "call" => self.call(c)?,
            "if" => self.if_statement(c)?,
            "elseif" => {
                let condition = self.condition(c)?;
                self.then(c)?;
                S::ElseIf(condition)
            }
            "else" => self.named_end(c, S::Else)?,
            "endif" => self.named_end(c, S::EndIf)?,
            "do" | "dowhile" | "doconcurrent" => self.do_statement(c, keyword, construct)?,
            "enddo" => self.named_end(c, S::EndDo)?,
            "continue" => S::Continue,
            "goto" => self.goto(c)?,
            "assign" => self.assign(c)?,
            "cycle" => S::Cycle(self.optional_name(c)?.map(|name| name.symbol)),
            "exit" => S::Exit(self.optional_name(c)?.map(|name| name.symbol)),
            "return" | "stop" | "errorstop" | "failimage" | "pause" => self.leave(c, keyword)?,
            "syncall" | "syncimages" | "syncmemory" | "syncteam" | "formteam" | "eventpost" | "eventwait"
            | "lock" | "unlock" | "notifywait" => {
                self.optional_arguments(c)?;
                S::Other
            }
            "select" | "selectcase" | "selecttype" | "selectrank" => {
                let args = self.e.arguments(c)?;
                S::Select(self.e.tree.list(args).first().copied())
            }
            "case" | "classis" | "typeis" | "rank" => self.case(c, keyword)?,
            "casedefault" | "classdefault" | "rankdefault" => {
                self.named_end(c, S::Case { is_default: true })?
            }
            "endselect" => self.named_end(c, S::EndSelect)?,
            "where" | "forall" => {
                let args = self.header(c)?;
                match (c.is_end(), keyword) {
                    (false, _) => S::Masked(args),
                    (true, "where") => S::BlockStart { kind: BlockKind::Where, args },
                    (true, _) => S::BlockStart { kind: BlockKind::Forall, args },
                }
            }
            "elsewhere" => {
                let args = self.optional_arguments(c)?;
                self.named_end(c, S::ElseWhere(args))?
            }
            "endwhere" => self.named_end(c, S::BlockEnd(BlockKind::Where))?,
            "endforall" => self.named_end(c, S::BlockEnd(BlockKind::Forall))?,
            "associate" | "changeteam" | "critical" | "block" => {
                let args = self.optional_arguments(c)?;
                let kind = match keyword {
                    "associate" => BlockKind::Associate,
                    "changeteam" => BlockKind::Team,
                    "critical" => BlockKind::Critical,
                    _ => BlockKind::Block,
                };
                S::BlockStart { kind, args }
            }
            "endassociate" => self.named_end(c, S::BlockEnd(BlockKind::Associate))?,
            "endblock" => self.named_end(c, S::BlockEnd(BlockKind::Block))?,
            "endcritical" => self.named_end(c, S::BlockEnd(BlockKind::Critical))?,
            "endteam" => {
                self.optional_arguments(c)?;
                self.named_end(c, S::BlockEnd(BlockKind::Team))?
            }
            "read" | "write" | "print" | "encode" | "decode" | "open" | "close" | "inquire" | "rewind"
            | "backspace" | "endfile" | "flush" | "wait" | "accept" => self.io(c, keyword)?,
            "allocate" => S::Allocate(self.allocation(c)?),
            "deallocate" => S::Deallocate(self.e.arguments(c)?),
            "nullify" => S::Nullify(self.e.arguments(c)?),
            "program" => self.program(c)?,
            "module" => self.module(c)?,
            "moduleprocedure" => self.module_procedure(c)?,
            "submodule" => self.submodule(c)?,
            "blockdata" => {
                let name = self.optional_name(c)?;
                S::Unit { kind: UnitKind::BlockData, name, dummies: Vec::new(), result: None, prefix: None }
            }
            "subroutine" => self.unit(c, UnitKind::Subroutine, None)?,
            "function" => self.unit(c, UnitKind::Function, None)?,
            "attributes" => self.accelerated(c)?,
            "recursive" | "pure" | "elemental" | "impure" | "nonrecursive" | "simple" => {
                let next = keyword::take(c).ok_or_else(|| c.fail("a procedure"))?;
                return self.keyword(c, next, construct);
            }
            "entry" => {
                let name = self.name(c)?;
                let dummies = self.dummies(c)?;
                self.suffix(c)?;
                S::Entry { name, dummies }
            }
            "contains" => S::Contains,
            "end" => S::EndUnit(None),
            "endprogram" => self.named_end(c, S::EndUnit(Some(UnitKind::Program)))?,
            "endmodule" => self.named_end(c, S::EndUnit(Some(UnitKind::Module)))?,
            "endsubmodule" => self.named_end(c, S::EndUnit(Some(UnitKind::Submodule)))?,
            "endsubroutine" => self.named_end(c, S::EndUnit(Some(UnitKind::Subroutine)))?,
            "endfunction" => self.named_end(c, S::EndUnit(Some(UnitKind::Function)))?,
            "endprocedure" => self.named_end(c, S::EndUnit(Some(UnitKind::ModuleProcedure)))?,
            "endblockdata" => self.named_end(c, S::EndUnit(Some(UnitKind::BlockData)))?,
            "interface" => {
                let generic = if c.is_end() { None } else { self.generic_spec(c)? };
                S::Interface { generic }
            }
            "abstractinterface" => S::Interface { generic: None },
            "endinterface" => {
                if !c.is_end() {
                    self.generic_spec(c)?;
                }
                S::EndInterface
            }
            "endtype" | "endstructure" => self.named_end(c, S::EndType)?,
            "endenum" | "union" | "endunion" | "map" | "endmap" | "sequence" => S::Other,
            "structure" => self.structure(c)?,
            "enum" | "enumerator" | "generic" | "final" | "import" | "namelist" | "bind" | "define"
            | "options" | "implicit" | "private" | "public" | "protected" | "procedure" => {
                self.specification(c, keyword)?
            }
            "use" => self.use_statement(c)?,
            "include" => self.include(c)?,
            "common" => self.common(c)?,
            "equivalence" => self.equivalence(c)?,
            "data" => self.data(c)?,
            "pointer" if c.kind(0) == T::Open => self.cray_pointer(c)?,
            "parameter" => self.parameter(c)?,
            "save" => self.save(c)?,
            "intent" => {
                let attributes = self.intent(c)?;
                self.attribute_statement(c, attributes)?
            }
            _ => match (attribute_named(keyword), intrinsic_named(keyword)) {
                (Some(attributes), _) => self.attribute_statement(c, attributes)?,
                (None, base) => self.typed(c, keyword, base)?,
            },
        })
    }

    /// `ATTRIBUTES (DEVICE) :: names` and `ATTRIBUTES (GLOBAL) SUBROUTINE name` of CUDA Fortran.
    fn accelerated(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        self.e.arguments(c)?;
        if c.kind(0) == T::DoubleColon {
            return self.attribute_statement(c, Attributes::OTHER);
        }
        let next = keyword::take(c).ok_or_else(|| c.fail("a procedure"))?;
        self.keyword(c, next, None)
    }

    /// `_RL x(n)`, a type that the preprocessor will fill in, and `MACRO(a, b)`, a statement that it will.
    fn macro_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let is_first = c.position() == 0;
        let word = c.word(0);
        let is_reserved_name = word.starts_with('_');
        if c.form == Form::Free
            && matches!(c.kind(1), T::Comma | T::DoubleColon)
            && c.find_outside(1, |kind| kind == T::DoubleColon).is_some()
        {
            // Nothing else looks like `WORD, attributes :: names`, which templates and unseen macros have for a type.
            c.bump();
            self.e.tree.note_macro_type(word);
            let spec = TypeSpec { base: BaseType::Macro, kind: Kind::Default };
            return self.declaration(c, spec, Attributes::NONE);
        }
        // The definition may stand in a file that was not found.
        let is_known_type = self.e.tree.is_macro_type(word);
        if is_known_type || is_reserved_name || self.e.tree.has_missing_files() {
            let length = match c.form {
                Form::Free => Some(word.len()),
                Form::Fixed => c.line.first_gap.filter(|&gap| is_first && 0 < gap && gap < word.len()),
            };
            // A directive of OpenMP that begins with a macro looks like a type as well; so does, in fixed form, a statement of
            // free form that begins in column 6.
            let is_directive = c.kind(2) == T::End && matches!(c.word(1), "do" | "end" | "enddo");
            let is_type = match c.form {
                Form::Free => c.kind(1) == T::Word && !is_directive,
                Form::Fixed => length.is_some() && !c.line.is_fragment,
            };
            if let Some(length) = length
                && is_type
            {
                c.eat_prefix(length);
                let spec = TypeSpec { base: BaseType::Macro, kind: Kind::Default };
                return self.declaration(c, spec, Attributes::NONE);
            }
        }
        if c.kind(1) != T::Open && !(is_reserved_name && c.kind(1) == T::End) {
            return Err(c.fail("a keyword"));
        }
        self.call(c)
    }

    /// The name of a construct or unit may follow.
    fn named_end(&mut self, c: &mut Cursor<'_>, kind: StatementKind) -> Parsed<StatementKind> {
        self.optional_name(c)?;
        Ok(kind)
    }
}
