//! Jobs whose ranks share no memory, or some of whom do: the launcher's promises, deaths, and strangers at the door.
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use common::{
    Job, RANKS, assert_all_lost, assert_gone, assert_killed, assert_nothing_left, assert_within_a_second,
    kill, rounds, run, signal, some_rounds, wake,
};

/// Every rank alone, and nodes of different sizes.
const NETWORKS: [&str; 2] = ["--transport tcp", "--ranks-per-node 2"];

#[test]
fn every_rank_runs_on_every_network() {
    for network in NETWORKS {
        for ranks in [1, 2, 5] {
            let ended = run(&format!("-n {ranks} --timeout 30 {network}"), "hello");
            assert_eq!(ended.code(), Some(0), "{ended:#?}");
            let said: BTreeSet<String> = ended.out.iter().cloned().collect();
            let expected = (0..ranks).map(|rank| format!("hello from rank {rank} of {ranks}")).collect();
            assert_eq!(said, expected);
        }
    }
}

#[test]
fn wrong_calls_are_refused_with_a_sentence() {
    let check = |options: &str, text: &str| {
        let ended = run(options, "hello");
        assert_eq!(ended.code(), Some(2), "{options}: {ended:#?}");
        ended.says(text);
    };
    check(
        "-n 2 --transport shm --ranks-per-node 1",
        "--ranks-per-node makes nodes that are connected by TCP",
    );
    check(
        "-n 2 --transport local --ranks-per-node 1",
        "--ranks-per-node makes nodes that are connected by TCP",
    );
    check("-n 2 --ranks-per-node 0", "0 is not in 1..=1024");
    check("-n 2 --bind 127.0.0.1", "--bind is for ranks that are connected by TCP");
    check("-n 2 --transport tcp --bind here", "not an IP address");
    check("-n 2 --transport tcp --bind 0.0.0.0", "name the address by which the others reach this machine");
    let ended = run("-n 2 --transport tcp --bind 192.0.2.1", "hello");
    assert_eq!(ended.code(), Some(1), "{ended:#?}");
    ended.says("nothing can listen at 192.0.2.1");
}

#[test]
fn a_secret_is_in_no_argument_and_in_no_message() {
    let mut job = Job::start("-n 2 --transport tcp", "sleep 50");
    let launcher = job.id();
    let processes = job.processes(2);
    let environment = std::fs::read(format!("/proc/{}/environ", processes[0])).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let secret =
        environment.split('\0').find_map(|entry| entry.strip_prefix("RMA_SECRET=")).unwrap().to_owned();
    assert_eq!(secret.len(), 32, "128 bits");
    for process in processes.iter().chain([&launcher]) {
        let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains(&secret));
    }
    signal(launcher, "TERM");
    let ended = job.end();
    assert!(!format!("{ended:?}").contains(&secret));
}

#[test]
fn a_rank_joins_by_its_environment() {
    let mut job = Job::start("-n 2 --transport tcp --timeout 20", "sleep 50");
    let processes = job.processes(2);
    let environment = std::fs::read(format!("/proc/{}/environ", processes[1])).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let variable = |name: &str| {
        let entry = environment.split('\0').find_map(|entry| entry.strip_prefix(&format!("{name}=")));
        (name.to_owned(), entry.unwrap_or_else(|| panic!("{name} is not set")).to_owned())
    };
    let joining = |secret: Option<String>| {
        let mut variables: Vec<_> =
            ["RMA_RANK", "RMA_SIZE", "RMA_RENDEZVOUS", "RMA_SECRET"].map(variable).into();
        variables.extend(secret.map(|secret| ("RMA_SECRET".to_owned(), secret)));
        let output =
            Command::new(RANKS).arg("hello").env("RMA_TIMEOUT", "10").envs(variables).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // The rank is there already, so a second one of its name is told so, which proves that it was understood.
    let (status, said) = joining(None);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("rank 1 has joined already"), "{said}");
    let (status, said) = joining(Some("0".repeat(32)));
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("it refused the handshake") || said.contains("it does not know the secret"),
        "{said}"
    );
    signal(job.id(), "TERM");
    job.end();
}

