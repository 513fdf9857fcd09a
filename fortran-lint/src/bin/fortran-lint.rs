//! temporary
use fortran_lint::parse;
fn main() {
    let (mut n, mut bad) = (0, 0);
    for path in std::env::args().skip(1) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let (tree, f) = parse::parse_file(&path, &bytes);
        n += tree.statements.len();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for s in &tree.statements {
            if matches!(s.kind, parse::StatementKind::Unknown) {
                bad += 1;
                let a = s.span.range();
                println!("{path} {f:?}: {}", String::from_utf8_lossy(&bytes[a.start.min(bytes.len())..a.end.min(bytes.len())]).replace('\n', "\\n"));
            }
        }
        let _ = text;
    }
    println!("{n} statements, {bad} skipped");
}
