//! The element types that windows hold and the operations that combine them. Never touches window memory.
#![deny(unsafe_code)] // Not `forbid`, which `plain` could not lift.

mod boolean;
pub(crate) mod plain;
pub(crate) mod shape;

use std::fmt;

pub use boolean::Bool;
pub use plain::Element;
pub(crate) use plain::zeroed;
pub(crate) use shape::{Kind, name_of};
pub use shape::{Member, Shape};

/// The basic types that both sides of a transfer must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
#[allow(missing_docs)] // The names are the Rust types.
pub enum BasicType {
    I8 = 1,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// A byte that is zero for false: [`Bool`](struct@Bool).
    Bool,
}

impl BasicType {
    /// The size of one element in bytes, which is also its alignment.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The name of the Rust type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "Bool",
        }
    }

    /// The type with this number, as it travels between ranks.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::I8,
            2 => Self::I16,
            3 => Self::I32,
            4 => Self::I64,
            5 => Self::U8,
            6 => Self::U16,
            7 => Self::U32,
            8 => Self::U64,
            9 => Self::F32,
            10 => Self::F64,
            11 => Self::Bool,
            _ => return None,
        })
    }
}

impl fmt::Display for BasicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An element that is one basic type: of 1, 2, 4 or 8 bytes and aligned to its size, so that the machine can change it at once.
///
/// The trait is sealed: code that combines elements atomically relies on these properties.
pub trait Basic:
    Element + sealed::Sealed + Default + PartialEq + PartialOrd + fmt::Debug + fmt::Display
{
    /// The basic type, as both sides of a transfer compare it.
    const TYPE: BasicType;

    /// The bits of the value, zero-extended.
    fn to_bits(self) -> u64;

    /// The value with these bits; higher ones are ignored.
    fn from_bits(bits: u64) -> Self;
}

/// Names an operation where types cannot: on the wire, in traces and in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // The names are those of the marker types below.
pub enum OpCode {
    Sum = 1,
    Prod,
    Min,
    Max,
    And,
    Or,
    Xor,
    Replace,
    NoOp,
}

impl OpCode {
    /// Whether the operation writes what it combines.
    pub(crate) const fn changes(self) -> bool {
        !matches!(self, OpCode::NoOp)
    }
}

/// An operation that accumulate, fetch_op and reductions can apply to elements of type `T`.
///
/// [`Replace`] and [`NoOp`] apply to every element, structures too; the others to those that they are defined for.
///
/// Integer arithmetic wraps. On floats `Min` and `Max` order −0 below +0 and prefer a number to a NaN, so that the
/// result does not depend on the order of combination; the bitwise operations have no implementation for floats:
///
/// ```compile_fail
/// fn needs<T: rma::Element, O: rma::Operation<T>>(_: O) {}
/// needs::<f64, _>(rma::And);
/// ```
pub trait Operation<T: Element>: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The operation's number.
    const CODE: OpCode;

    /// The new value of the target's element.
    fn combine(self, target: T, origin: T) -> T;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name;
        impl sealed::Sealed for $name {}
    )*};
}

operations! {
    /// Addition.
    Sum;
    /// Multiplication.
    Prod;
    /// The smaller of the two.
    Min;
    /// The larger of the two.
    Max;
    /// Bitwise and.
    And;
    /// Bitwise or.
    Or;
    /// Bitwise exclusive or.
    Xor;
    /// The origin's value.
    Replace;
    /// The target's value, unchanged: with `get_accumulate` and `fetch_op` an atomic get.
    NoOp;
}

impl<T: Element> Operation<T> for Replace {
    const CODE: OpCode = OpCode::Replace;
    #[inline(always)]
    fn combine(self, _target: T, origin: T) -> T {
        origin
    }
}

impl<T: Element> Operation<T> for NoOp {
    const CODE: OpCode = OpCode::NoOp;
    #[inline(always)]
    fn combine(self, target: T, _origin: T) -> T {
        target
    }
}

macro_rules! operation {
    ($type:ty, $name:ident, |$target:ident, $origin:ident| $value:expr) => {
        impl Operation<$type> for $name {
            const CODE: OpCode = OpCode::$name;
            #[inline(always)]
            fn combine(self, $target: $type, $origin: $type) -> $type {
                $value
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident as $unsigned:ident = $code:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Basic for $type {
            const TYPE: BasicType = BasicType::$code;
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $type
            }
        }
        operation!($type, Sum, |target, origin| target.wrapping_add(origin));
        operation!($type, Prod, |target, origin| target.wrapping_mul(origin));
        operation!($type, Min, |target, origin| if origin < target { origin } else { target });
        operation!($type, Max, |target, origin| if target < origin { origin } else { target });
        operation!($type, And, |target, origin| target & origin);
        operation!($type, Or, |target, origin| target | origin);
        operation!($type, Xor, |target, origin| target ^ origin);
    )*};
}

macro_rules! floats {
    ($($type:ident as $unsigned:ident = $code:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Basic for $type {
            const TYPE: BasicType = BasicType::$code;
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(<$type>::to_bits(self))
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$type>::from_bits(bits as $unsigned)
            }
        }
        operation!($type, Sum, |target, origin| target + origin);
        operation!($type, Prod, |target, origin| target * origin);
        operation!($type, Min, |target, origin| {
            let take = target.is_nan() || (!origin.is_nan() && origin.total_cmp(&target).is_lt());
            if take { origin } else { target }
        });
        operation!($type, Max, |target, origin| {
            let take = target.is_nan() || (!origin.is_nan() && origin.total_cmp(&target).is_gt());
            if take { origin } else { target }
        });
    )*};
}

integers!(
    i8 as u8 = I8,
    i16 as u16 = I16,
    i32 as u32 = I32,
    i64 as u64 = I64,
    u8 as u8 = U8,
    u16 as u16 = U16,
    u32 as u32 = U32,
    u64 as u64 = U64
);
floats!(f32 as u32 = F32, f64 as u64 = F64);

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn bits_make_the_round_trip() {
        assert_eq!(i8::from_bits(Basic::to_bits(-3_i8)), -3);
        assert_eq!(Basic::to_bits(-1_i16), 0xffff);
        assert_eq!(<f64 as Basic>::from_bits(Basic::to_bits(-0.5_f64)), -0.5);
    }

    #[test]
    fn extremes_of_floats_do_not_depend_on_the_order() {
        let min = |a: f64, b: f64| Min.combine(a, b).to_bits();
        assert_eq!(min(0.0, -0.0), min(-0.0, 0.0));
        assert_eq!(Max.combine(-0.0_f64, 0.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(Min.combine(f64::NAN, 1.0), 1.0);
        assert_eq!(Max.combine(1.0, f64::NAN), 1.0);
    }

    #[test]
    fn codes_make_the_round_trip() {
        for code in 0..=u8::MAX {
            assert!(BasicType::from_code(code).is_none_or(|basic| basic as u8 == code));
        }
        assert_eq!(BasicType::from_code(f64::TYPE as u8), Some(BasicType::F64));
    }
}
