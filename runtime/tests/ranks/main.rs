//! The programs that the tests of the launcher launch.
fn main() {}
