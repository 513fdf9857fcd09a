//! The wait board: what each rank waits for, readable by all. Never blocks: a reader takes what it finds.
//!
//! A rank has one entry. If several of its threads wait, the first one is shown, and the rank is marked, since
//! then nothing can be concluded from what a single thread does.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::wait::{Act, WaitFor};
use crate::error::Evidence;
use crate::rank::{Members, Rank};
use crate::sync::event::Event;
use crate::sys;
use crate::transport::shm::bytes::{load_name, store_name};
use crate::transport::shm::layout::Board;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{Body, Malformed};

const ACT_COLLECTIVE: u32 = 1;
const ACT_TOWARD: u32 = 2;
const ACT_ANY: u32 = 3;

const CLAIM_FREE: u32 = 0;
const CLAIM_WRITING: u32 = 1;
const CLAIM_VALID: u32 = 2;

/// A wait that is shown on the board of its rank until this value is dropped.
pub(super) struct Shown<'a> {
    board: &'a Board,
    sequence: u64,
}

impl<'a> Shown<'a> {
    /// Shows a wait, unless another thread of the rank is shown already.
    pub(super) fn new(segment: &'a Segment, me: u32, event: u64, what: &WaitFor<'_>) -> Option<Shown<'a>> {
        let board = &segment.record(me).board;
        // Acquire: pairs with the Release in `drop`, so that threads of a rank use the board one after the other.
        board.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let (act, target) = match what.act {
            Act::Collective => (ACT_COLLECTIVE, 0),
            Act::Toward(rank) => (ACT_TOWARD, u64::from(what.team.job_rank(rank).0) + 1),
            Act::Any => (ACT_ANY, 0),
        };
        let sequence = board.sequence.load(Ordering::Relaxed);
        // Release: a reader that sees a field below also sees, in its second look, that the sequence has moved on.
        fence(Ordering::Release);
        board.act.store(act, Ordering::Relaxed);
        board.target.store(target, Ordering::Relaxed);
        board.blocker.store(0, Ordering::Relaxed);
        board.event.store(event, Ordering::Relaxed);
        board.team.store(what.team.id(), Ordering::Relaxed);
        board.window.store(what.window.map_or(0, |id| id + 1), Ordering::Relaxed);
        board.since_ns.store(sys::time::monotonic_ns(), Ordering::Relaxed);
        store_name(&board.call, what.call);
        let (name, value) = what.detail.unwrap_or(("", 0));
        store_name(&board.detail_name, name);
        board.detail.store(value, Ordering::Relaxed);
        board.looks.store(0, Ordering::Relaxed);
        board.looked_ns.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `Sight::take`.
        board.sequence.store(sequence + 1, Ordering::Release);
        // SeqCst: pairs with the fence in `wake_everybody`; the waiter looks at the status words after this.
        fence(Ordering::SeqCst);
        Some(Shown { board, sequence: sequence + 1 })
    }

    /// Notes that the waiter has looked once more and its condition did not hold.
    pub(super) fn looked(&self, looked_ns: u64) {
        // Relaxed: published by the Release below.
        self.board.looked_ns.store(looked_ns, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `Sight::take`: the look came before the note of it.
        self.board.looks.fetch_add(1, Ordering::Release);
    }

    /// Notes somebody without whom the wait can't end, by its job rank.
    pub(super) fn blocked_by(&self, blocker: Option<u32>) {
        // Relaxed: a hint for reports.
        self.board.blocker.store(blocker.map_or(0, |rank| u64::from(rank) + 1), Ordering::Relaxed);
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a rank seems to wait in the same collective call of the same team as this rank.
    pub(super) fn meets(&self, segment: &Segment, job_rank: u32) -> bool {
        let board = &segment.record(job_rank).board;
        let word = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let own = self.board;
        !board.sequence.load(Ordering::Acquire).is_multiple_of(2)
            && board.act.load(Ordering::Relaxed) == ACT_COLLECTIVE
            && word(&board.team) == word(&own.team)
            && word(&board.window) == word(&own.window)
            && word(&board.detail) == word(&own.detail)
            && board.call.iter().zip(&own.call).all(|(theirs, own)| word(theirs) == word(own))
    }

    /// Whether a rank waits in another collective call of the team than this one, which is `what`. Reads few words, since every
    /// waiter asks it about every member again and again.
    pub(super) fn elsewhere(
        &self,
        segment: &Segment,
        job_rank: u32,
        what: &WaitFor<'_>,
    ) -> Option<Elsewhere> {
        let board = &segment.record(job_rank).board;
        // Acquire: pairs with the Release in `new`.
        let sequence = board.sequence.load(Ordering::Acquire);
        let word = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let collective = !sequence.is_multiple_of(2)
            && board.act.load(Ordering::Relaxed) == ACT_COLLECTIVE
            && word(&board.team) == what.team.id();
        if !collective {
            return None;
        }
        // Acquire: pairs with the Release in `looked`.
        let looks = board.looks.load(Ordering::Acquire);
        let blocker = word(&board.blocker).checked_sub(1);
        let same_call =
            board.call.iter().zip(&self.board.call).all(|(theirs, own)| word(theirs) == word(own));
        let same = same_call && word(&board.window) == word(&self.board.window);
        // Acquire: pairs with the Release fence in `new`; if a word above is newer, so is the sequence.
        fence(Ordering::Acquire);
        match same || board.sequence.load(Ordering::Relaxed) != sequence {
            true => None,
            false => Some(Elsewhere { rank: job_rank, sequence, looks, blocker }),
        }
    }
}

/// A rank that waits in another collective call.
pub(super) struct Elsewhere {
    pub(super) rank: u32,
    /// The number of its wait, and how often it has looked.
    pub(super) sequence: u64,
    pub(super) looks: u64,
    /// Somebody whom it needed at its last look.
    pub(super) blocker: Option<u64>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire load in `Sight::take`.
        self.board.sequence.store(self.sequence + 1, Ordering::Release);
        // Release: pairs with the Acquire in `new`.
        self.board.taken.store(0, Ordering::Release);
    }
}

