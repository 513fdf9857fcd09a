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
