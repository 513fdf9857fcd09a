//! Footprints: an input and its halo. Never runs a program.

use expect_test::{Expect, expect};

use crate::{Settings, compile_front};

/// The halo lines of the IR.
fn check(update: &str, expected: Expect) {
    let source = format!(
        "program small\ngrid G(i: 8, j: 8)\nfield u on G\nboundary u: all = 0\n{update}\nuntil step >= 1\noutput u as npy\n"
    );
    match compile_front(&source, &Settings::default()) {
        Ok(compiled) => {
            let text = compiled.program.to_string();
            let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  halo ")).collect();
            expected.assert_eq(&lines.join(", "));
        }
        Err(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

#[test]
fn halos_follow_offsets() {
    check("update u = u[i-1,j]", expect!["i lo 1 hi 0, j lo 0 hi 0"]);
    check("update u = u[i+2,j] - u[i,j-3]", expect!["i lo 0 hi 2, j lo 3 hi 0"]);
    check("update u = 2*u", expect!["i lo 0 hi 0, j lo 0 hi 0"]);
    check("update u = u where u[i,j+1] > 0", expect!["i lo 0 hi 0, j lo 0 hi 1"]);
    check("function d(f) = f[i-1,j]\nupdate u = d(d(u))", expect!["i lo 2 hi 0, j lo 0 hi 0"]);
}

#[test]
fn a_fixed_side_needs_no_rule_beyond_its_points() {
    let source = "program small\ngrid G(i: 8)\nfield u on G\nboundary u: west = 0\nupdate u = u[i-1]\nuntil step >= 1\noutput u as npy\n";
    assert!(compile_front(source, &Settings::default()).is_ok());
}

#[test]
fn staggered_fields_meet_at_their_own_points() {
    let source = "program small
grid G(i: 8)
field p on G levels 1
field v on G at (i+1/2) levels 1
boundary v: all = mirror
update v = v + p[i+1] - p[i]
update p = p + v[i+1/2] - v[i-1/2]
until step >= 1
output p, v as npy
";
    let compiled =
        compile_front(source, &Settings::default()).map_err(|found| format!("{found:#?}")).expect("compiles");
    let offsets: Vec<Vec<i32>> = compiled
        .program
        .statements
        .iter()
        .flat_map(|statement| statement.updates())
        .map(|update| update.reads.iter().map(|access| access.offset[0]).collect())
        .collect();
    assert_eq!(offsets, [vec![0, 1, 0], vec![0, 0, -1]]);
    assert_eq!(compiled.scalars.lens, [[8], [7]]);
}
