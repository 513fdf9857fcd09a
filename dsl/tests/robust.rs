//! No text makes the compiler panic or hang: mutated programs, deep nesting, long lines, strange bytes.

use std::time::{Duration, Instant};

use rma_dsl::interp::{Inputs, run};
use rma_dsl::{Settings, compile_front};
use rma_source::{SourceMap, render};

const SEEDS: [&str; 3] = [
    include_str!("../examples/heat2d.rma"),
    include_str!("../examples/jacobi.rma"),
    "program wave
param n : int = 32 in 8..
param c : real = 1.0
let h = 1/(n-1)
let dt = 0.4*h/c
grid G(i: n, j: n) x = i*h, y = j*h
grid L(k: 2*n)
field p on G levels 3
field vx : real32 on G at (i+1/2, j)
field w : u64 on L
field s : i64 on L levels 1
init p = exp(-x^2) * (if x < 0.5 and not (y > 1) then 1 else -2)
init p.prev = 0
init w = (7*k*k + 3) mod 1009
boundary p: all = sponge(5, 0.01)
boundary vx: west, east = mirror ; south = neumann -1 ; north = 1
boundary w: all = periodic
boundary s: all = 0
function lap(f) = (f[i-1,j] + f[i+1,j] + f[i,j-1] + f[i,j+1] - 4*f)/h^2
function mix(v) = v xor (v >> 7) band bnot 3
update p = 2*p - p.prev + (c*dt/h)^2 * lap(p) where x > 0
update vx = vx + dt*(p.next[i+1,j] - p.next[i,j])/h
update w = mix(w[k-1] + w[k+1] - 3*w)
update red s = s[k-1] + s[k+1] div 2
update black s = min(s[k-1], s[k+1], 5)
source at (0.5, 0.5): p += dt^2 * ricker(15, t)
reduce m = norm2 |p.next - p| every 5
reduce q = sum w
until step >= 20 or m < 1e-3 and t > 0
probe at (0.2, 0.5) of p every 1 as csv \"trace\"
print step, t, m, q every 10
output p, vx every 10 as png(magma), npy, vtk
checkpoint every 10
decompose blocks
epoch pscw(weak)
",
];

/// One text may take this long in a debug build on a busy machine.
const TEXT_TIME_MAX: Duration = Duration::from_secs(20);

/// Larger mutants are not run.
const POINTS_MAX: usize = 5_000;

/// The whole search takes about this long.
const SEARCH_TIME: Duration = Duration::from_secs(8);

fn survive(source: &str) {
    let start = Instant::now();
    let diagnostics = match compile_front(source, &Settings::default()) {
        Ok(compiled) => {
            let n_points: usize =
                compiled.scalars.lens.iter().map(|lens| lens.iter().product::<usize>()).sum();
            if n_points < POINTS_MAX {
                let inputs = Inputs { steps_max: Some(3), ..Inputs::default() };
                // Whatever the mutant computes, it ends with a result or an error.
                let _ = run(&compiled.program, &compiled.scalars, &inputs);
            }
            compiled.warnings
        }
        Err(diagnostics) => {
            assert!(diagnostics.iter().any(|diagnostic| diagnostic.is_error()), "refused without an error");
            diagnostics
        }
    };
    let map = SourceMap::single("mutant.rma", source);
    for diagnostic in diagnostics.iter().take(5) {
        render::text(&map, diagnostic, render::Colour::Never);
    }
    let taken = start.elapsed();
    assert!(taken < TEXT_TIME_MAX, "{taken:?} for {} bytes starting {:?}", source.len(), source.get(..200));
}

/// xorshift64*: the same mutants on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

