//! Padding that would carry whatever was in memory.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Padded {
    small: u32,
    large: f64,
}

fn main() {}
