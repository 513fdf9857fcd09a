//! Laplace's equation on a rectangle, by `#[rma_epoch]`: update the own block, put its edges into the neighbours'
//! halos, until nothing changes any more. `cargo run --example jacobi_macro -- 4` runs it on four ranks as threads.

use std::cmp::Ordering;

use rma::{Max, Rank, Team, Window, rma_epoch};

/// The rectangle without its boundary, and when to stop.
#[derive(Clone, Copy)]
pub(crate) struct Problem {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stop: Stop,
}

/// When to stop.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    /// As soon as an update changes no cell by this much.
    Below(f64),
    /// After this many updates.
    #[allow(dead_code)] // For tests.
    After(usize),
}

/// What the ranks have found together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) updates: usize,
    pub(crate) last_change: f64,
    /// The interior, row by row; empty on every rank but the first.
    pub(crate) cells: Vec<f64>,
}

/// One rank's part of the rectangle. The window holds it with one ring of halo cells around.
pub(crate) struct Block {
    problem: Problem,
    grid: (usize, usize),
    row: usize,
    col: usize,
}

impl Block {
    pub(crate) fn new(problem: Problem, team: &Team) -> Block {
        let grid = match team.size() {
            1 => (1, 1),
            2 => (2, 1),
            3 => (1, 3),
            4 => (2, 2),
            6 => (3, 2),
            n => (n as usize, 1),
        };
        let me = team.rank().0 as usize;
        Block { problem, grid, row: me / grid.1, col: me % grid.1 }
    }

    fn at(&self, row: usize, col: usize) -> Block {
        Block { problem: self.problem, grid: self.grid, row, col }
    }

    fn height(&self) -> usize {
        part(self.problem.rows, self.grid.0, self.row).len()
    }

    fn width(&self) -> usize {
        part(self.problem.cols, self.grid.1, self.col).len()
    }

    /// The place of a cell of this block in its rank's window; row and column 0 are halo.
    fn cell(&self, row: usize, col: usize) -> usize {
        row * (self.width() + 2) + col
    }

    pub(crate) fn len(&self) -> usize {
        self.cell(self.height() + 2, 0)
    }

    fn rank(&self) -> Rank {
        Rank((self.row * self.grid.1 + self.col) as u32)
    }

    /// The blocks on the four sides.
    fn sides(&self) -> impl Iterator<Item = Block> {
        let (rows, cols) = self.grid;
        let north = (self.row > 0).then(|| self.at(self.row - 1, self.col));
        let south = (self.row + 1 < rows).then(|| self.at(self.row + 1, self.col));
        let west = (self.col > 0).then(|| self.at(self.row, self.col - 1));
        let east = (self.col + 1 < cols).then(|| self.at(self.row, self.col + 1));
        [north, south, west, east].into_iter().flatten()
    }

    /// The ranks on the four sides.
    #[allow(dead_code)] // For those that synchronize with neighbours only.
    pub(crate) fn neighbours(&self) -> Vec<Rank> {
        self.sides().map(|side| side.rank()).collect()
    }

    /// What this block owes its neighbours: for each the pieces of contiguous cells, as place in the neighbour's
    /// window, place in this one, and length.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (Rank, Vec<(usize, usize, usize)>)> {
        let (height, width) = (self.height(), self.width());
        self.sides().map(move |side| {
            let pieces = match (side.row.cmp(&self.row), side.col.cmp(&self.col)) {
                (Ordering::Less, _) => vec![(side.cell(side.height() + 1, 1), self.cell(1, 1), width)],
                (Ordering::Greater, _) => vec![(side.cell(0, 1), self.cell(height, 1), width)],
                (_, Ordering::Less) => {
                    (1..=height).map(|row| (side.cell(row, side.width() + 1), self.cell(row, 1), 1)).collect()
                }
                _ => (1..=height).map(|row| (side.cell(row, 0), self.cell(row, width), 1)).collect(),
            };
            (side.rank(), pieces)
        })
    }
}

/// The indices of one of `parts` parts of `0..n`, as even as possible.
fn part(n: usize, parts: usize, index: usize) -> std::ops::Range<usize> {
    n * index / parts..n * (index + 1) / parts
}

