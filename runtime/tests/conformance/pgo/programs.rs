//! The programs of `examples/`, on every number of ranks, against the table of the examples and serial results.

use rma::{Rank, Team};

use crate::{Case, Outcome, case};

#[path = "../../../examples/pgo/jacobi.rs"]
mod jacobi;

#[path = "../../../examples/pgo_histogram.rs"]
mod histogram;

#[cfg(feature = "progressive")]
#[path = "../../../examples/pgo_third_party.rs"]
mod third_party;

pub(crate) const CASES: &[Case] = &[
    case!(offers_solve_the_jacobi_problems, [1, 2, 3, 4, 6]).one_copy().under(&[""]),
    case!(a_histogram_by_rounds, [1, 2, 3, 6]).one_copy().under(&[""]),
    #[cfg(feature = "progressive")]
    case!(values_go_through_third_ranks, [1, 2, 3, 6]).one_copy().under(&[""]),
];

// covers: PGO-COLL-14
fn offers_solve_the_jacobi_problems(team: &Team) -> Outcome {
    // The whole table where it is cheap, else the problem of 50 updates.
    let rows = if crate::is_full() || team.size() == 2 { &jacobi::TABLE[..] } else { &jacobi::TABLE[2..] };
    for row in rows {
        for exchange in jacobi::Exchange::ALL {
            let jacobi::Solution { updates, hash } = jacobi::solve(team, row, exchange)?;
            assert_eq!((updates, hash), (row.updates, row.hash), "{exchange:?}");
        }
    }
    Ok(())
}

fn a_histogram_by_rounds(team: &Team) -> Outcome {
    let bins = histogram::histogram(team)?;
    assert_eq!(bins, (team.rank() == Rank(0)).then(|| histogram::serial(team.size())));
    Ok(())
}

#[cfg(feature = "progressive")]
fn values_go_through_third_ranks(team: &Team) -> Outcome {
    assert_eq!(third_party::exchange(team)?, third_party::expected(team.rank().0, team.size()));
    Ok(())
}
