//! One statement at a time: assignment first, then the keyword it begins with; declarations have a file of their own.
//! Never looks at another statement.

mod declaration;

use rma_source::Span;

use self::declaration::attribute_named;
use super::cursor::{Cursor, NotUnderstood, Parsed};
use super::expr::Expressions;
use super::keyword;
use super::tree::*;
use crate::form::Form;
use crate::lex::TokenKind as T;
use crate::source::Inclusion;

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
            return if c.is_end() { Ok(()) } else { Err(NotUnderstood) };
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
        return Err(NotUnderstood);
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
    let understood = match keyword::take(c) {
        Some(keyword) => p.keyword(c, keyword, construct),
        None => Err(NotUnderstood),
    };
    match understood {
        Ok(kind) if c.is_end() || is_prefix_of_another(&kind) => Ok(kind),
        _ => {
            c.rewind(start);
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

/// A FORMAT statement ends with its parenthesis; an assignment to an array of that name does not. What stands inside
/// follows other rules, so that parentheses need not match as tokens.
fn is_format(c: &Cursor<'_>) -> bool {
    match c.matching(1) {
        Some(behind) => c.kind(behind) == T::End,
        None => true,
    }
}

struct Parser<'t> {
    e: Expressions<'t>,
}

impl Parser<'_> {
    fn name(&mut self, c: &mut Cursor<'_>) -> Parsed<Name> {
        if c.kind(0) != T::Word {
            return Err(NotUnderstood);
        }
        let name = Name { symbol: self.e.tree.symbols.intern(c.word(0)), span: c.span() };
        c.bump();
        Ok(name)
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
            "else" => {
                self.optional_name(c);
                S::Else
            }
            "endif" => self.finish(c, S::EndIf),
            "do" | "dowhile" | "doconcurrent" => self.do_statement(c, keyword, construct)?,
            "enddo" => self.finish(c, S::EndDo),
            "continue" => S::Continue,
            "goto" => self.goto(c)?,
            "assign" => {
                c.skip_to_end();
                S::Other
            }
            "cycle" => S::Cycle(self.optional_name(c)),
            "exit" => S::Exit(self.optional_name(c)),
            "return" => {
                c.skip_to_end();
                S::Return
            }
            "stop" | "errorstop" | "failimage" => {
                c.skip_to_end();
                S::Stop
            }
            "pause" | "syncall" | "syncimages" | "syncmemory" | "syncteam" | "formteam" | "eventpost"
            | "eventwait" | "lock" | "unlock" | "notifywait" => {
                c.skip_to_end();
                S::Other
            }
            "select" | "selectcase" | "selecttype" | "selectrank" => {
                let args = self.e.arguments(c)?;
                S::Select(self.e.tree.list(args).first().copied())
            }
            "case" | "classis" | "typeis" | "rank" => {
                self.e_skip_parenthesis(c)?;
                self.optional_name(c);
                S::Case { is_default: false }
            }
            "casedefault" | "classdefault" | "rankdefault" => {
                self.optional_name(c);
                S::Case { is_default: true }
            }
            "endselect" => self.finish(c, S::EndSelect),
            "where" | "forall" => {
                let args = self.e.arguments(c)?;
                match (c.is_end(), keyword) {
                    (false, _) => S::Masked(args),
                    (true, "where") => S::BlockStart { kind: BlockKind::Where, args },
                    (true, _) => S::BlockStart { kind: BlockKind::Forall, args },
                }
            }
            "elsewhere" => {
                let args = match c.kind(0) {
                    T::Open => self.e.arguments(c)?,
                    _ => List::default(),
                };
                self.optional_name(c);
                S::ElseWhere(args)
            }
            "endwhere" => self.finish(c, S::BlockEnd(BlockKind::Where)),
            "endforall" => self.finish(c, S::BlockEnd(BlockKind::Forall)),
            "associate" | "changeteam" | "critical" | "block" => {
                let args = match c.kind(0) {
                    T::Open => self.e.arguments(c)?,
                    _ => List::default(),
                };
                let kind = match keyword {
                    "associate" => BlockKind::Associate,
                    "changeteam" => BlockKind::Team,
                    "critical" => BlockKind::Critical,
                    _ => BlockKind::Block,
                };
                S::BlockStart { kind, args }
            }
            "endassociate" => self.finish(c, S::BlockEnd(BlockKind::Associate)),
            "endblock" => self.finish(c, S::BlockEnd(BlockKind::Block)),
            "endcritical" => self.finish(c, S::BlockEnd(BlockKind::Critical)),
            "endteam" => self.finish(c, S::BlockEnd(BlockKind::Team)),
            "read" | "write" | "print" | "encode" | "decode" | "open" | "close" | "inquire" | "rewind"
            | "backspace" | "endfile" | "flush" | "wait" => self.io(c, keyword)?,
            "allocate" => S::Allocate(self.allocation(c)?),
            "deallocate" => S::Deallocate(self.e.arguments(c)?),
            "nullify" => S::Nullify(self.e.arguments(c)?),
            "program" => self.unit(c, UnitKind::Program, None)?,
            "module" => self.module(c)?,
            "moduleprocedure" => {
                let name = self.name(c)?;
                // In an interface block several may follow.
                c.skip_to_end();
                S::Unit {
                    kind: UnitKind::ModuleProcedure,
                    name: Some(name),
                    dummies: Vec::new(),
                    result: None,
                    prefix: None,
                }
            }
            "submodule" => {
                self.e_skip_parenthesis(c)?;
                self.unit(c, UnitKind::Submodule, None)?
            }
            "blockdata" => {
                let name = if c.is_end() { None } else { Some(self.name(c)?) };
                S::Unit { kind: UnitKind::BlockData, name, dummies: Vec::new(), result: None, prefix: None }
            }
            "subroutine" => self.unit(c, UnitKind::Subroutine, None)?,
            "function" => self.unit(c, UnitKind::Function, None)?,
            "recursive" | "pure" | "elemental" | "impure" | "nonrecursive" => {
                let next = keyword::take(c).ok_or(NotUnderstood)?;
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
            "endprogram" => self.finish(c, S::EndUnit(Some(UnitKind::Program))),
            "endmodule" => self.finish(c, S::EndUnit(Some(UnitKind::Module))),
            "endsubmodule" => self.finish(c, S::EndUnit(Some(UnitKind::Submodule))),
            "endsubroutine" => self.finish(c, S::EndUnit(Some(UnitKind::Subroutine))),
            "endfunction" => self.finish(c, S::EndUnit(Some(UnitKind::Function))),
            "endprocedure" => self.finish(c, S::EndUnit(Some(UnitKind::ModuleProcedure))),
            "endblockdata" => self.finish(c, S::EndUnit(Some(UnitKind::BlockData))),
            "interface" | "abstractinterface" => {
                c.skip_to_end();
                S::Interface
            }
            "endinterface" => self.finish(c, S::EndInterface),
            "endtype" | "endstructure" => self.finish(c, S::EndType),
            "structure" => {
                c.skip_to_end();
                S::TypeDefinition
            }
            "enum" | "endenum" | "union" | "endunion" | "map" | "endmap" | "sequence" | "enumerator"
            | "generic" | "final" | "import" | "namelist" | "bind" | "define" | "options" => {
                c.skip_to_end();
                S::Other
            }
            "implicit" => {
                let is_none = c.at_word("none");
                c.skip_to_end();
                S::Implicit { is_none }
            }
            "use" => self.use_statement(c)?,
            "include" => self.include(c)?,
            "common" => self.common(c)?,
            "equivalence" => self.equivalence(c)?,
            "data" => self.data(c)?,
            "pointer" if c.kind(0) == T::Open => self.cray_pointer(c)?,
            "parameter" => self.parameter(c)?,
            "save" => self.save(c)?,
            "procedure" => {
                let interface = c.kind(0) == T::Open;
                if interface {
                    self.e_skip_parenthesis(c)?;
                }
                self.declaration(c, TypeSpec::Numeric, Attributes::EXTERNAL)?
            }
            "intent" => {
                let attributes = self.intent(c)?;
                self.attribute_statement(c, attributes)?
            }
            "private" | "public" | "protected" => {
                c.skip_to_end();
                S::Other
            }
            _ => match attribute_named(keyword) {
                Some(attributes) => self.attribute_statement(c, attributes)?,
                None => self.typed(c, keyword)?,
            },
        })
    }

    /// `_RL x(n)`, a type that the preprocessor will fill in, and `MACRO(a, b)`, a statement that it will.
    fn macro_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let is_first = c.position() == 0;
        if c.word(0).starts_with('_') {
            let length = match c.form {
                Form::Free => Some(c.word(0).len()),
                Form::Fixed => c.line.first_gap.filter(|&gap| is_first && gap < c.word(0).len()),
            };
            let is_type = match c.form {
                Form::Free => c.kind(1) == T::Word,
                Form::Fixed => length.is_some(),
            };
            if let Some(length) = length
                && is_type
            {
                c.eat_prefix(length);
                return self.declaration(c, TypeSpec::Numeric, Attributes::NONE);
            }
        }
        if c.kind(1) != T::Open && !(c.word(0).starts_with('_') && c.kind(1) == T::End) {
            return Err(NotUnderstood);
        }
        self.call(c)
    }

    fn finish(&mut self, c: &mut Cursor<'_>, kind: StatementKind) -> StatementKind {
        // A name, or what an old compiler let pass.
        c.skip_to_end();
        kind
    }

    fn optional_name(&mut self, c: &mut Cursor<'_>) -> Option<Symbol> {
        self.name(c).ok().map(|name| name.symbol)
    }

    fn e_skip_parenthesis(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if c.kind(0) != T::Open {
            return Err(NotUnderstood);
        }
        let behind = c.matching(0).ok_or(NotUnderstood)?;
        for _ in 0..behind {
            c.bump();
        }
        Ok(())
    }

    fn condition(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        c.expect(T::Open)?;
        let condition = self.e.expr(c)?;
        c.expect(T::Close)?;
        Ok(condition)
    }

    fn then(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if !c.eat_word("then") {
            return Err(NotUnderstood);
        }
        self.optional_name(c);
        Ok(())
    }

    fn if_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let condition = self.condition(c)?;
        if c.kind(0) == T::Int {
            let labels = self.labels(c)?;
            return Ok(StatementKind::ArithmeticIf { value: condition, labels });
        }
        let is_then = match c.form {
            Form::Free => c.word(0) == "then" && matches!(c.kind(1), T::End | T::Word),
            // `IF (A) THENX = 5` assigns.
            Form::Fixed => c.word(0).starts_with("then") && c.kind(1) == T::End,
        };
        if is_then {
            self.then(c)?;
            return Ok(StatementKind::IfThen(condition));
        }
        if c.is_end() {
            return Err(NotUnderstood);
        }
        Ok(StatementKind::IfStatement(condition))
    }

    fn labels(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<u32>> {
        let mut labels = vec![c.eat_digits().ok_or(NotUnderstood)?];
        while c.eat(T::Comma) {
            labels.push(c.eat_digits().ok_or(NotUnderstood)?);
        }
        Ok(labels)
    }

    fn goto(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.kind(0) == T::Int {
            let labels = vec![c.eat_digits().ok_or(NotUnderstood)?];
            return Ok(StatementKind::Goto { labels, selector: None });
        }
        if c.eat(T::Open) {
            let labels = self.labels(c)?;
            c.expect(T::Close)?;
            c.eat(T::Comma);
            let selector = Some(self.e.expr(c)?);
            return Ok(StatementKind::Goto { labels, selector });
        }
        let selector = Some(self.e.designator(c)?);
        // An assigned GO TO may list where it can lead; the list was read as subscripts.
        let mut labels = Vec::new();
        if c.eat(T::Comma) && c.eat(T::Open) {
            labels = self.labels(c)?;
            c.expect(T::Close)?;
        }
        Ok(StatementKind::Goto { labels, selector })
    }

    fn call(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let procedure = self.e.designator(c)?;
        // The last parenthesis holds the arguments.
        let expr = self.e.tree.expr(procedure).kind;
        Ok(match expr {
            ExprKind::Reference { base, args } => StatementKind::Call { procedure: base, args },
            _ => StatementKind::Call { procedure, args: List::default() },
        })
    }

    fn do_statement(
        &mut self,
        c: &mut Cursor<'_>,
        keyword: &str,
        name: Option<Symbol>,
    ) -> Parsed<StatementKind> {
        let end_label = match keyword {
            "do" if c.kind(0) == T::Int || c.kind(0) == T::Real => c.eat_digits(),
            _ => None,
        };
        if end_label.is_some() {
            c.eat(T::Comma);
        }
        let make = |kind, variable, control| StatementKind::Do { kind, end_label, name, variable, control };
        if c.is_end() {
            return Ok(make(DoKind::Forever, None, List::default()));
        }
        let is_while = keyword == "dowhile" || (c.at_word("while") && (c.kind(1) == T::Open));
        if is_while {
            if keyword != "dowhile" {
                c.eat_word("while");
            }
            let condition = self.condition(c)?;
            let control = self.e.tree.add_list(&[condition]);
            return Ok(make(DoKind::While, None, control));
        }
        if keyword == "doconcurrent" || (c.at_word("concurrent") && c.kind(1) == T::Open) {
            if keyword != "doconcurrent" {
                c.eat_word("concurrent");
            }
            let control = self.e.arguments(c)?;
            // Locality lists.
            c.skip_to_end();
            return Ok(make(DoKind::Counted, None, control));
        }
        let variable = self.e.designator(c)?;
        c.expect(T::Equals)?;
        let mut bounds = vec![self.e.expr(c)?];
        while c.eat(T::Comma) {
            bounds.push(self.e.expr(c)?);
        }
        // One alone is a macro that holds the comma.
        let is_macro = matches!(self.e.tree.expr(bounds[0]).kind, ExprKind::Name(_));
        if bounds.len() < 2 && !is_macro {
            return Err(NotUnderstood);
        }
        let control = self.e.tree.add_list(&bounds);
        Ok(make(DoKind::Counted, Some(variable), control))
    }

    fn io(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        let kind = match keyword {
            "read" | "decode" => IoKind::Read,
            "write" | "print" | "encode" => IoKind::Write,
            _ => IoKind::Control,
        };
        let control;
        let has_control = c.kind(0) == T::Open && keyword != "print";
        let is_format_only = has_control && keyword == "read" && {
            // READ (fmt), x and READ (5, fmt) x differ by the comma.
            let behind = c.matching(0).ok_or(NotUnderstood)?;
            c.kind(behind) == T::Comma
        };
        if has_control && !is_format_only {
            control = self.control_list(c)?;
            c.eat(T::Comma);
        } else {
            // PRINT fmt, READ fmt, REWIND unit.
            let span = c.span();
            let format = match c.eat(T::Star) {
                true => self.e.tree.add(ExprKind::Star, span),
                false if c.is_end() => self.e.missing(span),
                false => self.e.expr(c)?,
            };
            control = self.e.tree.add_list(&[format]);
            if !c.is_end() {
                c.expect(T::Comma)?;
            }
        }
        let mut items = Vec::new();
        while !c.is_end() {
            items.push(self.e.expr(c)?);
            if !c.eat(T::Comma) {
                break;
            }
        }
        let items = self.e.tree.add_list(&items);
        Ok(StatementKind::Io { kind, control, items })
    }

    /// A control list is an argument list in which `5'x'` of record numbers and `*` may stand.
    fn control_list(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        match c.form {
            _ if c.kind(1) == T::Text && c.kind(2) != T::Comma && c.kind(2) != T::Close => {
                self.e_skip_parenthesis(c)?;
                Ok(List::default())
            }
            _ => self.e.arguments(c),
        }
    }

    fn allocation(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        // ALLOCATE (type :: a(n)): the type is passed over.
        let inner = c.find_outside(1, |kind| matches!(kind, T::DoubleColon | T::Close | T::Comma | T::End));
        if c.kind(0) == T::Open
            && let Some(at) = inner
            && c.kind(at) == T::DoubleColon
        {
            let at = at + c.position();
            c.rewind(at);
            let mut items = Vec::new();
            c.bump();
            while c.kind(0) != T::Close {
                let item = match c.kind(0) == T::Word && c.kind(1) == T::Equals {
                    true => {
                        let name = self.name(c)?;
                        c.bump();
                        let value = self.e.expr(c)?;
                        self.e.tree.add(ExprKind::Keyword { name: name.symbol, value }, name.span)
                    }
                    false => self.e.designator(c)?,
                };
                items.push(item);
                if !c.eat(T::Comma) {
                    break;
                }
            }
            c.expect(T::Close)?;
            return Ok(self.e.tree.add_list(&items));
        }
        self.e.arguments(c)
    }

    // ---- program units -------------------------------------------------------------------------------------------

    fn unit(
        &mut self,
        c: &mut Cursor<'_>,
        kind: UnitKind,
        prefix: Option<TypeSpec>,
    ) -> Parsed<StatementKind> {
        let name = self.name(c)?;
        // REAL*8 FUNCTION F*8(X) of very old codes.
        if kind == UnitKind::Function && c.eat(T::Star) {
            c.eat_digits();
        }
        let dummies = self.dummies(c)?;
        let result = self.suffix(c)?;
        Ok(StatementKind::Unit { kind, name: Some(name), dummies, result, prefix })
    }

    fn dummies(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<Name>> {
        let mut names = Vec::new();
        if !c.eat(T::Open) {
            return Ok(names);
        }
        while c.kind(0) != T::Close {
            // `*` and `&` stand for alternate returns.
            if !c.eat(T::Star) && !c.eat(T::Ampersand) {
                // A macro or an attribute in the list costs only itself.
                match self.name(c) {
                    Ok(name) => names.push(name),
                    Err(error) => return Err(error),
                }
            }
            if !c.eat(T::Comma) {
                break;
            }
        }
        c.expect(T::Close)?;
        Ok(names)
    }

    /// RESULT and BIND behind a procedure header.
    fn suffix(&mut self, c: &mut Cursor<'_>) -> Parsed<Option<Name>> {
        let mut result = None;
        while c.kind(0) == T::Word {
            if c.at_word("result") && c.kind(1) == T::Open {
                c.eat_word("result");
                c.expect(T::Open)?;
                result = Some(self.name(c)?);
                c.expect(T::Close)?;
            } else if c.kind(1) == T::Open {
                c.bump();
                self.e_skip_parenthesis(c)?;
            } else {
                break;
            }
        }
        Ok(result)
    }

    fn module(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        // MODULE SUBROUTINE and MODULE FUNCTION are prefixes; a module may be called that, too.
        let is_prefix = match c.form {
            Form::Free => {
                c.kind(1) == T::Word || matches!(c.word(0), "subroutine" | "function") && c.kind(1) != T::End
            }
            Form::Fixed => c.kind(1) != T::End && (c.at_word("subroutine") || c.at_word("function")),
        };
        if is_prefix {
            let next = keyword::take(c).ok_or(NotUnderstood)?;
            return self.keyword(c, next, None);
        }
        self.unit(c, UnitKind::Module, None)
    }

    fn use_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.eat(T::Comma) {
            // INTRINSIC or NON_INTRINSIC.
            self.name(c)?;
        }
        c.eat(T::DoubleColon);
        let module = self.name(c)?;
        let mut has_only = false;
        let mut names = Vec::new();
        if c.eat(T::Comma) {
            if c.at_word("only") && c.kind(1) == T::Colon {
                c.eat_word("only");
                c.expect(T::Colon)?;
                has_only = true;
            }
            while !c.is_end() {
                let local = self.name(c)?.symbol;
                if c.kind(0) == T::Open {
                    // OPERATOR(+), ASSIGNMENT(=), READ(FORMATTED)
                    self.e_skip_parenthesis(c)?;
                    if c.eat(T::Arrow) {
                        self.name(c)?;
                        self.e_skip_parenthesis(c)?;
                    }
                } else if c.eat(T::Arrow) {
                    let original = self.name(c)?.symbol;
                    names.push((local, original));
                } else {
                    names.push((local, local));
                }
                if !c.eat(T::Comma) {
                    break;
                }
            }
        }
        Ok(StatementKind::Use { module, has_only, names })
    }

    fn include(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let token = c.token(0).filter(|token| token.kind == T::Text).ok_or(NotUnderstood)?;
        let text = c.text_of(token);
        let name = text[1..text.len() - 1].to_string();
        c.skip_to_end();
        // The file parser knows whether it was read.
        Ok(StatementKind::Include { name, inclusion: Inclusion::Missing })
    }
}
