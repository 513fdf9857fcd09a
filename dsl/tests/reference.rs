//! The reference interpreter against numbers from elsewhere.

use rma_dsl::interp::{Inputs, Outcome, fnv1a, run};
use rma_dsl::ir::{Setting, Value};
use rma_dsl::{Settings, compile_front};
use rma_source::{SourceMap, render};

const HEAT: &str = include_str!("../examples/heat2d.rma");
const JACOBI: &str = include_str!("../examples/jacobi.rma");

fn solve(source: &str, set: &[(&str, &str)]) -> Outcome {
    let set = set
        .iter()
        .map(|(name, value)| Setting { name: name.to_string(), value: value.to_string() })
        .collect();
    let settings = Settings { set, ..Settings::default() };
    match compile_front(source, &settings) {
        Ok(compiled) => {
            let map = SourceMap::single("test.rma", source);
            let warnings = render::all(&map, &compiled.warnings, render::Colour::Never);
            assert_eq!(warnings, "", "no warnings are expected");
            run(&compiled.program, &compiled.scalars, &Inputs::default()).expect("the program runs")
        }
        Err(diagnostics) => {
            let map = SourceMap::single("test.rma", source);
            panic!("{}", render::all(&map, &diagnostics, render::Colour::Never));
        }
    }
}

/// The table of J(R, C, tol): updates, last largest change and digest.
#[test]
fn jacobi_gives_the_table() {
    let table = [
        ("32", "32", "1e-4", "100000", 642, Some("9.991994828301154e-05"), 0xb7ed_f685_b899_f559u64),
        ("30", "17", "1e-5", "100000", 524, Some("9.984465945286902e-06"), 0x1372_cb6f_b388_6360),
        ("32", "32", "0", "50", 50, None, 0x45a8_edcb_347d_3b55),
    ];
    for (rows, cols, tol, updates, steps, change, digest) in table {
        let out = solve(JACOBI, &[("rows", rows), ("cols", cols), ("tol", tol), ("updates", updates)]);
        assert_eq!(out.steps, steps, "updates of {rows}x{cols}");
        assert_eq!(out.closing(), [format!("steps {steps}"), format!("digest u {digest:016x}")]);
        if let Some(change) = change {
            assert_eq!(out.lines, [format!("step={steps} r={change}")]);
        }
    }
}

/// The heat example once more, as plain loops: two arrays, the same operations in the same order.
#[test]
fn heat_is_what_plain_loops_compute() {
    let (n, kappa, tol) = (24usize, 0.1f64, 1e-4f64);
    let h = 1.0 / (n as i64 - 1) as f64;
    let dt = 0.2 * (h * h) / (2.0 * kappa);
    let at = |i: usize, j: usize| i * n + j;
    let fix = |u: &mut [f64]| {
        for k in 0..n {
            u[at(0, k)] = 0.0;
            u[at(n - 1, k)] = 0.0;
        }
        for i in 0..n {
            u[at(i, n - 1)] = (std::f64::consts::PI * (i as f64 * h)).sin();
        }
    };
    let mut u = vec![0.0; n * n];
    let mut k = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            let (x, y) = (i as f64 * h, j as f64 * h);
            let (a, b) = (x - 0.5, y - 0.5);
            u[at(i, j)] = (-100.0 * (a * a + b * b)).exp();
            k[at(i, j)] = kappa * if x < 0.5 { 1.0 } else { 2.0 };
        }
    }
    fix(&mut u);
    let mut next = u.clone();
    let (mut steps, mut r) = (0, f64::INFINITY);
    while !(r < tol || steps >= 20000) {
        for i in 1..n - 1 {
            for j in 0..n - 1 {
                let south =
                    if j == 0 { u[at(i, 0)] + 1.0 * (1.0 * h - 0.0 * h) * 0.0 } else { u[at(i, j - 1)] };
                let ring = u[at(i - 1, j)] + u[at(i + 1, j)] + south + u[at(i, j + 1)];
                let lap = (ring - 4.0 * u[at(i, j)]) / (h * h);
                next[at(i, j)] = u[at(i, j)] + dt * k[at(i, j)] * lap;
            }
        }
        fix(&mut next);
        steps += 1;
        if steps % 50 == 0 {
            r = u.iter().zip(&next).map(|(a, b)| (b - a).abs()).fold(0.0, f64::max);
        }
        std::mem::swap(&mut u, &mut next);
    }
    let out = solve(HEAT, &[("n", "24"), ("tol", "1e-4")]);
    assert_eq!(out.steps, steps);
    let expected: Vec<Value> = u.iter().map(|&value| Value::F64(value)).collect();
    assert_eq!(out.fields[0].values, expected);
    assert_eq!(out.reductions, [Some(Value::F64(r))]);
    let free: Vec<usize> = (1..n - 1).flat_map(|i| (0..n - 1).map(move |j| i * n + j)).collect();
    assert_eq!(out.fields[0].digest, fnv1a(free.into_iter().map(|place| Value::F64(u[place]))));
}

