//! Texts that many files include are parsed once. Never changes what a file's tree is: an included text is only taken from
//! here where reading it in its place would give the same.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::tree::Tree;
use crate::form::{Form, MacroChange, Macros, Sureness, text_score};

/// Texts below this size are not worth the trouble.
pub(super) const TEXT_BYTES_MIN: usize = 256;

/// Room for what is kept, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Most sets of macros behind which a text is kept.
const VARIANTS_MAX: usize = 32;

/// Most files of which something is remembered.
const FILES_MAX: usize = 1 << 16;

/// Most texts that are remembered.
const TEXTS_MAX: usize = 1 << 20;

/// On what the parse of a text depends, beside the text itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Before {
    /// The macros before it whose names it holds.
    pub(super) macros: u64,
    pub(super) sureness: Sureness,
    /// Whether a file that may define macros is missing before it.
    pub(super) has_missing_files: bool,
    /// The names before it that stand for types although nothing defines them.
    pub(super) macro_types: u64,
}

/// What a text comes to.
pub(super) struct Fragment {
    /// Its statements and their expressions; places are those of the text in which it was parsed.
    pub(super) tree: Tree,
    /// Where it began there.
    pub(super) start: u32,
    /// The macros that it defines.
    pub(super) changes: Vec<MacroChange>,
}

/// What is known about a text behind certain macros.
#[derive(Clone)]
pub(super) enum Known {
    /// Nothing: it was never met.
    New,
    /// It was met once.
    Once,
    /// It must be read in its place.
    InPlace,
    /// This.
    Parsed(Arc<Fragment>),
}

/// One text.
pub(super) struct Text {
    bytes: Box<[u8]>,
    /// The words in it that could name macros.
    words: HashSet<Box<[u8]>>,
    known: Mutex<Vec<(Before, Known)>>,
}

/// Included texts of a run, and what they come to.
#[derive(Default)]
pub struct Headers {
    texts: Mutex<HashMap<(u64, Form), Met>>,
    n_bytes: AtomicUsize,
    /// What is known about whole files, by the places of their bytes, which stay while they are held here.
    files: Mutex<HashMap<usize, Whole>>,
}

/// A whole file.
struct Whole {
    /// Held so that no other bytes come to lie in this place.
    _bytes: Arc<[u8]>,
    score: i32,
    /// How many statements are not understood in which form, where that was asked.
    n_unknown: Vec<(Form, usize)>,
}

/// A text that was met once, or more often.
#[derive(Clone)]
enum Met {
    Once,
    Often(Arc<Text>),
}

impl Headers {
    /// What the lines of a file say about its form.
    pub(crate) fn score(&self, bytes: &Arc<[u8]>) -> i32 {
        self.whole(bytes, |whole| whole.score)
    }

    /// How many statements of a file are not understood when it stands alone.
    pub(super) fn n_unknown(&self, bytes: &Arc<[u8]>, form: Form) -> usize {
        let known = self.whole(bytes, |whole| whole.n_unknown.iter().find(|(own, _)| *own == form).copied());
        if let Some((_, n)) = known {
            return n;
        }
        let n = super::parse(bytes, form).n_unknown();
        self.whole(bytes, |whole| whole.n_unknown.push((form, n)));
        n
    }

    fn whole<R>(&self, bytes: &Arc<[u8]>, with: impl FnOnce(&mut Whole) -> R) -> R {
        let key = bytes.as_ptr().addr();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(whole) = files.get_mut(&key) {
            return with(whole);
        }
        drop(files);
        let mut whole = Whole { _bytes: Arc::clone(bytes), score: text_score(bytes), n_unknown: Vec::new() };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.len() < FILES_MAX {
            true => with(files.entry(key).or_insert(whole)),
            false => with(&mut whole),
        }
    }

    /// The text, once it is met for the second time. Most are included once, and are not worth keeping.
    pub(super) fn text(&self, bytes: &[u8], form: Form) -> Option<Arc<Text>> {
        let key = (hash_of(bytes), form);
        let known = {
            let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
            match texts.get(&key) {
                Some(known) => known.clone(),
                None => {
                    if texts.len() < TEXTS_MAX {
                        texts.insert(key, Met::Once);
                    }
                    return None;
                }
            }
        };
        let text = match known {
            Met::Often(text) => text,
            Met::Once => {
                let text =
                    Arc::new(Text { bytes: bytes.into(), words: words(bytes), known: Mutex::default() });
                // Relaxed: a figure that orders nothing.
                let weight = bytes.len() + text.words.len() * 48;
                if self.n_bytes.fetch_add(weight, Ordering::Relaxed) > KEPT_BYTES_MAX {
                    return None;
                }
                let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
                texts.insert(key, Met::Often(Arc::clone(&text)));
                text
            }
        };
        (*text.bytes == *bytes).then_some(text)
    }

    /// Keeps what a text comes to, if there is room.
    pub(super) fn learn(&self, text: &Text, before: Before, fragment: Option<Arc<Fragment>>) {
        let known = match fragment {
            Some(fragment)
                if self.n_bytes.fetch_add(fragment.tree.weight(), Ordering::Relaxed) <= KEPT_BYTES_MAX =>
            {
                Known::Parsed(fragment)
            }
            _ => Known::InPlace,
        };
        let mut all = text.known.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|(own, _)| *own == before) {
            Some((_, own)) => *own = known,
            None => all.push((before, known)),
        }
    }
}

impl Text {
    /// What is known about the text behind such macros.
    pub(super) fn meet(&self, before: Before) -> Known {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter().find(|(own, _)| *own == before) {
            Some((_, known)) => known.clone(),
            None if all.len() < VARIANTS_MAX => {
                all.push((before, Known::Once));
                Known::New
            }
            None => Known::InPlace,
        }
    }

    /// What tells these macros from others as far as this text goes.
    pub(super) fn concern(&self, macros: &Macros) -> u64 {
        macros.concern(|name| self.words.contains(name))
    }
}

fn words(bytes: &[u8]) -> HashSet<Box<[u8]>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.split(|byte| !is_word(byte)).filter(|word| !word.is_empty()).map(Box::from).collect()
}

/// A quick hash of a text.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR).rotate_left(29);
    }
    for &byte in chunks.remainder() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(FACTOR).rotate_left(29);
    }
    hash ^ (hash >> 32)
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headers").finish_non_exhaustive()
    }
}
