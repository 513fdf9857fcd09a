//! A histogram whose bins lie on all ranks: every rank counts its own samples into whoever has the bin.
//! `cargo run --example histogram -- 4` runs it on four ranks as threads.

use rma::{LockKind, Rank, Sum, Team, Window, rma_epoch};

/// Bins of each rank.
const BINS: usize = 8;

/// A rank's samples: bin numbers over the whole job, the same in every run.
pub(crate) fn samples(rank: u32, ranks: u32, count: usize) -> Vec<usize> {
    let mut state = u64::from(rank) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % (BINS * ranks as usize)
    };
    (0..count).map(|_| next()).collect()
}

/// Counts those samples whose bins lie on `owner`. Accumulates are atomic, so a shared lock is enough.
#[rma_epoch(lock(bins, rank = owner, shared))]
pub(crate) fn count_into(bins: &Window<u64>, owner: Rank, samples: &[usize]) -> rma::Result<()> {
    for sample in samples {
        if sample / BINS == owner.0 as usize {
            bins.at(owner)[sample % BINS] += 1;
        }
    }
    Ok(())
}

/// The same without the macro.
pub(crate) fn count_into_by_hand(bins: &Window<u64>, owner: Rank, samples: &[usize]) -> rma::Result<()> {
    bins.lock(owner, LockKind::Shared, |epoch| {
        for sample in samples {
            if sample / BINS == owner.0 as usize {
                epoch.accumulate(owner, sample % BINS, Sum, [1])?;
            }
        }
        Ok(())
    })
}

#[rma_epoch(local(bins, read))]
pub(crate) fn own_bins(bins: &Window<u64>) -> rma::Result<Vec<u64>> {
    Ok(bins.to_vec())
}

/// The whole histogram, on the first rank.
pub(crate) fn histogram(
    team: &Team,
    count: usize,
    count_into: fn(&Window<u64>, Rank, &[usize]) -> rma::Result<()>,
) -> rma::Result<Option<Vec<u64>>> {
    let bins = Window::<u64>::allocate(team, BINS)?;
    team.barrier()?;
    let mine = samples(team.rank().0, team.size(), count);
    for owner in 0..team.size() {
        count_into(&bins, Rank(owner), &mine)?;
    }
    team.barrier()?;
    team.gather(Rank(0), &own_bins(&bins)?)
}

/// What one rank alone would count.
pub(crate) fn serial(ranks: u32, count: usize) -> Vec<u64> {
    let mut bins = vec![0; BINS * ranks as usize];
    (0..ranks).flat_map(|rank| samples(rank, ranks, count)).for_each(|sample| bins[sample] += 1);
    bins
}

#[allow(dead_code)] // Tests include this file for what stands above.
fn main() -> std::process::ExitCode {
    let program = |team: &Team| -> rma::Result<()> {
        let macros = histogram(team, 1000, count_into)?;
        let hand = histogram(team, 1000, count_into_by_hand)?;
        if let (Some(macros), Some(hand)) = (macros, hand) {
            let expected = serial(team.size(), 1000);
            assert_eq!((&macros, &hand), (&expected, &expected));
            println!("{macros:?}\nok");
        }
        Ok(())
    };
    match std::env::args().nth(1).and_then(|ranks| ranks.parse().ok()) {
        Some(ranks) => match rma::spawn(ranks, program).and_then(|ranks| ranks.into_iter().collect()) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                std::process::ExitCode::FAILURE
            }
        },
        None => rma::run(program),
    }
}