/// The upper boundary is 1, everything else 0.
#[rma_epoch(local(u))]
pub(crate) fn start(u: &mut Window<f64>, block: &Block) -> rma::Result<()> {
    u.fill(0.0);
    if block.row == 0 {
        u[..block.cell(1, 0)].fill(1.0);
    }
    Ok(())
}

/// One update of every cell of the block from the old values; the largest change.
#[rma_epoch(local(u))]
pub(crate) fn update(u: &mut Window<f64>, old: &mut Vec<f64>, block: &Block) -> rma::Result<f64> {
    let stride = block.width() + 2;
    let mut change: f64 = 0.0;
    old.clear();
    old.extend_from_slice(u);
    for row in 1..=block.height() {
        let first = block.cell(row, 1);
        for at in first..first + block.width() {
            let new = ((old[at - stride] + old[at + stride]) + (old[at - 1] + old[at + 1])) * 0.25;
            change = change.max((new - old[at]).abs());
            u[at] = new;
        }
    }
    Ok(change)
}

/// The edges of the block go into the neighbours' halos, in an epoch of everybody.
#[rma_epoch(fence(u))]
pub(crate) fn exchange(u: &mut Window<f64>, block: &Block) -> rma::Result<()> {
    for (rank, pieces) in block.edges() {
        for (halo, edge, len) in pieces {
            u.at(rank)[halo..halo + len].copy_from_slice(&u[edge..edge + len]);
        }
    }
    Ok(())
}

/// The block without its halo.
#[rma_epoch(local(u, read))]
pub(crate) fn interior(u: &Window<f64>, block: &Block) -> rma::Result<Vec<f64>> {
    let row = |row| &u[block.cell(row, 1)..block.cell(row, 1) + block.width()];
    Ok((1..=block.height()).flat_map(row).copied().collect())
}

/// Runs the problem to its end, with `exchange` or another epoch of the same effect.
pub(crate) fn solve(
    team: &Team,
    problem: Problem,
    exchange: fn(&mut Window<f64>, &Block) -> rma::Result<()>,
) -> rma::Result<Answer> {
    let block = Block::new(problem, team);
    let mut u = Window::<f64>::allocate(team, block.len())?;
    start(&mut u, &block)?;
    let mut old = Vec::new();
    let mut updates = 0;
    let last_change = loop {
        let mut change = [update(&mut u, &mut old, &block)?];
        exchange(&mut u, &block)?;
        updates += 1;
        team.allreduce(&mut change, Max)?;
        match problem.stop {
            Stop::Below(limit) if change[0] < limit => break change[0],
            Stop::After(count) if updates == count => break change[0],
            _ => {}
        }
    };
    let mine = interior(&u, &block)?;
    let cells = team.gather(Rank(0), &mine)?.map(|parts| assemble(&block, &parts)).unwrap_or_default();
    u.free()?;
    Ok(Answer { updates, last_change, cells })
}

fn assemble(first: &Block, mut parts: &[f64]) -> Vec<f64> {
    let Problem { rows, cols, .. } = first.problem;
    let mut cells = vec![0.0; rows * cols];
    for (row, col) in (0..first.grid.0).flat_map(|row| (0..first.grid.1).map(move |col| (row, col))) {
        let block = first.at(row, col);
        let (values, rest) = parts.split_at(block.height() * block.width());
        parts = rest;
        let (down, across) = (part(rows, first.grid.0, block.row), part(cols, first.grid.1, block.col));
        for (row, values) in down.zip(values.chunks_exact(across.len())) {
            cells[row * cols..][across.clone()].copy_from_slice(values);
        }
    }
    cells
}

/// 64-bit FNV-1a over the values as little-endian bytes.
pub(crate) fn hash(cells: &[f64]) -> u64 {
    let bytes = cells.iter().flat_map(|value| value.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[allow(dead_code)] // Tests include this file for what stands above.
fn main() -> std::process::ExitCode {
    let program = |team: &Team| -> rma::Result<()> {
        let answer = solve(team, Problem { rows: 32, cols: 32, stop: Stop::Below(1e-4) }, exchange)?;
        if team.rank() == Rank(0) {
            let hash = hash(&answer.cells);
            println!("{} updates, last change {:e}, hash {hash:016x}", answer.updates, answer.last_change);
            assert_eq!((answer.updates, hash), (642, 0xb7ed_f685_b899_f559), "the serial reference differs");
            println!("ok");
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
