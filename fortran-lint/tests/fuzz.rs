//! Mangled sources: the linter never panics and never loses the rest of a file.
//!
//! The inputs are made by a small generator with a fixed seed, so that a failure can be repeated.

mod common;

use std::panic::catch_unwind;

use common::package;
use fortran_lint::check::{Input, check_one};
use fortran_lint::fix::mend;
use fortran_lint::form::Form;
use fortran_lint::options::Options;
use fortran_lint::parse::parse;

/// Inputs of the bounded run; RMA_FUZZ=n multiplies them.
const INPUTS: u64 = 100_000;

/// Inputs that are mended.
const MENDED_INPUTS: u64 = 2_000;

/// Longest piece of a fixture that is mangled, so that many inputs fit in a short time.
const PIECE_BYTES_MAX: usize = 600;

/// Pieces that upset parsers.
const SPICE: &[&str] = &[
    "'",
    "\"",
    "(",
    ")",
    "&",
    "&\n",
    "\n&",
    "\n     &",
    "!",
    "\t",
    ";",
    ",",
    "::",
    "=>",
    "=",
    "*",
    "%",
    "#if 0\n",
    "#else\n",
    "#endif\n",
    "/*",
    "(/",
    "/)",
    "1.e",
    "5h",
    "99999999999999999999",
    ".and.",
    "..",
    "end\n",
    "contains\n",
    "do 10 i=",
    "if (",
    "then",
    "interface\n",
    "\r",
    "\0",
    "\u{e9}",
    "common //",
    "select case(",
    "end do\n",
    "equivalence (",
    "call mpi_irecv(",
    "goto 10\n",
    "10 continue\n",
    "    5 ",
    "call mpi_wait(req,",
    "mpi_bottom",
    "associate(a=>b)\n",
    "[",
    "]",
    "\\\n",
];

struct Random(u64);

impl Random {
    /// xorshift64*
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for folder in ["tests/fixtures/seed", "tests/fixtures/hazard", "tests/hazard"] {
        let mut paths: Vec<_> = std::fs::read_dir(package().join(folder))
            .expect("the folder is there")
            .map(|entry| entry.expect("it can be read").path())
            .collect();
        paths.sort();
        texts.extend(paths.iter().map(|path| std::fs::read(path).expect("the fixture can be read")));
    }
    texts
}

fn mangle(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let source = &corpus[random.below(corpus.len())];
    let start = random.below(source.len());
    let mut text = source[start..(start + 1 + random.below(PIECE_BYTES_MAX)).min(source.len())].to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(text.len() + 1);
        match random.below(5) {
            0 => {
                let end = (at + random.below(20)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let piece = SPICE[random.below(SPICE.len())];
                text.splice(at..at, piece.bytes());
            }
            2 if !text.is_empty() => {
                let at = random.below(text.len());
                text[at] = (random.next() & 0xff) as u8;
            }
            3 => {
                let from = random.below(text.len() + 1);
                let to = (from + random.below(60)).min(text.len());
                let copy = text[from..to].to_vec();
                text.splice(at..at, copy);
            }
            _ => text.truncate(at),
        }
    }
    text
}

fn run(range: std::ops::Range<u64>, corpus: &[Vec<u8>]) {
    let options = Options::default();
    for i in range {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (i + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9));
        let text = mangle(&mut random, corpus);
        let path = if random.below(2) == 0 { "a.f90" } else { "a.f" };
        let result = catch_unwind(|| {
            let report = check_one(path, &text, &options);
            for finding in &report.findings {
                assert!(finding.span.end as usize <= text.len() + 1, "a place lies in the file");
            }
            // The other form must stand it, too.
            parse(&text, if path == "a.f" { Form::Free } else { Form::Fixed });
        });
        assert!(result.is_ok(), "input {i} as {path}:\n{}", String::from_utf8_lossy(&text));
    }
}

// covers: REG-LINT-23
#[test]
fn mangled_sources_never_make_it_panic() {
    let factor: u64 = std::env::var("RMA_FUZZ").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let total = INPUTS * factor;
    let corpus = corpus();
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..n_threads {
            let corpus = &corpus;
            scope.spawn(move || run(total * thread / n_threads..total * (thread + 1) / n_threads, corpus));
        }
    });
}

/// A whole fixture with a few small wounds, in the line ends of either world.
fn wound(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut text = corpus[random.below(corpus.len())].clone();
    for _ in 0..random.below(4) {
        let at = random.below(text.len() + 1);
        match random.below(3) {
            0 => text.splice(at..at, SPICE[random.below(SPICE.len())].bytes()).for_each(drop),
            1 => text.drain(at..(at + random.below(4)).min(text.len())).for_each(drop),
            _ => text.splice(at..at, [(random.next() & 0xff) as u8]).for_each(drop),
        }
    }
    if random.below(3) == 0 {
        text = text.split_inclusive(|&byte| byte == b'\n').fold(Vec::new(), |mut out, line| {
            match line.strip_suffix(b"\n") {
                Some(line) => out.extend_from_slice(&[line, b"\r\n"].concat()),
                None => out.extend_from_slice(line),
            }
            out
        });
    }
    text
}

