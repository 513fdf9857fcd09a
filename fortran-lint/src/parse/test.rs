//! Statements: a text and how it is understood. Never looks at a rule.

use expect_test::{Expect, expect};

use super::{StatementKind, Tree, parse};
use crate::form::Form;

/// One line per statement: its shape in short, and its exact text.
fn check(form: Form, text: &str, expected: Expect) {
    let tree = parse(text.as_bytes(), form);
    let mut out = String::new();
    for statement in &tree.statements {
        let place = text[statement.span.range()].replace('\n', "|");
        let label = statement.label.map(|label| format!("{label}: ")).unwrap_or_default();
        out.push_str(&format!("{label}{} `{place}`\n", shape(&tree, &statement.kind)));
    }
    expected.assert_eq(&out);
}

fn fixed(text: &str, expected: Expect) {
    check(Form::Fixed, text, expected);
}

fn free(text: &str, expected: Expect) {
    check(Form::Free, text, expected);
}

fn shape(tree: &Tree, kind: &StatementKind) -> String {
    let root = |id| tree.root(id).map_or("?", |symbol| tree.symbols.name(symbol)).to_string();
    match kind {
        StatementKind::Assignment { target, .. } => format!("assign {}", root(*target)),
        StatementKind::Call { procedure, args } => {
            format!("call {}/{}", root(*procedure), tree.list(*args).len())
        }
        StatementKind::Do { kind, end_label, .. } => format!("do {kind:?} {end_label:?}"),
        StatementKind::Declaration { entities, attributes, .. } => {
            let names: Vec<&str> =
                entities.iter().map(|entity| tree.symbols.name(entity.name.symbol)).collect();
            format!("declare {} {attributes:?}", names.join(","))
        }
        StatementKind::Unit { kind, name, dummies, .. } => {
            format!("{kind:?} {}/{}", name.map_or("?", |name| tree.symbols.name(name.symbol)), dummies.len())
        }
        other => {
            let text = format!("{other:?}");
            let length = text.find([' ', '(', '{']).unwrap_or(text.len());
            text[..length].to_string()
        }
    }
}

