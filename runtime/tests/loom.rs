//! The event count and the barrier under every interleaving that loom can think of.
#![allow(missing_docs, unreachable_pub, dead_code)]

/// What `sync::primitive` offers, on loom's atomics. Sleeping has no time-out here, so that a lost wake-up is a
/// deadlock, which loom reports.
mod primitive {
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    use loom::sync::{Condvar, Mutex};

    pub(crate) fn fence_after_change() {
        fence(Ordering::SeqCst);
    }

    loom::lazy_static! {
        /// The kernel's lock on a futex's queue. One queue for all words: waking too many is allowed.
        static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, _: Option<Duration>) {
        let queue = QUEUE.0.lock().unwrap();
        if word.load(Ordering::Relaxed) == expected {
            drop(QUEUE.1.wait(queue).unwrap());
        }
    }

    pub(crate) fn futex_wake_all(_: &AtomicU32) {
        let _queue = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}

#[path = "../src/sync/barrier.rs"]
mod barrier;
#[path = "../src/sync/desk.rs"]
mod desk;
#[path = "../src/sync/event.rs"]
mod event;

use barrier::{Arrival, Barrier, Cause, Outcome};
use desk::Desk;
use event::Event;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;

/// Runs a model with a bound on preemptions: without one, three threads take hours, and with one of two or three a
/// model takes seconds. The bound is two or three, since faults in so few steps that need more are not known; the
/// smallest model is explored without one.
fn explore(preemptions: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(body);
}

/// The runtime's way to wait, without its spinning and its clock.
fn wait<R>(event: &Event, mut ready: impl FnMut() -> Option<R>) -> R {
    loop {
        let ticket = event.announce();
        match ready() {
            Some(value) => return value,
            None => event.sleep(ticket, None),
        }
    }
}

#[test]
fn a_sleeper_never_misses_a_change() {
    explore(None, || {
        let shared = Arc::new((Event::new(), AtomicU32::new(0)));
        let waiter = thread::spawn({
            let shared = Arc::clone(&shared);
            move || wait(&shared.0, || (shared.1.load(Ordering::Acquire) == 1).then_some(()))
        });
        shared.1.store(1, Ordering::Release);
        shared.0.notify();
        waiter.join().unwrap();
    });
}

#[test]
fn two_sleepers_and_two_changes() {
    explore(Some(2), || {
        let shared = Arc::new((Event::new(), AtomicU32::new(0)));
        let sleepers: Vec<_> = (1..=2)
            .map(|least| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    wait(&shared.0, || (least <= shared.1.load(Ordering::Acquire)).then_some(()))
                })
            })
            .collect();
        for _ in 0..2 {
            shared.1.fetch_add(1, Ordering::Release);
            shared.0.notify();
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    });
}

/// A barrier and one cell per member, which only the barrier orders: loom reports an access that it does not.
struct Meeting {
    barrier: Barrier,
    cells: Vec<UnsafeCell<u32>>,
}