/// The address that ranks of a job listen at, and that of its rendezvous.
fn listeners(process: u32) -> Vec<SocketAddr> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let rendezvous = environment.split('\0').find_map(|entry| entry.strip_prefix("RMA_RENDEZVOUS=")).unwrap();
    let mut found = vec![rendezvous.rsplit("tcp:").next().unwrap().parse().unwrap()];
    // Sockets of the process that listen (state 0A), by their inode numbers.
    let inodes: BTreeSet<String> = std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    for line in std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[3] == "0A" && inodes.contains(fields[9]) {
            let port = u16::from_str_radix(fields[1].rsplit(':').next().unwrap(), 16).unwrap();
            assert!(
                fields[1].starts_with("0100007F:"),
                "a rank listens at loopback unless it is told otherwise"
            );
            found.push(SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
    found
}

#[test]
fn strangers_are_dropped_and_disturb_nobody() {
    let over = std::env::temp_dir().join(format!("rma-strangers-{}", std::process::id()));
    let mut job = Job::start("-n 2 --transport tcp --timeout 30", &format!("meeting {}", over.display()));
    let processes = job.processes(2);
    let doors = listeners(processes[0]);
    assert_eq!(doors.len(), 2, "the rendezvous and one door");
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", processes[0])).unwrap().count();
    let before = descriptors();
    let mut silent = Vec::new();
    for &door in &doors {
        // Garbage, a half-open connection, a request of another protocol, and a flood of silent ones.
        let mut garbage = TcpStream::connect(door).unwrap();
        garbage.write_all(&[0x5a; 4096]).unwrap();
        let mut http = TcpStream::connect(door).unwrap();
        http.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, application/json\r\n\r\n")
            .unwrap();
        for mut stranger in [garbage, http] {
            stranger.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut answer = Vec::new();
            // An error is a connection that was reset, since nobody has read all of the garbage.
            let _ = stranger.read_to_end(&mut answer);
            assert!(answer.is_empty(), "a stranger gets no answer");
        }
        silent.extend((0..200).map(|_| TcpStream::connect(door).unwrap()));
    }
    assert!(
        descriptors() < before + 80,
        "strangers do not use up descriptors: {before}, then {}",
        descriptors()
    );
    // Those that say nothing are dropped after a time.
    for stranger in &mut silent {
        stranger.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(matches!(stranger.read(&mut [0; 8]), Ok(0) | Err(_)), "a stranger gets no answer");
    }
    drop(silent);
    std::fs::write(&over, "").unwrap();
    let ended = job.end();
    std::fs::remove_file(&over).unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("has met").len(), 2, "{ended:#?}");
}

#[test]
fn a_killed_rank_is_named_with_its_signal() {
    let mut latencies = Vec::new();
    for round in 0..rounds(4) {
        let network = NETWORKS[round as usize % 2];
        let victim = round % 3;
        let mut job = Job::start(&format!("-n 3 {network}"), "forever");
        let launcher = job.id();
        let processes = job.processes(3);
        // Before, in or after the victim's arrival at a barrier.
        some_rounds(round);
        latencies.push(kill(&mut job, processes[victim as usize], 2));
        let ended = job.end();
        assert_all_lost(&ended, 3, victim, "Signalled(9)");
        ended.says(&format!("rma-run: rank {victim} (process {})", processes[victim as usize]));
        ended.says("was killed by signal 9 (SIGKILL)");
        assert_killed(&ended, launcher, &processes);
    }
    assert_within_a_second(latencies);
}

#[test]
fn a_stopped_rank_stalls_the_others() {
    for network in NETWORKS {
        let mut job = Job::start(&format!("-n 3 --timeout 1 {network}"), "forever");
        let processes = job.processes(3);
        signal(processes[2], "STOP");
        for _ in 0..2 {
            let line = job.wait_line("got");
            assert!(line.contains("got Stalled"), "{line}");
            assert!(line.contains("rank 2 does not answer: it is stopped, or cut off"), "{line}");
        }
        wake(processes[2]);
        let ended = job.end();
        assert_eq!(ended.code(), Some(1), "{ended:#?}");
        assert_gone(&processes, Duration::ZERO);
    }
}