/// A wave in 1D with three levels, sponges on both sides, a source and a probe, as plain loops.
#[test]
fn a_wave_with_sponge_and_source_is_what_plain_loops_compute() {
    let source = "
program wave
param n : int = 41 in 8..
let h = 1/(n-1)
let dt = 0.5*h
grid G(i: n) x = i*h
field p on G levels 3
init p = exp(-200*(x-0.3)^2)
boundary p: all = sponge(6, 0.05)
update p = 2*p - p.prev + (dt/h)^2*(p[i-1] - 2*p + p[i+1])
source at (0.5): p += dt^2*ricker(15, t)
probe at (0.26) of p every 10 as csv \"trace\"
reduce m = max p every 7
until step >= 60
print step, t, m every 20
output p as npy
";
    let n = 41usize;
    let h = 1.0 / (n as i64 - 1) as f64;
    let dt = 0.5 * h;
    let mut now: Vec<f64> = (0..n)
        .map(|i| {
            let d = i as f64 * h - 0.3;
            (-200.0 * (d * d)).exp()
        })
        .collect();
    let mut prev = now.clone();
    let factor = |d: usize| {
        let root = 0.05 * (6 - d) as f64;
        (-(root * root)).exp()
    };
    let (mut trace, mut m) = (Vec::new(), 0.0);
    for step in 0..60u64 {
        let t = step as f64 * dt;
        let mut next = vec![0.0; n];
        for i in 0..n {
            let west = if i == 0 { 0.0 } else { now[i - 1] };
            let east = if i == n - 1 { 0.0 } else { now[i + 1] };
            let c = dt / h;
            next[i] = 2.0 * now[i] - prev[i] + c * c * (west - 2.0 * now[i] + east);
        }
        let root = std::f64::consts::PI * 15.0 * (t - 1.0 / 15.0);
        let a = root * root;
        next[20] += dt * dt * ((1.0 - 2.0 * a) * (-a).exp());
        for d in 0..6 {
            for level in [&mut next, &mut now] {
                level[d] *= factor(d);
            }
        }
        for d in 0..6 {
            for level in [&mut next, &mut now] {
                level[n - 1 - d] *= factor(d);
            }
        }
        if (step + 1) % 7 == 0 {
            m = now.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        }
        prev = std::mem::replace(&mut now, next);
        if (step + 1) % 10 == 0 {
            trace.push((step + 1, (step + 1) as f64 * dt, Value::F64(now[10])));
        }
    }
    let out = solve(source, &[]);
    let expected: Vec<Value> = now.iter().map(|&value| Value::F64(value)).collect();
    assert_eq!(out.fields[0].values, expected);
    assert_eq!(out.probes[0], trace);
    assert_eq!(out.reductions, [Some(Value::F64(m))]);
    assert_eq!(out.lines.len(), 3);
    assert!(out.lines[0].starts_with("step=20 t=0.25 m="), "{:?}", out.lines);
}

/// Final values of the first field of a 1D program of ten lines or fewer.
fn values(lines: &str) -> Vec<Value> {
    let source = format!("program small\n{lines}\noutput u as npy\n");
    solve(&source, &[]).fields[0].values.clone()
}

fn reals(values: &[f64]) -> Vec<Value> {
    values.iter().map(|&value| Value::F64(value)).collect()
}

