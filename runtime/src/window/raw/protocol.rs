//! What ranks that share no memory ask of each other's windows, and what they answer, as bodies of frames. Never moves data.
#![forbid(unsafe_code)]

use crate::error::Evidence;
use crate::sync::exposure;
use crate::sync::phases::{Reason, Way};
use crate::sync::state_word;
use crate::transport::tcp::frame::{Body, Malformed};

/// What is asked. Each is followed by its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Ask {
    /// Pieces follow: a byte offset, a length, and the data. No reply.
    Put = 1,
    /// Pieces follow: a byte offset and a length. The reply has the data.
    Get,
    /// Operation and pieces: a byte offset, a number of elements of the window, and the elements without their padding. The
    /// reply has what was there.
    Fetch,
    /// As `Fetch`, without a reply.
    Accumulate,
    /// A byte offset, the expected and the new bits. The reply has the bits that were there.
    CompareSwap,
    /// Sharing, and whether to wait.
    Lock,
    /// Makes a shared lock exclusive.
    Upgrade,
    Unlock,
    /// The last exposure that was used, and whether to wait. The reply has the number of the exposure, and the part that is
    /// open if that is not all.
    Start,
    Complete,
    /// The reply says that all before it is done.
    Flush,
    /// The reply has the part of the window that the owner has opened last.
    Part,
    /// Whether the window is posted.
    Posted,
    /// A flag of a fence: round, number, way. No reply.
    Signal,
    /// The window is broken: on whose account, and why. No reply.
    Break,
    /// The handle of the window is gone. No reply.
    Depart,
    /// The request of that number is not waited for any more. No reply.
    Cancel,
    /// One more put has come, all before it being one: the counter. No reply.
    Notify,
    /// The bytes that one attached region should have. The reply has 1 and the region, or 0.
    Region,
}

impl Ask {
    pub(super) fn read(body: &mut Body<'_>) -> Result<Ask, Malformed> {
        const ASKS: [Ask; 19] = [
            Ask::Put,
            Ask::Get,
            Ask::Fetch,
            Ask::Accumulate,
            Ask::CompareSwap,
            Ask::Lock,
            Ask::Upgrade,
            Ask::Unlock,
            Ask::Start,
            Ask::Complete,
            Ask::Flush,
            Ask::Part,
            Ask::Posted,
            Ask::Signal,
            Ask::Break,
            Ask::Depart,
            Ask::Cancel,
            Ask::Notify,
            Ask::Region,
        ];
        let code = body.u32()?;
        ASKS.into_iter()
            .find(|&ask| ask as u32 == code)
            .ok_or(Malformed("a window is asked for what does not exist"))
    }
}

/// What the answer to [`Ask::Posted`] says: no, for a group that the asker is not in, and yes.
pub(super) const NOT_POSTED: u64 = 0;
pub(super) const POSTED_FOR_OTHERS: u64 = 1;
pub(super) const POSTED: u64 = 2;

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is done, and there is a number that belongs to it: an exposure, old bits, or 0.
    Done(u64),
    /// The lock is refused.
    Lock(state_word::Refusal, Option<u32>),
    /// The start is refused.
    Start(exposure::Refusal),
    /// A rank of the team that the request needs is lost.
    Lost(u32, Evidence),
    /// A rank of the team that the request needs has dropped its handle.
    Departed(u32),
    /// The window is broken.
    Broken,
    /// Nothing was done, since the origin is not admitted.
    NotAdmitted,
}

const HOLDER_NONE: u64 = u64::MAX;

impl Answer {
    /// The answer as the body of a reply; data may follow it.
    pub(super) fn encode(self) -> Vec<u8> {
        let (code, first, second) = match self {
            Answer::Done(number) => (1_u32, number, 0),
            Answer::Lock(refusal, holder) => {
                let refusal = match refusal {
                    state_word::Refusal::Posted => 1,
                    state_word::Refusal::Poisoned => 2,
                    state_word::Refusal::Busy => 3,
                    state_word::Refusal::Full => 4,
                };
                (2, refusal, holder.map_or(HOLDER_NONE, u64::from))
            }
            Answer::Start(refusal) => {
                let refusal = match refusal {
                    exposure::Refusal::Closed => 1,
                    exposure::Refusal::Used => 2,
                    exposure::Refusal::NotInGroup => 3,
                    exposure::Refusal::Poisoned => 4,
                };
                (3, refusal, 0)
            }
            Answer::Lost(rank, evidence) => (4, rank.into(), evidence.code().into()),
            Answer::Departed(rank) => (5, rank.into(), 0),
            Answer::Broken => (6, 0, 0),
            Answer::NotAdmitted => (7, 0, 0),
        };
        let mut body = code.to_le_bytes().to_vec();
        body.extend_from_slice(&first.to_le_bytes());
        body.extend_from_slice(&second.to_le_bytes());
        body
    }

