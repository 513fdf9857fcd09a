//! Which bytes of a range were written: one bit per byte, and over each 64 words of bits one more bit that says whether one
//! of them may be set, up to a single word. Never knows the bytes themselves.
//!
//! Any number of ranks add marks while one, the owner, takes them away. Whoever writes bytes adds their marks afterwards, and
//! the owner takes marks before it reads their bytes, so a write that it misses leaves its mark for the next time.
//!
//! # No mark is lost
//!
//! Marks are added from the lowest level up, and a bit that is set already is not set again. They are taken from the top
//! down. Between a bit and the look at the one above it stands a sequentially consistent fence, as there is between taking
//! the one above and taking the bit: so either the one that adds sees the upper bit gone, and sets it, or the owner sees
//! the lower bit, and takes it.

use super::primitive::{AtomicU64, Ordering, fence};

/// Bits of a word, each of which stands for a byte or for a word of the level below.
const BITS: usize = 64;
/// More levels than these would mark more bytes than an address can name.
const LEVELS_MAX: usize = 11;

/// How many words mark this many bytes.
pub(crate) const fn words_for(bytes: usize) -> usize {
    let mut level = bytes.div_ceil(BITS);
    let mut words = level;
    while 1 < level {
        level = level.div_ceil(BITS);
        words += level;
    }
    words
}

/// The marks of a range of bytes. All words zero is the state without marks.
#[derive(Clone, Copy)]
pub(crate) struct Marks<'a> {
    words: &'a [AtomicU64],
    bytes: usize,
}

impl<'a> Marks<'a> {
    /// The marks of `bytes` bytes in as many words as [`words_for`] says.
    #[inline]
    pub(crate) fn new(words: &'a [AtomicU64], bytes: usize) -> Marks<'a> {
        debug_assert_eq!(words.len(), words_for(bytes), "words for {bytes} bytes");
        Marks { words, bytes }
    }

    /// Marks bytes that were written, whoever else adds or takes marks.
    #[inline]
    pub(crate) fn add(&self, start: usize, len: usize) {
        self.climb(start, len, |level, word, bits| match (level, bits) {
            // Release: pairs with the Acquire in `take`: the bytes come with their marks.
            (0, u64::MAX) => word.store(bits, Ordering::Release),
            (0, _) => {
                word.fetch_or(bits, Ordering::Release);
            }
            // Acquire: pairs with the Release in `take`: a bit that was set after the owner passed shows that it passed the
            // levels above.
            _ if word.load(Ordering::Acquire) & bits == bits => {}
            // AcqRel: pairs with `take` in both directions.
            _ => {
                word.fetch_or(bits, Ordering::AcqRel);
            }
        });
    }

    /// Takes all marks away and gives the marked ranges as start and length, ascending and apart from each other.
    pub(crate) fn take(&self, each: impl FnMut(usize, usize)) {
        if self.words.is_empty() {
            return;
        }
        let mut bases = [0; LEVELS_MAX];
        let mut top = 0;
        let mut words = self.bytes.div_ceil(BITS);
        while 1 < words {
            bases[top + 1] = bases[top] + words;
            words = words.div_ceil(BITS);
            top += 1;
        }
        let mut runs = Runs { run: 0..0, each };
        self.descend(&bases, top, 0, &mut runs);
        runs.finish();
    }

    fn descend(
        &self,
        bases: &[usize; LEVELS_MAX],
        level: usize,
        at: usize,
        runs: &mut Runs<impl FnMut(usize, usize)>,
    ) {
        let word = &self.words[bases[level] + at];
        // Relaxed: what the caller has been told about is visible; other marks may wait for the next time.
        if word.load(Ordering::Relaxed) == 0 {
            return;
        }
        // AcqRel: pairs with the Release and the Acquire in `add`.
        let mut bits = word.swap(0, Ordering::AcqRel);
        if 0 < level {
            // Pairs with the fence in `climb`.
            fence(Ordering::SeqCst);
        }
        while bits != 0 {
            let first = bits.trailing_zeros() as usize;
            match level {
                0 => {
                    let len = (bits >> first).trailing_ones() as usize;
                    runs.extend(at * BITS + first, len);
                    // Adding the lowest bit carries through the run.
                    bits &= bits.wrapping_add(1 << first);
                }
                _ => {
                    self.descend(bases, level - 1, at * BITS + first, runs);
                    bits &= bits - 1;
                }
            }
        }
    }

    /// Sets the bits of a range of bytes and then those above them.
    #[inline]
    fn climb(&self, start: usize, len: usize, set: impl Fn(usize, &AtomicU64, u64)) {
        let mut level = 0;
        self.levels(start, len, |words, first, last| {
            if level == 1 {
                // Pairs with the fence in `descend`.
                fence(Ordering::SeqCst);
            }
            each_word(first, last, |at, bits| set(level, &words[at], bits));
            level += 1;
        });
    }

    /// Gives the words of each level, from the lowest up, and the first and last bit that stand for the range there.
    #[inline]
    fn levels(&self, start: usize, len: usize, mut each: impl FnMut(&[AtomicU64], usize, usize)) {
        if len == 0 {
            return;
        }
        let (mut first, mut last) = (start, start + (len - 1));
        let mut rest = self.words;
        let mut count = self.bytes.div_ceil(BITS);
        loop {
            let (words, above) = rest.split_at(count);
            each(words, first, last);
            if count <= 1 {
                return;
            }
            (rest, count) = (above, count.div_ceil(BITS));
            (first, last) = (first / BITS, last / BITS);
        }
    }
}

/// Gives the words that hold the bits from `first` to `last`, and which of their bits are meant.
#[inline]
fn each_word(first: usize, last: usize, mut each: impl FnMut(usize, u64)) {
    let (from, to) = (first / BITS, last / BITS);
    let low = u64::MAX << (first % BITS);
    let high = u64::MAX >> (BITS - 1 - last % BITS);
    if from == to {
        return each(from, low & high);
    }
    each(from, low);
    for at in from + 1..to {
        each(at, u64::MAX);
    }
    each(to, high);
}

/// Joins runs that touch.
struct Runs<F> {
    run: std::ops::Range<usize>,
    each: F,
}

impl<F: FnMut(usize, usize)> Runs<F> {
    fn extend(&mut self, start: usize, len: usize) {
        if self.run.end == start && !self.run.is_empty() {
            self.run.end += len;
        } else {
            self.finish();
            self.run = start..start + len;
        }
    }

    fn finish(&mut self) {
        if !self.run.is_empty() {
            (self.each)(self.run.start, self.run.len());
            self.run = 0..0;
        }
    }
}
