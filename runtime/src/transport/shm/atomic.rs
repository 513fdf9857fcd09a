//! Combines elements of windows atomically. Never locks: every operation is one or a loop of one hardware atomic.
//!
//! One element is the unit (RMA-ATOM-02): a longer accumulate is a sequence of these. All ranks that map the memory, be
//! they threads or processes, use these same instructions, so they are atomic towards each other.
#![allow(unsafe_code)]

use crate::sync::primitive::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use std::array::from_fn;
use std::mem::transmute_copy;

use super::copy::{self, Engine};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::pairs;
use crate::element::{BasicType, Element, OpCode, Operation};

/// The bits of an element of a basic type, zero-extended.
#[inline(always)]
pub(super) fn to_bits<T: Element>(value: T) -> u64 {
    debug_assert!(const { T::SHAPE.as_basic().is_some() }, "only basic types have a word of their size");
    match size_of::<T>() {
        // SAFETY: - the word has the size of the element, which has no padding.
        1 => u64::from(unsafe { transmute_copy::<T, u8>(&value) }),
        // SAFETY: - as above.
        2 => u64::from(unsafe { transmute_copy::<T, u16>(&value) }),
        // SAFETY: - as above.
        4 => u64::from(unsafe { transmute_copy::<T, u32>(&value) }),
        // SAFETY: - as above.
        _ => unsafe { transmute_copy::<T, u64>(&value) },
    }
}

/// The element of a basic type with these bits; higher ones are ignored.
#[inline(always)]
pub(super) fn from_bits<T: Element>(bits: u64) -> T {
    debug_assert!(const { T::SHAPE.as_basic().is_some() }, "only basic types have a word of their size");
    match size_of::<T>() {
        // SAFETY: - the word has the size of the element, of which every pattern of bits is a value.
        1 => unsafe { transmute_copy(&(bits as u8)) },
        // SAFETY: - as above.
        2 => unsafe { transmute_copy(&(bits as u16)) },
        // SAFETY: - as above.
        4 => unsafe { transmute_copy(&(bits as u32)) },
        // SAFETY: - as above.
        _ => unsafe { transmute_copy(&bits) },
    }
}

/// Whether the machine's own arithmetic on words is that of the element.
#[inline(always)]
const fn is_integer<T: Element>() -> bool {
    !matches!(T::SHAPE.as_basic(), None | Some(BasicType::F32 | BasicType::F64 | BasicType::Bool))
}

/// Replaces the element at `at` by its combination with `origin`, and returns what was there.
///
/// # Safety
///
/// `at` is readable and writable for one element and aligned to it, and no Rust reference to it lives.
#[inline(always)]
pub(crate) unsafe fn fetch_op<T: Element, O: Operation<T>>(at: *mut T, operation: O, origin: T) -> T {
    macro_rules! on {
        ($atomic:ident, $word:ident) => {{
            // SAFETY: - the caller's promise; the element has the size and alignment of the word.
            let word = unsafe { $atomic::from_ptr(at.cast()) };
            let bits = to_bits(origin) as $word;
            let integer = is_integer::<T>();
            // Relaxed: the synchronization calls order the data; the element itself needs atomicity only.
            let old = match O::CODE {
                OpCode::Sum if integer => word.fetch_add(bits, Ordering::Relaxed),
                OpCode::And if integer => word.fetch_and(bits, Ordering::Relaxed),
                OpCode::Or if integer => word.fetch_or(bits, Ordering::Relaxed),
                OpCode::Xor if integer => word.fetch_xor(bits, Ordering::Relaxed),
                OpCode::NoOp => word.load(Ordering::Relaxed),
                OpCode::Replace => word.swap(bits, Ordering::Relaxed),
                _ => {
                    let mut old = word.load(Ordering::Relaxed);
                    loop {
                        let new = to_bits(operation.combine(from_bits(old as u64), origin)) as $word;
                        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                            Ok(_) => break old,
                            Err(now) => old = now,
                        }
                    }
                }
            };
            from_bits(old as u64)
        }};
    }
    match size_of::<T>() {
        1 => on!(AtomicU8, u8),
        2 => on!(AtomicU16, u16),
        4 => on!(AtomicU32, u32),
        _ => on!(AtomicU64, u64),
    }
}

