//! Ranks that are killed or stopped in the middle of puts, gets and offers: the others learn it by a typed error, and nothing is
//! left.
#![forbid(unsafe_code)]

mod common;

use std::time::{Duration, Instant};

use common::{
    Job, SOON, assert_gone, assert_killed, assert_nothing_left, assert_within_a_second, kill, rounds, signal,
    some_rounds, wake,
};

const NETWORKS: [&str; 3] = ["--transport shm", "--transport tcp", "--ranks-per-node 2"];
const FAMILIES: [&str; 4] = ["plain", "progressive", "collective", "direct"];
/// How often a rank is killed: on every network in every family.
const KILLS: u32 = 12;

/// Every network with every family.
fn kinds(round: u32) -> (&'static str, &'static str, u32) {
    (NETWORKS[round as usize % 3], FAMILIES[round as usize / 3 % 4], round % 4 % 3)
}

#[test]
fn a_killed_rank_ends_every_offer() {
    let mut latencies = Vec::new();
    for round in 0..rounds(KILLS) {
        let (network, family, victim) = kinds(round);
        let mut job = Job::start(&format!("-n 3 {network}"), &format!("offers {family}"));
        let launcher = job.id();
        let processes = job.processes(3);
        // Before, in or after a copy, with or without a lock.
        some_rounds(round);
        latencies.push(kill(&mut job, processes[victim as usize], 2));
        let ended = job.end();
        // A survivor may be told by one that has already ended with its own error.
        assert_eq!(ended.lines("got PeerLost").len(), 2, "{network} {family}: {ended:#?}");
        assert!(
            !ended.lines(&format!("lost Some(Rank({victim}))")).is_empty(),
            "{network} {family}: {ended:#?}"
        );
        assert_killed(&ended, launcher, &processes);
    }
    assert_within_a_second(latencies);
}

#[test]
fn a_stopped_rank_stalls_every_offer() {
    for round in 0..rounds(KILLS).div_ceil(3) {
        // Each network with another family.
        let (network, family) = (NETWORKS[round as usize % 3], FAMILIES[(round + 3) as usize % 4]);
        let mut job = Job::start(&format!("-n 3 --timeout 1 {network}"), &format!("offers {family}"));
        let launcher = job.id();
        let processes = job.processes(3);
        some_rounds(round);
        let stopped = Instant::now();
        signal(processes[1], "STOP");
        let first = job.wait_line("got");
        job.wait_line("got");
        let took = stopped.elapsed();
        println!("{network} {family}: ended {took:?} after the stop: {first}");
        assert!(first.contains("got Stalled"), "{network} {family}: {first}");
        assert!(took < SOON, "{network} {family}: {took:?}");
        wake(processes[1]);
        let ended = job.end();
        assert_eq!(ended.code(), Some(1), "{ended:#?}");
        assert_gone(&processes, Duration::ZERO);
        assert_nothing_left(launcher);
    }
}
