//! A truth value that any byte can be. Never a `bool` in memory that others write.
#![forbid(unsafe_code)]

use std::fmt;

use super::{And, Basic, BasicType, OpCode, Operation, Or, Xor, sealed};

/// A truth value as an element of windows: zero is false, every other byte is true.
///
/// A window can't hold `bool`, of which only the bytes 0 and 1 are values: whatever another rank puts, and whatever two
/// unordered puts leave, must be a value here. Bytes that the language makes from a `bool` are 0 and 1.
///
/// [`And`], [`Or`] and [`Xor`] are those of logic and leave 0 or 1; comparison is by truth.
///
/// ```
/// use rma::Bool;
/// assert!(Bool::from(true).get());
/// assert_eq!(Bool::default(), Bool::from(false));
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Whether the byte is not zero.
    #[inline(always)]
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl From<Bool> for bool {
    #[inline(always)]
    fn from(value: Bool) -> bool {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl PartialOrd for Bool {
    fn partial_cmp(&self, other: &Bool) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bool {
    fn cmp(&self, other: &Bool) -> std::cmp::Ordering {
        self.get().cmp(&other.get())
    }
}

impl fmt::Display for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.get(), f)
    }
}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

impl sealed::Sealed for Bool {}

impl Basic for Bool {
    const TYPE: BasicType = BasicType::Bool;
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Bool {
        Bool(bits as u8)
    }
}

macro_rules! logic {
    ($($name:ident: $operator:tt;)*) => {$(
        impl Operation<Bool> for $name {
            const CODE: OpCode = OpCode::$name;
            #[inline(always)]
            fn combine(self, target: Bool, origin: Bool) -> Bool {
                Bool::from(target.get() $operator origin.get())
            }
        }
    )*};
}

logic! {
    And: &;
    Or: |;
    Xor: ^;
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_byte_is_a_truth_value() {
        for byte in 0..=255_u64 {
            let value = Bool::from_bits(byte);
            assert_eq!(value.get(), byte != 0);
            assert_eq!(And.combine(Bool::from(true), value), value);
            assert_eq!(Or.combine(Bool::from(false), value).to_bits(), u64::from(byte != 0));
            assert!(!Xor.combine(value, value).get());
        }
        assert_eq!(And.combine(Bool::from_bits(2), Bool::from_bits(4)), Bool::from(true), "not by bits");
    }
}
