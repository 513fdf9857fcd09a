//! The Jacobi problems by other schedules than `jacobi` tries: with gets, in split loops, by groups, and with the transfer beside
//! the update of the core (examples 1.7 to 1.10 of the requirements). Never compares with anything but the table and what a
//! serial program gives.
//!
//! Two readings of the listings. The core update of example 1.8 names the communicator as its argument, where it can only
//! mean the array. The wait of examples 1.9 and 1.10 lacks the argument that says what is waited for: it is the window of the loop.

use std::time::Duration;

use rma::{Info, Max, Origins, Rank, Strided, Team, Window, own};

use crate::jacobi::grids;
use crate::jacobi::solver::{
    Block, Grid, Problem, Solution, Strip, TABLE, finish, matches_table, solve_by, strips,
};
use crate::{Case, Outcome, case, is_full};

pub(crate) const CASES: &[Case] = &[
    case!(gets_bring_the_same_halos, [1, 2, 3, 4, 6]).many_rounds(),
    case!(loops_may_be_split, [2, 3, 4, 6]).many_rounds(),
    case!(a_fast_neighbour_stands_in_for_nobody, [4]).many_rounds(),
    case!(to_and_from_neighbours_may_differ, [1, 2, 4, 6]),
    case!(gets_run_beside_the_core, [1, 2, 3, 4, 6]).many_rounds(),
    case!(puts_run_beside_a_core_that_is_not_exposed, [1, 2, 3, 4, 6]).many_rounds(),
];

/// The table's problems on the grid of so many ranks that stands beside it; in full runs on every grid.
fn each_problem(
    team: &Team,
    mut solve: impl FnMut(Problem, Grid) -> rma::Result<Solution>,
) -> rma::Result<()> {
    let named = |grid: &Grid| matches!((grid.rows, grid.cols), (1, 1) | (2, 1) | (1, 3) | (2, 2) | (3, 2));
    for (problem, ..) in TABLE {
        for grid in grids(team).into_iter().filter(|grid| named(grid) || is_full()) {
            let solution = solve(problem, grid)?;
            assert_eq!(matches_table(problem, solution), Some(true), "{problem:?} {grid:?}: {solution:?}");
        }
    }
    Ok(())
}

/// A neighbour, and which cells belong together.
struct Neighbour {
    rank: Rank,
    /// Own cells that it needs.
    rim: Strided,
    /// Its cells that this rank needs, and where this rank keeps them.
    their_rim: Strided,
    halo: Strided,
}

fn neighbours(team: &Team, problem: Problem, grid: Grid) -> Vec<Neighbour> {
    let pair = |Strip { target, from, .. }| {
        let theirs =
            strips(problem, grid, target.index()).into_iter().find(|back| back.target == team.rank());
        let back = theirs.expect("who is a neighbour has one");
        Neighbour { rank: target, rim: from, their_rim: back.from, halo: back.to }
    };
    strips(problem, grid, team.rank().index()).into_iter().map(pair).collect()
}

// covers: EX-E107-02
fn gets_bring_the_same_halos(team: &Team) -> Outcome {
    each_problem(team, |problem, grid| {
        let neighbours = neighbours(team, problem, grid);
        let gets = |window: &mut Window<f64>, _: &[Strip]| {
            window.fence(|epoch| {
                for neighbour in &neighbours {
                    epoch.get(neighbour.rank, neighbour.their_rim, own(neighbour.halo))?;
                }
                Ok(())
            })
        };
        solve_by(team, problem, grid, gets, |_| {})
    })?;
    Ok(())
}

// covers: RMA-SYNC-26, EX-E109-02
fn loops_may_be_split(team: &Team) -> Outcome {
    type Exchange = fn(&mut Window<f64>, &[Strip]) -> rma::Result<()>;
    let one: Exchange = |window, strips| {
        let exposure = window.post(Origins::Any)?;
        for strip in strips {
            let access = exposure.start(strip.target, Info::Weak)?;
            access.put(strip.target, strip.to, own(strip.from))?;
            access.complete()?;
        }
        exposure.wait(strips.len())
    };
    let two: Exchange = |window, strips| {
        let exposure = window.post(Origins::Any)?;
        let mut accesses = Vec::new();
        for strip in strips {
            let access = exposure.start(strip.target, Info::Weak)?;
            access.put(strip.target, strip.to, own(strip.from))?;
            accesses.push(access);
        }
        accesses.into_iter().try_for_each(|access| access.complete())?;
        exposure.wait(strips.len())
    };
    let three: Exchange = |window, strips| {
        let exposure = window.post(Origins::Any)?;
        let started = strips.iter().map(|strip| exposure.start(strip.target, Info::Weak));
        let accesses: Vec<_> = started.collect::<rma::Result<_>>()?;
        for (strip, access) in strips.iter().zip(&accesses) {
            access.put(strip.target, strip.to, own(strip.from))?;
        }
        accesses.into_iter().try_for_each(|access| access.complete())?;
        exposure.wait(strips.len())
    };
    // Not a split of the loop, but the calls for all neighbours at once.
    let groups: Exchange = |window, strips| {
        let ranks: Vec<Rank> = strips.iter().map(|strip| strip.target).collect();
        let exposure = window.post(Origins::Group(&ranks))?;
        let access = exposure.start_group(&ranks, Info::Weak)?;
        for strip in strips {
            access.put(strip.target, strip.to, own(strip.from))?;
        }
        access.complete()?;
        exposure.wait_all()
    };
    for exchange in [one, two, three, groups] {
        each_problem(team, |problem, grid| solve_by(team, problem, grid, exchange, |_| {}))?;
    }
    Ok(())
}

