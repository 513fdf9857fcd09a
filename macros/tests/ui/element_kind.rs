//! An enumeration as element.

use rma::Element;

#[derive(Clone, Copy, Element)]
#[repr(u8)]
enum State {
    Idle = 0,
    Busy = 1,
}

fn main() {}
