//! Payloads of collective calls, between ordinary memory and words of the segment. Never touches window memory.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::element::Basic;

/// Writes `bytes` into shared words, padding the last one with zeros.
///
/// # Panics
/// If the words are too few.
pub(crate) fn store(words: &[AtomicU64], bytes: &[u8]) {
    let mut chunks = bytes.chunks_exact(8);
    let mut at = 0;
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        // Relaxed: the barrier that follows orders the words; single ones carry no meaning.
        words[at].store(u64::from_ne_bytes(word), Ordering::Relaxed);
        at += 1;
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        words[at].store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
}

/// Reads `bytes.len()` bytes from shared words.
///
/// # Panics
/// If the words are too few.
pub(crate) fn load(words: &[AtomicU64], bytes: &mut [u8]) {
    let mut chunks = bytes.chunks_exact_mut(8);
    let mut at = 0;
    for chunk in &mut chunks {
        // Relaxed: ordered by the barrier that came before.
        chunk.copy_from_slice(&words[at].load(Ordering::Relaxed).to_ne_bytes());
        at += 1;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let word = words[at].load(Ordering::Relaxed).to_ne_bytes();
        let len = rest.len();
        rest.copy_from_slice(&word[..len]);
    }
}

/// Writes elements into shared words, as many as fit to a word.
///
/// # Panics
/// If the words are too few.
pub(crate) fn store_elements<T: Basic>(words: &[AtomicU64], elements: impl Iterator<Item = T>) {
    let bits = 8 * size_of::<T>();
    let (mut at, mut word, mut filled) = (0, 0, 0);
    for element in elements {
        word |= element.to_bits() << filled;
        filled += bits;
        if filled == 64 {
            // Relaxed: as in `store`.
            words[at].store(word, Ordering::Relaxed);
            (at, word, filled) = (at + 1, 0, 0);
        }
    }
    if 0 < filled {
        words[at].store(word, Ordering::Relaxed);
    }
}

/// Reads `count` elements from shared words and gives each with its place.
///
/// # Panics
/// If the words are too few.
pub(crate) fn load_elements<T: Basic>(words: &[AtomicU64], count: usize, mut give: impl FnMut(usize, T)) {
    let bits = 8 * size_of::<T>();
    let per_word = 8 / size_of::<T>();
    for at in 0..count {
        // Relaxed: as in `load`.
        let word = words[at / per_word].load(Ordering::Relaxed);
        give(at, T::from_bits(word >> (bits * (at % per_word))));
    }
}

/// Writes a short text into a fixed number of words, cutting it if need be.
pub(crate) fn store_name(words: &[AtomicU64], text: &str) {
    let room = words.len() * 8;
    let bytes = &text.as_bytes()[..text.len().min(room)];
    let mut padded = bytes.chunks(8);
    for word in words {
        let mut value = [0; 8];
        if let Some(chunk) = padded.next() {
            value[..chunk.len()].copy_from_slice(chunk)
        }
        word.store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
}

/// Reads a short text back.
pub(crate) fn load_name(words: &[AtomicU64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_survive_at_every_length() {
        let words: Vec<AtomicU64> = (0..9).map(|_| AtomicU64::new(!0)).collect();
        for len in 0..=72 {
            let sent: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            store(&words, &sent);
            let mut got = vec![0; len];
            load(&words, &mut got);
            assert_eq!(got, sent);
        }
    }

    #[test]
    fn names_are_cut_not_refused() {
        let words: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(!0)).collect();
        store_name(&words, "barrier");
        assert_eq!(load_name(&words), "barrier");
        store_name(&words, "a name that is much too long for a board");
        assert_eq!(load_name(&words), "a name that is much too ");
    }
}