// covers: EX-E109-05
fn a_fast_neighbour_stands_in_for_nobody(team: &Team) -> Outcome {
    let (problem, ..) = TABLE[0];
    let (seeds, longest) = if is_full() { (20, 5000) } else { (2, 500) };
    for seed in 0..seeds {
        let late = Rank(seed % team.size());
        let mut state = u64::from(seed) + 1;
        let exchange = |window: &mut Window<f64>, strips: &[Strip]| {
            if team.rank() == late {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                std::thread::sleep(Duration::from_micros((state >> 33) % longest));
            }
            let exposure = window.post(Origins::Any)?;
            for strip in strips {
                let access = exposure.start(strip.target, Info::Weak)?;
                access.put(strip.target, strip.to, own(strip.from))?;
                access.complete()?;
            }
            exposure.wait(strips.len())
        };
        let solution = solve_by(team, problem, Grid { rows: 2, cols: 2 }, exchange, |_| {})?;
        assert_eq!(matches_table(problem, solution), Some(true), "seed {seed}: {solution:?}");
    }
    Ok(())
}

/// An upwind scheme: each cell becomes the mean of itself and its western and northern neighbours, so each rank puts to the east and
/// to the south only, and waits for as many as lie to its west and north.
// covers: EX-E109-03
fn to_and_from_neighbours_may_differ(team: &Team) -> Outcome {
    const STEPS: usize = 60;
    let problem = Problem { rows: 13, cols: 11, ..TABLE[2].0 };
    let first = |row: usize, col: usize| (7 * row + 5 * col) as f64 / 3.0;
    let value = |here: f64, west: f64, north: f64| (here + (west + north)) * 0.25;
    // Serial: the cells west and north of the grid are 1.
    let (width, rows) = (problem.cols + 1, problem.rows + 1);
    let mut serial = vec![1.0; width * rows];
    for row in 1..rows {
        for col in 1..width {
            serial[row * width + col] = first(row - 1, col - 1);
        }
    }
    for _ in 0..STEPS {
        let old = serial.clone();
        for at in (width..old.len()).filter(|at| at % width != 0) {
            serial[at] = value(old[at], old[at - 1], old[at - width]);
        }
    }
    for grid in grids(team) {
        let rank = team.rank().index();
        let block = Block::of(problem, grid, rank);
        let (row, col) = (rank / grid.cols, rank % grid.cols);
        let lies_east_or_south = |strip: &Strip| {
            let target = strip.target.index();
            target == rank + grid.cols || (target == rank + 1 && col + 1 < grid.cols)
        };
        let targets: Vec<Strip> =
            strips(problem, grid, rank).into_iter().filter(lies_east_or_south).collect();
        let sources = usize::from(0 < row) + usize::from(0 < col);
        let mut window = Window::<f64>::allocate(team, block.len())?;
        {
            let mut cells = window.local_mut()?;
            cells.fill(1.0);
            for r in 0..block.rows {
                for c in 0..block.cols {
                    cells[(r + 1) * block.width() + c + 1] = first(block.row + r, block.col + c);
                }
            }
        }
        for _ in 0..STEPS {
            // The halos first, as what was there at the start has to come too.
            let exposure = window.post(Origins::Any)?;
            for strip in &targets {
                let access = exposure.start(strip.target, Info::Weak)?;
                access.put(strip.target, strip.to, own(strip.from))?;
                access.complete()?;
            }
            exposure.wait(sources)?;
            let mut cells = window.local_mut()?;
            let old = cells.to_vec();
            for r in 1..=block.rows {
                for at in (r * block.width() + 1..).take(block.cols) {
                    cells[at] = value(old[at], old[at - 1], old[at - block.width()]);
                }
            }
        }
        let cells = window.local()?;
        for r in 0..block.rows {
            for c in 0..block.cols {
                let expected = serial[(block.row + r + 1) * width + block.col + c + 1];
                let found = cells[(r + 1) * block.width() + c + 1];
                assert_eq!(found.to_bits(), expected.to_bits(), "{grid:?}, rank {rank}, cell ({r}, {c})");
            }
        }
    }
    Ok(())
}

