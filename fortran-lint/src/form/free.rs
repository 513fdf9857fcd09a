//! Free form: `&` continues, `!` comments, blanks separate. Never counts columns.

use rma_source::Span;

use super::macros::Character;
use super::{
    Directive, DirectiveKind, FOREIGN, Item, LogicalLine, Physical, Reader, c_comment_length,
    hollerith_length, is_c_comment_in, is_space, template,
};

/// What the end of a physical line says about the next one.
enum End {
    Statement,
    Continued,
}

impl Reader<'_> {
    pub(super) fn next_free(&mut self, line: &mut LogicalLine) -> Option<Item> {
        // Comments and blank lines before the statement.
        let mut physical = loop {
            let physical = self.physical(self.at)?;
            if let Some(kind) = template::line(self.bytes_of(physical)) {
                return Some(Item::Directive(self.take_template_line(physical, kind)));
            }
            if self.is_directive(physical) {
                return Some(Item::Directive(self.take_directive(physical)));
            }
            if !self.is_free_comment(physical) || is_optional(self.bytes_of(physical)) {
                break physical;
            }
            self.at = self.behind_comment(physical);
        };
        self.began = physical.start;
        line.clear(physical.start);
        line.is_optional = is_optional(self.bytes_of(physical));
        self.has_branches = false;
        let mut quote = None;
        let mut n_open = 0;
        loop {
            self.at = physical.next;
            match self.append_free(line, physical, &mut quote) {
                End::Statement => {
                    self.leave_branches(&mut n_open);
                    break;
                }
                End::Continued => {}
            }
            match self.free_continuation(&mut n_open, line.is_optional) {
                Some(next) if line.is_optional && !is_optional(self.bytes_of(next)) => break,
                Some(next) => physical = next,
                None => {
                    self.ends_inside.set(true);
                    break;
                }
            }
        }
        let end =
            line.text.len().checked_sub(1).map_or(physical.end, |last| line.source_of(last) as usize + 1);
        line.span = Span::new(line.runs.first().map_or(physical.start, |run| run.source as usize), end);
        Some(Item::Statement)
    }

    /// The last line of a line of a template, which goes on behind `&` as statements do.
    fn end_of_template_line(&self, line: Physical) -> Physical {
        let mut last = line;
        while self.bytes_of(last).trim_ascii_end().last() == Some(&b'&') {
            match self.physical(last.next) {
                Some(next) => last = next,
                None => break,
            }
        }
        last
    }

    fn take_template_line(&mut self, line: Physical, kind: DirectiveKind) -> Directive {
        let last = self.end_of_template_line(line);
        self.at = last.next;
        match kind {
            DirectiveKind::If => self.n_conditions += 1,
            DirectiveKind::EndIf => self.n_conditions = self.n_conditions.saturating_sub(1),
            _ => {}
        }
        Directive { kind, span: Span::new(line.start, last.end) }
    }

    fn is_free_comment(&self, line: Physical) -> bool {
        let bytes = self.bytes_of(line);
        matches!(bytes.iter().find(|&&byte| !is_space(byte)), None | Some(b'!')) || self.is_c_comment(line)
    }

    /// Passes over the other branches of an `#if` that was entered inside the statement, where they follow at once.
    fn leave_branches(&mut self, n_open: &mut usize) {
        while *n_open > 0 {
            match self.physical(self.at) {
                Some(line) if self.is_directive(line) => self.directive_inside(line, n_open),
                Some(line) if self.is_free_comment(line) => self.at = self.behind_comment(line),
                _ => return,
            }
        }
    }

    /// The line that continues a statement: comments, blank lines and directives in between are passed over.
    fn free_continuation(&mut self, n_open: &mut usize, is_optional_line: bool) -> Option<Physical> {
        loop {
            let physical = self.physical(self.at)?;
            if template::line(self.bytes_of(physical)).is_some() {
                self.at = self.end_of_template_line(physical).next;
                continue;
            }
            if self.is_directive(physical) {
                self.directive_inside(physical, n_open);
                continue;
            }
            if !self.is_free_comment(physical) || (is_optional_line && is_optional(self.bytes_of(physical))) {
                return Some(physical);
            }
            self.at = self.behind_comment(physical);
        }
    }

    /// Adds one physical line to the statement.
    fn append_free(&self, line: &mut LogicalLine, physical: Physical, quote: &mut Option<u8>) -> End {
        let (bytes, start) = (self.bytes_of(physical), physical.start);
        let mut i = bytes.iter().take_while(|&&byte| is_space(byte)).count();
        if line.is_optional {
            i += SENTINEL.len();
            i += bytes[i..].iter().take_while(|&&byte| is_space(byte)).count();
        }
        let is_first = line.text.is_empty();
        if !is_first {
            match bytes.get(i) {
                // The token may go on right behind the mark.
                Some(b'&') => i += 1,
                // A character context without the mark is an error of the source; its blanks are taken as they are.
                _ if quote.is_some() => i = 0,
                _ => line.push(b' ', start + i.saturating_sub(1)),
            }
        }
        while let Some(&byte) = bytes.get(i) {
            if quote.is_none() {
                self.note_macro(line, start + i, physical.end);
            }
            match *quote {
                Some(mark) => {
                    if byte == b'&' && bytes[i + 1..].iter().all(|&byte| is_space(byte)) {
                        return End::Continued;
                    }
                    if byte == mark {
                        *quote = None;
                    }
                    line.push(byte, start + i);
                }
                None => match byte {
                    b'!' => return End::Statement,
                    b'$' | b'#' if bytes.get(i + 1) == Some(&b'{') => match template::inline(&bytes[i..]) {
                        Some((length, name)) => {
                            let (source, width) = ((start + i) as u32, length as u32);
                            for &byte in name {
                                line.push_expanded(Character { byte, source, width });
                            }
                            i += length - 1;
                        }
                        None => line.push(byte, start + i),
                    },
                    b'/' if is_c_comment_in(&bytes[i..]) => i += c_comment_length(&bytes[i..]) - 1,
                    b'&' if rest_is_comment(&bytes[i + 1..]) => return End::Continued,
                    b'\'' | b'"' => {
                        *quote = Some(byte);
                        line.push(byte, start + i);
                    }
                    b'h' | b'H' => {
                        let length =
                            hollerith_length(line.text.as_bytes()).filter(|&(_, n)| n < bytes.len() - i);
                        match length {
                            Some((digits, n)) => {
                                replace_hollerith(line, digits, n, start + i);
                                i += n;
                            }
                            None => line.push(b'h', start + i),
                        }
                    }
                    _ if is_space(byte) => line.push(b' ', start + i),
                    _ if byte.is_ascii() => line.push(byte.to_ascii_lowercase(), start + i),
                    _ => line.push(FOREIGN, start + i),
                },
            }
            i += 1;
        }
        // A character literal does not go on without a mark.
        *quote = None;
        End::Statement
    }
}

