//! Macros of the preprocessor: what they are defined as, and logical lines with their texts put in. Never evaluates a
//! condition: where a macro has several definitions, all are kept.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Form, LogicalLine, MacroUse, Run, is_space, is_word};

/// Most definitions of one macro that are kept.
const DEFINITIONS_MAX: usize = 4;

/// Deepest nesting of macros in macros.
const DEPTH_MAX: usize = 32;

/// Most characters that macros may add to a line.
const EXPANSION_BYTES_MAX: usize = 1 << 16;

/// Index of a macro.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MacroId(u32);

/// Whether a definition holds wherever the text behind it is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sureness {
    /// No condition stands around it.
    Always,
    /// It stands inside an `#if`.
    Conditional,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Definition {
    /// Names of the parameters; `None` for a macro without parentheses.
    parameters: Option<Vec<Box<str>>>,
    body: Box<[u8]>,
}

/// The macros that are defined at a place.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    table: Arc<Table>,
}

/// A line that defines a macro, or takes its definition away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MacroChange {
    /// What stands behind `#define`.
    Define(String, Sureness),
    /// What stands behind `#undef`.
    Undefine(String, Sureness),
}

#[derive(Clone, Debug)]
struct Table {
    index: HashMap<Box<[u8]>, MacroId>,
    definitions: Vec<Vec<Definition>>,
    /// One of each macro, made of its name and its definitions.
    hashes: Vec<u64>,
    /// First bytes of their names.
    starts: [bool; 256],
}

impl Default for Table {
    fn default() -> Table {
        Table { index: HashMap::new(), definitions: Vec::new(), hashes: Vec::new(), starts: [false; 256] }
    }
}