/// One update from the old array, cell by cell; the new one may be the window, of which the rim goes first.
struct Update<'a> {
    block: Block,
    old: &'a [f64],
    change: f64,
}

impl Update<'_> {
    /// The new value of a cell, counted with the halo.
    fn cell(&mut self, row: usize, col: usize) -> f64 {
        let (width, old) = (self.block.width(), self.old);
        let at = row * width + col;
        let value = ((old[at - width] + old[at + width]) + (old[at - 1] + old[at + 1])) * 0.25;
        self.change = self.change.max((value - old[at]).abs());
        value
    }

    /// The cells that a neighbour or the edge of the problem is beside.
    fn rim(&mut self, new: &mut [f64]) {
        let Block { rows, cols, .. } = self.block;
        for row in 1..=rows {
            for col in 1..=cols {
                if row == 1 || row == rows || col == 1 || col == cols {
                    new[row * self.block.width() + col] = self.cell(row, col);
                }
            }
        }
    }

    /// All others, row by row: where a row begins, and its values.
    fn core(&mut self, mut put: impl FnMut(usize, &[f64]) -> rma::Result<()>) -> rma::Result<()> {
        let Block { rows, cols, .. } = self.block;
        for row in 2..rows {
            let values: Vec<f64> = (2..cols).map(|col| self.cell(row, col)).collect();
            if !values.is_empty() {
                put(row * self.block.width() + 2, &values)?;
            }
        }
        Ok(())
    }
}

/// Solves a problem by updates of which the core is done beside the transfer. `update` brings the window, in which the cells lie first,
/// from one array to the next, halos included, and gives the largest change.
fn solve_beside(
    team: &Team,
    (problem, grid): (Problem, Grid),
    window: &mut Window<f64>,
    mut update: impl FnMut(&mut Window<f64>, &mut Vec<f64>) -> rma::Result<f64>,
) -> rma::Result<Solution> {
    let block = Block::of(problem, grid, team.rank().index());
    if block.row == 0 {
        window.local_mut()?[..block.width()].fill(1.0);
    }
    let mut old = Vec::new();
    let mut updates = 0;
    loop {
        old.clear();
        old.extend_from_slice(&window.local()?[..block.len()]);
        let mut change = [update(window, &mut old)?];
        team.allreduce(&mut change, Max)?;
        updates += 1;
        if problem.until.is_reached(updates, change[0]) {
            let cells = window.local()?;
            return finish(team, problem, grid, (updates, change[0]), &cells);
        }
    }
}

// covers: EX-E108-01, EX-E108-05 -- form R
// covers: EX-E110-01, EX-E109-06 -- form R
fn gets_run_beside_the_core(team: &Team) -> Outcome {
    for by_fence in [true, false] {
        each_problem(team, |problem, grid| {
            let block = Block::of(problem, grid, team.rank().index());
            let neighbours = neighbours(team, problem, grid);
            let ranks: Vec<Rank> = neighbours.iter().map(|neighbour| neighbour.rank).collect();
            let mut window = Window::<f64>::allocate(team, block.len())?;
            solve_beside(team, (problem, grid), &mut window, |window, old| {
                let mut update = Update { block, old, change: 0.0 };
                update.rim(&mut window.local_mut()?);
                if by_fence {
                    // Example 1.8.
                    window.fence(|epoch| {
                        for neighbour in &neighbours {
                            epoch.get(neighbour.rank, neighbour.their_rim, own(neighbour.halo))?;
                        }
                        update.core(|start, values| epoch.write(start, values))
                    })?;
                } else {
                    // Example 1.10.
                    let exposure = window.post(Origins::Any)?;
                    exposure.access(&ranks, Info::Weak, |epoch| {
                        for neighbour in &neighbours {
                            epoch.get(neighbour.rank, neighbour.their_rim, own(neighbour.halo))?;
                        }
                        update.core(|start, values| epoch.write(start, values))
                    })?;
                    exposure.wait(neighbours.len())?;
                }
                Ok(update.change)
            })
        })?;
    }
    Ok(())
}

