//! The register hazards at every optimisation level, with and without link-time optimisation: right with the macro, wrong
//! in the twin whose registers are written out by hand. Never trusts one build: the compiler is what is tested.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rma::launch::{Launch, Stats, Tags, Transport, launch};
use rma_tests::emitted::{Lto, build};

/// What the program must print: for each hazard the macro's values and the twin's.
const EXPECTED: [(&str, &str); 6] = [
    // covers: REG-XFORM-03
    ("early-load", "macro [2] twin [1]"),
    // covers: REG-HAZ-03, REG-XFORM-04
    ("late-store", "macro [777] twin [999]"),
    // covers: REG-HAZ-02
    ("missed-store", "macro [200] twin [1]"),
    // covers: REG-XFORM-01, REG-XFORM-02
    ("one-load", "macro [1, 2] twin [1, 1]"),
    // covers: REG-MAC-03
    ("plain-memory", "macro [777] twin [999]"),
    // covers: REG-HAZ-01
    ("stale-read", "macro [777] twin [999]"),
];

/// What the program must print of what it has written with calls: so many rounds were right, on both kinds of memory.
const BY_CALLS: [&str; 3] = [
    // covers: RMA-REG-01 -- tests/emitted.rs looks at the loop
    "stale-read-by-calls {memory}: {n} of {n}",
    // covers: RMA-REG-02
    "missed-store-by-calls {memory}: {n} of {n}",
    // covers: VIS-EX1-06
    "switching-styles {memory}: [{tenth}, {tenth}] of {tenth}",
];
/// Rounds of these, and where all optimisations are on.
const ROUNDS: u64 = 1000;
const ALL_ROUNDS: u64 = 100_000;

#[test]
fn hazards_do_not_bite_at_any_optimisation_level() {
    // Two builds at a time, since each uses one core for most of its time.
    std::thread::scope(|scope| {
        scope.spawn(|| hazards(Lto::Off));
        hazards(Lto::Fat);
    });
}

fn hazards(lto: Lto) {
    for level in 0..=3 {
        let program = build("register-hazard", level, lto);
        let rounds = if level == 3 && lto == Lto::Fat { ALL_ROUNDS } else { ROUNDS };
        for (transport, printed) in
            [("local", as_threads(&program, rounds)), ("shm", as_processes(&program, rounds))]
        {
            let build = format!("opt-level {level}, {lto:?}, {transport}");
            let lines: BTreeMap<&str, &str> =
                printed.lines().filter_map(|line| line.split_once(' ')).collect();
            for (hazard, expected) in EXPECTED {
                assert_eq!(lines.get(hazard), Some(&expected), "{hazard} at {build}:\n{printed}");
            }
            for (line, memory) in BY_CALLS.iter().flat_map(|line| [(line, "one copy"), (line, "two copies")])
            {
                let line = line.replace("{memory}", memory).replace("{n}", &rounds.to_string());
                let line = line.replace("{tenth}", &(rounds / 10).to_string());
                assert!(printed.lines().any(|printed| printed == line), "no '{line}' at {build}:\n{printed}");
            }
            // The hazard is real: without the call the compiler does what the twin does by hand.
            if 0 < level && cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
                assert_eq!(lines.get("without-touch"), Some(&"compiler 999"), "{build}");
            }
        }
    }
}

fn as_threads(program: &Path, rounds: u64) -> String {
    let output = Command::new(program).arg(rounds.to_string()).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn as_processes(program: &Path, rounds: u64) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let job = Launch {
        ranks: 2,
        limit: Some(Duration::from_secs(60)),
        tags: Tags::Off,
        stats: Stats::Off,
        transport: Transport::Shm,
        ranks_per_node: None,
        bind: None,
        program: program.as_os_str().to_owned(),
        arguments: vec![rounds.to_string().into(), folder.path().as_os_str().to_owned()],
    };
    assert_eq!(launch(&job), 0, "the job failed; its output is above");
    ["0", "1"]
        .map(|rank| std::fs::read_to_string(folder.path().join(rank)).expect("each rank writes"))
        .concat()
}
