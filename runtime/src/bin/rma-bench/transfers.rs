//! Metrics of rank 0 that moves data to and from rank 1, which takes no part. Never run with another number of ranks.
//!
//! Where the peers lock all ranks and flush after every transfer, these hold a shared lock of the target and flush. A get
//! in such a loop delivers into the own window, or as a value, since a buffer is lent for a whole epoch.

use rma::{LockKind, Rank, Result, Sum, Window, own};

use crate::REGION_WORDS;
use crate::report::Failure;
use crate::timing::Bench;

const TARGET: Rank = Rank(1);
const WORD_BYTES: usize = size_of::<u64>();
/// Transfers between two flushes of the bandwidth metrics.
const INFLIGHT: usize = 64;
/// Puts between two flushes of the rate metric.
const PUTS_PER_FLUSH: usize = 4096;
/// Elements of the long accumulate: 1 MiB.
const ACCUMULATED: usize = (1 << 20) / size_of::<f64>();

/// One transfer and its completion, under a lock that is held and with a lock of its own.
pub(crate) fn latency(bench: &Bench<'_>, window: &Window<u64>, buffer: &mut [u64]) -> Result<(), Failure> {
    const SIZES: [(usize, usize); 4] = [(8, 4000), (1024, 4000), (64 << 10, 1000), (1 << 20, 100)];
    let lent = &*buffer;
    window.lock(TARGET, LockKind::Shared, |epoch| {
        for (bytes, n) in SIZES {
            let (words, n) = (bytes / WORD_BYTES, bench.iterations(n));
            let origin = &lent[..words];
            let took = bench.origin(n, || {
                epoch.put(TARGET, 0, origin)?;
                epoch.flush(())
            })?;
            bench.emit("put_flush", bytes, took, "us");
            let took = match words {
                1 => bench.origin(n, || epoch.flush(epoch.get_value(TARGET, 0)?).map(|_| ()))?,
                _ => bench.origin(n, || {
                    epoch.get(TARGET, 0, own(0..words))?;
                    epoch.flush(())
                })?,
            };
            bench.emit("get_flush", bytes, took, "us");
        }
        Ok(())
    })?;
    for (bytes, n) in SIZES {
        let (words, n) = (bytes / WORD_BYTES, bench.iterations(n));
        let took = bench.origin(n, || {
            window.lock(TARGET, LockKind::Exclusive, |epoch| epoch.put(TARGET, 0, &buffer[..words]))
        })?;
        bench.emit("lock_put_unlock", bytes, took, "us");
        let took = bench.origin(n, || {
            window.lock(TARGET, LockKind::Shared, |epoch| epoch.get(TARGET, 0, &mut buffer[..words]))
        })?;
        bench.emit("slock_get_unlock", bytes, took, "us");
    }
    let n = bench.iterations(4000);
    let took = bench.origin(n, || window.lock(TARGET, LockKind::Exclusive, |_| ()))?;
    bench.emit("lock_unlock_empty", 0, took, "us");
    Ok(())
}

/// Many large transfers per flush.
pub(crate) fn bandwidth(bench: &Bench<'_>, window: &Window<u64>, buffer: &[u64]) -> Result<()> {
    window.lock(TARGET, LockKind::Shared, |epoch| {
        for (bytes, n) in [(64 << 10, 40), (1 << 20, 4)] {
            let (words, n) = (bytes / WORD_BYTES, bench.iterations(n));
            let starts = |transfer: usize| transfer % (REGION_WORDS / words) * words;
            let rate = |took: f64| (INFLIGHT * bytes) as f64 / took / 1e3;
            let took = bench.origin(n, || {
                for at in (0..INFLIGHT).map(starts) {
                    epoch.put(TARGET, at, &buffer[at..at + words])?;
                }
                epoch.flush(())
            })?;
            bench.emit("put_bw_64inflight", bytes, rate(took), "GB/s");
            let took = bench.origin(n, || {
                for at in (0..INFLIGHT).map(starts) {
                    epoch.get(TARGET, at, own(at..at + words))?;
                }
                epoch.flush(())
            })?;
            bench.emit("get_bw_64inflight", bytes, rate(took), "GB/s");
        }
        Ok(())
    })
}

