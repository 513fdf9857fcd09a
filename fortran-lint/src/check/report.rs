//! What is said about one file. Never looks at another one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::digest::{Digest, Part};
use super::store::Parsed;
use super::{FileReport, Input, Skipped, sort, text_of};
use crate::finding::Finding;
use crate::options::Options;
use crate::source::Origin;
use crate::suppress;
use rma_source::{FileId, SourceFile, Span};

/// What is said about a file; `owners` tells which of the files that it includes it speaks for, and `checked` is what
/// was found, with the tree in which it was.
pub(super) fn report(
    i: u32,
    input: &Input,
    digest: Digest,
    checked: Option<(Parsed, Vec<Finding>)>,
    owners: &HashMap<Arc<str>, u32>,
    options: &Options,
) -> FileReport {
    let form = digest.form;
    let mut findings = Vec::new();
    let mut texts = Vec::new();
    if let Some((parsed, found)) = checked {
        let mut locator = Locator { origin: &parsed.tree.origin, texts };
        findings = found;
        findings.iter_mut().for_each(|finding| locator.relocate(finding));
        texts = locator.texts;
    }
    let text = text_of(&input.bytes);
    let mut n_silenced = suppress::apply(FileId(0), &text, form, &mut findings, options);
    for (i, (_, included)) in texts.iter().enumerate() {
        n_silenced += suppress::apply(FileId(i as u32 + 1), included.text(), form, &mut findings, options);
    }
    findings.retain(|finding| is_wanted(finding, options));
    sort(&mut findings);
    let is_own = |(k, part): &(usize, Part)| *k == 0 || owners.get(&part.source.path) == Some(&i);
    let own: Vec<Part> = digest.parts.into_iter().enumerate().filter(is_own).map(|(_, part)| part).collect();
    let listed = |list: fn(&Part) -> &Vec<Skipped>| own.iter().flat_map(list).cloned().collect();
    // What is included has its bytes in its part; the file itself has them here.
    let included_lines: usize = own.iter().map(|part| n_lines(&part.source.bytes)).sum();
    FileReport {
        path: input.path.clone(),
        // Only findings lead into a text, and the texts of all files together are large.
        text: if findings.is_empty() { String::new() } else { text.into_owned() },
        form,
        findings,
        n_silenced,
        skipped: listed(|part| &part.skipped),
        missing: listed(|part| &part.missing),
        n_files: own.len(),
        n_statements: own.iter().map(|part| part.n_statements).sum(),
        included: texts.into_iter().map(|(_, text)| text).collect(),
        n_lines: n_lines(&input.bytes) + included_lines,
    }
}

/// Which input reports on which file: itself, and on each included file that is no input the first one including it.
pub(super) fn owners(digests: &[Digest]) -> HashMap<Arc<str>, u32> {
    let mut owners = HashMap::new();
    for (i, digest) in digests.iter().enumerate() {
        owners.insert(digest.parts[0].source.path.clone(), i as u32);
    }
    for (i, digest) in digests.iter().enumerate() {
        for part in &digest.parts[1..] {
            owners.entry(part.source.path.clone()).or_insert(i as u32);
        }
    }
    owners
}

/// Turns places of an expanded text into places in files, and gathers the texts of those.
struct Locator<'a> {
    origin: &'a Origin,
    texts: Vec<(u32, SourceFile)>,
}

impl Locator<'_> {
    fn relocate(&mut self, finding: &mut Finding) {
        (finding.file, finding.span) = self.locate(finding.span);
        for related in &mut finding.related {
            (related.file, related.span) = self.locate(related.span);
        }
        for (file, span) in finding.repairs.iter_mut().flat_map(|repair| &mut repair.places) {
            (*file, *span) = self.locate(*span);
        }
    }

    fn locate(&mut self, span: Span) -> (FileId, Span) {
        let place = self.origin.place(span);
        if place.file == 0 {
            return (FileId(0), place.span);
        }
        let known = self.texts.iter().position(|(file, _)| *file == place.file);
        let i = known.unwrap_or_else(|| {
            let file = &self.origin.files[place.file as usize];
            self.texts.push((place.file, SourceFile::new(&*file.path, text_of(&file.bytes).into_owned())));
            self.texts.len() - 1
        });
        (FileId(i as u32 + 1), place.span)
    }
}

/// A finding in an included file stands in the report of each file that includes it; the first one is enough.
pub(super) fn say_once(reports: &mut [FileReport]) {
    let mut seen = HashSet::new();
    for report in reports {
        let FileReport { findings, included, .. } = report;
        findings.retain(|finding| match finding.file.0.checked_sub(1) {
            Some(i) => {
                let path = included[i as usize].path().to_string();
                seen.insert((path, finding.span, finding.rule, finding.message.clone()))
            }
            None => true,
        });
    }
}

fn n_lines(bytes: &[u8]) -> usize {
    let has_open_end = bytes.last().is_some_and(|&byte| byte != b'\n');
    bytes.iter().filter(|&&byte| byte == b'\n').count() + usize::from(has_open_end)
}

fn is_wanted(finding: &Finding, options: &Options) -> bool {
    let is_in = |codes: &[String], code: &str| codes.iter().any(|own| own.eq_ignore_ascii_case(code));
    let is_selected = !is_in(&options.ignore, finding.rule)
        && (options.runs(finding.rule)
            || finding.because.iter().any(|reason| is_in(&options.select, reason)));
    // Levels are ordered from the worst to the mildest.
    is_selected && finding.level <= options.min_level
}
