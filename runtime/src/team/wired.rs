//! Collective calls of teams whose members don't share memory: by messages, in as many rounds as the size has binary digits.
//! Never keeps a message longer than the call that it belongs to.
//!
//! In round `r` each member sends what it has of the members from itself on to the one `2^r` before it, and gets as much from
//! the one `2^r` behind it. After the last round everybody has everything, in the order of ranks. So one call costs
//! `ceil(log2 size)` messages per member. With its data every member sends what it came for, so that different calls are
//! told apart at all members.
//!
//! A member waits for those that send to it, not for all. One that gives up tells all others, which then give up, too.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::collective::{Call, differs};
use super::{Rank, Team};
use crate::error::{Error, ErrorKind, Evidence, Result};
use crate::liveness::{Act, NO_BLOCKER, Needs, WaitFor};
use crate::transport::shm::bytes;
use crate::transport::tcp::frame::{Body, Malformed};
use crate::transport::tcp::mailbox::{Address, Cause, GivenUp};
use crate::transport::tcp::wire::Wire;

/// How long a member that gives up tries to open a link to another one that is to be told.
const TELLING_PATIENCE: Duration = Duration::from_millis(300);
const TELLING_SLICE: Duration = Duration::from_millis(10);

/// What one member came for, and what it brings.
pub(super) struct Brought {
    name: String,
    argument: u64,
    length: u64,
    signature: u64,
    payload: Vec<u8>,
}

impl Brought {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.name.len() as u64).to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        for number in [self.argument, self.length, self.signature, self.payload.len() as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.payload);
    }

    fn decode(body: &mut Body<'_>) -> Result<Brought, Malformed> {
        let len = body.len()?;
        let name = String::from_utf8_lossy(body.bytes(len)?).into_owned();
        let (argument, length, signature) = (body.u64()?, body.u64()?, body.u64()?);
        let len = body.len()?;
        Ok(Brought { name, argument, length, signature, payload: body.bytes(len)?.to_vec() })
    }
}

impl Team {
    /// The rounds of [`Team::exchange`](super::Team), in one.
    #[track_caller]
    pub(super) fn exchange_wired(
        &self,
        call: Call,
        (count, item_bytes): (usize, usize),
        bring: impl Fn(&[AtomicU64], Range<usize>),
        mut take: impl FnMut(Rank, &[AtomicU64], Range<usize>, usize),
    ) -> Result<()> {
        let words =
            |bytes: usize| -> Vec<AtomicU64> { (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect() };
        let mine = words(count * item_bytes);
        bring(&mine, 0..count);
        let mut payload = vec![0; count * item_bytes];
        bytes::load(&mine, &mut payload);
        let all = self.meet_wired(call, count as u64, &payload)?;
        for (rank, brought) in self.ranks().zip(&all) {
            let total = brought.payload.len() / item_bytes;
            if total != 0 {
                let theirs = words(brought.payload.len());
                bytes::store(&theirs, &brought.payload);
                take(rank, &theirs, 0..total, total);
            }
        }
        Ok(())
    }

    /// Gives every member's payload to every member, and refuses different calls.
    #[track_caller]
    pub(super) fn meet_wired(&self, call: Call, length: u64, payload: &[u8]) -> Result<Vec<Brought>> {
        let Some(wire) = self.context.wire() else {
            unreachable!("a team without shared memory has connections")
        };
        let wire = Arc::clone(wire);
        self.context.serve();
        let number = self.round.get() + 1;
        self.round.set(number);
        let location = Location::caller();
        if let Some(given_up) = self.given_up(&wire, number) {
            return Err(self.out_of_use(call, given_up, location));
        }
        let mine = Brought {
            name: call.name.to_owned(),
            argument: call.argument,
            length,
            signature: call.signature,
            payload: payload.to_vec(),
        };
        match self.disseminate(&wire, call, number, mine, location) {
            Ok(mut all) => {
                all.rotate_right(self.rank().index());
                let differing = self.ranks().zip(&all).find(|(_, theirs)| theirs.signature != call.signature);
                let Some((rank, theirs)) = differing else { return Ok(all) };
                let by = self.context.job_rank().0;
                wire.mailbox().give_up(self.id(), GivenUp { by, number, cause: Cause::Mismatched });
                let error = Error::new(ErrorKind::CollectiveMismatch, call.name)
                    .caller(self.rank())
                    .called_at(location);
                let what = (theirs.name.as_str(), theirs.argument, theirs.length);
                Err(differs(error, rank, what, (call.argument, length)))
            }
            Err(error) => Err(error),
        }
    }

    /// Gives what all members have brought, beginning with this one.
    fn disseminate(
        &self,
        wire: &Wire,
        call: Call,
        number: u64,
        mine: Brought,
        location: &'static Location<'static>,
    ) -> Result<Vec<Brought>> {
        let (me, size) = (self.rank().index(), self.size() as usize);
        let mail = &self.context.segment().record(self.context.job_rank().0).mail;
        let mut all = vec![mine];
        let mut round = 0;
        while all.len() < size {
            let distance = all.len();
            let wanted = distance.min(size - distance);
            let to = Rank(((me + size - distance) % size) as u32);
            let from = Rank(((me + distance) % size) as u32);
            let what = |needs: Needs<'static>| WaitFor {
                call: call.name,
                window: None,
                team: &self.members,
                needs,
                act: Act::Collective,
                detail: Some(("meeting", number)),
                blocker: NO_BLOCKER,
            };
            let address = |from: u32| Address { team: self.id(), number, round, from };
            let mut message = Vec::new();
            all[..wanted].iter().for_each(|brought| brought.encode(&mut message));
            let sending = what(Needs::One(to));
            let mut watch = None;
            let sent = wire.send_message(
                self.members.job_rank(to).0,
                address(self.context.job_rank().0),
                &message,
                &mut || watch.get_or_insert_with(|| self.context.watch(mail, sending, location)).look(),
            );
            drop(watch);
            if let Err(cut) = sent {
                return Err(match self.given_up(wire, number) {
                    Some(given_up) => self.out_of_use(call, given_up, location),
                    None => self.give_up(wire, call, number, self.context.cut(cut, &sending, to, location)),
                });
            }
            let sender = self.members.job_rank(from).0;
            let waiting = what(Needs::One(from));
            let arrived = self.context.wait(mail, waiting, || match wire.mailbox().take(address(sender)) {
                Some(message) => Some(Ok(message)),
                None => self.given_up(wire, number).map(Err),
            });
            let message = match arrived {
                Ok(Ok(message)) => message,
                Ok(Err(given_up)) => return Err(self.out_of_use(call, given_up, location)),
                Err(error) => return Err(self.give_up(wire, call, number, error.called_at(location))),
            };
            let mut body = Body::new(&message);
            let mut read = || {
                let theirs: Vec<Brought> =
                    (0..wanted).map(|_| Brought::decode(&mut body)).collect::<Result<_, _>>()?;
                body.end()?;
                Ok(theirs)
            };
            match read() {
                Ok(theirs) => all.extend(theirs),
                Err(Malformed(why)) => {
                    let error =
                        Error::new(ErrorKind::Protocol, call.name).caller(self.rank()).called_at(location);
                    return Err(error.other(format!("a message of rank {from}")).note(why));
                }
            }
            round += 1;
        }
        Ok(all)
    }