impl Macros {
    /// Macros as a command line gives them: `NAME`, `NAME=text`, `NAME(a,b)=text`.
    pub fn of_command_line<'a>(definitions: impl IntoIterator<Item = &'a str>) -> Macros {
        let mut macros = Macros::default();
        for definition in definitions {
            let text = match definition.split_once('=') {
                Some((name, text)) => format!("{name} {text}"),
                None => format!("{definition} 1"),
            };
            macros.define(&text, Sureness::Always);
        }
        macros
    }

    /// Notes a definition, of which `text` is what stands behind `#define`.
    pub fn define(&mut self, text: &str, sureness: Sureness) {
        let text = without_comments(text.trim().as_bytes());
        let length = text.iter().take_while(|&&byte| is_word(byte)).count();
        let (name, mut rest) = text.split_at(length);
        if name.first().is_none_or(u8::is_ascii_digit) {
            return;
        }
        let mut parameters = None;
        if rest.first() == Some(&b'(') {
            let Some(close) = rest.iter().position(|&byte| byte == b')') else { return };
            let list = String::from_utf8_lossy(&rest[1..close]);
            let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            parameters = Some(names.map(Box::from).collect());
            rest = &rest[close + 1..];
        }
        let definition = Definition { parameters, body: rest.trim_ascii().into() };
        let known = self.table.index.get(name).map(|id| &self.table.definitions[id.0 as usize]);
        let is_known = known.is_some_and(|known| match sureness {
            Sureness::Always => known.as_slice() == std::slice::from_ref(&definition),
            Sureness::Conditional => known.len() >= DEFINITIONS_MAX || known.contains(&definition),
        });
        if is_known {
            return;
        }
        let table = Arc::make_mut(&mut self.table);
        let next = MacroId(table.definitions.len() as u32);
        let id = *table.index.entry(name.into()).or_insert(next);
        if id == next {
            table.definitions.push(Vec::new());
            table.hashes.push(0);
        }
        table.starts[usize::from(name[0])] = true;
        let definitions = &mut table.definitions[id.0 as usize];
        if sureness == Sureness::Always {
            definitions.clear();
        }
        definitions.push(definition);
        let mut hasher = DefaultHasher::new();
        (name, definitions).hash(&mut hasher);
        table.hashes[id.0 as usize] = hasher.finish();
    }

    /// Notes an `#undef`; one that may not be compiled changes nothing.
    pub fn undefine(&mut self, name: &str, sureness: Sureness) {
        if sureness == Sureness::Always
            && let Some(&id) = self.table.index.get(name.as_bytes())
            && !self.table.definitions[id.0 as usize].is_empty()
        {
            Arc::make_mut(&mut self.table).definitions[id.0 as usize].clear();
        }
    }

    /// What tells these macros from others for a text that holds certain words: the definitions of those that are macros,
    /// and of the macros in their texts.
    pub fn concern(&self, holds: impl Fn(&[u8]) -> bool) -> u64 {
        let table = &*self.table;
        let mut is_met = vec![false; table.definitions.len()];
        let mut queue: Vec<MacroId> = Vec::new();
        let mut meet = |id: MacroId, queue: &mut Vec<MacroId>| {
            let is_defined = !table.definitions[id.0 as usize].is_empty();
            if is_defined && !std::mem::replace(&mut is_met[id.0 as usize], true) {
                queue.push(id);
            }
        };
        for (name, &id) in &table.index {
            if holds(name) {
                meet(id, &mut queue);
            }
        }
        // The order in which they are met must not count.
        let mut sum = 0u64;
        while let Some(id) = queue.pop() {
            for definition in &table.definitions[id.0 as usize] {
                for word in definition.body.split(|&byte| !is_word(byte)) {
                    if let Some(&inner) = table.index.get(word) {
                        meet(inner, &mut queue);
                    }
                }
            }
            sum = sum.wrapping_add(table.hashes[id.0 as usize]);
        }
        sum
    }

    /// Defines and undefines macros as another text did.
    pub fn repeat(&mut self, changes: &[MacroChange]) {
        for change in changes {
            match change {
                MacroChange::Define(text, sureness) => self.define(text, *sureness),
                MacroChange::Undefine(name, sureness) => self.undefine(name, *sureness),
            }
        }
    }

    pub(super) fn may_start_with(&self, byte: u8) -> bool {
        self.table.starts[usize::from(byte)]
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<MacroId> {
        let id = *self.table.index.get(name)?;
        (!self.table.definitions[id.0 as usize].is_empty()).then_some(id)
    }

    /// How many readings a line has: as many as the macro that it begins with has definitions.
    pub fn n_readings(&self, line: &LogicalLine) -> usize {
        match line.uses.first() {
            Some(first) if first.at == 0 => self.table.definitions[first.id.0 as usize].len(),
            Some(_) => 1,
            None => 0,
        }
    }

    /// Fills `out` with the line in which macros are replaced by their texts; of the macro at its beginning the
    /// definition number `reading` is taken. `false` where that fails: an argument list that doesn't end, too long a
    /// text.
    pub fn expand(&self, line: &LogicalLine, form: Form, reading: usize, out: &mut LogicalLine) -> bool {
        let mut expansion = Expansion {
            macros: self,
            line,
            form,
            reading,
            active: Vec::new(),
            n_lists: 0,
            budget: EXPANSION_BYTES_MAX,
            is_comment: false,
        };
        let mut text = Vec::with_capacity(line.text.len() * 2);
        if !expansion.range(0, line.text.len(), &mut text) {
            return false;
        }
        out.clear(line.span.start as usize);
        out.label = line.label;
        out.span = line.span;
        out.is_cut = line.is_cut;
        out.is_too_long = line.is_too_long;
        out.is_optional = line.is_optional;
        out.is_fragment = line.is_fragment;
        out.first_gap =
            line.first_gap.filter(|&gap| line.uses.first().is_some_and(|first| gap < first.at as usize));
        for character in text {
            out.push_expanded(character);
        }
        true
    }
}

/// A character with the bytes of the file that it stands for.
#[derive(Clone, Copy)]
pub(super) struct Character {
    pub(super) byte: u8,
    pub(super) source: u32,
    /// Zero for a character that stands in the file itself.
    pub(super) width: u32,
}

impl LogicalLine {
    pub(super) fn push_expanded(&mut self, character: Character) {
        let Character { byte, source, width } = character;
        if width == 0 {
            self.push(byte, source as usize);
            return;
        }
        let at = self.text.len() as u32;
        if self.runs.last().is_none_or(|run| run.source != source || run.width != width) {
            self.runs.push(Run { at, source, width });
        }
        self.text.push(char::from(byte));
    }
}

struct Expansion<'a> {
    macros: &'a Macros,
    line: &'a LogicalLine,
    form: Form,
    reading: usize,
    /// Macros whose texts are being put in; none is put into itself.
    active: Vec<MacroId>,
    /// Argument lists around the place at hand.
    n_lists: usize,
    /// Characters that may still be added.
    budget: usize,
    /// A macro stands for the beginning of a comment, which reaches to the end of the line.
    is_comment: bool,
}

/// A parameter and what it stands for.
type Argument<'a> = (&'a str, Vec<Character>);

