//! What is so only between ranks that share no memory: one message for data and synchronization, and an agent that sleeps.

use rma::pgo::{self, GETS_OK, PUTS_OK, over};
use rma::private::testing::pgo_counters;
use rma::{Rank, Team};

use crate::{Case, Outcome, Transport, case};

pub(crate) const CASES: &[Case] = &[
    Case {
        transports: &[Transport::Tcp],
        ..case!(a_put_and_its_synchronization_are_one_message, [2]).one_copy().under(&[""])
    },
    Case { transports: &[Transport::Tcp], ..case!(long_events_are_asked_for, [2]).one_copy().under(&[""]) },
    #[cfg(feature = "progressive")]
    Case { transports: &[Transport::Tcp], ..case!(an_agent_serves_and_sleeps, [2]).one_copy().under(&[""]) },
];

/// Frames that this rank has sent for events.
fn frames(team: &Team) -> u64 {
    pgo_counters(team)[5]
}

// covers: PGO-GEN-07
fn a_put_and_its_synchronization_are_one_message(team: &Team) -> Outcome {
    let bytes = [7_u8; 64];
    for round in 0..20 {
        if team.rank() == Rank(0) {
            team.barrier()?;
            let before = frames(team);
            pgo::scope(team, round, |scope| scope.put(&bytes, Rank(1), 0))?;
            assert_eq!(frames(team) - before, 1, "frames for a put and its synchronization");
        } else {
            let mut request = pgo::ioffer(team, round, over(vec![0_u8; 64], PUTS_OK), 1)?;
            team.barrier()?;
            let before = frames(team);
            request.wait()?;
            assert_eq!(frames(team), before, "the target has nothing to send but its answer");
            assert_eq!(request.into_inner(), bytes);
        }
    }
    Ok(())
}

/// Data that don't travel with their event move when the target wants them, whole, both ways, and keep their order.
fn long_events_are_asked_for(team: &Team) -> Outcome {
    const LEN: usize = 1 << 20;
    let numbers: Vec<u32> = (0..LEN as u32).collect();
    if team.rank() == Rank(0) {
        let (mut back, small) = (vec![0_u32; LEN], [9_u32]);
        let before = frames(team);
        pgo::scope(team, 1, |scope| {
            scope.put(&numbers, Rank(1), 0)?;
            scope.get(&mut back, Rank(1), 0)?;
            scope.put(&small, Rank(1), 5)?;
            assert!(frames(team) - before <= 3, "no data before they are wanted");
            team.barrier()
        })?;
        assert!(back == numbers, "the get comes before the second put");
    } else {
        team.barrier()?;
        let mut buffer = vec![0_u32; LEN];
        pgo::offer(team, 1, over(&mut buffer, PUTS_OK + GETS_OK), 3)?;
        assert_eq!(buffer[5], 9);
        buffer[5] = 5;
        assert!(buffer == numbers);
    }
    Ok(())
}

/// Processor time of this process's agent so far, in the system's ticks, of which a second has a hundred.
#[cfg(feature = "progressive")]
fn agent_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this is Linux");
    let stats = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let agent = stats.filter(|stat| stat.contains("(rma agent)"));
    agent
        .map(|stat| {
            let behind = stat.rsplit(')').next().unwrap_or_default().to_owned();
            let words: Vec<u64> = behind.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
            words[11] + words[12]
        })
        .sum()
}

// covers: PGO-PROG-11
#[cfg(feature = "progressive")]
fn an_agent_serves_and_sleeps(team: &Team) -> Outcome {
    const EVENTS: usize = 100;
    let numbers: Vec<[u32; 1]> = (0..EVENTS as u32).map(|i| [i]).collect();
    if team.rank() == Rank(0) {
        pgo::scope(team, 1, |scope| {
            (0..EVENTS).try_for_each(|i| scope.putp(&numbers[i], Rank(1), i))?;
            team.barrier()
        })?;
    } else {
        team.barrier()?;
        let mut request = pgo::iofferp(team, 1, over(vec![0_u32; EVENTS], PUTS_OK), EVENTS as u64)?;
        request.wait()?;
        assert_eq!(request.into_inner(), (0..EVENTS as u32).collect::<Vec<_>>());
        // The requirement's own bound: 10 ms over 1 s, which is one tick.
        let before = agent_ticks();
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert!(agent_ticks() - before <= 1, "the agent goes on working");
    }
    team.barrier()?;
    Ok(())
}
