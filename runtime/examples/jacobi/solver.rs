//! The Jacobi problems of `docs/spec/examples.md`, section 0, by the hand-written interface. Never prints.
//!
//! Every rank has a window with its block of the grid and one ring of halo around it. An update makes a new block from the
//! old array only; then every rank puts the strips along its rim into the halos of its neighbours. What differs between the
//! styles is the synchronization around these puts.

use rma::{Info, LockKind, Max, Origins, Rank, Strided, Team, Window, own};

/// How the exchange of strips is synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Between two fences (example 1.7).
    Fence,
    /// By post, start, complete and wait (example 1.9).
    Pscw,
    /// Under the exclusive lock of the neighbour, between two plain barriers.
    Lock,
}

/// All styles.
pub(crate) const STYLES: [Style; 3] = [Style::Fence, Style::Pscw, Style::Lock];

/// A problem: `rows` by `cols` interior cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Problem {
    /// Interior rows.
    pub(crate) rows: usize,
    /// Interior columns.
    pub(crate) cols: usize,
    /// When to end.
    pub(crate) until: Until,
}

/// When to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Until {
    /// When the largest change of an update is below this.
    Below(f64),
    /// After this many updates.
    Updates(usize),
}

impl Until {
    /// Whether this is the end.
    pub(crate) fn is_reached(self, updates: usize, change: f64) -> bool {
        match self {
            Until::Below(tol) => change < tol,
            Until::Updates(all) => updates == all,
        }
    }
}

/// What every rank gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solution {
    /// Updates done.
    pub(crate) updates: usize,
    /// The largest change of the last one.
    pub(crate) change: f64,
    /// FNV-1a over the interior.
    pub(crate) hash: u64,
}

/// A grid of ranks: rows of blocks by columns of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Rows of blocks.
    pub(crate) rows: usize,
    /// Columns of blocks.
    pub(crate) cols: usize,
}

impl Grid {
    /// The grid for a number of ranks that is nearest to a square, with no more columns than rows.
    #[allow(dead_code, reason = "the suite tries every grid")]
    pub(crate) fn for_ranks(ranks: usize) -> Grid {
        let cols =
            (1..=ranks).rev().find(|cols| cols * cols <= ranks && ranks.is_multiple_of(*cols)).unwrap_or(1);
        Grid { rows: ranks / cols, cols }
    }

    /// The number of ranks.
    pub(crate) fn ranks(self) -> usize {
        self.rows * self.cols
    }
}

/// Part `index` of `len` cells in `parts` parts, as even as possible: its first cell and its length.
pub(crate) fn part(len: usize, parts: usize, index: usize) -> (usize, usize) {
    let (each, more) = (len / parts, len % parts);
    (index * each + index.min(more), each + usize::from(index < more))
}

/// The block of one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The first row of the block in the interior.
    pub(crate) row: usize,
    /// The first column.
    pub(crate) col: usize,
    /// Rows of the block.
    pub(crate) rows: usize,
    /// Columns of the block.
    pub(crate) cols: usize,
}

impl Block {
    /// The block of a rank.
    pub(crate) fn of(problem: Problem, grid: Grid, rank: usize) -> Block {
        let (row, rows) = part(problem.rows, grid.rows, rank / grid.cols);
        let (col, cols) = part(problem.cols, grid.cols, rank % grid.cols);
        Block { row, col, rows, cols }
    }

    /// The length of a row of the block with its halo.
    pub(crate) fn width(&self) -> usize {
        self.cols + 2
    }

    /// The cells of the block with its halo.
    pub(crate) fn len(&self) -> usize {
        (self.rows + 2) * self.width()
    }

    /// The cells of one row of the block, without the halo at its ends.
    fn row(&self, row: usize) -> Strided {
        Strided { start: row * self.width() + 1, count: 1, block: self.cols, stride: self.cols }
    }

    /// The cells of one column of the block, without the halo at its ends.
    fn col(&self, col: usize) -> Strided {
        Strided { start: self.width() + col, count: self.rows, block: 1, stride: self.width() }
    }
}

