//! The exchange of halos of a Jacobi step by Put/Get/Offer: with counts that the program gives, and with counts that the
//! collective family finds. Never checks what arrives.
//!
//! With two ranks each puts to the other, as in `pscw_put_exchange`, which is measured in turn with it, from the same row into the
//! same kind of memory: `…_over_pscw` is by how much a pair of put and offer takes longer. With more ranks, each puts to both neighbours
//! of a ring.

use rma::pgo::{self, PUTS_OK, malloc, over};
use rma::{Rank, Result, Window};

use crate::synchronization::put_exchange;
use crate::timing::Bench;

/// The length of a row of a halo: a word, and a long one.
const WORDS: [usize; 2] = [1, (64 << 10) / size_of::<u64>()];

pub(crate) fn exchange(bench: &Bench<'_>, window: &mut Window<u64>, buffer: &[u64]) -> Result<()> {
    let team = bench.team;
    let (me, size) = (team.rank().0, team.size());
    let mut neighbours = vec![Rank((me + 1) % size), Rank((me + size - 1) % size)];
    neighbours.dedup();
    let count = neighbours.len() as u64;
    for words in WORDS {
        let bytes = words * size_of::<u64>();
        let n = bench.iterations(if size == 2 { 4000 } else { 500 } / if words == 1 { 1 } else { 4 });
        let row = &buffer[..words];
        // Where the row of a neighbour lies: the left one's behind the right one's.
        let at = |which: usize| which * words;
        let mut halo = malloc::<u64>(team, 2 * words)?;
        // A neighbour may be ahead by a step: two tags by turns.
        let mut step = 0;
        let mut beside = match size {
            2 => Some(put_exchange(bench, window, row, n)?),
            _ => None,
        };
        let took = bench.all(n, || {
            step += 1;
            pgo::scope(team, step % 2, |scope| {
                for (which, &rank) in neighbours.iter().enumerate() {
                    scope.put(row, rank, at(which))?;
                }
                scope.offer(over(&mut halo, PUTS_OK), count)
            })
            .map(drop)
        })?;
        if let Some(before) = &mut beside {
            *before = before.min(put_exchange(bench, window, row, n)?);
        }
        bench.emit("pgo_put_offer_exchange", bytes, took, "us");
        if let Some(pscw) = beside {
            bench.emit("pgo_put_offer_over_pscw", bytes, took / pscw, "ratio");
        }
        let mut started = [
            pgo::offer_init(team, 0, over(malloc::<u64>(team, 2 * words)?, PUTS_OK), count)?,
            pgo::offer_init(team, 1, over(malloc::<u64>(team, 2 * words)?, PUTS_OK), count)?,
        ];
        let took = bench.all(n, || {
            step += 1;
            let offer = &mut started[step as usize % 2];
            offer.start()?;
            pgo::scope(team, step % 2, |scope| {
                for (which, &rank) in neighbours.iter().enumerate() {
                    scope.put(row, rank, at(which))?;
                }
                scope.wait_started(offer)
            })
            .map(drop)
        })?;
        bench.emit("pgo_put_started_offer_exchange", bytes, took, "us");
        if let Some(pscw) = beside {
            bench.emit("pgo_put_started_offer_over_pscw", bytes, took / pscw, "ratio");
        }
        let took = bench.all(n, || {
            pgo::scope(team, 0, |scope| {
                for (which, &rank) in neighbours.iter().enumerate() {
                    scope.putc(row, rank, at(which))?;
                }
                scope.offerc(over(&mut halo, PUTS_OK))
            })
            .map(drop)
        })?;
        bench.emit("pgo_putc_offerc_exchange", bytes, took, "us");
    }
    Ok(())
}
