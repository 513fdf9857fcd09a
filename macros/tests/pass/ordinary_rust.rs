//! Ordinary Rust around transfers: labels, patterns, guards, blocks as values, items and closures inside the body.

use rma::{Rank, Team, Window, rma_epoch, rma_test};

#[derive(Debug, Default, PartialEq)]
struct Tally {
    even: u64,
    odd: u64,
}

#[rma_epoch(lock(w, rank = owner, exclusive))]
fn tally(w: &Window<u64>, owner: Rank, words: &[&str], limit: Option<usize>) -> rma::Result<Tally> {
    use std::collections::VecDeque;
    const STEP: usize = 2;
    fn is_even(n: u64) -> bool {
        n.is_multiple_of(2)
    }
    let mut tally = Tally::default();
    let mut queue: VecDeque<&str> = words.iter().copied().collect();
    let limit = {
        let most = w.len() / STEP;
        limit.unwrap_or(most).min(most)
    };
    let mut seen = 0;
    'words: while let Some(word) = queue.pop_front() {
        let Ok(number) = word.parse::<u64>() else { continue };
        for (digit, factor) in (0_usize..).zip([1, 10, 100]) {
            match (number / factor % 10, digit) {
                (0, _) => {}
                (n, at) if is_even(n) && at < limit => {
                    w.at(owner)[at] += n;
                    tally.even += 1
                }
                (_, at @ 0..=1) => {
                    let place = at + limit;
                    if place < w.len_at(owner)? {
                        w.at(owner)[place] += { number * 10 }
                    } else {
                        break 'words;
                    }
                    tally.odd += 1;
                }
                _ => break,
            }
        }
        seen += 1;
        let _ = || seen + 1;
    }
    let Tally { even, .. } = &tally;
    w.at(owner)[w.len() - 1] = if *even > 0 { *even } else { u64::MAX };
    unchanged(&mut tally);
    Ok(Tally { odd: tally.odd, ..tally })
}

fn unchanged(tally: &mut Tally) {
    tally.even += 0;
}

#[rma_test(ranks = 1, transports = [local, shm])]
fn program(team: &Team) -> rma::Result<()> {
    let w = Window::allocate(team, 8)?;
    let tallied = tally(&w, Rank(0), &["12", "x", "34"], None)?;
    assert_eq!(tallied, Tally { even: 2, odd: 2 });
    let values: Vec<u64> = w.local()?.to_vec();
    assert_eq!(values, [6, 0, 0, 0, 0, 460, 0, 2]);
    Ok(())
}
