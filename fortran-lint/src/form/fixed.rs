//! Fixed form: labels in columns 1–5, continuation in column 6, text up to column 72. Never keeps a blank.

use rma_source::Span;

use super::free::replace_hollerith;
use super::{FIXED_COLUMNS, FOREIGN, Item, LogicalLine, Physical, Reader, Width, hollerith_length, is_space};

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
}

impl Reader<'_> {
    pub(super) fn next_fixed(&mut self, line: &mut LogicalLine, width: Width) -> Option<Item> {
        let mut card = loop {
            let card = self.card(self.physical(self.at)?);
            match card.kind {
                Kind::Comment => self.at = self.behind_comment(card.line),
                Kind::Directive => return Some(Item::Directive(self.take_directive(card.line))),
                // A continuation without a statement before it is read as a statement.
                Kind::Initial | Kind::Continuation => break card,
            }
        };
        self.began = card.line.start;
        line.clear(card.line.start);
        line.label = self.label(card);
        let mut quote = None;
        let mut n_open = 0;
        loop {
            self.at = card.line.next;
            self.append(line, card, width, &mut quote);
            match self.fixed_continuation(&mut n_open) {
                Some(next) => card = next,
                None => break,
            }
        }
        let start = line.runs.first().map_or(card.line.start, |run| run.source as usize);
        let end =
            line.text.len().checked_sub(1).map_or(card.line.end, |last| line.source_of(last) as usize + 1);
        line.span = Span::new(start, end);
        Some(Item::Statement)
    }

    fn card(&self, line: Physical) -> Card {
        let bytes = self.bytes_of(line);
        let card = |kind, text, has_columns| Card { kind, line, text: line.start + text, has_columns };
        match bytes.first() {
            None | Some(b'c' | b'C' | b'*' | b'!' | b'd' | b'D') => return card(Kind::Comment, 0, true),
            Some(b'#') => return card(Kind::Directive, 0, true),
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
        let mut label = None;
        for &byte in &self.bytes[card.line.start..label_end] {
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
    fn fixed_continuation(&mut self, n_open: &mut usize) -> Option<Card> {
        let mut kept = (self.at, self.pending_endifs.len(), *n_open);
        while let Some(line) = self.physical(self.at) {
            let card = self.card(line);
            match card.kind {
                Kind::Continuation => return Some(card),
                Kind::Comment => self.at = self.behind_comment(card.line),
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
        None
    }

    fn append(&self, line: &mut LogicalLine, card: Card, width: Width, quote: &mut Option<u8>) {
        let mut end = card.line.end;
        if card.has_columns && width == Width::Standard {
            let limit = self.end_of_columns(card);
            if limit < end {
                line.is_cut |= self.bytes[limit..end].iter().any(|&byte| !is_space(byte));
                end = limit;
            }
        }
        let mut i = card.text;
        while i < end {
            let byte = self.bytes[i];
            if quote.is_none() {
                self.note_macro(line, i, end);
            }
            match *quote {
                Some(mark) => {
                    if byte == mark {
                        *quote = None;
                    }
                    line.push(byte, i);
                }
                None => match byte {
                    b'!' => return,
                    b'\'' | b'"' => {
                        *quote = Some(byte);
                        line.push(byte, i);
                    }
                    b'h' | b'H' => match hollerith_length(line.text.as_bytes()) {
                        // The constant may run into the blank end of a short line.
                        Some((digits, n)) if i + n < end || i + n < card.line.start + FIXED_COLUMNS => {
                            replace_hollerith(line, digits, n.min(end - i - 1), i);
                            i += n;
                        }
                        _ => line.push(b'h', i),
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