/// What a reader saw on the board of a rank.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) sequence: u64,
    pub(super) looks: u64,
    pub(super) act: u32,
    pub(super) event: u64,
    pub(super) team: u64,
    pub(super) window: Option<u64>,
    target: Option<u32>,
    blocker: Option<u32>,
    since_ns: u64,
    looked_ns: u64,
    pub(super) call: String,
    detail_name: String,
    pub(super) detail: u64,
}

impl Sight {
    /// What a rank waits for, if it is shown and stays the same while it is read.
    pub(super) fn take(segment: &Segment, job_rank: u32) -> Option<Sight> {
        let board = &segment.record(job_rank).board;
        // Acquire: pairs with the Release in `Shown::new`.
        let sequence = board.sequence.load(Ordering::Acquire);
        if sequence.is_multiple_of(2) {
            return None;
        }
        let sight = Sight {
            sequence,
            // Acquire: pairs with the Release in `Shown::looked`.
            looks: board.looks.load(Ordering::Acquire),
            act: board.act.load(Ordering::Relaxed),
            event: board.event.load(Ordering::Relaxed),
            team: board.team.load(Ordering::Relaxed),
            window: board.window.load(Ordering::Relaxed).checked_sub(1),
            target: board
                .target
                .load(Ordering::Relaxed)
                .checked_sub(1)
                .and_then(|rank| u32::try_from(rank).ok()),
            blocker: board
                .blocker
                .load(Ordering::Relaxed)
                .checked_sub(1)
                .and_then(|rank| u32::try_from(rank).ok()),
            since_ns: board.since_ns.load(Ordering::Relaxed),
            looked_ns: board.looked_ns.load(Ordering::Relaxed),
            call: load_name(&board.call),
            detail_name: load_name(&board.detail_name),
            detail: board.detail.load(Ordering::Relaxed),
        };
        // Acquire: pairs with the Release fence in `Shown::new`; if a field is newer, so is the sequence.
        fence(Ordering::Acquire);
        match board.sequence.load(Ordering::Relaxed) == sequence {
            true => Some(sight),
            false => None,
        }
    }

    fn is_the_same_call(&self, other: &Sight) -> bool {
        let what = |sight: &Sight| (sight.team, sight.window, sight.detail);
        self.is_collective() && what(self) == what(other) && self.call == other.call
    }

