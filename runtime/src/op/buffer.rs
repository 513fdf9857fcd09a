//! Buffers that a request owns. Never borrows from its caller.
#![forbid(unsafe_code)]

use crate::element::Element;

/// Elements that are handed over to a request and come back from it: a vector, a boxed slice, an array.
pub trait Buffer<T: Element> {
    /// The elements.
    fn elements(&self) -> &[T];
    /// The elements, for a get.
    fn elements_mut(&mut self) -> &mut [T];
}

macro_rules! buffers {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<T: Element, $($generics)*> Buffer<T> for $type {
            fn elements(&self) -> &[T] {
                self
            }

            fn elements_mut(&mut self) -> &mut [T] {
                self
            }
        }
    )*};
}

buffers! {
    [] Vec<T>;
    [] Box<[T]>;
    [const N: usize] [T; N];
}
