//! The macro forms of examples 1.5, 1.6, 1.7 and 1.9, and the programs of `runtime/examples`: results against the serial
//! references and against the hand-written forms. Never measures anything.

use rma::{Info, LockKind, Origins, Rank, Team, Window, rma_epoch, rma_test};

#[path = "../../runtime/examples/histogram.rs"]
mod histogram;
#[path = "../../runtime/examples/jacobi_macro.rs"]
mod jacobi;
#[path = "../../runtime/examples/ticket_lock.rs"]
mod ticket_lock;

use jacobi::{Answer, Block, Problem, Stop};

// Example 1.5: one put between start and complete.

const LEN: usize = 1000;

#[rma_epoch(access(w, targets = [target]))]
fn send(w: &Window<f64>, target: Rank, values: &[f64]) -> rma::Result<()> {
    w.at(target)[0..LEN].copy_from_slice(values);
    Ok(())
}

#[rma_epoch(exposure(w, origins = any, count = 1))]
fn receive(w: &mut Window<f64>) -> rma::Result<()> {
    Ok(())
}

fn send_by_hand(w: &Window<f64>, target: Rank, values: &[f64]) -> rma::Result<()> {
    w.access(&[target], Info::Strong, |epoch| epoch.put(target, 0..LEN, values))
}

fn receive_by_hand(w: &mut Window<f64>) -> rma::Result<()> {
    w.post(Origins::Any)?.wait(1)
}

type Send = fn(&Window<f64>, Rank, &[f64]) -> rma::Result<()>;
type Receive = fn(&mut Window<f64>) -> rma::Result<()>;

// covers: EX-E105-01
#[rma_test(ranks = 2, transports = [local, shm, tcp])]
fn example_1_5(team: &Team) -> rma::Result<()> {
    let forms: [(Send, Receive); 2] = [(send, receive), (send_by_hand, receive_by_hand)];
    let mut traces = Vec::new();
    for (send, receive) in forms {
        let mut w = Window::<f64>::allocate(team, LEN)?;
        w.start_trace();
        if team.rank() == Rank(0) {
            let mut values: Vec<f64> = (0..LEN).map(|i| i as f64).collect();
            send(&w, Rank(1), &values)?;
            // Reusable at once; the target must not see this.
            values.fill(-1.0);
        } else {
            receive(&mut w)?;
        }
        let calls: Vec<_> = w.take_trace().into_iter().map(|e| (e.call, e.target, e.range)).collect();
        traces.push(calls);
        if team.rank() == Rank(1) {
            assert!(w.local()?.iter().zip(0..).all(|(value, i)| *value == f64::from(i)));
        }
        team.barrier()?;
    }
    assert_eq!(traces[0], traces[1], "both forms make the same calls");
    Ok(())
}

// Example 1.6: puts under an exclusive lock.

const ROUNDS: u64 = 1000;
const COMMON: usize = 4;
const TICKET: usize = 5;

#[rma_epoch(lock(w, rank = 0, exclusive))]
fn put_both(w: &Window<u64>, own: usize, value: u64) -> rma::Result<u64> {
    w.at(0)[own] = value;
    w.at(0)[COMMON] = value;
    Ok(w.at(0)[TICKET].fetch_add(1))
}

fn put_both_by_hand(w: &Window<u64>, own: usize, value: u64) -> rma::Result<u64> {
    w.lock(Rank(0), LockKind::Exclusive, |epoch| -> rma::Result<_> {
        epoch.put(Rank(0), own, [value])?;
        epoch.put(Rank(0), COMMON, [value])?;
        epoch.fetch_op(Rank(0), TICKET, rma::Sum, 1)
    })
}

// covers: EX-E106-01
#[rma_test(ranks = 4, transports = [local, shm, tcp])]
fn example_1_6(team: &Team) -> rma::Result<()> {
    let me = team.rank().index();
    for put_both in [put_both as fn(&Window<u64>, usize, u64) -> _, put_both_by_hand] {
        let w = Window::<u64>::allocate(team, if me == 0 { 6 } else { 0 })?;
        team.barrier()?;
        let mut last = [0, 0];
        for round in 0..ROUNDS {
            let value = me as u64 * ROUNDS + round;
            last = [put_both(&w, me, value)?, value];
        }
        team.barrier()?;
        let lasts = team.gather(Rank(0), &last)?;
        if let Some(lasts) = lasts {
            for rank in 0..4 {
                assert_eq!(w.load(rank)?, rank as u64 * ROUNDS + ROUNDS - 1);
            }
            let last_locker = lasts.chunks_exact(2).max_by_key(|pair| pair[0]).expect("four ranks");
            assert_eq!(last_locker[0], 4 * ROUNDS - 1);
            assert_eq!(w.load(COMMON)?, last_locker[1]);
        }
        team.barrier()?;
    }
    Ok(())
}

// Examples 1.7 and 1.9: Jacobi with fences, and with post, start, complete, wait.

/// The edges of the block go into the neighbours' halos, among neighbours only.
#[rma_epoch(exchange(u, targets = block.neighbours(), origins = block.neighbours(), info = weak))]
fn exchange_with_neighbours(u: &mut Window<f64>, block: &Block) -> rma::Result<()> {
    for (rank, rows) in block.edges() {
        for (halo, edge, len) in rows {
            u.at(rank)[halo..halo + len].copy_from_slice(&u[edge..edge + len]);
        }
    }
    Ok(())
}

fn check(answer: &Answer, updates: usize, last_change: Option<f64>, hash: u64, cell: (usize, u64)) {
    assert_eq!(answer.updates, updates);
    if let Some(last_change) = last_change {
        assert_eq!(answer.last_change, last_change);
    }
    if !answer.cells.is_empty() {
        assert_eq!(answer.cells[cell.0].to_bits(), cell.1);
        assert_eq!(jacobi::hash(&answer.cells), hash);
    }
}

