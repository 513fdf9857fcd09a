//! Exact sums of reals, rounded once. The result does not depend on the order or grouping of the terms.
//! Self-contained, so that emitted programs can carry it. Never allocates after creation.

/// Digits of the accumulator: 2^-1074 to beyond 2^1024 in steps of 32 bits, with room for carries.
const DIGITS: usize = 70;

/// Terms between two rounds of carrying; each adds less than 2^32 to a digit of 64 bits.
const PENDING_MAX: u32 = 1 << 29;

/// The exact sum of any number of reals.
#[derive(Clone)]
pub struct ExactSum {
    /// `Σ digits[i] * 2^(32*i - 1074)`.
    digits: [i64; DIGITS],
    pending: u32,
    n_positive_infinities: u64,
    n_negative_infinities: u64,
    n_nans: u64,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum {
            digits: [0; DIGITS],
            pending: 0,
            n_positive_infinities: 0,
            n_negative_infinities: 0,
            n_nans: 0,
        }
    }
}

impl ExactSum {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        if !term.is_finite() {
            match () {
                () if term.is_nan() => self.n_nans += 1,
                () if term > 0.0 => self.n_positive_infinities += 1,
                () => self.n_negative_infinities += 1,
            }
            return;
        }
        let bits = term.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        // term = mantissa * 2^(shift - 1074)
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | (1 << 52), exponent - 1),
        };
        let (digit, bit) = (shift / 32, shift % 32);
        let wide = u128::from(mantissa) << bit;
        let sign = if bits >> 63 == 1 { -1 } else { 1 };
        for k in 0..3 {
            self.digits[digit + k] += sign * ((wide >> (32 * k)) as u32 as i64);
        }
        self.pending += 1;
        if self.pending == PENDING_MAX {
            self.carry();
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (digit, more) in self.digits.iter_mut().zip(other.digits) {
            *digit += more;
        }
        self.carry();
        self.n_positive_infinities += other.n_positive_infinities;
        self.n_negative_infinities += other.n_negative_infinities;
        self.n_nans += other.n_nans;
    }

    /// The sum rounded to nearest, ties to even; a sum of zero is +0.
    pub fn value(&self) -> f64 {
        match (self.n_nans, self.n_positive_infinities, self.n_negative_infinities) {
            (0, 0, 0) => {}
            (0, _, 0) => return f64::INFINITY,
            (0, 0, _) => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        let mut sum = self.clone();
        sum.carry();
        // After carrying, all digits but the last are in 0..2^32, so the last one has the sign.
        let is_negative = sum.digits[DIGITS - 1] < 0;
        if is_negative {
            for digit in &mut sum.digits {
                *digit = -*digit;
            }
            sum.carry();
        }
        let Some(top) = sum.digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
        let top_bits = 64 - (sum.digits[top] as u64).leading_zeros() as usize;
        let length = 32 * top + top_bits;
        // Bits `from..length` are kept; below 2^-1074 there are none.
        let from = length.saturating_sub(53);
        let bit = |i: usize| (sum.digits[i / 32] as u64 >> (i % 32)) & 1;
        let mut mantissa = (from..length).rev().fold(0u64, |value, i| value << 1 | bit(i));
        if 0 < from && bit(from - 1) == 1 {
            let has_more = (0..from - 1).any(|i| bit(i) == 1);
            if has_more || mantissa & 1 == 1 {
                mantissa += 1;
            }
        }
        // mantissa <= 2^53 is exact, and so is each scaling by a power of two that stays in range.
        let magnitude = scale(mantissa as f64, from);
        if is_negative { -magnitude } else { magnitude }
    }

    fn carry(&mut self) {
        let mut carry = 0i64;
        for digit in &mut self.digits[..DIGITS - 1] {
            let whole = *digit + carry;
            carry = whole >> 32;
            *digit = whole & 0xffff_ffff;
        }
        self.digits[DIGITS - 1] += carry;
        self.pending = 0;
    }
}

/// `value * 2^(from - 1074)`; `value` has 53 bits or, if `from` is 0, any number below that.
fn scale(value: f64, from: usize) -> f64 {
    let exponent = from as i64 - 1074;
    match exponent {
        // Subnormal numbers and those next to them: the value is a whole multiple of the smallest number.
        i64::MIN..=-1022 => value * f64::from_bits(1) * 2f64.powi((exponent + 1074) as i32),
        -1021..=971 => value * 2f64.powi(exponent as i32),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod test {
    use super::ExactSum;

    fn sum(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|term| sum.add(*term));
        sum.value()
    }

    #[test]
    fn sums_are_exact_and_rounded_once() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum(&[1.0, 1e-17, 1e-17, 1e-16]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[]).to_bits(), 0.0f64.to_bits());
        assert_eq!(sum(&[-0.0, -0.0]).to_bits(), 0.0f64.to_bits());
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn single_terms_come_back() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let term = f64::from_bits(state);
            if term.is_finite() {
                let whole = sum(&[term]);
                assert!(whole == term, "{term:e} became {whole:e}");
            }
        }
        for term in
            [f64::from_bits(1), -f64::from_bits(3), f64::MIN_POSITIVE, 1.5 * f64::MIN_POSITIVE, f64::MAX]
        {
            assert_eq!(sum(&[term]), term);
        }
    }

    #[test]
    fn ties_go_to_even() {
        let half_ulp = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half_ulp]), 1.0);
        assert_eq!(sum(&[1.0 + f64::EPSILON, half_ulp]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[1.0, half_ulp, 1e-300]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[-1.0, -half_ulp, -1e-300]), -1.0 - f64::EPSILON);
    }

    #[test]
    fn grouping_does_not_matter() {
        let terms: Vec<f64> =
            (0..1000).map(|i| ((i * 7919) % 1013) as f64 * 10f64.powi(i % 40 - 20)).collect();
        let whole = sum(&terms);
        let mut parts = ExactSum::default();
        for chunk in terms.chunks(37).rev() {
            let mut part = ExactSum::default();
            chunk.iter().rev().for_each(|term| part.add(-*term));
            parts.merge(&part);
        }
        assert_eq!(parts.value(), -whole);
    }
}