    pub(super) fn read(body: &mut Body<'_>) -> Result<Answer, Malformed> {
        const WRONG: Malformed = Malformed("an answer of a kind that does not exist");
        let (code, first, second) = (body.u32()?, body.u64()?, body.u64()?);
        let rank = || u32::try_from(first).map_err(|_| WRONG);
        Ok(match (code, first) {
            (1, number) => Answer::Done(number),
            (2, 1..=4) => {
                let refusal = match first {
                    1 => state_word::Refusal::Posted,
                    2 => state_word::Refusal::Poisoned,
                    3 => state_word::Refusal::Busy,
                    _ => state_word::Refusal::Full,
                };
                Answer::Lock(refusal, u32::try_from(second).ok())
            }
            (3, 1..=4) => Answer::Start(match first {
                1 => exposure::Refusal::Closed,
                2 => exposure::Refusal::Used,
                3 => exposure::Refusal::NotInGroup,
                _ => exposure::Refusal::Poisoned,
            }),
            (4, _) => {
                let evidence = u32::try_from(second).ok().and_then(Evidence::from_code).ok_or(WRONG)?;
                Answer::Lost(rank()?, evidence)
            }
            (5, _) => Answer::Departed(rank()?),
            (6, _) => Answer::Broken,
            (7, _) => Answer::NotAdmitted,
            _ => return Err(WRONG),
        })
    }
}

/// A way of a fence as a number, and back.
pub(super) fn read_way(code: u32) -> Result<Way, Malformed> {
    match code {
        0 => Ok(Way::Part),
        1 => Ok(Way::In),
        2 => Ok(Way::Out),
        3 => Ok(Way::Apart),
        _ => Err(Malformed("a fence leads nowhere")),
    }
}

/// A reason for a broken window as a number, and back.
pub(super) fn read_reason(code: u32) -> Result<Reason, Malformed> {
    const REASONS: [Reason; 6] = [
        Reason::Panicked,
        Reason::TimedOut,
        Reason::Lost,
        Reason::Dropped,
        Reason::Mismatched,
        Reason::Departed,
    ];
    REASONS
        .into_iter()
        .find(|&reason| reason as u32 == code)
        .ok_or(Malformed("a window is broken for no reason"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_the_way() {
        let refusals = [exposure::Refusal::Closed, exposure::Refusal::Used, exposure::Refusal::NotInGroup];
        let answers = [
            Answer::Done(0),
            Answer::Done(u64::MAX),
            Answer::Lock(state_word::Refusal::Busy, Some(7)),
            Answer::Lock(state_word::Refusal::Posted, None),
            Answer::Lock(state_word::Refusal::Full, None),
            Answer::Lock(state_word::Refusal::Poisoned, None),
            Answer::Lost(3, Evidence::Signalled(9)),
            Answer::Departed(2),
            Answer::Broken,
            Answer::NotAdmitted,
        ];
        for answer in answers.into_iter().chain(refusals.map(Answer::Start)) {
            let body = answer.encode();
            let mut body = Body::new(&body);
            assert_eq!(Answer::read(&mut body), Ok(answer));
            assert_eq!(body.end(), Ok(()));
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for code in [0_u32, 20, u32::MAX] {
            assert!(Ask::read(&mut Body::new(&code.to_le_bytes())).is_err());
            assert!(read_reason(code).is_err());
        }
        assert!(read_way(4).is_err());
        for body in [[0_u8; 20], [9; 20], [255; 20]] {
            assert!(Answer::read(&mut Body::new(&body)).is_err());
        }
    }
}
