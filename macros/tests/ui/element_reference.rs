//! A field that points somewhere.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Node {
    next: &'static u64,
}

fn main() {}
