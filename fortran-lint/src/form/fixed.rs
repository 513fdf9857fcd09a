//! Fixed form: labels in columns 1–5, continuation in column 6, text up to column 72. Never keeps a blank.

use rma_source::Span;

use super::directive::is_else;
use super::free::begin_hollerith;
use super::{
    FIXED_COLUMNS, FOREIGN, Item, LogicalLine, Physical, Reader, Width, c_comment_length, hollerith_length,
    is_c_comment_in, is_space,
};

/// What a physical line is, from its first six columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Comment,
    Directive,
    Initial,
    Continuation,
}

/// A physical line and where its statement text starts.
#[derive(Clone, Copy, Debug)]
struct Card {
    kind: Kind,
    line: Physical,
    text: usize,
    /// Tab-formatted lines have no columns to count.
    has_columns: bool,
    /// A comment for some compilers or flags: a D-line, or one with the sentinel `!$`.
    is_optional: bool,
}

/// What the end of a card leaves open.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// The mark of a character literal.
    quote: Option<u8>,
    /// Characters of a Hollerith constant that are still to come.
    hollerith: usize,
}

impl Reader<'_> {
    pub(super) fn next_fixed(&mut self, line: &mut LogicalLine, width: Width) -> Option<Item> {
        let mut card = loop {
            let card = self.card(self.physical(self.at)?);
            match card.kind {
                Kind::Comment => self.at = self.behind_comment(card.line),
                Kind::Directive => return Some(Item::Directive(self.take_directive(card.line))),
                Kind::Continuation if card.is_optional => self.at = card.line.next,
                // A continuation without a statement before it is read as a statement.
                Kind::Initial | Kind::Continuation => break card,
            }
        };
        self.began = card.line.start;
        line.clear(card.line.start);
        line.label = self.label(card);
        line.is_optional = card.is_optional;
        line.is_fragment = card.kind == Kind::Continuation;
        self.has_branches = false;
        self.resume = None;
        let mut open = Open::default();
        let mut n_open = 0;
        loop {
            self.at = card.line.next;
            self.append(line, card, width, &mut open);
            match self.fixed_continuation(&mut n_open, card.is_optional) {
                Some(next) => card = next,
                None => break,
            }
            // Files that are read as both forms end continued lines with a mark, commonly in column 73.
            if open.quote.is_none() && line.text.ends_with('&') {
                line.pop();
            }
        }
        if open.hollerith > 0 {
            line.push(b'\'', card.line.end.saturating_sub(1));
        }
        if let Some((at, n_endifs)) = self.resume.take() {
            self.at = at;
            self.pending_endifs.truncate(n_endifs);
        }
        let start = line.runs.first().map_or(card.line.start, |run| run.source as usize);
        let end =
            line.text.len().checked_sub(1).map_or(card.line.end, |last| line.source_of(last) as usize + 1);
        line.span = Span::new(start, end);
        Some(Item::Statement)
    }

    fn card(&self, line: Physical) -> Card {
        let bytes = self.bytes_of(line);
        let card = |kind, text, has_columns| Card {
            kind,
            line,
            text: line.start + text,
            has_columns,
            is_optional: false,
        };
        if let Some(kind) = optional_kind(bytes) {
            return Card { is_optional: true, ..card(kind, 6, true) };
        }
        match bytes.first() {
            None | Some(b'c' | b'C' | b'*' | b'!' | b'd' | b'D') => return card(Kind::Comment, 0, true),
            Some(b'#') => return card(Kind::Directive, 0, true),
            // `@PROCESS` of IBM's compilers.
            Some(b'@') if bytes[1..].iter().take(7).all(u8::is_ascii_alphabetic) => {
                return card(Kind::Comment, 0, true);
            }
            _ if self.is_c_comment(line) => return card(Kind::Comment, 0, true),
            _ => {}
        }
        let mut has_label = false;
        for (i, &byte) in bytes.iter().enumerate().take(5) {
            match byte {
                b'\t' => {
                    let kind = match bytes.get(i + 1) {
                        Some(b'1'..=b'9') if !has_label => Kind::Continuation,
                        Some(b'!') => Kind::Comment,
                        Some(_) if self.is_blank(line) => Kind::Comment,
                        None => Kind::Comment,
                        _ => Kind::Initial,
                    };
                    let skip = if kind == Kind::Continuation { 2 } else { 1 };
                    // `      &` behind a tab is a continuation in column 6 of a mixed line.
                    return match bytes.get(i + 1) {
                        Some(b'&') if kind == Kind::Initial => card(Kind::Continuation, i + 2, false),
                        _ => card(kind, i + skip, false),
                    };
                }
                b' ' => {}
                b'!' => return card(Kind::Comment, 0, true),
                b'#' if self.is_directive(line) => return card(Kind::Directive, 0, true),
                b'&' if !has_label => return card(Kind::Continuation, i + 1, true),
                b'0'..=b'9' => has_label = true,
                // Text in the label columns: an error of the source, or a statement of a careless editor.
                _ => return card(Kind::Initial, i, true),
            }
        }
        if self.is_blank(line) {
            return card(Kind::Comment, 0, true);
        }
        match bytes.get(5) {
            Some(b' ' | b'0' | 0x0b | 0x0c) | None => {}
            Some(b'\t') => return card(Kind::Initial, 6.min(bytes.len()), false),
            Some(_) => return card(Kind::Continuation, 6, true),
        }
        let rest = bytes.get(6..).unwrap_or_default();
        match rest.iter().find(|&&byte| !is_space(byte)) {
            Some(b'!') if !has_label => card(Kind::Comment, 0, true),
            None if !has_label => card(Kind::Comment, 0, true),
            _ => card(Kind::Initial, 6.min(bytes.len()), true),
        }
    }

    fn label(&self, card: Card) -> Option<u32> {
        let label_end = card.text.min(card.line.start + 5).max(card.line.start);
        let sentinel = if card.is_optional { sentinel_length(self.bytes_of(card.line)) } else { 0 };
        let mut label = None;
        for &byte in &self.bytes[card.line.start + sentinel..label_end] {
            match byte {
                b'0'..=b'9' => {
                    label =
                        Some(label.unwrap_or(0u32).saturating_mul(10).saturating_add(u32::from(byte - b'0')));
                }
                b' ' | b'\t' => {}
                _ => return None,
            }
        }
        label
    }

    /// The next line of the statement. Directives in between are only passed over when a continuation follows, or when
    /// they end a branch that was entered inside the statement.
    fn fixed_continuation(&mut self, n_open: &mut usize, is_optional: bool) -> Option<Card> {
        let mut kept = (self.at, self.pending_endifs.len(), *n_open);
        let had_branches = self.has_branches;
        while let Some(line) = self.physical(self.at) {
            let card = self.card(line);
            match card.kind {
                // A line that may be a comment goes on with its own kind only.
                _ if card.is_optional && !is_optional => self.at = line.next,
                Kind::Continuation if card.is_optional == is_optional => return Some(card),
                Kind::Continuation => break,
                Kind::Comment => self.at = self.behind_comment(card.line),
                Kind::Directive if *n_open == 0 && is_else(self.bytes_of(line)) => {
                    let Some(endif) = self.joins(line) else { break };
                    // The statement of the other branch goes on in the same place and is read next.
                    self.resume = self.resume.or(Some((line.start, self.pending_endifs.len())));
                    self.at = endif;
                }
                Kind::Directive => {
                    self.directive_inside(line, n_open);
                    if *n_open < kept.2 {
                        kept = (self.at, self.pending_endifs.len(), *n_open);
                    }
                }
                Kind::Initial => break,
            }
        }
        self.at = kept.0;
        self.pending_endifs.truncate(kept.1);
        *n_open = kept.2;
        // Conditions behind the statement are none of its own.
        self.has_branches = had_branches;
        None
    }

    /// Whether the first line from `at` on that is neither comment nor directive continues a statement.
    pub(super) fn is_continued_behind_directives(&self, mut at: usize) -> bool {
        while let Some(line) = self.physical(at) {
            match self.card(line).kind {
                Kind::Comment => at = self.behind_comment(line),
                Kind::Directive => at = line.next,
                kind => return kind == Kind::Continuation,
            }
        }
        false
    }

    /// Whether the first line from `at` on that is no comment continues a statement.
    pub(super) fn is_continued_at(&self, mut at: usize) -> bool {
        while let Some(line) = self.physical(at) {
            match self.card(line).kind {
                Kind::Comment => at = self.behind_comment(line),
                kind => return kind == Kind::Continuation,
            }
        }
        false
    }

    fn append(&self, line: &mut LogicalLine, card: Card, width: Width, open: &mut Open) {
        let mut end = card.line.end;
        if card.has_columns && width == Width::Standard {
            let limit = self.end_of_columns(card);
            if limit < end {
                line.is_cut |= self.bytes[limit..end].iter().any(|&byte| !is_space(byte));
                end = limit;
            }
        }
        let mut i = card.text;
        if open.hollerith > 0 {
            i = self.take_hollerith(line, card, i, end, open);
        }
        while i < end {
            let byte = self.bytes[i];
            if open.quote.is_none() {
                self.note_macro(line, i, end);
            }
            match open.quote {
                Some(mark) => {
                    if byte == mark {
                        open.quote = None;
                    }
                    line.push(byte, i);
                }
                None => match byte {
                    b'!' => return,
                    b'/' if is_c_comment_in(&self.bytes[i..end]) => {
                        i += c_comment_length(&self.bytes[i..end]) - 1
                    }
                    b'\'' | b'"' => {
                        open.quote = Some(byte);
                        line.push(byte, i);
                    }
                    b'h' | b'H' => match hollerith_length(line.text.as_bytes()) {
                        Some((digits, n)) => {
                            begin_hollerith(line, digits);
                            open.hollerith = n;
                            i = self.take_hollerith(line, card, i + 1, end, open);
                            continue;
                        }
                        None => line.push(b'h', i),
                    },
                    _ if is_space(byte) => {
                        if line.first_gap.is_none() && !line.text.is_empty() {
                            line.first_gap = Some(line.text.len());
                        }
                    }
                    _ if byte.is_ascii() => line.push(byte.to_ascii_lowercase(), i),
                    _ => line.push(FOREIGN, i),
                },
            }
            i += 1;
        }
    }

    /// Takes the characters of a Hollerith constant from `i` on and returns where they end. The blank end of a short
    /// card counts, and what doesn't fit goes on in the next one.
    fn take_hollerith(
        &self,
        line: &mut LogicalLine,
        card: Card,
        i: usize,
        end: usize,
        open: &mut Open,
    ) -> usize {
        let here = open.hollerith.min(end - i);
        for k in 0..here {
            line.push(b'h', i + k);
        }
        open.hollerith -= here;
        if open.hollerith > 0 {
            let blanks = (card.line.start + FIXED_COLUMNS).saturating_sub(end);
            open.hollerith -= blanks.min(open.hollerith);
        }
        if open.hollerith == 0 {
            line.push(b'\'', (i + here).saturating_sub(1));
        }
        i + here
    }

    /// Column 72 counted in characters, so that a comment in another language earlier in the line does no harm.
    fn end_of_columns(&self, card: Card) -> usize {
        let bytes = self.bytes_of(card.line);
        if bytes.len() <= FIXED_COLUMNS {
            return card.line.end;
        }
        let is_lead = |byte: &u8| byte & 0xc0 != 0x80;
        let mut n_columns = 0;
        for (i, byte) in bytes.iter().enumerate() {
            if is_lead(byte) {
                if n_columns == FIXED_COLUMNS {
                    return card.line.start + i;
                }
                n_columns += 1;
            }
        }
        card.line.end
    }
}

/// Length of the mark that makes a comment of a card for those who don't heed it: `D`, or `!$`, `C$`, `*$`.
fn sentinel_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'd' | b'D', ..] => 1,
        [b'!' | b'c' | b'C' | b'*', b'$', ..] => 2,
        _ => 0,
    }
}

/// The kind of a card with such a mark, whose label field holds nothing but a label.
fn optional_kind(bytes: &[u8]) -> Option<Kind> {
    let length = sentinel_length(bytes);
    if length == 0 || bytes.len() <= 6 {
        return None;
    }
    let is_margin = bytes[length..5].iter().all(|byte| *byte == b' ' || byte.is_ascii_digit());
    let has_text = bytes[6..].iter().any(|&byte| !is_space(byte));
    match bytes[5] {
        _ if !is_margin || !has_text => None,
        b' ' | b'0' => Some(Kind::Initial),
        b'\t' => None,
        _ => Some(Kind::Continuation),
    }
}
