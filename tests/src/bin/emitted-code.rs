//! Functions whose machine code and cost `tests/emitted.rs` looks at. Never checks anything itself.

use rma::{LockKind, Rank, Team, Window, rma_epoch};

/// Elements of the window, and puts per call of the functions below.
const LEN: usize = 1000;

const SELF: Rank = Rank(0);

/// The loop of a private epoch: plain loads and stores that can be vectorised.
#[rma_epoch(local(u))]
#[inline(never)]
pub fn scale_in_local_epoch(u: &mut Window<f64>, factor: f64) -> rma::Result<()> {
    for value in u.iter_mut() {
        *value *= factor;
    }
    Ok(())
}

#[rma_epoch(lock(w, rank = SELF, exclusive))]
#[inline(never)]
pub fn puts_by_macro(w: &Window<f64>, n: usize) -> rma::Result<()> {
    for i in 0..n {
        w.at(SELF)[i] = i as f64;
    }
    Ok(())
}

#[inline(never)]
pub fn puts_by_call(w: &Window<f64>, n: usize) -> rma::Result<()> {
    w.lock(SELF, LockKind::Exclusive, |epoch| {
        for i in 0..n {
            epoch.put(SELF, i, [i as f64])?;
        }
        Ok(())
    })
}

/// Two reads of one place in exposed memory: two loads, whatever the optimiser thinks.
#[rma_epoch(lock(w, rank = SELF, shared))]
#[inline(never)]
pub fn two_volatile_loads(w: &Window<u64>) -> rma::Result<(u64, u64)> {
    Ok((w[0], w[0]))
}

/// Three stores to one place in exposed memory: three stores.
#[rma_epoch(lock(w, rank = SELF, exclusive))]
#[inline(never)]
pub fn three_volatile_stores(w: &Window<u64>) -> rma::Result<()> {
    w[0] = 1;
    w[0] = 2;
    w[0] = 3;
    Ok(())
}

/// A store before and a load after a synchronization, each in its private epoch.
#[inline(never)]
pub fn store_sync_load(w: &mut Window<u64>) -> rma::Result<u64> {
    set(w, 0x5EED)?;
    sync(w)?;
    get(w)
}

#[rma_epoch(local(w))]
#[inline(always)]
fn set(w: &mut Window<u64>, value: u64) -> rma::Result<()> {
    w[0] = value;
    Ok(())
}

#[rma_epoch(local(w, read))]
#[inline(always)]
fn get(w: &Window<u64>) -> rma::Result<u64> {
    Ok(w[0])
}

#[rma_epoch(fence(w))]
#[inline(never)]
pub fn sync(w: &mut Window<u64>) -> rma::Result<()> {
    Ok(())
}

fn main() -> rma::Result<()> {
    let which = std::env::args().nth(1).unwrap_or_default();
    let outcome = rma::spawn(1, |team: &Team| -> rma::Result<()> {
        let mut w = Window::<f64>::allocate(team, LEN)?;
        let mut v = Window::<u64>::allocate(team, LEN)?;
        match which.as_str() {
            "macro" => puts_by_macro(&w, LEN)?,
            "call" => puts_by_call(&w, LEN)?,
            _ => {
                scale_in_local_epoch(&mut w, 2.0)?;
                assert_eq!(two_volatile_loads(&v)?, (0, 0));
                three_volatile_stores(&v)?;
                assert_eq!(store_sync_load(&mut v)?, 0x5EED);
            }
        }
        Ok(())
    })?;
    outcome.into_iter().collect()
}
