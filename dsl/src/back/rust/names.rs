//! Names for what a program declares: legal in Rust, and distinct. Never changes a name that needs no change.

use std::collections::HashSet;

const KEYWORDS: [&str; 53] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "Self", "self",
    "static", "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized",
    "use", "virtual", "where", "while", "yield",
];

/// One set of names that must differ from each other.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A set in which some names are taken.
    pub(super) fn with(reserved: &[&str]) -> Names {
        Names { taken: reserved.iter().map(|name| name.to_string()).collect() }
    }

    /// A legal name that nobody has, as near to the wish as possible.
    pub(super) fn give(&mut self, wish: &str) -> String {
        let mut name: String =
            wish.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || name == "_" {
            name.insert(0, 'v');
        }
        if KEYWORDS.contains(&name.as_str()) {
            name.push('_');
        }
        let mut candidate = name.clone();
        let mut number = 2;
        while !self.taken.insert(candidate.clone()) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_distinct() {
        let mut names = Names::with(&["s"]);
        let given: Vec<String> =
            ["u", "u", "type", "s", "2x", "λ"].iter().map(|wish| names.give(wish)).collect();
        assert_eq!(given, ["u", "u_2", "type_", "s_2", "v2x", "v_"]);
    }
}
