//! The reference interpreter against numbers from elsewhere.

use rma_dsl::interp::{Inputs, Outcome, run};
use rma_dsl::ir::Setting;
use rma_dsl::{Settings, compile_front};
use rma_source::{SourceMap, render};

const HEAT: &str = include_str!("../examples/heat2d.rma");
const JACOBI: &str = include_str!("../examples/jacobi.rma");

fn solve(source: &str, set: &[(&str, &str)]) -> Outcome {
    let set = set
        .iter()
        .map(|(name, value)| Setting { name: name.to_string(), value: value.to_string() })
        .collect();
    let settings = Settings { set, ..Settings::default() };
    match compile_front(source, &settings) {
        Ok(compiled) => {
            let map = SourceMap::single("test.rma", source);
            let warnings = render::all(&map, &compiled.warnings, render::Colour::Never);
            assert_eq!(warnings, "", "no warnings are expected");
            run(&compiled.program, &compiled.scalars, &Inputs::default()).expect("the program runs")
        }
        Err(diagnostics) => {
            let map = SourceMap::single("test.rma", source);
            panic!("{}", render::all(&map, &diagnostics, render::Colour::Never));
        }
    }
}

/// The table of J(R, C, tol): updates, last largest change and digest.
#[test]
fn jacobi_gives_the_table() {
    let table = [
        ("32", "32", "1e-4", "100000", 642, Some("9.991994828301154e-05"), 0xb7ed_f685_b899_f559u64),
        ("30", "17", "1e-5", "100000", 524, Some("9.984465945286902e-06"), 0x1372_cb6f_b388_6360),
        ("32", "32", "0", "50", 50, None, 0x45a8_edcb_347d_3b55),
    ];
    for (rows, cols, tol, updates, steps, change, digest) in table {
        let out = solve(JACOBI, &[("rows", rows), ("cols", cols), ("tol", tol), ("updates", updates)]);
        assert_eq!(out.steps, steps, "updates of {rows}x{cols}");
        assert_eq!(out.closing(), [format!("steps {steps}"), format!("digest u {digest:016x}")]);
        if let Some(change) = change {
            assert_eq!(out.lines, [format!("step={steps} r={change}")]);
        }
    }
}

#[test]
fn heat_runs() {
    let out = solve(HEAT, &[("n", "16")]);
    println!("{:?} {:?}", out.closing(), out.lines);
}