impl Meeting {
    fn new(members: usize) -> Arc<Meeting> {
        Arc::new(Meeting {
            barrier: Barrier::new(),
            cells: (0..members).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    fn meet(&self, signature: u64) -> Outcome {
        match self.barrier.arrive(self.cells.len() as u32, signature) {
            Arrival::Last(outcome) => outcome,
            Arrival::Early(generation) => wait(self.barrier.event(), || self.barrier.passed(generation)),
            Arrival::Refused => Outcome::Broken,
        }
    }

    #[allow(unsafe_code)]
    fn write(&self, member: usize, value: u32) {
        self.cells[member].with_mut(|cell| {
            // SAFETY: - exclusive: the barrier orders this against every reader, which loom checks.
            unsafe { *cell = value }
        });
    }

    #[allow(unsafe_code)]
    fn read(&self, member: usize) -> u32 {
        self.cells[member].with(|cell| {
            // SAFETY: - unaliased by writers: the barrier orders them, which loom checks.
            unsafe { *cell }
        })
    }
}

fn members(meeting: &Arc<Meeting>, body: impl Fn(&Meeting, usize) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let others: Vec<_> = (1..meeting.cells.len())
        .map(|member| {
            let (meeting, body) = (Arc::clone(meeting), Arc::clone(&body));
            thread::spawn(move || body(&meeting, member))
        })
        .collect();
    body(meeting, 0);
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn what_was_written_before_a_barrier_is_seen_after_it() {
    explore(Some(3), || {
        let meeting = Meeting::new(2);
        members(&meeting, |meeting, member| {
            for round in 1..=2 {
                meeting.write(member, round);
                assert_eq!(meeting.meet(7), Outcome::Agreed);
                assert_eq!(meeting.read(1 - member), round);
                assert_eq!(meeting.meet(8), Outcome::Agreed);
            }
        });
    });
}

#[test]
fn three_members_pass_together() {
    explore(Some(2), || {
        let meeting = Meeting::new(3);
        members(&meeting, |meeting, member| {
            meeting.write(member, 1);
            assert_eq!(meeting.meet(7), Outcome::Agreed);
            assert_eq!((0..3).map(|member| meeting.read(member)).sum::<u32>(), 3);
        });
    });
}

#[test]
fn different_calls_are_found_by_all() {
    explore(Some(3), || {
        let meeting = Meeting::new(2);
        members(&meeting, |meeting, member| {
            assert_eq!(meeting.meet(7), Outcome::Agreed);
            assert_eq!(meeting.meet(member as u64), Outcome::Mismatched);
            assert_eq!(meeting.barrier.arrive(2, 7), Arrival::Refused);
        });
    });
}

#[test]
fn a_member_that_gives_up_releases_those_that_wait() {
    explore(Some(2), || {
        let meeting = Meeting::new(3);
        members(&meeting, |meeting, member| match member {
            // Never comes, as a rank that was killed; this thread plays the rank that finds it out.
            0 => meeting.barrier.break_off(0, Cause::Lost),
            _ => {
                assert_eq!(meeting.meet(7), Outcome::Broken);
                assert_eq!(meeting.barrier.broken_by(), Some((0, Cause::Lost)));
            }
        });
    });
}

/// Two that want the place to be left, and one that leaves it as soon as it knows: nobody sleeps for ever, and whoever finds it free
/// sees what was done before.
#[test]
fn a_desk_is_left_when_it_is_wanted() {
    explore(Some(2), || {
        let shared = Arc::new((Desk::new(), Event::new(), Event::new(), AtomicU32::new(0)));
        let turn = shared.0.take(3).unwrap();
        let askers: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if let Some(turn) = shared.0.stands(3) {
                        shared.0.want(turn);
                        shared.1.notify();
                        wait(&shared.2, || shared.0.is_over(turn).then_some(()));
                    }
                    assert_eq!(shared.3.load(Ordering::Relaxed), 1);
                })
            })
            .collect();
        wait(&shared.1, || shared.0.is_wanted(turn).then_some(()));
        shared.3.store(1, Ordering::Relaxed);
        shared.0.give(turn);
        shared.2.notify_after_change();
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
}

/// A wish that comes late does not hit the next turn, and does not hide a wish for that.
#[test]
fn a_late_wish_is_for_its_own_turn() {
    explore(None, || {
        let desk = Arc::new(Desk::new());
        let first = desk.take(0).unwrap();
        let late = thread::spawn({
            let desk = Arc::clone(&desk);
            move || desk.want(first)
        });
        desk.give(first);
        let next = desk.take(0).unwrap();
        assert!(!desk.is_wanted(next));
        desk.want(next);
        late.join().unwrap();
        assert!(desk.is_wanted(next));
    });
}

/// One takes the desk and looks at the offers again, another one opens an offer and looks at the desk: they see each other.
#[test]
fn a_desk_and_an_offer_do_not_miss_each_other() {
    explore(None, || {
        let shared = Arc::new((Desk::new(), AtomicU32::new(0)));
        let opener = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                shared.0.stands(0).is_some()
            }
        });
        let is_taken = shared.0.take(0).is_some();
        let sees_offer = shared.1.load(Ordering::Relaxed) == 1;
        let sees_desk = opener.join().unwrap();
        assert!(is_taken && (sees_offer || sees_desk));
    });
}
