//! A structure whose fields the compiler may put in any order.

use rma::Element;

#[derive(Clone, Copy, Element)]
struct Pair {
    first: u32,
    second: u32,
}

fn main() {}
