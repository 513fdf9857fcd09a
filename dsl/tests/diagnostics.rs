//! What the compiler says: one snapshot per class of mistake, and that the codes and their pages agree.

use expect_test::{Expect, expect};
use rma_dsl::ir::{Epoch, Setting};
use rma_dsl::messages::Code;
use rma_dsl::{Settings, compile_front};
use rma_source::{Diagnostic, SourceMap, render};

/// A program around the lines of a test: two grids, some fields, and everything else that must be there.
const FRAME: &str = "program test
param n : int = 16 in 4..
param kappa : real = 0.1
let h = 1/(n-1)
grid G(i: n, j: n) x = i*h, y = j*h
field u on G levels 2
boundary u: all = 0
output u as npy
until step >= 10
";

fn diagnose(source: &str, settings: &Settings) -> Vec<Diagnostic> {
    match compile_front(source, settings) {
        Ok(compiled) => compiled.warnings,
        Err(diagnostics) => diagnostics,
    }
}

fn rendered(source: &str, settings: &Settings) -> String {
    let map = SourceMap::single("test.rma", source);
    render::all(&map, &diagnose(source, settings), render::Colour::Never)
}

/// Errors and warnings of the frame with `lines` in place of one statement of it, or after it.
fn check(lines: &str, expected: Expect) {
    let source = format!("{FRAME}{lines}\n");
    expected.assert_eq(&rendered(&source, &Settings::default()));
}

/// Errors and warnings of a whole file.
fn check_whole(source: &str, expected: Expect) {
    expected.assert_eq(&rendered(source, &Settings::default()));
}

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_string(), value: value.to_string() }
}