/// Combines `count` elements from `at` on with those from `origin` on, as by one [`fetch_op`] each, and gives what was there.
///
/// # Safety
///
/// As for [`fetch_op`], for `count` elements; `origin` is readable for as many and aligned to them.
#[inline(always)]
pub(crate) unsafe fn fetch_op_each<T: Element, O: Operation<T>>(
    engine: Engine,
    at: *mut T,
    origin: *const T,
    count: usize,
    operation: O,
    mut fetched: impl FnMut(T),
) {
    #[allow(unused_mut, reason = "elements are changed one by one on other machines")]
    let mut done = 0;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if engine.has_pairs() && const { O::CODE.changes() } {
        let per_pair = pairs::PAIR_BYTES / size_of::<T>();
        let head = (at.addr().wrapping_neg() % pairs::PAIR_BYTES / size_of::<T>()).min(count);
        let pairs = (count - head) / per_pair;
        // SAFETY: - the caller's promises for the first elements.
        unsafe { each_by_itself(at, origin, head, operation, &mut fetched) };
        let (to, from) = (at.wrapping_add(head), origin.wrapping_add(head));
        // SAFETY: - the caller's promises for so many elements from `head` on, the first of which is at a multiple of a pair's
        //   bytes, or there are none. - the machine has the instruction.
        unsafe { pairs::fetch_op_each(to, from, pairs, operation, &mut fetched) };
        done = head + pairs * per_pair;
    }
    let _ = engine;
    let (to, from) = (at.wrapping_add(done), origin.wrapping_add(done));
    // SAFETY: - the caller's promises for the elements from `done` on.
    unsafe { each_by_itself(to, from, count - done, operation, fetched) };
}

/// Elements whose values [`each_by_itself`] reads before it begins to exchange them.
const AHEAD: usize = 8;

/// As [`fetch_op_each`], with an instruction for each element.
///
/// What has no atomic of its own is a compare-and-swap (`lock cmpxchg` on x86-64) with a value that was read before. A
/// locked instruction is waited for by all later loads, so reading each element just before its exchange would put
/// load, arithmetic and exchange in one chain; a few elements read ahead leave the exchanges alone in it.
///
/// # Safety
///
/// As for [`fetch_op_each`].
#[inline(always)]
unsafe fn each_by_itself<T: Element, O: Operation<T>>(
    at: *mut T,
    origin: *const T,
    count: usize,
    operation: O,
    mut fetched: impl FnMut(T),
) {
    let integer = is_integer::<T>();
    let ahead = match O::CODE {
        OpCode::Sum if integer => 0,
        OpCode::And | OpCode::Or | OpCode::Xor if integer => 0,
        OpCode::Replace | OpCode::NoOp => 0,
        _ => count - count % AHEAD,
    };
    // SAFETY: - in bounds: all users stay below `count`.
    let to = |i: usize| unsafe { at.add(i) };
    let value = |i: usize| {
        // SAFETY: - in bounds: all users stay below `count`.
        let from = unsafe { origin.add(i) };
        // SAFETY: - readable and aligned: the caller's promise.
        unsafe { copy::load(from) }
    };
    for batch in (0..ahead).step_by(AHEAD) {
        let values: [T; AHEAD] = from_fn(|i| value(batch + i));
        // SAFETY: - readable and aligned: the caller's promise.
        let expected: [T; AHEAD] = from_fn(|i| unsafe { copy::load(to(batch + i)) });
        let new: [T; AHEAD] = from_fn(|i| operation.combine(expected[i], values[i]));
        for i in 0..AHEAD {
            // SAFETY: - the caller's promise.
            let found = unsafe { compare_swap(to(batch + i), expected[i], new[i]) };
            fetched(match to_bits(found) == to_bits(expected[i]) {
                true => found,
                // SAFETY: - the caller's promise.
                false => unsafe { fetch_op(to(batch + i), operation, values[i]) },
            });
        }
    }
    for i in ahead..count {
        // SAFETY: - the caller's promise.
        fetched(unsafe { fetch_op(to(i), operation, value(i)) });
    }
}

/// Elements that [`combine_alone`] has in ordinary memory at a time: two buffers of these stay in the nearest cache.
const STAGED: usize = 256;
/// From this many elements on, [`combine_alone`] pays.
pub(crate) const COMBINE_ALONE_MIN: usize = 16;

