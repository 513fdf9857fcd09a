//! Elements as they travel: without their padding, whose bytes may never have been written. Never checks bounds.
#![allow(unsafe_code)]

use crate::element::Shape;
use crate::transport::shm::copy::Engine;

/// The bytes that one element takes on its way.
pub(super) fn packed_bytes(shape: &Shape) -> usize {
    shape.data()
}

/// Appends `count` elements to bytes that are to travel.
///
/// # Safety
///
/// `from` is readable for `count` elements of the shape, which no reference names that others may write through.
pub(super) unsafe fn pack(engine: Engine, shape: &Shape, from: *const u8, count: usize, out: &mut Vec<u8>) {
    let mut at = out.len();
    out.resize(at + count * packed_bytes(shape), 0);
    if shape.is_dense() {
        // SAFETY: - readable: the caller's promise. - writable: just made so long.
        unsafe { engine.copy(out[at..].as_mut_ptr(), from, count * shape.size) };
        return;
    }
    for i in 0..count {
        shape.for_each_item(i * shape.size, &mut |item, basic| {
            let to = out[at..][..basic.size()].as_mut_ptr();
            // SAFETY: - in bounds: an item of the element.
            let from = unsafe { from.add(item) };
            // SAFETY: - readable: the caller's promise. - writable: the slice.
            unsafe { engine.copy(to, from, basic.size()) };
            at += basic.size();
        });
    }
}

/// Writes one element that has travelled to its place, and leaves padding there alone.
///
/// # Safety
///
/// `to` is writable for one element of the shape, and no reference to it lives.
pub(super) unsafe fn unpack(engine: Engine, shape: &Shape, packed: &[u8], to: *mut u8) {
    assert_eq!(packed.len(), packed_bytes(shape), "the bytes are those of one element");
    if shape.is_dense() {
        // SAFETY: - writable: the caller's promise. - readable: a slice of the same length.
        unsafe { engine.copy(to, packed.as_ptr(), packed.len()) };
        return;
    }
    let mut at = 0;
    shape.for_each_item(0, &mut |item, basic| {
        let from = packed[at..][..basic.size()].as_ptr();
        // SAFETY: - in bounds: an item of the element.
        let to = unsafe { to.add(item) };
        // SAFETY: - writable: the caller's promise. - readable: the slice.
        unsafe { engine.copy(to, from, basic.size()) };
        at += basic.size();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{BasicType, Element, Member};
    use crate::transport::shm::copier::CopyEngine;

    /// A number, three bytes of padding behind another one, and an array.
    const SHAPE: Shape = Shape::structure(
        "Padded",
        16,
        &[
            Member::new(0, <u32 as Element>::SHAPE),
            Member::new(4, <u8 as Element>::SHAPE),
            Member::new(8, <[u16; 4] as Element>::SHAPE),
        ],
    );

    #[test]
    fn padding_does_not_travel() {
        let memory: Vec<u8> = (0..32).collect();
        let mut packed = vec![99];
        let engine = Engine::choose(CopyEngine::Mapped);
        // SAFETY: - two elements of the test.
        unsafe { pack(engine, &SHAPE, memory.as_ptr(), 2, &mut packed) };
        let expected: Vec<u8> = (0..5).chain(8..16).chain(16..21).chain(24..32).collect();
        assert_eq!((packed[0], &packed[1..]), (99, &expected[..]));
        assert_eq!(packed_bytes(&SHAPE), 13);
        let mut place = [0xcc_u8; 16];
        // SAFETY: - one element of the test.
        unsafe { unpack(engine, &SHAPE, &packed[1..14], place.as_mut_ptr()) };
        let expected: Vec<u8> = (0..5).chain([0xcc; 3]).chain(8..16).collect();
        assert_eq!(place[..], expected);
    }

    #[test]
    fn what_has_no_padding_travels_as_it_is() {
        let numbers = [1.5_f64, -2.0];
        let mut packed = Vec::new();
        // SAFETY: - two elements of the test.
        unsafe {
            pack(Engine::choose(CopyEngine::Mapped), &f64::SHAPE, numbers.as_ptr().cast(), 2, &mut packed)
        };
        assert_eq!(packed, numbers.map(f64::to_ne_bytes).concat());
        assert_eq!(packed_bytes(&f64::SHAPE), BasicType::F64.size());
    }
}