/// The table of the requirements, whose cell numbers begin with 1.
fn jacobi_table(team: &Team) -> rma::Result<()> {
    for exchange in [jacobi::exchange as fn(&mut Window<f64>, &Block) -> _, exchange_with_neighbours] {
        let square = Problem { rows: 32, cols: 32, stop: Stop::Below(1e-4) };
        let at = (15 * 32 + 8, 0x3fc8_0627_1a71_f0f1);
        let answer = jacobi::solve(team, square, exchange)?;
        check(&answer, 642, Some(9.991_994_828_301_154e-5), 0xb7ed_f685_b899_f559, at);

        let oblong = Problem { rows: 30, cols: 17, stop: Stop::Below(1e-5) };
        let at = (15 * 17 + 8, 0x3fb3_ad2d_8f53_5f19);
        let answer = jacobi::solve(team, oblong, exchange)?;
        check(&answer, 524, Some(9.984_465_945_286_902e-6), 0x1372_cb6f_b388_6360, at);

        let fifty = Problem { stop: Stop::After(50), ..square };
        let answer = jacobi::solve(team, fifty, exchange)?;
        check(&answer, 50, None, 0x45a8_edcb_347d_3b55, (0, 0.48763670318871877_f64.to_bits()));
    }
    Ok(())
}

// covers: EX-E107-01 -- the macro forms; dsl/tests/run.rs has that of the stencil language
#[rma_test(ranks = 1, transports = [local, shm, tcp])]
fn examples_1_7_and_1_9_on_1_by_1(team: &Team) -> rma::Result<()> {
    jacobi_table(team)
}

#[rma_test(ranks = 2, transports = [local, shm, tcp])]
fn examples_1_7_and_1_9_on_2_by_1(team: &Team) -> rma::Result<()> {
    jacobi_table(team)
}

#[rma_test(ranks = 3, transports = [local, shm, tcp])]
fn examples_1_7_and_1_9_on_1_by_3(team: &Team) -> rma::Result<()> {
    jacobi_table(team)
}

#[rma_test(ranks = 4, transports = [local, shm, tcp])]
fn examples_1_7_and_1_9_on_2_by_2(team: &Team) -> rma::Result<()> {
    jacobi_table(team)
}

#[rma_test(ranks = 6, transports = [local, shm, tcp])]
fn examples_1_7_and_1_9_on_3_by_2(team: &Team) -> rma::Result<()> {
    jacobi_table(team)
}

// The other programs of `runtime/examples`.

#[rma_test(ranks = 4, transports = [local, shm, tcp])]
fn no_increment_is_lost_under_the_ticket_lock(team: &Team) -> rma::Result<()> {
    assert_eq!(ticket_lock::count(team, 200)?, 800);
    assert_eq!(ticket_lock::count_by_hand(team, 200)?, 800);
    Ok(())
}

#[rma_test(ranks = 4, transports = [local, shm, tcp])]
fn the_histogram_is_that_of_one_rank_alone(team: &Team) -> rma::Result<()> {
    let by_macro = histogram::histogram(team, 2000, histogram::count_into)?;
    let by_hand = histogram::histogram(team, 2000, histogram::count_into_by_hand)?;
    assert_eq!(by_macro, by_hand);
    if let Some(bins) = by_macro {
        assert_eq!(bins, histogram::serial(4, 2000));
    }
    Ok(())
}

// Figure 1.1: an owner and two producers.

type Pair = [u64; 2];

#[rma_epoch(exposure(w, origins = [Rank(1), Rank(2)]))]
fn let_producers_in(w: &mut Window<u64>) -> rma::Result<()> {
    Ok(())
}

#[rma_epoch(access(w, targets = [0]))]
fn produce(w: &Window<u64>, at: usize, values: Pair) -> rma::Result<()> {
    w.at(0)[at] = values[0];
    w.at(0)[at + 1] = values[1];
    Ok(())
}

fn let_producers_in_by_hand(w: &mut Window<u64>) -> rma::Result<()> {
    w.post(Origins::Group(&[Rank(1), Rank(2)]))?.wait_all()
}

fn produce_by_hand(w: &Window<u64>, at: usize, values: Pair) -> rma::Result<()> {
    let access = w.start(Rank(0), Info::Strong)?;
    access.put(Rank(0), at, [values[0]])?;
    access.put(Rank(0), at + 1, [values[1]])?;
    access.complete()
}

type LetIn = fn(&mut Window<u64>) -> rma::Result<()>;
type Produce = fn(&Window<u64>, usize, Pair) -> rma::Result<()>;

// covers: EX-F11-01
#[rma_test(ranks = 3, transports = [local, shm, tcp])]
fn figure_1_1(team: &Team) -> rma::Result<()> {
    let forms: [(LetIn, Produce); 2] =
        [(let_producers_in, produce), (let_producers_in_by_hand, produce_by_hand)];
    for (let_in, produce) in forms {
        let mut w = Window::<u64>::allocate(team, 4)?;
        let me = u64::from(team.rank().0);
        for round in 1..=10_000 {
            if me > 0 {
                produce(&w, (me as usize - 1) * 2, [round, me])?;
                continue;
            }
            let before = [w.load(0)?, w.load(2)?];
            assert_eq!(before, [round - 1; 2], "of the previous round");
            let_in(&mut w)?;
            let after = [w.load(0)?, w.load(1)?, w.load(2)?, w.load(3)?];
            assert_eq!(after, [round, 1, round, 2], "of this round");
        }
        team.barrier()?;
    }
    Ok(())
}
