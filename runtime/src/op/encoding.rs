//! Datatypes as bytes, short enough for the head of a message. Never believes a byte: what is read is checked like what a
//! program builds.
//!
//! A version, the extent, and the tree from its root: a tag, its numbers, what is below it. Numbers are little-endian groups of
//! seven bits, of which all but the last have the eighth bit set, so a vector of numbers takes about ten bytes.
#![forbid(unsafe_code)]

use std::sync::Arc;

use super::datatype::{DEPTH_MAX, Datatype, NOTHING, Node, refuse};
use crate::element::BasicType;
use crate::error::{Error, ErrorKind, Result};

const VERSION: u8 = 1;

const ITEMS: u8 = 0;
const REPEAT: u8 = 1;
const BLOCKS: u8 = 2;
const PARTS: u8 = 3;

impl Datatype {
    /// The datatype as bytes, from which [`from_bytes`](Datatype::from_bytes) makes an equal one, on any machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        number(&mut bytes, self.extent());
        write(&mut bytes, &self.node);
        bytes
    }

    /// The datatype that [`to_bytes`](Datatype::to_bytes) has written.
    ///
    /// # Errors
    /// `Protocol` for bytes that it did not write; `OutOfBounds` for a datatype that can't be built.
    #[track_caller]
    pub fn from_bytes(bytes: &[u8]) -> Result<Datatype> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Err(malformed("its version is unknown"));
        };
        let mut reader = Reader { rest };
        let extent = reader.number()?;
        let node = reader.node(0)?;
        match reader.rest.is_empty() {
            true => Datatype::new(node, extent),
            false => Err(malformed("bytes are left over")),
        }
    }
}

#[cold]
#[track_caller]
fn malformed(note: &str) -> Error {
    refuse(ErrorKind::Protocol, note)
}

fn number(bytes: &mut Vec<u8>, mut number: usize) {
    while 0x80 <= number {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn write(bytes: &mut Vec<u8>, node: &Node) {
    match node {
        &Node::Items(basic, count) => {
            bytes.extend([ITEMS, basic as u8]);
            number(bytes, count);
        }
        Node::Repeat { count, stride, inner } => {
            bytes.push(REPEAT);
            number(bytes, *count);
            number(bytes, *stride);
            write(bytes, inner);
        }
        Node::Blocks { blocks, stride, inner } => {
            bytes.push(BLOCKS);
            number(bytes, blocks.len());
            number(bytes, *stride);
            for &(offset, count) in blocks.iter() {
                number(bytes, offset);
                number(bytes, count);
            }
            write(bytes, inner);
        }
        Node::Parts(parts) => {
            bytes.push(PARTS);
            number(bytes, parts.len());
            for (offset, part) in parts.iter() {
                number(bytes, *offset);
                write(bytes, part);
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(|| malformed("it ends too early"))?;
        self.rest = rest;
        Ok(first)
    }

    fn number(&mut self) -> Result<usize> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = usize::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed("a number is too large"))
    }

    /// How many entries follow, each of which takes at least so many bytes: no more than there is room for.
    fn entries(&mut self, least: usize) -> Result<usize> {
        let count = self.number()?;
        match count <= self.rest.len() / least {
            true => Ok(count),
            false => Err(malformed("it ends too early")),
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        if DEPTH_MAX <= depth {
            return Err(malformed("it is nested too deep"));
        }
        let node = match self.byte()? {
            ITEMS => {
                let basic = BasicType::from_code(self.byte()?);
                let basic = basic.ok_or_else(|| malformed("a basic type is unknown"))?;
                Node::Items(basic, self.number()?)
            }
            REPEAT => {
                let (count, stride) = (self.number()?, self.number()?);
                Node::Repeat { count, stride, inner: Arc::new(self.node(depth + 1)?) }
            }
            BLOCKS => {
                let (count, stride) = (self.entries(2)?, self.number()?);
                let blocks =
                    (0..count).map(|_| Ok((self.number()?, self.number()?))).collect::<Result<_>>()?;
                Node::Blocks { blocks, stride, inner: Arc::new(self.node(depth + 1)?) }
            }
            PARTS => {
                let count = self.entries(3)?;
                let parts =
                    (0..count).map(|_| Ok((self.number()?, self.node(depth + 1)?))).collect::<Result<_>>()?;
                Node::Parts(parts)
            }
            _ => return Err(malformed("a tag is unknown")),
        };
        // What has no items may be repeated often and would be walked as often.
        match node.has_items()? {
            true => Ok(node),
            false => Ok(NOTHING),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_datatype_survives_as_bytes() {
        let number = Datatype::of::<f64>();
        let pair = Datatype::structure(&[(0, Datatype::of::<i32>()), (8, number.clone())]).unwrap();
        for datatype in [
            number.vector(8, 1, 10).unwrap(),
            number.vector(8, 1, 10).unwrap().resized(8).unwrap(),
            pair.indexed(&[7..9, 0..1, 3..3]).unwrap(),
            pair.subarray(&[4, 5, 6], &[1..3, 0..5, 2..4]).unwrap(),
            number.contiguous(0).unwrap(),
            number.contiguous(1 << 40).unwrap(),
        ] {
            let bytes = datatype.to_bytes();
            let back = Datatype::from_bytes(&bytes).unwrap();
            assert!(back == datatype, "{datatype:?} came back as {back:?}");
            assert_eq!(
                (back.size(), back.items(), back.span()),
                (datatype.size(), datatype.items(), datatype.span())
            );
            for end in 0..bytes.len() {
                assert!(Datatype::from_bytes(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
            }
        }
        assert!(number.vector(1000, 3, 10_000).unwrap().to_bytes().len() < 16, "a vector is short");
    }

    #[test]
    fn whatever_is_read_is_refused_or_sound() {
        // A generator of bytes that look like datatypes: small tags and numbers.
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let mut read = 0;
        for round in 0..20_000 {
            let len = usize::from(random() % 24);
            let mut bytes = vec![VERSION];
            bytes.extend((0..len).map(|_| if round % 3 == 0 { random() } else { random() % 6 }));
            if let Ok(datatype) = Datatype::from_bytes(&bytes)
                && datatype.items() < 10_000
            {
                read += 1;
                let (mut items, mut low, mut reach) = (0, usize::MAX, 0);
                for run in datatype.runs() {
                    items += run.count;
                    low = low.min(run.at);
                    reach = reach.max(run.at + run.count * run.basic.size());
                }
                let span = if items == 0 { 0..0 } else { low..reach };
                assert_eq!((items, span), (datatype.items(), datatype.span()), "{bytes:?}");
                datatype.overlaps_itself();
            }
        }
        assert!(100 < read, "only {read} were read");
    }
}