fn mutate(text: &str, random: &mut Random) -> String {
    const BITS: [&str; 48] = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        "+",
        "-",
        "*",
        "/",
        "^",
        "..",
        ".",
        ",",
        ";",
        ":",
        "=",
        "==",
        "<",
        "\n",
        " ",
        "\"",
        "#",
        "if ",
        " then ",
        " else ",
        "not ",
        "u",
        "i",
        "j",
        "k",
        "x",
        "t",
        "step",
        "next",
        "0",
        "1/2",
        "1e999",
        "18446744073709551615",
        "update ",
        "let ",
        "all",
        "mirror",
        "periodic",
        "é",
        "\u{0}",
        "every ",
    ];
    let mut out: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(out.len() + 1);
        let length = random.below(12);
        let end = (at + length).min(out.len());
        match random.below(7) {
            // A word takes the place of another: names, numbers and words of the language meet in new ways.
            5 | 6 => {
                let text: String = out.iter().collect();
                let words: Vec<(usize, &str)> = words(&text);
                let ((at, gone), (_, come)) =
                    (words[random.below(words.len())], words[random.below(words.len())]);
                out = format!("{}{come}{}", &text[..at], &text[at + gone.len()..]).chars().collect();
            }
            0 => drop(out.drain(at..end)),
            1 => {
                let piece: Vec<char> = BITS[random.below(BITS.len())].chars().collect();
                out.splice(at..at, piece);
            }
            2 => {
                let piece: Vec<char> = BITS[random.below(BITS.len())].chars().collect();
                out.splice(at..end, piece);
            }
            3 => {
                let from = random.below(out.len() + 1);
                let piece: Vec<char> = out[from..(from + 3 * length).min(out.len())].to_vec();
                out.splice(at..at, piece);
            }
            _ => {
                // Whole lines are moved or lost.
                let mut lines: Vec<String> =
                    out.iter().collect::<String>().lines().map(String::from).collect();
                let line = random.below(lines.len());
                if line < lines.len() {
                    let taken = lines.remove(line);
                    if random.below(2) == 0 {
                        lines.insert(random.below(lines.len() + 1), taken);
                    }
                }
                out = lines.join("\n").chars().collect();
            }
        }
    }
    out.into_iter().collect()
}

/// Runs of letters and digits with their places; there is always one.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = vec![(0, "")];
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, letter.is_ascii_alphanumeric()) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push((from, &text[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

#[test]
fn seeds_are_programs() {
    for seed in SEEDS {
        if let Err(diagnostics) = compile_front(seed, &Settings::default()) {
            let map = SourceMap::single("seed.rma", seed);
            panic!("{}", render::all(&map, &diagnostics, render::Colour::Never));
        }
    }
}

#[test]
fn mutants_neither_panic_nor_hang() {
    let mut random = Random(0x5eed_0001);
    let start = Instant::now();
    let mut n_texts = 0;
    while start.elapsed() < SEARCH_TIME && n_texts < 2000 {
        let seed = SEEDS[random.below(SEEDS.len())].replace("= 96", "= 9").replace("= 32", "= 8");
        survive(&mutate(&seed, &mut random));
        n_texts += 1;
    }
    assert!(20 <= n_texts, "only {n_texts} texts were tried");
}

#[test]
fn deep_nesting_is_an_error() {
    const DEEP: usize = 30_000;
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("not ", ""),
        ("|", "|"),
        ("sin(", ")"),
        ("u[", "]"),
        ("1+", ""),
        ("if 1<2 then 1 else ", ""),
    ] {
        survive(&format!("let a = {}1{}\nuntil step >= 1\n", open.repeat(DEEP), close.repeat(DEEP)));
        survive(&format!("let a = {}1\nuntil step >= 1\n", open.repeat(DEEP)));
    }
    survive(&format!("let a = 1{}\n", "^2".repeat(DEEP)));
    survive(&format!("let a = 1{}\n", "+1".repeat(8_000)));
    survive(&"(".repeat(DEEP));
    survive(&"let a = 1 ".repeat(DEEP));
    survive(&"let a = 1\n".repeat(2_000));
    survive(&"\"".repeat(DEEP));
    survive(&"%\n".repeat(DEEP));
}

#[test]
fn growth_by_functions_is_an_error() {
    let mut source =
        String::from("grid G(i: 10)\nfield u on G\nboundary u: all = 0\nfunction f0(a) = a[i-1] + a[i+1]\n");
    for k in 1..60 {
        source += &format!("function f{k}(a) = f{0}(a) + f{0}(f{0}(a))\n", k - 1);
    }
    survive(&format!("{source}update u = f59(u)\nuntil step >= 1\n"));
    let mut source = String::from("function f0(a) = a\n");
    for k in 1..99 {
        source += &format!("function f{k}(a) = (((((((((((((((((((f{}(a))))))))))))))))))))\n", k - 1);
    }
    survive(&format!("{source}let b = f98(1)\nuntil step >= b\n"));
    survive("function f(a) = g(a)\nfunction g(a) = f(a)\nlet b = f(1)\nuntil step >= b\n");
    survive("function f(a) = f(f)\nlet b = f(f)\nuntil step >= b\n");
    survive("grid G(i: 4) x = x*2\nfield u on G\ninit u = x\nuntil step >= 1\n");
}
