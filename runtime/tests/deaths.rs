//! Ranks that are killed, stopped, fail, panic or leave, and a launcher that is killed: the others learn it by a typed
//! error within a second, and nothing is left.
#![forbid(unsafe_code)]

mod common;

use std::time::Duration;

use common::{
    Job, RANKS, SOON, assert_all_lost, assert_gone, assert_killed, assert_nothing_left,
    assert_within_a_second, kill, rounds, run, signal, some_rounds, wake,
};

const KIND: [&str; 2] = ["shm", "local"];

#[test]
fn a_killed_rank_is_named_with_its_signal() {
    let mut latencies = Vec::new();
    for round in 0..rounds(4) {
        for victim in 0..3 {
            let mut job = Job::start("-n 3", "forever");
            let launcher = job.id();
            let processes = job.processes(3);
            // Before, in or after the victim's arrival at a barrier.
            some_rounds(round * 3 + victim);
            latencies.push(kill(&mut job, processes[victim as usize], 2));
            let ended = job.end();
            assert_all_lost(&ended, 3, victim, "Signalled(9)");
            ended.says(&format!("rma-run: rank {victim} (process {})", processes[victim as usize]));
            ended.says("was killed by signal 9 (SIGKILL)");
            assert_killed(&ended, launcher, &processes);
        }
    }
    assert_within_a_second(latencies);
}

#[test]
fn a_stopped_rank_stalls_the_others_and_may_wake() {
    let mut job = Job::start("-n 3 --timeout 5", "forever");
    let processes = job.processes(3);
    signal(processes[1], "STOP");
    let first = job.wait_line("got");
    let second = job.wait_line("got");
    for line in [&first, &second] {
        assert!(line.contains("got Stalled"), "{line}");
        assert!(
            line.contains(&format!("rank 1 does not wait (process {} is stopped)", processes[1]))
                || line.contains("rank 1 waits in barrier "),
            "{line}"
        );
        assert!(line.contains("is stopped"), "{line}");
    }
    wake(processes[1]);
    let ended = job.end();
    // The others have left with an error meanwhile, or their leaving is seen through the broken team. A rank that is too
    // slow to say so within the launcher's grace time is ended.
    match ended.lines("rank 1 got").as_slice() {
        [woken] => assert!(
            woken.contains("PeerLost") || woken.contains("Poisoned") || woken.contains("Stalled"),
            "{woken}"
        ),
        _ => ended.says("did not end by itself and was ended"),
    }
    assert_eq!(ended.code(), Some(1), "{ended:#?}");
    assert_gone(&processes, Duration::ZERO);
}

#[test]
fn a_rank_that_stays_stopped_is_ended_with_the_job() {
    let mut job = Job::start("-n 2 --timeout 5", "forever");
    let launcher = job.id();
    let processes = job.processes(2);
    signal(processes[1], "STOP");
    let ended = job.end();
    assert_eq!(ended.code(), Some(1), "{ended:#?}");
    assert_gone(&processes, Duration::ZERO);
    assert_nothing_left(launcher);
}

#[test]
fn a_killed_launcher_leaves_no_rank() {
    for program in ["forever", "sleep 100"] {
        let mut job = Job::start("-n 4", program);
        let launcher = job.id();
        let processes = job.processes(4);
        signal(launcher, "KILL");
        assert_gone(&processes, SOON);
        job.end();
        assert_nothing_left(launcher);
    }
    // A rank behind a shell dies with the shell, which dies with the launcher.
    let script = format!("{RANKS} sleep 100; true");
    let mut job = Job::start_words(["-n", "2", "sh", "-c", &script], b"");
    let launcher = job.id();
    let processes = job.processes(2);
    signal(launcher, "KILL");
    assert_gone(&processes, SOON);
    job.end();
    assert_nothing_left(launcher);
}

// covers: RMA-ERR-02
#[test]
fn an_error_reaches_the_others() {
    for transport in KIND {
        for victim in 0..3 {
            let ended = run(&format!("-n 3 --transport {transport}"), &format!("fail {victim}"));
            assert_eq!(ended.code(), Some(1), "{ended:#?}");
            assert_all_lost(&ended, 3, victim, "ReturnedError");
            ended.says(&format!("rank {victim}: error: failed on purpose"));
            if transport == "shm" {
                ended.says(&format!("rma-run: rank {victim} (process"));
                ended.says("exited with status 1");
            }
        }
    }
}

