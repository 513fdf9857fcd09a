//! Ranks that are killed or stopped in the middle of puts, gets and offers: the others learn it by a typed error, and nothing is
//! left.
#![forbid(unsafe_code)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{Job, SOON, assert_gone, assert_nothing_left, signal};

const NETWORKS: [&str; 3] = ["--transport shm", "--transport tcp", "--ranks-per-node 2"];
const FAMILIES: [&str; 4] = ["plain", "progressive", "collective", "direct"];

/// How often ranks are killed, and how often stopped. The long runs ask for hundreds by `RMA_TEST_KILLS`.
fn rounds() -> u32 {
    std::env::var("RMA_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// A number that differs from call to call.
fn some_number(seed: u32) -> u64 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (u64::from(clock.subsec_nanos()) ^ u64::from(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Every network with every family.
fn kinds(round: u32) -> (&'static str, &'static str, u32) {
    (NETWORKS[round as usize % 3], FAMILIES[round as usize / 3 % 4], round % 4 % 3)
}

#[test]
fn a_killed_rank_ends_every_offer() {
    let mut latencies = Vec::new();
    for round in 0..rounds() {
        let (network, family, victim) = kinds(round);
        let mut job = Job::start(&format!("-n 3 {network}"), &format!("offers {family}"));
        let launcher = job.id();
        let processes = job.processes(3);
        // A point somewhere in hundreds of exchanges: before, in or after a copy, with or without a lock.
        thread::sleep(Duration::from_micros(some_number(round) % 20_000));
        let killed = Instant::now();
        signal(processes[victim as usize], "KILL");
        for _ in 0..2 {
            job.wait_line("got");
        }
        latencies.push(killed.elapsed());
        let ended = job.end();
        // A survivor may be told by one that has already ended with its own error.
        assert_eq!(ended.lines("got PeerLost").len(), 2, "{network} {family}: {ended:#?}");
        assert!(
            !ended.lines(&format!("lost Some(Rank({victim}))")).is_empty(),
            "{network} {family}: {ended:#?}"
        );
        assert_eq!(ended.code(), Some(128 + 9), "{ended:#?}");
        assert_gone(&processes, Duration::ZERO);
        assert_nothing_left(launcher);
    }
    latencies.sort_unstable();
    let (median, slowest) = (latencies[latencies.len() / 2], latencies[latencies.len() - 1]);
    println!("told of {} deaths: median {median:?}, slowest {slowest:?}", latencies.len());
    assert!(median < Duration::from_secs(1) && slowest < SOON, "{latencies:?}");
}

#[test]
fn a_stopped_rank_stalls_every_offer() {
    for round in 0..rounds().div_ceil(3) {
        // Each network with another family.
        let (network, family) = (NETWORKS[round as usize % 3], FAMILIES[(round + 3) as usize % 4]);
        let mut job = Job::start(&format!("-n 3 --timeout 1 {network}"), &format!("offers {family}"));
        let launcher = job.id();
        let processes = job.processes(3);
        thread::sleep(Duration::from_micros(some_number(round) % 20_000));
        let stopped = Instant::now();
        signal(processes[1], "STOP");
        let first = job.wait_line("got");
        job.wait_line("got");
        let took = stopped.elapsed();
        println!("{network} {family}: ended {took:?} after the stop: {first}");
        assert!(first.contains("got Stalled"), "{network} {family}: {first}");
        assert!(took < SOON, "{network} {family}: {took:?}");
        signal(processes[1], "CONT");
        let ended = job.end();
        assert_eq!(ended.code(), Some(1), "{ended:#?}");
        assert_gone(&processes, Duration::ZERO);
        assert_nothing_left(launcher);
    }
}
