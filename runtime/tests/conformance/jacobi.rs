//! The Jacobi problems, in every style and on every grid of ranks, against a serial reference and the table of the examples.

use rma::Team;

use crate::{Case, Outcome, case};

#[path = "../../examples/jacobi/solver.rs"]
pub(crate) mod solver;

use solver::{Grid, Problem, STYLES, Solution, TABLE, Until, fnv1a, matches_table, solve};

pub(crate) const CASES: &[Case] = &[
    case!(the_serial_reference_is_the_tables, [1]),
    case!(every_style_gives_the_tables_bits, [1, 2, 3, 4, 6]).many_rounds(),
];

/// The reference: two arrays and three loops.
fn serial(problem: Problem) -> (Solution, Vec<f64>) {
    let width = problem.cols + 2;
    let mut old = vec![0.0; (problem.rows + 2) * width];
    old[..width].fill(1.0);
    let mut new = old.clone();
    let mut updates = 0;
    loop {
        let mut change = 0.0_f64;
        for row in 1..=problem.rows {
            for col in 1..=problem.cols {
                let at = row * width + col;
                new[at] = ((old[at - width] + old[at + width]) + (old[at - 1] + old[at + 1])) * 0.25;
                change = change.max(f64::abs(new[at] - old[at]));
            }
        }
        std::mem::swap(&mut old, &mut new);
        updates += 1;
        if problem.until.is_reached(updates, change) {
            let interior: Vec<f64> =
                (1..=problem.rows).flat_map(|row| old[row * width + 1..][..problem.cols].to_vec()).collect();
            return (Solution { updates, change, hash: fnv1a(&interior) }, interior);
        }
    }
}

fn the_serial_reference_is_the_tables(_: &Team) -> Outcome {
    for (problem, ..) in TABLE {
        let (solution, interior) = serial(problem);
        assert_eq!(matches_table(problem, solution), Some(true), "{problem:?}: {solution:?}");
        // Cells are counted from 1 in the table.
        let cell = |row: usize, col: usize| interior[(row - 1) * problem.cols + col - 1];
        match (problem.rows, problem.until) {
            (30, _) => assert_eq!(cell(16, 9).to_bits(), 0x3fb3_ad2d_8f53_5f19),
            (_, Until::Below(_)) => assert_eq!(cell(16, 9).to_bits(), 0x3fc8_0627_1a71_f0f1),
            (_, Until::Updates(_)) => assert_eq!(cell(1, 1), 0.487_636_703_188_718_77),
        }
    }
    Ok(())
}

/// Every grid that has a block for each rank.
pub(crate) fn grids(team: &Team) -> Vec<Grid> {
    let ranks = team.size() as usize;
    (1..=ranks)
        .filter(|rows| ranks.is_multiple_of(*rows))
        .map(|rows| Grid { rows, cols: ranks / rows })
        .collect()
}

// covers: EX-E107-01, EX-E107-04, EX-E107-05
// covers: EX-E109-01 -- form R
fn every_style_gives_the_tables_bits(team: &Team) -> Outcome {
    let grids = grids(team);
    for (problem, ..) in TABLE {
        for &grid in &grids {
            for style in STYLES {
                let solution = solve(team, problem, grid, style, |_| {})?;
                assert_eq!(
                    matches_table(problem, solution),
                    Some(true),
                    "{problem:?} {grid:?} {style:?}: {solution:?}"
                );
            }
        }
    }
    Ok(())
}
