//! Turns `src/syntax/grammar.lalrpop` into the parser. Never touches anything else.

fn main() {
    println!("cargo::rerun-if-changed=src/syntax/grammar.lalrpop");
    lalrpop::Configuration::new().use_cargo_dir_conventions().process().expect("the grammar is well formed");
}
