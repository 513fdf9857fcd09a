//! Reductions whose result does not depend on the order or the grouping of the values: an exact sum, and minimum
//! and maximum with −0 below +0. Never rounds before the end.

/// Words in which a sum travels between ranks.
pub const SUM_WORDS: usize = CHUNKS + 3;

const CHUNKS: usize = 67;
/// Additions after which carries are settled: each adds less than 2^53 to a chunk of 63 bits.
const ADDITIONS_MAX: u32 = 1000;

/// An exact sum of doubles: a number of some 2,100 bits in chunks of 32, with room for carries in each.
#[derive(Clone)]
pub struct ExactSum {
    chunks: [i64; CHUNKS],
    pending: u32,
    /// How many +∞, −∞ and NaN were added.
    special: [i64; 3],
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { chunks: [0; CHUNKS], pending: 0, special: [0; 3] }
    }
}

impl ExactSum {
    /// Adds one value, exactly.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52) as usize & 0x7ff;
        if exponent == 0x7ff {
            return self.add_special(value);
        }
        let fraction = bits & ((1 << 52) - 1);
        // The lowest bit of the smallest double has position 0.
        let (significand, position) =
            if exponent == 0 { (fraction, 0) } else { (fraction | (1 << 52), exponent - 1) };
        let (chunk, shift) = (position >> 5, position & 31);
        let low = ((significand << shift) & 0xffff_ffff) as i64;
        let high = (significand >> (32 - shift)) as i64;
        let sign = (bits as i64) >> 63;
        self.chunks[chunk] += (low ^ sign) - sign;
        self.chunks[chunk + 1] += (high ^ sign) - sign;
        self.pending += 1;
        if self.pending == ADDITIONS_MAX {
            self.settle();
        }
    }

    #[cold]
    fn add_special(&mut self, value: f64) {
        let index = if value.is_nan() { 2 } else { usize::from(value < 0.0) };
        self.special[index] += 1;
    }

    /// Carries upwards, so that every chunk but the last is in `0 .. 2^32`.
    fn settle(&mut self) {
        let mut carry = 0;
        for chunk in &mut self.chunks[..CHUNKS - 1] {
            let value = *chunk + carry;
            carry = value >> 32;
            *chunk = value & 0xffff_ffff;
        }
        self.chunks[CHUNKS - 1] += carry;
        self.pending = 0;
    }

    /// The sum as words that ranks add up one by one.
    pub fn to_words(mut self) -> [i64; SUM_WORDS] {
        self.settle();
        let mut words = [0; SUM_WORDS];
        words[..CHUNKS].copy_from_slice(&self.chunks);
        words[CHUNKS..].copy_from_slice(&self.special);
        words
    }

    /// The sum whose words these are, or the sum of the sums whose words were added.
    pub fn from_words(words: &[i64]) -> ExactSum {
        let mut sum = ExactSum::default();
        for (chunk, word) in sum.chunks.iter_mut().zip(words) {
            *chunk = *word;
        }
        for (special, word) in sum.special.iter_mut().zip(words.iter().skip(CHUNKS)) {
            *special = *word;
        }
        sum.settle();
        sum
    }

    /// The sum, rounded once to the nearest double, ties to even.
    pub fn round(mut self) -> f64 {
        match self.special {
            [0, 0, 0] => {}
            [_, 0, 0] => return f64::INFINITY,
            [0, _, 0] => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        self.settle();
        let negative = self.chunks[CHUNKS - 1] < 0;
        if negative {
            for chunk in &mut self.chunks {
                *chunk = -*chunk;
            }
            self.settle();
        }
        let Some(top) = self.chunks.iter().rposition(|chunk| *chunk != 0) else {
            return 0.0;
        };
        if top == CHUNKS - 1 {
            return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        let bit = |position: usize| (self.chunks[position >> 5] >> (position & 31)) & 1 == 1;
        let highest = top * 32 + (63 - self.chunks[top].leading_zeros() as usize);
        let magnitude = if highest <= 52 {
            // Below the smallest double of full precision everything is exact.
            (self.chunks[0] as u64) | ((self.chunks[1] as u64) << 32)
        } else {
            let lowest = highest - 52;
            let mut significand = 0u64;
            for position in (lowest..=highest).rev() {
                significand = (significand << 1) | u64::from(bit(position));
            }
            let half = bit(lowest - 1);
            let rest = (0..(lowest - 1) >> 5).any(|chunk| self.chunks[chunk] != 0)
                || (((lowest - 1) & !31)..lowest - 1).any(bit);
            if half && (rest || significand & 1 == 1) {
                significand += 1;
            }
            // Adding carries into the exponent when the significand overflowed.
            (((lowest as u64) << 52) + significand).min(f64::INFINITY.to_bits())
        };
        let value = f64::from_bits(magnitude);
        if negative { -value } else { value }
    }
}

/// A double as an integer of the same order, −0 below +0; NaN of either sign is outermost.
#[inline(always)]
pub fn order_key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The double whose [`order_key`] this is.
#[inline(always)]
pub fn from_order_key(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// [`order_key`], with NaN above all.
#[inline(always)]
pub fn max_key(value: f64) -> i64 {
    if value.is_nan() { i64::MAX } else { order_key(value) }
}

/// [`order_key`], with NaN below all.
#[inline(always)]
pub fn min_key(value: f64) -> i64 {
    if value.is_nan() { i64::MIN } else { order_key(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        for value in values {
            sum.add(*value);
        }
        sum.round()
    }

    /// A small generator, so that the cases are the same in every run.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn sums_are_exact_and_rounded_once() {
        assert_eq!(sum(&[1e308, 1.0, -1e308]), 1.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[5e-324, 5e-324]), 1e-323);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::MIN_POSITIVE - 5e-324);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[]).to_bits(), 0);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum(&[f64::NEG_INFINITY, 1.0]), f64::NEG_INFINITY);
    }

    #[test]
    fn two_values_are_added_as_the_processor_adds_them() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..20_000 {
            let a = f64::from_bits(random(&mut state));
            let near =
                (a.to_bits() & (0x7ff << 52)).wrapping_sub((random(&mut state) % 60) << 52) & (0x7ff << 52);
            let b = f64::from_bits(near | (random(&mut state) & !(0x7ff << 52)));
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            assert_eq!(sum(&[a, b]).to_bits(), (a + b).to_bits(), "{a:e} + {b:e}");
        }
    }

    #[test]
    fn grouping_and_order_do_not_matter() {
        let mut state = 7;
        let values: Vec<f64> = (0..5000)
            .map(|_| f64::from_bits(random(&mut state)))
            .filter(|value| value.is_finite() && value.abs() < 1e300)
            .collect();
        let whole = sum(&values);
        let mut words = [0i64; SUM_WORDS];
        for part in values.rchunks(37) {
            let mut sum = ExactSum::default();
            for value in part.iter().rev() {
                sum.add(*value);
            }
            for (word, more) in words.iter_mut().zip(sum.to_words()) {
                *word += more;
            }
        }
        assert_eq!(ExactSum::from_words(&words).round().to_bits(), whole.to_bits());
    }

    #[test]
    fn keys_keep_the_order_and_come_back() {
        let values = [f64::NEG_INFINITY, -2.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, f64::INFINITY];
        for pair in values.windows(2) {
            assert!(order_key(pair[0]) < order_key(pair[1]), "{pair:?}");
        }
        for value in values {
            assert_eq!(from_order_key(order_key(value)).to_bits(), value.to_bits());
        }
    }
}
