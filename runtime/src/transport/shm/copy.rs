//! Copies bytes into, out of and between windows, whatever peers do to them meanwhile. Never asks whether a copy is
//! allowed: bounds and permission are the caller's, in `window/raw`.
//!
//! A peer may read or write the same bytes at the same time, possibly as a thread of this process. Rust's rules call that
//! a data race for ordinary accesses, so none is used on window memory:
//!
//! - on x86-64 and aarch64 the copy is assembly, which the compiler treats as an access it knows nothing about;
//! - elsewhere, and under Miri and the thread sanitizer, it is a loop of relaxed atomic accesses.
//!
//! Both keep one promise (RMA-READ-04): where origin and target are aligned to a word of 2, 4 or 8 bytes and the length
//! is a multiple of it, no such word is torn. Vector loads and stores keep it too: on x86-64 a vector access splits at
//! cache lines only, on aarch64 it is used only at multiples of 8 bytes, where it counts as separate 64-bit accesses.
//! Short and remaining pieces are copied with overlapping words of one size, which are multiples of the element apart.
//!
//! Long copies on x86-64 are one `rep movsq` where that is no slower than the loop: on some machines it is faster, and does not mind
//! how far apart origin and target are; on some virtual machines it is an order of magnitude slower. So both are tried
//! once per process. It moves words, unlike `rep movsb`, so no word is torn wherever it is interrupted.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, transmute_copy};
use std::sync::OnceLock;

use super::copier::{self, Copier, CopyEngine, Handing, Other};
use crate::element::Element;

/// How bytes are moved in mapped memory: who does it, and with which instructions. Decided once per window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    loops: Loops,
    /// Who makes longer copies, if not the calling thread.
    other: Option<Other>,
    /// Whether 16 bytes can be exchanged at once.
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
    pairs: bool,
}

/// The copy loop that suits this machine, chosen once per process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    vectors: Vectors,
    long: Long,
}

/// How long copies are made whose two sides are aligned to words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
enum Long {
    /// As all others.
    Vectors,
    /// By the instruction that copies as many words as it is told.
    String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
enum Vectors {
    /// What every machine of the architecture has.
    Baseline,
    /// AVX2 on x86-64.
    Wide,
}

impl Loops {
    /// Looks at the machine, the first time.
    pub(super) fn choose() -> Loops {
        static CHOSEN: OnceLock<Loops> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if std::arch::is_x86_feature_detected!("avx2") {
                return bulk::compare(Loops { vectors: Vectors::Wide, long: Long::Vectors });
            }
            Loops { vectors: Vectors::Baseline, long: Long::Vectors }
        })
    }
}

impl Engine {
    /// The engine that was asked for, on this machine.
    pub(crate) fn choose(engine: CopyEngine) -> Engine {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let pairs = std::arch::is_x86_feature_detected!("cmpxchg16b");
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let pairs = false;
        Engine { loops: Loops::choose(), other: Other::of(engine), pairs }
    }

    /// The engine that exchanges words only.
    #[cfg(test)]
    pub(super) fn without_pairs(self) -> Engine {
        Engine { pairs: false, ..self }
    }

