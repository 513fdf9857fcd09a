//! A structure that can't be copied, and a field that is no plain data.

use rma::Element;

#[derive(Clone, Element)]
#[repr(C)]
struct Moved {
    number: u32,
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Holds {
    letter: char,
}

fn main() {}
