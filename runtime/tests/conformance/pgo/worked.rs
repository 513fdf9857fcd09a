//! The examples of the main proposal in the form of Put/Get/Offer: 1.7, 1.9, 1.10 and figure 1.3. Never uses a window.
//!
//! A block of the grid has its halo in a buffer of its own, which is what it offers: the strips north, south, west and east of
//! it, one after the other. So the block may be the origin of puts while its halo is their target.

use rma::pgo::{self, GETS_OK, PUTS_OK, over};
use rma::{Max, Rank, Strided, Team, strided};

use crate::jacobi::solver::{Grid, Problem, Solution, TABLE, Until, assemble, fnv1a, matches_table, part};
use crate::{Case, Outcome, case};

pub(crate) const CASES: &[Case] = &[
    case!(examples_give_the_tables_bits, [1, 2, 3, 4, 6]).one_copy().under(&[""]),
    case!(two_ranks_put_to_each_other, [2]).one_copy().under(&[""]),
    case!(everybody_puts_to_everybody, [3, 6]).one_copy().under(&[""]),
];

/// How halos travel.
#[derive(Clone, Copy, Debug)]
enum Exchange {
    /// Example 1.7: a put of the collective family to each neighbour, and its offer in place of the barriers.
    Collective,
    /// Example 1.9: puts, and an offer that counts the neighbours.
    Counted,
    /// Example 1.10: gets from the rim of each neighbour while the core is computed.
    Overlapped,
}

const EXCHANGES: [Exchange; 3] = [Exchange::Collective, Exchange::Counted, Exchange::Overlapped];

struct Block {
    rows: usize,
    cols: usize,
    cells: Vec<f64>,
    new: Vec<f64>,
    halo: Vec<f64>,
    /// North, south, west and east: a rank, and the width of its block.
    around: [Option<(Rank, usize)>; 4],
}

impl Block {
    fn new(team: &Team, problem: Problem, grid: Grid) -> Block {
        let (row, col) = (team.rank().index() / grid.cols, team.rank().index() % grid.cols);
        let (_, rows) = part(problem.rows, grid.rows, row);
        let (_, cols) = part(problem.cols, grid.cols, col);
        let mut halo = vec![0.0; 2 * (rows + cols)];
        if row == 0 {
            halo[..cols].fill(1.0);
        }
        let beside = |exists: bool, row: usize, col: usize| {
            exists.then(|| (Rank((row * grid.cols + col) as u32), part(problem.cols, grid.cols, col).1))
        };
        let around = [
            beside(0 < row, row.wrapping_sub(1), col),
            beside(row + 1 < grid.rows, row + 1, col),
            beside(0 < col, row, col.wrapping_sub(1)),
            beside(col + 1 < grid.cols, row, col + 1),
        ];
        let cells = vec![0.0; rows * cols];
        Block { rows, cols, new: cells.clone(), cells, halo, around }
    }

    /// Where the four strips of a block begin in its halo, and in its packed rim.
    fn starts(rows: usize, cols: usize) -> [usize; 4] {
        [0, cols, 2 * cols, 2 * cols + rows]
    }

    /// The cells along the four sides of the block.
    fn sides(&self) -> [Strided; 4] {
        let (rows, cols) = (self.rows, self.cols);
        let row = |row: usize| Strided { start: row * cols, count: 1, block: cols, stride: cols };
        let col = |col: usize| Strided { start: col, count: rows, block: 1, stride: cols };
        [row(0), row(rows - 1), col(0), col(cols - 1)]
    }

    /// The strips of the exchange: the side of this block, the rank there, and where the strip of the opposite side begins there.
    fn strips(&self) -> impl Iterator<Item = (usize, Rank, usize)> {
        const OPPOSITE: [usize; 4] = [1, 0, 3, 2];
        let rows = self.rows;
        let around = self.around.into_iter().zip(0..);
        // Beside each other, blocks have as many rows; above each other, as many columns.
        around.filter_map(move |(beside, side)| {
            beside.map(|(rank, cols)| (side, rank, Block::starts(rows, cols)[OPPOSITE[side]]))
        })
    }