    /// Whether the machine exchanges 16 bytes at once.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn has_pairs(self) -> bool {
        self.pairs
    }

    /// Copies `bytes` bytes from `origin` to `target`. By reference, so that a put of a word does not load what it needs not.
    ///
    /// # Safety
    ///
    /// - `origin` is readable and `target` writable for `bytes` bytes.
    /// - Memory of a live Rust reference is at no point of `target`, nor at a point of `origin` that others may write.
    /// - The two do not overlap, or the caller does not care which bytes arrive.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, target: *mut u8, origin: *const u8, bytes: usize) {
        if bytes == 8 {
            // SAFETY: - the caller's promises, for 8 bytes.
            unsafe { copy_word_8(target, origin) }
        } else {
            // SAFETY: - the caller's promises.
            unsafe { self.copy_bulk(target, origin, bytes) }
        }
    }

    /// Out of line, so that the fast path of a put stays small.
    #[inline(never)]
    unsafe fn copy_bulk(&self, target: *mut u8, origin: *const u8, bytes: usize) {
        copier::count(bytes);
        match self.other {
            // SAFETY: - the caller's promises.
            None => unsafe { self.loops.copy(target, origin, bytes) },
            // SAFETY: - the caller's promises.
            Some(to) => unsafe { Handing { to, own: self.loops }.copy(target, origin, bytes) },
        }
    }

    /// Adds the doubles at `origin` to those at `target`, several at a time, and says how many it did: all, or none of a
    /// last few, or none at all where the machine has no loop for it.
    ///
    /// No double is torn, but the addition is not atomic.
    ///
    /// # Safety
    ///
    /// As for [`copy`](Engine::copy), for `count` doubles, and `target` is readable too.
    #[inline]
    pub(crate) unsafe fn add_doubles(self, target: *mut f64, origin: *const f64, count: usize) -> usize {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.loops.vectors == Vectors::Wide {
            // SAFETY: - the caller's promises; AVX2 was detected, which includes AVX.
            return unsafe { bulk::add_doubles_avx(target, origin, count) };
        }
        let _ = (target, origin, count);
        0
    }
}

/// Loads one element that peers may be writing. One of a basic type comes in one access, a structure in several.
///
/// # Safety
///
/// `at` is readable for one element, and aligned to it if it is of a basic type.
#[inline(always)]
pub(crate) unsafe fn load<T: Element>(at: *const T) -> T {
    macro_rules! word {
        ($load:ident) => {{
            // SAFETY: - the caller's promise for a word of the element's size.
            let word = unsafe { $load(at.cast()) };
            // SAFETY: - the element has the word's size, and every pattern of bits is one of its values.
            unsafe { transmute_copy(&word) }
        }};
    }
    match (T::SHAPE.as_basic(), size_of::<T>()) {
        (Some(_), 1) => word!(load_1),
        (Some(_), 2) => word!(load_2),
        (Some(_), 4) => word!(load_4),
        (Some(_), _) => word!(load_8), // Basic types have no other size.
        (None, bytes) => {
            let mut value = MaybeUninit::<T>::uninit();
            // SAFETY: - readable: the caller's promise. - writable: a place of this function.
            unsafe { copy_by_words(value.as_mut_ptr().cast(), at.cast(), bytes) };
            // SAFETY: - all bytes are written, and every pattern of bits is a value.
            unsafe { value.assume_init() }
        }
    }
}

/// Loads 8 bytes, any of whose aligned elements comes in one access.
///
/// # Safety
///
/// `at` is readable for 8 bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn load_word(at: *const u8) -> u64 {
    // SAFETY: - the caller's promise; the machine does not mind alignment, and splits an access at cache lines only.
    unsafe { load_8(at) }
}

/// Stores one element that peers may be reading or writing, and leaves its padding alone.
///
/// # Safety
///
/// `at` is writable for one element, and aligned to it if it is of a basic type; no Rust reference to it lives.
#[inline(always)]
pub(crate) unsafe fn store<T: Element>(at: *mut T, value: T) {
    macro_rules! word {
        ($store:ident) => {{
            // SAFETY: - the element has the word's size and no padding.
            let word = unsafe { transmute_copy(&value) };
            // SAFETY: - the caller's promise for a word of the element's size.
            unsafe { $store(at.cast(), word) }
        }};
    }
    match (T::SHAPE.as_basic(), size_of::<T>()) {
        (Some(_), 1) => word!(store_1),
        (Some(_), 2) => word!(store_2),
        (Some(_), 4) => word!(store_4),
        (Some(_), _) => word!(store_8), // Basic types have no other size.
        (None, bytes) if const { T::SHAPE.is_dense() } => {
            // SAFETY: - writable: the caller's promise. - readable: the value, which has no padding.
            unsafe { copy_by_words(at.cast(), (&raw const value).cast(), bytes) }
        }
        (None, _) => T::SHAPE.for_each_item(0, &mut |offset, basic| {
            // SAFETY: - in bounds: items lie inside the element.
            let to = unsafe { at.cast::<u8>().add(offset) };
            // SAFETY: - in bounds: items lie inside the value.
            let from = unsafe { (&raw const value).cast::<u8>().add(offset) };
            // SAFETY: - writable: the caller's promise. - readable: an item of the value.
            unsafe { copy_by_words(to, from, basic.size()) }
        }),
    }
}