impl<'a> Expansion<'a> {
    /// The characters `start..end` of the line.
    fn range(&mut self, start: usize, end: usize, out: &mut Vec<Character>) -> bool {
        let line = self.line;
        let mut at = start;
        let first = line.uses.partition_point(|used| (used.at as usize) < start);
        for &used in &line.uses[first..] {
            let MacroUse { at: name, length, id } = used;
            let name = name as usize;
            if name >= end {
                break;
            }
            // An argument of a macro that was put in already.
            if name < at {
                continue;
            }
            self.copy(at, name, out);
            at = name;
            let behind = name + length as usize;
            let macros = self.macros;
            let definitions = &macros.table.definitions[id.0 as usize];
            let reading = if name == 0 { self.reading } else { 0 };
            let Some(definition) = definitions.get(reading).or(definitions.first()) else { continue };
            let mut arguments: Vec<Argument<'a>> = Vec::new();
            let mut last = behind;
            if let Some(parameters) = &definition.parameters {
                let text = &line.text.as_bytes()[..end];
                let Some(list) = open_list(text, behind) else { continue };
                let Some((ranges, close)) = split_list(text, list) else { return false };
                if !fits(parameters.len(), &ranges, text) {
                    continue;
                }
                if self.n_lists >= DEPTH_MAX {
                    return false;
                }
                self.n_lists += 1;
                for (parameter, &(from, to)) in parameters.iter().zip(&ranges) {
                    let mut argument = Vec::new();
                    if !self.range(from, to, &mut argument) {
                        return false;
                    }
                    arguments.push((parameter, trimmed(argument)));
                }
                self.n_lists -= 1;
                last = close + 1;
            }
            let span = line.span_of(name, last);
            let site = (span.start, (span.end - span.start).max(1));
            self.active.push(id);
            let is_done = self.body(&definition.body, &arguments, site, out);
            self.active.pop();
            if !is_done || self.is_comment {
                return is_done;
            }
            at = last;
        }
        self.copy(at, end, out);
        true
    }

    fn copy(&self, start: usize, end: usize, out: &mut Vec<Character>) {
        for (i, &byte) in self.line.text.as_bytes()[start..end].iter().enumerate() {
            out.push(Character { byte, source: self.line.source_of(start + i), width: 0 });
        }
    }

