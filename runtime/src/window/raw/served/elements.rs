//! Elements of basic types that are known by their codes: how each operation combines them. Never checks bounds or who is
//! admitted.
#![allow(unsafe_code)]

use crate::element::{
    And, Basic, BasicType, Bool, Max, Min, NoOp, OpCode, Operation, Or, Prod, Replace, Sum, Xor,
};
use crate::transport::shm::atomic;
use crate::transport::shm::copy::Engine;
use crate::transport::tcp::frame::Malformed;

const NO_OPERATION: Malformed = Malformed("an operation that the type does not have");

/// The bits of elements, under names that floats do not have themselves.
trait Bits: Basic {
    fn from_bits_of(bits: u64) -> Self {
        <Self as Basic>::from_bits(bits)
    }

    fn bits_of(self) -> u64 {
        <Self as Basic>::to_bits(self)
    }
}

impl<T: Basic> Bits for T {}

/// Calls `$then!(type, operation)` for the operation that the code names, if it is among these.
macro_rules! among {
    ($code:expr, $then:ident, $type:ty: $($name:ident),*) => {
        match $code {
            $(code if code == OpCode::$name as u32 => Ok($then!($type, $name)),)*
            _ => Err(NO_OPERATION),
        }
    };
}

macro_rules! among_integers {
    ($code:expr, $then:ident, $type:ty) => {
        among!($code, $then, $type: Sum, Prod, Min, Max, And, Or, Xor, Replace, NoOp)
    };
}

/// Calls `$then!(type, operation)` for the type and the operation that the codes name.
macro_rules! dispatch {
    ($basic:expr, $code:expr, $then:ident) => {
        match $basic {
            BasicType::I8 => among_integers!($code, $then, i8),
            BasicType::I16 => among_integers!($code, $then, i16),
            BasicType::I32 => among_integers!($code, $then, i32),
            BasicType::I64 => among_integers!($code, $then, i64),
            BasicType::U8 => among_integers!($code, $then, u8),
            BasicType::U16 => among_integers!($code, $then, u16),
            BasicType::U32 => among_integers!($code, $then, u32),
            BasicType::U64 => among_integers!($code, $then, u64),
            BasicType::F32 => among!($code, $then, f32: Sum, Prod, Min, Max, Replace, NoOp),
            BasicType::F64 => among!($code, $then, f64: Sum, Prod, Min, Max, Replace, NoOp),
            BasicType::Bool => among!($code, $then, Bool: And, Or, Xor, Replace, NoOp),
        }
    };
}

/// What two elements combine to, by their bits.
pub(super) fn combine_bits(
    basic: BasicType,
    operation: u32,
    target: u64,
    origin: u64,
) -> Result<u64, Malformed> {
    macro_rules! combine {
        ($type:ty, $name:ident) => {
            $name.combine(<$type>::from_bits_of(target), <$type>::from_bits_of(origin)).bits_of()
        };
    }
    dispatch!(basic, operation, combine)
}

/// Combines elements by the machine's atomic instructions.
///
/// # Safety
///
/// As for [`atomic::fetch_op_each`].
pub(super) unsafe fn combine_each(
    engine: Engine,
    (basic, operation): (BasicType, u32),
    at: *mut u8,
    origin: *const u8,
    count: usize,
) -> Result<(), Malformed> {
    macro_rules! combine {
        ($type:ty, $name:ident) => {
            // SAFETY: - the caller's promise.
            unsafe {
                atomic::fetch_op_each(
                    engine,
                    at.cast::<$type>(),
                    origin.cast::<$type>(),
                    count,
                    $name,
                    |_| (),
                )
            }
        };
    }
    dispatch!(basic, operation, combine)
}

/// As [`combine_each`], for an origin that is alone.
///
/// # Safety
///
/// As for [`atomic::combine_alone`].
pub(super) unsafe fn combine_alone(
    engine: Engine,
    (basic, operation): (BasicType, u32),
    at: *mut u8,
    origin: *const u8,
    count: usize,
) -> Result<(), Malformed> {
    macro_rules! combine {
        ($type:ty, $name:ident) => {
            // SAFETY: - the caller's promise.
            unsafe { atomic::combine_alone(engine, at.cast::<$type>(), origin.cast::<$type>(), count, $name) }
        };
    }
    dispatch!(basic, operation, combine)
}

/// Combines one element with the value of these bits, and gives the bits that were there.
///
/// # Safety
///
/// As for [`atomic::fetch_op`].
pub(super) unsafe fn fetch_op(
    (basic, operation): (BasicType, u32),
    at: *mut u8,
    bits: u64,
) -> Result<u64, Malformed> {
    macro_rules! combine {
        ($type:ty, $name:ident) => {
            // SAFETY: - the caller's promise.
            unsafe { atomic::fetch_op(at.cast::<$type>(), $name, <$type>::from_bits_of(bits)) }.bits_of()
        };
    }
    dispatch!(basic, operation, combine)
}

/// Stores new bits where the expected ones are found, and gives those that were there.
///
/// # Safety
///
/// As for [`atomic::compare_swap`].
pub(super) unsafe fn compare_swap(basic: BasicType, at: *mut u8, expected: u64, new: u64) -> u64 {
    macro_rules! among {
        ($($name:ident: $type:ty),*) => {
            match basic {
                // SAFETY: - the caller's promise.
                $(BasicType::$name => unsafe {
                    atomic::compare_swap(at.cast::<$type>(), <$type>::from_bits_of(expected), <$type>::from_bits_of(new))
                }.bits_of(),)*
            }
        };
    }
    among!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64, Bool: Bool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_to_the_operations_that_they_name() {
        let check = |basic, operation: OpCode, target: u64, origin: u64, expected: Result<u64, Malformed>| {
            assert_eq!(combine_bits(basic, operation as u32, target, origin), expected);
            // By the machine's instructions the same comes out.
            let mut place = target;
            // SAFETY: - a place of this test, as large and aligned as any element.
            let before = unsafe { fetch_op((basic, operation as u32), (&raw mut place).cast(), origin) };
            assert_eq!(before.is_ok(), expected.is_ok());
            if let Ok(expected) = expected {
                assert_eq!((before, place), (Ok(target), expected));
            }
        };
        check(BasicType::U8, OpCode::Sum, 250, 10, Ok(4));
        check(BasicType::I16, OpCode::Min, 0xfffb, 3, Ok(0xfffb));
        check(BasicType::U64, OpCode::Xor, 6, 3, Ok(5));
        check(BasicType::F64, OpCode::Prod, 1.5_f64.to_bits(), 2.0_f64.to_bits(), Ok(3.0_f64.to_bits()));
        check(BasicType::F32, OpCode::Replace, 7, 9, Ok(9));
        check(BasicType::Bool, OpCode::NoOp, 1, 0, Ok(1));
        check(BasicType::F64, OpCode::And, 1, 1, Err(NO_OPERATION));
        check(BasicType::Bool, OpCode::Sum, 1, 1, Err(NO_OPERATION));
        assert_eq!(combine_bits(BasicType::I8, 0, 1, 1), Err(NO_OPERATION));
    }
}
