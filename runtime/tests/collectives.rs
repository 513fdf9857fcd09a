//! Collective calls against serial results, on every transport and number of ranks that small machines have.
#![forbid(unsafe_code)]

mod common;

use std::time::Duration;

use common::run;
use rma::{ErrorKind, Job, Rank, Window};

#[test]
fn results_are_those_of_a_serial_program() {
    let check = |options: &str, ranks: usize| {
        let ended = run(&format!("-n {ranks} --timeout 60 {options}"), "collectives");
        assert_eq!(ended.code(), Some(0), "{options}, {ranks} ranks: {ended:#?}");
        assert_eq!(ended.lines("is ok").len(), ranks);
    };
    for ranks in [1, 2, 3, 4, 5, 6, 8] {
        check("--transport shm", ranks);
        check("--transport local", ranks);
    }
    for ranks in [1, 2, 3, 5, 6] {
        check("--transport tcp", ranks);
    }
    check("--ranks-per-node 2", 4);
    check("--ranks-per-node 3", 5);
}

#[test]
fn jobs_of_one_process_do_not_meet() {
    let jobs: Vec<_> = (1..=4)
        .map(|ranks| {
            std::thread::spawn(move || {
                Job::new(ranks)
                    .time_limit(Duration::from_secs(60))
                    .try_spawn(|team| {
                        let mut sum = [team.rank().0];
                        for _ in 0..100 {
                            sum = [team.rank().0];
                            team.allreduce(&mut sum, rma::Sum)?;
                        }
                        Ok::<u32, rma::Error>(sum[0])
                    })
                    .unwrap()
            })
        })
        .collect();
    for (ranks, job) in (1..=4).zip(jobs) {
        let results: Vec<u32> = job.join().unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(results, vec![ranks * (ranks - 1) / 2; ranks as usize]);
    }
}

#[test]
fn a_team_may_move_to_another_thread() {
    let sums = Job::new(3)
        .time_limit(Duration::from_secs(60))
        .spawn(|team| {
            let copy = team.duplicate().unwrap();
            std::thread::spawn(move || {
                let mut sum = [copy.rank().0];
                copy.allreduce(&mut sum, rma::Sum).unwrap();
                sum[0]
            })
            .join()
            .unwrap()
        })
        .unwrap();
    assert_eq!(sums, [3, 3, 3]);
}

#[test]
fn teams_that_come_and_go_do_not_use_up_the_memory() {
    Job::new(2)
        .time_limit(Duration::from_secs(60))
        .spawn(|team| {
            let resident = || {
                let text = std::fs::read_to_string("/proc/self/statm").unwrap();
                text.split_whitespace().nth(2).and_then(|pages| pages.parse::<u64>().ok()).unwrap()
            };
            (0..50).for_each(|_| drop(team.duplicate().unwrap()));
            let before = resident();
            (0..2_000).for_each(|_| drop(team.duplicate().unwrap()));
            // 2000 blocks of 64 KiB would be 30,000 pages.
            assert!(resident() < before + 2_000, "{before} pages have become {}", resident());
        })
        .unwrap();
}

#[test]
fn wrong_arguments_are_errors_of_the_caller_alone() {
    let errors = Job::new(2)
        .time_limit(Duration::from_secs(60))
        .spawn(|team| {
            let broadcast = team.broadcast(Rank(2), &mut [1_u8]).unwrap_err();
            let gather = team.gather(Rank(u32::MAX), &[1_u8]).unwrap_err();
            team.barrier().unwrap();
            (broadcast, gather)
        })
        .unwrap();
    for (broadcast, gather) in errors {
        assert_eq!((broadcast.kind(), gather.kind()), (ErrorKind::RankOutOfRange, ErrorKind::RankOutOfRange));
        assert!(broadcast.to_string().contains("rank 2 was named and the team has 2 ranks"), "{broadcast}");
        assert!(
            broadcast.context().location.file().ends_with("collectives.rs"),
            "the caller's line is named"
        );
    }
}

#[test]
fn lengths_and_types_that_differ_are_a_mismatch() {
    let job = Job::new(2).time_limit(Duration::from_secs(60));
    let kinds = |body: &(dyn Fn(&rma::Team) -> rma::Result<()> + Sync)| -> Vec<ErrorKind> {
        job.spawn(|team| body(team).unwrap_err().kind()).unwrap()
    };
    let expected = [ErrorKind::CollectiveMismatch; 2];
    assert_eq!(kinds(&|team| team.allreduce(&mut vec![0_u8; 3 + team.rank().index()], rma::Sum)), expected);
    assert_eq!(kinds(&|team| team.broadcast(team.rank(), &mut [0_u8])), expected);
    let types = |team: &rma::Team| match team.rank() {
        Rank(0) => team.broadcast(Rank(0), &mut [0_u32]),
        _ => team.broadcast(Rank(0), &mut [0_f32]),
    };
    assert_eq!(kinds(&types), expected);
    let operations = |team: &rma::Team| match team.rank() {
        Rank(0) => team.allreduce(&mut [0_u32], rma::Sum),
        _ => team.allreduce(&mut [0_u32], rma::Max),
    };
    assert_eq!(kinds(&operations), expected);
}

#[test]
fn numbers_of_ranks_that_no_job_has_are_errors() {
    for ranks in [0, 1025, u32::MAX] {
        let error = Job::new(ranks).spawn(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Launch);
        assert!(error.to_string().contains(&format!("a job has 1 to 1024 ranks, not {ranks}")), "{error}");
    }
}

#[test]
fn memory_of_a_job_goes_with_it() {
    // More jobs than their address space would allow to exist at once.
    for _ in 0..300 {
        let ranks = Job::new(3)
            .time_limit(Duration::from_secs(60))
            .try_spawn(|team| {
                let mut window = Window::<u64>::allocate(team, 10)?;
                window.fence(|epoch| epoch.put(Rank(0), team.rank().index(), 1))
            })
            .unwrap();
        assert!(ranks.iter().all(Result::is_ok), "{ranks:?}");
    }
}