    /// The text of a definition with its arguments and the macros in it, all standing for `site`.
    fn body(
        &mut self,
        body: &'a [u8],
        arguments: &[Argument<'a>],
        site: (u32, u32),
        out: &mut Vec<Character>,
    ) -> bool {
        if self.active.len() > DEPTH_MAX {
            return false;
        }
        let mut quote = None;
        let mut i = 0;
        while let Some(&byte) = body.get(i) {
            if is_word(byte) {
                let length = body[i..].iter().take_while(|&&byte| is_word(byte)).count();
                let word = &body[i..i + length];
                i += length;
                let argument = arguments.iter().find(|(name, _)| name.as_bytes() == word);
                if let Some((_, text)) = argument {
                    if !self.spend(text.len()) {
                        return false;
                    }
                    out.extend_from_slice(text);
                    continue;
                }
                if quote.is_none() {
                    match self.inner(word, body, i, arguments, site, out) {
                        Inner::Replaced(_) if self.is_comment => return true,
                        Inner::Replaced(behind) => {
                            i = behind;
                            continue;
                        }
                        Inner::Failed => return false,
                        Inner::None => {}
                    }
                }
                let is_literal = quote.is_some();
                let letters =
                    word.iter().map(|byte| if is_literal { *byte } else { byte.to_ascii_lowercase() });
                out.extend(letters.map(|byte| Character { byte, source: site.0, width: site.1 }));
                if !self.spend(length) {
                    return false;
                }
                continue;
            }
            i += 1;
            match quote {
                Some(mark) if byte == mark => quote = None,
                Some(_) => {}
                None => match byte {
                    b'\'' | b'"' => quote = Some(byte),
                    b'!' => {
                        // `#define OMP !$omp`; behind anything else only the macro's text is meant.
                        self.is_comment |= i == 1;
                        return true;
                    }
                    b'#' if body.get(i) == Some(&b'#') => {
                        i += 1;
                        while out.last().is_some_and(|last| is_space(last.byte)) {
                            out.pop();
                        }
                        i += body[i..].iter().take_while(|&&byte| is_space(byte)).count();
                        continue;
                    }
                    b'#' => {
                        i += self.stringified(&body[i..], arguments, site, out);
                        continue;
                    }
                    _ if is_space(byte) || byte == b'\n' || byte == b'\r' => {
                        if self.form == Form::Free {
                            out.push(Character { byte: b' ', source: site.0, width: site.1 });
                        }
                        continue;
                    }
                    _ => {}
                },
            }
            let byte = if byte.is_ascii() && byte != 0 { byte } else { super::FOREIGN };
            out.push(Character { byte, source: site.0, width: site.1 });
            if !self.spend(1) {
                return false;
            }
        }
        true
    }

    /// A macro inside the text of another one; `behind` is the place behind its name.
    fn inner(
        &mut self,
        name: &[u8],
        body: &'a [u8],
        behind: usize,
        arguments: &[Argument<'a>],
        site: (u32, u32),
        out: &mut Vec<Character>,
    ) -> Inner {
        let Some(id) = self.macros.find(name).filter(|id| !self.active.contains(id)) else {
            return Inner::None;
        };
        let macros = self.macros;
        let Some(definition) = macros.table.definitions[id.0 as usize].first() else { return Inner::None };
        let mut own: Vec<Argument<'a>> = Vec::new();
        let mut next = behind;
        if let Some(parameters) = &definition.parameters {
            let Some(list) = open_list(body, behind) else { return Inner::None };
            let Some((ranges, close)) = split_list(body, list) else { return Inner::None };
            if !fits(parameters.len(), &ranges, body) {
                return Inner::None;
            }
            for (parameter, &(from, to)) in parameters.iter().zip(&ranges) {
                let mut argument = Vec::new();
                if !self.body(&body[from..to], arguments, site, &mut argument) {
                    return Inner::Failed;
                }
                own.push((parameter, trimmed(argument)));
            }
            next = close + 1;
        }
        self.active.push(id);
        let is_done = self.body(&definition.body, &own, site, out);
        self.active.pop();
        if is_done { Inner::Replaced(next) } else { Inner::Failed }
    }

    /// `#name` becomes the argument between quotes. Returns the length of the name.
    fn stringified(
        &mut self,
        rest: &[u8],
        arguments: &[Argument<'a>],
        site: (u32, u32),
        out: &mut Vec<Character>,
    ) -> usize {
        let length = rest.iter().take_while(|&&byte| is_word(byte)).count();
        let mark = Character { byte: b'"', source: site.0, width: site.1 };
        match arguments.iter().find(|(name, _)| name.as_bytes() == &rest[..length]) {
            Some((_, text)) => {
                out.push(mark);
                out.extend(text.iter().filter(|character| character.byte != b'"'));
                out.push(mark);
                length
            }
            None => {
                out.push(Character { byte: b'#', ..mark });
                0
            }
        }
    }

    fn spend(&mut self, n: usize) -> bool {
        match self.budget.checked_sub(n) {
            Some(left) => {
                self.budget = left;
                true
            }
            None => false,
        }
    }
}

enum Inner {
    /// Its text was put in; the text around it goes on there.
    Replaced(usize),
    None,
    Failed,
}

/// The place of the parenthesis that follows `at`.
fn open_list(text: &[u8], at: usize) -> Option<usize> {
    let blanks = text[at..].iter().take_while(|&&byte| is_space(byte)).count();
    (text.get(at + blanks) == Some(&b'(')).then_some(at + blanks)
}

/// The ranges between the commas of the list that opens at `open`, and the place of its closing parenthesis.
fn split_list(text: &[u8], open: usize) -> Option<(Vec<(usize, usize)>, usize)> {
    let mut ranges = Vec::new();
    let mut start = open + 1;
    let mut depth = 0usize;
    let mut quote = None;
    for (i, &byte) in text.iter().enumerate().skip(open + 1) {
        match quote {
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None => match byte {
                b'\'' | b'"' => quote = Some(byte),
                b'(' => depth += 1,
                b')' if depth == 0 => {
                    ranges.push((start, i));
                    return Some((ranges, i));
                }
                b')' => depth -= 1,
                b',' if depth == 0 => {
                    ranges.push((start, i));
                    start = i + 1;
                }
                _ => {}
            },
        }
    }
    None
}

/// Whether a list has as many arguments as a macro has parameters; an empty list has one or none.
fn fits(n_parameters: usize, ranges: &[(usize, usize)], text: &[u8]) -> bool {
    let is_empty = matches!(ranges, [(from, to)] if text[*from..*to].iter().all(|&byte| is_space(byte)));
    ranges.len() == n_parameters || (n_parameters == 0 && is_empty)
}

fn trimmed(mut text: Vec<Character>) -> Vec<Character> {
    while text.last().is_some_and(|last| is_space(last.byte)) {
        text.pop();
    }
    let blanks = text.iter().take_while(|character| is_space(character.byte)).count();
    text.drain(..blanks);
    text
}

/// Comments of the preprocessor's language vanish without a trace, so that `a/**/b` is one name.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut i = 0;
    while i < text.len() {
        if text[i..].starts_with(b"/*")
            && let Some(length) = text[i + 2..].windows(2).position(|pair| pair == b"*/")
        {
            i += length + 4;
            continue;
        }
        out.push(text[i]);
        i += 1;
    }
    out
}
