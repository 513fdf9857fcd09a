//! Types: an input and what becomes of it. Never runs a program.

use expect_test::{Expect, expect};

use crate::{Settings, compile_front};

/// The update of the field `u`, as the IR shows it.
fn check(lines: &str, expected: Expect) {
    let source =
        format!("program small\ngrid G(i: 8) x = 0.5*i\n{lines}\nuntil step >= 1\noutput u as npy\n");
    match compile_front(&source, &Settings::default()) {
        Ok(compiled) => {
            let text = compiled.program.to_string();
            let line = text.lines().find(|line| line.starts_with("update")).expect("an update");
            expected.assert_eq(line);
        }
        Err(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

#[test]
fn whole_numbers_meet_reals() {
    check(
        "field u on G\nupdate u = 2*u + i*i/3 + x",
        expect!["update u = (((2.0 * u[+0]) + (real((index0 * index0)) / 3.0)) + (0.5 * real(index0)))"],
    );
}

#[test]
fn words_take_literals_and_indices() {
    check(
        "field u : u64 on G\nupdate u = 3*u + i - 5 mod 7",
        expect!["update u = (((3u * u[+0]) + u64(index0)) - (5u mod 7u))"],
    );
    check("field u : i64 on G\nupdate u = 3*u + i", expect!["update u = ((3 * u[+0]) + index0)"]);
}

#[test]
fn short_reals_take_everything() {
    check(
        "param a : real = 1\nfield u : real32 on G\nupdate u = a*u + 0.1*x + sqrt(u)/2 + t*0\nparam dt : real = 1",
        expect![
            "update u = ((((real32(a) * u[+0]) + (0.10000000149011612f * real32((0.5 * real(index0))))) + (real32(sqrt(real(u[+0]))) / 2.0f)) + (real32(t) * 0.0f))"
        ],
    );
    check(
        "field v on G\nfield u : real32 on G\nupdate u = u + v",
        expect!["update u = real32((real(u[+0]) + v[+0]))"],
    );
}

#[test]
fn powers_are_products_from_the_left() {
    check(
        "field u on G\nupdate u = u^2 + u^1 + u^0 + u^-2 + u^0.5 + -u^2",
        expect![
            "update u = (((((u[+0]^2 + u[+0]) + 1.0) + (1.0 / u[+0]^2)) + pow(u[+0], 0.5)) + (-u[+0]^2))"
        ],
    );
}

#[test]
fn functions_are_inlined_with_their_shifts() {
    check(
        "field u on G\nboundary u: all = 0\nfunction d(f) = f[i+1] - f[i-1]\nfunction q(f, a) = a*d(f)\nupdate u = q(u, x)",
        expect!["update u = ((0.5 * real(index0)) * (u[+1] - u[-1]))   # except west, east"],
    );
}

#[test]
fn comparisons_know_whether_reductions_have_run() {
    check(
        "field u on G\nreduce r = max u\nupdate u = if not (r < 1) then u else 2*r",
        expect!["update u = (if (not (known(r) and (r < 1.0))) then u[+0] else (2.0 * r))"],
    );
}
