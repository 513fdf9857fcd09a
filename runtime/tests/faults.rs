//! Random faults over every transport: whatever happens to a rank, a link or the launcher, every other rank ends with a typed error
//! soon, the job ends and says why, and nothing is left. Never judges which rank is named first: later losses follow from
//! earlier ones.
//!
//! A run makes twenty faults, and two hundred with `RMA_FULL=1`; `RMA_TEST_SEED=N` repeats those of a seed that was printed.
#![forbid(unsafe_code)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{Job, SOON, assert_gone, assert_nothing_left, is_full, signal, some_number, wake};

const TRANSPORTS: [&str; 3] = ["--transport shm", "--transport tcp", "--ranks-per-node 2"];

/// What happens to a job.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A rank is killed.
    Kill,
    /// A rank is stopped, and goes on when the others have given up.
    Stop,
    /// The launcher is killed.
    KillLauncher,
    /// The launcher is asked to end the job.
    EndJob,
    /// A rank does this by itself in the middle of an epoch, or between two.
    Itself(&'static str),
}

const FAULTS: [Fault; 8] = [
    Fault::Kill,
    Fault::Stop,
    Fault::KillLauncher,
    Fault::EndJob,
    Fault::Itself("error"),
    Fault::Itself("panic"),
    Fault::Itself("exit"),
    Fault::Itself("leave"),
];

/// The same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn nothing_hangs_and_nothing_is_left() {
    let seed = std::env::var("RMA_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| some_number(1));
    println!("the faults are those of RMA_TEST_SEED={seed}");
    let mut random = Random(seed);
    for number in 0..if is_full() { 200 } else { 20 } {
        // Each kind comes as often as the others, in another order and at other places.
        let fault = FAULTS[(number + seed as usize) % FAULTS.len()];
        let transport = TRANSPORTS[random.below(3) as usize];
        let ranks = 3 + random.below(3) as u32;
        let victim = random.below(ranks.into()) as u32;
        let delay = Duration::from_micros(random.below(30_000));
        let round = 1 + random.below(100);
        println!("fault {number}: {fault:?} of rank {victim} of {ranks}, {transport}");
        strike(fault, transport, ranks, victim, delay, round);
    }
}

fn strike(fault: Fault, transport: &str, ranks: u32, victim: u32, delay: Duration, round: u64) {
    let itself = match fault {
        Fault::Itself(fault) => fault,
        _ => "none",
    };
    // Only who may be stopped needs a limit; without one, evidence has to end every wait.
    let limit = if matches!(fault, Fault::Stop) { "--timeout 1" } else { "" };
    let options = format!("-n {ranks} {limit} {transport}");
    let mut job = Job::start(&options, &format!("epochs {itself} {victim} {round}"));
    let launcher = job.id();
    let processes = job.processes(ranks as usize);
    let survivors = ranks as usize - 1;
    thread::sleep(delay);
    let begun = Instant::now();
    match fault {
        Fault::Kill => {
            signal(processes[victim as usize], "KILL");
            job.wait_lines(" got ", survivors);
        }
        Fault::Stop => {
            signal(processes[victim as usize], "STOP");
            job.wait_lines(" got ", survivors);
            wake(processes[victim as usize]);
        }
        Fault::KillLauncher => signal(launcher, "KILL"),
        Fault::EndJob => signal(launcher, "TERM"),
        Fault::Itself(_) => job.wait_lines(" got ", survivors),
    }
    if matches!(fault, Fault::Kill | Fault::Itself(_)) {
        // A second by requirement, and more for a machine that is busy with other things.
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
    if matches!(fault, Fault::KillLauncher) {
        assert_gone(&processes, SOON);
    }
    for line in job.seen().iter().filter(|line| line.contains(" got ")) {
        let known = ["PeerLost", "Stalled", "Poisoned", "WindowFreed", "CollectiveMismatch"];
        assert!(known.iter().any(|kind| line.contains(&format!(" got {kind} "))), "{line}");
    }
    let ended = job.end();
    assert_ne!(ended.code(), Some(0), "{ended:#?}");
    if !matches!(fault, Fault::KillLauncher) {
        ended.says("rma-run: ");
    }
    assert_gone(&processes, SOON);
    assert_nothing_left(launcher);
}
