//! An option that does not exist.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[element(packed)]
#[repr(C)]
struct Pair {
    first: u32,
    second: u32,
}

fn main() {}