/// Stores an element of 8 bytes without padding, in one access where the place is aligned.
///
/// # Safety
///
/// `at` is writable for 8 bytes, of which no Rust reference lives, and the element is of 8 bytes without padding.
#[inline(always)]
pub(crate) unsafe fn put_word<T: Element>(at: *mut u8, value: T) {
    debug_assert!(size_of::<T>() == 8 && T::SHAPE.is_dense());
    // SAFETY: - the element has the word's size and no padding: the caller's promise.
    let word: u64 = unsafe { transmute_copy(&value) };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if at.addr() & 7 != 0 {
        // SAFETY: - writable: the caller's promise. - readable: a word of this function.
        return unsafe { copy_by_words(at, (&raw const word).cast(), 8) };
    }
    // SAFETY: - writable: the caller's promise; it is aligned, or the machine does not mind.
    unsafe { store_8(at, word) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod words {
    use std::arch::asm;

    macro_rules! accessors {
        ($($load:ident $store:ident $type:ty, $class:ident, $modifier:literal, $size:literal;)*) => {$(
            #[inline(always)]
            pub(super) unsafe fn $load(at: *const u8) -> $type {
                let value: $type;
                // SAFETY: - reads the bytes of one word at `at`, which the caller may read.
                unsafe {
                    asm!(
                        concat!("mov {value", $modifier, "}, ", $size, " ptr [{at}]"),
                        at = in(reg) at, value = out($class) value,
                        options(nostack, preserves_flags, readonly)
                    );
                }
                value
            }

            #[inline(always)]
            pub(super) unsafe fn $store(at: *mut u8, value: $type) {
                // SAFETY: - writes the bytes of one word at `at`, which the caller may write.
                unsafe {
                    asm!(
                        concat!("mov ", $size, " ptr [{at}], {value", $modifier, "}"),
                        at = in(reg) at, value = in($class) value,
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*};
    }

    accessors! {
        load_1 store_1 u8, reg_byte, "", "byte";
        load_2 store_2 u16, reg, ":x", "word";
        load_4 store_4 u32, reg, ":e", "dword";
        load_8 store_8 u64, reg, "", "qword";
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod words {
    use std::arch::asm;

    macro_rules! accessors {
        ($($load:ident $store:ident $type:ty, $modifier:literal, $suffix:literal;)*) => {$(
            #[inline(always)]
            pub(super) unsafe fn $load(at: *const u8) -> $type {
                let value: $type;
                // SAFETY: - reads the bytes of one word at `at`, which the caller may read.
                unsafe {
                    asm!(
                        concat!("ldr", $suffix, " {value", $modifier, "}, [{at}]"),
                        at = in(reg) at, value = out(reg) value,
                        options(nostack, preserves_flags, readonly)
                    );
                }
                value
            }

            #[inline(always)]
            pub(super) unsafe fn $store(at: *mut u8, value: $type) {
                // SAFETY: - writes the bytes of one word at `at`, which the caller may write.
                unsafe {
                    asm!(
                        concat!("str", $suffix, " {value", $modifier, "}, [{at}]"),
                        at = in(reg) at, value = in(reg) value,
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*};
    }

    accessors! {
        load_1 store_1 u8, ":w", "b";
        load_2 store_2 u16, ":w", "h";
        load_4 store_4 u32, ":w", "";
        load_8 store_8 u64, ":x", "";
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod words {
    use crate::sync::primitive::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

    // Elements are aligned to their size, so every word that these are given is.
    macro_rules! accessors {
        ($($load:ident $store:ident $type:ty, $atomic:ident;)*) => {$(
            #[inline(always)]
            pub(super) unsafe fn $load(at: *const u8) -> $type {
                // SAFETY: - the caller may read one aligned word at `at`; others access it atomically or not at all.
                let word = unsafe { $atomic::from_ptr(at.cast_mut().cast()) };
                word.load(Ordering::Relaxed) // Relaxed: the synchronization calls order the data.
            }

            #[inline(always)]
            pub(super) unsafe fn $store(at: *mut u8, value: $type) {
                // SAFETY: - the caller may write one aligned word at `at`; others access it atomically or not at all.
                let word = unsafe { $atomic::from_ptr(at.cast()) };
                word.store(value, Ordering::Relaxed); // Relaxed: the synchronization calls order the data.
            }
        )*};
    }

    accessors! {
        load_1 store_1 u8, AtomicU8;
        load_2 store_2 u16, AtomicU16;
        load_4 store_4 u32, AtomicU32;
        load_8 store_8 u64, AtomicU64;
    }
}

use words::{load_1, load_2, load_4, load_8, store_1, store_2, store_4, store_8};

/// Copies one word, in one access where both sides are aligned.
#[inline(always)]
unsafe fn copy_word_8(target: *mut u8, origin: *const u8) {
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if (target.addr() | origin.addr()) & 7 != 0 {
        // SAFETY: - the caller's promises for 8 bytes.
        return unsafe { copy_by_words(target, origin, 8) };
    }
    // SAFETY: - the caller may read 8 bytes; they are aligned, or the machine does not mind.
    let word = unsafe { load_8(origin) };
    // SAFETY: - the caller may write 8 bytes; they are aligned, or the machine does not mind.
    unsafe { store_8(target, word) }
}

/// Copies the largest words that addresses and length are multiples of. Slow and simple: the baseline of machines without
/// a loop of their own, of odd alignments on aarch64, and of single structures.
unsafe fn copy_by_words(target: *mut u8, origin: *const u8, bytes: usize) {
    let word = 1 << ((target.addr() | origin.addr() | bytes | 8).trailing_zeros());
    let mut at = 0;
    while at < bytes {
        // SAFETY: - `at` is below `bytes`, to which the caller may read.
        let from = unsafe { origin.add(at) };
        // SAFETY: - `at` is below `bytes`, to which the caller may write.
        let to = unsafe { target.add(at) };
        match word {
            // SAFETY: - a word lies before `bytes`, which is a multiple of it; both sides are aligned.
            8 => unsafe { copy_one_8(to, from) },
            // SAFETY: - as above.
            4 => unsafe { copy_one_4(to, from) },
            // SAFETY: - as above.
            2 => unsafe { copy_one_2(to, from) },
            // SAFETY: - as above.
            _ => unsafe { copy_one_1(to, from) },
        }
        at += word;
    }
}

macro_rules! copy_one {
    ($($name:ident $load:ident $store:ident;)*) => {$(
        #[inline(always)]
        unsafe fn $name(target: *mut u8, origin: *const u8) {
            // SAFETY: - the caller may read one word.
            let word = unsafe { $load(origin) };
            // SAFETY: - the caller may write one word.
            unsafe { $store(target, word) }
        }
    )*};
}

copy_one! {
    copy_one_1 load_1 store_1;
    copy_one_2 load_2 store_2;
    copy_one_4 load_4 store_4;
    copy_one_8 load_8 store_8;
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod bulk {
    use super::{
        Copier, Long, Loops, Vectors, load_1, load_2, load_4, load_8, store_1, store_2, store_4, store_8,
    };
    use std::arch::asm;
    use std::time::{Duration, Instant};

    /// From this many bytes on, `rep movsq` has made up for its start.
    pub(super) const LONG_MIN_BYTES: usize = 16 << 10;
    /// What the two ways are tried with, and how often: the shortest of few times is enough, as a preempted try only makes one longer.
    const TRIED_BYTES: usize = 64 << 10;
    const TRIES: usize = 6;

    /// The loops, with the way of long copies that is the faster one here.
    pub(super) fn compare(vectors: Loops) -> Loops {
        let string = Loops { long: Long::String, ..vectors };
        let origin = vec![1_u64; TRIED_BYTES / size_of::<u64>()];
        let mut target = vec![0_u64; TRIED_BYTES / size_of::<u64>()];
        let mut best = [Duration::MAX; 2];
        for _ in 0..TRIES {
            for (loops, best) in [vectors, string].into_iter().zip(&mut best) {
                let begun = Instant::now();
                // SAFETY: - readable and writable: two vectors of so many bytes.
                unsafe { loops.copy(target.as_mut_ptr().cast(), origin.as_ptr().cast(), TRIED_BYTES) };
                *best = begun.elapsed().min(*best);
            }
        }
        let [by_vectors, by_string] = best;
        // The loop depends on how origin and target lie to each other, so that a tie is in favour of the instruction.
        match by_string <= by_vectors + by_vectors / 16 {
            true => string,
            false => vectors,
        }
    }

    impl Copier for Loops {
        #[inline]
        unsafe fn copy(self, target: *mut u8, origin: *const u8, bytes: usize) {
            let is_in_words = (target.addr() | origin.addr()) & 7 == 0;
            if LONG_MIN_BYTES <= bytes && self.long == Long::String && is_in_words {
                let words = bytes & !7;
                // SAFETY: - the caller's promises for the first bytes.
                unsafe { copy_string(target, origin, words / 8) };
                // SAFETY: - `words` is at most `bytes`.
                let rest_target = unsafe { target.add(words) };
                // SAFETY: - `words` is at most `bytes`.
                let rest_origin = unsafe { origin.add(words) };
                // SAFETY: - the caller's promises for the rest.
                return unsafe { copy_short(rest_target, rest_origin, bytes - words) };
            }
            match (bytes, self.vectors) {
                // SAFETY: - the caller's promises.
                (0..16, _) => unsafe { copy_short(target, origin, bytes) },
                // SAFETY: - the caller's promises, and there are at least 32 bytes; AVX2 was detected.
                (64.., Vectors::Wide) => unsafe { copy_avx2(target, origin, bytes) },
                // SAFETY: - the caller's promises, and there are at least 16 bytes.
                _ => unsafe { copy_sse2(target, origin, bytes) },
            }
        }
    }

    /// Fewer than 16 bytes: two overlapping words of the largest size that fits.
    #[inline(always)]
    unsafe fn copy_short(target: *mut u8, origin: *const u8, bytes: usize) {
        macro_rules! pair {
            ($size:literal, $load:ident, $store:ident) => {{
                // SAFETY: - the last word begins inside the bytes that the caller may read.
                let origin_last = unsafe { origin.add(bytes - $size) };
                // SAFETY: - the last word begins inside the bytes that the caller may write.
                let target_last = unsafe { target.add(bytes - $size) };
                // SAFETY: - readable: at least one word is.
                let first = unsafe { $load(origin) };
                // SAFETY: - readable: it ends where the caller's bytes end.
                let last = unsafe { $load(origin_last) };
                // SAFETY: - writable: at least one word is.
                unsafe { $store(target, first) };
                // SAFETY: - writable: it ends where the caller's bytes end.
                unsafe { $store(target_last, last) };
            }};
        }
        match bytes {
            0 => {}
            1 => pair!(1, load_1, store_1),
            2..4 => pair!(2, load_2, store_2),
            4..8 => pair!(4, load_4, store_4),
            _ => pair!(8, load_8, store_8),
        }
    }

    /// So many words of 8 bytes, aligned on both sides.
    #[inline(always)]
    unsafe fn copy_string(target: *mut u8, origin: *const u8, words: usize) {
        // SAFETY: - reads and writes `words` words, which the caller may; the direction flag is clear, as the calling convention
        //   has it.
        unsafe {
            asm!(
                "rep movsq",
                inout("rdi") target => _,
                inout("rsi") origin => _,
                inout("rcx") words => _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// At least 16 bytes, 16 at a time; the last piece overlaps the one before it.
    #[inline(never)]
    unsafe fn copy_sse2(target: *mut u8, origin: *const u8, bytes: usize) {
        // SAFETY: - every access lies in the first `bytes` bytes of both sides, of which there are at least 16: the loops
        //   run while a whole piece is left, and the last piece is moved back to end with them.
        unsafe {
            asm!(
                "cmp {n}, 64",
                "jb 3f",
                "2:", // 64 bytes a turn
                "movdqu xmm0, [{o}]",
                "movdqu xmm1, [{o} + 16]",
                "movdqu xmm2, [{o} + 32]",
                "movdqu xmm3, [{o} + 48]",
                "movdqu [{t}], xmm0",
                "movdqu [{t} + 16], xmm1",
                "movdqu [{t} + 32], xmm2",
                "movdqu [{t} + 48], xmm3",
                "add {o}, 64",
                "add {t}, 64",
                "sub {n}, 64",
                "cmp {n}, 64",
                "jae 2b",
                "3:", // 16 bytes a turn
                "cmp {n}, 16",
                "jb 4f",
                "movdqu xmm0, [{o}]",
                "movdqu [{t}], xmm0",
                "add {o}, 16",
                "add {t}, 16",
                "sub {n}, 16",
                "jmp 3b",
                "4:", // the rest
                "test {n}, {n}",
                "jz 5f",
                "movdqu xmm0, [{o} + {n} - 16]",
                "movdqu [{t} + {n} - 16], xmm0",
                "5:",
                o = inout(reg) origin => _,
                t = inout(reg) target => _,
                n = inout(reg) bytes => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                options(nostack)
            );
        }
    }

    /// As many doubles as make whole turns of 16; returns how many.
    #[inline(never)]
    pub(super) unsafe fn add_doubles_avx(target: *mut f64, origin: *const f64, count: usize) -> usize {
        let whole = count & !15;
        if whole == 0 {
            return 0;
        }
        // SAFETY: - every access lies in the first `whole` doubles of both sides: 16 a turn, at least one turn.
        // - the machine has AVX: the caller has seen `Vectors::Wide`. `vzeroupper` changes all vector registers, so all are
        //   given as changed.
        unsafe {
            asm!(
                ".p2align 5",
                "2:",
                "vmovupd ymm0, [{t}]",
                "vmovupd ymm1, [{t} + 32]",
                "vmovupd ymm2, [{t} + 64]",
                "vmovupd ymm3, [{t} + 96]",
                "vaddpd ymm0, ymm0, [{o}]",
                "vaddpd ymm1, ymm1, [{o} + 32]",
                "vaddpd ymm2, ymm2, [{o} + 64]",
                "vaddpd ymm3, ymm3, [{o} + 96]",
                "vmovupd [{t}], ymm0",
                "vmovupd [{t} + 32], ymm1",
                "vmovupd [{t} + 64], ymm2",
                "vmovupd [{t} + 96], ymm3",
                "add {o}, 128",
                "add {t}, 128",
                "sub {n}, 16",
                "jnz 2b",
                "vzeroupper",
                o = inout(reg) origin => _,
                t = inout(reg) target => _,
                n = inout(reg) whole => _,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                options(nostack)
            );
        }
        whole
    }

    /// At least 32 bytes, 32 at a time with an aligned target; first and last piece overlap their neighbours.
    #[inline(never)]
    unsafe fn copy_avx2(target: *mut u8, origin: *const u8, bytes: usize) {
        // SAFETY: - every access lies in the first `bytes` bytes of both sides, of which there are at least 32: the first
        //   piece is whole, the loops run while a whole piece is left, the last piece is moved back to end with them.
        // - the machine has AVX2: this function is reached by `Vectors::Wide` only. `vzeroupper` changes all vector
        //   registers, so all are given as changed.
        unsafe {
            asm!(
                "vmovdqu ymm0, [{o}]",
                "vmovdqu [{t}], ymm0",
                "mov {k}, {t}", // Advance to the next multiple of 32 of the target.
                "and {k}, 31",
                "sub {k}, 32",
                "sub {o}, {k}",
                "sub {t}, {k}",
                "add {n}, {k}",
                "cmp {n}, 128",
                "jb 3f",
                ".p2align 5",
                "2:", // 128 bytes a turn
                "vmovdqu ymm0, [{o}]",
                "vmovdqu ymm1, [{o} + 32]",
                "vmovdqu ymm2, [{o} + 64]",
                "vmovdqu ymm3, [{o} + 96]",
                "vmovdqa [{t}], ymm0",
                "vmovdqa [{t} + 32], ymm1",
                "vmovdqa [{t} + 64], ymm2",
                "vmovdqa [{t} + 96], ymm3",
                "add {o}, 128",
                "add {t}, 128",
                "sub {n}, 128",
                "cmp {n}, 128",
                "jae 2b",
                "3:", // 32 bytes a turn
                "cmp {n}, 32",
                "jb 4f",
                "vmovdqu ymm0, [{o}]",
                "vmovdqa [{t}], ymm0",
                "add {o}, 32",
                "add {t}, 32",
                "sub {n}, 32",
                "jmp 3b",
                "4:", // the rest
                "test {n}, {n}",
                "jz 5f",
                "vmovdqu ymm0, [{o} + {n} - 32]",
                "vmovdqu [{t} + {n} - 32], ymm0",
                "5:",
                "vzeroupper",
                o = inout(reg) origin => _,
                t = inout(reg) target => _,
                n = inout(reg) bytes => _,
                k = out(reg) _,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                options(nostack)
            );
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod bulk {
    use super::{Copier, Loops, copy_by_words};
    use std::arch::asm;

    /// From this many bytes on the vector loop pays.
    const VECTOR_MIN: usize = 64;

    impl Copier for Loops {
        #[inline]
        unsafe fn copy(self, target: *mut u8, origin: *const u8, bytes: usize) {
            // A vector access is a pair of 64-bit ones only at multiples of 8.
            if bytes < VECTOR_MIN || (target.addr() | origin.addr()) & 7 != 0 {
                // SAFETY: - the caller's promises.
                return unsafe { copy_by_words(target, origin, bytes) };
            }
            let whole = bytes & !63;
            // SAFETY: - every access lies in the first `whole` bytes of both sides: 64 a turn, at least one turn.
            unsafe {
                asm!(
                    "2:",
                    "ldp q0, q1, [{o}]",
                    "ldp q2, q3, [{o}, #32]",
                    "add {o}, {o}, #64",
                    "subs {n}, {n}, #64",
                    "stp q0, q1, [{t}]",
                    "stp q2, q3, [{t}, #32]",
                    "add {t}, {t}, #64",
                    "b.ne 2b",
                    o = inout(reg) origin => _,
                    t = inout(reg) target => _,
                    n = inout(reg) whole => _,
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                    options(nostack)
                );
            }
            // SAFETY: - `whole` is at most `bytes`.
            let rest_target = unsafe { target.add(whole) };
            // SAFETY: - `whole` is at most `bytes`.
            let rest_origin = unsafe { origin.add(whole) };
            // SAFETY: - the caller's promises for what is left.
            unsafe { copy_by_words(rest_target, rest_origin, bytes - whole) }
        }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod bulk {
    use super::{Copier, Loops, copy_by_words};

    impl Copier for Loops {
        unsafe fn copy(self, target: *mut u8, origin: *const u8, bytes: usize) {
            // SAFETY: - the caller's promises.
            unsafe { copy_by_words(target, origin, bytes) }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn engines() -> Vec<Engine> {
        let chosen = Engine::choose(CopyEngine::Mapped);
        let vectors = match chosen.loops.vectors {
            Vectors::Baseline => vec![Vectors::Baseline],
            Vectors::Wide => vec![Vectors::Baseline, Vectors::Wide],
        };
        let ways = [Long::Vectors, Long::String];
        let both = |vectors| ways.map(|long| Engine { loops: Loops { vectors, long }, ..chosen });
        let others = [CopyEngine::Calls, CopyEngine::Thread].map(Engine::choose);
        vectors.into_iter().flat_map(both).chain(others).collect()
    }

    /// Copies between two arrays and compares with the same copy of a slice, neighbours included.
    fn check(engine: Engine, target_at: usize, origin_at: usize, bytes: usize) {
        #[repr(align(64))]
        struct Aligned([u8; 4096]);
        let mut origin = Aligned([0; 4096]);
        for (i, byte) in origin.0.iter_mut().enumerate() {
            *byte = (i * 7 + 1) as u8;
        }
        let mut target = Aligned([0xcc; 4096]);
        let mut expected = target.0;
        expected[target_at..target_at + bytes].copy_from_slice(&origin.0[origin_at..origin_at + bytes]);
        let to = target.0[target_at..target_at + bytes].as_mut_ptr();
        let from = origin.0[origin_at..origin_at + bytes].as_ptr();
        // SAFETY: - both come from slices of that length, of different arrays.
        unsafe { engine.copy(to, from, bytes) };
        assert!(target.0 == expected, "{engine:?}: {bytes} bytes from {origin_at} to {target_at}");
    }

    // covers: RMA-SHM-02
    #[test]
    fn every_alignment_and_short_length_is_exact() {
        for engine in engines() {
            for target_at in 0..16 {
                for origin_at in 0..16 {
                    for bytes in 0..=if cfg!(miri) { 20 } else { 65 } {
                        check(engine, 64 + target_at, 64 + origin_at, bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn loops_end_at_the_last_byte() {
        for engine in engines() {
            for offset in [0, 1, 8, 31] {
                for bytes in [127, 128, 129, 159, 160, 161, 255, 256, 257, 511, 1000, 1024, 2047, 3000] {
                    check(engine, 64 + offset, 64, bytes);
                    check(engine, 64, 64 + offset, bytes);
                }
            }
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn long_copies_end_at_the_last_byte() {
        let origin: Vec<u8> = (0..bulk::LONG_MIN_BYTES + 200).map(|at| (at * 7 + 1) as u8).collect();
        for engine in engines() {
            for (target_at, origin_at) in [(0, 0), (8, 0), (0, 8), (3, 0), (0, 5), (16, 24)] {
                for more in [0, 1, 7, 8, 15, 100] {
                    let bytes = bulk::LONG_MIN_BYTES + more;
                    let mut target = vec![0xcc_u8; origin.len() + 64];
                    let mut expected = target.clone();
                    expected[target_at..target_at + bytes].copy_from_slice(&origin[origin_at..][..bytes]);
                    let to = target[target_at..][..bytes].as_mut_ptr();
                    // SAFETY: - both come from slices of that length, of different vectors.
                    unsafe { engine.copy(to, origin[origin_at..][..bytes].as_ptr(), bytes) };
                    assert!(target == expected, "{engine:?}: {bytes} bytes from {origin_at} to {target_at}");
                }
            }
        }
    }

    #[test]
    fn words_copy_by_words_exactly() {
        for at in 0..8 {
            for bytes in 0..40 {
                let origin: Vec<u8> = (0..64).collect();
                let mut target = vec![0xcc_u8; 64];
                let mut expected = target.clone();
                expected[at..at + bytes].copy_from_slice(&origin[8..8 + bytes]);
                let to = target[at..at + bytes].as_mut_ptr();
                // SAFETY: - both come from slices of at least that length.
                unsafe { copy_by_words(to, origin[8..].as_ptr(), bytes) };
                assert_eq!(target, expected);
            }
        }
    }

    #[test]
    fn elements_make_the_round_trip() {
        fn check<T: crate::element::Basic>(value: T) {
            let mut place = T::default();
            // SAFETY: - a place of this function, borrowed for the call only.
            unsafe { store(&raw mut place, value) };
            // SAFETY: - as above.
            assert_eq!(unsafe { load(&raw const place) }, value);
        }
        check(-3_i8);
        check(0xab_u8);
        check(-300_i16);
        check(70_000_u32);
        check(-1.5_f32);
        check(-2.5e300_f64);
        check(u64::MAX - 3);
    }
}