fn rest_is_comment(rest: &[u8]) -> bool {
    matches!(rest.iter().find(|&&byte| !is_space(byte)), None | Some(b'!'))
}

/// Turns the digits of a Hollerith constant of `n` characters behind `mark` into an ordinary literal.
///
/// The characters themselves are never needed, so letters stand for them and a quote among them does no harm.
fn replace_hollerith(line: &mut LogicalLine, digits: usize, n: usize, mark: usize) {
    begin_hollerith(line, digits);
    for k in 1..=n {
        line.push(b'h', mark + k);
    }
    line.push(b'\'', mark + n);
}

/// Turns the digits at the end of a line into the opening mark of a literal.
pub(super) fn begin_hollerith(line: &mut LogicalLine, digits: usize) {
    let at = line.text.len() - digits;
    let first = line.source_of(at) as usize;
    line.text.truncate(at);
    while line.runs.last().is_some_and(|run| run.at as usize >= at) {
        line.runs.pop();
    }
    line.push(b'\'', first);
}

/// What makes a comment of a line for those who don't know it.
const SENTINEL: &[u8] = b"!$";

/// Whether a line is a comment for some compilers: `!$ x = 1` or its continuation `!$& y`.
fn is_optional(line: &[u8]) -> bool {
    let behind = line.trim_ascii_start().strip_prefix(SENTINEL);
    behind.is_some_and(|rest| {
        matches!(rest.first(), Some(b' ' | b'\t' | b'&')) && !rest.trim_ascii().is_empty()
    })
}
