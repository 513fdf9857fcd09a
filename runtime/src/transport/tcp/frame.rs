//! Frames: a header of fixed length and a body whose length the header says. Never touches a socket.
//!
//! ```text
//! 0       4      5         6          8          16
//! | body  | kind | version | reserved | request  | body …
//! ```
//!
//! Numbers are little-endian. A body is at most [`BODY_MAX_BYTES`] long; what is longer travels in several frames. A request
//! has a number other than zero if it wants a reply, and the reply repeats it.

/// The version of everything that travels on a connection. Both sides must have the same.
pub(crate) const VERSION: u8 = 1;

pub(crate) const HEADER_BYTES: usize = 16;
/// The longest body. A receiver needs this much memory per connection, and no more.
pub(crate) const BODY_MAX_BYTES: usize = 256 << 10;
/// The data that one frame carries at most; the rest of the body says what the data are.
pub(crate) const DATA_MAX_BYTES: usize = BODY_MAX_BYTES - (4 << 10);
/// What a receiver begins with.
const BUFFER_MIN_BYTES: usize = 4 << 10;
/// What it grows to: room for a frame and for as much of the next one.
const BUFFER_MAX_BYTES: usize = 2 * (HEADER_BYTES + BODY_MAX_BYTES);
/// With less room than this behind it, what is left of a buffer is moved to its beginning before more is read.
const TAIL_MIN_BYTES: usize = 1 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Rank to rendezvous: where the rank listens.
    Join = 1,
    /// Rendezvous to rank: where all ranks listen.
    Table,
    /// Rank to rendezvous: how the rank has ended.
    Ended,
    /// Rendezvous to rank: how another rank has ended.
    Lost,
    /// Part of what a member brings to a collective call.
    Message = 16,
    /// A member has given up a collective call.
    TeamBroken,
    /// The sender will say nothing more.
    Left,
    /// What the receiver waits for is asked.
    Sight,
    /// Two members of a team sit in different collective calls.
    Accused,
    /// Something for a service of the receiver, which the body names: what is asked of a window.
    Service = 32,
    /// The answer to a request.
    Reply = 128,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        const KINDS: [Kind; 11] = [
            Kind::Join,
            Kind::Table,
            Kind::Ended,
            Kind::Lost,
            Kind::Message,
            Kind::TeamBroken,
            Kind::Left,
            Kind::Sight,
            Kind::Accused,
            Kind::Service,
            Kind::Reply,
        ];
        KINDS.into_iter().find(|&kind| kind as u8 == code)
    }
}

/// What is wrong with bytes that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) request: u64,
    pub(crate) body: Body<'a>,
}

/// What has not been read of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Body<'a> {
        Body(bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        match self.0.split_at_checked(len) {
            Some((bytes, rest)) => {
                self.0 = rest;
                Ok(bytes)
            }
            None => Err(Malformed("a body ends before its contents do")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that is a length of something in this process.
    pub(crate) fn len(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.u64()?).map_err(|_| Malformed("a length is larger than memory"))
    }

    /// A text that says its length.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.bytes(len)?).map_err(|_| Malformed("a text is no text"))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Malformed("a body goes on after its contents")),
        }
    }
}

/// Writes one frame behind what is in a buffer.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, kind: Kind, request: u64) -> Writer<'a> {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, kind as u8, VERSION, 0, 0]);
        out.extend_from_slice(&request.to_le_bytes());
        Writer { out, start }
    }

    pub(crate) fn u32(self, value: u32) -> Writer<'a> {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Writer<'a> {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn text(self, text: &str) -> Writer<'a> {
        self.u32(text.len() as u32).bytes(text.as_bytes())
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Writer<'a> {
        self.out.extend_from_slice(bytes);
        self
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        seal(self.out, self.start);
    }
}

/// Says in the header of the frame that begins at `start` how long its body is.
pub(crate) fn seal(out: &mut [u8], start: usize) {
    let body = out.len() - start - HEADER_BYTES;
    debug_assert!(body <= BODY_MAX_BYTES, "a frame of {body} bytes");
    out[start..start + 4].copy_from_slice(&(body as u32).to_le_bytes());
}

