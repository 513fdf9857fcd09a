//! Lines that a change touched, and the findings that concern them. Never starts a program: the caller supplies what
//! `git diff` printed.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::check::FileReport;
use crate::finding::Finding;

/// The touched lines of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lines {
    /// All of them: the file is new.
    All,
    /// These, from 1.
    Some(Vec<RangeInclusive<usize>>),
}

impl Lines {
    fn touch(&self, first: usize, last: usize) -> bool {
        match self {
            Lines::All => true,
            Lines::Some(ranges) => ranges.iter().any(|range| *range.start() <= last && first <= *range.end()),
        }
    }
}

/// The touched lines by path, from the text of `git diff --unified=0` with the prefixes `a/` and `b/`.
///
/// # Errors
///
/// The line that was not understood.
pub fn parse_diff(text: &str) -> Result<HashMap<String, Lines>, String> {
    let mut changed: HashMap<String, Lines> = HashMap::new();
    let mut ranges: Option<&mut Vec<RangeInclusive<usize>>> = None;
    // Lines of a hunk may look like heads.
    let mut n_skipped = 0;
    for line in text.lines() {
        if n_skipped > 0 {
            // Only added and removed lines count; the remark about a missing line end does not.
            n_skipped -= usize::from(line.starts_with(['+', '-']));
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            // Git puts a tab behind names with blanks.
            let lines =
                changed.entry(path.trim_end_matches('\t').to_string()).or_insert(Lines::Some(Vec::new()));
            ranges = match lines {
                Lines::Some(ranges) => Some(ranges),
                Lines::All => None,
            };
        } else if line.starts_with("+++ ") {
            ranges = None;
        } else if line.starts_with("@@ ") {
            let hunk = hunk(line).ok_or_else(|| format!("`{line}`"))?;
            n_skipped = hunk.n_removed + hunk.n_added;
            if let Some(ranges) = ranges.as_mut() {
                // Where lines went away, both neighbours are new neighbours.
                ranges.push(match hunk.n_added {
                    0 => hunk.first..=hunk.first + 1,
                    n => hunk.first..=hunk.first + n - 1,
                });
            }
        }
    }
    Ok(changed)
}

struct Hunk {
    n_removed: usize,
    first: usize,
    n_added: usize,
}

/// `@@ -old,n +new,m @@`; a count of 1 is left out.
fn hunk(line: &str) -> Option<Hunk> {
    let mut words = line.split(' ').skip(1);
    let old = words.next()?.strip_prefix('-')?;
    let new = words.next()?.strip_prefix('+')?;
    let pair = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((first, n)) => Some((first.parse().ok()?, n.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let (first, n_added) = pair(new)?;
    Some(Hunk { n_removed: pair(old)?.1, first, n_added })
}

/// Keeps the findings of which some place was touched: an edited declaration or call may break an access elsewhere.
/// Returns how many were taken out.
pub fn keep_touched<'a>(reports: &mut [FileReport], lines_of: impl Fn(&str) -> Option<&'a Lines>) -> usize {
    let mut n_out = 0;
    for report in reports {
        let sources = report.sources();
        let is_touched = |finding: &Finding| {
            let places = std::iter::once((finding.file, finding.span))
                .chain(finding.related.iter().map(|related| (related.file, related.span)));
            places.into_iter().any(|(file, span)| {
                sources.get(file).is_some_and(|file| {
                    let first = file.line_column(span.start as usize).line;
                    let last = file.line_column(span.end as usize).line;
                    lines_of(file.path()).is_some_and(|lines| lines.touch(first, last))
                })
            })
        };
        let n_before = report.findings.len();
        report.findings.retain(is_touched);
        n_out += n_before - report.findings.len();
    }
    n_out
}

#[cfg(test)]
mod test {
    use super::{Lines, parse_diff};

    #[test]
    fn hunks_become_ranges() {
        let text = "diff --git a/src/a.f90 b/src/a.f90\n--- a/src/a.f90\n+++ b/src/a.f90\n\
            @@ -3 +3,2 @@ subroutine s\n-old\n+++ b/looks/like/a/head\n+two\n@@ -9,2 +10,0 @@\n-x\n-y\n\
            diff --git a/gone.f90 b/gone.f90\n--- a/gone.f90\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n\
            --- a/with blank.f90\t\n+++ b/with blank.f90\t\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
        let changed = parse_diff(text).expect("the text is a diff");
        assert_eq!(changed.len(), 2, "{changed:?}");
        assert_eq!(changed["src/a.f90"], Lines::Some(vec![3..=4, 10..=11]));
        assert_eq!(changed["with blank.f90"], Lines::Some(vec![1..=1]));
        assert!(parse_diff("@@ what @@").is_err());
    }
}