/// As [`fetch_op_each`], for a caller that is alone, and gives nothing: without atomics, at the speed of a copy.
///
/// Sums of doubles have a loop of their own, which adds in place. Other elements pass through ordinary memory, where the
/// compiler combines as many at once as it can.
///
/// # Safety
///
/// As for [`fetch_op_each`]; moreover no peer changes the elements meanwhile. One that does, against the rules, gets
/// its change lost, nothing worse.
#[inline(always)]
pub(crate) unsafe fn combine_alone<T: Element, O: Operation<T>>(
    engine: Engine,
    at: *mut T,
    origin: *const T,
    count: usize,
    operation: O,
) {
    let done = match (T::SHAPE.as_basic(), O::CODE) {
        // SAFETY: - the caller's promises; `T` is f64.
        (Some(BasicType::F64), OpCode::Sum) => unsafe { engine.add_doubles(at.cast(), origin.cast(), count) },
        _ => 0,
    };
    let (mut old, mut values) = ([from_bits::<T>(0); STAGED], [from_bits::<T>(0); STAGED]);
    for first in (done..count).step_by(STAGED) {
        let staged = STAGED.min(count - first);
        let (old, values) = (&mut old[..staged], &mut values[..staged]);
        let bytes = size_of_val(old);
        // SAFETY: - in bounds: `first` is below `count`.
        let to = unsafe { at.add(first) };
        // SAFETY: - in bounds: `first` is below `count`.
        let from = unsafe { origin.add(first) };
        // SAFETY: - readable: in bounds of the caller's elements. - writable: a buffer of this function, of `bytes` bytes.
        unsafe { engine.copy(old.as_mut_ptr().cast(), to.cast_const().cast(), bytes) };
        // SAFETY: - as above.
        unsafe { engine.copy(values.as_mut_ptr().cast(), from.cast(), bytes) };
        for (old, &value) in old.iter_mut().zip(&*values) {
            *old = operation.combine(*old, value);
        }
        // SAFETY: - writable: in bounds of the caller's elements. - readable: a buffer of this function.
        unsafe { engine.copy(to.cast(), old.as_ptr().cast(), bytes) };
    }
}

