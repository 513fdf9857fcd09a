//! Solves a Jacobi problem by one-sided communication, in three styles of synchronization.
//!
//! ```text
//! cargo run --example jacobi
//! cargo build --example jacobi && cargo run --bin rma-run -- -n 4 target/debug/examples/jacobi --style pscw
//! cargo run --bin rma-run -- -n 6 --transport local target/debug/examples/jacobi --rows 30 --cols 17 --tol 1e-5
//! ```
//!
//! Without arguments it solves 32 by 32 cells in all styles. The same bits come out for every number of ranks.

use std::process::ExitCode;

use rma::{Rank, Team};

#[path = "jacobi/solver.rs"]
mod solver;

use solver::{Grid, Problem, STYLES, Style, Until, matches_table, solve};

const USAGE: &str = "usage: jacobi [--style fence|pscw|lock] [--rows N] [--cols N] [--tol X] [--updates N] [--grid PxQ] [--forever]

  --style    one style of synchronization; all of them without it
  --rows     interior rows (32)
  --cols     interior columns (32)
  --tol      iterate until the largest change of an update is below this (1e-4)
  --updates  iterate this often instead
  --grid     rows and columns of blocks, as 3x2; the nearest to a square without it
  --forever  begin again and again, until somebody ends the job";

#[derive(Clone, Debug)]
struct Options {
    styles: Vec<Style>,
    problem: Problem,
    grid: Option<Grid>,
    forever: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(&words) {
        Ok(options) => rma::run(|team| run(team, &options)),
        Err(text) => {
            eprintln!("jacobi: {text}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(words: &[String]) -> Result<Options, String> {
    let until = Until::Below(1e-4);
    let problem = Problem { rows: 32, cols: 32, until };
    let mut options = Options { styles: STYLES.to_vec(), problem, grid: None, forever: false };
    let (mut has_tol, mut has_updates) = (false, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or(format!("{word} needs {what}"));
        match word.as_str() {
            "--style" => {
                let style = match value("fence, pscw or lock")?.as_str() {
                    "fence" => Style::Fence,
                    "pscw" => Style::Pscw,
                    "lock" => Style::Lock,
                    other => return Err(format!("there is no style '{other}', but fence, pscw and lock")),
                };
                options.styles = vec![style];
            }
            "--rows" => options.problem.rows = positive(word, value("a number")?)?,
            "--cols" => options.problem.cols = positive(word, value("a number")?)?,
            "--updates" => {
                has_updates = true;
                options.problem.until = Until::Updates(positive(word, value("a number")?)?);
            }
            "--tol" => {
                has_tol = true;
                let text = value("a number")?;
                match text.parse() {
                    Ok(tol) if 0.0 < tol => options.problem.until = Until::Below(tol),
                    _ => return Err(format!("--tol takes a number above 0, not '{text}'")),
                }
            }
            "--grid" => {
                let text = value("a grid of ranks, as 3x2")?;
                let (rows, cols) = text
                    .split_once('x')
                    .ok_or(format!("--grid takes rows and columns of blocks, as 3x2, not '{text}'"))?;
                options.grid = Some(Grid { rows: positive(word, rows)?, cols: positive(word, cols)? });
            }
            "--forever" => options.forever = true,
            other => return Err(format!("there is no option '{other}'")),
        }
    }
    match has_tol && has_updates {
        true => Err("--tol and --updates exclude each other".to_owned()),
        false => Ok(options),
    }
}

fn positive(option: &str, text: &str) -> Result<usize, String> {
    // Far above what fits a machine, far below what overflows a product of two.
    const MOST: usize = 1 << 28;
    match text.parse() {
        Ok(number) if 0 < number && number <= MOST => Ok(number),
        _ => Err(format!("{option} takes a whole number from 1 to {MOST}, not '{text}'")),
    }
}

/// Why a problem can't be divided as it should.
fn unfit(problem: Problem, grid: Grid, ranks: usize) -> Option<String> {
    let Grid { rows, cols } = grid;
    if grid.ranks() != ranks {
        return Some(format!("a grid of {rows}x{cols} blocks needs {} ranks, not {ranks}", grid.ranks()));
    }
    let few = problem.rows < rows || problem.cols < cols;
    few.then(|| format!("{}x{} cells are too few for {rows}x{cols} blocks", problem.rows, problem.cols))
}

fn run(team: &Team, options: &Options) -> Result<(), String> {
    let ranks = team.size() as usize;
    let problem = options.problem;
    let grid = options.grid.unwrap_or(Grid::for_ranks(ranks));
    if let Some(text) = unfit(problem, grid, ranks) {
        if team.rank() == Rank(0) {
            eprintln!("jacobi: {text}");
        }
        // Nobody leaves before the reason is printed.
        team.barrier().map_err(|error| error.to_string())?;
        std::process::exit(2);
    }
    let report = team.rank() == Rank(0);
    for pass in 0.. {
        for &style in &options.styles {
            let watch = |updates: usize| {
                if options.forever && report && pass == 0 && updates == 1 {
                    println!("{style:?}: running");
                }
            };
            let solution = solve(team, problem, grid, style, watch).map_err(|error| error.to_string())?;
            let verdict = match matches_table(problem, solution) {
                Some(true) => " ok",
                Some(false) => {
                    return Err(format!(
                        "{style:?}: {solution:?} is not what the table of the examples says"
                    ));
                }
                None => "",
            };
            if report && !options.forever {
                println!(
                    "{style:?}: {} updates, last change {:.16e}, hash {:016x}{verdict}",
                    solution.updates, solution.change, solution.hash
                );
            }
        }
        if !options.forever {
            break;
        }
    }
    Ok(())
}
