//! Measures transfers and synchronization of two ranks, by the same loops and under the same names as `tests/peers`. Never
//! asserts a speed: the numbers mean something only beside those of a peer, taken in the same minutes.
//!
//! ```text
//! rma-run -n 2 rma-bench [PART OF A METRIC'S NAME]
//! ```
//!
//! Every line is `metric<TAB>bytes<TAB>value<TAB>unit`; the best of several batches, as the peers' programs report it.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use rma::{Expected, Info, LockKind, Origins, Rank, Result, Sum, Team, Window};

const BATCHES: usize = 15;
const MIB: usize = 1 << 20;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word.starts_with('-')) || 1 < words.len() {
        eprintln!("usage: rma-run -n 2 rma-bench [PART OF A METRIC'S NAME]");
        return ExitCode::from(2);
    }
    let wanted = words.first().cloned().unwrap_or_default();
    rma::run(|team| Bench { team, wanted: &wanted }.run())
}

struct Bench<'a> {
    team: &'a Team,
    wanted: &'a str,
}

impl Bench<'_> {
    fn run(&self) -> std::result::Result<(), String> {
        if self.team.size() != 2 {
            return Err(format!("the benchmark is for 2 ranks, not {}", self.team.size()));
        }
        self.measure().map_err(|error| error.to_string())
    }

    fn emit(&self, metric: &str, bytes: usize, value: f64, unit: &str) {
        if self.team.rank() == Rank(0) && metric.contains(self.wanted) {
            println!("rma.{metric}\t{bytes}\t{value:.4}\t{unit}");
        }
    }

    /// Microseconds per call of the best batch, of rank 0; the other rank is in the barrier meanwhile.
    fn origin(&self, calls: usize, mut body: impl FnMut() -> Result<()>) -> Result<f64> {
        self.batches(calls, &mut body, self.team.rank() == Rank(0))
    }

    /// Microseconds per call of the best batch, of all ranks.
    fn all(&self, calls: usize, mut body: impl FnMut() -> Result<()>) -> Result<f64> {
        self.batches(calls, &mut body, true)
    }

    #[inline(always)]
    fn batches(&self, calls: usize, body: &mut impl FnMut() -> Result<()>, takes_part: bool) -> Result<f64> {
        let mut best = f64::INFINITY;
        for batch in 0..BATCHES {
            self.team.barrier()?;
            if takes_part {
                let begun = Instant::now();
                for _ in 0..calls {
                    body()?;
                }
                let took = begun.elapsed().as_secs_f64() * 1e6 / calls as f64;
                // The first batch warms up.
                if 0 < batch {
                    best = best.min(took);
                }
            }
            self.team.barrier()?;
        }
        Ok(best)
    }

    fn measure(&self) -> Result<()> {
        let origin = vec![1_u8; 4 * MIB];
        let mut back = vec![0_u8; MIB];
        let target = Rank(1);
        let other = Rank(1 - self.team.rank().0);
        let mut window = Window::<u8>::allocate(self.team, 4 * MIB)?;
        let words = Window::<i64>::allocate(self.team, MIB / 8)?;
        let floats = Window::<f64>::allocate(self.team, MIB / 8)?;
        let ones = vec![1.0; MIB / 8];
        let longs = vec![1_i64; 4096];

        for (bytes, calls) in [(8, 40_000), (1024, 20_000), (64 << 10, 2000), (MIB, 100)] {
            let data = &origin[..bytes];
            // An empty flush: on mapped memory a transfer is complete when its call returns.
            let put = window.lock(target, LockKind::Shared, |epoch| {
                self.origin(calls, || {
                    epoch.put(target, 0, data)?;
                    epoch.flush(())
                })
            })?;
            self.emit("put_flush", bytes, put, "us");
            let get = window.lock(target, LockKind::Shared, |epoch| {
                let mut best = f64::INFINITY;
                for _ in 0..BATCHES {
                    let begun = Instant::now();
                    for _ in 0..calls {
                        drop(epoch.get_vec(target, 0..bytes)?);
                    }
                    best = best.min(begun.elapsed().as_secs_f64() * 1e6 / calls as f64);
                }
                Ok(best)
            })?;
            self.emit("get_vec_flush", bytes, get, "us");
            let lock = self.origin(calls, || {
                window.lock(target, LockKind::Exclusive, |epoch| epoch.put(target, 0, data))
            })?;
            self.emit("lock_put_unlock", bytes, lock, "us");
            let lock = self.origin(calls, || {
                window.lock(target, LockKind::Shared, |epoch| epoch.get(target, 0, &mut back[..bytes]))
            })?;
            self.emit("slock_get_unlock", bytes, lock, "us");
        }
        let empty = self.origin(40_000, || window.lock(target, LockKind::Exclusive, |_| ()))?;
        self.emit("lock_unlock_empty", 0, empty, "us");
        let view = self.origin(40_000, || window.local().map(drop))?;
        self.emit("local_view", 0, view, "us");

        let rate = words.lock(target, LockKind::Shared, |epoch| {
            self.origin(200, || {
                for at in 0..4096 {
                    epoch.put(target, at, &longs[at..at + 1])?;
                }
                Ok(())
            })
        })?;
        self.emit("put_rate_4096perflush", 8, 4096.0 / rate, "Mmsg/s");

        let one = floats.lock(target, LockKind::Shared, |epoch| {
            self.origin(20_000, || epoch.accumulate(target, 0, Sum, 1.0))
        })?;
        self.emit("acc_sum_f64_1", 8, one, "us");
        let many = floats.lock(target, LockKind::Shared, |epoch| {
            self.origin(50, || epoch.accumulate(target, 0, Sum, &ones))
        })?;
        self.emit("acc_sum_f64_array", MIB, MIB as f64 / many / 1e3, "GB/s");
        let add = words.lock(target, LockKind::Shared, |epoch| {
            self.origin(40_000, || epoch.fetch_op(target, 0, Sum, 1).map(drop))
        })?;
        self.emit("fetch_and_add_i64", 8, add, "us");
        let swap = words.lock(target, LockKind::Shared, |epoch| {
            self.origin(40_000, || epoch.compare_swap(target, 0, -1, 7).map(drop))
        })?;
        self.emit("cas_i64", 8, swap, "us");

        let fence = window.fence(|epoch| self.all(20_000, || epoch.fence()))?;
        self.emit("fence_empty", 0, fence, "us");
        for (bytes, calls) in [(8, 20_000), (64 << 10, 2000)] {
            let fence = window.fence(|epoch| {
                self.all(calls, || {
                    epoch.put(other, 0, &origin[..bytes])?;
                    epoch.fence()
                })
            })?;
            self.emit("fence_put_neighbour", bytes, fence, "us");
        }
        let one_way = self.all(20_000, || {
            if self.team.rank() == Rank(0) {
                let access = window.start(other, Info::Strong)?;
                access.put(other, 0, &origin[..8])?;
                access.complete()
            } else {
                window.post(Origins::Group(&[other]))?.wait_all()
            }
        })?;
        self.emit("pscw_put_oneway", 8, one_way, "us");
        // What the calls themselves cost, without a partner that they wait for.
        let me = self.team.rank();
        let alone = self.origin(20_000, || {
            let exposure = window.post(Origins::Any)?;
            let access = exposure.start(me, Info::Strong)?;
            access.put(me, 0, &origin[..8])?;
            access.complete()?;
            exposure.wait(Expected::Count(1))
        })?;
        self.emit("pscw_put_self", 8, alone, "us");
        for (bytes, calls) in [(8, 20_000), (64 << 10, 2000)] {
            let exchange = self.all(calls, || {
                let exposure = window.post(Origins::Any)?;
                let access = exposure.start(other, Info::Strong)?;
                access.put(other, 0, &origin[..bytes])?;
                access.complete()?;
                exposure.wait(Expected::Count(1))
            })?;
            self.emit("pscw_put_exchange", bytes, exchange, "us");
        }
        let barrier = self.all(20_000, || self.team.barrier())?;
        self.emit("barrier", 0, barrier, "us");
        let setup = self.all(20, || Window::<u8>::allocate(self.team, 4 * MIB).map(drop))?;
        self.emit("win_setup", 4 * MIB, setup, "us");
        Ok(())
    }
}
