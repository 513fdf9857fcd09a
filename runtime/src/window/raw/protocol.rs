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
    /// Whether to wait. The reply has the number of the exposure, and the part that is open if that is not all.
    Start,
    /// The reply has the number of the exposure.
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
    /// A whole epoch: how it is opened (0 start, 1 exclusive lock, 2 shared lock), and the transfers, each with its length
    /// before it. It waits until the epoch is opened. The reply says that it was closed, too; where a part is exposed, that it is
    /// open and nothing was moved.
    Epoch,
    /// The turn of somebody has come who waits here for the lock. No reply.
    Look,
}

/// What the caller of an epoch under NOCHECK vouches for, so that nobody was asked to open it. Every transfer of the epoch says
/// so, and whoever does it looks whether it is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Vouched {
    /// Nothing: the epoch was opened by a request, or is the phase of a fence.
    #[default]
    Nothing = 0,
    /// The target is posted for the origin.
    Posted = 1,
    /// Nobody else has the lock or takes it meanwhile.
    Alone = 2,
    /// Nobody else has the lock exclusively or takes it so meanwhile.
    Unlocked = 3,
}

/// Where [`Vouched`] stands in the word that says what is asked.
const VOUCHED_SHIFT: u32 = 8;

impl Ask {
    /// The word that asks for this in an epoch of which `vouched` is said.
    pub(super) fn word(self, vouched: Vouched) -> u32 {
        match self.is_part_of(vouched) {
            true => self as u32 | (vouched as u32) << VOUCHED_SHIFT,
            false => self as u32,
        }
    }

    /// What is asked, in an epoch of which nothing is vouched for.
    pub(super) fn read(body: &mut Body<'_>) -> Result<Ask, Malformed> {
        match Ask::read_vouched(body)? {
            (ask, Vouched::Nothing) => Ok(ask),
            _ => Err(Malformed("something is vouched for where it can't be")),
        }
    }

    /// What is asked, and what its origin vouches for.
    pub(super) fn read_vouched(body: &mut Body<'_>) -> Result<(Ask, Vouched), Malformed> {
        const ALL: [Vouched; 4] = [Vouched::Nothing, Vouched::Posted, Vouched::Alone, Vouched::Unlocked];
        let word = body.u32()?;
        let ask = Ask::of(word & ((1 << VOUCHED_SHIFT) - 1))?;
        let vouched = ALL.into_iter().find(|&vouched| vouched as u32 == word >> VOUCHED_SHIFT);
        let vouched = vouched.filter(|&vouched| vouched == Vouched::Nothing || ask.is_part_of(vouched));
        Ok((ask, vouched.ok_or(Malformed("something is vouched for that nobody can know"))?))
    }

    /// Whether this can open an epoch of which `vouched` is said.
    fn is_part_of(self, vouched: Vouched) -> bool {
        match self {
            Ask::Put | Ask::Get | Ask::Fetch | Ask::Accumulate | Ask::CompareSwap | Ask::Notify => true,
            Ask::Complete => vouched == Vouched::Posted,
            _ => false,
        }
    }

    /// Whether a reply follows a transfer.
    pub(super) fn has_reply(self) -> bool {
        !matches!(self, Ask::Put | Ask::Accumulate | Ask::Notify)
    }

    fn of(code: u32) -> Result<Ask, Malformed> {
        const ASKS: [Ask; 21] = [
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
            Ask::Epoch,
            Ask::Look,
        ];
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
    /// Something was not done, since it reaches outside the bytes that are exposed, from the first to before the last of these.
    Outside(u64, u64),
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
            Answer::Outside(start, end) => (8, start, end),
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
            (8, start) => Answer::Outside(start, second),
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
            Answer::Outside(8, 24),
        ];
        for answer in answers.into_iter().chain(refusals.map(Answer::Start)) {
            let body = answer.encode();
            let mut body = Body::new(&body);
            assert_eq!(Answer::read(&mut body), Ok(answer));
            assert_eq!(body.end(), Ok(()));
        }
    }

    #[test]
    fn what_is_vouched_for_survives_the_way() {
        for vouched in [Vouched::Nothing, Vouched::Posted, Vouched::Alone, Vouched::Unlocked] {
            for ask in [Ask::Put, Ask::Get, Ask::Fetch, Ask::Accumulate, Ask::CompareSwap, Ask::Notify] {
                let word = ask.word(vouched).to_le_bytes();
                assert_eq!(Ask::read_vouched(&mut Body::new(&word)), Ok((ask, vouched)));
                assert_eq!(Ask::read(&mut Body::new(&word)).is_ok(), vouched == Vouched::Nothing);
            }
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for code in [0_u32, 22, 255, u32::MAX] {
            assert!(Ask::read_vouched(&mut Body::new(&code.to_le_bytes())).is_err());
            assert!(read_reason(code).is_err());
        }
        // What opens nothing vouches for nothing, and a lock has nothing to complete.
        for (ask, vouched) in
            [(Ask::Lock, Vouched::Posted), (Ask::Complete, Vouched::Alone), (Ask::Put, Vouched::Nothing)]
        {
            assert_eq!(ask.word(vouched), ask as u32);
            let word = ask as u32 | (vouched as u32 + 4 * u32::from(ask == Ask::Put)) << VOUCHED_SHIFT;
            assert!(Ask::read_vouched(&mut Body::new(&word.to_le_bytes())).is_err());
        }
        assert!(read_way(4).is_err());
        for body in [[0_u8; 20], [9; 20], [255; 20]] {
            assert!(Answer::read(&mut Body::new(&body)).is_err());
        }
    }
}
