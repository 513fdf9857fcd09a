//! Combines elements of windows atomically. Never locks: every operation is one or a loop of one hardware atomic.
//!
//! One element is the unit (RMA-ATOM-02): a longer accumulate is a sequence of these. All ranks that map the memory, be
//! they threads or processes, use these same instructions, so they are atomic towards each other.
#![allow(unsafe_code)]

use crate::sync::primitive::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::element::{BasicType, Element, OpCode, Operation};

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
            let bits = origin.to_bits() as $word;
            let integer = !matches!(T::TYPE, BasicType::F32 | BasicType::F64);
            // Relaxed: the synchronization calls order the data; the element itself needs atomicity only.
            let old = match O::CODE {
                OpCode::Sum if integer => word.fetch_add(bits, Ordering::Relaxed),
                OpCode::And => word.fetch_and(bits, Ordering::Relaxed),
                OpCode::Or => word.fetch_or(bits, Ordering::Relaxed),
                OpCode::Xor => word.fetch_xor(bits, Ordering::Relaxed),
                OpCode::Replace => word.swap(bits, Ordering::Relaxed),
                _ => {
                    let mut old = word.load(Ordering::Relaxed);
                    loop {
                        let new = operation.combine(T::from_bits(old as u64), origin).to_bits() as $word;
                        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                            Ok(_) => break old,
                            Err(now) => old = now,
                        }
                    }
                }
            };
            T::from_bits(old as u64)
        }};
    }
    match size_of::<T>() {
        1 => on!(AtomicU8, u8),
        2 => on!(AtomicU16, u16),
        4 => on!(AtomicU32, u32),
        _ => on!(AtomicU64, u64),
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
            let (expected, new) = (expected.to_bits() as $word, new.to_bits() as $word);
            // Relaxed: as in `fetch_op`.
            match word.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(old) | Err(old) => T::from_bits(old as u64),
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
    use crate::element::{Max, Min, Or, Prod, Replace, Sum, Xor};

    fn apply<T: Element, O: Operation<T>>(start: T, operation: O, origin: T) -> (T, T) {
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
