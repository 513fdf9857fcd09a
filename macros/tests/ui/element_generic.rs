//! A structure with parameters.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Pair<T> {
    first: T,
    second: T,
}

fn main() {}