    /// Waits until the members that this one has sent something to have done all of it.
    #[track_caller]
    pub(super) fn complete_links(&self, call: Call) -> Result<()> {
        let Some(wire) = self.context.wire() else { return Ok(()) };
        let location = Location::caller();
        let mail = &self.context.segment().record(self.context.job_rank().0).mail;
        for rank in self.ranks() {
            let what = WaitFor {
                call: call.name,
                window: None,
                team: &self.members,
                needs: Needs::One(rank),
                act: Act::Toward(rank),
                detail: None,
                blocker: NO_BLOCKER,
            };
            let mut watch = None;
            let done = wire.complete(self.members.job_rank(rank).0, &mut || {
                watch.get_or_insert_with(|| self.context.watch(mail, what, location)).look()
            });
            drop(watch);
            done.map_err(|cut| self.context.cut(cut, &what, rank, location))?;
        }
        Ok(())
    }

    /// Whether a member has given up this call, or an earlier one.
    fn given_up(&self, wire: &Wire, number: u64) -> Option<GivenUp> {
        wire.mailbox().given_up(self.id()).filter(|given_up| given_up.number <= number)
    }

    /// Tells the other members that this one gives the team up, because of `error`.
    #[cold]
    fn give_up(&self, wire: &Wire, call: Call, number: u64, error: Error) -> Error {
        let cause = match (error.kind(), error.context().lost, error.context().evidence) {
            (ErrorKind::PeerLost, Some(rank), Some(evidence)) => {
                Cause::Lost(self.members.job_rank(rank).0, evidence)
            }
            (ErrorKind::CollectiveMismatch, ..) => Cause::Mismatched,
            _ => Cause::Stalled,
        };
        let by = self.context.job_rank().0;
        wire.mailbox().give_up(self.id(), GivenUp { by, number, cause });
        for &rank in self.members.job_ranks() {
            let lost = matches!(cause, Cause::Lost(lost, _) if lost == rank.0);
            if rank.0 != by && !lost && crate::liveness::evidence(self.context.segment(), rank.0).is_none() {
                // Whoever can't be told soon is stopped or gone, and finds out by itself.
                let begun = Instant::now();
                wire.send_given_up(rank.0, self.id(), number, cause, &mut || match begun.elapsed()
                    < TELLING_PATIENCE
                {
                    true => Ok(TELLING_SLICE),
                    false => Err(Error::new(ErrorKind::Stalled, call.name)),
                });
            }
        }
        error
    }

    /// The error of a call on a team that a member has given up.
    #[cold]
    fn out_of_use(&self, call: Call, given_up: GivenUp, location: &'static Location<'static>) -> Error {
        let error = |kind| Error::new(kind, call.name).caller(self.rank()).called_at(location);
        let name = |job_rank: u32| self.members.rank_of(Rank(job_rank));
        match given_up.cause {
            Cause::Lost(job_rank, evidence) => match name(job_rank) {
                Some(rank) => error(ErrorKind::PeerLost).lost(rank).evidence(evidence),
                None => error(ErrorKind::PeerLost).evidence(Evidence::Disconnected),
            },
            Cause::Stalled => {
                let report = self.context.report(&self.members);
                let by = name(given_up.by).map_or(String::new(), |rank| format!(" (rank {rank})"));
                error(ErrorKind::Stalled).note(format!("a member{by} gave up waiting; {report}"))
            }
            Cause::Mismatched => {
                error(ErrorKind::Poisoned).note("members met different collective calls on this team")
            }
        }
    }
}
