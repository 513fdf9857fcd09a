//! Random programs against a naive model of the rules: events in the order of their originator, each served by the earliest offer
//! that has room for it. Every offer takes events of one rank, as no order is promised between ranks.

use std::thread;

use rma::pgo::{self, GETS_OK, PUTS_OK, Request, Status, over};
use rma::{ErrorKind, Rank, Team};

use super::Family;
use crate::list::next;
use crate::{Case, Outcome, case};

pub(crate) const CASES: &[Case] =
    &[case!(random_programs_do_what_the_model_does, [1, 3, 4]).one_copy().under(&[""])];

/// A part of an event: a put or a get of so many words at a displacement.
#[derive(Clone, Debug)]
struct Part {
    is_put: bool,
    at: usize,
    len: usize,
}

/// What a rank offers to another one: so many words, to so many events.
#[derive(Clone, Debug)]
struct Offer {
    len: usize,
    count: u64,
    is_late: bool,
}

/// What goes from one rank to another: events of some parts, and the offers that serve them.
#[derive(Clone, Debug)]
struct Line {
    events: Vec<Vec<Part>>,
    offers: Vec<Offer>,
}

fn below(state: &mut u64, limit: usize) -> usize {
    (next(state) >> 16) as usize % limit
}

fn line(state: &mut u64, are_late: bool) -> Line {
    // Data that wait with their event, and data that do not.
    let len = [3, 40, 2000][below(state, 3)];
    let mut offers = Vec::new();
    let mut events = Vec::new();
    for _ in 0..below(state, 4) {
        let count = below(state, 5);
        offers.push(Offer { len, count: count as u64, is_late: are_late && below(state, 2) == 0 });
        for _ in 0..count {
            let parts = 1 + below(state, 6) / 4 * below(state, 3);
            let part = |state: &mut u64| {
                let at = below(state, len);
                // One in some reaches outside.
                let room = if below(state, 12) == 0 { len - at + 1 } else { below(state, len - at + 1) };
                Part { is_put: below(state, 5) < 3, at, len: room }
            };
            events.push((0..parts).map(|_| part(state)).collect());
        }
    }
    Line { events, offers }
}

/// The word that a part brings, or an offer begins with.
fn word(from: usize, to: usize, event: usize, part: usize, at: usize) -> u64 {
    ((((from * 8 + to) * 64 + event) * 8 + part) * 4096 + at) as u64
}

/// What comes of a line: the buffers of the offers and whether one of their events was wrong, and what the gets of each part find.
struct Expected {
    buffers: Vec<Vec<u64>>,
    are_wrong: Vec<bool>,
    gotten: Vec<Vec<Option<Vec<u64>>>>,
}

fn model(line: &Line, (from, to): (usize, usize)) -> Expected {
    let initial = |number: usize, len: usize| (0..len).map(|at| word(from, to, 63, number, at)).collect();
    let mut buffers: Vec<Vec<u64>> =
        line.offers.iter().enumerate().map(|(number, offer)| initial(number, offer.len)).collect();
    let mut are_wrong = vec![false; buffers.len()];
    let mut room: Vec<u64> = line.offers.iter().map(|offer| offer.count).collect();
    let mut gotten = Vec::new();
    for (number, parts) in line.events.iter().enumerate() {
        let offer = room.iter().position(|&room| 0 < room).expect("there is an offer for each event");
        room[offer] -= 1;
        let buffer = &mut buffers[offer];
        let is_wrong = parts.iter().any(|part| buffer.len() < part.at + part.len);
        are_wrong[offer] |= is_wrong;
        gotten.push(
            parts
                .iter()
                .enumerate()
                .map(|(which, part)| {
                    if is_wrong {
                        return None;
                    }
                    let place = &mut buffer[part.at..part.at + part.len];
                    if !part.is_put {
                        return Some(place.to_vec());
                    }
                    place
                        .iter_mut()
                        .enumerate()
                        .for_each(|(at, to_put)| *to_put = word(from, to, number, which, at));
                    None
                })
                .collect(),
        );
    }
    Expected { buffers, are_wrong, gotten }
}

/// Offers that are open: to whom, their numbers and requests.
type Open = Vec<(usize, usize, Request<Vec<u64>>)>;

/// What a rank has said of an offer: to whom it was, its number, how it ended, and its buffer.
type Served = (usize, usize, rma::Result<Status>, Vec<u64>);