/// Many small puts per flush.
pub(crate) fn rate(bench: &Bench<'_>, window: &Window<u64>, buffer: &[u64]) -> Result<()> {
    window.lock(TARGET, LockKind::Shared, |epoch| {
        let n = bench.iterations(20);
        let took = bench.origin(n, || {
            for (at, word) in buffer[..PUTS_PER_FLUSH].iter().enumerate() {
                epoch.put(TARGET, at, std::slice::from_ref(word))?;
            }
            epoch.flush(())
        })?;
        bench.emit("put_rate_4096perflush", WORD_BYTES, PUTS_PER_FLUSH as f64 / took, "Mmsg/s");
        Ok(())
    })
}

/// Sums of doubles, one and many.
pub(crate) fn accumulate(bench: &Bench<'_>, window: Window<f64>) -> Result<(), Failure> {
    let ones = vec![1.0; ACCUMULATED];
    let (n_one, n_many) = (bench.iterations(4000), bench.iterations(100));
    window.lock(TARGET, LockKind::Shared, |epoch| {
        let took = bench.origin(n_one, || {
            epoch.accumulate(TARGET, 0, Sum, &ones[..1])?;
            epoch.flush(())
        })?;
        bench.emit("acc_sum_f64_1", size_of::<f64>(), took, "us");
        let took = bench.origin(n_many, || {
            epoch.accumulate(TARGET, 0, Sum, &ones[..])?;
            epoch.flush(())
        })?;
        let bytes = size_of_val(&ones[..]);
        bench.emit("acc_sum_f64_array", bytes, bytes as f64 / took / 1e3, "GB/s");
        Ok(())
    })?;
    // The peers never know that nobody else accumulates; this runtime does, under an exclusive lock.
    let took = bench.origin(n_many, || {
        window.lock(TARGET, LockKind::Exclusive, |epoch| epoch.accumulate(TARGET, 0, Sum, &ones[..]))
    })?;
    let bytes = size_of_val(&ones[..]);
    bench.emit("acc_sum_f64_array_exclusive", bytes, bytes as f64 / took / 1e3, "GB/s");
    if bench.is_origin() {
        let sums = window.lock(TARGET, LockKind::Shared, |epoch| epoch.get_vec(TARGET, 0..2))?;
        let expected = [Bench::calls(n_one + 2 * n_many), Bench::calls(2 * n_many)].map(|n| n as f64);
        if sums != expected {
            return Err(Failure::check(
                bench.team,
                "accumulate",
                format!("{sums:?}"),
                format!("{expected:?}"),
            ));
        }
    }
    Ok(window.free()?)
}

/// A counter at the target, and one that all ranks add to.
pub(crate) fn fetch_add(bench: &Bench<'_>, window: Window<i64>) -> Result<(), Failure> {
    const SHARED: (Rank, usize) = (Rank(0), 2);
    let n = bench.iterations(4000);
    let mut last = 0;
    window.lock(TARGET, LockKind::Shared, |epoch| {
        let took = bench.origin(n, || {
            last = epoch.flush(epoch.fetch_op(TARGET, 0, Sum, 1)?)?;
            Ok(())
        })?;
        bench.emit("fetch_and_add_i64", size_of::<i64>(), took, "us");
        Ok(())
    })?;
    let calls = Bench::calls(n) as i64;
    if bench.is_origin() && last != calls - 1 {
        return Err(Failure::check(bench.team, "fetch_and_add", last, calls - 1));
    }
    window.lock(SHARED.0, LockKind::Shared, |epoch| {
        let took = bench.all(n, || epoch.flush(epoch.fetch_op(SHARED.0, SHARED.1, Sum, 1)?).map(|_| ()))?;
        bench.emit("fetch_and_add_i64_allranks", size_of::<i64>(), took, "us");
        Ok(())
    })?;
    let total = calls * i64::from(bench.team.size());
    if bench.is_origin() && window.local()?[SHARED.1] != total {
        return Err(Failure::check(bench.team, "fetch_and_add of all ranks", window.load(SHARED.1)?, total));
    }
    Ok(window.free()?)
}

/// A comparison that fails.
pub(crate) fn compare_swap(bench: &Bench<'_>, window: Window<i64>) -> Result<(), Failure> {
    let mut found = 0;
    window.lock(TARGET, LockKind::Shared, |epoch| {
        let took = bench.origin(bench.iterations(4000), || {
            found = epoch.flush(epoch.compare_swap(TARGET, 1, -1, 7)?)?;
            Ok(())
        })?;
        bench.emit("cas_i64", size_of::<i64>(), took, "us");
        Ok(())
    })?;
    match found {
        0 => Ok(window.free()?),
        _ => Err(Failure::check(bench.team, "compare_swap", found, 0)),
    }
}
