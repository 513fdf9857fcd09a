//! A field whose size depends on the machine.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Link {
    next: usize,
}

fn main() {}
