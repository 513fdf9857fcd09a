//! What `rma-run` does with programs that behave, and with wrong calls of itself.
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Job, RANKS, SOON, assert_gone, assert_nothing_left, run, runs, signal};

const TRANSPORTS: [&str; 3] = ["auto", "shm", "local"];

#[test]
fn every_rank_runs_on_every_transport() {
    for transport in TRANSPORTS {
        for ranks in [1, 2, 5] {
            let ended = run(&format!("-n {ranks} --timeout 30 --transport {transport}"), "hello");
            assert_eq!(ended.code(), Some(0), "{ended:#?}");
            let said: BTreeSet<String> = ended.out.iter().cloned().collect();
            let expected = (0..ranks).map(|rank| format!("hello from rank {rank} of {ranks}")).collect();
            assert_eq!(said, expected);
            assert_eq!(ended.err.len(), ranks, "what ranks say on the error stream stays there: {ended:#?}");
        }
    }
}

#[test]
fn without_a_launcher_a_program_is_a_job_of_one() {
    let output = Command::new(RANKS).arg("hello").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello from rank 0 of 1\n");
    assert!(output.status.success());
}

#[test]
fn programs_of_other_kinds_can_be_launched() {
    let job = Job::start_words(["-n", "3", "sh", "-c", "echo $RMA_RANK of $RMA_SIZE; exit 0"], b"");
    let ended = job.end();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.out.iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn lines_are_never_torn() {
    for (options, start) in [("-n 4", 0), ("-n 4 --tag-output", 4)] {
        let ended = run(options, "lines 2000");
        assert_eq!(ended.code(), Some(0));
        assert_eq!(ended.out.len(), 4 * 2000);
        let mut lengths = [0; 4];
        for line in &ended.out {
            let rank = usize::from(line.as_bytes()[start] - b'a');
            assert!(line[start..].bytes().all(|byte| usize::from(byte - b'a') == rank), "torn: {line}");
            assert!(start == 0 || line.starts_with(&format!("[{rank}] ")), "wrong tag: {line}");
            assert_eq!(line.len() - start, 50 + lengths[rank] % 200, "the order of a rank's lines is kept");
            lengths[rank] += 1;
        }
    }
}

#[test]
fn nothing_is_glued_to_a_line_without_an_end() {
    let ended = run("-n 3 --tag-output", "unfinished");
    let said: BTreeSet<&str> = ended.out.iter().map(String::as_str).collect();
    let expected: Vec<String> =
        (0..3).map(|rank| format!("[{rank}] rank {rank} ends without an end of line")).collect();
    assert_eq!(said, expected.iter().map(String::as_str).collect());
}

#[test]
fn input_goes_to_rank_0() {
    for transport in TRANSPORTS {
        let words = ["-n", "2", "--transport", transport, RANKS, "echo"];
        let ended = Job::start_words(words, b"first\nsecond\n").end();
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        assert_eq!(ended.lines("first").len() + ended.lines("second").len(), 2);
        if transport != "local" {
            assert_eq!(ended.lines("rank 0 read 2 lines").len(), 1, "{ended:#?}");
            assert_eq!(ended.lines("rank 1 read 0 lines").len(), 1, "{ended:#?}");
        }
    }
}

#[test]
fn the_time_limit_reaches_the_ranks() {
    let ended = run("-n 1 --timeout 2.5", "environment");
    assert_eq!(ended.out, [r#"timeout Ok("2.5")"#]);
    assert_eq!(run("-n 1", "environment").out, ["timeout Err(NotPresent)"]);
}

#[test]
fn only_ranks_inherit_the_memory() {
    let ended = run("-n 2", "descriptors");
    assert_eq!(ended.code(), Some(0));
    assert_eq!(ended.lines("child has").len(), 2);
    assert!(ended.lines("rma-job").is_empty(), "{ended:#?}");
}

#[test]
fn leaving_waits_for_everybody() {
    let ended = run("-n 3", "late 700");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert!(Duration::from_millis(700) <= ended.took);
    // A time limit of the blocking calls is none of leaving.
    let leave = std::env::temp_dir().join(format!("rma-leave-{}", std::process::id()));
    let mut job = Job::start("-n 2 --timeout 0.2", &format!("late_until {}", leave.display()));
    let launcher = job.id();
    job.wait_line("rank 0 leaves");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(common::descendants(launcher).iter().filter(|&&process| runs(process)).count(), 2);
    std::fs::write(&leave, "").unwrap();
    let ended = job.end();
    std::fs::remove_file(&leave).unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("rank 1 leaves").len(), 1);
}

// covers: RMA-PROG-10
#[test]
fn a_rank_that_has_left_is_still_served() {
    for transport in TRANSPORTS {
        let ended = run(&format!("-n 3 --timeout 30 --transport {transport}"), "serve 1000");
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        assert_eq!(ended.lines("was served").len(), 2, "{ended:#?}");
    }
}

#[test]
fn wrong_calls_are_refused_with_a_sentence() {
    let check = |words: &[&str], code: i32, text: &str| {
        let ended = Job::start_words(words, b"").end();
        assert_eq!(ended.code(), Some(code), "{words:?}: {ended:#?}");
        ended.says(text);
        assert!(ended.out.is_empty());
    };
    check(&["-n", "0", "true"], 2, "0 is not in 1..=1024");
    check(&["-n", "1025", "true"], 2, "1025 is not in 1..=1024");
    check(&["-n", "many", "true"], 2, "invalid digit");
    check(&["-n", "2"], 2, "<PROGRAM>");
    check(&["true"], 2, "--ranks <N>");
    check(&["-n", "2", "--timeut", "3", "true"], 2, "'--timeut'");
    check(&["-n", "2", "--timeut", "3", "true"], 2, "a similar argument exists: '--timeout'");
    check(&["-n", "2", "-x", "true"], 2, "unexpected argument '-x'");
    check(&["-n", "2", "--timeout", "0", "true"], 2, "a time limit is a positive number of seconds");
    check(&["-n", "2", "--transport", "pigeon", "true"], 2, "auto, local, shm");
    check(
        &["-n", "2", "--transport", "local", "--tag-output", "true"],
        2,
        "--tag-output needs a process per rank",
    );
    check(&["-n", "2", "./no-such-program"], 127, "cannot start './no-such-program'");
    check(&["-n", "2", "no-such-program"], 127, "or the name of a program on PATH");
    check(&["-n", "2", "/etc/passwd"], 126, "make the file executable");
    check(&["-n", "2", "/"], 126, "cannot start '/'");
}

#[test]
fn options_behind_the_program_are_its_own() {
    let script = "echo $1 $2 $3";
    let ended = Job::start_words(["-n", "1", "sh", "-c", script, "sh", "--timeut", "-n", "--"], b"").end();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.out, ["--timeut -n --"]);
}

#[test]
fn wrong_environments_are_refused_with_a_sentence() {
    let check = |variables: &[(&str, &str)], text: &str| {
        let output = Command::new(RANKS).arg("hello").envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{variables:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(text), "{variables:?}: {said}");
        assert!(output.stdout.is_empty(), "nothing runs in a wrong environment");
    };
    check(&[("RMA_RANK", "2"), ("RMA_SIZE", "2"), ("RMA_RENDEZVOUS", "memfd:3")], "ranks are 0 to 1");
    check(&[("RMA_RANK", "0")], "RMA_SIZE and RMA_RENDEZVOUS");
    for descriptor in ["0", "1", "999", "-1", "2147483647"] {
        let rendezvous = format!("memfd:{descriptor}");
        let variables = [("RMA_RANK", "0"), ("RMA_SIZE", "2"), ("RMA_RENDEZVOUS", rendezvous.as_str())];
        check(&variables, &format!("descriptor {descriptor} of RMA_RENDEZVOUS is not the memory of a job"));
    }
    check(&[("RMA_TRANSPORT", "local"), ("RMA_SIZE", "4000")], "a job has 1 to 1024 ranks");
}

#[test]
fn a_rank_of_a_rank_is_told_that_it_is_none() {
    // The shell has the descriptor and hands it on to both programs: the second finds its rank taken.
    let script = format!("{RANKS} hello && {RANKS} hello");
    let ended = Job::start_words(["-n", "1", "sh", "-c", &script], b"").end();
    assert_eq!(ended.code(), Some(2), "{ended:#?}");
    ended.says("rank 0 has joined already");
}

#[test]
fn an_outer_job_does_not_reach_into_an_inner_one() {
    let script = format!("{} -n 2 {RANKS} hello", env!("CARGO_BIN_EXE_rma-run"));
    let ended = Job::start_words(["-n", "2", "sh", "-c", &script], b"").end();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("of 2").len(), 4);
}

