//! What the benchmark prints and says when it fails. Never measures.

use std::fmt;
use std::io::Write;

use rma::{Error, Team};

/// Why the benchmark ended early.
pub(crate) enum Failure {
    /// A call of the runtime failed.
    Call(Error),
    /// What was transferred is not what should have been, or the benchmark can't run like this.
    Text(String),
}

impl Failure {
    pub(crate) fn few_ranks() -> Failure {
        Failure::Text(
            "there is nobody to communicate with; start 2 ranks or more: rma-run -n 2 rma-bench".to_owned(),
        )
    }

    pub(crate) fn many_ranks(ranks: u32) -> Failure {
        Failure::Text(format!(
            "the groups of `--only` are measured between 2 ranks, and there are {ranks}; start them by rma-run -n 2 rma-bench"
        ))
    }

    /// A metric measured something that does not work.
    pub(crate) fn check(
        team: &Team,
        metric: &str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Failure {
        Failure::Text(format!("{metric}: rank {} found {found} where {expected} should be", team.rank()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Call(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Call(error) => error.fmt(f),
            Failure::Text(text) => f.write_str(text),
        }
    }
}

/// Prints a metric.
pub(crate) fn line(prefix: &str, metric: &str, bytes: usize, value: f64, unit: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone away is no failure of the benchmark.
    let _ = writeln!(out, "{prefix}.{metric}\t{bytes}\t{}\t{unit}", four_digits(value))
        .and_then(|()| out.flush());
}

/// A number as C's `%.4g` prints it, which the peers use.
fn four_digits(value: f64) -> String {
    let scientific = format!("{value:.3e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let trimmed = |digits: String| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits,
    };
    match exponent {
        -4..4 => trimmed(format!("{value:.*}", (3 - exponent) as usize)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(mantissa.to_owned()), exponent.unsigned_abs())
        }
    }
}

#[cfg(test)]
mod test {
    use super::four_digits;

    #[test]
    fn numbers_look_as_those_of_the_peers() {
        let printed = [0.0, 0.00321, 1.0, 12.3456, 99.996, 9999.4, 9999.6, 123_456.0, 0.000_012_346, 0.02];
        let expected =
            ["0", "0.00321", "1", "12.35", "100", "9999", "1e+04", "1.235e+05", "1.235e-05", "0.02"];
        assert_eq!(printed.map(four_digits), expected);
    }
}
