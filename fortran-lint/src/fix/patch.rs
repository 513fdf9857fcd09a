//! Text added to a file, kept apart from what was there, and shown as a unified diff. Never removes anything.

use std::collections::BTreeMap;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// A text and what is added to it.
#[derive(Clone, Debug)]
pub struct Patch {
    old: Vec<u8>,
    /// By place in the old text.
    insertions: BTreeMap<usize, Vec<u8>>,
}

impl Patch {
    /// A text to which nothing is added yet.
    pub fn new(old: Vec<u8>) -> Patch {
        Patch { old, insertions: BTreeMap::new() }
    }

    /// The text as it was.
    pub fn old_text(&self) -> &[u8] {
        &self.old
    }

    /// The text with all that was added.
    pub fn new_text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.old.len());
        let mut at = 0;
        for (&place, added) in &self.insertions {
            text.extend_from_slice(&self.old[at..place]);
            text.extend_from_slice(added);
            at = place;
        }
        text.extend_from_slice(&self.old[at..]);
        text
    }

    /// Adds text at places of the new text as it is now; what is added at one place comes in the order of the list.
    pub fn add(&mut self, mut list: Vec<(usize, Vec<u8>)>) {
        // From the back, so that earlier places stay what they are; the sort keeps the order of equal places.
        list.sort_by_key(|(at, _)| *at);
        for (at, text) in list.into_iter().rev() {
            let (place, inside) = self.old_place(at);
            let own = self.insertions.entry(place).or_default();
            own.splice(inside..inside, text);
        }
    }

    /// The place in the old text, and the offset in what is added there.
    fn old_place(&self, at: usize) -> (usize, usize) {
        let mut n_added = 0;
        for (&place, added) in &self.insertions {
            let start = place + n_added;
            if at < start {
                break;
            }
            if at <= start + added.len() {
                return (place, at - start);
            }
            n_added += added.len();
        }
        (at - n_added, 0)
    }

    /// The change as a unified diff of a file of that name.
    pub fn diff(&self, path: &str) -> Vec<u8> {
        let lines = lines(&self.old);
        let changes = self.changes(&lines);
        let mut out = format!("--- a/{path}\n+++ b/{path}\n").into_bytes();
        let mut i = 0;
        let mut n_added_before = 0isize;
        while i < changes.len() {
            let mut last = i;
            while last + 1 < changes.len() && changes[last + 1].line <= changes[last].end() + 2 * CONTEXT {
                last += 1;
            }
            let hunk = &changes[i..=last];
            let first_line = hunk[0].line.saturating_sub(CONTEXT);
            let end_line = (hunk[hunk.len() - 1].end() + CONTEXT).min(lines.len());
            let n_old = end_line - first_line;
            let growth: isize =
                hunk.iter().map(|change| change.added.len() as isize - isize::from(change.replaces)).sum();
            let n_new = (n_old as isize + growth) as usize;
            let number = |line: usize, n: usize| if n == 0 { line } else { line + 1 };
            let new_line = (first_line as isize + n_added_before) as usize;
            out.extend_from_slice(
                format!(
                    "@@ -{},{n_old} +{},{n_new} @@\n",
                    number(first_line, n_old),
                    number(new_line, n_new)
                )
                .as_bytes(),
            );
            let mut at = first_line;
            for change in hunk {
                for line in &lines[at..change.line] {
                    put(&mut out, b' ', line);
                }
                at = change.end();
                if change.replaces {
                    put(&mut out, b'-', lines[change.line]);
                }
                for line in &change.added {
                    put(&mut out, b'+', line);
                }
            }
            for line in &lines[at..end_line] {
                put(&mut out, b' ', line);
            }
            n_added_before += growth;
            i = last + 1;
        }
        out
    }

    /// Lines that come, and whether they take the place of one.
    fn changes(&self, lines: &[&[u8]]) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        let mut start = 0;
        for (i, line) in lines.iter().enumerate() {
            let end = start + line.len();
            let is_last = i + 1 == lines.len();
            let at_start = self.insertions.get(&start).filter(|text| ends_line(text));
            if let Some(text) = at_start {
                changes.push(Change { line: i, replaces: false, added: owned_lines(text) });
            }
            let inside: Vec<(usize, &Vec<u8>)> = self
                .insertions
                .range(start..=end)
                .filter(|&(&at, text)| {
                    let is_before = at == start && ends_line(text);
                    // What stands at the line end belongs to the next line, if there is one.
                    let is_behind = at == end && (!is_last || ends_line(line));
                    !is_before && !is_behind
                })
                .map(|(&at, text)| (at, text))
                .collect();
            if !inside.is_empty() {
                let mut new = Vec::new();
                let mut from = start;
                for (at, text) in inside {
                    new.extend_from_slice(&self.old[from..at]);
                    new.extend_from_slice(text);
                    from = at;
                }
                new.extend_from_slice(&self.old[from..end]);
                changes.push(Change { line: i, replaces: true, added: owned_lines(&new) });
            }
            start = end;
        }
        if let Some(text) =
            self.insertions.get(&self.old.len()).filter(|_| lines.last().is_none_or(|line| ends_line(line)))
        {
            changes.push(Change { line: lines.len(), replaces: false, added: owned_lines(text) });
        }
        changes
    }
}

struct Change {
    /// The line before which lines come, or the line that is replaced, from 0.
    line: usize,
    replaces: bool,
    added: Vec<Vec<u8>>,
}

impl Change {
    fn end(&self) -> usize {
        self.line + usize::from(self.replaces)
    }
}

fn ends_line(text: &[u8]) -> bool {
    text.ends_with(b"\n")
}

/// Lines as diff and patch count them: a carriage return alone is a character.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

fn owned_lines(text: &[u8]) -> Vec<Vec<u8>> {
    lines(text).into_iter().map(<[u8]>::to_vec).collect()
}

fn put(out: &mut Vec<u8>, mark: u8, line: &[u8]) {
    out.push(mark);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}
