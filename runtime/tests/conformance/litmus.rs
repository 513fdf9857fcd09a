//! What one rank may see of another's writes, tried very often. Never waits in a round for the other rank where the question
//! is what happens when nobody waits.

use std::time::Instant;

use rma::{Info, LockKind, Origins, Rank, Sum, Team, Window};

use crate::{Case, Outcome, case, has_time, is_full, shares_memory};

pub(crate) const CASES: &[Case] = &[
    case!(what_is_put_before_complete_is_there_after_wait, [2]).many_rounds(),
    case!(a_flag_put_after_a_flush_is_not_seen_before_the_data, [2]).many_rounds(),
    case!(a_flag_put_over_connections_is_not_seen_before_the_data, [2, 3]).wired(),
    case!(of_two_flushed_puts_one_is_seen_by_the_other_rank, [2]).many_rounds(),
];

/// Rounds, at most: more in a full run where ranks share memory. Where a round is a message it is the wire that is tried, and not
/// the order of accesses to memory.
fn rounds(team: &Team, soon: u64) -> rma::Result<u64> {
    Ok(if is_full() && shares_memory(team)? { 10_000_000 } else { soon })
}

/// Says how many rounds there were, and that they are all there should be in a full run.
fn assert_rounds(team: &Team, done: u64, rounds: u64) {
    if team.rank() == Rank(0) {
        println!("{done} of {rounds} rounds");
    }
    assert!(!is_full() || done == rounds, "{done} of {rounds} rounds");
}

// covers: RMA-SHM-04, VIS-UNI-01
fn what_is_put_before_complete_is_there_after_wait(team: &Team) -> Outcome {
    const WORDS: usize = 16;
    const CHUNK: u64 = 1000;
    let mut window = Window::<u64>::allocate(team, WORDS)?;
    let begun = Instant::now();
    let rounds = rounds(team, 100_000)?;
    let mut done = 0;
    for chunk in 0..rounds / CHUNK {
        // Both have to do the same number of rounds.
        let mut goes_on = [u8::from(has_time(begun))];
        team.broadcast(Rank(0), &mut goes_on)?;
        if goes_on == [0] {
            break;
        }
        for round in (chunk * CHUNK + 1..).take(CHUNK as usize) {
            if team.rank() == Rank(0) {
                window.post(Origins::Any)?.wait(1)?;
                for word in 0..WORDS {
                    assert_eq!(window.load(word)?, round, "word {word} after the wait");
                }
            } else {
                window.access(&[Rank(0)], Info::Strong, |epoch| epoch.put(Rank(0), 0, [round; WORDS]))?;
            }
        }
        done += CHUNK;
    }
    assert_rounds(team, done, rounds);
    Ok(())
}

// covers: RMA-SHM-04
fn a_flag_put_after_a_flush_is_not_seen_before_the_data(team: &Team) -> Outcome {
    flag_after_data(team, rounds(team, 1_000_000)?)
}

fn a_flag_put_over_connections_is_not_seen_before_the_data(team: &Team) -> Outcome {
    flag_after_data(team, if is_full() { 100_000 } else { 1000 })
}

/// The last rank puts, and rank 0 looks.
fn flag_after_data(team: &Team, last: u64) -> Outcome {
    const DATA: usize = 8;
    const FLAG: usize = DATA + 8;
    let window = Window::<u64>::allocate(team, FLAG + 1)?;
    if team.rank() != Rank(0) && team.rank().0 + 1 < team.size() {
        return Ok(());
    }
    if team.rank() != Rank(0) {
        return window
            .lock(Rank(0), LockKind::Shared, |epoch| {
                for round in 1..=last {
                    epoch.put(Rank(0), 0, [round; DATA])?;
                    epoch.flush(())?;
                    epoch.put(Rank(0), FLAG, round)?;
                }
                Ok(())
            })
            .map_err(Into::into);
    }
    let mut flag = 0;
    while flag < last {
        flag = window.lock(Rank(0), LockKind::Shared, |epoch| epoch.load(FLAG))?;
        // The two locks order the loads; the data may be newer than the flag.
        let data = window.lock(Rank(0), LockKind::Shared, |epoch| epoch.get_vec(Rank(0), 0..DATA))?;
        assert!(data.iter().all(|&word| flag <= word), "flag {flag}, data {data:?}");
    }
    assert_rounds(team, flag, last);
    Ok(())
}

/// Each rank writes its own half of a pair and then looks at the other's: if a flush means that the write has arrived, at
/// least one of the two sees the other.
// covers: RMA-SHM-04
fn of_two_flushed_puts_one_is_seen_by_the_other_rank(team: &Team) -> Outcome {
    const PAIRS: usize = 2000;
    /// How long one rank looks whether the other has come to the same pair: they should meet often, not always.
    const LOOKS_MAX: usize = 200;
    let window = Window::<u64>::allocate(team, 2 * PAIRS + 32)?;
    let me = team.rank().index();
    // Where each rank is, on a cache line each.
    let (mine, theirs) = (2 * PAIRS + 8 + 16 * me, 2 * PAIRS + 8 + 16 * (1 - me));
    let begun = Instant::now();
    let mut overlaps = [0_u64; 2];
    let rounds = rounds(team, 200_000)?;
    for round in 1..=rounds / PAIRS as u64 {
        let mut goes_on = [u8::from(has_time(begun))];
        team.broadcast(Rank(0), &mut goes_on)?;
        if goes_on == [0] {
            break;
        }
        let seen = window.lock(Rank(0), LockKind::Shared, |epoch| {
            let mut seen = Vec::with_capacity(PAIRS);
            for pair in 0..PAIRS {
                let place = round * PAIRS as u64 + pair as u64;
                epoch.put(Rank(0), mine, place)?;
                for _ in 0..LOOKS_MAX {
                    if place <= epoch.flush(epoch.get_value(Rank(0), theirs))? {
                        break;
                    }
                }
                epoch.put(Rank(0), 2 * pair + me, round)?;
                epoch.flush(())?;
                seen.push(epoch.flush(epoch.get_value(Rank(0), 2 * pair + 1 - me))?);
            }
            Ok(seen)
        })?;
        if let Some(all) = team.gather(Rank(0), &seen)? {
            let (mine, theirs) = all.split_at(PAIRS);
            for (pair, (mine, theirs)) in mine.iter().zip(theirs).enumerate() {
                assert!(*mine == round || *theirs == round, "pair {pair} of round {round}: neither was seen");
                overlaps[usize::from(mine == theirs)] += 1;
            }
        }
        // Nobody begins the next round before all have looked.
        team.barrier()?;
    }
    team.allreduce(&mut overlaps, Sum)?;
    if team.rank() == Rank(0) {
        println!("in {} pairs both saw the other", overlaps[1]);
    }
    assert_rounds(team, overlaps[0] + overlaps[1], rounds);
    Ok(())
}