/// Cuts what arrives into frames.
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder { buffer: vec![0; BUFFER_MIN_BYTES], start: 0, end: 0 }
    }

    /// Where the next bytes are to be put. Never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if 0 < self.start && self.buffer.len() - self.end < TAIL_MIN_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            // It holds the beginning of something long, or is filled faster than it is emptied.
            let larger = (self.buffer.len() * 4).min(BUFFER_MAX_BYTES);
            self.buffer.resize(larger, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Says that so many bytes have been put there.
    pub(crate) fn filled(&mut self, len: usize) {
        self.end = (self.end + len).min(self.buffer.len());
    }

    /// Takes the last frame back, of so many bytes of body: it comes again next.
    pub(crate) fn put_back(&mut self, body_len: usize) {
        self.start -= HEADER_BYTES + body_len;
    }

    /// The next frame, once all of it has arrived.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let arrived = &self.buffer[self.start..self.end];
        let Some((header, _)) = arrived.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [l0, l1, l2, l3, kind, version, r0, r1, request @ ..] = *header;
        if version != VERSION {
            return Err(Malformed("a frame has another version"));
        }
        if (r0, r1) != (0, 0) {
            return Err(Malformed("a frame uses what is reserved"));
        }
        let kind = Kind::from_code(kind).ok_or(Malformed("a frame is of no kind that exists"))?;
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if BODY_MAX_BYTES < len {
            return Err(Malformed("a frame is longer than frames may be"));
        }
        let whole = HEADER_BYTES + len;
        if arrived.len() < whole {
            return Ok(None);
        }
        let start = self.start;
        self.start += whole;
        let body = Body(&self.buffer[start + HEADER_BYTES..start + whole]);
        Ok(Some(Frame { kind, request: u64::from_le_bytes(request), body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: Kind, request: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, kind, request).bytes(body);
        bytes
    }

    /// Feeds bytes in pieces and gives the frames, or what was wrong.
    fn decode(bytes: &[u8], piece: usize) -> Result<Vec<(Kind, u64, Vec<u8>)>, Malformed> {
        let mut decoder = Decoder::new();
        let mut frames = Vec::new();
        let mut left = bytes;
        while !left.is_empty() {
            let room = decoder.room();
            assert!(!room.is_empty());
            let len = piece.min(left.len()).min(room.len());
            room[..len].copy_from_slice(&left[..len]);
            decoder.filled(len);
            left = &left[len..];
            while let Some(mut frame) = decoder.next()? {
                frames.push((frame.kind, frame.request, frame.body.rest().to_vec()));
            }
            assert!(decoder.buffer.len() <= BUFFER_MAX_BYTES, "memory is bounded");
        }
        Ok(frames)
    }

    #[test]
    fn frames_survive_any_cut() {
        let long = vec![7; BODY_MAX_BYTES];
        let sent = [
            (Kind::Join, 0, &b"x"[..]),
            (Kind::Message, 5, &long),
            (Kind::Left, u64::MAX, b""),
            (Kind::Reply, 1, &long),
        ];
        let bytes: Vec<u8> =
            sent.iter().flat_map(|&(kind, request, body)| frame(kind, request, body)).collect();
        for piece in [1, 3, 16, 17, 1000, 70_000, usize::MAX] {
            let got = decode(&bytes, piece).expect("well formed");
            let expected: Vec<_> =
                sent.iter().map(|&(kind, request, body)| (kind, request, body.to_vec())).collect();
            assert!(got == expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn malformed_frames_are_refused_before_their_bodies_are_read() {
        let good = frame(Kind::Join, 1, b"abc");
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            decode(&bytes[..HEADER_BYTES], usize::MAX)
        };
        assert_eq!(with(4, 0), Err(Malformed("a frame is of no kind that exists")));
        assert_eq!(with(4, 255), Err(Malformed("a frame is of no kind that exists")));
        assert_eq!(with(5, VERSION + 1), Err(Malformed("a frame has another version")));
        assert_eq!(with(6, 1), Err(Malformed("a frame uses what is reserved")));
        assert_eq!(with(3, 1), Err(Malformed("a frame is longer than frames may be")));
    }

    #[test]
    fn bodies_are_read_within_their_bounds() {
        let mut body = Body::new(&[1, 0, 0, 0, b'x']);
        assert_eq!(body.text(), Ok("x"));
        assert_eq!(body.end(), Ok(()));
        assert!(Body::new(&[9, 0, 0, 0, b'x']).text().is_err());
        assert!(Body::new(&[1, 0, 0, 0, 0xff]).text().is_err());
        assert!(Body::new(&[1; 7]).u64().is_err());
        assert!(Body::new(&[1]).end().is_err());
    }

    /// Bytes from a generator, for as long as an ordinary test may take: never a panic, never more memory than the limit.
    #[test]
    fn random_bytes_are_frames_or_are_refused() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let good: Vec<u8> =
            (0..20).flat_map(|i| frame(Kind::Message, i, &vec![i as u8; i as usize])).collect();
        let (mut refused, mut passed) = (0, 0);
        for round in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..round % 8 {
                let at = random() as usize % bytes.len();
                bytes[at] = random() as u8;
            }
            bytes.truncate(1 + random() as usize % bytes.len());
            match decode(&bytes, 1 + random() as usize % 500) {
                Ok(frames) => passed += usize::from(frames.len() <= 20),
                Err(Malformed(_)) => refused += 1,
            }
        }
        assert!(1000 < refused && 5000 < passed, "{refused} refused, {passed} passed");
    }
}