#[test]
fn signals_are_passed_on() {
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        if common::ignores(number) {
            continue; // The launcher would have to ignore it, too: `an_ignored_signal_stays_ignored`.
        }
        let mut job = Job::start("-n 3", "sleep 50");
        let launcher = job.id();
        let processes = job.processes(3);
        signal(launcher, name);
        let ended = job.end();
        assert_eq!(ended.code(), Some(128 + number as i32), "{ended:#?}");
        ended.says(&format!("the job was ended by signal {number} (SIG{name})"));
        assert_gone(&processes, Duration::ZERO);
        assert_nothing_left(launcher);
    }
}

#[test]
fn a_program_that_ignores_the_request_is_ended() {
    let job = Job::start_words(
        ["-n", "2", "sh", "-c", "trap '' TERM; echo deaf; while true; do sleep 0.1; done"],
        b"",
    );
    let mut job = job;
    let launcher = job.id();
    job.wait_line("deaf");
    job.wait_line("deaf");
    signal(launcher, "TERM");
    let ended = job.end();
    assert_eq!(ended.code(), Some(143), "{ended:#?}");
    assert!(Duration::from_secs(2) <= ended.took, "the program had time to end by itself");
    assert_nothing_left(launcher);
}

#[test]
fn what_a_rank_leaves_running_ends_with_it() {
    let ended = Job::start_words(["-n", "1", "sh", "-c", "sleep 1000 & echo $!"], b"").end();
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    let process: u32 = ended.out[0].parse().unwrap();
    assert_gone(&[process], SOON);
}