/// A strip that a rank puts: which of its own cells, to whom, and which cells there.
pub(crate) struct Strip {
    /// To whom.
    pub(crate) target: Rank,
    /// Which of the own cells.
    pub(crate) from: Strided,
    /// Which cells there.
    pub(crate) to: Strided,
}

/// What a rank puts to its neighbours after an update.
pub(crate) fn strips(problem: Problem, grid: Grid, rank: usize) -> Vec<Strip> {
    let mine = Block::of(problem, grid, rank);
    let (row, col) = (rank / grid.cols, rank % grid.cols);
    let mut strips = Vec::new();
    let mut add = |target: usize, from: Strided, to: &dyn Fn(Block) -> Strided| {
        let theirs = Block::of(problem, grid, target);
        strips.push(Strip { target: Rank(target as u32), from, to: to(theirs) });
    };
    if 0 < row {
        add(rank - grid.cols, mine.row(1), &|theirs| theirs.row(theirs.rows + 1));
    }
    if row + 1 < grid.rows {
        add(rank + grid.cols, mine.row(mine.rows), &|theirs| theirs.row(0));
    }
    if 0 < col {
        add(rank - 1, mine.col(1), &|theirs| theirs.col(theirs.cols + 1));
    }
    if col + 1 < grid.cols {
        add(rank + 1, mine.col(mine.cols), &|theirs| theirs.col(0));
    }
    strips
}

/// One update: every cell of the block from the old array. Gives the largest change.
fn update(block: Block, old: &[f64], new: &mut [f64]) -> f64 {
    let width = block.width();
    let mut change = 0.0_f64;
    for row in 1..=block.rows {
        let north = &old[(row - 1) * width..row * width];
        let here = &old[row * width..(row + 1) * width];
        let south = &old[(row + 1) * width..(row + 2) * width];
        let out = &mut new[(row - 1) * block.cols..row * block.cols];
        for col in 1..=block.cols {
            let value = ((north[col] + south[col]) + (here[col - 1] + here[col + 1])) * 0.25;
            change = change.max((value - here[col]).abs());
            out[col - 1] = value;
        }
    }
    change
}

/// Solves a problem, every rank of the team taking part. `watch` sees the number of updates after each.
pub(crate) fn solve(
    team: &Team,
    problem: Problem,
    grid: Grid,
    style: Style,
    watch: impl FnMut(usize),
) -> rma::Result<Solution> {
    solve_by(team, problem, grid, |window, strips| exchange(team, window, strips, style), watch)
}

/// As [`solve`], with any exchange that brings every strip of the rim into the neighbours' halos.
pub(crate) fn solve_by(
    team: &Team,
    problem: Problem,
    grid: Grid,
    mut exchange: impl FnMut(&mut Window<f64>, &[Strip]) -> rma::Result<()>,
    mut watch: impl FnMut(usize),
) -> rma::Result<Solution> {
    assert_eq!(grid.ranks(), team.size() as usize, "the grid has a block for every rank");
    let rank = team.rank().index();
    let block = Block::of(problem, grid, rank);
    let width = block.width();
    let mut window = Window::<f64>::allocate(team, block.len())?;
    if block.row == 0 {
        // The boundary: 1 along the north edge, 0 elsewhere.
        window.local_mut()?[..width].fill(1.0);
    }
    let strips = strips(problem, grid, rank);
    let mut new = vec![0.0; block.rows * block.cols];
    let mut updates = 0;
    // The others may put as soon as this rank has come to the first exchange; the first update needs no halo.
    let change = loop {
        // A view is a private epoch: plain loads and stores that vectorise.
        let mut cells = window.local_mut()?;
        let mut change = [update(block, &cells, &mut new)];
        for row in 0..block.rows {
            let start = (row + 1) * width + 1;
            cells[start..start + block.cols].copy_from_slice(&new[row * block.cols..(row + 1) * block.cols]);
        }
        drop(cells);
        exchange(&mut window, &strips)?;
        team.allreduce(&mut change, Max)?;
        updates += 1;
        watch(updates);
        if problem.until.is_reached(updates, change[0]) {
            break change[0];
        }
    };
    let cells = window.local()?;
    finish(team, problem, grid, (updates, change), &cells)
}