    pub(super) fn is_collective(&self) -> bool {
        self.act == ACT_COLLECTIVE
    }

    /// The call and its window, as the other party of a message: `fence on window 4`.
    pub(super) fn describe(&self) -> String {
        describe(&self.call, self.window)
    }
}

pub(super) fn describe(call: &str, window: Option<u64>) -> String {
    match window {
        Some(id) => format!("{call} on window {id}"),
        None => call.to_owned(),
    }
}

/// The offset of the event that a rank's shown wait sleeps on.
pub(super) fn sleeping_on(segment: &Segment, job_rank: u32) -> Option<u64> {
    let board = &segment.record(job_rank).board;
    // Acquire: pairs with the Release in `Shown::new`.
    let sequence = board.sequence.load(Ordering::Acquire);
    let event = board.event.load(Ordering::Relaxed);
    // Acquire: pairs with the Release fence in `Shown::new`; if the event is newer, so is the sequence.
    fence(Ordering::Acquire);
    let is_shown = !sequence.is_multiple_of(2) && board.sequence.load(Ordering::Relaxed) == sequence;
    is_shown.then_some(event)
}

/// Two members of a team that sit in different collective calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accusation<'a> {
    pub(super) team: u64,
    /// The member that has found it out, its call and its window.
    pub(super) by: (u32, &'a str, Option<u64>),
    pub(super) peer: (u32, &'a str, Option<u64>),
}

impl<'a> Accusation<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.team);
        for (rank, call, window) in [self.by, self.peer] {
            put_u64(&mut bytes, rank.into());
            put_text(&mut bytes, call);
            put_u64(&mut bytes, window.map_or(0, |id| id + 1));
        }
        bytes
    }

    pub(super) fn decode(mut body: Body<'a>) -> Result<Accusation<'a>, Malformed> {
        let team = body.u64()?;
        let mut party = || Ok((take_rank(body.u64()?)?, body.text()?, body.u64()?.checked_sub(1)));
        let (by, peer) = (party()?, party()?);
        body.end()?;
        Ok(Accusation { team, by, peer })
    }
}

/// Tells every rank of this memory that waits in a collective call of the team that it met a different one.
pub(super) fn accuse_all(segment: &Segment, accusation: &Accusation<'_>) {
    let &Accusation { team, by: (me, ..), peer: (peer, theirs, their_window) } = accusation;
    let mine = (accusation.by.1, accusation.by.2);
    for job_rank in (0..segment.size()).filter(|&rank| rank != me) {
        let Some(sight) =
            Sight::take(segment, job_rank).filter(|sight| sight.is_collective() && sight.team == team)
        else {
            continue;
        };
        let accusation = &segment.record(job_rank).accusation;
        // Acquire: pairs with the Release in `accused`, which frees the place.
        if accusation
            .claim
            .compare_exchange(CLAIM_FREE, CLAIM_WRITING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            continue;
        }
        // Whoever sits in the peer's call has met this rank's, and the other way round.
        let with_peer = sight.call == theirs && sight.window == their_window;
        let (other, call, window) = match with_peer {
            true => (me, mine.0, mine.1),
            false => (peer, theirs, their_window),
        };
        accusation.peer.store(other, Ordering::Relaxed);
        accusation.sequence.store(sight.sequence, Ordering::Relaxed);
        accusation.window.store(window.map_or(0, |id| id + 1), Ordering::Relaxed);
        store_name(&accusation.call, call);
        // Release: pairs with the Acquire in `accused`.
        accusation.claim.store(CLAIM_VALID, Ordering::Release);
        if let Some(event) = segment.shared_if_valid::<Event>(sight.event) {
            event.nudge(); // As in `wake_everybody`.
        }
    }
}

/// Keeps the collective call in which this rank met a different one, for members that come later.
pub(super) fn note_mismatch(segment: &Segment, me: u32, what: &WaitFor<'_>) {
    let met = &segment.record(me).met;
    store_name(&met.call, what.call);
    met.window.store(what.window.map_or(0, |id| id + 1), Ordering::Relaxed);
    // Release: pairs with the Acquire in `mismatch_noted`.
    met.team.store(what.team.id() + 1, Ordering::Release);
}

