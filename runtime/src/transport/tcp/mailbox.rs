//! What members of teams have brought to collective calls and the caller has not taken yet. Never waits: callers sleep on
//! their own event and look again.
//!
//! A member can be ahead by one collective call, as it can't leave the next one without this rank. So the mailbox holds a few
//! messages per team at most.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::frame::{Body, Malformed};
use crate::error::Evidence;

/// Names a message: the team, the number of the collective call, the round within it, and the sender's job rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) team: u64,
    pub(crate) number: u64,
    pub(crate) round: u32,
    pub(crate) from: u32,
}

/// The longest message.
pub(crate) const MESSAGE_MAX_BYTES: u64 = 1 << 34;

struct Message {
    bytes: Vec<u8>,
    total: u64,
}

/// A member that has given a team up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// The job rank of the member.
    pub(crate) by: u32,
    /// The number of the collective call that it has given up. Earlier ones are whole.
    pub(crate) number: u64,
    pub(crate) cause: Cause,
}

/// Why a member has given a team up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its time limit has passed.
    Stalled,
    /// It has lost the rank of the job.
    Lost(u32, Evidence),
    /// It has met other calls than its own.
    Mismatched,
}

impl Cause {
    /// The cause as three numbers.
    pub(crate) fn encode(self) -> [u32; 3] {
        match self {
            Cause::Stalled => [1, 0, 0],
            Cause::Lost(rank, evidence) => [2, rank, evidence.code()],
            Cause::Mismatched => [3, 0, 0],
        }
    }

    pub(crate) fn decode(numbers: [u32; 3]) -> Result<Cause, Malformed> {
        const WRONG: Malformed = Malformed("a cause of a kind that does not exist");
        match numbers {
            [1, 0, 0] => Ok(Cause::Stalled),
            [2, rank, code] => Ok(Cause::Lost(rank, Evidence::from_code(code).ok_or(WRONG)?)),
            [3, 0, 0] => Ok(Cause::Mismatched),
            _ => Err(WRONG),
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Mailbox {
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    messages: HashMap<Address, Message>,
    given_up: HashMap<u64, GivenUp>,
}

impl Mailbox {
    /// Takes a part of a message. Parts arrive in their order.
    pub(crate) fn deliver(&self, from: u32, mut body: Body<'_>) -> Result<(), Malformed> {
        let address = Address { team: body.u64()?, number: body.u64()?, round: body.u32()?, from };
        let total = body.u64()?;
        if MESSAGE_MAX_BYTES < total {
            return Err(Malformed("a message is longer than messages may be"));
        }
        let part = body.rest();
        let mut contents = self.contents();
        let message =
            contents.messages.entry(address).or_insert_with(|| Message { bytes: Vec::new(), total });
        if message.total != total || total < (message.bytes.len() + part.len()) as u64 {
            return Err(Malformed("the parts of a message don't fit each other"));
        }
        message.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Notes that a member has given a team up. The first one counts.
    pub(crate) fn give_up(&self, team: u64, member: GivenUp) {
        self.contents().given_up.entry(team).or_insert(member);
    }

    /// The member that has given a team up.
    pub(crate) fn given_up(&self, team: u64) -> Option<GivenUp> {
        self.contents().given_up.get(&team).copied()
    }

    /// Takes a message once it is whole.
    pub(crate) fn take(&self, address: Address) -> Option<Vec<u8>> {
        let mut contents = self.contents();
        let message = contents.messages.get(&address)?;
        if (message.bytes.len() as u64) < message.total {
            return None;
        }
        contents.messages.remove(&address).map(|message| message.bytes)
    }

    /// Forgets a team that the caller has dropped.
    pub(crate) fn forget(&self, team: u64) {
        let mut contents = self.contents();
        contents.messages.retain(|address, _| address.team != team);
        contents.given_up.remove(&team);
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Nothing panics while the tables are inconsistent.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(address: Address, total: u64, bytes: &[u8]) -> Vec<u8> {
        let mut body = [address.team, address.number].map(u64::to_le_bytes).concat();
        body.extend_from_slice(&address.round.to_le_bytes());
        body.extend_from_slice(&total.to_le_bytes());
        body.extend_from_slice(bytes);
        body
    }

    #[test]
    fn a_message_is_given_when_it_is_whole() {
        let mailbox = Mailbox::default();
        let address = Address { team: 7, number: 1, round: 0, from: 2 };
        mailbox.deliver(2, Body::new(&part(address, 5, b"abc"))).unwrap();
        assert_eq!(mailbox.take(address), None);
        mailbox.deliver(2, Body::new(&part(address, 5, b"de"))).unwrap();
        assert_eq!(mailbox.take(Address { from: 1, ..address }), None);
        assert_eq!(mailbox.take(address), Some(b"abcde".to_vec()));
        assert_eq!(mailbox.take(address), None);
        mailbox.deliver(2, Body::new(&part(address, 0, b""))).unwrap();
        assert_eq!(mailbox.take(address), Some(Vec::new()));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mailbox = Mailbox::default();
        let address = Address { team: 7, number: 1, round: 0, from: 2 };
        mailbox.deliver(2, Body::new(&part(address, 5, b"abc"))).unwrap();
        assert!(mailbox.deliver(2, Body::new(&part(address, 6, b"d"))).is_err());
        assert!(mailbox.deliver(2, Body::new(&part(address, 5, b"def"))).is_err());
        assert!(mailbox.deliver(3, Body::new(&part(address, MESSAGE_MAX_BYTES + 1, b""))).is_err());
        assert!(mailbox.deliver(3, Body::new(b"short")).is_err());
    }
}
