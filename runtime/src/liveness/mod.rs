//! Who is alive, what is known about those who are not, and waiting that takes both into account. Never ends a
//! process and never decides what a lost rank means to a window.
#![forbid(unsafe_code)]

mod board;
mod wait;

use std::sync::atomic::{Ordering, fence};

pub(crate) use wait::{Act, NO_BLOCKER, Needs, WaitFor};

use crate::error::Evidence;
use crate::rank::{Members, Rank};
use crate::sync::event::Event;
use crate::sys;
use crate::transport::shm::segment::Segment;
use crate::transport::tcp::frame::{Body, Malformed};

/// What the status word of a rank says while there is no evidence of its end, whose codes are others.
const ABSENT: u32 = 0;
const RUNNING: u32 = 1;

/// What a rank of this process says of its waits to one that does not share its memory.
pub(crate) fn tell(segment: &Segment, job_rank: u32) -> Vec<u8> {
    board::tell(segment, job_rank).encode()
}

/// Hears that two members of a team sit in different collective calls, as a rank says that shares no memory with this one.
pub(crate) fn hear_accusation(segment: &Segment, body: Body<'_>) -> Result<(), Malformed> {
    let accusation = board::Accusation::decode(body)?;
    board::accuse_all(segment, &accusation);
    Ok(())
}

/// How a rank ended, if it has.
pub(crate) fn evidence(segment: &Segment, job_rank: u32) -> Option<Evidence> {
    // Acquire: pairs with the Release in `end`, so that what the rank did before it ended is seen after.
    Evidence::from_code(segment.record(job_rank).status.load(Ordering::Acquire))
}

/// Whether a rank can't execute anything any more. A rank whose program has only returned or failed may live on as a thread or
/// process that has kept a handle.
///
/// The launcher watches the process that it has started, which may be a shell around the rank, so the rank's own process is
/// looked at, too.
pub(crate) fn cannot_act(segment: &Segment, job_rank: Rank) -> bool {
    let ended =
        matches!(evidence(segment, job_rank.0), Some(Evidence::ProcessExited(_) | Evidence::Signalled(_)));
    ended && !sys::process::is_running(segment.record(job_rank.0).process.load(Ordering::Relaxed))
}

/// Marks a rank as running on this thread; false if it has joined or ended before.
pub(crate) fn join(segment: &Segment, job_rank: u32, process: u32) -> bool {
    let record = segment.record(job_rank);
    let joined = record.status.compare_exchange(ABSENT, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if joined {
        record.process.store(process, Ordering::Relaxed);
        record.home_thread.store(sys::process::own_thread(), Ordering::Relaxed);
    }
    joined
}

/// Whether a rank has joined the job at some time.
pub(crate) fn has_joined(segment: &Segment, job_rank: u32) -> bool {
    segment.record(job_rank).process.load(Ordering::Relaxed) != 0
}

/// Records how a rank ended and wakes everybody that waits for anything. The first evidence about a rank counts.
pub(crate) fn end(segment: &Segment, job_rank: u32, evidence: Evidence) {
    let record = segment.record(job_rank);
    let header = segment.header();
    let mut status = record.status.load(Ordering::Relaxed);
    if Evidence::from_code(status).is_some() {
        return;
    }
    // Relaxed, both: published with the status. A rank that dies right here is ended, and numbered, by its launcher.
    record.end_order.store(header.end_order.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    loop {
        if Evidence::from_code(status).is_some() {
            return;
        }
        // Release: pairs with the Acquire in `evidence`.
        match record.status.compare_exchange_weak(
            status,
            evidence.code(),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => break,
            Err(now) => status = now,
        }
    }
    if evidence.is_failure() {
        // Relaxed: read by the launcher after the process has ended.
        let name = job_rank + 1;
        let _ = header.first_failure.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed);
    }
    // Release: pairs with the Acquire load in `ended`.
    header.ended.fetch_add(1, Ordering::Release);
    wake_everybody(segment);
}

/// How many ranks have ended.
pub(crate) fn ended(segment: &Segment) -> u32 {
    // Acquire: pairs with the Release in `end`.
    segment.header().ended.load(Ordering::Acquire)
}

/// The member of the team, other than the caller, that ended first: later ends may have followed from it.
pub(crate) fn lost_member(segment: &Segment, team: &Members) -> Option<(Rank, Evidence)> {
    let lost = |rank: Rank| {
        let job_rank = team.job_rank(rank).0;
        let evidence = evidence(segment, job_rank)?;
        // Relaxed: ordered by the Acquire in `evidence`.
        Some((segment.record(job_rank).end_order.load(Ordering::Relaxed), rank, evidence))
    };
    let first =
        team.ranks().filter(|&rank| rank != team.rank()).filter_map(lost).min_by_key(|&(order, ..)| order);
    first.map(|(_, rank, evidence)| (rank, evidence))
}

/// The rank whose failure came first, if one has failed.
pub(crate) fn first_failure(segment: &Segment) -> Option<u32> {
    segment.header().first_failure.load(Ordering::Relaxed).checked_sub(1)
}

/// Wakes every waiter of the job. Those whose wait is not on the board look again by themselves within a slice.
pub(crate) fn wake_everybody(segment: &Segment) {
    // SeqCst: pairs with the fence in `Event::announce`: a waiter that this loop does not find on its board looks at
    // the status words after this point.
    fence(Ordering::SeqCst);
    let departures = &segment.header().departures;
    // Waiters of one barrier, and those that have left, share an event. To wake them once for each of them would cost the
    // cube of their number over the ends of all.
    let mut events: Vec<u64> =
        (0..segment.size()).filter_map(|job_rank| board::sleeping_on(segment, job_rank)).collect();
    events.sort_unstable();
    events.dedup();
    for offset in events.into_iter().filter(|&offset| Some(offset) != segment.offset_of(departures)) {
        if let Some(event) = segment.shared_if_valid::<Event>(offset) {
            // The waiter may have left its event meanwhile, and its memory may be a window by now.
            event.nudge();
        }
    }
    // Whoever has left waits for the last end only.
    if ended(segment) == segment.size() {
        departures.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_evidence_counts() {
        let segment = Segment::create(2).unwrap();
        assert!(join(&segment, 1, 77));
        assert!(!join(&segment, 1, 78), "a rank joins once");
        end(&segment, 1, Evidence::ReturnedError);
        end(&segment, 1, Evidence::ProcessExited(1));
        assert_eq!(super::evidence(&segment, 1), Some(Evidence::ReturnedError));
        assert_eq!((first_failure(&segment), ended(&segment)), (Some(1), 1));
    }
}
