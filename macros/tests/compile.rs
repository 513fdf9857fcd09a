//! Programs that must not compile, with what the compiler says about them. Right programs are in `tests/pass/`.
//! `TRYBUILD=overwrite cargo test -p rma-macros --test compile` writes the expected texts anew.

// A case that proves a requirement claims it in its last line.
#[test]
fn mistakes_are_refused_with_messages_that_teach() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
