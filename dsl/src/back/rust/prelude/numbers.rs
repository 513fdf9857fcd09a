//! The arithmetic of the language where Rust's own differs, and the element types of fields.
//! Never contracts, reorders or folds at compile time: the same program gives the same bits everywhere.

use std::hint::black_box;

/// An element type of a field.
pub trait Value: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Type code of a `.npy` header.
    const NPY: &'static str;
    /// The bits as one word of a window.
    fn to_word(self) -> u64;
    /// The value whose [`Value::to_word`] this is.
    fn from_word(word: u64) -> Self;
    /// Appends the value as little-endian bytes.
    fn append_bytes(self, out: &mut Vec<u8>);
    /// Reads the value back from little-endian bytes; `None` when there are too few.
    fn from_le_bytes(bytes: &[u8]) -> Option<Self>;
    /// False for an infinity or NaN.
    fn is_finite_value(self) -> bool;
    /// The shortest text that reads back to the same value.
    fn show(self) -> String;
    /// For a picture.
    fn to_f32(self) -> f32;
}

macro_rules! integer_value {
    ($ty:ty, $npy:literal) => {
        impl Value for $ty {
            const NPY: &'static str = $npy;
            #[inline(always)]
            fn to_word(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                word as $ty
            }
            fn append_bytes(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
                Some(<$ty>::from_le_bytes(bytes.try_into().ok()?))
            }
            #[inline(always)]
            fn is_finite_value(self) -> bool {
                true
            }
            fn show(self) -> String {
                self.to_string()
            }
            fn to_f32(self) -> f32 {
                self as f32
            }
        }
    };
}
integer_value!(u64, "<u8");
integer_value!(i64, "<i8");

impl Value for f64 {
    const NPY: &'static str = "<f8";
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        f64::from_bits(word)
    }
    fn append_bytes(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        Some(f64::from_le_bytes(bytes.try_into().ok()?))
    }
    #[inline(always)]
    fn is_finite_value(self) -> bool {
        self.is_finite()
    }
    fn show(self) -> String {
        python_style(&format!("{self:e}"))
    }
    fn to_f32(self) -> f32 {
        self as f32
    }
}

impl Value for f32 {
    const NPY: &'static str = "<f4";
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        f32::from_bits(word as u32)
    }
    fn append_bytes(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        Some(f32::from_le_bytes(bytes.try_into().ok()?))
    }
    #[inline(always)]
    fn is_finite_value(self) -> bool {
        self.is_finite()
    }
    fn show(self) -> String {
        python_style(&format!("{self:e}"))
    }
    fn to_f32(self) -> f32 {
        self
    }
}

