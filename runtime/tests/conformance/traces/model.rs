//! The memory of one window as plain bytes, and what the specification says that accesses do to it. Never asks the runtime
//! anything: not a line is shared with it.

/// The bytes of every rank's part of a window whose elements have `size` bytes.
#[derive(Clone)]
pub(super) struct Memory {
    size: usize,
    parts: Vec<Vec<u8>>,
}

/// What an accumulate does with an element and an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Sum,
    Prod,
    Min,
    Max,
    And,
    Or,
    Xor,
    Replace,
}

pub(super) const COMBINES: [Combine; 8] = [
    Combine::Sum,
    Combine::Prod,
    Combine::Min,
    Combine::Max,
    Combine::And,
    Combine::Or,
    Combine::Xor,
    Combine::Replace,
];

impl Memory {
    /// Zeroed memory of these numbers of elements.
    pub(super) fn new(size: usize, lens: &[usize]) -> Memory {
        Memory { size, parts: lens.iter().map(|len| vec![0; len * size]).collect() }
    }

    pub(super) fn len(&self, rank: u32) -> usize {
        self.parts[rank as usize].len() / self.size
    }

    /// The values that an element can have.
    pub(super) fn truncate(&self, value: u64) -> u64 {
        match self.size {
            8 => value,
            size => value % (1 << (8 * size)),
        }
    }

    pub(super) fn read(&self, rank: u32, cell: usize) -> u64 {
        let bytes = &self.parts[rank as usize][cell * self.size..][..self.size];
        let (mut value, mut weight) = (0, 1_u64);
        for &byte in bytes {
            value += u64::from(byte) * weight;
            weight = weight.wrapping_mul(256);
        }
        value
    }

    pub(super) fn write(&mut self, rank: u32, cell: usize, value: u64) {
        let mut rest = value;
        for byte in &mut self.parts[rank as usize][cell * self.size..][..self.size] {
            *byte = (rest % 256) as u8;
            rest /= 256;
        }
    }

    pub(super) fn combine(&mut self, rank: u32, cell: usize, combine: Combine, operand: u64) {
        let old = self.read(rank, cell);
        let new = match combine {
            Combine::Sum => old.wrapping_add(operand),
            Combine::Prod => old.wrapping_mul(operand),
            Combine::Min => {
                if operand < old {
                    operand
                } else {
                    old
                }
            }
            Combine::Max => {
                if old < operand {
                    operand
                } else {
                    old
                }
            }
            Combine::And => old & operand,
            Combine::Or => old | operand,
            Combine::Xor => old ^ operand,
            Combine::Replace => operand,
        };
        self.write(rank, cell, self.truncate(new));
    }
}