/// The solution, from the cells of every rank's block with its halo.
pub(crate) fn finish(
    team: &Team,
    problem: Problem,
    grid: Grid,
    (updates, change): (usize, f64),
    cells: &[f64],
) -> rma::Result<Solution> {
    let block = Block::of(problem, grid, team.rank().index());
    let width = block.width();
    let mut interior = Vec::with_capacity(block.rows * block.cols);
    for row in 1..=block.rows {
        interior.extend_from_slice(&cells[row * width + 1..row * width + 1 + block.cols]);
    }
    let mut hash = [0];
    if let Some(all) = team.gather(Rank(0), &interior)? {
        hash[0] = fnv1a(&assemble(problem, grid, &all));
    }
    team.broadcast(Rank(0), &mut hash)?;
    Ok(Solution { updates, change, hash: hash[0] })
}

/// Puts every strip of the rim into the neighbours' halos.
fn exchange(team: &Team, window: &mut Window<f64>, strips: &[Strip], style: Style) -> rma::Result<()> {
    match style {
        Style::Fence => window.fence(|epoch| {
            for strip in strips {
                epoch.put(strip.target, strip.to, own(strip.from))?;
            }
            Ok(())
        }),
        Style::Pscw => {
            let exposure = window.post(Origins::Any)?;
            for strip in strips {
                let access = exposure.start(strip.target, Info::Weak)?;
                access.put(strip.target, strip.to, own(strip.from))?;
                access.complete()?;
            }
            // Whoever this rank puts to puts to this rank.
            exposure.wait(strips.len())
        }
        Style::Lock => {
            team.barrier()?;
            for strip in strips {
                window.lock(strip.target, LockKind::Exclusive, |epoch| {
                    epoch.put(strip.target, strip.to, own(strip.from))
                })?;
            }
            team.barrier()
        }
    }
}

/// The interior, row by row, from the blocks of all ranks, one behind the other.
pub(crate) fn assemble(problem: Problem, grid: Grid, blocks: &[f64]) -> Vec<f64> {
    let mut interior = vec![0.0; problem.rows * problem.cols];
    let mut rest = blocks;
    for rank in 0..grid.ranks() {
        let block = Block::of(problem, grid, rank);
        for row in 0..block.rows {
            let (line, behind) = rest.split_at(block.cols);
            let start = (block.row + row) * problem.cols + block.col;
            interior[start..start + block.cols].copy_from_slice(line);
            rest = behind;
        }
    }
    interior
}

/// 64-bit FNV-1a over the values as little-endian bytes.
pub(crate) fn fnv1a(values: &[f64]) -> u64 {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A row of the table in `docs/spec/examples.md`, section 0: the problem, its updates, the bits of its last change (where the
/// table gives it), and its hash.
pub(crate) const TABLE: [(Problem, usize, Option<f64>, u64); 3] = [
    (
        Problem { rows: 32, cols: 32, until: Until::Below(1e-4) },
        642,
        Some(9.991_994_828_301_154e-5),
        0xb7ed_f685_b899_f559,
    ),
    (
        Problem { rows: 30, cols: 17, until: Until::Below(1e-5) },
        524,
        Some(9.984_465_945_286_902e-6),
        0x1372_cb6f_b388_6360,
    ),
    (Problem { rows: 32, cols: 32, until: Until::Updates(50) }, 50, None, 0x45a8_edcb_347d_3b55),
];

/// Whether a solution is the table's, if the table has the problem.
pub(crate) fn matches_table(problem: Problem, solution: Solution) -> Option<bool> {
    TABLE.iter().find(|(row, ..)| *row == problem).map(|&(_, updates, change, hash)| {
        let same_change = change.is_none_or(|change| change.to_bits() == solution.change.to_bits());
        solution.updates == updates && same_change && solution.hash == hash
    })
}
