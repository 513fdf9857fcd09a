//! The Jacobi problems on blocks of whole rows, whose halos come by offers. Never prints.
//!
//! A neighbour that is through with a step may already issue the events of the next one. An offer that counts events would take
//! them for those of a slower neighbour, so steps alternate between two tags; a neighbour can't be ahead by two steps. Rounds of
//! the collective family need no such care.

use rma::pgo::{self, GETS_OK, PUTS_OK, over};
use rma::{Max, Rank, Team};

/// How halos travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Puts, and an offer that counts them: example 1.9.
    Offer,
    /// Puts of the collective family and its offer in place of two barriers: example 1.7.
    Collective,
    /// Gets from a request, while the rows that need no halo are computed: example 1.10.
    Overlap,
}

impl Exchange {
    pub(crate) const ALL: [Exchange; 3] = [Exchange::Offer, Exchange::Collective, Exchange::Overlap];
}

/// A row of the table in `docs/spec/examples.md`: a problem, and what it comes to.
pub(crate) struct Problem {
    rows: usize,
    cols: usize,
    /// Iterate until the largest change is below this.
    below: f64,
    pub(crate) updates: usize,
    pub(crate) hash: u64,
}

pub(crate) const TABLE: [Problem; 3] = [
    Problem { rows: 32, cols: 32, below: 1e-4, updates: 642, hash: 0xb7ed_f685_b899_f559 },
    Problem { rows: 30, cols: 17, below: 1e-5, updates: 524, hash: 0x1372_cb6f_b388_6360 },
    Problem { rows: 32, cols: 32, below: 0.0, updates: 50, hash: 0x45a8_edcb_347d_3b55 },
];

/// What every rank gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solution {
    pub(crate) updates: usize,
    pub(crate) hash: u64,
}

/// A block of rows, each with a cell of the boundary at both ends, and the rows before and behind it.
struct Block {
    width: usize,
    rows: usize,
    cells: Vec<f64>,
    new: Vec<f64>,
    /// The row north of the block, then the one south of it.
    halo: Vec<f64>,
    north: Option<Rank>,
    south: Option<Rank>,
}

impl Block {
    fn new(team: &Team, problem: &Problem) -> Block {
        let (rank, size) = (team.rank().index(), team.size() as usize);
        let (each, more) = (problem.rows / size, problem.rows % size);
        let rows = each + usize::from(rank < more);
        let width = problem.cols + 2;
        let mut halo = vec![0.0; 2 * width];
        if rank == 0 {
            halo[..width].fill(1.0);
        }
        let neighbour = |exists: bool, other: usize| exists.then_some(Rank(other as u32));
        Block {
            width,
            rows,
            cells: vec![0.0; rows * width],
            new: vec![0.0; rows * width],
            halo,
            north: neighbour(0 < rank, rank.wrapping_sub(1)),
            south: neighbour(rank + 1 < size, rank + 1),
        }
    }

    fn neighbours(&self) -> u64 {
        self.north.iter().chain(&self.south).count() as u64
    }

    /// Updates rows from the old cells and gives the largest change.
    fn update(&mut self, rows: impl Iterator<Item = usize>) -> f64 {
        let Block { width, rows: all, cells, new, halo, .. } = self;
        let (width, all) = (*width, *all);
        let mut change = 0.0_f64;
        for row in rows {
            let line = |row: usize| &cells[row * width..][..width];
            let north = if row == 0 { &halo[..width] } else { line(row - 1) };
            let south = if row + 1 == all { &halo[width..] } else { line(row + 1) };
            let here = line(row);
            let out = &mut new[row * width..][..width];
            for col in 1..width - 1 {
                let value = ((north[col] + south[col]) + (here[col - 1] + here[col + 1])) * 0.25;
                change = change.max((value - here[col]).abs());
                out[col] = value;
            }
        }
        std::hint::black_box(change)
    }

    /// Brings the halo of the next step, and updates.
    fn step(&mut self, team: &Team, tag: u64, exchange: Exchange) -> rma::Result<f64> {
        let (width, count) = (self.width, self.neighbours());
        let last = (self.rows - 1) * width;
        match exchange {
            Exchange::Offer | Exchange::Collective => {
                let (first_row, last_row) = (&self.cells[..width], &self.cells[last..]);
                let (north, south, halo) = (self.north, self.south, &mut self.halo);
                pgo::scope(team, tag, |scope| {
                    let offered = over(halo.as_mut_slice(), PUTS_OK);
                    match exchange {
                        Exchange::Collective => {
                            north.map(|rank| scope.putc(first_row, rank, width)).transpose()?;
                            south.map(|rank| scope.putc(last_row, rank, 0)).transpose()?;
                            scope.offerc(offered)
                        }
                        _ => {
                            north.map(|rank| scope.put(first_row, rank, width)).transpose()?;
                            south.map(|rank| scope.put(last_row, rank, 0)).transpose()?;
                            scope.offer(offered, count)
                        }
                    }
                })?;
                Ok(self.update(0..self.rows))
            }
            Exchange::Overlap => {
                let rim = [&self.cells[..width], &self.cells[last..]].concat();
                let mut request = pgo::ioffer(team, tag, over(rim, GETS_OK), count)?;
                let mut halo = std::mem::take(&mut self.halo);
                let (north_row, south_row) = halo.split_at_mut(width);
                let (north, south) = (self.north, self.south);
                let core = pgo::scope(team, tag, |scope| {
                    north.map(|rank| scope.get(north_row, rank, width)).transpose()?;
                    south.map(|rank| scope.get(south_row, rank, 0)).transpose()?;
                    let core = self.update(1..self.rows.saturating_sub(1));
                    scope.wait(&mut request)?;
                    Ok::<f64, rma::Error>(core)
                })?;
                self.halo = halo;
                let rim = match self.rows {
                    1 => self.update(0..1),
                    rows => self.update([0, rows - 1].into_iter()),
                };
                Ok(core.max(rim))
            }
        }
    }
}

/// Solves a problem, all ranks of the team together.
pub(crate) fn solve(team: &Team, problem: &Problem, exchange: Exchange) -> rma::Result<Solution> {
    let mut block = Block::new(team, problem);
    let mut updates = 0;
    loop {
        let mut change = [block.step(team, updates as u64 % 2, exchange)?];
        std::mem::swap(&mut block.cells, &mut block.new);
        team.allreduce(&mut change, Max)?;
        updates += 1;
        if change[0] < problem.below || (problem.below == 0.0 && updates == problem.updates) {
            break;
        }
    }
    let interior: Vec<f64> =
        block.cells.chunks(block.width).flat_map(|row| row[1..row.len() - 1].to_vec()).collect();
    let mut hash = [0];
    if let Some(all) = team.gather(Rank(0), &interior)? {
        hash[0] = fnv1a(&all);
    }
    team.broadcast(Rank(0), &mut hash)?;
    Ok(Solution { updates, hash: hash[0] })
}

/// 64-bit FNV-1a over the values as little-endian bytes.
fn fnv1a(values: &[f64]) -> u64 {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
