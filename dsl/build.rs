//! Turns `src/syntax/grammar.lalrpop` into the parser, and packs the runtime's sources. Never touches anything else.

#[path = "build/embed.rs"]
mod embed;

fn main() {
    println!("cargo::rerun-if-changed=src/syntax/grammar.lalrpop");
    lalrpop::Configuration::new().use_cargo_dir_conventions().process().expect("the grammar is well formed");
    embed::embed();
}