#[test]
fn boundaries_give_the_points_outside() {
    let grid = "grid G(i: 4) x = 0.5*i\nfield u on G\ninit u = i*i\nuntil step >= 1\n";
    let sum = "update u = u[i-1] + 10*u[i+1]";
    assert_eq!(values(&format!("{grid}boundary u: all = mirror\n{sum}")), reals(&[11.0, 40.0, 91.0, 44.0]));
    assert_eq!(values(&format!("{grid}boundary u: all = periodic\n{sum}")), reals(&[19.0, 40.0, 91.0, 4.0]));
    // West: u[0] + 1*0.5*3; east: u[3] + 1*0.5*(-2).
    let neumann = "boundary u: west = neumann 3 ; east = neumann -2";
    assert_eq!(values(&format!("{grid}{neumann}\n{sum}")), reals(&[11.5, 40.0, 91.0, 84.0]));
    // Fixed points hold their rule's value; two points out the same expression is read.
    let fixed = "boundary u: west = 100*x - 7 ; east = 5";
    let far = "update u = u[i-2] + 10*u[i+2]";
    assert_eq!(values(&format!("{grid}{fixed}\n{far}")), reals(&[-7.0, 50.0 - 57.0, 50.0 - 7.0, 5.0]));
}

#[test]
fn boundaries_are_at_their_levels_time() {
    // u.next of the fixed point is 10*t at the new time; v takes it at its line; plain u is the old one.
    let lines = "param dt : real = 1\ngrid G(i: 3)\nfield u on G\nfield v on G\ninit u = 1\nboundary u: west = 10*t\n\
                 update u = u\nupdate v = u.next + 1000*u\nuntil step >= 2\noutput v as npy";
    let source = format!("program small\n{lines}\noutput u as npy\n");
    let out = solve(&source, &[]);
    assert_eq!(out.fields[0].values, reals(&[20.0, 1.0, 1.0]));
    assert_eq!(out.fields[1].values, reals(&[10020.0, 1001.0, 1001.0]));
}

#[test]
fn levels_colours_and_groups_order_reads() {
    // One level: the second line sees what the first has written.
    let start = "grid G(i: 4)\nfield u on G levels 1\nfield v on G levels 1\ninit u = i\ninit v = 10*i\nuntil step >= 1\noutput v as npy\n";
    assert_eq!(values(&format!("{start}update v = u\nupdate u = v")), reals(&[0.0, 1.0, 2.0, 3.0]));
    assert_eq!(
        values(&format!("{start}together {{\n  update v = u\n  update u = v\n}}")),
        reals(&[0.0, 10.0, 20.0, 30.0])
    );
    // Red points first, then black ones from the new red ones.
    let coloured = "grid G(i: 6)\nfield u on G\ninit u = 1\nboundary u: all = periodic\nuntil step >= 1\n\
                    update red u = u[i-1] + u[i+1]\nupdate black u = u[i-1] + u[i+1]";
    assert_eq!(values(coloured), reals(&[2.0, 4.0, 2.0, 4.0, 2.0, 4.0]));
}

#[test]
fn arithmetic_is_that_of_the_page() {
    let unit = |expression: &str| {
        let out = values(&format!("grid G(i: 1)\nfield u on G\nupdate u = {expression}\nuntil step >= 1"));
        out[0].f64()
    };
    assert_eq!(unit("0.1^3"), 0.1 * 0.1 * 0.1);
    assert_eq!(unit("-2^2"), -4.0);
    assert_eq!(unit("2^3^2"), 512.0);
    assert_eq!(unit("2^-2"), 0.25);
    assert_eq!(unit("7^0"), 1.0);
    assert_eq!(unit("2^0.5"), 2f64.powf(0.5));
    assert_eq!(unit("7/2"), 3.5);
    assert_eq!(unit("-7 div 2"), -4.0);
    assert_eq!(unit("-7 mod 3"), 2.0);
    assert_eq!(unit("mod(-7.5, 2)"), 0.5);
    assert_eq!(unit("sign(-3) + 10*sign(0) + 100*sign(0.5)"), 99.0);
    assert_eq!(unit("min(0.0, -0.0)").to_bits(), (-0.0f64).to_bits());
    assert_eq!(unit("max(-0.0, 0.0)").to_bits(), 0.0f64.to_bits());
    assert_eq!(unit("1 - 2 - 3"), -4.0);
    assert_eq!(unit("8/4/2"), 1.0);
    assert_eq!(unit("|1 - |2 - 5||"), 2.0);
    assert_eq!(unit("if 1 < 2 and not (3 == 4) then 5 else 6"), 5.0);
    assert_eq!(unit("9 bor 5 xor 7 band 3 << 1"), f64::from(9 | (5 ^ (7 & (3 << 1)))));
    assert_eq!(unit("1 + 1 << 2"), 8.0);
    assert_eq!(unit("floor(-1.5) + e*0 + pi*0"), -2.0);
}