#[test]
fn blanks_mean_nothing_in_fixed_form() {
    fixed(
        "      DO 300 I = 1, 5\n      DO 300 I = 1. 5\n      D O30 0J=1,N\n  300 CON TINUE\n      REAL*8E5\n      CHARACTER*2E5,F\n      GO TO 300\n      ENDIF\n",
        expect![[r#"
            do Counted Some(300) `DO 300 I = 1, 5`
            assign do300i `DO 300 I = 1. 5`
            do Counted Some(300) `D O30 0J=1,N`
            300: Continue `CON TINUE`
            declare e5 [] `REAL*8E5`
            declare e5,f [] `CHARACTER*2E5,F`
            Goto `GO TO 300`
            EndIf `ENDIF`
        "#]],
    );
}

#[test]
fn no_word_is_reserved() {
    free(
        "if = 1\nif (if) if(1) = if\ndo = 2\nend = 3\ncall(1) = 4\nformat(3) = 5\nreal(1) = 2.\nwhere(1) = 0\nread(5) = 1\nthen = 1\nif (a) then = 1\nprogram = 1\n",
        expect![[r#"
            assign if `if = 1`
            IfStatement `if (if)`
            assign if `if(1) = if`
            assign do `do = 2`
            assign end `end = 3`
            assign call `call(1) = 4`
            assign format `format(3) = 5`
            assign real `real(1) = 2.`
            assign where `where(1) = 0`
            assign read `read(5) = 1`
            assign then `then = 1`
            IfStatement `if (a)`
            assign then `then = 1`
            assign program `program = 1`
        "#]],
    );
}

#[test]
fn hollerith_constants_keep_their_blanks() {
    fixed(
        "      CALL F(5HA!B'C, X)\n      DATA X /3*4H) , /\n      REAL*8 H\n   10 FORMAT(1X,5H'!)),I3)\n      X = 1\n",
        expect![[r#"
            call f/2 `CALL F(5HA!B'C, X)`
            Data `DATA X /3*4H) , /`
            declare h [] `REAL*8 H`
            10: Format `FORMAT(1X,5H'!)),I3)`
            assign x `X = 1`
        "#]],
    );
}

#[test]
fn continuations_of_both_forms() {
    fixed(
        "      CALL F(A,\nC     comment, don't stop\n\n#ifdef X\n     1  B,\n#else\n     1  C,\n#endif\n     2  D)\n\tX = 1\n\t1+ 2\n",
        expect![[r#"
            call f/3 `CALL F(A,|C     comment, don't stop||#ifdef X|     1  B,|#else|     1  C,|#endif|     2  D)`
            call f/3 `CALL F(A,|C     comment, don't stop||#ifdef X|     1  B,|#else|     1  C,|#endif|     2  D)`
            assign x `X = 1|	1+ 2`
        "#]],
    );
    free(
        "call f(a, & ! comment\n\n  ! another\n  & b, 'it''s & &\n     & all', &\n c)\nx = 'a!b' ; y = 2\nca&\n&ll g\n",
        expect![[r#"
            call f/4 `call f(a, & ! comment||  ! another|  & b, 'it''s & &|     & all', &| c)`
            assign x `x = 'a!b'`
            assign y `y = 2`
            call g/0 `ca&|&ll g`
        "#]],
    );
}

#[test]
fn text_behind_column_72_is_read_only_when_it_must() {
    let numbered = format!("{:<72}X(10", "      CALL F(A)");
    fixed(
        &numbered,
        expect![[r#"
        call f/1 `CALL F(A)`
    "#]],
    );
    let long = format!("{:<70}, BB)", "      CALL F(A");
    let tree = parse(long.as_bytes(), Form::Fixed);
    assert_eq!(shape(&tree, &tree.statements[0].kind), "call f/2");
}

#[test]
fn declarations_and_headers() {
    free(
        "real function f(x) result(y)\nrecursive integer(4) function g()\nmodule subroutine s(a, *, b)\nmodule procedures\nmodule procedure p\n\
         integer(kind=4), dimension(3), volatile :: a, b(5) = 1\ntype(t), pointer :: q => null()\ntype :: t\nclass(t), intent(in) :: self\n\
         double precision x*8, y(3)\ncharacter(len=*), asynchronous c*4\nend type\nprocedure(f), pointer :: h\ninteger, save, target :: z\n",
        expect![[r#"
            Function f/1 `real function f(x) result(y)`
            Function g/0 `recursive integer(4) function g()`
            Subroutine s/2 `module subroutine s(a, *, b)`
            Module procedures/0 `module procedures`
            ModuleProcedure p/0 `module procedure p`
            declare a,b [volatile] `integer(kind=4), dimension(3), volatile :: a, b(5) = 1`
            declare q [pointer] `type(t), pointer :: q => null()`
            TypeDefinition `type :: t`
            declare self [intent(in)] `class(t), intent(in) :: self`
            declare x,y [] `double precision x*8, y(3)`
            Unknown `character(len=*), asynchronous c*4`
            EndType `end type`
            declare h [pointer external] `procedure(f), pointer :: h`
            declare z [target save] `integer, save, target :: z`
        "#]],
    );
}

#[test]
fn numbers_and_operators_are_told_apart() {
    free(
        "x = 1.eq.2\nx = 1.e5 + 1.d0 + 1._dp + .5 + 1.and.2\nx = 0..and.y\nx = b'01' // c_'x'\nx = [real :: 1, 2](1)\nx = (/ 1, 2 /)\nx = a(::2) + a(1:) + a(:, 3)\n",
        expect![[r#"
            assign x `x = 1.eq.2`
            assign x `x = 1.e5 + 1.d0 + 1._dp + .5 + 1.and.2`
            assign x `x = 0..and.y`
            assign x `x = b'01' // c_'x'`
            Unknown `x = [real :: 1, 2](1)`
            assign x `x = (/ 1, 2 /)`
            assign x `x = a(::2) + a(1:) + a(:, 3)`
        "#]],
    );
}

#[test]
fn macros_of_the_preprocessor_pass() {
    fixed(
        "      _RL xx(nn), y\n      _EXCH_XYZ(a, b)\n      _BARRIER\n",
        expect![[r#"
            declare xx,y [] `_RL xx(nn), y`
            call _exch_xyz/2 `_EXCH_XYZ(a, b)`
            call _barrier/0 `_BARRIER`
        "#]],
    );
}

#[test]
fn a_macro_may_hold_the_bounds_of_a_loop() {
    free(
        "do thread = THREAD_RANGE\nend do\ndo i = 1\n",
        expect![[r#"
            do Counted None `do thread = THREAD_RANGE`
            EndDo `end do`
            Unknown `do i = 1`
        "#]],
    );
}

#[test]
fn one_bad_statement_costs_one_statement() {
    free(
        "x = 1\nthis is no Fortran\ny = ) 2\nif (a) what ever\n?? ; z = 3\n",
        expect![[r#"
            assign x `x = 1`
            Unknown `this is no Fortran`
            Unknown `y = ) 2`
            Unknown `if (a) what ever`
            Unknown `??`
            assign z `z = 3`
        "#]],
    );
}
