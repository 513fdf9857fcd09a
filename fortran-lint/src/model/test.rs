//! Units, storage and flow: a text and what is made of it. Never looks at a rule.

use expect_test::{Expect, expect};

use super::{Flow, IsArgument, Model, Modules, Storage, UnitId, may_be_changed_by_call};
use crate::form::Form;
use crate::options::Standard;
use crate::parse::{Tree, parse};

fn tree(text: &str) -> Tree {
    parse(text.as_bytes(), Form::Free)
}

fn storage(tree: &Tree, unit: u32, name: &str) -> Storage {
    let symbol = tree.symbols.find(name).expect("the name occurs");
    Model::new(tree).resolve(tree, &Modules::default(), UnitId(unit), symbol).storage
}

// covers: REG-HAZ-08
#[test]
fn only_unprotected_locals_survive_a_call() {
    let tree = tree(
        "subroutine s(dummy)\nuse seen\ninteger local, dummy, shared, loud, tagged, member, twin\ncommon /c/ shared, member\n\
         volatile loud\nasynchronous tagged\nequivalence (member, twin)\ncall f(local)\nend\n\
         module seen\ninteger outer\nend module\n",
    );
    let model = Model::new(&tree);
    let changes = |name: &str, is_argument: IsArgument, standard: Standard| {
        let symbol = tree.symbols.find(name).expect("the name occurs");
        may_be_changed_by_call(
            &model.resolve(&tree, &Modules::default(), UnitId(0), symbol),
            is_argument,
            standard,
        )
    };
    for name in ["local", "dummy"] {
        assert!(!changes(name, IsArgument::No, Standard::F2018), "{name}");
        assert!(changes(name, IsArgument::Yes, Standard::F2018), "{name} as an argument");
    }
    for name in ["shared", "loud", "tagged", "outer", "twin"] {
        assert!(changes(name, IsArgument::No, Standard::F2018), "{name}");
    }
    assert!(!changes("tagged", IsArgument::No, Standard::F95));
}

#[test]
fn names_from_out_of_sight_are_unknown() {
    let tree = tree(
        "subroutine s\nuse elsewhere, only: a\nb = a\nend\nsubroutine t\nuse elsewhere\nb = 1\nend\nsubroutine u\nb = 1\nend\n",
    );
    assert_eq!(storage(&tree, 0, "a"), Storage::Imported);
    assert_eq!(storage(&tree, 0, "b"), Storage::Local);
    assert_eq!(storage(&tree, 1, "b"), Storage::Imported);
    assert_eq!(storage(&tree, 2, "b"), Storage::Local);
}

#[test]
fn interfaces_and_types_declare_nothing_of_the_unit() {
    let tree = tree(
        "subroutine s\ninterface\nsubroutine t(x)\ninteger x\nend subroutine\nend interface\ntype point\ninteger y\nend type\ninteger z\nend\n",
    );
    let model = Model::new(&tree);
    let mut names: Vec<&str> =
        model.units[0].variables.keys().map(|&symbol| tree.symbols.name(symbol)).collect();
    names.sort_unstable();
    assert_eq!((model.units.len(), names), (1, vec!["z"]));
}

/// Checks the edges between statements, by their places in the text; `+` stands for the end of a counted loop.
fn check_flow(text: &str, expected: Expect) {
    let tree = tree(text);
    let model = Model::new(&tree);
    let flow = Flow::new(&tree, &model.units[0]);
    let mut out = String::new();
    for (i, node) in flow.nodes.iter().enumerate() {
        let name = match node.statement {
            Some(statement) => text[tree.statements[statement as usize].span.range()].to_string(),
            None => "+".to_string(),
        };
        out.push_str(&format!("{i} {name} -> {:?}\n", node.next));
    }
    expected.assert_eq(&out);
}

#[test]
fn branches_come_together() {
    check_flow(
        "if (a) then\nb = 1\nelse if (c) then\nd = 1\nelse\ne = 1\nend if\nif (f) g = 1\nh = 1\nend\n",
        expect![[r#"
            0 if (a) then -> [1, 2]
            1 b = 1 -> [6]
            2 else if (c) then -> [3, 4]
            3 d = 1 -> [6]
            4 else -> [5]
            5 e = 1 -> [6]
            6 end if -> [7]
            7 if (f) -> [8, 9]
            8 g = 1 -> [9]
            9 h = 1 -> [10]
            10 end -> []
        "#]],
    );
}

#[test]
fn loops_go_round() {
    check_flow(
        "do 10 i = 1, 3\ndo 10 j = 1, 3\nif (a) cycle\n10 b = 1\ndo while (c)\nif (d) exit\nend do\nend\n",
        expect![[r#"
            0 do 10 i = 1, 3 -> [1, 6]
            1 do 10 j = 1, 3 -> [2, 5]
            2 if (a) -> [3, 4]
            3 cycle -> [5]
            4 b = 1 -> [5]
            5 + -> [1, 6]
            6 + -> [0, 7]
            7 do while (c) -> [8, 11]
            8 if (d) -> [9, 10]
            9 exit -> [11]
            10 end do -> [7]
            11 end -> []
        "#]],
    );
}

#[test]
fn jumps_find_their_labels() {
    check_flow(
        "10 a = 1\nif (b) goto 10\ngoto (20, 10), c\nif (d) 10, 20, 20\n20 read (5, *, err=10) e\nreturn\nend\n",
        expect![[r#"
            0 a = 1 -> [1]
            1 if (b) -> [2, 3]
            2 goto 10 -> [0]
            3 goto (20, 10), c -> [4, 5, 0]
            4 if (d) 10, 20, 20 -> [0, 5]
            5 read (5, *, err=10) e -> [6, 0]
            6 return -> []
            7 end -> []
        "#]],
    );
}

#[test]
fn both_branches_of_the_preprocessor_are_ways() {
    check_flow(
        "a = 1\n#ifdef X\nb = 1\n#else\nc = 1\n#endif\nd = 1\n#ifdef Y\ne = 1\n#endif\nf = 1\nend\n",
        expect![[r#"
            0 a = 1 -> [1, 2]
            1 b = 1 -> [3]
            2 c = 1 -> [3]
            3 d = 1 -> [4, 5]
            4 e = 1 -> [5]
            5 f = 1 -> [6]
            6 end -> []
        "#]],
    );
}