#[test]
fn short_reals_are_computed_as_such() {
    let lines = "param a : real = 0.1\ngrid G(i: 3) x = 0.1*i\nfield u : real32 on G\ninit u = x*a + 0.3\n\
                 update u = u*a + sin(u)/3\nuntil step >= 1";
    let expected = |i: i32| {
        let u = (0.1 * f64::from(i)) as f32 * 0.1f32 + 0.3f32;
        Value::F32(u * 0.1f32 + (f64::from(u).sin() as f32) / 3.0f32)
    };
    assert_eq!(values(lines), [expected(0), expected(1), expected(2)]);
}

#[test]
fn functions_of_functions_shift_their_arguments() {
    // The Laplacian of the Laplacian reads five points.
    let lines = "grid G(i: 7)\nfield u on G\ninit u = i^4\nboundary u: all = mirror\nfunction d2(f) = f[i-1] - 2*f + f[i+1]\n\
                 update u = d2(d2(u))\nuntil step >= 1";
    assert_eq!(values(lines)[2..5], reals(&[24.0, 24.0, 24.0])[..]);
}

#[test]
fn steps_may_depend_on_a_reduction() {
    let lines = "grid G(i: 2)\nfield u on G\ninit u = 1 + i\nreduce top = max u\nlet dt = 1/top\nupdate u = 2*u\n\
                 until t > 0.8\nprint step, t, dt, top";
    let source = format!("program small\n{lines}\noutput u as npy\n");
    let out = solve(&source, &[]);
    // Before step 1 the largest is 2; each step reduces the values it started from.
    assert_eq!(out.lines, ["step=2 t=1.0 dt=0.5 top=4.0"]);
}

#[test]
fn what_is_not_finite_is_found() {
    let source = "program small\ngrid G(i: 16)\nfield u on G\ninit u = if i == 11 then 1e200 else 1\nupdate u = u*u\nuntil step >= 9\noutput u as npy\n";
    let compiled = compile_front(source, &Settings::default()).expect("compiles");
    let error = run(&compiled.program, &compiled.scalars, &Inputs::default()).expect_err("overflows");
    assert_eq!(error.to_string(), "u is not finite (inf) at cell (11), step 1");
}

#[test]
fn numbers_print_as_the_shortest_decimal_that_reads_back() {
    let show = |value: f64| Value::F64(value).to_string();
    assert_eq!(show(9.991994828301154e-05), "9.991994828301154e-05");
    assert_eq!(show(0.0001), "0.0001");
    assert_eq!(show(1e-7), "1e-07");
    assert_eq!(show(1e16), "1e+16");
    assert_eq!(show(123456789012345.0), "123456789012345.0");
    assert_eq!(show(1.0), "1.0");
    assert_eq!(show(-0.0), "-0.0");
    assert_eq!(show(0.1 + 0.2), "0.30000000000000004");
    assert_eq!(show(1e300), "1e+300");
    assert_eq!(show(f64::NAN), "nan");
    assert_eq!(show(f64::NEG_INFINITY), "-inf");
}

/// The coupled ring K(N, steps).
const RING: &str = "
program ring
param n : int = 240 in 1..
param steps : int = 100 in 1..
grid R(i: n)
field A0 : u64 on R
field A1 : u64 on R
init A0 = (7*i*i + 3) mod 1009
init A1 = (13*i + 5) mod 997
boundary A0: all = periodic
boundary A1: west, east = periodic
function mix(v) = v xor (v >> 7)
update A1 = mix(A1[i-1] + A1[i+1] - A1[i] + 3*A0)
update A0 = mix(A0[i-1] + A0[i+1] - A0[i] + 5*A1.next)
until step >= steps
";

#[test]
fn the_coupled_ring_gives_its_numbers() {
    let out = solve(RING, &[]);
    assert_eq!(out.closing(), ["steps 100", "digest A0 f0411069f324ad7c", "digest A1 2df2de30f2906ca5"]);
    assert_eq!(out.fields[0].values[0], Value::U64(18312934280922522960));
    assert_eq!(out.fields[1].values[0], Value::U64(17043603417169296781));
}
