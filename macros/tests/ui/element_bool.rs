//! A field of which only two bytes are values.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Flags {
    done: [bool; 4],
}

fn main() {}
