//! The IR of the examples; `UPDATE_EXPECT=1 cargo test -p rma-dsl --test golden` writes it anew.

use expect_test::expect_file;
use rma_dsl::{Settings, compile_front};

fn ir(source: &str) -> String {
    compile_front(source, &Settings::default()).expect("examples compile").program.to_string()
}

#[test]
fn examples_have_their_ir() {
    expect_file!["out/ir/heat2d.txt"].assert_eq(&ir(include_str!("../examples/heat2d.rma")));
    expect_file!["out/ir/jacobi.txt"].assert_eq(&ir(include_str!("../examples/jacobi.rma")));
}

/// The example of the language's page compiles as it stands, without a warning.
#[test]
fn the_page_example_compiles_without_a_word() {
    let compiled = compile_front(include_str!("in/page.rma"), &Settings::default()).expect("compiles");
    assert_eq!(compiled.warnings, []);
    let plan = compiled.program.plan;
    assert_eq!(plan.block.asked.map(|block| block.0), Some(8));
    assert!(!plan.block.why.is_empty() && !plan.overlap.why.is_empty());
}