#[test]
fn a_panic_reaches_the_others() {
    let mut latencies = Vec::new();
    for transport in KIND {
        for victim in 0..3 {
            let ended = run(&format!("-n 3 --transport {transport}"), &format!("panic {victim}"));
            assert_eq!(ended.code(), Some(101), "{ended:#?}");
            assert_all_lost(&ended, 3, victim, "Panicked");
            ended.says("panicked on purpose");
            for line in ended.lines("got PeerLost") {
                let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
                latencies.push(Duration::from_millis(numbers.next_back().unwrap()));
            }
        }
    }
    assert_within_a_second(latencies);
}

#[test]
fn a_rank_that_leaves_early_is_missed() {
    for transport in KIND {
        for victim in 0..3 {
            let ended = run(&format!("-n 3 --transport {transport}"), &format!("leave {victim}"));
            assert_eq!(ended.code(), Some(1), "{ended:#?}");
            assert_all_lost(&ended, 3, victim, "Finished");
        }
    }
}

#[test]
fn a_rank_that_exits_the_process_is_missed() {
    for code in [0, 3, 255] {
        let ended = run("-n 3", &format!("exit 1 {code}"));
        assert_all_lost(&ended, 3, 1, &format!("ProcessExited({code})"));
        // A process that exits with 0 has not failed; those that miss it have.
        let expected = if code == 0 { 1 } else { code };
        assert_eq!(ended.code(), Some(expected), "{ended:#?}");
    }
}

#[test]
fn a_program_that_never_joins_is_missed() {
    let script = format!("if [ $RMA_RANK = 1 ]; then exit 7; else exec {RANKS} forever; fi");
    let ended = Job::start_words(["-n", "3", "sh", "-c", &script], b"").end();
    assert_eq!(ended.code(), Some(7), "{ended:#?}");
    for rank in [0, 2] {
        ended.says(&format!(
            "rank {rank}: error: barrier by rank {rank} lost rank 1: its process exited with status 7"
        ));
    }
}

#[test]
fn survivors_that_notice_nothing_are_ended_after_a_grace_time() {
    let ended = run("-n 3", "stubborn 2");
    assert_eq!(ended.code(), Some(1), "{ended:#?}");
    assert!(Duration::from_secs(2) <= ended.took, "survivors had time to report");
    ended.says("rma-run: rank 2 (process");
    ended.says("did not end by itself and was ended");
}

#[test]
fn a_stall_says_who_waits_for_whom() {
    for transport in KIND {
        let ended = run(&format!("-n 3 --timeout 60 --transport {transport}"), "stalled");
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        for rank in [0, 1] {
            let seen = ended.lines(&format!("rank {rank} got Stalled"));
            assert_eq!(seen.len(), 1, "{ended:#?}");
            assert!(seen[0].contains("rank 2 does not wait"), "{ended:#?}");
        }
        // Whoever gave up first was in the barrier until then.
        assert!(!ended.lines("waits in barrier for rank").is_empty(), "{ended:#?}");
    }
}

#[test]
fn different_collective_calls_are_told_apart() {
    for transport in KIND {
        for ranks in [2, 3, 5] {
            let ended = run(&format!("-n {ranks} --timeout 20 --transport {transport}"), "mismatch");
            assert_eq!(ended.code(), Some(0), "{ended:#?}");
            assert_eq!(ended.lines("got CollectiveMismatch").len(), ranks, "{ended:#?}");
            let said = ended.lines("rank 0 got");
            assert!(
                said[0].contains("broadcast by rank 0 met a different collective call, against barrier"),
                "{said:?}"
            );
        }
    }
}

#[test]
fn a_rank_that_outlives_its_watched_process_may_still_write() {
    // The launcher sees the outer shell end; the rank is in a session of its own, under a shell that lives.
    let script = format!("WATCHED=$$ setsid sh -c '{RANKS} outlive; true'; true");
    let ended = Job::start_words(["-n", "2", "--timeout", "30", "sh", "-c", &script], b"").end();
    assert_eq!(ended.lines("wait: Err(PeerLost)").len(), 1, "{ended:#?}");
    assert_eq!(ended.lines("view: Err(Poisoned)").len(), 1, "{ended:#?}");
    assert_eq!(ended.lines("then: 7").len(), 1, "{ended:#?}");
}
