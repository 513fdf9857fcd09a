//! Turns `src/syntax/grammar.lalrpop` into the parser, and packs the runtime's sources. Never touches anything else.

#[path = "build/embed.rs"]
mod embed;

fn main() {
    embed::embed();
}