#[test]
fn a_killed_launcher_leaves_no_rank() {
    for network in NETWORKS {
        let mut job = Job::start(&format!("-n 4 {network}"), "forever");
        let launcher = job.id();
        let processes = job.processes(4);
        signal(launcher, "KILL");
        assert_gone(&processes, Duration::from_secs(20));
        job.end();
        assert_nothing_left(launcher);
    }
}

#[test]
fn ends_of_every_kind_reach_the_others() {
    let kinds = [
        ("fail 1", 1, "ReturnedError"),
        ("panic 2", 101, "Panicked"),
        ("leave 0", 1, "Finished"),
        ("exit 1 3", 3, "ProcessExited(3)"),
    ];
    for network in NETWORKS {
        for (program, status, evidence) in kinds {
            let ended = run(&format!("-n 3 {network}"), program);
            assert_eq!(ended.code(), Some(status), "{program}: {ended:#?}");
            let victim = program.split_whitespace().nth(1).and_then(|rank| rank.parse().ok()).unwrap();
            assert_all_lost(&ended, 3, victim, evidence);
        }
    }
}

#[test]
fn ranks_that_may_open_few_files_wait_for_nobody_for_ever() {
    // From too few for the process itself over too few for the second rank's connection to enough. No time limit helps.
    for files in 6..16 {
        let script = format!("ulimit -n {files}; exec {RANKS} barriers 3");
        let ended = Job::start_words(["-n", "2", "--transport", "tcp", "sh", "-c", &script], b"").end();
        match ended.code() {
            Some(0) => assert_eq!(ended.lines("is done").len(), 2, "{files} files: {ended:#?}"),
            _ => ended.says("rma-run: rank "),
        }
    }
}

#[test]
fn a_program_that_never_joins_is_missed() {
    let script = format!("if [ $RMA_RANK = 1 ]; then exit 7; else exec {RANKS} forever; fi");
    let ended = Job::start_words(["-n", "3", "--transport", "tcp", "sh", "-c", &script], b"").end();
    assert_eq!(ended.code(), Some(7), "{ended:#?}");
    for rank in [0, 2] {
        let text = format!(
            "rank {rank}: error: barrier by rank {rank} lost rank 1: its process exited with status 7"
        );
        ended.says(&text);
    }
}

#[test]
fn a_stall_says_who_waits_for_whom() {
    for network in NETWORKS {
        let ended = run(&format!("-n 3 --timeout 0.7 {network}"), "stalled");
        for rank in [0, 1] {
            let seen = ended.lines(&format!("rank {rank} got Stalled"));
            assert_eq!(seen.len(), 1, "{ended:#?}");
            assert!(seen[0].contains("rank 2 does not wait"), "{ended:#?}");
        }
    }
}

#[test]
fn different_collective_calls_are_told_apart() {
    for network in NETWORKS {
        for ranks in [2, 3, 5] {
            let ended = run(&format!("-n {ranks} --timeout 20 {network}"), "mismatch");
            assert_eq!(ended.code(), Some(0), "{ended:#?}");
            assert_eq!(ended.lines("got CollectiveMismatch").len(), ranks, "{ended:#?}");
        }
    }
}

#[test]
fn what_was_sent_is_said_at_the_end() {
    let ended = run("-n 2 --transport tcp --stats", "barriers 10");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    for rank in 0..2 {
        // One message per barrier of two ranks, and nothing else before the end.
        ended.says(&format!("rank {rank}: sent 10 frames and 0 replies ("));
    }
    let ended = run("-n 2 --transport shm --stats", "barriers 10");
    ended.says("rank 0: sent 0 frames and 0 replies (0 bytes in 0 writes)");
    let ended = run("-n 2 --transport tcp", "barriers 10");
    assert!(!ended.err.iter().any(|line| line.contains("frames")), "{ended:#?}");
}

#[test]
fn idle_jobs_use_no_processor() {
    let ended = run("-n 4 --transport tcp", "idle 2000");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("used").len(), 4);
    for line in ended.lines("used") {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // An agent or a waiter that polls would use 2000.
        assert!(numbers[1] <= 100, "{line}");
    }
}

#[test]
fn more_ranks_than_cores_do_not_collapse() {
    let ended = run("-n 8 --timeout 30 --transport tcp", "barriers 200");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("is done").len(), 8);
}
