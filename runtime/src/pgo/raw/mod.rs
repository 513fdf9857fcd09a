//! The memory that offers and events are about: places in private memory and in the segment, and the one copy between them.
//! Never decides what matches.
//!
//! Private memory of a rank is touched in the rank's own calls only, under a borrow that its place keeps. Memory of the segment
//! that is offered is touched by any rank under the lock of the owner's store, while no reference into it lives; so is what lies
//! behind an event.
#![allow(unsafe_code)]

mod memory;
mod place;
mod serve;

pub use memory::Malloc;
pub(super) use memory::mirror_place;
pub(super) use place::Place;
pub(super) use serve::{
    Ends, Side, carry, check, marks, node_bytes, node_place, offered_place, parcel_place,
};