    /// Updates some cells from the old ones, and gives the largest change.
    fn update(&mut self, is_wanted: impl Fn(usize, usize) -> bool) -> f64 {
        let (rows, cols, cells, halo) = (self.rows, self.cols, &self.cells, &self.halo);
        let [north, south, west, east] = Block::starts(rows, cols);
        let mut change = 0.0_f64;
        for row in 0..rows {
            for col in (0..cols).filter(|&col| is_wanted(row, col)) {
                let at = row * cols + col;
                let north = if row == 0 { halo[north + col] } else { cells[at - cols] };
                let south = if row + 1 == rows { halo[south + col] } else { cells[at + cols] };
                let west = if col == 0 { halo[west + row] } else { cells[at - 1] };
                let east = if col + 1 == cols { halo[east + row] } else { cells[at + 1] };
                let value = ((north + south) + (west + east)) * 0.25;
                change = change.max((value - cells[at]).abs());
                self.new[at] = value;
            }
        }
        change
    }

    fn step(&mut self, team: &Team, tag: u64, exchange: Exchange) -> rma::Result<f64> {
        let strips: Vec<_> = self.strips().collect();
        let (count, sides) = (strips.len() as u64, self.sides());
        match exchange {
            Exchange::Collective | Exchange::Counted => {
                let (cells, halo) = (&self.cells, &mut self.halo);
                pgo::scope(team, tag, |scope| {
                    for &(side, rank, at) in &strips {
                        let origin = strided(cells, sides[side]);
                        match exchange {
                            Exchange::Collective => scope.putc(origin, rank, at)?,
                            _ => scope.put(origin, rank, at)?,
                        }
                    }
                    match exchange {
                        Exchange::Collective => scope.offerc(over(halo.as_mut_slice(), PUTS_OK)),
                        _ => scope.offer(over(halo.as_mut_slice(), PUTS_OK), count),
                    }
                })?;
                Ok(self.update(|_, _| true))
            }
            Exchange::Overlapped => {
                let cells_of = |side: Strided| {
                    (0..side.count).flat_map(move |block| {
                        (0..side.block).map(move |at| side.start + block * side.stride + at)
                    })
                };
                let rim: Vec<f64> =
                    sides.iter().flat_map(|&side| cells_of(side)).map(|at| self.cells[at]).collect();
                let mut request = pgo::ioffer(team, tag, over(rim, GETS_OK), count)?;
                let (rows, cols) = (self.rows, self.cols);
                let is_core =
                    move |row: usize, col: usize| 0 < row && row + 1 < rows && 0 < col && col + 1 < cols;
                let mut halo = self.halo.clone();
                let (north, rest) = halo.split_at_mut(cols);
                let (south, rest) = rest.split_at_mut(cols);
                let (west, east) = rest.split_at_mut(rows);
                let mut parts = [Some(north), Some(south), Some(west), Some(east)];
                let core = pgo::scope(team, tag, |scope| {
                    for &(side, rank, at) in &strips {
                        scope.get(parts[side].take().expect("one strip a side"), rank, at)?;
                    }
                    let core = self.update(is_core);
                    scope.wait(&mut request)?;
                    Ok::<f64, rma::Error>(core)
                })?;
                self.halo = halo;
                Ok(core.max(self.update(|row, col| !is_core(row, col))))
            }
        }
    }
}

fn solve(team: &Team, problem: Problem, grid: Grid, exchange: Exchange) -> rma::Result<Solution> {
    let mut block = Block::new(team, problem, grid);
    let mut updates = 0;
    let change = loop {
        // A neighbour may be ahead by a step, and its events are not to be counted for this one: two tags by turns.
        let mut change = [block.step(team, updates as u64 % 2, exchange)?];
        std::mem::swap(&mut block.cells, &mut block.new);
        team.allreduce(&mut change, Max)?;
        updates += 1;
        let done = match problem.until {
            Until::Below(tol) => change[0] < tol,
            Until::Updates(all) => updates == all,
        };
        if done {
            break change[0];
        }
    };
    let mut hash = [0];
    if let Some(all) = team.gather(Rank(0), &block.cells)? {
        hash[0] = fnv1a(&assemble(problem, grid, &all));
    }
    team.broadcast(Rank(0), &mut hash)?;
    Ok(Solution { updates, change, hash: hash[0] })
}

