//! Plans: an input and its exchanges. Never runs a program.

use expect_test::{Expect, expect};

use crate::ir::{Decompose, Epoch};
use crate::{Settings, compile_front};

/// Exchanges and updates of the IR, in order.
fn check(lines: &str, expected: Expect) {
    let source = format!("program small\ngrid G(i: 8, j: 8)\n{lines}\nuntil step >= 1\noutput u as npy\n");
    match compile_front(&source, &Settings::default()) {
        Ok(compiled) => {
            let text = compiled.program.to_string();
            let is_wanted = |line: &&str| {
                ["exchange", "update", "reduce", "  update"].iter().any(|word| line.starts_with(word))
            };
            let lines: Vec<&str> = text.lines().filter(is_wanted).collect();
            expected.assert_eq(&lines.join("\n"));
        }
        Err(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

#[test]
fn one_exchange_serves_all_reads_of_a_level() {
    check(
        "field u on G\nfield v on G\nboundary u: all = 0\nboundary v: all = 0\nupdate u = u[i-1,j]\nupdate v = u[i+1,j+1] + v\n",
        expect![[r#"
            exchange u box: i 1..1, j 0..1
            update u = u[-1,+0]   # except west, east, south, north
            update v = (u[+1,+1] + v[+0,+0])   # except west, east, south, north"#]],
    );
}

#[test]
fn produced_values_travel_before_the_line_that_reads_them() {
    check(
        "field u on G\nfield v on G\nboundary u: all = mirror\nboundary v: all = 0\nupdate u = u[i-1,j]\nupdate v = u.next[i,j+1] + v\nreduce r = max u.next[i-1,j]\n",
        expect![[r#"
            exchange u star: i 1..0, j 0..0
            update u = u[-1,+0]
            exchange u.next star: i 0..0, j 0..1
            update v = (u.next[+0,+1] + v[+0,+0])   # except west, east, south, north
            exchange u.next star: i 1..0, j 0..0
            reduce r : real = max u.next[-1,+0] every 1"#]],
    );
}

#[test]
fn colours_travel_one_by_one() {
    check(
        "field u on G\nboundary u: all = 0\nupdate red u = u[i-1,j] + u[i,j-1]\nupdate black u = u[i-1,j]\n",
        expect![[r#"
            exchange u star: i 1..0, j 1..0
            update red u = (u[-1,+0] + u[+0,-1])   # except west, east, south, north
            exchange u star: i 1..0, j 0..0
            update black u = u[-1,+0]   # except west, east, south, north"#]],
    );
}

#[test]
fn flags_win_over_the_file() {
    let source = "program small\ngrid G(i: 8)\nfield u on G\nupdate u = 2*u\nuntil step >= 1\noutput u as npy\ndecompose rows\nepoch fence\nblock time 8\n";
    let settings = Settings {
        epoch: Epoch::parse("pscw(weak)"),
        decompose: Decompose::parse("4"),
        ..Settings::default()
    };
    let plan = compile_front(source, &settings).expect("compiles").program.plan;
    assert_eq!(plan.epoch.done.text(), "pscw(weak)");
    assert_eq!(plan.decompose.done, Decompose::Parts(vec![4]));
    assert_eq!((plan.block.asked.map(|block| block.0), plan.block.done.0), (Some(8), 1));
}