/// Mending keeps every byte, has nothing to do the second time, and leaves no more findings than there were.
#[test]
fn mending_wounded_sources_loses_nothing() {
    let corpus = corpus();
    let factor: u64 = std::env::var("RMA_FUZZ").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let mut n_mended = 0;
    for i in 0..MENDED_INPUTS * factor {
        let mut random = Random(0x2545_f491_4f6c_dd1d ^ (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = wound(&mut random, &corpus);
        let path = if random.below(4) == 0 { "a.f" } else { "a.f90" };
        let sync_routine = (random.below(2) == 0).then(|| "keep".to_string());
        let options = Options { sync_routine, ..Options::default() };
        let inputs = [Input { path: path.to_string(), bytes: text.clone() }];
        let outcome = mend(&inputs, &options, |_| {});
        let Some(patch) = outcome.patches.get(&0) else { continue };
        n_mended += 1;
        let new = patch.new_text();
        let mut rest = new.iter();
        let shown = || format!("input {i} as {path}:\n{}", String::from_utf8_lossy(&new));
        assert!(text.iter().all(|byte| rest.any(|own| own == byte)), "a byte is gone: {}", shown());
        assert!(patch.diff(path).starts_with(b"--- a/"));
        let before = check_one(path, &text, &options).findings.len();
        assert!(outcome.reports[0].findings.len() < before, "nothing is mended: {}", shown());
        let again = [Input { path: path.to_string(), bytes: new.clone() }];
        assert!(
            mend(&again, &options, |_| {}).patches.is_empty(),
            "the second run changes more: {}",
            shown()
        );
    }
    assert!(n_mended > MENDED_INPUTS / 4, "{n_mended} inputs were mended");
}

#[test]
fn a_bad_statement_hides_no_finding() {
    let good = std::fs::read_to_string(package().join("tests/fixtures/seed/window_local.f90"))
        .expect("the fixture is there");
    let lines: Vec<&str> = good.lines().collect();
    let expected = check_one("a.f90", good.as_bytes(), &Options::default()).findings.len();
    for at in 4..lines.len() {
        for bad in ["?? @ nonsense (", "x = = 'unclosed", "call ((((", "if (a) what ever", "integer :: :: a"]
        {
            let mut text: Vec<&str> = lines.clone();
            text.insert(at, bad);
            let text = text.join("\n") + "\n";
            let report = check_one("a.f90", text.as_bytes(), &Options::default());
            assert_eq!(report.findings.len(), expected, "{bad} before line {at}");
            assert_eq!(report.skipped.len(), 1, "{bad} before line {at}");
        }
    }
}

#[test]
fn deep_and_long_inputs_end() {
    for text in [
        "x = ".to_string() + &"(".repeat(100_000),
        "x = a".to_string() + &"(1)".repeat(100_000),
        "x = a".to_string() + &"%b".repeat(100_000),
        "x = 1".to_string() + &"+1".repeat(200_000),
        "do i = 1, 2\n".repeat(20_000),
        "if (a) then\n".repeat(20_000),
        "#if A\n".repeat(20_000),
        "if (a) ".repeat(50_000),
        "a;".repeat(100_000),
        "call f(a, &\n".repeat(50_000),
        "subroutine s\ncontains\n".repeat(5_000),
        // One megabyte in one line, in one statement and in many.
        "call f(".to_string() + &"a,".repeat(500_000) + "a)",
        "x = '".to_string() + &"a".repeat(1 << 20) + "'",
        "      callf;".repeat(100_000),
        "call f;".repeat(150_000),
        "x = ".to_string() + &"${".repeat(100_000),
        // Continuations of both forms.
        "      CALL F(A".to_string() + &"\n     1,A".repeat(100_000) + ")\n",
        "call f(a".to_string() + &", &\n  a".repeat(100_000) + ")\n",
        "      X = 5HA".to_string() + &"\n     1B".repeat(100_000),
        // Nesting of all kinds.
        "x = ".to_string() + &"(".repeat(10_000) + "a" + &")".repeat(10_000),
        "x = ".to_string() + &"[".repeat(10_000) + "a" + &"]".repeat(10_000),
        "x = ".to_string() + &"f(".repeat(10_000) + "a" + &")".repeat(10_000),
        "data ".to_string() + &"(".repeat(10_000) + "a" + &",i=1,2)".repeat(10_000) + "/1/",
        "allocate (".to_string() + &"a(".repeat(10_000),
        // Conditions between and inside statements.
        "#if A\n".to_string() + &"      X = 1\n#else\n".repeat(50_000) + "#endif\n     1  + 2\n",
        "      X = 1\n#if A\n".repeat(20_000) + &"#else\n      X = 1\n#endif\n".repeat(20_000),
        "      CALL F(A\n".to_string()
            + &"#if A\n     1 ,B\n#else\n     1 ,C\n#endif\n".repeat(5_000)
            + "     1 )\n",
        "call f(a, &\n".to_string() + &"#if A\n b, &\n#else\n c, &\n#endif\n".repeat(5_000) + " d)\n",
        "#define A B\n".repeat(50_000) + "A = 1\n",
        (0..20_000).map(|i| format!("#define A{i} A{}\n", i + 1)).collect::<String>() + "A0 = 1\n",
        // Each condition in a branch of a construct doubled what the construct remembered of its exits.
        "select case (i)\ncase (1)\nx = 1\ncase (2)\n".to_string()
            + &"#ifdef A\nx = 1\n#else\nx = 2\n#endif\n".repeat(200)
            + "end select\n",
    ] {
        for form in [Form::Free, Form::Fixed] {
            parse(text.as_bytes(), form);
        }
        check_one("a.f90", text.as_bytes(), &Options::default());
    }
}