/// Writes the shortest digits as Python's `repr` does: `9.991994828301154e-05`, `0.25`, `3.0`, `1e+16`.
fn python_style(scientific: &str) -> String {
    if scientific == "NaN" {
        return String::from("nan");
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_string(); // Infinities have no exponent.
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    let n_digits = digits.len() as i32;
    if !(-4..16).contains(&exponent) {
        let point = if n_digits > 1 { "." } else { "" };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{}{point}{}e{exponent_sign}{:02}", &digits[..1], &digits[1..], exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent + 1;
    if n_digits <= whole {
        return format!("{sign}{digits}{}.0", "0".repeat((whole - n_digits) as usize));
    }
    format!("{sign}{}.{}", &digits[..whole as usize], &digits[whole as usize..])
}

/// Has its top bit set when the value is not finite; the marks of a row are joined by `|`, which vectorises.
#[inline(always)]
pub fn mark(value: f64) -> u64 {
    (value.to_bits() & (0x7ff << 52)).wrapping_add(1 << 52)
}

/// [`mark`] for single precision.
#[inline(always)]
pub fn mark32(value: f32) -> u32 {
    (value.to_bits() & (0xff << 23)).wrapping_add(1 << 23)
}

// The functions of the mathematics library go through `black_box`: a compiler may otherwise replace a call whose
// argument it knows (`pow(2.0, x)` by `exp2(x)`), which can differ in the last bit.
macro_rules! library {
    ($($name:ident $method:ident),*) => { $(
        #[doc = concat!("`", stringify!($name), "` of the mathematics library.")]
        #[inline(always)]
        pub fn $name(x: f64) -> f64 {
            black_box(x).$method()
        }
    )* };
}
library!(exp exp, log ln, sin sin, cos cos, tan tan);

/// `base` to the power of `exponent`, by the mathematics library.
#[inline(always)]
pub fn pow(base: f64, exponent: f64) -> f64 {
    black_box(base).powf(black_box(exponent))
}

/// `((a*a)*a)*…` from the left, `n` at least 1.
#[inline(always)]
pub fn power<T: Copy + std::ops::Mul<Output = T>>(a: T, n: u32) -> T {
    let mut product = a;
    for _ in 1..n {
        product = product * a;
    }
    product
}

/// [`power`] for integers, which wrap.
#[inline(always)]
pub fn power_i64(a: i64, n: u32) -> i64 {
    a.wrapping_pow(n)
}

/// [`power`] for unsigned integers, which wrap.
#[inline(always)]
pub fn power_u64(a: u64, n: u32) -> u64 {
    a.wrapping_pow(n)
}

macro_rules! real_functions {
    ($ty:ty, $min:ident, $max:ident, $sign:ident, $modulo:ident) => {
        /// The smaller of two; −0 is below +0.
        #[inline(always)]
        pub fn $min(a: $ty, b: $ty) -> $ty {
            if a < b || (a == b && a.is_sign_negative()) || a.is_nan() { a } else { b }
        }
        /// The larger of two; −0 is below +0.
        #[inline(always)]
        pub fn $max(a: $ty, b: $ty) -> $ty {
            if a > b || (a == b && a.is_sign_positive()) || a.is_nan() { a } else { b }
        }
        /// −1, 0 or 1.
        #[inline(always)]
        pub fn $sign(a: $ty) -> $ty {
            if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else if a == 0.0 {
                0.0
            } else {
                a
            }
        }
        /// The remainder of the division, plus the divisor where it is negative.
        #[inline(always)]
        pub fn $modulo(a: $ty, b: $ty) -> $ty {
            let remainder = a % b;
            if remainder < 0.0 { remainder + b } else { remainder }
        }
    };
}
real_functions!(f64, min, max, sign, modulo);
real_functions!(f32, min32, max32, sign32, modulo32);

/// Why an integer operation has no result. It unwinds to [`catch`], as it may happen deep within a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoResult(&'static str);

const DIVISION_BY_ZERO: NoResult = NoResult("integer division by 0");
const SHIFT_TOO_FAR: NoResult = NoResult("a shift must be by 0 to 63");

#[cold]
fn stop(why: NoResult) -> ! {
    std::panic::resume_unwind(Box::new(why))
}

/// Runs `body`; integer operations without a result become an error, other panics go on.
pub fn catch<R, E: From<String>>(body: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<NoResult>() {
            Ok(why) => Err(E::from(why.0.to_string())),
            Err(payload) => std::panic::resume_unwind(payload),
        },
    }
}

/// Floored division.
#[inline]
pub fn div_i64(a: i64, b: i64) -> i64 {
    if b == 0 {
        stop(DIVISION_BY_ZERO);
    }
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// The remainder of [`div_i64`]: never negative for a positive divisor.
#[inline]
pub fn mod_i64(a: i64, b: i64) -> i64 {
    if b == 0 {
        stop(DIVISION_BY_ZERO);
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
}

/// Unsigned division.
#[inline]
pub fn div_u64(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or_else(|| stop(DIVISION_BY_ZERO))
}

/// Unsigned remainder.
#[inline]
pub fn mod_u64(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or_else(|| stop(DIVISION_BY_ZERO))
}

macro_rules! shifts {
    ($ty:ty, $left:ident, $right:ident) => {
        /// Shifts to the left; 64 or more is an error.
        #[inline(always)]
        pub fn $left(a: $ty, by: $ty) -> $ty {
            if (by as u64) < 64 { a << (by as u32) } else { stop(SHIFT_TOO_FAR) }
        }
        /// Shifts to the right; 64 or more is an error.
        #[inline(always)]
        pub fn $right(a: $ty, by: $ty) -> $ty {
            if (by as u64) < 64 { a >> (by as u32) } else { stop(SHIFT_TOO_FAR) }
        }
    };
}
shifts!(i64, shl_i64, shr_i64);
shifts!(u64, shl_u64, shr_u64);

/// What `print` can show.
pub trait Show {
    /// Its text.
    fn text(self) -> String;
}

macro_rules! shows {
    ($($ty:ty),*) => { $(
        impl Show for $ty {
            fn text(self) -> String {
                Value::show(self)
            }
        }
    )* };
}
shows!(f64, f32, i64, u64);

impl Show for bool {
    fn text(self) -> String {
        self.to_string()
    }
}

/// The text of a printed value.
pub fn show(value: impl Show) -> String {
    value.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_language_page_says() {
        let cases: [(f64, &str); 12] = [
            (9.991994828301154e-05, "9.991994828301154e-05"),
            (0.0001, "0.0001"),
            (0.25, "0.25"),
            (3.0, "3.0"),
            (-1200.5, "-1200.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (f64::INFINITY, "inf"),
            (5e-324, "5e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(value.show(), text);
        }
        assert_eq!(0.1f32.show(), "0.1");
    }

    #[test]
    fn a_mark_is_set_exactly_where_a_value_is_not_finite() {
        for value in [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(mark(value) >> 63, 0, "{value}");
            assert_eq!(mark32(value as f32) >> 31, u32::from(!(value as f32).is_finite()), "{value}");
        }
        for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN] {
            assert_eq!(mark(value) >> 63, 1, "{value}");
            assert_eq!(mark32(value as f32) >> 31, 1, "{value}");
        }
    }

    #[test]
    fn division_floors_and_remainders_follow_the_divisor() {
        assert_eq!((div_i64(-7, 2), mod_i64(-7, 2)), (-4, 1));
        assert_eq!((div_i64(7, -2), mod_i64(7, -2)), (-4, -1));
        assert_eq!((div_i64(-6, 2), mod_i64(-6, 2)), (-3, 0));
        assert_eq!(div_i64(i64::MIN, -1), i64::MIN);
        assert_eq!(modulo(-1.0, 3.0), 2.0);
        assert_eq!(catch(|| Ok::<i64, String>(div_i64(1, 0))), Err("integer division by 0".into()));
        assert_eq!(catch(|| Ok::<u64, String>(shr_u64(1, 64))), Err("a shift must be by 0 to 63".into()));
    }

    #[test]
    fn minus_zero_is_below_plus_zero() {
        assert!(min(0.0, -0.0).is_sign_negative() && min(-0.0, 0.0).is_sign_negative());
        assert!(max(0.0, -0.0).is_sign_positive() && max(-0.0, 0.0).is_sign_positive());
    }
}