/// Cells of a strip as they follow each other.
fn cells_of(strip: Strided) -> impl Iterator<Item = usize> {
    (0..strip.count)
        .flat_map(move |block| (0..strip.block).map(move |at| strip.start + block * strip.stride + at))
}

/// Where the strip of a neighbour lies in this rank's row of packed strips, and where this rank's strip lies in the neighbour's row.
struct Slot {
    start: usize,
    there: usize,
    /// The lengths of the neighbour's block and row.
    their_lens: (usize, usize),
}

/// The slots of all neighbours, and the length of this rank's row.
fn slots(team: &Team, problem: Problem, grid: Grid) -> (Vec<Slot>, usize) {
    // Strip by strip: with whom, and where it begins.
    let row_of = |rank: usize| {
        let mut end = 0;
        let mut starts = Vec::new();
        for strip in strips(problem, grid, rank) {
            starts.push((strip.target, end));
            end += strip.from.count * strip.from.block;
        }
        (starts, end)
    };
    let (mine, len) = row_of(team.rank().index());
    let slot = |(rank, start): (Rank, usize)| {
        let (theirs, their_len) = row_of(rank.index());
        let back = theirs.into_iter().find(|&(target, _)| target == team.rank());
        let (_, there) = back.expect("who is a neighbour has one");
        Slot { start, there, their_lens: (Block::of(problem, grid, rank.index()).len(), their_len) }
    };
    (mine.into_iter().map(slot).collect(), len)
}

/// Example 1.8 with puts: what is put to lies apart from the core, in a second window or in the exposed part of the only one.
fn puts_run_beside_a_core_that_is_not_exposed(team: &Team) -> Outcome {
    each_problem(team, |problem, grid| {
        let block = Block::of(problem, grid, team.rank().index());
        let neighbours = neighbours(team, problem, grid);
        let (slots, len) = slots(team, problem, grid);
        let mut cells = Window::<f64>::allocate(team, block.len())?;
        let mut halos = Window::<f64>::allocate(team, len)?;
        solve_beside(team, (problem, grid), &mut cells, |cells, old| {
            let mut update = Update { block, old, change: 0.0 };
            update.rim(&mut cells.local_mut()?);
            halos.fence(|epoch| {
                for (neighbour, slot) in neighbours.iter().zip(&slots) {
                    epoch.put(neighbour.rank, slot.there, cells.own(neighbour.rim))?;
                }
                let mut view = cells.local_mut()?;
                update.core(|start, values| {
                    view[start..start + values.len()].copy_from_slice(values);
                    Ok(())
                })
            })?;
            let (arrived, mut view) = (halos.local()?, cells.local_mut()?);
            for (neighbour, slot) in neighbours.iter().zip(&slots) {
                cells_of(neighbour.halo)
                    .zip(&arrived[slot.start..])
                    .for_each(|(at, &value)| view[at] = value);
            }
            Ok(update.change)
        })
    })?;
    each_problem(team, |problem, grid| {
        let block = Block::of(problem, grid, team.rank().index());
        let neighbours = neighbours(team, problem, grid);
        let (slots, len) = slots(team, problem, grid);
        // Behind the cells: the packed rim, then the packed halo.
        let mut window = Window::<f64>::allocate(team, block.len() + 2 * len)?;
        let (rim, halo) = (block.len(), block.len() + len);
        solve_beside(team, (problem, grid), &mut window, |window, old| {
            let mut update = Update { block, old, change: 0.0 };
            {
                let mut view = window.local_mut()?;
                update.rim(&mut view);
                for (neighbour, slot) in neighbours.iter().zip(&slots) {
                    cells_of(neighbour.rim)
                        .zip(rim + slot.start..)
                        .for_each(|(from, to)| view[to] = view[from]);
                }
            }
            window.fence_part(rim..rim + 2 * len, |epoch, rest| {
                for (neighbour, slot) in neighbours.iter().zip(&slots) {
                    let strip = neighbour.rim.count * neighbour.rim.block;
                    let from = rim + slot.start..rim + slot.start + strip;
                    let (their_cells, their_row) = slot.their_lens;
                    epoch.put(neighbour.rank, their_cells + their_row + slot.there, own(from))?;
                }
                update.core(|start, values| {
                    rest.before[start..start + values.len()].copy_from_slice(values);
                    Ok(())
                })
            })?;
            let mut view = window.local_mut()?;
            for (neighbour, slot) in neighbours.iter().zip(&slots) {
                cells_of(neighbour.halo)
                    .zip(halo + slot.start..)
                    .for_each(|(to, from)| view[to] = view[from]);
            }
            Ok(update.change)
        })
    })?;
    Ok(())
}
