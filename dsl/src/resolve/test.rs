//! Names: an input and what becomes of it. Never runs a program.

use super::{LetClass, Symbol, resolve};
use crate::syntax::parse;

fn codes(source: &str) -> Vec<String> {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let (_, diagnostics) = resolve(&parsed.statements, &parsed.broken);
    diagnostics.into_iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn lets_are_ordered_and_classified() {
    let parsed = parse(
        "let c = a + b\nlet a = 2\nlet b = a*r\nreduce r = max u\nlet w = sin(t)\nlet v = w + 1\ngrid G(i: a)\nfield u on G\n",
    );
    let (resolved, _) = resolve(&parsed.statements, &parsed.broken);
    let class = |name: &str| match resolved.symbols[name] {
        Symbol::Let(i) => resolved.lets[i].class,
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(class("a"), LetClass::Static);
    assert_eq!(class("b"), LetClass::PerStep);
    assert_eq!(class("c"), LetClass::PerStep);
    assert_eq!(class("w"), LetClass::Inline);
    assert_eq!(class("v"), LetClass::Inline);
    let place = |name: &str| {
        let symbol = resolved.symbols[name];
        resolved.order.iter().position(|other| *other == symbol).expect("ordered")
    };
    assert!(
        place("a") < place("b")
            && place("r") < place("b")
            && place("b") < place("c")
            && place("w") < place("v")
    );
    assert!(resolved.reductions[0].is_needed_initially);
}

#[test]
fn circles_are_found_once() {
    assert_eq!(codes("let a = b\nlet b = c\nlet c = a\n"), ["E0029"]);
    assert_eq!(codes("function f(x) = f(x)\nlet a = f(1)\nuntil step > a\n"), ["E0029"]);
}

#[test]
fn names_have_one_meaning() {
    assert_eq!(codes("let a = 1\nparam a : int = 2\nuntil step > a\n"), ["E0024"]);
    assert_eq!(codes("let pi = 3\n"), ["E0024", "W0001"]);
    assert_eq!(codes("let i = 1\ngrid G(i: i)\n"), ["E0024"]);
}

#[test]
fn each_scope_sees_its_own_names() {
    let frame = "param n : int = 4\ngrid G(i: n) x = i\nfield u on G\nreduce r = max u\n";
    let check =
        |lines: &str, expected: &[&str]| assert_eq!(codes(&format!("{frame}{lines}\n")), expected, "{lines}");
    check("until r < 1 and step > n and t > 0", &[]);
    check("until x < 1", &["E0027"]);
    check("until u < 1", &["E0027"]);
    check("until G < 1", &["E0027"]);
    check("until r(1) < 1", &["E0027"]);
    check("param m : int = n\nuntil step > m", &[]);
    check("param m : int = k\nuntil step > m\nparam k : int = 1", &["E0027"]);
    check("print step every r", &["E0027"]);
}