#[test]
fn a_slow_reader_gets_all_output() {
    let mut command = Command::new("sh");
    let script = format!("{} -n 2 {RANKS} lines 20000 | (sleep 3; wc -l)", env!("CARGO_BIN_EXE_rma-run"));
    let output = command.args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "40000");
}

#[test]
fn a_job_whose_reader_has_gone_runs_on() {
    let script = format!(
        "{{ {} -n 2 {RANKS} lines 5000; echo status $? >&2; }} | head -n 1 > /dev/null",
        env!("CARGO_BIN_EXE_rma-run")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "status 0\n");
}

#[test]
fn output_that_nothing_takes_is_an_error() {
    // A device that is always full.
    let cases = [
        ("lines 3", ">", 1),
        ("lines 3", "2>", 0),
        ("fail 1", ">", 1),
        ("exit 0 7", ">", 7),
        ("exit 0 7", "2>", 7),
    ];
    for (ranks, stream, status) in cases {
        let script = format!("{} -n 2 {RANKS} {ranks} {stream} /dev/full", env!("CARGO_BIN_EXE_rma-run"));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}: {output:?}");
        if stream == ">" {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                said.contains("rma-run: output of the ranks is lost: standard output: No space left"),
                "{said}"
            );
        }
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let script = format!("trap '' HUP; exec {} -n 1 {RANKS} echo", env!("CARGO_BIN_EXE_rma-run"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"ready\n").unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("read: ready"), "{line}");
    signal(child.id(), "HUP");
    // The program reads until here, so that the signal reaches a job that runs.
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn limits_on_memory_are_errors_of_the_call() {
    let limited = |limit: &str, words: &str| {
        let script = format!("ulimit {limit}; exec {RANKS} {words}");
        Job::start_words(["-n", "2", "--timeout", "30", "sh", "-c", &script], b"").end()
    };
    // Growing the segment's file beyond the limit on files would kill the process if it were tried.
    let ended = limited("-f 2000", "grow");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("got System").len(), 2, "{ended:#?}");
    let ended = limited("-v 1000000", "hello");
    assert_eq!(ended.code(), Some(2), "{ended:#?}");
    ended.says("joining the job's memory was refused by the operating system");
    // With the limit on the whole job, the segment takes less address space.
    let script = format!("ulimit -v 4000000; exec {} -n 2 {RANKS} hello", env!("CARGO_BIN_EXE_rma-run"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn idle_waiters_use_no_processor() {
    let ended = run("-n 4", "idle 2000");
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    for line in ended.lines("used") {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Yielding at first takes some milliseconds on a busy machine; a waiter that polls would use 2000.
        assert!(numbers[1] <= 100, "{line}");
    }
}

#[test]
fn more_ranks_than_cores_do_not_collapse() {
    for transport in ["shm", "local"] {
        // 500 barriers take some milliseconds. If a waiter kept its core, each would take many time slices of the
        // scheduler, and the ranks would use all the processor time that there is.
        let ended = run(&format!("-n 8 --timeout 60 --transport {transport}"), "barriers 500");
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        let used = ended.lines("is done");
        assert_eq!(used.len(), 8);
        for line in used {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            assert!(numbers[1] <= 2000, "{line}");
        }
    }
}

#[test]
fn jobs_beside_each_other_do_not_meet() {
    // All alike: the same program, folder and number of ranks, at the same time.
    let jobs: Vec<Job> = (0..4).map(|_| Job::start("-n 3 --timeout 60", "collectives")).collect();
    for job in jobs {
        let ended = job.end();
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        assert_eq!(ended.lines("is ok").len(), 3);
    }
}

#[test]
fn a_thousand_ranks_start_and_end() {
    // Seconds on two cores. If every end woke every waiter for each of them, it would be many minutes.
    let ended = run("-n 1000 --timeout 100", "hello");
    assert_eq!(ended.code(), Some(0), "{:?}", ended.err.last());
    assert_eq!(ended.lines("of 1000").len(), 1000);
}
