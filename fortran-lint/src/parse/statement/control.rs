//! Statements that decide what runs next, and CALL. Never resolves a label.

use super::Parser;
use crate::form::Form;
use crate::lex::TokenKind as T;
use crate::parse::cursor::{Cursor, Parsed};
use crate::parse::tree::*;

impl Parser<'_> {
    pub(super) fn condition(&mut self, c: &mut Cursor<'_>) -> Parsed<ExprId> {
        c.expect(T::Open)?;
        let condition = self.e.expr(c)?;
        c.expect(T::Close)?;
        Ok(condition)
    }

    pub(super) fn then(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        if !c.eat_word("then") {
            return Err(c.fail("THEN"));
        }
        self.optional_name(c)?;
        Ok(())
    }

    pub(super) fn if_statement(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
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
            return Err(c.fail("THEN or a statement"));
        }
        Ok(StatementKind::IfStatement(condition))
    }

    fn label(&mut self, c: &mut Cursor<'_>) -> Parsed<u32> {
        c.eat_digits().ok_or_else(|| c.fail("a label"))
    }

    fn labels(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<u32>> {
        let mut labels = vec![self.label(c)?];
        while c.eat(T::Comma) {
            labels.push(self.label(c)?);
        }
        Ok(labels)
    }

    pub(super) fn goto(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        if c.kind(0) == T::Int {
            let labels = vec![self.label(c)?];
            return Ok(StatementKind::Goto { labels, selector: None });
        }
        if c.eat(T::Open) {
            let labels = self.labels(c)?;
            c.expect(T::Close)?;
            c.eat(T::Comma);
            let selector = Some(self.e.expr(c)?);
            return Ok(StatementKind::Goto { labels, selector });
        }
        let (name, span) = c.name()?;
        let symbol = self.e.intern(name);
        let selector = Some(self.e.tree.add(ExprKind::Name(symbol), span));
        // An assigned GO TO may list where it can lead, behind a comma or not.
        let mut labels = Vec::new();
        if c.eat(T::Comma) || c.kind(0) == T::Open {
            c.expect(T::Open)?;
            labels = self.labels(c)?;
            c.expect(T::Close)?;
        }
        Ok(StatementKind::Goto { labels, selector })
    }

    /// ASSIGN 10 TO variable
    pub(super) fn assign(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let label = self.label(c)?;
        if !c.eat_word("to") {
            return Err(c.fail("TO"));
        }
        let variable = self.e.designator(c)?;
        Ok(StatementKind::Assign { label, variable })
    }

    /// RETURN, STOP and their kin, with the value that may follow.
    pub(super) fn leave(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        if !c.is_end() && c.kind(0) != T::Comma {
            self.e.expr(c)?;
        }
        if matches!(keyword, "stop" | "errorstop") && c.eat(T::Comma) {
            // QUIET = condition
            self.name(c)?;
            c.expect(T::Equals)?;
            self.e.expr(c)?;
        }
        Ok(match keyword {
            "return" => StatementKind::Return,
            "pause" => StatementKind::Other,
            _ => StatementKind::Stop,
        })
    }

    pub(super) fn call(&mut self, c: &mut Cursor<'_>) -> Parsed<StatementKind> {
        let procedure = self.e.designator(c)?;
        // The last parenthesis holds the arguments.
        let expr = self.e.tree.expr(procedure).kind;
        Ok(match expr {
            ExprKind::Reference { base, args } => StatementKind::Call { procedure: base, args },
            _ => StatementKind::Call { procedure, args: List::default() },
        })
    }

    pub(super) fn do_statement(
        &mut self,
        c: &mut Cursor<'_>,
        keyword: &str,
        name: Option<Symbol>,
    ) -> Parsed<StatementKind> {
        let end_label = match keyword {
            "do" if c.kind(0) == T::Int || c.kind(0) == T::Real => c.eat_digits(),
            _ => None,
        };
        c.eat(T::Comma);
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
            let control = self.header(c)?;
            self.localities(c)?;
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
        if (bounds.len() < 2 && !is_macro) || bounds.len() > 3 {
            return Err(c.fail("two or three bounds"));
        }
        let control = self.e.tree.add_list(&bounds);
        Ok(make(DoKind::Counted, Some(variable), control))
    }

    /// `(integer :: i = 1:n, mask)` of FORALL and DO CONCURRENT, and the mask of WHERE.
    pub(super) fn header(&mut self, c: &mut Cursor<'_>) -> Parsed<List> {
        c.expect(T::Open)?;
        self.e.type_before_colons(c)?;
        let mut items = vec![self.e.argument(c)?];
        while c.eat(T::Comma) {
            items.push(self.e.argument(c)?);
        }
        c.expect(T::Close)?;
        Ok(self.e.tree.add_list(&items))
    }

    /// LOCAL (a), LOCAL_INIT (a), SHARED (a), REDUCE (+: a), DEFAULT (NONE)
    fn localities(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        while c.kind(0) == T::Word {
            let is_reduction = c.word(0) == "reduce";
            c.bump();
            c.expect(T::Open)?;
            if is_reduction {
                // The operation: an operator or the name of a function.
                c.bump();
                c.expect(T::Colon)?;
            }
            self.names(c)?;
            c.expect(T::Close)?;
        }
        Ok(())
    }

    /// CASE (values), TYPE IS (type), CLASS IS (type), RANK (n)
    pub(super) fn case(&mut self, c: &mut Cursor<'_>, keyword: &str) -> Parsed<StatementKind> {
        match keyword {
            "typeis" | "classis" => {
                c.expect(T::Open)?;
                self.e.type_spec(c, |_| true)?;
                c.expect(T::Close)?;
            }
            _ => {
                let values = self.e.arguments(c)?;
                if self.e.tree.list(values).is_empty() {
                    return Err(c.fail("a value"));
                }
            }
        }
        self.named_end(c, StatementKind::Case { is_default: false })
    }
}
