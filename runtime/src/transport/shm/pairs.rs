//! Changes of 16 bytes at once on x86-64: an accumulate of many elements needs one locked instruction for as many as lie in
//! them, where it needs one for each element otherwise. Never changes a byte outside of the elements that it is given.
//!
//! A locked instruction takes the same time for 16 bytes as for 8, and holds the whole cache line, so it is atomic towards those
//! that change a single element in it. Each element is combined atomically, as everywhere; that its neighbours change at the
//! same moment is nobody's promise.
#![allow(unsafe_code)]

use std::arch::asm;

use super::atomic::{from_bits, to_bits};
use super::copy::load_word;
use crate::element::{Element, Operation};

/// The bytes of a pair of words, which lies at a multiple of them.
pub(super) const PAIR_BYTES: usize = 16;

/// Two words that lie next to each other.
type Pair = [u64; 2];

/// Pairs whose values are read before the first of them is exchanged. A locked instruction is waited for by all later loads,
/// so that each pair's load, arithmetic and exchange would make one chain.
const AHEAD: usize = 4;

/// Combines the elements of `pairs` pairs from `at` on with those from `origin` on, each atomically, and gives what was there.
///
/// # Safety
///
/// - `at` is readable and writable for so many pairs and a multiple of [`PAIR_BYTES`], and no Rust reference to them lives.
/// - `origin` is readable for as many and aligned to its elements, which are of a basic type.
/// - The machine has `cmpxchg16b`.
#[inline(always)]
pub(super) unsafe fn fetch_op_each<T: Element, O: Operation<T>>(
    at: *mut T,
    origin: *const T,
    pairs: usize,
    operation: O,
    mut fetched: impl FnMut(T),
) {
    let mut exchange = |at: *mut u8, mut expected: Pair, mut new: Pair, values: Pair| loop {
        // SAFETY: - the caller's promises.
        let found = unsafe { compare_swap(at, expected, new) };
        if found == expected {
            each_element(found, &mut fetched);
            break;
        }
        (expected, new) = (found, combine(found, values, operation));
    };
    // SAFETY: - in bounds: all users stay below `pairs`.
    let to = |pair: usize| unsafe { at.cast::<u8>().add(pair * PAIR_BYTES) };
    // SAFETY: - readable: the caller's promise; all users stay below `pairs`.
    let value = |pair: usize| unsafe { load(origin.cast::<u8>().wrapping_add(pair * PAIR_BYTES)) };
    let ahead = pairs - pairs % AHEAD;
    for batch in (0..ahead).step_by(AHEAD) {
        let values: [Pair; AHEAD] = std::array::from_fn(|i| value(batch + i));
        // SAFETY: - readable: the caller's promise.
        let expected: [Pair; AHEAD] = std::array::from_fn(|i| unsafe { load(to(batch + i)) });
        let new: [Pair; AHEAD] = std::array::from_fn(|i| combine(expected[i], values[i], operation));
        for i in 0..AHEAD {
            exchange(to(batch + i), expected[i], new[i], values[i]);
        }
    }
    for pair in ahead..pairs {
        // SAFETY: - readable: the caller's promise.
        let expected = unsafe { load(to(pair)) };
        let values = value(pair);
        exchange(to(pair), expected, combine(expected, values, operation), values);
    }
}

/// The pair with the elements of two pairs combined.
#[inline(always)]
fn combine<T: Element, O: Operation<T>>(old: Pair, values: Pair, operation: O) -> Pair {
    let word = |old: u64, value: u64| {
        let mut new = 0;
        for shift in shifts::<T>() {
            let combined = operation.combine(from_bits(old >> shift), from_bits(value >> shift));
            new |= to_bits::<T>(combined) << shift;
        }
        new
    };
    [word(old[0], values[0]), word(old[1], values[1])]
}

/// Gives the elements of a pair in their order.
#[inline(always)]
fn each_element<T: Element>(pair: Pair, fetched: &mut impl FnMut(T)) {
    for word in pair {
        shifts::<T>().for_each(|shift| fetched(from_bits(word >> shift)));
    }
}

/// Where the elements lie in a word, in bits: x86-64 has the first one lowest.
#[inline(always)]
fn shifts<T: Element>() -> impl Iterator<Item = usize> {
    (0..64).step_by(8 * size_of::<T>())
}

/// Loads two words, each of them at once. Others may change them meanwhile.
///
/// # Safety
///
/// `at` is readable for a pair.
#[inline(always)]
unsafe fn load(at: *const u8) -> Pair {
    // SAFETY: - readable: the caller's promise.
    let first = unsafe { load_word(at) };
    // SAFETY: - in bounds: the second half of the pair.
    let second = unsafe { at.add(PAIR_BYTES / 2) };
    // SAFETY: - readable: the caller's promise.
    [first, unsafe { load_word(second) }]
}

/// Stores `new` at `at` if `expected` is there, and returns what was there.
///
/// # Safety
///
/// `at` is readable and writable for a pair and a multiple of its bytes, no Rust reference to it lives, and the machine has
/// the instruction.
#[inline(always)]
unsafe fn compare_swap(at: *mut u8, expected: Pair, new: Pair) -> Pair {
    let (low, high);
    // SAFETY: - reads and writes the pair, which the caller may; `rbx`, which the compiler keeps for itself, is put back.
    unsafe {
        asm!(
            "xchg {new_low}, rbx",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "mov rbx, {new_low}",
            in("rdi") at, // Not any register, which could be `rbx`.
            new_low = inout(reg) new[0] => _,
            in("rcx") new[1],
            inout("rax") expected[0] => low,
            inout("rdx") expected[1] => high,
            options(nostack)
        );
    }
    [low, high]
}
