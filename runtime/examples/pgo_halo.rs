//! The Jacobi problems of `docs/spec/examples.md` by Put/Get/Offer, without a window: the same bits as the table says. Prints what an
//! update costs with counts that are known, with counts that are counted, and with gets under the computation.
//!
//! ```text
//! cargo build --example pgo_halo && cargo run --bin rma-run -- -n 4 target/debug/examples/pgo_halo
//! ```

use std::process::ExitCode;
use std::time::Instant;

use rma::Rank;

#[path = "pgo/jacobi.rs"]
mod jacobi;

use jacobi::{Exchange, TABLE, solve};

fn main() -> ExitCode {
    rma::run(|team| {
        for row in &TABLE {
            for exchange in Exchange::ALL {
                let begun = Instant::now();
                let solution = solve(team, row, exchange).map_err(|error| error.to_string())?;
                if (solution.updates, solution.hash) != (row.updates, row.hash) {
                    return Err(format!(
                        "{exchange:?}: {solution:?} is not what the table of the examples says"
                    ));
                }
                if team.rank() == Rank(0) {
                    let step = begun.elapsed().as_secs_f64() * 1e6 / solution.updates as f64;
                    println!(
                        "{exchange:?}: {} updates of {step:.1} µs, hash {:016x} ok",
                        solution.updates, solution.hash
                    );
                }
            }
        }
        Ok::<(), String>(())
    })
}
