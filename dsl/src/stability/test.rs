//! Steps at, below and above the limit of stability. Never runs a program.

use crate::{Settings, compile_front};

/// The title and the way out of the warning, if there is one.
fn check(lines: &str) -> Option<(String, String)> {
    let source = format!(
        "program small\nparam n : int = 41\nlet h = 1/(n-1)\n{lines}\nuntil step >= 1\noutput u as npy\n"
    );
    let compiled = compile_front(&source, &Settings::default())
        .map_err(|found| format!("{found:#?}"))
        .expect("compiles");
    let warnings: Vec<_> = compiled.warnings.iter().filter(|warning| warning.code == "W0003").collect();
    assert!(warnings.len() <= 1);
    warnings.first().map(|warning| (warning.title.clone(), warning.helps[0].text.clone()))
}

const HEAT: &str = "grid G(i: n, j: n) x = i*h, y = j*h\nfield u on G\nfield k on G constant\ninit k = if x < 0.5 then 1 else 2\nboundary u: all = 0\n\
                    function lap(f) = (f[i-1,j] + f[i+1,j] + f[i,j-1] + f[i,j+1] - 4*f)/h^2\nupdate u = u + dt*k*lap(u)";

#[test]
fn diffusion_is_stable_up_to_a_quarter_over_the_largest_coefficient() {
    assert_eq!(check(&format!("let dt = 0.124*h^2\n{HEAT}")), None);
    assert_eq!(check(&format!("let dt = 0.125*h^2\n{HEAT}")), None);
    let (title, help) = check(&format!("let dt = 0.25*h^2\n{HEAT}")).expect("a warning");
    // 1 - 8*0.25*2 = -3; the limit is h²/8.
    assert_eq!(title, "this step of `u` is unstable: errors grow by up to 3.0 per step");
    assert_eq!(help, "the largest stable `dt` is about 7.812e-05");
}

#[test]
fn waves_are_stable_up_to_the_courant_number() {
    let wave = "let c = dt/h\ngrid G(i: n)\nfield u on G levels 3\nboundary u: all = 0\nupdate u = 2*u - u.prev + c^2*(u[i-1] - 2*u + u[i+1])";
    assert_eq!(check(&format!("param dt : real = 0.02\n{wave}")), None);
    assert_eq!(check(&format!("param dt : real = 0.025\n{wave}")), None);
    let (_, help) = check(&format!("param dt : real = 0.03\n{wave}")).expect("a warning");
    assert_eq!(help, "the largest stable `dt` is about 0.025");
}

#[test]
fn central_advection_has_no_stable_step() {
    let upwind = "grid G(i: n)\nfield u on G\nboundary u: all = periodic\nupdate u = u - dt*(u - u[i-1])/h";
    assert_eq!(check(&format!("let dt = 0.5*h\n{upwind}")), None);
    assert!(check(&format!("let dt = 1.5*h\n{upwind}")).is_some());
    let central =
        "grid G(i: n)\nfield u on G\nboundary u: all = periodic\nupdate u = u - dt*(u[i+1] - u[i-1])/(2*h)";
    let (_, help) = check(&format!("let dt = 0.5*h\n{central}")).expect("a warning");
    assert!(help.starts_with("no `dt` makes it stable"), "{help}");
}

#[test]
fn what_is_not_linear_or_has_no_step_is_passed_over() {
    assert_eq!(check("param dt : real = 9\ngrid G(i: n)\nfield u on G\nupdate u = u + dt*u*u"), None);
    assert_eq!(check("grid G(i: n)\nfield u on G\nupdate u = 2*u + h"), None);
    assert_eq!(check("param dt : real = 9\ngrid G(i: n)\nfield u on G\nupdate u = u + dt*h*i*u"), None);
    // A source term that varies does not matter.
    assert_eq!(
        check("param dt : real = 0.5\ngrid G(i: n)\nfield u on G\nupdate u = u - dt*u + dt*h*i*sin(t)"),
        None
    );
}
