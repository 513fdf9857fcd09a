//! The ways of serving other ranks while a rank computes: by a thread, at ticks of a clock, or not before its next call.
#![forbid(unsafe_code)]

mod common;

use common::{Ended, Job, assert_all_lost, assert_gone, is_full, signal};

fn run(agent: &str, options: &str, program: &str) -> Ended {
    Job::start_in(&[("RMA_AGENT", agent)], &format!("-n 2 --transport tcp {options}"), program).end()
}

/// The number behind a text in the output.
#[track_caller]
fn number(ended: &Ended, text: &str) -> u128 {
    let Some((_, rest)) = ended.out.iter().find_map(|line| line.split_once(text)) else {
        panic!("nobody says '{text}': {ended:#?}");
    };
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().expect("a number")
}

/// Bytes of an exchange that no socket takes at once. The largest takes seconds to get its memory on a busy machine.
fn many_bytes() -> usize {
    if is_full() { 512 << 20 } else { 16 << 20 }
}

// covers: RMA-PROG-04
#[test]
fn without_an_agent_calls_serve_others() {
    for bytes in [8, 64 << 10, many_bytes()] {
        let ended = run("polling", "--timeout 60", &format!("exchange {bytes}"));
        assert_eq!(ended.code(), Some(0), "{bytes} bytes: {ended:#?}");
        assert_eq!(ended.lines("exchanged").len(), 2, "{ended:#?}");
    }
    let computing = if is_full() { 2000 } else { 300 };
    for call in ["barrier", "test"] {
        let ended = run("polling", "--timeout 60", &format!("unrelated {call} {computing}"));
        assert_eq!(ended.code(), Some(0), "{call}: {ended:#?}");
        let (released, completed) = (number(&ended, "computed until"), number(&ended, "completed at"));
        assert!(released < completed, "it was the {call} that served the origin: {ended:#?}");
    }
    // With an agent, the target's computing does not matter.
    let ended = run("thread", "--timeout 60", "unrelated barrier 1000");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert!(number(&ended, "completed at") < number(&ended, "computed until"), "{ended:#?}");
}

// covers: RMA-PROG-05
#[test]
fn serving_in_waits_only_is_not_enough() {
    let program = format!("exchange {}", many_bytes());
    let limit = if is_full() { 10 } else { 2 };
    let ended = run("polling,poll_only_in_wait", &format!("--timeout {limit}"), &program);
    assert_eq!(ended.code(), Some(1), "{ended:#?}");
    ended.says("passed its time limit");
    let ended = run("polling", "--timeout 60", &program);
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
}

// covers: RMA-PROG-07
#[test]
fn locks_need_an_agent() {
    let ended = run("polling", "--timeout 30", "locks");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("refused: ").len(), 3, "{ended:#?}");
    assert_eq!(ended.lines("needs an agent").len(), 3, "{ended:#?}");
    for agent in ["auto", "timer(1ms)"] {
        let ended = run(agent, "--timeout 30", "locks");
        assert_eq!(ended.code(), Some(0), "{agent}: {ended:#?}");
        assert_eq!(ended.lines("locked").len(), 3, "{agent}: {ended:#?}");
    }
    let ended = run("sometimes", "", "locks");
    assert_eq!(ended.code(), Some(2), "{ended:#?}");
    ended.says("RMA_AGENT is 'sometimes': an agent is 'auto', 'thread', 'polling' or 'timer(NUMBERms)'");
}

// covers: RMA-PROG-08
#[test]
fn an_agent_may_look_at_ticks() {
    let ended = run("timer(10ms)", "--timeout 60", "ticks");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    let ended_line = &ended.lines("puts, median")[0];
    let count: u32 = ended_line.split_whitespace().find_map(|word| word.parse().ok()).expect("a number");
    // A put waits for the next tick, and not much longer.
    let median = number(&ended, "puts, median");
    assert!((1_000..50_000).contains(&median), "{median} us: {ended:#?}");
    assert!((5..=100).contains(&count), "{count} puts in half a second: {ended:#?}");
}

#[test]
fn a_death_is_noticed_in_every_mode() {
    for agent in ["polling", "timer(10ms)"] {
        let mut job = Job::start_in(&[("RMA_AGENT", agent)], "-n 3 --transport tcp", "forever");
        let processes = job.processes(3);
        signal(processes[1], "KILL");
        for _ in 0..2 {
            job.wait_line("got");
        }
        let ended = job.end();
        assert_all_lost(&ended, 3, 1, "Signalled(9)");
        assert_eq!(ended.code(), Some(128 + 9), "{agent}: {ended:#?}");
        assert_gone(&processes, std::time::Duration::ZERO);
    }
}