/// Stores `new` at `at` if the bits of `expected` are there, and returns what was there.
///
/// # Safety
///
/// As for [`fetch_op`].
#[inline(always)]
pub(crate) unsafe fn compare_swap<T: Element>(at: *mut T, expected: T, new: T) -> T {
    macro_rules! on {
        ($atomic:ident, $word:ident) => {{
            // SAFETY: - the caller's promise; the element has the size and alignment of the word.
            let word = unsafe { $atomic::from_ptr(at.cast()) };
            let (expected, new) = (to_bits(expected) as $word, to_bits(new) as $word);
            // Relaxed: as in `fetch_op`.
            match word.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(old) | Err(old) => from_bits(old as u64),
            }
        }};
    }
    match size_of::<T>() {
        1 => on!(AtomicU8, u8),
        2 => on!(AtomicU16, u16),
        4 => on!(AtomicU32, u32),
        _ => on!(AtomicU64, u64),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::sync::atomic::AtomicPtr;

    use crate::element::{Basic, Max, Min, Or, Prod, Replace, Sum, Xor};
    use crate::transport::shm::copier::CopyEngine;

    fn apply<T: Basic, O: Operation<T>>(start: T, operation: O, origin: T) -> (T, T) {
        let mut place = start;
        // SAFETY: - a place of this function, borrowed for the call only.
        let old = unsafe { fetch_op(&raw mut place, operation, origin) };
        (old, place)
    }

    #[test]
    fn operations_return_the_old_and_leave_the_new() {
        assert_eq!(apply(250_u8, Sum, 10), (250, 4));
        assert_eq!(apply(-5_i16, Min, -7), (-5, -7));
        assert_eq!(apply(-5_i32, Max, 3), (-5, 3));
        assert_eq!(apply(6_u64, Prod, 7), (6, 42));
        assert_eq!(apply(1.5_f64, Sum, 2.0), (1.5, 3.5));
        assert_eq!(apply(1.5_f32, Replace, 2.0), (1.5, 2.0));
        assert_eq!(apply(0b0101_u8, Or, 0b0011), (0b0101, 0b0111));
        assert_eq!(apply(0b0101_i64, Xor, 0b0011), (0b0101, 0b0110));
    }

    /// The engine of this machine, and one that needs an instruction for each element.
    fn engines() -> [Engine; 2] {
        [Engine::choose(CopyEngine::Mapped), Engine::choose(CopyEngine::Mapped).without_pairs()]
    }

    fn apply_to_all<T: Basic, O: Operation<T>>(operation: O, make: impl Fn(usize) -> T) {
        let per_pair = 16 / size_of::<T>();
        for (count, first) in [0, 1, 7, 8, 9, 63, STAGED, STAGED + 1, 2 * STAGED + 17]
            .into_iter()
            .flat_map(|count| [0, 1, per_pair - 1].map(|first| (count, first)))
        {
            let target: Vec<T> = (0..first + count + per_pair).map(&make).collect();
            let origin: Vec<T> = (0..count).map(|i| make(i + 3)).collect();
            let mut expected = target.clone();
            for (old, &value) in expected[first..].iter_mut().zip(&origin) {
                *old = operation.combine(*old, value);
            }
            for engine in engines() {
                let (mut place, mut before) = (target.clone(), Vec::new());
                let (at, from) = (place[first..].as_mut_ptr(), origin.as_ptr());
                // SAFETY: - both have `count` elements, borrowed for the call only.
                unsafe { fetch_op_each(engine, at, from, count, operation, |old| before.push(old)) };
                assert_eq!(place, expected, "{count} elements from {first}, {engine:?}");
                assert_eq!(before, target[first..first + count], "{count} elements from {first}, {engine:?}");
            }
            let mut place = target;
            let at = place[first..].as_mut_ptr();
            // SAFETY: - as above.
            unsafe {
                combine_alone(Engine::choose(CopyEngine::Mapped), at, origin.as_ptr(), count, operation)
            };
            assert_eq!(place, expected, "{count} elements from {first}, alone");
        }
    }

    #[test]
    fn many_elements_are_combined_as_single_ones_are() {
        apply_to_all(Sum, |i| i as f64 * 0.25);
        apply_to_all(Sum, |i| i as i64);
        apply_to_all(Prod, |i| (i % 5) as f32);
        apply_to_all(Max, |i| (i * 37 % 101) as u8);
        apply_to_all(Xor, |i| i as u16);
    }

    /// Adds ones to all elements of an array in one thread by arrays, in another by single elements, and in a third by
    /// compare-and-swap, `rounds` times each.
    fn add_from_all_sides<T: Basic>(one: T, len: usize, rounds: usize) -> Vec<T>
    where
        Sum: Operation<T>,
    {
        let mut cells = vec![T::default(); len];
        let (at, ones) = (AtomicPtr::new(cells.as_mut_ptr()), vec![one; len]);
        let each = |add: &dyn Fn(*mut T)| {
            for _ in 0..rounds {
                (0..len).for_each(|i| add(at.load(Ordering::Relaxed).wrapping_add(i)));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let at = at.load(Ordering::Relaxed);
                    // SAFETY: - cells of the test, which nobody touches otherwise before the threads have ended.
                    unsafe {
                        fetch_op_each(Engine::choose(CopyEngine::Mapped), at, ones.as_ptr(), len, Sum, |_| ())
                    };
                }
            });
            scope.spawn(|| {
                each(&|cell| {
                    // SAFETY: - as above.
                    unsafe { fetch_op(cell, Sum, one) };
                });
            });
            scope.spawn(|| {
                each(&|cell| {
                    let mut old = T::default();
                    loop {
                        // SAFETY: - as above.
                        let found = unsafe { compare_swap(cell, old, Sum.combine(old, one)) };
                        if found == old {
                            break;
                        }
                        old = found;
                    }
                });
            });
        });
        cells
    }

    #[test]
    fn whoever_adds_at_the_same_time_loses_nothing() {
        let rounds = if cfg!(miri) { 5 } else { 2_000 };
        assert_eq!(add_from_all_sides(1.0_f64, 25, rounds), [3.0 * rounds as f64; 25]);
        assert_eq!(add_from_all_sides(1_i64, 25, rounds), [3 * rounds as i64; 25]);
        assert_eq!(add_from_all_sides(1_u32, 41, rounds), [3 * rounds as u32; 41]);
        assert_eq!(add_from_all_sides(1_u16, 67, rounds), [3 * rounds as u16; 67]);
        assert_eq!(add_from_all_sides(1_u8, 99, rounds), [(3 * rounds) as u8; 99]);
    }

    #[test]
    fn compare_swap_swaps_on_equal_bits_only() {
        let mut place = 5_u16;
        // SAFETY: - a place of this function, borrowed for the call only.
        assert_eq!(unsafe { compare_swap(&raw mut place, 4, 9) }, 5);
        assert_eq!(place, 5);
        // SAFETY: - as above.
        assert_eq!(unsafe { compare_swap(&raw mut place, 5, 9) }, 5);
        assert_eq!(place, 9);
    }
}
