//! What an event is made of, as its target is told: parts, each with a displacement and a layout. Never touches the data.
#![forbid(unsafe_code)]

use std::fmt;

use super::Events;
use crate::error::ErrorKind;
use crate::op::Datatype;
use crate::transport::tcp::frame::{Body, Malformed};

/// Which of the three families of calls, each of which matches its own only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Plain = 1,
    Progressive,
    Collective,
}

impl Family {
    pub(super) const ALL: [Family; 3] = [Family::Plain, Family::Progressive, Family::Collective];

    pub(super) fn from_code(code: u64) -> Option<Family> {
        Family::ALL.into_iter().find(|&family| family as u64 == code)
    }

    /// What stands behind the names of the family's calls.
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::Plain => "non-progressive",
            Family::Progressive => "progressive",
            Family::Collective => "collective",
        }
    }
}

/// What an event and the offer that serves it share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) family: Family,
    pub(super) team: u64,
    pub(super) tag: u64,
}

impl Key {
    pub(super) fn bucket(&self) -> usize {
        let mixed = (self.team ^ self.tag.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 58) as usize
    }
}

/// Behaves as the rest of an error's sentence: which exchange it was.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.tag)
    }
}

/// Where the bytes of a part lie, from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// So many in a row.
    Bytes(usize),
    Typed(Datatype),
}

impl Layout {
    /// The bytes that are moved.
    pub(super) fn size(&self) -> usize {
        match self {
            Layout::Bytes(bytes) => *bytes,
            Layout::Typed(datatype) => datatype.size(),
        }
    }

    /// Where the last of them ends.
    pub(super) fn reach(&self) -> usize {
        match self {
            Layout::Bytes(bytes) => *bytes,
            Layout::Typed(datatype) => datatype.span().end,
        }
    }

    /// Whether a byte is named twice; to be asked only of what is known to lie inside some memory.
    pub(super) fn overlaps_itself(&self) -> bool {
        match self {
            Layout::Bytes(_) => false,
            Layout::Typed(datatype) => datatype.overlaps_itself(),
        }
    }

    /// Calls `visit` with each stretch of bytes: where it begins, and how long it is.
    fn stretches(&self, start: usize) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        match self {
            Layout::Bytes(bytes) => Box::new(std::iter::once((start, *bytes))),
            Layout::Typed(datatype) => {
                Box::new(datatype.runs().map(move |run| (start + run.at, run.bytes())))
            }
        }
    }

    /// Pairs the bytes of two layouts off, in their order: where a stretch begins on either side, and how long it is.
    pub(super) fn pair(
        (here, here_start): (&Layout, usize),
        (there, there_start): (&Layout, usize),
        mut visit: impl FnMut(usize, usize, usize),
    ) {
        if let (&Layout::Bytes(bytes), Layout::Bytes(_)) = (here, there) {
            return visit(here_start, there_start, bytes);
        }
        let (mut these, mut those) = (here.stretches(here_start), there.stretches(there_start));
        let (mut a, mut b) = (these.next(), those.next());
        while let (Some((a_at, a_len)), Some((b_at, b_len))) = (a, b) {
            let len = a_len.min(b_len);
            visit(a_at, b_at, len);
            a = if len < a_len { Some((a_at + len, a_len - len)) } else { these.next() };
            b = if len < b_len { Some((b_at + len, b_len - len)) } else { those.next() };
        }
    }
}

/// Which way the data of a part go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the originator into the offer.
    Put = 1,
    /// From the offer to the originator.
    Get,
}

impl Way {
    pub(super) fn events(self) -> Events {
        match self {
            Way::Put => super::PUTS_OK,
            Way::Get => super::GETS_OK,
        }
    }
}

/// A part of an event at its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) way: Way,
    /// In units of the offer.
    pub(super) displacement: u64,
    pub(super) layout: Layout,
}

/// What the target is told of an event, apart from its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heads {
    pub(super) parts: Vec<Head>,
    /// The originator knows that the two sides differ in basic types; nothing is to be moved.
    pub(super) mismatched: bool,
}

