//! What the compiler makes of generated code: accesses to exposed memory are all there and in their order, loops of private
//! epochs are vectorised, and a put by the macro costs what a put by the call costs. Never measures time.

use std::process::Command;

use rma_tests::emitted::{Lto, assembly_of, build, ir_of, text};

/// How much more a macro's put may cost than the call's, in instructions of a thousand.
const EXCESS_PER_THOUSAND: u64 = 20;

fn at(lines: &[&str], what: &str, after: usize) -> usize {
    let found = lines[after..].iter().position(|line| line.contains(what));
    after + found.unwrap_or_else(|| panic!("no `{what}` after line {after} of\n{}", lines.join("\n")))
}

fn count(lines: &[&str], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

// covers: REG-XFORM-04, REG-MAC-01, REG-MAC-02, RMA-MAC-04
#[test]
fn optimised_code_keeps_every_access_between_its_calls() {
    let ir = text("emitted-code", "llvm-ir");

    // Exposed memory: `sideeffect` assembly, which is what volatile is and defined under a race besides.
    let loads = ir_of(&ir, "two_volatile_loads");
    assert_eq!(count(&loads, "i64 asm sideeffect"), 2, "{}", loads.join("\n"));
    let stores = ir_of(&ir, "three_volatile_stores");
    assert_eq!(count(&stores, "void asm sideeffect"), 3, "{}", stores.join("\n"));
    for (lines, access) in [(&loads, "i64 asm sideeffect"), (&stores, "void asm sideeffect")] {
        // Opened: memory fence, then compiler fence, then the accesses; closed: the other way round.
        let opened = at(lines, "fence acquire", 0);
        let held = at(lines, "fence syncscope(\"singlethread\") seq_cst", opened);
        let first = at(lines, access, held);
        let closing = at(lines, "fence syncscope(\"singlethread\") seq_cst", first);
        let released = at(lines, "fence release", closing);
        assert!(at(lines, access, first) < released);
        assert!(lines[released..].iter().all(|line| !line.contains(access)), "an access after the unlock");
    }

    // Private epochs: plain accesses, but none of them crosses the synchronization.
    let lines = ir_of(&ir, "store_sync_load");
    let store = at(&lines, "store i64 24301", 0);
    let before = at(&lines, "fence release", store);
    let sync = at(&lines, "@_ZN12emitted_code4sync", before);
    let after = at(&lines, "fence acquire", sync);
    let load = at(&lines, "load i64", after);
    assert_eq!(count(&lines, "store i64 24301"), 1, "the store is neither kept back nor repeated");
    assert!(store < before && before < sync && sync < after && after < load);
    assert_eq!(
        count(&lines[sync..], "i64 24301"),
        0,
        "the value is not taken from before the synchronization"
    );
}

/// The program of the hazard with calls: tests/registers.rs looks at its values.
// covers: RMA-REG-01
#[test]
fn what_is_loaded_after_a_fence_is_loaded_there() {
    let ir = text("emitted-code", "llvm-ir");
    let lines = ir_of(&ir, "load_after_fence");
    // The fence is not looked into, and the accesses on its two sides are assembly that has effects.
    let store = at(&lines, "void asm sideeffect", 0);
    let fence = at(&lines, "@\"_ZN3rma6window3raw6fences", store);
    let load = at(&lines, "i64 asm sideeffect", fence);
    assert!(lines[store].contains("i64 999"), "{}", lines[store]);
    assert_eq!(count(&lines, "void asm sideeffect"), 1, "{}", lines.join("\n"));
    assert_eq!(count(&lines, "i64 asm sideeffect"), 1, "{}", lines.join("\n"));
    assert!(lines[..load].iter().any(|line| line.contains("phi i64")), "in a loop");
}

#[test]
fn the_loop_of_a_private_epoch_is_vectorised() {
    let packed = if cfg!(target_arch = "x86_64") {
        ["mulpd", "vmulpd"]
    } else if cfg!(target_arch = "aarch64") {
        ["fmul\tv", "fmul v"]
    } else {
        eprintln!("skipped: what a vector instruction looks like here is not known to this test");
        return;
    };
    let assembly = text("emitted-code", "asm");
    let lines = assembly_of(&assembly, "scale_in_local_epoch");
    assert!(!lines.is_empty(), "the function is there");
    let vectors = lines.iter().filter(|line| packed.iter().any(|word| line.starts_with(word))).count();
    assert!(vectors > 0, "no vector multiplication in\n{}", lines.join("\n"));
}

#[test]
fn a_put_by_the_macro_costs_what_a_put_by_the_call_costs() {
    if !rma_tests::have("valgrind") {
        return;
    }
    let program = build("emitted-code", 3, Lto::Off);
    let [by_macro, by_call] = ["macro", "call"].map(|form| {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(format!("--toggle-collect=emitted_code::puts_by_{form}"))
            .arg(&program)
            .arg(form)
            .output()
            .expect("valgrind starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let collected = said.lines().find_map(|line| line.split_once("Collected :"));
        collected.and_then(|(_, number)| number.trim().parse::<u64>().ok()).expect("callgrind counts")
    });
    println!("instructions for 1000 puts: {by_macro} by the macro, {by_call} by the call");
    assert!(by_call > 1000, "the calls are really counted: {by_call}");
    let allowed = by_call + by_call * EXCESS_PER_THOUSAND / 1000;
    assert!(by_macro <= allowed, "{by_macro} instructions by the macro, {by_call} by the call");
}

#[test]
fn what_volatile_costs_is_printed() {
    // A note for whoever wonders, not a limit: the machine may be busy.
    let output = Command::new(build("emitted-code", 3, Lto::Off)).arg("sums").output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("private epoch"), "{output:?}");
    print!("{printed}");
}
