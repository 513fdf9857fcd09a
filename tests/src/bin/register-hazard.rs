//! The register hazards as a program: each line is a hazard, what the macro form gives, and what its twin gives, in
//! which a plain local stands for the register that a compiler might have used. Never judges: `tests/registers.rs` builds
//! this at every optimisation level and compares.

use rma::{Rank, Team, Window, rma_epoch};

/// Times that each hazard is run: the compiler gets loops to optimise, and threads a chance to meet differently.
const ROUNDS: u64 = 200;

const OWNER: Rank = Rank(0);
const PEER: Rank = Rank(1);

#[rma_epoch(local(u))]
fn set(u: &mut Window<u64>, value: u64) -> rma::Result<()> {
    u[0] = value;
    Ok(())
}

#[rma_epoch(local(u, read))]
fn value(u: &Window<u64>) -> rma::Result<u64> {
    Ok(u[0])
}

/// The synchronization of both ranks, in which the peer puts.
#[rma_epoch(fence(u))]
fn peer_puts(u: &mut Window<u64>, me: Rank, value: u64) -> rma::Result<()> {
    if me == PEER {
        u.at(OWNER)[0] = value;
    }
    Ok(())
}

/// The synchronization of both ranks, in which the peer gets; the owner's answer is nought.
#[rma_epoch(fence(u))]
fn peer_gets(u: &mut Window<u64>, me: Rank) -> rma::Result<u64> {
    if me == PEER {
        return Ok(u.at(OWNER)[0]);
    }
    Ok(0.into())
}

/// The same into a buffer.
#[rma_epoch(fence(u))]
fn peer_fills(u: &mut Window<u64>, me: Rank, buffer: &mut [u64]) -> rma::Result<()> {
    if me == PEER {
        buffer.copy_from_slice(&u.at(OWNER)[0..1]);
    }
    Ok(())
}

fn main() -> rma::Result<()> {
    let ranks = rma::spawn(2, |team: &Team| hazards(team))?;
    let mut lines: Vec<String> = Vec::new();
    for rank in ranks {
        lines.extend(rank?);
    }
    lines.sort();
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn hazards(team: &Team) -> rma::Result<Vec<String>> {
    let me = team.rank();
    let mut u = Window::<u64>::allocate(team, 1)?;
    let mut lines = Vec::new();
    let mut tell = |who: Rank, hazard: &str, right: &[u64], twin: &[u64]| {
        if me == who {
            lines.push(format!("{hazard} macro {right:?} twin {twin:?}"));
        }
    };

    // REG-HAZ-01, stale read: set 999, the peer puts 777, read.
    let (mut right, mut twin) = (0, 0);
    for _ in 0..ROUNDS {
        set(&mut u, 999)?;
        peer_puts(&mut u, me, 777)?;
        right = value(&u)?;

        set(&mut u, 999)?;
        let register = value(&u)?;
        peer_puts(&mut u, me, 777)?;
        twin = register;
    }
    tell(OWNER, "stale-read", &[right], &[twin]);

    // REG-HAZ-02, missed store: store i and synchronize; the peer gets each round.
    let (mut right, mut twin) = (Vec::new(), Vec::new());
    for i in 0..ROUNDS {
        if me == OWNER {
            set(&mut u, i)?;
        }
        right.push(peer_gets(&mut u, me)?);
    }
    set(&mut u, 0)?;
    let mut register = 0;
    for i in 0..ROUNDS {
        register = i;
        twin.push(peer_gets(&mut u, me)?);
    }
    set(&mut u, register)?;
    let seen = |values: &[u64]| values.iter().zip(0..).filter(|(value, i)| **value == *i).count() as u64;
    tell(PEER, "missed-store", &[seen(&right)], &[seen(&twin)]);

    // REG-HAZ-03 and REG-XFORM-04, late store: set 999, the peer puts 777, what is in memory afterwards?
    let (mut right, mut twin) = (0, 0);
    for _ in 0..ROUNDS {
        set(&mut u, 999)?;
        peer_puts(&mut u, me, 777)?;
        right = value(&u)?;

        let register = 999;
        peer_puts(&mut u, me, 777)?;
        set(&mut u, register)?;
        twin = value(&u)?;
    }
    tell(OWNER, "late-store", &[right], &[twin]);

    // REG-XFORM-01, one load for two reads around a receive.
    let (mut right, mut twin) = ([0, 0], [0, 0]);
    for _ in 0..ROUNDS {
        set(&mut u, 1)?;
        let old = value(&u)?;
        peer_puts(&mut u, me, 2)?;
        right = [old, value(&u)?];

        set(&mut u, 1)?;
        let register = value(&u)?;
        let old = register;
        peer_puts(&mut u, me, 2)?;
        twin = [old, register];
    }
    tell(OWNER, "one-load", &right, &twin);

    // REG-XFORM-02 and 03, a load between the start of a receive and its end: the buffer is lent to the epoch, so the
    // transformed program can only be written with a copy from before.
    let (mut right, mut twin) = (0, 0);
    for _ in 0..ROUNDS {
        set(&mut u, 2)?;
        let mut buffer = [1];
        peer_fills(&mut u, me, &mut buffer)?;
        right = buffer[0];

        let mut buffer = [1];
        let register = buffer[0];
        peer_fills(&mut u, me, &mut buffer)?;
        twin = register;
    }
    tell(PEER, "early-load", &[right], &[twin]);

    u.free()?;
    Ok(lines)
}
