//! Metrics of calls that several ranks take part in. Never checks more than that what should have arrived has.

use std::thread;
use std::time::{Duration, Instant};

use rma::{Info, LockKind, Max, Min, Origins, Rank, Result, Window};

use crate::report::Failure;
use crate::timing::{Bench, timed};

const WORD_BYTES: usize = size_of::<u64>();
/// The long put of the collective metrics.
const LONG_BYTES: usize = 64 << 10;
const LONG_WORDS: usize = LONG_BYTES / WORD_BYTES;

pub(crate) fn barrier(bench: &Bench<'_>) -> Result<()> {
    let n = bench.iterations(if bench.team.size() == 2 { 10_000 } else { 500 });
    let took = bench.all(n, || bench.team.barrier())?;
    bench.emit("barrier", 0, took, "us");
    Ok(())
}

/// Fences alone, and with a put of every rank to its right neighbour.
pub(crate) fn fence(bench: &Bench<'_>, window: &mut Window<u64>, buffer: &[u64]) -> Result<()> {
    let n = bench.iterations(if bench.team.size() == 2 { 4000 } else { 500 });
    let right = Rank((bench.team.rank().0 + 1) % bench.team.size());
    window.fence(|epoch| {
        let took = bench.all(n, || epoch.fence())?;
        bench.emit("fence_empty", 0, took, "us");
        for (words, n) in [(1, n), (LONG_WORDS, n / 4 + 1)] {
            let took = bench.all(n, || {
                epoch.put(right, 0, &buffer[..words])?;
                epoch.fence()
            })?;
            bench.emit("fence_put_neighbour", words * WORD_BYTES, took, "us");
        }
        Ok(())
    })
}

/// A put of one rank to the other, and of both to each other.
pub(crate) fn post_start_complete_wait(
    bench: &Bench<'_>,
    window: &mut Window<u64>,
    buffer: &[u64],
) -> Result<()> {
    let peer = Rank(bench.team.rank().0 ^ 1);
    let n = bench.iterations(4000);
    let took = bench.all(n, || match bench.is_origin() {
        true => {
            let access = window.start(peer, Info::Strong)?;
            access.put(peer, 0, &buffer[..1])?;
            access.complete()
        }
        false => window.post(Origins::Group(&[peer]))?.wait_all(),
    })?;
    bench.emit("pscw_put_oneway", WORD_BYTES, took, "us");
    for (words, n) in [(1, n), (LONG_WORDS, n / 4 + 1)] {
        let took = put_exchange(bench, window, &buffer[..words], n)?;
        bench.emit("pscw_put_exchange", words * WORD_BYTES, took, "us");
    }
    Ok(())
}

/// Microseconds that both of two ranks take to put a row to each other.
pub(crate) fn put_exchange(
    bench: &Bench<'_>,
    window: &mut Window<u64>,
    row: &[u64],
    n: usize,
) -> Result<f64> {
    let peer = Rank(bench.team.rank().0 ^ 1);
    bench.all(n, || {
        let exposure = window.post(Origins::Group(&[peer]))?;
        let access = exposure.start(peer, Info::Strong)?;
        access.put(peer, 0, row)?;
        access.complete()?;
        exposure.wait_all()
    })
}

/// All ranks increment a counter of rank 0 under its exclusive lock, by a get and a put.
pub(crate) fn contended_lock(bench: &Bench<'_>, window: &Window<u64>) -> Result<(), Failure> {
    const OWNER: Rank = Rank(0);
    const COUNTER: usize = 4;
    let team = bench.team;
    let n = bench.iterations(if team.size() == 2 { 2000 } else { 100 });
    // Under the own lock, whose unlock publishes it before somebody else's put.
    window.lock(window.rank(), LockKind::Exclusive, |epoch| epoch.store(COUNTER, 0))?;
    team.barrier()?;
    let mine = timed(n, || {
        window.lock(OWNER, LockKind::Exclusive, |epoch| {
            let value = epoch.flush(epoch.get_value(OWNER, COUNTER)?)?;
            epoch.put(OWNER, COUNTER, value + 1)
        })
    })?;
    let (mut slowest, mut fastest) = ([mine], [mine]);
    team.allreduce(&mut slowest, Max)?;
    team.allreduce(&mut fastest, Min)?;
    team.barrier()?;
    let (total, size) = ((n * team.size() as usize) as u64, f64::from(team.size()));
    if bench.is_origin() && window.local()?[COUNTER] != total {
        return Err(Failure::check(team, "contended lock", window.load(COUNTER)?, total));
    }
    bench.emit("xlock_rmw_contended_slowest", WORD_BYTES, slowest[0], "us/op/rank");
    bench.emit("xlock_rmw_contended_fastest", WORD_BYTES, fastest[0], "us/op/rank");
    bench.emit("xlock_rmw_contended_total", WORD_BYTES, size * 1e3 / slowest[0], "kop/s");
    Ok(())
}

/// Rank 1 computes; how long does a lock, put, unlock of rank 0 take meanwhile?
pub(crate) fn computing_target(bench: &Bench<'_>, window: &Window<u64>) -> Result<()> {
    const ROUNDS: usize = 5;
    const COMPUTING: Duration = Duration::from_millis(50);
    /// Until the target surely computes.
    const PAUSE: Duration = Duration::from_millis(2);
    let mut worst = Duration::ZERO;
    for _ in 0..ROUNDS {
        bench.team.barrier()?;
        let begun = Instant::now();
        if bench.is_origin() {
            thread::sleep(PAUSE);
            let begun = Instant::now();
            window.lock(Rank(1), LockKind::Exclusive, |epoch| epoch.put(Rank(1), 0, 1))?;
            worst = worst.max(begun.elapsed());
        } else {
            while begun.elapsed() < COMPUTING {
                std::hint::black_box(());
            }
        }
        bench.team.barrier()?;
    }
    bench.emit("lock_put_unlock_target_busy50ms_worst", WORD_BYTES, worst.as_secs_f64() * 1e6, "us");
    Ok(())
}