/// Takes back what [`note_mismatch`] has kept.
pub(super) fn forget_mismatch(segment: &Segment, me: u32) {
    // Relaxed: nothing is published by it.
    segment.record(me).met.team.store(0, Ordering::Relaxed);
}

/// The collective call of `team` in which a rank met a different one.
pub(super) fn mismatch_noted(segment: &Segment, job_rank: u32, team: u64) -> Option<String> {
    let met = &segment.record(job_rank).met;
    // Acquire: pairs with the Release in `note_mismatch`.
    match met.team.load(Ordering::Acquire) == team + 1 {
        true => Some(describe(&load_name(&met.call), met.window.load(Ordering::Relaxed).checked_sub(1))),
        false => None,
    }
}

/// Whether another rank has found that the wait with this number cannot end: the peer and what it does instead.
pub(super) fn accused(segment: &Segment, me: u32, sequence: u64) -> Option<(Rank, String)> {
    let accusation = &segment.record(me).accusation;
    // Acquire: pairs with the Release in `accuse_all`.
    if accusation.claim.load(Ordering::Acquire) != CLAIM_VALID {
        return None;
    }
    let meant = accusation.sequence.load(Ordering::Relaxed);
    let window = accusation.window.load(Ordering::Relaxed).checked_sub(1);
    let found =
        (Rank(accusation.peer.load(Ordering::Relaxed)), describe(&load_name(&accusation.call), window));
    // Release: pairs with the Acquire in `accuse_all`. One that means an earlier wait is dropped.
    accusation.claim.store(CLAIM_FREE, Ordering::Release);
    match meant == sequence {
        true => Some(found),
        false => None,
    }
}

/// What a rank says of itself to one that can't see its board.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// What it waits for, for people.
    pub(super) phrase: String,
    pub(super) sight: Option<Sight>,
    /// Whether it has one thread only that could come to a call.
    pub(super) single: bool,
}

impl Told {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.single.into());
        put_text(&mut bytes, &self.phrase);
        let Some(sight) = &self.sight else { return bytes };
        // Clocks of two machines differ, so ages travel.
        let now = sys::time::monotonic_ns();
        let numbers = [
            sight.sequence,
            sight.looks,
            sight.act.into(),
            sight.team,
            sight.window.map_or(0, |id| id + 1),
            sight.target.map_or(0, |rank| u64::from(rank) + 1),
            sight.blocker.map_or(0, |rank| u64::from(rank) + 1),
            now.saturating_sub(sight.since_ns),
            now.saturating_sub(sight.looked_ns),
            sight.detail,
        ];
        numbers.into_iter().for_each(|number| put_u64(&mut bytes, number));
        put_text(&mut bytes, &sight.call);
        put_text(&mut bytes, &sight.detail_name);
        bytes
    }

    pub(super) fn decode(mut body: Body<'_>) -> Result<Told, Malformed> {
        let (single, phrase) = (body.u64()? != 0, body.text()?.to_owned());
        if body.is_empty() {
            return Ok(Told { phrase, sight: None, single });
        }
        let mut numbers = [0; 10];
        for number in &mut numbers {
            *number = body.u64()?;
        }
        let [sequence, looks, act, team, window, target, blocker, since, looked, detail] = numbers;
        let rank = |number: u64| number.checked_sub(1).map(take_rank).transpose();
        let now = sys::time::monotonic_ns();
        let sight = Sight {
            sequence,
            looks,
            act: u32::try_from(act).map_err(|_| Malformed("a wait of a kind that does not exist"))?,
            // What it sleeps on is in another memory.
            event: 0,
            team,
            window: window.checked_sub(1),
            target: rank(target)?,
            blocker: rank(blocker)?,
            since_ns: now.saturating_sub(since),
            looked_ns: now.saturating_sub(looked),
            call: body.text()?.to_owned(),
            detail_name: body.text()?.to_owned(),
            detail,
        };
        body.end()?;
        Ok(Told { phrase, sight: Some(sight), single })
    }
}

