//! Programs that must not compile, with what the compiler says about them. Right programs are in `tests/pass/`.
//! `TRYBUILD=overwrite cargo test -p rma-macros --test compile` writes the expected texts anew.

// covers: RMA-MAC-03, RMA-MAC-04, RMA-MAC-05, RMA-MAC-06, RMA-INFO-09, REG-MAC-04
#[test]
fn mistakes_are_refused_with_messages_that_teach() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