impl Heads {
    /// Those of an event that moves nothing: what comes in place of one of a round that was taken back, as its round counts it.
    pub(super) const BLANK: Heads = Heads { parts: Vec::new(), mismatched: false };

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + 32 * self.parts.len());
        out.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        out.extend_from_slice(&u32::from(self.mismatched).to_le_bytes());
        for part in &self.parts {
            let tag = part.way as u32 | if let Layout::Typed(_) = part.layout { TYPED } else { 0 };
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&part.displacement.to_le_bytes());
            match &part.layout {
                Layout::Bytes(bytes) => out.extend_from_slice(&(*bytes as u64).to_le_bytes()),
                Layout::Typed(datatype) => {
                    let bytes = datatype.to_bytes();
                    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                    out.extend_from_slice(&bytes);
                }
            }
        }
        out
    }

    pub(super) fn decode(body: &mut Body<'_>) -> Result<Heads, Malformed> {
        let (count, mismatched) = (body.u32()?, body.u32()? != 0);
        let mut parts = Vec::new();
        for _ in 0..count {
            let tag = body.u32()?;
            let displacement = body.u64()?;
            let way = match tag & !TYPED {
                1 => Way::Put,
                2 => Way::Get,
                _ => return Err(Malformed("a part of an event goes no way that exists")),
            };
            let len = body.len()?;
            let layout = match tag & TYPED {
                0 => Layout::Bytes(len),
                _ => match Datatype::from_bytes(body.bytes(len)?) {
                    Ok(datatype) => Layout::Typed(datatype),
                    Err(_) => return Err(Malformed("a part of an event has a layout that can't be read")),
                },
            };
            parts.push(Head { way, displacement, layout });
        }
        Ok(Heads { parts, mismatched })
    }

    /// The bytes that come from the originator, and those that go to it.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let of = |way| {
            let parts = self.parts.iter().filter(|part| part.way == way);
            parts.fold(0, |sum: usize, part| sum.saturating_add(part.layout.size()))
        };
        (of(Way::Put), of(Way::Get))
    }

    pub(super) fn events(&self) -> Events {
        self.parts.iter().fold(super::NONE_OK, |events, part| events | part.way.events())
    }
}

/// Marks a part whose layout is a datatype.
const TYPED: u32 = 1 << 8;

/// What was wrong with an event. It counts as served, and nothing has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It reaches outside the offer.
    Outside = 1,
    /// Origin and target differ in basic types.
    Types,
    /// The offer of its round does not allow its kind.
    Kind,
    /// Its target layout names a byte twice.
    Twice,
    /// It promised an offer, and there was none.
    NotOffered,
}

impl Fault {
    pub(super) fn from_code(code: u32) -> Option<Fault> {
        let all = [Fault::Outside, Fault::Types, Fault::Kind, Fault::Twice, Fault::NotOffered];
        all.into_iter().find(|&fault| fault as u32 == code)
    }

    pub(super) fn kind(self) -> ErrorKind {
        match self {
            Fault::Outside => ErrorKind::OutsideOffer,
            Fault::Types => ErrorKind::DatatypeMismatch,
            Fault::Kind => ErrorKind::EventNotOffered,
            Fault::Twice => ErrorKind::OverlappingLayout,
            Fault::NotOffered => ErrorKind::NotOffered,
        }
    }
}

/// A fault and its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) fault: Fault,
    /// The bytes of the offer that the event names, for [`Fault::Outside`].
    pub(super) start: u64,
    pub(super) end: u64,
    /// The length of the offer.
    pub(super) bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_as_bytes() {
        let vector = Datatype::of::<u32>().vector(3, 1, 4).unwrap();
        let heads = Heads {
            parts: vec![
                Head { way: Way::Put, displacement: 7, layout: Layout::Bytes(24) },
                Head { way: Way::Get, displacement: u64::MAX, layout: Layout::Typed(vector) },
            ],
            mismatched: false,
        };
        let bytes = heads.encode();
        assert_eq!(Heads::decode(&mut Body::new(&bytes)), Ok(heads.clone()));
        assert_eq!(heads.lengths(), (24, 12));
        for end in 0..bytes.len() {
            assert!(Heads::decode(&mut Body::new(&bytes[..end])).is_err(), "{end} of {}", bytes.len());
        }
    }

    #[test]
    fn layouts_pair_off_in_their_order() {
        let every_other = Layout::Typed(Datatype::of::<u16>().vector(3, 1, 2).unwrap());
        let mut pairs = Vec::new();
        Layout::pair((&every_other, 10), (&Layout::Bytes(6), 0), |a, b, len| pairs.push((a, b, len)));
        assert_eq!(pairs, [(10, 0, 2), (14, 2, 2), (18, 4, 2)]);
    }
}
