//! Shapes that large public codes were seen to have: each as a text and how it is understood. Never looks at a rule.

use expect_test::{Expect, expect};

use super::test::{check, tokens_are_taken};
use super::{StatementKind, parse};
use crate::form::Form;
use crate::source::Reading;

fn fixed(text: &str, expected: Expect) {
    check(Form::Fixed, text, expected);
}

fn free(text: &str, expected: Expect) {
    check(Form::Free, text, expected);
}

#[test]
fn tabs_and_carriage_returns() {
    fixed(
        "\tCALL F(A,\r\n\t1 B)\r\n10\tX = 1\r\n   20\tY = 2\r\n\t\tZ = 3\r\n",
        expect![[r#"
            call f/2 `CALL F(A,|	1 B)`
            10: assign x `X = 1`
            20: assign y `Y = 2`
            assign z `Z = 3`
        "#]],
    );
    free(
        "\tcall f(a, &\r\n\t\tb)\r\n10\tx = 1\r\n\r\n",
        expect![[r#"
            call f/2 `call f(a, &|		b)`
            10: assign x `x = 1`
        "#]],
    );
}

#[test]
fn loops_share_their_last_statement() {
    fixed(
        "      DO300I=1,N\n      DO 300,J=1,M\n      DO 300 WHILE (X.LT.1)\n300   A(I,J)=0\n      DO 10 I = 1, 3\n   10 ENDDO\n",
        expect![[r#"
            do Counted Some(300) `DO300I=1,N`
            do Counted Some(300) `DO 300,J=1,M`
            do While Some(300) `DO 300 WHILE (X.LT.1)`
            300: assign a `A(I,J)=0`
            do Counted Some(10) `DO 10 I = 1, 3`
            10: EndDo `ENDDO`
        "#]],
    );
}

#[test]
fn glued_and_split_keywords() {
    fixed(
        "      GOTO300\n      G O T O 300\n      IF(A)GOTO10\n      ELSEIF(B)THEN\n      ELSE IF (B) THEN\n      END IF\n      E N D D O\n      CALLSUB(X)\n      INTEGERI,J\n      \
         DOUBLEPRECISIONX\n      REALFUNCTIONF(X)\n      RETURN1\n      STOP77\n      COMMON/BLK/X,Y\n      READ(5,*)X\n      ASSIGN10TOL\n      GOTOL\n      GOTOL,(10,20)\n      GOTO(10,20),I\n      \
         IF(X)10,20,30\n      ENDFILE9\n      BLOCKDATABD\n      IMPLICITREAL*8(A-H,O-Z)\n      SELECTCASE(I)\n      CASEDEFAULT\n      ENDSELECT\n      DOUBLE COMPLEX Z\n",
        expect![[r#"
            Goto `GOTO300`
            Goto `G O T O 300`
            IfStatement `IF(A)`
            Goto `GOTO10`
            ElseIf `ELSEIF(B)THEN`
            ElseIf `ELSE IF (B) THEN`
            EndIf `END IF`
            EndDo `E N D D O`
            call sub/1 `CALLSUB(X)`
            declare i,j [] `INTEGERI,J`
            declare x [] `DOUBLEPRECISIONX`
            Function f/1 `REALFUNCTIONF(X)`
            Return `RETURN1`
            Stop `STOP77`
            Common `COMMON/BLK/X,Y`
            Io `READ(5,*)X`
            Assign `ASSIGN10TOL`
            Goto `GOTOL`
            Goto `GOTOL,(10,20)`
            Goto `GOTO(10,20),I`
            ArithmeticIf `IF(X)10,20,30`
            Io `ENDFILE9`
            BlockData bd/0 `BLOCKDATABD`
            Implicit `IMPLICITREAL*8(A-H,O-Z)`
            Select `SELECTCASE(I)`
            Case `CASEDEFAULT`
            EndSelect `ENDSELECT`
            declare z [] `DOUBLE COMPLEX Z`
        "#]],
    );
}

#[test]
fn one_file_reads_as_both_forms() {
    // The mark in column 73 is beyond the text in fixed form; one in column 72 belongs to it.
    let both = format!("{:<72}&\n     &          B)\n", "      CALL F(A,");
    fixed(
        &both,
        expect![[r#"
        call f/2 `CALL F(A,                                                         &|     &          B)`
    "#]],
    );
    free(
        &both,
        expect![[r#"
        call f/2 `CALL F(A,                                                         &|     &          B)`
    "#]],
    );
    let at_72 = format!("{:<71}&\n     &          B)\n", "      CALL F(A,");
    fixed(
        &at_72,
        expect![[r#"
        call f/2 `CALL F(A,                                                        &|     &          B)`
    "#]],
    );
}

#[test]
fn comments_and_conditions_between_continuations() {
    fixed(
        "      CALL F(A,\n\n!     text\n* text\nC     don't\n#ifdef X\n     1  B,\n#endif\n#  if defined (Y)\n     2  C,\n#elif Z\n     2  D,\n#endif /* Y */\n     3  E)\n",
        expect![[r#"
            call f/4 `CALL F(A,||!     text|* text|C     don't|#ifdef X|     1  B,|#endif|#  if defined (Y)|     2  C,|#elif Z|     2  D,|#endif /* Y */|     3  E)`
            call f/3 `CALL F(A,||!     text|* text|C     don't|#ifdef X|     1  B,|#endif|#  if defined (Y)|     2  C,|#elif Z|     2  D,|#endif /* Y */|     3  E)`
        "#]],
    );
    // Two beginnings, one end.
    fixed(
        "#ifdef X\n      CALL F(A,\n#else\n      CALL G(A,\n#endif\n     1  B)\n      X = 1\n",
        expect![[r#"
            call f/2 `CALL F(A,|#else|      CALL G(A,|#endif|     1  B)`
            call g/2 `CALL G(A,|#endif|     1  B)`
            assign x `X = 1`
        "#]],
    );
    free(
        "call f(a, &\n#ifdef X\n  b, &\n#else\n  c, &\n#endif\n  d)\n",
        expect![[r#"
        call f/3 `call f(a, &|#ifdef X|  b, &|#else|  c, &|#endif|  d)`
        call f/3 `call f(a, &|#ifdef X|  b, &|#else|  c, &|#endif|  d)`
    "#]],
    );
    // What opens something is opened once.
    free(
        "subroutine s(a, &\n#ifdef X\n  b, &\n#endif\n  c)\nend\n",
        expect![[r#"
        Subroutine s/3 `subroutine s(a, &|#ifdef X|  b, &|#endif|  c)`
        EndUnit `end`
    "#]],
    );
}

#[test]
fn statement_macros_and_macro_types() {
    fixed(
        "#define _RL Real*8\n#define _RS Real*4\n#define BARRIER CALL BAR(myThid)\n#define MASTER(a) IF ( a .EQ. 1 ) THEN\n#define DONE ENDIF\n      _RL x(3), \n     &    y\n      _RS z\n      BARRIER\n      MASTER(myThid)\n       X = 1. _RL\n      DONE\n",
        expect![[r#"
            declare x,y [] `_RL x(3), |     &    y`
            declare z [] `_RS z`
            call bar/1 `BARRIER`
            IfThen `MASTER(myThid)`
            assign x `X = 1. _RL`
            EndIf `DONE`
        "#]],
    );
    // Some stand for a directive of OpenMP, which is a comment.
    for text in ["#define OMP !$omp\n", "#define GPU !!!\n#define OMP GPU\n"] {
        let text = format!(
            "{text}OMP parallel if (a > b()), &\nOMP private(k)\n  x = 1 OMP why\nOMP do\nOMP end parallel\n"
        );
        free(
            &text,
            expect![[r#"
            assign x `x = 1`
        "#]],
        );
    }
    free(
        "#if A\n#define START !$omp\n#else\n#define START call begin\n#endif\nSTART\nx = 1\n",
        expect![[r#"
            call begin/0 `START`
            assign x `x = 1`
        "#]],
    );
    free(
        "#define TWICE(x) \\\n   call f(x); \\\n   call f(x)\n#define CAT(a,b) a/**/b\n#define GLUE(a,b) a ## b\n#define STR(a) print *, #a\nTWICE(y)\nCAT(x,1) = 2\nGLUE(x, 2) = 3\nSTR(why)\n",
        expect![[r#"
            call f/1 `TWICE(y)`
            call f/1 `TWICE(y)`
            assign ab `CAT(x,1) = 2`
            assign x2 `GLUE(x, 2) = 3`
            Io `STR(why)`
        "#]],
    );
    free(
        "#include \"macros.h\"\nOMP do\nOMP end\nMat m\n",
        expect![[r#"
        Unknown `OMP do`
        Unknown `OMP end`
        declare m [] `Mat m`
    "#]],
    );
    // Without its definition a macro is a call, and a type only where a file with definitions is missing.
    fixed(
        "      _EXCH_XY( a, b )\n      Mat m\n#include \"petsc.h\"\n      Mat m\n",
        expect![[r#"
        call _exch_xy/2 `_EXCH_XY( a, b )`
        Unknown `Mat m`
        declare m [] `Mat m`
    "#]],
    );
}

#[test]
fn hollerith_in_formats_and_calls() {
    fixed(
        "   10 FORMAT(1X,14HDON'T (COUNT),,I3)\n      CALL F(3HA B, 2H)))\n      DATA X /4HABCD/, Y /2*2H'!/\n      IF (A .EQ. 4HSTOP) GOTO 10\n      WRITE (6,10) 5H     \n",
        expect![[r#"
            10: Format `FORMAT(1X,14HDON'T (COUNT),,I3)`
            call f/2 `CALL F(3HA B, 2H)))`
            Data `DATA X /4HABCD/, Y /2*2H'!/`
            IfStatement `IF (A .EQ. 4HSTOP)`
            Goto `GOTO 10`
            Io `WRITE (6,10) 5H     `
        "#]],
    );
    // A constant goes on in the next card; the blanks up to column 72 are a part of it.
    let long = format!(
        "   20 FORMAT ({:<58}9H)\n     1 RANK IS,I4)\n      X = 1\n",
        "31H0WARNING. IRANK HAS BEEN SET TO,I4,6H  BUT(,1PE10.3,"
    );
    fixed(
        &long,
        expect![[r#"
        20: Format `FORMAT (31H0WARNING. IRANK HAS BEEN SET TO,I4,6H  BUT(,1PE10.3,   9H)|     1 RANK IS,I4)`
        assign x `X = 1`
    "#]],
    );
}

#[test]
fn lengths_before_names_that_look_like_exponents() {
    fixed(
        "      CHARACTER*2 E5, D3\n      CHARACTER*2E5\n      REAL*8D2\n      CHARACTER*(*) C\n      CHARACTER C*4, D*(N), E(3)*2\n      INTEGER*4 I/5/, J(2)/2*0/\n      LOGICAL*1 L\n      COMPLEX*16 Z\n      CHARACTER*80,X\n      REAL*8 D5D(3), E11LOC\n      REAL*8 E11LOC, D5D_PRIME\n      DO 10 E1X = 1, 3\n",
        expect![[r#"
            declare e5,d3 [] `CHARACTER*2 E5, D3`
            declare e5 [] `CHARACTER*2E5`
            declare d2 [] `REAL*8D2`
            declare c [] `CHARACTER*(*) C`
            declare c,d,e [] `CHARACTER C*4, D*(N), E(3)*2`
            declare i,j [] `INTEGER*4 I/5/, J(2)/2*0/`
            declare l [] `LOGICAL*1 L`
            declare z [] `COMPLEX*16 Z`
            declare x [] `CHARACTER*80,X`
            declare d5d,e11loc [] `REAL*8 D5D(3), E11LOC`
            declare e11loc,d5d_prime [] `REAL*8 E11LOC, D5D_PRIME`
            do Counted Some(10) `DO 10 E1X = 1, 3`
        "#]],
    );
}

#[test]
fn old_procedures() {
    fixed(
        "      SUBROUTINE S(A,*,&,B)\n      CALL S(A,*10,&20,B)\n      ENTRY T(C,*)\n      F(X,Y) = X + Y\n      NAMELIST /N/ A, B, /M/ C\n      POINTER (P, X(10)), (Q, Y)\n      CALL G(%VAL(A), %LOC(B), %REF(C))\n      \
         BLOCK DATA\n      A$B = X$ + 1\n      PROGRAM MAIN(INPUT,OUTPUT,TAPE5=INPUT)\n      RETURN 1\n      PAUSE 'WHY'\n      IMPLICIT INTEGER (A-C, X), CHARACTER*8 (D)\n      EXTERNAL F\n      INTRINSIC SIN\n      EQUIVALENCE (A(1),B), (C,D,E)\n      \
         DEFINE FILE 4(100,20,U,IV)\n      ENCODE(8,10,C) X\n      ACCEPT *, X\n      TYPE *, X\n      STRUCTURE /REC/ F\n      END STRUCTURE\n      RECORD /REC/ R\n      R.F = 1\n",
        expect![[r#"
            Subroutine s/2 `SUBROUTINE S(A,*,&,B)`
            call s/4 `CALL S(A,*10,&20,B)`
            Entry `ENTRY T(C,*)`
            assign f `F(X,Y) = X + Y`
            Namelist `NAMELIST /N/ A, B, /M/ C`
            CrayPointer `POINTER (P, X(10)), (Q, Y)`
            call g/3 `CALL G(%VAL(A), %LOC(B), %REF(C))`
            BlockData ?/0 `BLOCK DATA`
            assign a$b `A$B = X$ + 1`
            Program main/0 `PROGRAM MAIN(INPUT,OUTPUT,TAPE5=INPUT)`
            Return `RETURN 1`
            Other `PAUSE 'WHY'`
            Implicit `IMPLICIT INTEGER (A-C, X), CHARACTER*8 (D)`
            Attribute `EXTERNAL F`
            Attribute `INTRINSIC SIN`
            Equivalence `EQUIVALENCE (A(1),B), (C,D,E)`
            Other `DEFINE FILE 4(100,20,U,IV)`
            Io `ENCODE(8,10,C) X`
            Io `ACCEPT *, X`
            Io `TYPE *, X`
            TypeDefinition `STRUCTURE /REC/ F`
            EndType `END STRUCTURE`
            declare r [] `RECORD /REC/ R`
            assign r `R.F = 1`
        "#]],
    );
}

#[test]
fn variables_may_have_the_names_of_keywords() {
    fixed(
        "      FORMAT(3) = 5\n   10 FORMAT(3) = 5\n      FMT = 1\n      IF(3) = 5\n      END = 1\n      DO = 1\n      DO10I = 1.5\n      REAL(3) = 1\n      CALL = 2\n      READ(5) = 1\n      DATA = 3\n      THEN = 1\n      IF (A) THEN = 1\n      IF (A) THENX = 1\n      STOP = 1\n      GOTO = 1\n      ASSIGN10TOL = 3\n      PRINT = 1\n",
        expect![[r#"
            assign format `FORMAT(3) = 5`
            10: assign format `FORMAT(3) = 5`
            assign fmt `FMT = 1`
            assign if `IF(3) = 5`
            assign end `END = 1`
            assign do `DO = 1`
            assign do10i `DO10I = 1.5`
            assign real `REAL(3) = 1`
            assign call `CALL = 2`
            assign read `READ(5) = 1`
            assign data `DATA = 3`
            assign then `THEN = 1`
            IfStatement `IF (A)`
            assign then `THEN = 1`
            IfStatement `IF (A)`
            assign thenx `THENX = 1`
            assign stop `STOP = 1`
            assign goto `GOTO = 1`
            assign assign10tol `ASSIGN10TOL = 3`
            assign print `PRINT = 1`
        "#]],
    );
    free(
        "print = 1\nend do = 1\nwrite(6) = 1\nselect = case\ntype = 1\nuse = 1\nif (if == then) then = if\nresult(1) = x\ninteger = 1\n",
        expect![[r#"
            assign print `print = 1`
            Unknown `end do = 1`
            assign write `write(6) = 1`
            assign select `select = case`
            assign type `type = 1`
            assign use `use = 1`
            IfStatement `if (if == then)`
            assign then `then = if`
            assign result `result(1) = x`
            assign integer `integer = 1`
        "#]],
    );
}

#[test]
fn bytes_that_are_no_text_and_a_missing_last_newline() {
    let mut text = b"C     \xe9t\xe9\n      X = 1 ! \xff\n      Y = 'caf\xe9'\n      Z = 2".to_vec();
    for form in [Form::Fixed, Form::Free] {
        let tree = parse(&text, form);
        let n = tree.statements.iter().filter(|s| matches!(s.kind, StatementKind::Assignment { .. })).count();
        assert_eq!(n, 3, "{form:?}");
    }
    text.extend(b"\nX\xe9 = 1\nY = 3");
    let tree = parse(&text, Form::Free);
    assert_eq!(tree.n_unknown(), 2, "the first line, which is no comment in free form, and the name");
}

#[test]
fn editor_lines_and_guards_head_included_files() {
    fixed(
        "c -*-fortran-*-\nC     vim: set ft=fortran:\n#ifndef A_H\n#define A_H\n      COMMON /A/ X\n#endif\n",
        expect![[r#"
            Common `COMMON /A/ X`
        "#]],
    );
    free(
        "! -*- mode: f90 -*-\n#ident \"x\"\n#line 3 \"y\"\n# 12 \"z.F\"\ncommon /a/ x\n",
        expect![[r#"
        Common `common /a/ x`
    "#]],
    );
}

#[test]
fn lines_that_some_compilers_take_for_comments() {
    fixed(
        "D     X = 1\nD    1  + 2\n      CALL F(A,\nD     CALL DEBUG(A)\n     1  B)\n!$    I = OMP_GET_NUM_THREADS()\nC$ 10 Y = 1\n*$OMP PARALLEL\nC$PAR DOALL\nCDIR$ IVDEP\n!DIR$ IVDEP\nDo not read this\n!$    neither this\n",
        expect![[r#"
            assign x `X = 1|D    1  + 2`
            call f/2 `CALL F(A,|D     CALL DEBUG(A)|     1  B)`
            assign i `I = OMP_GET_NUM_THREADS()`
            10: assign y `Y = 1`
        "#]],
    );
    free(
        "!$ i = 1\n!$omp parallel &\n!$omp& private(a)\n!$ x = a + &\n!$& b\n!dir$ ivdep\n!$ this is prose\ny = 1\n",
        expect![[r#"
            assign i `i = 1`
            assign x `x = a + &|!$& b`
            assign y `y = 1`
        "#]],
    );
}

#[test]
fn comments_of_the_preprocessor() {
    fixed(
        "/* a licence\n   of two lines */\n      X = 1 /* why */\n      Y = A//*B\n",
        expect![[r#"
        assign x `X = 1`
        Unknown `Y = A//*B`
    "#]],
    );
    free(
        "x = 1 /* why */ + 2\n/* one */\ny = 2\n",
        expect![[r#"
        assign x `x = 1 /* why */ + 2`
        assign y `y = 2`
    "#]],
    );
}

#[test]
fn modern_statements() {
    free(
        "submodule (m:p) s\nmodule procedure f\nmodule procedure :: g, h\nabstract interface\ninterface operator(.x.)\ninterface assignment(=)\nend interface operator (/)\ntype, extends(t), bind(c) :: u(k, l)\nprocedure(i), deferred, pass(a) :: b\n\
         procedure, nopass :: c => d\ngeneric, public :: operator(+) => c, b\nfinal :: e\nenum, bind(c)\nenumerator :: red = 1, blue\nend enum\nimport, only : x\nimport :: y\n\
         associate (a => b%c, d => e(1:2))\nblock\nend block\ncritical\ndo concurrent (integer :: i = 1:n, j = 1:m:2, i /= j) local(x) reduce(+:y) default(none)\nselect type (a => b)\ntype is (integer(4))\nclass is (t)\nclass default\nselect rank (x)\nrank (*)\nrank default\n\
         allocate (character(len=n) :: s, stat=i)\nallocate (t :: x(n)[*], source=y)\nsync all (stat=i)\nsync images (*)\nlock (l[2])\nevent post (e[1])\nform team (1, t)\nchange team (t)\nend team\nerror stop 'x', quiet=.true.\nfail image\n\
         integer, rank(2), codimension[*], protected :: q\nclass(*), intent(in out), optional :: r(..)\nreal, contiguous, pointer :: p(:, :) => null()\nbind(c, name='x') :: /blk/, v\nuse, intrinsic :: iso_c_binding, only: c_int, z => c_ptr, operator(==)\nimplicit none (type, external)\n\
         x = [real :: 1, 2]\nx = [(i, i = 1, 3)]\ny = a%b(1)%c[2]\np(1:, 2:) => q\nforall (i = 1:n, a(i) > 0) b(i) = 1\nwhere (a > 0) b = 1\nprint '(a)', x; stop 1\nflush (6)\nwait (5, id=i)\nnamelist /n/ a\nthreadsafe: do while (x)\nend do threadsafe\n",
        expect![[r#"
            Submodule s/0 `submodule (m:p) s`
            ModuleProcedure f/0 `module procedure f`
            Specific `module procedure :: g, h`
            Interface `abstract interface`
            Interface `interface operator(.x.)`
            Interface `interface assignment(=)`
            EndInterface `end interface operator (/)`
            TypeDefinition `type, extends(t), bind(c) :: u(k, l)`
            declare b [external other] `procedure(i), deferred, pass(a) :: b`
            declare c [external nopass] `procedure, nopass :: c => d`
            Specific `generic, public :: operator(+) => c, b`
            Other `final :: e`
            Other `enum, bind(c)`
            declare red,blue [parameter] `enumerator :: red = 1, blue`
            Other `end enum`
            Other `import, only : x`
            Other `import :: y`
            BlockStart `associate (a => b%c, d => e(1:2))`
            BlockStart `block`
            BlockEnd `end block`
            BlockStart `critical`
            do Counted None `do concurrent (integer :: i = 1:n, j = 1:m:2, i /= j) local(x) reduce(+:y) default(none)`
            Select `select type (a => b)`
            Case `type is (integer(4))`
            Case `class is (t)`
            Case `class default`
            Select `select rank (x)`
            Case `rank (*)`
            Case `rank default`
            Allocate `allocate (character(len=n) :: s, stat=i)`
            Allocate `allocate (t :: x(n)[*], source=y)`
            Other `sync all (stat=i)`
            Other `sync images (*)`
            Other `lock (l[2])`
            Other `event post (e[1])`
            Other `form team (1, t)`
            BlockStart `change team (t)`
            BlockEnd `end team`
            Stop `error stop 'x', quiet=.true.`
            Stop `fail image`
            declare q [other] `integer, rank(2), codimension[*], protected :: q`
            declare r [optional other] `class(*), intent(in out), optional :: r(..)`
            declare p [pointer contiguous] `real, contiguous, pointer :: p(:, :) => null()`
            Other `bind(c, name='x') :: /blk/, v`
            Use `use, intrinsic :: iso_c_binding, only: c_int, z => c_ptr, operator(==)`
            Implicit `implicit none (type, external)`
            assign x `x = [real :: 1, 2]`
            assign x `x = [(i, i = 1, 3)]`
            assign y `y = a%b(1)%c[2]`
            PointerAssignment `p(1:, 2:) => q`
            Masked `forall (i = 1:n, a(i) > 0)`
            assign b `b(i) = 1`
            Masked `where (a > 0)`
            assign b `b = 1`
            Io `print '(a)', x`
            Stop `stop 1`
            Io `flush (6)`
            Io `wait (5, id=i)`
            Namelist `namelist /n/ a`
            do While None `threadsafe: do while (x)`
            EndDo `end do threadsafe`
        "#]],
    );
}

#[test]
fn what_is_no_statement_says_why() {
    for (text, reason) in [
        ("if (a b) c = 1", "`)` is expected at `b`"),
        ("call f(a", "`)` is expected at the end"),
        ("integer, intent(input) :: x", "IN, OUT or INOUT is expected at `::`"),
        ("end do 10", "a name is expected at `10`"),
        ("this is no statement", "a keyword is expected at `this`"),
        ("x = 1 +", "an expression is expected at the end"),
        ("common /a b", "`/` is expected at `b`"),
        ("?", "a keyword or a name is expected at `?`"),
        ("use m, only x", "the end of the statement is expected at `x`"),
        ("do i = 1, 2, 3, 4", "two or three bounds is expected at the end"),
    ] {
        let tree = parse(text.as_bytes(), Form::Free);
        assert_eq!(
            (tree.n_unknown(), tree.reasons.get(&0).map(|reason| &**reason)),
            (1, Some(reason)),
            "{text}"
        );
    }
}

#[test]
fn nothing_behind_a_statement_passes_for_a_part_of_it() {
    // Every statement that is understood must fail with two more tokens behind it.
    tokens_are_taken();
}

#[test]
fn types_and_attributes_of_others() {
    free(
        "WHICH_REAL, intent(in) :: a(n), b\nWHICH_REAL c\nattributes(device) :: a, b\n\
         attributes(global) subroutine kernel(x)\nend\nattributes(1) = 2\n",
        expect![[r#"
            declare a,b [intent(in)] `WHICH_REAL, intent(in) :: a(n), b`
            declare c [] `WHICH_REAL c`
            Attribute `attributes(device) :: a, b`
            Subroutine kernel/1 `attributes(global) subroutine kernel(x)`
            EndUnit `end`
            assign attributes `attributes(1) = 2`
        "#]],
    );
    fixed(
        "@PROCESS OPT(2)\n      X = 1\n",
        expect![[r#"
            assign x `X = 1`
        "#]],
    );
}

#[test]
fn lines_of_templates() {
    free(
        "#:include 'x.fypp'\n  #:for k, t in LIST\n  subroutine sum_${k}$(a, n)\n    ${t}$, intent(in) :: a(:)\n    #:if k == 1 &\n      and n\n    \
         a(${n}$) = 1.0_${k}$\n    #:else\n    x = 2\n    #:endif\n    @:assert(n)\n    call f(a, &\n  #! why\n    b)\n  end subroutine sum_${k}$\n  #:endfor\n",
        expect![[r#"
            Subroutine sum_fypp/2 `subroutine sum_${k}$(a, n)`
            declare a [intent(in)] `${t}$, intent(in) :: a(:)`
            assign a `a(${n}$) = 1.0_${k}$`
            assign x `x = 2`
            call f/2 `call f(a, &|  #! why|    b)`
            EndUnit `end subroutine sum_${k}$`
        "#]],
    );
}

#[test]
fn a_statement_that_begins_in_column_6_is_no_type_by_a_macro() {
    let text = "#include \"defs.h\"\n      ! Which macros there are is not known.\n     module empty\n     end module empty\n";
    let (tree, form) = super::parse_file("empty.F", text.as_bytes(), &Reading::default());
    assert_eq!((form, tree.n_unknown()), (Form::Free, 0));
}