// covers: PGO-EXT-05 -- with the list in `chain` and figure 1.3 below
// covers: PGO-COLL-14
fn examples_give_the_tables_bits(team: &Team) -> Outcome {
    let ranks = team.size() as usize;
    let grids = (1..=ranks).filter(|rows| ranks.is_multiple_of(*rows));
    for grid in grids.map(|rows| Grid { rows, cols: ranks / rows }) {
        for (problem, ..) in TABLE {
            // The long problems on some grids, unless the whole matrix is asked for.
            let is_chosen = match problem.until {
                Until::Updates(_) => true,
                Until::Below(_) if problem.rows == 32 => ranks <= 2 && grid.cols == 1,
                Until::Below(_) => ranks == 1 || (ranks == 3 && grid.cols == 3),
            };
            if !is_chosen && !crate::is_full() {
                continue;
            }
            for exchange in EXCHANGES {
                let solution = solve(team, problem, grid, exchange)?;
                assert_eq!(
                    matches_table(problem, solution),
                    Some(true),
                    "{problem:?} {grid:?} {exchange:?}: {solution:?}"
                );
            }
        }
    }
    Ok(())
}

/// How a rank of figure 1.3 takes what the others put.
#[derive(Clone, Copy, Debug)]
enum Take {
    Offer,
    Request,
    #[cfg(feature = "progressive")]
    Progressive,
    Round,
}

const TAKES: &[Take] = &[
    Take::Offer,
    Take::Request,
    #[cfg(feature = "progressive")]
    Take::Progressive,
    Take::Round,
];

impl Take {
    /// Puts to all others, each into the part of this rank, and takes what they put.
    fn exchange(self, team: &Team, tag: u64, mine: &[u64]) -> rma::Result<Vec<u64>> {
        let (len, count) = (mine.len(), u64::from(team.size()) - 1);
        let at = team.rank().index() * len;
        let mut buffer = vec![0_u64; len * team.size() as usize];
        let others = team.ranks().filter(|&rank| rank != team.rank());
        pgo::scope(team, tag, |scope| {
            for rank in others {
                match self {
                    Take::Offer | Take::Request => scope.put(mine, rank, at)?,
                    #[cfg(feature = "progressive")]
                    Take::Progressive => scope.putp(mine, rank, at)?,
                    Take::Round => scope.putc(mine, rank, at)?,
                }
            }
            match self {
                Take::Offer => scope.offer(over(&mut buffer, PUTS_OK), count),
                Take::Request => {
                    let mut request = scope.ioffer(over(std::mem::take(&mut buffer), PUTS_OK), count)?;
                    let status = scope.wait(&mut request)?;
                    buffer = request.into_inner();
                    Ok(status)
                }
                #[cfg(feature = "progressive")]
                Take::Progressive => scope.offerp(over(&mut buffer, PUTS_OK), count),
                Take::Round => scope.offerc(over(&mut buffer, PUTS_OK)),
            }
        })?;
        Ok(buffer)
    }
}

/// Exchanges between all ranks, and compares every word with what its owner has put.
fn exchange_all(team: &Team, len: usize, rounds: u64) -> rma::Result<()> {
    let value = |rank: usize, round: u64, at: usize| (rank as u64) << 48 | round << 32 | at as u64;
    for round in 0..rounds {
        for (&take, number) in TAKES.iter().zip(0..) {
            let me = team.rank().index();
            let mine: Vec<u64> = (0..len).map(|at| value(me, round, at)).collect();
            // Who is through may put for the next exchange while others are in this one: two tags by turns.
            let found = take.exchange(team, (round * TAKES.len() as u64 + number) % 2, &mine)?;
            for (rank, part) in found.chunks(len).enumerate().filter(|&(rank, _)| rank != me) {
                let is_right = part.iter().zip(0..).all(|(&word, at)| word == value(rank, round, at));
                assert!(is_right, "{take:?}, round {round}: what rank {rank} has put");
            }
        }
    }
    Ok(())
}

// covers: PGO-EXT-05 -- figure 1.3
fn two_ranks_put_to_each_other(team: &Team) -> Outcome {
    exchange_all(team, 1, 50)?;
    exchange_all(team, (1 << 20) / 8, 3)?;
    if crate::is_full() {
        exchange_all(team, (512 << 20) / 8, 1)?;
    }
    Ok(())
}

fn everybody_puts_to_everybody(team: &Team) -> Outcome {
    exchange_all(team, (1 << 20) / 8, if crate::is_full() { 100 } else { 2 })?;
    Ok(())
}