#[test]
fn misspelt_names() {
    check(
        "update u = u + kapa*h*(u[i-1,j] - u)",
        expect![[r#"
            error[E0001]: `kapa` is not declared
              --> test.rma:10:16
               |
            10 | update u = u + kapa*h*(u[i-1,j] - u)
               |                ^^^^ no such name
               |
               = note: every name is declared by a statement of the file or is a name of the language
            help: did you mean `kappa`?
               |
            10 | update u = u + kappa*h*(u[i-1,j] - u)
               |                   +
        "#]],
    );
    check(
        "update u = u + kappa*h*lapp(u) + qq\nfunction lap(f) = f[i-1,j] - f",
        expect![[r#"
            error[E0001]: `lapp` is not declared
              --> test.rma:10:24
               |
            10 | update u = u + kappa*h*lapp(u) + qq
               |                        ^^^^ no function of this name
               |
               = note: every name is declared by a statement of the file or is a name of the language
            help: did you mean `lap`?
               |
            10 - update u = u + kappa*h*lapp(u) + qq
            10 + update u = u + kappa*h*lap(u) + qq
               |

            error[E0001]: `qq` is not declared
              --> test.rma:10:34
               |
            10 | update u = u + kappa*h*lapp(u) + qq
               |                                  ^^ no such name
               |
               = note: every name is declared by a statement of the file or is a name of the language
               = help: declare it: `let qq = …` or `param qq : real = …`
        "#]],
    );
}

#[test]
fn dimension_mismatch() {
    check(
        "update u = kappa*h*u[i-1]",
        expect![[r#"
        error[E0002]: `u` has 2 indices, not 1
          --> test.rma:10:20
           |
         5 | grid G(i: n, j: n) x = i*h, y = j*h
           | ----------------------------------- the grid has 2 axes
        ...
        10 | update u = kappa*h*u[i-1]
           |                    ^^^^^^ 1 given
           |
           = note: every access names all axes, in the order of the grid
           = help: write `u[i,j]` and shift the index you mean
    "#]],
    );
    check(
        "grid L(k: n)\nfield v on L\nupdate u = kappa*h*v",
        expect![[r#"
        error[E0002]: `v` is on the grid `L`, and this is computed on `G`
          --> test.rma:12:20
           |
        11 | field v on L
           | ------------ declared here
        12 | update u = kappa*h*v
           |                    ^ on `L`
           |
           = note: the points of two grids do not correspond
           = help: declare the fields on one grid
    "#]],
    );
}

#[test]
fn index_form() {
    check(
        "update u = kappa*h*u[i*2,j]",
        expect![[r#"
        error[E0003]: an index is `i` plus or minus a number
          --> test.rma:10:22
           |
        10 | update u = kappa*h*u[i*2,j]
           |                      ^^^ not an offset from the point
           |
           = note: every point reads neighbours at the same distances, so that halos have one width
        help: write for example
           |
        10 - update u = kappa*h*u[i*2,j]
        10 + update u = kappa*h*u[i+1,j]
           |
    "#]],
    );
    check(
        "update u = kappa*h*u[j,i]",
        expect![[r#"
            error[E0003]: the index `j` stands where `i` belongs
              --> test.rma:10:22
               |
            10 | update u = kappa*h*u[j,i]
               |                      ^ the index of axis 1 is `i`
               |
               = note: indices stand in the order of the grid: i, j
            help: put each index in its place
               |
            10 - update u = kappa*h*u[j,i]
            10 + update u = kappa*h*u[i,j]
               |
        "#]],
    );
    check(
        "update u = kappa*h*u[0,j]",
        expect![[r#"
        error[E0003]: an index is `i` plus or minus a number
          --> test.rma:10:22
           |
        10 | update u = kappa*h*u[0,j]
           |                      ^ a fixed place, not an offset
           |
           = note: every point reads neighbours at the same distances, so that halos have one width
        help: write for example
           |
        10 - update u = kappa*h*u[0,j]
        10 + update u = kappa*h*u[i+1,j]
           |
    "#]],
    );
    check(
        "update u = kappa*h*u[i+n,j]",
        expect![[r#"
        error[E0003]: an index is `i` plus or minus a written number
          --> test.rma:10:24
           |
        10 | update u = kappa*h*u[i+n,j]
           |                        ^ not an index of this grid
           |
           = note: halo widths are inferred from the offsets, so they are known when the program is compiled
        help: write for example
           |
        10 - update u = kappa*h*u[i+n,j]
        10 + update u = kappa*h*u[i+1,j]
           |
    "#]],
    );
}

#[test]
fn level_not_kept() {
    check(
        "update u = kappa*h*(2*u - u.prev)",
        expect![[r#"
        error[E0004]: `u.prev` is not kept
          --> test.rma:10:27
           |
         6 | field u on G levels 2
           | --------------------- declared here
        ...
        10 | update u = kappa*h*(2*u - u.prev)
           |                           ^^^^^^ `u` keeps 2 levels
           |
           = note: `u.prev` needs `levels 3`
        help: declare `levels 3`
           |
         6 - field u on G levels 2
         6 + field u on G levels 3
           |
    "#]],
    );
    check(
        "update u = kappa*h*u.next",
        expect![[r#"
        error[E0004]: `u.next` is not known yet at this line
          --> test.rma:10:20
           |
        10 | update u = kappa*h*u.next
           |                    ^^^^^^ read here
           |
           = note: `next` is what an earlier line of the step has produced
           = help: move the update of `u` above this line, or read `u`
    "#]],
    );
}

#[test]
fn read_write_conflict() {
    check(
        "field v on G levels 1\nboundary v: all = 0\nupdate v = kappa*h*v[i-1,j]\noutput v as npy",
        expect![[r#"
            error[E0005]: this update of `v` reads a neighbour that it also writes
              --> test.rma:12:20
               |
            12 | update v = kappa*h*v[i-1,j]
               |        -           ^^^^^^^^ reads `v[i-1,j]`
               |        |
               |        writes `v` at every point
               |
               = note: with one level the result would depend on the order in which points are computed
               = help: or write `together { update v = … }`, or one `update red` and one `update black`
            help: keep the old values: declare two levels
               |
            10 - field v on G levels 1
            10 + field v on G levels 2
               |
        "#]],
    );
}

#[test]
fn store_to_neighbour() {
    check(
        "update u[i+1,j] = kappa*h*u",
        expect![[r#"
        error[E0006]: an update of `u` stores to a neighbour
          --> test.rma:10:8
           |
        10 | update u[i+1,j] = kappa*h*u
           |        ^^^^^^^^ this is not the point itself
           |
           = note: each point computes its own value from what it reads (gather), so that points can be computed in any order and on any rank
           = help: turn the scatter into a gather: write `update u = …` and shift every index of the right side, `i-1,j` in place of `i,j`
    "#]],
    );
}

#[test]
fn missing_assurance() {
    check(
        "update u = u - kappa*h*(u - u[i-1,j])\nepoch pscw(nocheck)",
        expect![[r#"
        error[E0007]: `pscw(nocheck)` is not proven for this program: `u` is read on one side of `i` only
          --> test.rma:11:1
           |
        10 | update u = u - kappa*h*(u - u[i-1,j])
           |                             -------- the one-sided read
        11 | epoch pscw(nocheck)
           | ^^^^^^^^^^^^^^^^^^^ asked for here
           |
           = note: a start without check needs the neighbour's post before it; that is known only if each neighbour also waits for this rank
           = help: write `epoch pscw(weak)`, or `epoch auto`
    "#]],
    );
    let source = format!("{FRAME}update u = u - kappa*h*(u - u[i,j+1])\n");
    let settings = Settings { epoch: Epoch::parse("checkerboard"), ..Settings::default() };
    expect![[r#"
        error[E0007]: `checkerboard` is not proven for this program: `u` is read on one side of `j` only
          --> test.rma:10:29
           |
        10 | update u = u - kappa*h*(u - u[i,j+1])
           |                             ^^^^^^^^ the one-sided read
           |
           = note: a start without check needs the neighbour's post before it; that is known only if each neighbour also waits for this rank
           = help: write `epoch pscw(weak)`, or `epoch auto`
    "#]].assert_eq(&rendered(&source, &settings));
}

#[test]
fn outside_the_grid() {
    check(
        "field v on G levels 2\nboundary v: west, south = 0\nupdate v = kappa*h*(v[i-1,j] + v[i+2,j])\noutput v as npy",
        expect![[r#"
            error[E0008]: this reads `v` beyond its east side, which has no rule
              --> test.rma:12:32
               |
            10 | field v on G levels 2
               | --------------------- declared here
            11 | boundary v: west, south = 0
            12 | update v = kappa*h*(v[i-1,j] + v[i+2,j])
               |                                ^^^^^^^^ `v[i+2,j]` is 2 points outside along `i`
               |
               = note: a value beyond the grid comes from a rule: a value, an expression, mirror, neumann, periodic or sponge
               = help: write for example `boundary v: east = 0`
        "#]],
    );
    check(
        "field v on G\nupdate u = kappa*h*u\nupdate v = v + u\nprobe at (1.5, 0.5) of v every 1 as csv \"p\"",
        expect![[r#"
            error[E0008]: this probe lies outside the grid: x = 1.5
              --> test.rma:13:11
               |
            13 | probe at (1.5, 0.5) of v every 1 as csv "p"
               |           ^^^ outside
               |
               = note: the points of `v` lie from x = 0.0 to 1.0
               = help: choose a place within the grid, or give that side a boundary rule
        "#]],
    );
}

/// A footprint that leaves the grid where no rule covers it, and an update in place without an order, are refused with
/// the line and the offset.
// covers: RMA-DSL-06
#[test]
fn footprints_without_rule_or_order_are_refused() {
    let frame = "program test\ngrid G(i: 9, j: 9)\nuntil step >= 1\noutput u as npy\n";
    let refused = |lines: &str, code: &str, line: usize, text: &str| {
        let source = format!("{frame}{lines}\n");
        let found = diagnose(&source, &Settings::default());
        let map = SourceMap::single("test.rma", source.as_str());
        let [one] = found.as_slice() else { panic!("{lines}: {found:#?}") };
        assert_eq!(one.code, code, "{lines}");
        let label = one.primary().expect("a place");
        let file = &map.files()[0];
        assert_eq!(file.line_column(label.span.start as usize).line, line, "{lines}");
        assert_eq!(file.slice(label.span), text, "{lines}");
        let offset = if text == "u" { "u[i+1,j]" } else { text };
        assert!(label.text.contains(offset), "{}", label.text);
    };
    let ok = |lines: &str| {
        let source = format!("{frame}{lines}\n");
        assert_eq!(diagnose(&source, &Settings::default()), [], "{lines}");
    };
    let field = "field u on G levels 2\n";
    refused(&format!("{field}update u = u[i-1,j]"), "E0009", 6, "u[i-1,j]");
    refused(&format!("{field}boundary u: west = 0\nupdate u = u[i+1,j]"), "E0008", 7, "u[i+1,j]");
    refused(&format!("{field}boundary u: west = mirror\nupdate u = u[i,j+1]"), "E0008", 7, "u[i,j+1]");
    refused(&format!("{field}boundary u: west = 0\nupdate u = u where u[i,j-2] > 0"), "E0008", 7, "u[i,j-2]");
    refused(
        &format!("{field}boundary u: west = 0\nupdate u = u\nreduce r = max u.next[i,j-1]\nprint r"),
        "E0008",
        8,
        "u.next[i,j-1]",
    );
    // Inside a function the label names the offset that results.
    refused(
        &format!("{field}function f(a) = a[i+1,j]\nboundary u: west = 0\nupdate u = f(u)"),
        "E0008",
        8,
        "u",
    );
    ok(&format!("{field}boundary u: west = 0\nupdate u = u[i-1,j]"));
    ok(&format!("{field}boundary u: all = periodic\nupdate u = u[i-1,j] + u[i+2,j-2]"));
    let field = "field u on G levels 1\nboundary u: all = 0\n";
    refused(&format!("{field}update u = u[i-1,j] + u"), "E0005", 7, "u[i-1,j]");
    refused(&format!("{field}update red u = u[i-1,j+1]"), "E0013", 7, "u[i-1,j+1]");
    refused(&format!("{field}update u = u where u[i,j+1] > 0"), "E0005", 7, "u[i,j+1]");
    ok(&format!("{field}update u = 2*u"));
    ok(&format!("{field}update red u = u[i-1,j]\nupdate black u = u[i,j+1]"));
    ok(&format!("{field}together {{ update u = u[i-1,j] }}"));
}

#[test]
fn boundary_rules() {
    check(
        "field v on G\nupdate v = kappa*h*v[i-1,j]\noutput v as npy",
        expect![[r#"
            error[E0009]: `v` has no boundary rules, and this reads beyond its west side
              --> test.rma:11:20
               |
            10 | field v on G
               | ------------ declared here
            11 | update v = kappa*h*v[i-1,j]
               |                    ^^^^^^^^ `v[i-1,j]` is 1 point outside along `i`
               |
               = note: a value beyond the grid comes from a rule: a value, an expression, mirror, neumann, periodic or sponge
               = help: write for example `boundary v: west = 0`
        "#]],
    );
    check(
        "boundary u: west = 1\nupdate u = kappa*h*u",
        expect![[r#"
            error[E0009]: the west side of `u` has two rules
              --> test.rma:10:13
               |
             7 | boundary u: all = 0
               |             ------- the first rule
            ...
            10 | boundary u: west = 1
               |             ^^^^ the second rule
               |
               = note: each side of a field has one rule; `all` is every side
               = help: remove one of them
        "#]],
    );
    check(
        "field v on G\nboundary v: west = periodic ; south, north = mirror\nupdate v = kappa*h*v[i-1,j]\noutput v as npy",
        expect![[r#"
            error[E0009]: the west side of `v` is periodic and the east side is not
              --> test.rma:11:13
               |
            11 | boundary v: west = periodic ; south, north = mirror
               |             ^^^^^^^^^^^^^^^ periodic here
               |
               = note: beyond one side of a periodic axis lies the other side, so both sides are periodic or none
               = help: write `west, east = periodic`
        "#]],
    );
}

#[test]
fn staggering() {
    check(
        "field vx on G at (i+1/2, j)\nboundary vx: all = mirror\nupdate vx = kappa*h*(u[i+1,j] - u[i,j])\nupdate u = u + vx[i,j] - vx[i-1/2,j]",
        expect![[r#"
            error[E0010]: `vx` lives at (i+1/2, j) and has no point here
              --> test.rma:13:19
               |
            10 | field vx on G at (i+1/2, j)
               | --------------------------- its place is declared here
            ...
            13 | update u = u + vx[i,j] - vx[i-1/2,j]
               |                   ^ not a point of `vx` along `i`
               |
               = note: a staggered field is read between whole points, other fields at whole points
            help: the nearest points are half a step away; for example
               |
            13 | update u = u + vx[i+1/2,j] - vx[i-1/2,j]
               |                    ++++
        "#]],
    );
}

#[test]
fn integer_and_real() {
    check_whole(
        "program test\nparam n : int = 0.5\ngrid G(i: n/2)\nfield c : u64 on G\nboundary c: all = periodic\nupdate c = c*0.5 + c[i+0.5]\nuntil step >= 10\noutput c every n/3 as npy\n",
        expect![[r#"
            error[E0011]: a whole number is needed here, and this is a real number
             --> test.rma:2:17
              |
            2 | param n : int = 0.5
              |                 ^^^ real
              |
              = note: `/` is always real division, and numbers with a point are real
              = help: write a whole number, or round with parameters of type `int`

            error[E0011]: a whole number is needed here, and this is a real number
             --> test.rma:3:11
              |
            3 | grid G(i: n/2)
              |           ^^^ real
              |
              = note: `/` is always real division, and numbers with a point are real
            help: `div` divides whole numbers, rounding down
              |
            3 - grid G(i: n/2)
            3 + grid G(i: n div 2)
              |

            error[E0011]: an offset is a whole number or a multiple of 1/2
             --> test.rma:6:24
              |
            6 | update c = c*0.5 + c[i+0.5]
              |                        ^^^ a real number
              |
              = note: points are counted; there is none in between, except at halves for staggered fields
            help: write
              |
            6 - update c = c*0.5 + c[i+0.5]
            6 + update c = c*0.5 + c[i+1/2]
              |

            error[E0011]: a whole number is needed here, and this is a real number
             --> test.rma:8:16
              |
            8 | output c every n/3 as npy
              |                ^^^ real
              |
              = note: `/` is always real division, and numbers with a point are real
            help: `div` divides whole numbers, rounding down
              |
            8 - output c every n/3 as npy
            8 + output c every n div 3 as npy
              |
        "#]],
    );
}

#[test]
fn integer_fields_take_no_reals() {
    check(
        "field c : u64 on G\nupdate c = c*(n/2)\nupdate u = kappa*h*c",
        expect![[r#"
        error[E0011]: a whole number is needed here, and this is a real number
          --> test.rma:11:12
           |
        11 | update c = c*(n/2)
           |            ^^^^^^^ real
           |
           = note: `/` is always real division, and numbers with a point are real
        help: `div` divides whole numbers, rounding down
           |
        11 - update c = c*(n/2)
        11 + update c = c*(n div 2)
           |
    "#]],
    );
}

#[test]
fn order_dependence() {
    check(
        "update u = kappa*h*u\nupdate u = u + 1",
        expect![[r#"
        error[E0012]: `u` is updated twice in one step
          --> test.rma:11:1
           |
        10 | update u = kappa*h*u
           | -------------------- the first update
        11 | update u = u + 1
           | ^^^^^^^^^^^^^^^^ the second update
           |
           = note: a step gives each point one new value; only a red and a black update of one field can share a step
           = help: join them into one update, read `u.next` in another field, or colour one red and one black
    "#]],
    );
}

#[test]
fn own_colour() {
    check(
        "field v on G\nboundary v: all = 0\nupdate red v = kappa*h*v[i-1,j-1]\noutput v as npy",
        expect![[r#"
            error[E0013]: this red update of `v` reads a red neighbour
              --> test.rma:12:24
               |
            12 | update red v = kappa*h*v[i-1,j-1]
               |            -           ^^^^^^^^^^ `v[i-1,j-1]` is red too
               |            |
               |            writes all red points
               |
               = note: points of one colour are computed in any order, so they may read the other colour only
               = help: read neighbours at an odd distance, or declare two levels
        "#]],
    );
}

#[test]
fn colours_around_an_odd_ring() {
    check(
        "grid R(k: 5)\nfield v on R\nboundary v: all = periodic\nupdate red v = kappa*h*v[k-1]\noutput v as npy",
        expect![[r#"
            error[E0013]: `v` has an odd number of points around the axis `k`
              --> test.rma:13:12
               |
            11 | field v on R
               | ------------ 5 points, periodic
            12 | boundary v: all = periodic
            13 | update red v = kappa*h*v[k-1]
               |            ^ a coloured update in place
               |
               = note: the first and the last point are neighbours and have the same colour
               = help: choose an even number of points, or declare two levels
        "#]],
    );
}

#[test]
fn settings() {
    let source = format!("{FRAME}update u = kappa*h*u\n");
    let set = vec![setting("n", "2"), setting("kapa", "1"), setting("kappa", "much")];
    expect![[r#"
        error[E0015]: there is no parameter `kapa` to set
         |
         = note: the program declares `n`, `kappa`
         = help: did you mean `--set kappa=1`?

        error[E0014]: `n` is 2, which is below the smallest allowed value 4
         --> test.rma:2:23
          |
        2 | param n : int = 16 in 4..
          |                       ^ the range is declared here
          |
          = note: the value is given by --set
          = help: choose a value within the range, for example `--set n=4`

        error[E0016]: `--set kappa=much` is not possible: the parameter is a real number
         --> test.rma:3:1
          |
        3 | param kappa : real = 0.1
          | ^^^^^^^^^^^^^^^^^^^^^^^^ `kappa` is declared here
          |
          = note: values are decimal numbers, such as 64, 0.5 or 1e-6
          = help: write for example `--set kappa=0.1`
    "#]]
    .assert_eq(&rendered(&source, &Settings { set, ..Settings::default() }));
}

#[test]
fn unused() {
    check(
        "param q : real = 1\nfield v on G\nfunction f(a) = a\nupdate u = kappa*h*u\nupdate v = u",
        expect![[r#"
            warning[W0001]: the parameter `q` is never used
              --> test.rma:10:7
               |
            10 | param q : real = 1
               |       ^ declared here
               |
               = note: it has no effect on the result
               = help: remove it, or use it

            warning[W0002]: nothing reads the field `v`
              --> test.rma:11:1
               |
            11 | field v on G
               | ^^^^^^^^^^^^ declared here
               |
               = note: no update, reduction, output, print, probe or condition looks at it
               = help: remove it, or write `output v as npy`

            warning[W0001]: the function `f` is never used
              --> test.rma:12:10
               |
            12 | function f(a) = a
               |          ^ declared here
               |
               = note: it has no effect on the result
               = help: remove it, or use it
        "#]],
    );
}

#[test]
fn syntax() {
    check(
        "update u = kappa*h*(u + ",
        expect![[r#"
        error[E0021]: this bracket is never closed; expected `)` before the next statement
          --> test.rma:10:20
           |
        10 | update u = kappa*h*(u + 
           |                    ^ opened here
           |
           = note: a statement goes on over several lines while a bracket or brace is open
           = help: write the missing `)`
    "#]],
    );
    check(
        "update u = 2 u\nlet = 3\nupdat u = 1\nlet at = 4",
        expect![[r#"
            error[E0021]: expected an operator, `where` or the end of the line, found `u`
              --> test.rma:10:14
               |
            10 | update u = 2 u
               |              ^ not expected here
               |
               = note: the statement's form is `update [red|black] FIELD = VALUE [where CONDITION]`
            help: write `*` between factors
               |
            10 | update u = 2 * u
               |              +

            error[E0021]: expected a name, found `=`
              --> test.rma:11:5
               |
            11 | let = 3
               |     ^ not expected here
               |
               = note: the statement's form is `let NAME = VALUE`
               = help: for example `let h = 1/(n-1)`

            error[E0021]: expected a statement, found `updat`
              --> test.rma:12:1
               |
            12 | updat u = 1
               | ^^^^^ no statement starts with this
               |
               = note: statements start with one of program, param, let, grid, field, init, boundary, function, update, together, source, reduce, until, output, print, probe, checkpoint, decompose, epoch, overlap, block
            help: did you mean `update`?
               |
            12 | update u = 1
               |      +

            error[E0021]: expected a name, found `at`
              --> test.rma:13:5
               |
            13 | let at = 4
               |     ^^ not expected here
               |
               = note: the statement's form is `let NAME = VALUE`
               = help: `at` is a word of the language and cannot be a name; choose another name
        "#]],
    );
    check(
        "until if = 3\nlet q = 5 % 2\nreduce r max u",
        expect![[r#"
            error[E0021]: expected an expression, found `=`
              --> test.rma:10:10
               |
            10 | until if = 3
               |          ^ not expected here
               |
               = note: the statement's form is `until CONDITION`
               = help: for example `until r < tol or step >= 1000`

            error[E0021]: expected a word, number or sign, found `%`
              --> test.rma:11:11
               |
            11 | let q = 5 % 2
               |           ^ not part of the language
               |
               = note: outside comments and texts a program is plain ASCII
               = help: write `mod` for the rest of a division, `#` for a comment

            error[E0021]: expected `=`, found `max`
              --> test.rma:12:10
               |
            12 | reduce r max u
               |          ^^^ not expected here
               |
               = note: the statement's form is `reduce NAME = max|min|sum|norm2 VALUE [every N]`
               = help: for example `reduce r = max |u.next - u| every 50`
        "#]],
    );
}

#[test]
fn several_errors_in_one_run() {
    let source = format!("{FRAME}let = 3\nupdate u = kapa*u[j,i] + u[i]*h*kappa\nboundary u: west = 2\n");
    let codes: Vec<String> =
        diagnose(&source, &Settings::default()).iter().map(|diagnostic| diagnostic.code.clone()).collect();
    expect!["E0021 E0001 E0003 E0002 E0009"].assert_eq(&codes.join(" "));
}

#[test]
fn every_diagnostic_has_place_note_and_fix() {
    let sources = [
        "update u = kapa",
        "update u = u[i]",
        "update u = u[j,i]",
        "update u = u.prev",
        "update u[i+1,j] = u",
        "epoch fance",
        "decompose colums",
        "overlap full",
        "block space 3",
        "update u = u xor 1",
        "until u > 1",
        "update u = if u then 1 else 2",
        "let e = 3",
        "let a = b\nlet b = a",
        "print u",
        "reduce r = maxx u",
        "field w : complex on G",
        "boundary u: wst = 0",
        "boundary u: bottom = 0",
        "output u as jpg",
        "output u as png(jet)",
        "init u.prev = 0",
        "init u = u",
        "source at (1): u += 1",
        "update green u = u",
        "field w on G levels 7",
        "let q = sin()",
        "update u = u^2000",
        "let z = 1 div 0",
        "print step every 0",
    ];
    for lines in sources {
        let source = format!("{FRAME}{lines}\n");
        let found = diagnose(&source, &Settings::default());
        assert!(found.iter().any(Diagnostic::is_error), "{lines} is accepted");
        for diagnostic in found {
            let shown = format!("{lines}: {diagnostic:#?}");
            assert!(!diagnostic.labels.is_empty(), "no place: {shown}");
            assert!(!diagnostic.notes.is_empty(), "no note: {shown}");
            assert!(!diagnostic.helps.is_empty(), "no fix: {shown}");
        }
    }
}

#[test]
fn a_statement_with_a_syntax_error_is_judged_no_further() {
    let codes = |lines: &str| {
        let found = diagnose(&format!("{FRAME}{lines}\n"), &Settings::default());
        found.iter().map(|diagnostic| diagnostic.code.to_string()).collect::<Vec<_>>()
    };
    let fields = "field k on G constant\nfield v on G\nboundary v: all = 0";
    for (broken, good) in [
        ("update u = u + k*(u", "update v = k*v[i-1,j] + u.next"),
        ("update k = u + k*(u", "update u = k*u[i-1,j] + v"),
        ("update v = u[i-1,j", "update u = k*v.next[i-1,j]"),
    ] {
        assert_eq!(codes(&format!("{fields}\n{broken}\n{good}")), ["E0021"], "{broken}");
    }
    assert_eq!(codes("field k on G constant\nupdate k = u\nupdate u = k*(u"), ["E0027", "E0021"]);
}

#[test]
fn what_was_probably_meant() {
    check(
        "update u = u + kappa*h*u[i-1,j]\nboundary u: south = neuman 0",
        expect![[r#"
        error[E0021]: expected an operator, `(`, `;` or the end of the line, found `0`
          --> test.rma:11:28
           |
        11 | boundary u: south = neuman 0
           |                            ^ not expected here
           |
           = note: the statement's form is `boundary FIELD: SIDE, … = VALUE|neumann VALUE|mirror|periodic|sponge(W, A) ; …`
        help: did you mean `neumann`?
           |
        11 | boundary u: south = neumann 0
           |                           +
    "#]],
    );
    let set = Settings { set: vec![setting("h", "1")], ..Settings::default() };
    expect![[r#"
        error[E0015]: there is no parameter `h` to set
         --> test.rma:4:5
          |
        4 | let h = 1/(n-1)
          |     ^ declared here
          |
          = note: the program declares `n`, `kappa`
          = help: `h` is computed by a `let`; change the parameters it depends on
    "#]]
    .assert_eq(&rendered(&format!("{FRAME}update u = u + kappa*h*u[i-1,j]\n"), &set));
    let set = Settings { set: vec![setting("n", "abc")], ..Settings::default() };
    expect![[r#"
        error[E0016]: `--set n=abc` is not possible: the parameter is an int
         --> test.rma:2:1
          |
        2 | param n : int = 16 in 4..
          | ^^^^^^^^^^^^^^^^^^^^^^^^^ `n` is declared here
          |
          = note: values are decimal numbers, such as 64, 0.5 or 1e-6
          = help: write for example `--set n=16`
    "#]]
    .assert_eq(&rendered(&format!("{FRAME}update u = u + kappa*h*u[i-1,j]\n"), &set));
}

#[test]
fn what_the_back_end_cannot_do_yet() {
    let missing = |lines: &str| {
        let source = format!("{FRAME}update u = u + kappa*h\n{lines}\n");
        let program = compile_front(&source, &Settings::default()).expect("the checker takes it").program;
        let missing = rma_dsl::back::rust::missing(&program);
        render::all(&SourceMap::single("test.rma", source), &missing, render::Colour::Never)
    };
    assert_eq!(missing("output u every 5 as png(magma), npy\nprobe at (0.5, 0.5) of u as csv \"p\""), "");
    expect![[r#"
        error[E0023]: `checkpoint` is not supported yet
          --> test.rma:11:1
           |
        11 | checkpoint every 5
           | ^^^^^^^^^^^^^^^^^^ the program that is built cannot write this
           |
           = note: the formats that a run writes are png and npy; a probe writes csv
           = help: write npy with `output`, and read it with `init u = file "NAME.npy"`

        error[E0023]: `output … as gif` is not supported yet
          --> test.rma:12:1
           |
        12 | output u every 5 as gif, npy, vtk
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the program that is built cannot write this
           |
           = note: the formats that a run writes are png and npy; a probe writes csv
           = help: write png or npy

        error[E0023]: `output … as vtk` is not supported yet
          --> test.rma:12:1
           |
        12 | output u every 5 as gif, npy, vtk
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the program that is built cannot write this
           |
           = note: the formats that a run writes are png and npy; a probe writes csv
           = help: write png or npy

        error[E0023]: `output … as csv` is not supported yet
          --> test.rma:13:1
           |
        13 | output u as csv
           | ^^^^^^^^^^^^^^^ the program that is built cannot write this
           |
           = note: the formats that a run writes are png and npy; a probe writes csv
           = help: write png or npy
    "#]]
    .assert_eq(&missing("checkpoint every 5\noutput u every 5 as gif, npy, vtk\noutput u as csv"));
}

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let pages = include_str!("../../docs/dsl/errors.md");
    let described: Vec<&str> = pages
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter_map(|title| title.split(' ').next())
        .collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    assert_eq!(described, codes);
}

/// Lines after the frame, or a whole file where they start with `program`, that earn each code.
#[test]
fn every_code_can_be_earned() {
    let deep = format!("let q = {}1{}", "(".repeat(300), ")".repeat(300));
    let fixtures = [
        ("E0001", "update u = kapa"),
        ("E0002", "update u = u[i]"),
        ("E0003", "update u = u[j,i]"),
        ("E0004", "update u = u.prev"),
        ("E0005", "field v on G levels 1\nboundary v: all = 0\nupdate v = v[i-1,j]"),
        ("E0006", "update u[i+1,j] = u"),
        ("E0007", "update u = u[i-1,j]\nepoch checkerboard"),
        ("E0008", "field v on G\nboundary v: west = 0\nupdate v = v[i+1,j]"),
        ("E0009", "boundary u: all = 1"),
        ("E0010", "field v on G at (i+1/2, j)\nupdate u = v"),
        ("E0011", "update u = u\noutput u every 1.5 as npy"),
        ("E0012", "update u = u\nupdate u = u"),
        ("E0013", "field v on G\nboundary v: all = 0\nupdate black v = v[i-2,j]"),
        ("E0014", "param m : int = 3 in 4..5"),
        ("E0015", "set:q=1"),
        ("E0016", "set:n=1.5"),
        ("E0017", "let z = 1 mod 0"),
        ("E0018", "grid R(k: 0)\nfield v on R"),
        ("E0019", "grid R(k: 10000000, l: 10000000)\nfield v on R"),
        ("E0020", "print step every 0"),
        ("E0021", "update u ="),
        ("E0022", deep.as_str()),
        ("E0023", "init u = u"),
        ("E0024", "let n = 1"),
        ("E0025", "program p\nparam n : int"),
        ("E0026", "until n"),
        ("E0027", "let q = u"),
        ("E0028", "field v : complex on G"),
        ("E0029", "let a = b\nlet b = a"),
        ("W0001", "let q = 1"),
        ("W0002", "field v on G\nupdate v = 1"),
        ("W0003", "param dt : real = 1\nupdate u = u - 3*dt*u"),
    ];
    let earned: Vec<&str> = fixtures.iter().map(|(code, _)| *code).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    assert_eq!(earned, codes, "one fixture per code");
    for (code, lines) in fixtures {
        let (source, settings) = match (lines.strip_prefix("set:"), lines.starts_with("program")) {
            (Some(set), _) => {
                let (name, value) = set.split_once('=').expect("NAME=VALUE");
                (FRAME.to_string(), Settings { set: vec![setting(name, value)], ..Settings::default() })
            }
            (None, true) => (format!("{lines}\n"), Settings::default()),
            (None, false) => (format!("{FRAME}{lines}\n"), Settings::default()),
        };
        let found = diagnose(&source, &settings);
        assert!(
            found.iter().any(|diagnostic| diagnostic.code == code),
            "{code} is not earned by {lines}: {found:#?}"
        );
    }
}