/// One program, which all ranks make from the same seed.
fn run(team: &Team, family: Family, tag: u64, seed: u64) -> Outcome {
    const UNTOUCHED: u64 = u64::MAX;
    let (me, size) = (team.rank().index(), team.size() as usize);
    let mut state = seed;
    // A rank with late offers tests all of its requests by turns; everybody does if anybody may.
    let are_late = below(&mut state, 2) == 0;
    let mut some = |_| line(&mut state, are_late);
    let lines: Vec<Vec<Line>> = (0..size).map(|_| (0..size).map(&mut some).collect()).collect();
    // The events of this rank, those to different ranks mixed; the same for the offers.
    let mut order: Vec<usize> = (0..size).flat_map(|to| vec![to; lines[me][to].events.len()]).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, below(&mut state, at + 1));
    }
    let are_first = below(&mut state, 2) == 0;
    let origins: Vec<Vec<Vec<Vec<u64>>>> = (0..size)
        .map(|to| {
            let events = lines[me][to].events.iter().enumerate();
            let of = |number: usize, which: usize, part: &Part| match part.is_put {
                true => (0..part.len).map(|at| word(me, to, number, which, at)).collect(),
                false => vec![UNTOUCHED; part.len],
            };
            events
                .map(|(number, parts)| {
                    parts.iter().enumerate().map(|(which, part)| of(number, which, part)).collect()
                })
                .collect()
        })
        .collect();
    let mut buffers = origins;
    let open = || -> rma::Result<Open> {
        let mut requests = Vec::new();
        for (from, lines) in lines.iter().enumerate() {
            for (number, offer) in lines[me].offers.iter().enumerate() {
                let initial: Vec<u64> = (0..offer.len).map(|at| word(from, me, 63, number, at)).collect();
                let over = over(initial, PUTS_OK + GETS_OK).from(Rank(from as u32));
                let over = if offer.is_late { over.late() } else { over };
                let request = match family {
                    Family::Plain => pgo::ioffer(team, tag, over, offer.count)?,
                    #[cfg(feature = "progressive")]
                    Family::Progressive => pgo::iofferp(team, tag, over, offer.count)?,
                };
                requests.push((from, number, request));
            }
        }
        Ok(requests)
    };
    let mut served: Vec<Served> = Vec::new();
    let mut requests = if are_first { open()? } else { Vec::new() };
    let outcome = pgo::scope(team, tag, |scope| {
        let mut waiting: Vec<_> = buffers.iter_mut().map(|events| events.iter_mut()).collect();
        let mut numbers = vec![0; size];
        for &to in &order {
            let parts = &lines[me][to].events[numbers[to]];
            numbers[to] += 1;
            let target = Rank(to as u32);
            let origins = waiting[to].next().expect("one buffer a part");
            for (which, (part, origin)) in parts.iter().zip(origins).enumerate() {
                let is_last = which + 1 == parts.len();
                match (family, part.is_put, is_last) {
                    (Family::Plain, true, true) => scope.put(&*origin, target, part.at)?,
                    (Family::Plain, true, false) => scope.combine_mixed().put(&*origin, target, part.at)?,
                    (Family::Plain, false, true) => scope.get(origin, target, part.at)?,
                    (Family::Plain, false, false) => scope.combine_mixed().get(origin, target, part.at)?,
                    #[cfg(feature = "progressive")]
                    (Family::Progressive, true, true) => scope.putp(&*origin, target, part.at)?,
                    #[cfg(feature = "progressive")]
                    (Family::Progressive, true, false) => {
                        scope.combine_mixed().putp(&*origin, target, part.at)?;
                    }
                    #[cfg(feature = "progressive")]
                    (Family::Progressive, false, true) => scope.getp(origin, target, part.at)?,
                    #[cfg(feature = "progressive")]
                    (Family::Progressive, false, false) => {
                        scope.combine_mixed().getp(origin, target, part.at)?;
                    }
                }
            }
        }
        if !are_first {
            requests = open()?;
        }
        // Late offers serve in tests and waits only, so who waits for one of them may keep the others waiting.
        let is_polling = are_late;
        while !requests.is_empty() {
            let mut left = Vec::new();
            for (from, number, mut request) in requests.drain(..) {
                let outcome = match is_polling {
                    true => scope.test(&mut request).transpose(),
                    false => Some(scope.wait(&mut request)),
                };
                match outcome {
                    None => left.push((from, number, request)),
                    Some(outcome) => served.push((from, number, outcome, request.into_inner())),
                }
            }
            requests = left;
            if is_polling {
                thread::yield_now();
            }
        }
        Ok::<(), rma::Error>(())
    });
    let mut own_wrong = false;
    for (to, found) in buffers.iter().enumerate() {
        let expected = model(&lines[me][to], (me, to));
        own_wrong |= expected.are_wrong.contains(&true);
        for (number, parts) in expected.gotten.iter().enumerate() {
            for (which, gotten) in parts.iter().enumerate() {
                if !lines[me][to].events[number][which].is_put {
                    let expected =
                        gotten.clone().unwrap_or_else(|| vec![UNTOUCHED; found[number][which].len()]);
                    assert_eq!(
                        found[number][which], expected,
                        "seed {seed}: part {which} of event {number} to {to}"
                    );
                }
            }
        }
    }
    if let Err(error) = outcome {
        assert!(own_wrong, "seed {seed}: {error}");
        assert_eq!(error.kind(), ErrorKind::OutsideOffer, "seed {seed}");
    }
    for (from, number, outcome, buffer) in served {
        let line = &lines[from][me];
        let expected = model(line, (from, me));
        assert_eq!(buffer, expected.buffers[number], "seed {seed}: offer {number} to {from}");
        match outcome {
            Ok(status) => {
                assert!(!expected.are_wrong[number], "seed {seed}: offer {number} to {from}");
                assert_eq!(status.events(), line.offers[number].count, "seed {seed}");
            }
            Err(error) => {
                assert!(expected.are_wrong[number] || own_wrong, "seed {seed}: {error}");
                assert_eq!(error.kind(), ErrorKind::OutsideOffer, "seed {seed}: {error}");
            }
        }
    }
    Ok(())
}

fn random_programs_do_what_the_model_does(team: &Team) -> Outcome {
    let families = [
        Family::Plain,
        #[cfg(feature = "progressive")]
        Family::Progressive,
    ];
    for seed in 1..=if crate::is_full() { 2000 } else { 60 } {
        for family in families {
            // A rank that is through may be ahead by a program; there is nothing of it left behind.
            run(team, family, seed, 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))?;
        }
    }
    Ok(())
}