fn put_u64(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn take_rank(number: u64) -> Result<u32, Malformed> {
    u32::try_from(number).map_err(|_| Malformed("a rank that no job has"))
}

/// Who waits for whom: the cycle that no rank can leave, if there is one, and one phrase per rank of the job. The end of
/// a `Stalled` message of a member of `team`. `elsewhere` gives what a rank says whose board can't be seen from here.
pub(super) fn report(segment: &Segment, team: &Members, elsewhere: impl Fn(u32) -> Option<Told>) -> String {
    let described = segment.size().min(REPORT_RANKS_MAX);
    let told: Vec<Option<Told>> = (0..described)
        .map(|rank| super::evidence(segment, rank).is_none().then(|| elsewhere(rank)).flatten())
        .collect();
    let sight = |rank: u32| match told.get(rank as usize) {
        Some(Some(told)) => told.sight.clone(),
        _ => Sight::take(segment, rank),
    };
    let sights: Vec<Option<Sight>> = (0..segment.size()).map(sight).collect();
    let mut text = match cycle(&sights, team) {
        Some(ranks) => {
            let waits = |&rank: &u32| match &sights[rank as usize] {
                Some(sight) => format!("rank {rank} in {} waits for ", sight.describe()),
                None => unreachable!("whoever is in a cycle waits"),
            };
            let all: String = ranks.iter().map(waits).collect();
            format!("wait-for cycle: {all}rank {}; ", ranks[0])
        }
        None => String::new(),
    };
    for job_rank in 0..segment.size() {
        if REPORT_RANKS_MAX <= job_rank {
            let _ = write!(text, "; and {} more", segment.size() - REPORT_RANKS_MAX);
            break;
        }
        if 0 < job_rank {
            text.push_str("; ");
        }
        let _ = write!(text, "rank {job_rank} ");
        match super::evidence(segment, job_rank) {
            Some(Evidence::Finished) => {
                text.push_str("has returned");
                continue;
            }
            Some(evidence) => {
                let _ = write!(text, "is lost ({evidence})");
                continue;
            }
            None => {}
        }
        match &told[job_rank as usize] {
            Some(told) => text.push_str(&told.phrase),
            None => text.push_str(&describe_wait(segment, job_rank, sights[job_rank as usize].as_ref())),
        }
    }
    text
}

/// What a rank that shares this memory says of itself to one that does not.
pub(super) fn tell(segment: &Segment, job_rank: u32) -> Told {
    let sight = Sight::take(segment, job_rank);
    let record = segment.record(job_rank);
    let threads = sys::process::threads(record.process.load(Ordering::Relaxed));
    // The agent is a thread that comes to no call.
    let single = record.several_threads.load(Ordering::Relaxed) == 0 && threads == Some(2);
    Told { phrase: describe_wait(segment, job_rank, sight.as_ref()), sight, single }
}

fn describe_wait(segment: &Segment, job_rank: u32, sight: Option<&Sight>) -> String {
    let mut text = String::new();
    match sight {
        Some(sight) => {
            let _ = write!(text, "waits in {}", sight.describe());
            match (sight.target, sight.blocker) {
                (Some(target), Some(blocker)) if target != blocker => {
                    let _ = write!(text, " at rank {target} for rank {blocker}");
                }
                (target, blocker) => {
                    if let Some(rank) = blocker.or(target) {
                        let _ = write!(text, " for rank {rank}");
                    }
                }
            }
            if !sight.detail_name.is_empty() {
                let _ = write!(text, " ({} {})", sight.detail_name, sight.detail);
            }
            let waited_ns = sys::time::monotonic_ns().saturating_sub(sight.since_ns);
            let _ = write!(text, " since {:.1} s", waited_ns as f64 * 1e-9);
        }
        None => match super::has_joined(segment, job_rank) {
            true => text.push_str("does not wait"),
            false => text.push_str("has not joined the job"),
        },
    }
    let process = segment.record(job_rank).process.load(Ordering::Relaxed);
    if let Some('T') = sys::process::state_letter(process) {
        let _ = write!(text, " (process {process} is stopped)");
    }
    text
}

/// A shortest cycle of ranks, each of which waits for the next and the last for the first: from the caller's rank if it is in
/// one, else any.
fn cycle(sights: &[Option<Sight>], team: &Members) -> Option<Vec<u32>> {
    let me = team.job_rank(team.rank()).0;
    let from_me_on = (me..sights.len() as u32).chain(0..me);
    from_me_on.into_iter().find_map(|first| path_back(sights, team, first))
}

/// A shortest way along the waits from a rank back to itself.
fn path_back(sights: &[Option<Sight>], team: &Members, first: u32) -> Option<Vec<u32>> {
    let mut came_from: Vec<Option<u32>> = vec![None; sights.len()];
    let mut open = VecDeque::from([first]);
    while let Some(rank) = open.pop_front() {
        for next in waits_for(sights, team, rank).filter(|&next| is_current(sights, rank, next)) {
            if next == first {
                let mut path = vec![rank];
                while let Some(before) = path.last().and_then(|&rank| came_from[rank as usize]) {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            if came_from[next as usize].is_none() {
                came_from[next as usize] = Some(rank);
                open.push_back(next);
            }
        }
    }
    None
}

/// Whether a rank has found its condition unmet after the rank that it waits for had begun its own wait: since then that
/// one has done nothing. A rank that is stopped, or slow to notice the end of its wait, has not.
fn is_current(sights: &[Option<Sight>], rank: u32, next: u32) -> bool {
    match (&sights[rank as usize], &sights[next as usize]) {
        (Some(sight), Some(theirs)) => theirs.since_ns < sight.looked_ns,
        _ => false,
    }
}

/// The ranks without which the wait of a rank can't end, as far as they are known.
fn waits_for(sights: &[Option<Sight>], team: &Members, rank: u32) -> std::vec::IntoIter<u32> {
    let Some(sight) = &sights[rank as usize] else { return Vec::new().into_iter() };
    let missing = |&other: &u32| match sights.get(other as usize) {
        Some(Some(theirs)) => !theirs.is_the_same_call(sight),
        Some(None) => true,
        None => false,
    };
    // Everybody is needed there; of other teams the members are not known here.
    if sight.is_collective() && sight.team == team.id() && sight.window.is_none() {
        return team
            .job_ranks()
            .iter()
            .map(|member| member.0)
            .filter(missing)
            .collect::<Vec<_>>()
            .into_iter();
    }
    let blockers: Vec<u32> =
        sight.blocker.into_iter().filter(|&blocker| (blocker as usize) < sights.len()).collect();
    blockers.into_iter()
}

/// Ranks that a report describes one by one.
const REPORT_RANKS_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_the_way() {
        let segment = Segment::create(2).unwrap();
        let nothing = Told { phrase: "does not wait".to_owned(), sight: None, single: true };
        let bytes = nothing.encode();
        assert!(Told::decode(Body::new(&bytes)) == Ok(nothing.clone()));
        assert!(Told::decode(Body::new(&bytes[..bytes.len() - 1])).is_err());
        let team = Members::new(5, Rank(0), [Rank(0), Rank(1)].into());
        let what = WaitFor::collective("fence", &team, 7);
        let shown =
            Shown::new(&segment, 0, 0, &WaitFor { window: Some(0), ..what }).expect("it is the first");
        shown.blocked_by(Some(1));
        shown.looked(sys::time::monotonic_ns());
        let told = Told { sight: Sight::take(&segment, 0), ..nothing };
        let bytes = told.encode();
        let got = Told::decode(Body::new(&bytes)).unwrap_or_else(|Malformed(why)| panic!("{why}"));
        let (sent, arrived) = (told.sight.expect("it is shown"), got.sight.expect("it was sent"));
        // It has become older on the way, and not younger.
        assert!(sent.since_ns <= arrived.since_ns && sent.looked_ns <= arrived.looked_ns);
        let times = |sight: Sight| Sight { since_ns: 0, looked_ns: 0, ..sight };
        assert!(times(sent) == times(arrived));
        for cut in 0..bytes.len() {
            let _ = Told::decode(Body::new(&bytes[..cut])); // Never a panic.
        }
    }

    #[test]
    fn an_accusation_survives_the_way() {
        let accusation = Accusation { team: 3, by: (1, "fence", Some(0)), peer: (2, "barrier", None) };
        let bytes = accusation.encode();
        assert_eq!(Accusation::decode(Body::new(&bytes)), Ok(accusation));
        for cut in 0..bytes.len() {
            assert!(Accusation::decode(Body::new(&bytes[..cut])).is_err());
        }
    }
}
