//! Included texts that are parsed once: no tree may show it. Never looks at a rule.

use std::sync::Arc;

use super::{Statement, StatementKind, Symbol, Tree, parse_file};
use crate::source::{InMemory, Reading};

/// A file's tree is the same whether what it includes was parsed for other files before or not.
#[test]
fn shared_headers_change_nothing() {
    let pad = "C     A comment that makes the header worth sharing.\n".repeat(8);
    let header = |body: &str| format!("{pad}{body}{pad}");
    let headers = [
        ("plain.h", header("      COMMON /A/ X, Y(10)\n      _RL X\n      DO 10 I=1,N\n10    Y(I)=I\n")),
        (
            "define.h",
            header("#define _RL Real*8\n#ifdef B\n#define N 5\n#else\n#define N 6\n#endif\n#undef Q\n"),
        ),
        ("nested.h", header("#include \"plain.h\"\n      INCLUDE 'plain.h'\n      ?? no statement\n")),
        ("open.h", header("      CALL F(A,\n     1 B\n")),
        ("else.h", header("#else\n      X = 1\n")),
        (
            "type.h",
            header(
                "      IMPLICIT REAL*8 (A-H)\n      DATA X/1./, (Y(I),I=1,3)/3*0/\n      NAMELIST /M/ X\n",
            ),
        ),
    ];
    let files = headers.iter().map(|(name, text)| (*name, text.as_str()));
    let files = Arc::new(InMemory::new(files));
    let mains = [
        "      SUBROUTINE S\n#include \"plain.h\"\n      END\n",
        "#include \"define.h\"\n      SUBROUTINE S\n#include \"plain.h\"\n      X = N\n      END\n",
        "#define N 7\n#include \"define.h\"\n      SUBROUTINE S\n      INCLUDE 'nested.h'\n      X = N\n      END\n",
        "      SUBROUTINE S\n#include \"open.h\"\n     2 , C)\n      END\n",
        "      SUBROUTINE S\n#include \"open.h\"\n#ifdef X\n     2 , C)\n#endif\n      END\n",
        "#if A\n      Z = 1\n#include \"else.h\"\n#endif\n#include \"define.h\"\n#include \"type.h\"\n      X = N\n      END\n",
        "#include \"gone.h\"\n#include \"type.h\"\n#include \"plain.h\"\n#define _RL Real*4\n#include \"plain.h\"\n      END\n",
    ];
    let fresh = || Reading { files: files.clone(), ..Reading::default() };
    let shared = fresh();
    // The first round meets each header, the second parses it by itself, and the third takes it from there.
    for round in 0..3 {
        for (i, main) in mains.iter().enumerate() {
            let path = format!("m{i}.F");
            let (one, form) = parse_file(&path, main.as_bytes(), &shared);
            let (other, other_form) = parse_file(&path, main.as_bytes(), &fresh());
            assert_eq!(form, other_form);
            assert_eq!(shown(&one), shown(&other), "{path} in round {round}");
        }
    }
}

/// Everything that a tree holds, with names instead of numbers, which may differ.
fn shown(tree: &Tree) -> String {
    let mut out = String::new();
    for (i, statement) in tree.statements.iter().enumerate() {
        let Statement { kind, label, span } = statement;
        let place = tree.origin.place(*span);
        let reason = match kind {
            StatementKind::Unknown => tree.reasons.get(&(i as u32)),
            _ => None,
        };
        out.push_str(&format!(
            "{label:?} {span:?} {place:?} {reason:?} {}\n",
            named(tree, &format!("{kind:?}"))
        ));
    }
    let marks: Vec<_> = tree.marks.iter().map(|(at, mark)| format!("{at} {mark:?}")).collect();
    let includes: Vec<_> = tree.includes.iter().map(|(at, include)| format!("{at} {include:?}")).collect();
    for (id, expr) in tree.exprs() {
        out.push_str(&format!("{id:?} {}\n", named(tree, &format!("{expr:?}"))));
    }
    out + &marks.join("\n") + &includes.join("\n")
}

/// Puts names and expressions in the places of their numbers.
fn named(tree: &Tree, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Symbol(") {
        let (before, behind) = rest.split_at(at + "Symbol(".len());
        let (number, after) = behind.split_once(')').expect("a number ends");
        out.push_str(before);
        out.push_str(tree.symbols.name(Symbol(number.parse().expect("a number"))));
        rest = after;
    }
    out.push_str(rest);
    out
}
