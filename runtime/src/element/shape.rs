//! What an element is made of, known when the program is compiled: a basic type, an array, or members at offsets. Never
//! names an element type itself.
#![forbid(unsafe_code)]

use std::fmt;

use super::BasicType;

/// The shape of an element type. Made by [`Element`](super::Element)'s implementations only.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Basic(BasicType),
    Array(&'static Shape, usize),
    Members(&'static [Member]),
}

/// A member of a structure: where it begins, in bytes, and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub(crate) offset: usize,
    pub(crate) shape: Shape,
}

impl Member {
    /// A member at an offset that `offset_of!` gave.
    #[doc(hidden)]
    pub const fn new(offset: usize, shape: Shape) -> Member {
        Member { offset, shape }
    }
}

impl Shape {
    pub(super) const fn basic(basic: BasicType) -> Shape {
        Shape { name: basic.name(), size: basic.size(), kind: Kind::Basic(basic) }
    }

    pub(super) const fn array(of: &'static Shape, count: usize) -> Shape {
        Shape { name: "an array", size: of.size * count, kind: Kind::Array(of, count) }
    }

    /// A structure of this many bytes.
    #[doc(hidden)]
    pub const fn structure(name: &'static str, size: usize, members: &'static [Member]) -> Shape {
        Shape { name, size, kind: Kind::Members(members) }
    }

    /// The basic type that the element is, if it is one.
    pub const fn as_basic(&self) -> Option<BasicType> {
        match self.kind {
            Kind::Basic(basic) => Some(basic),
            _ => None,
        }
    }

    /// A number that is the same for types with the same items at the same places.
    pub(crate) fn code(&self) -> u64 {
        if let Some(basic) = self.as_basic() {
            return basic as u64;
        }
        // FNV-1a, over what a program of another compilation would have to agree with.
        let mut code = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |number: usize| {
            for byte in (number as u64).to_le_bytes() {
                code = (code ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }
        };
        add(self.size);
        self.for_each_item(0, &mut |at, basic| {
            add(at);
            add(basic as usize);
        });
        code | STRUCTURES
    }

    /// The bytes that carry a value.
    pub(crate) const fn data(&self) -> usize {
        match self.kind {
            Kind::Basic(basic) => basic.size(),
            Kind::Array(of, count) => of.data() * count,
            Kind::Members(members) => {
                let (mut sum, mut at) = (0, 0);
                while at < members.len() {
                    sum += members[at].shape.data();
                    at += 1;
                }
                sum
            }
        }
    }

    /// Calls `visit` with the offset and type of each item of an element that begins at `at`, in their order.
    pub(crate) fn for_each_item(&self, at: usize, visit: &mut dyn FnMut(usize, BasicType)) {
        match self.kind {
            Kind::Basic(basic) => visit(at, basic),
            Kind::Array(of, count) => {
                for i in 0..count {
                    of.for_each_item(at + i * of.size, visit)
                }
            }
            Kind::Members(members) => {
                for member in members {
                    member.shape.for_each_item(at + member.offset, visit)
                }
            }
        }
    }

    /// Whether every byte carries a value: there is no padding.
    pub const fn is_dense(&self) -> bool {
        self.data() == self.size
    }
}

/// Codes from here on are no basic types.
const STRUCTURES: u64 = 1 << 63;

/// What a code says about a type.
pub(crate) fn name_of(code: u64) -> &'static str {
    match code {
        STRUCTURES.. => "another structure",
        _ => BasicType::from_code(code as u8).map_or("unknown", BasicType::name),
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Array(of, count) => write!(f, "[{of}; {count}]"),
            _ => f.write_str(self.name),
        }
    }
}
