//! The words of a window under every interleaving that loom can think of.
#![allow(dead_code, reason = "a model uses a part of each file")]
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "loom itself checks every access to a cell"
)]

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../src/sync/exposure.rs"]
mod exposure;
#[path = "../src/sync/guard.rs"]
mod guard;
#[path = "../src/sync/handover.rs"]
mod handover;
#[path = "../src/sync/marks.rs"]
mod marks;
#[path = "../src/sync/notices.rs"]
mod notices;
#[path = "../src/sync/phases.rs"]
mod phases;
#[path = "../src/sync/state_word.rs"]
mod state_word;

use exposure::{Admits, Closing, Crowd, Exposure, Extent, Origin, Part, Tally};
use guard::Guard;
use handover::{Handover, Stage};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use marks::{Marks, words_for};
use notices::Notices;
use phases::{Broken, Phases, Reason, Way};
use state_word::{Refusal, Request, Sharing, Slot, StateWord, Turn};

/// Runs a model with a bound on preemptions, which keeps three threads tractable; loom's authors report that two or
/// three find nearly all faults.
fn explore(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// The runtime's event count over a futex that loom understands: the sleeper announces itself, fences, looks, sleeps; the
/// notifier has changed the condition, fences, looks for sleepers. A lost wake-up is a deadlock, which loom reports.
struct Bell {
    asleep: AtomicU32,
    /// The futex word and its queue.
    sequence: loom::sync::Mutex<u32>,
    queue: loom::sync::Condvar,
}

impl Bell {
    fn new() -> Bell {
        Bell {
            asleep: AtomicU32::new(0),
            sequence: loom::sync::Mutex::new(0),
            queue: loom::sync::Condvar::new(),
        }
    }

    fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) == 1 {
            self.asleep.store(0, Ordering::Relaxed);
            *self.sequence.lock().unwrap() += 1;
            self.queue.notify_all();
        }
    }

    fn wait(&self, mut ready: impl FnMut() -> bool) {
        loop {
            let before = *self.sequence.lock().unwrap();
            self.asleep.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if ready() {
                return;
            }
            let sequence = self.sequence.lock().unwrap();
            if *sequence == before {
                drop(self.queue.wait(sequence).unwrap());
            }
        }
    }
}

struct Lock {
    word: StateWord,
    slots: Vec<Slot>,
    bells: Vec<Bell>,
    /// What the lock protects: loom reports any access that the lock does not order.
    data: UnsafeCell<u32>,
}

impl Lock {
    fn new(slots: usize) -> Arc<Lock> {
        Arc::new(Lock {
            word: StateWord::new(),
            slots: (0..slots).map(|_| Slot::new()).collect(),
            bells: (0..slots).map(|_| Bell::new()).collect(),
            data: UnsafeCell::new(0),
        })
    }

    fn wake(&self) {
        let len = self.slots.len();
        if let Some(first) = self.word.settle(|ticket| &self.slots[ticket.slot(len)]) {
            self.bells[first.slot(len)].notify();
        }
    }

    fn lock(&self, rank: u32, sharing: Sharing) {
        let ticket = match self.word.request(rank, sharing, self.slots.len()) {
            Ok(Request::Granted) => return,
            Ok(Request::Queued(ticket)) => ticket,
            Err(refusal) => panic!("{refusal:?}"),
        };
        let at = ticket.slot(self.slots.len());
        self.slots[at].enter(ticket, rank);
        self.bells[at].wait(|| match self.word.poll(ticket, rank, sharing) {
            Turn::Mine => true,
            Turn::Waiting => false,
            Turn::Poisoned => panic!("nobody poisons"),
        });
        if sharing == Sharing::Shared {
            self.wake();
        }
    }

    fn unlock(&self, rank: u32, sharing: Sharing) {
        if self.word.unlock(rank, sharing) {
            self.wake();
        }
    }
}

// covers: RMA-SHM-04
#[test]
fn exclusive_holders_exclude_and_wake_each_other() {
    explore(2, || {
        let lock = Lock::new(4);
        let others: Vec<_> = (1..3)
            .map(|rank| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || {
                    lock.lock(rank, Sharing::Exclusive);
                    lock.data.with_mut(|data| unsafe { *data += 1 });
                    lock.unlock(rank, Sharing::Exclusive);
                })
            })
            .collect();
        lock.lock(0, Sharing::Exclusive);
        lock.data.with_mut(|data| unsafe { *data += 1 });
        lock.unlock(0, Sharing::Exclusive);
        others.into_iter().for_each(|other| other.join().unwrap());
        lock.lock(0, Sharing::Exclusive);
        assert_eq!(lock.data.with(|data| unsafe { *data }), 3);
    });
}

#[test]
fn readers_share_and_exclude_writers() {
    explore(2, || {
        let lock = Lock::new(4);
        let others: Vec<_> = [Sharing::Shared, Sharing::Exclusive]
            .into_iter()
            .zip(1..)
            .map(|(sharing, rank)| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || {
                    lock.lock(rank, sharing);
                    match sharing {
                        Sharing::Shared => drop(lock.data.with(|data| unsafe { *data })),
                        Sharing::Exclusive => lock.data.with_mut(|data| unsafe { *data += 1 }),
                    }
                    lock.unlock(rank, sharing);
                })
            })
            .collect();
        lock.lock(0, Sharing::Shared);
        lock.data.with(|data| unsafe { *data });
        lock.unlock(0, Sharing::Shared);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(lock.word.state().is_idle());
    });
}

#[test]
fn an_abandoned_ticket_is_skipped_by_one_side_or_the_other() {
    explore(2, || {
        let lock = Lock::new(4);
        lock.lock(0, Sharing::Exclusive);
        // One waiter gives up at once, another stays behind it.
        let quitter = {
            let lock = Arc::clone(&lock);
            let Ok(Request::Queued(ticket)) = lock.word.request(1, Sharing::Exclusive, 4) else {
                panic!("held")
            };
            loom::thread::spawn(move || {
                let slot = &lock.slots[ticket.slot(4)];
                slot.enter(ticket, 1);
                slot.abandon(ticket);
                lock.wake();
            })
        };
        let waiter = {
            let lock = Arc::clone(&lock);
            loom::thread::spawn(move || {
                lock.lock(2, Sharing::Exclusive);
                lock.data.with_mut(|data| unsafe { *data += 1 });
                lock.unlock(2, Sharing::Exclusive);
            })
        };
        lock.data.with_mut(|data| unsafe { *data += 1 });
        lock.unlock(0, Sharing::Exclusive);
        quitter.join().unwrap();
        waiter.join().unwrap();
        assert!(lock.word.state().is_idle(), "nothing of the abandoned ticket is left");
    });
}

#[test]
fn poison_comes_before_or_after_a_grant() {
    explore(3, || {
        let word = Arc::new(StateWord::new());
        let record = Arc::new(AtomicU32::new(0));
        let reader = {
            let (word, record) = (Arc::clone(&word), Arc::clone(&record));
            loom::thread::spawn(move || {
                record.store(1, Ordering::Relaxed); // As the runtime does before it asks.
                let granted = word.request(1, Sharing::Shared, 2).is_ok();
                if !granted {
                    record.store(0, Ordering::Release);
                }
                granted
            })
        };
        word.poison();
        let seen = record.load(Ordering::Acquire);
        let granted = reader.join().unwrap();
        assert!(!granted || seen == 1, "a reader was let in and nobody saw it");
        assert_eq!(word.request(0, Sharing::Exclusive, 2), Err(Refusal::Poisoned));
    });
}

#[test]
fn post_and_lock_exclude_each_other() {
    explore(3, || {
        let word = Arc::new(StateWord::new());
        let data = Arc::new(UnsafeCell::new(0));
        let locker = {
            let (word, data) = (Arc::clone(&word), Arc::clone(&data));
            loom::thread::spawn(move || {
                if word.try_lock(1, Sharing::Exclusive).is_ok() {
                    data.with_mut(|data| unsafe { *data += 1 });
                    word.unlock(1, Sharing::Exclusive);
                }
            })
        };
        if word.post().is_ok() {
            data.with_mut(|data| unsafe { *data += 1 });
            word.unpost();
        }
        locker.join().unwrap();
    });
}

/// A window of one owner with an exposure and the memory that it protects.
struct Exposed {
    exposure: Exposure,
    tally: Tally,
    origins: Vec<Origin>,
    posted: Bell,
    completed: Bell,
    cells: Vec<UnsafeCell<u32>>,
}

impl Exposed {
    fn new(origins: usize) -> Arc<Exposed> {
        Arc::new(Exposed {
            exposure: Exposure::new(),
            tally: Tally::new(),
            origins: (0..origins).map(|_| Origin::new()).collect(),
            posted: Bell::new(),
            completed: Bell::new(),
            cells: (0..origins).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    fn write_and_complete(&self, me: usize, number: u32) {
        self.cells[me].with_mut(|cell| unsafe { *cell += 1 });
        self.tally.complete(&self.origins[me], number);
        self.completed.notify();
    }

    fn open(&self, admits: Admits, extent: Extent) {
        self.exposure.open(&self.tally, admits, extent).unwrap();
    }

    fn start(&self, me: usize, last: u32) -> Result<(u32, Extent), exposure::Refusal> {
        self.exposure.start(me as u32, &self.origins[me], last, || self.completed.notify())
    }

    fn come(&self, number: u32) -> u64 {
        self.origins.iter().filter(|origin| origin.has_used(number)).count() as u64
    }

    /// Waits for all that can come.
    fn wait(&self, count: usize) -> Closing {
        self.wait_among(count, &Crowd::Counted)
    }

    fn wait_among(&self, count: usize, crowd: &Crowd<'_>) -> Closing {
        let mut outcome = Closing::Pending;
        self.completed.wait(|| {
            outcome = self.exposure.try_close(&self.tally, count, crowd);
            outcome != Closing::Pending
        });
        outcome
    }
}

// covers: RMA-SHM-04
#[test]
fn wait_sees_what_origins_wrote_and_nobody_comes_later() {
    explore(2, || {
        let window = Exposed::new(2);
        window.open(Admits::Anyone, Extent::Whole);
        let origins: Vec<_> = (0..2)
            .map(|me| {
                let window = Arc::clone(&window);
                loom::thread::spawn(move || match window.start(me, 0) {
                    Ok((number, _)) => {
                        window.write_and_complete(me, number);
                        true
                    }
                    Err(refusal) => {
                        assert_eq!(refusal, exposure::Refusal::Closed);
                        false
                    }
                })
            })
            .collect();
        let outcome = window.wait(1);
        // Closed or exceeded: either way nobody is in, so loom would report a racing access.
        let sum: u32 = window.cells.iter().map(|cell| cell.with_mut(|cell| unsafe { *cell })).sum();
        assert_eq!(sum, if outcome == Closing::Closed { 1 } else { 2 });
        let admitted =
            origins.into_iter().map(|origin| origin.join().unwrap()).filter(|&admitted| admitted).count();
        assert_eq!(admitted as u32, sum);
        assert!(window.origins.iter().all(|origin| !origin.is_at_work()));
    });
}

#[test]
fn whoever_is_let_into_a_part_knows_which() {
    explore(3, || {
        let window = Exposed::new(1);
        let part = Arc::new(Part::new());
        let origin = {
            let (window, part) = (Arc::clone(&window), Arc::clone(&part));
            loom::thread::spawn(move || match window.start(0, 0) {
                Ok((number, extent)) => {
                    // Each exposure has its own range, and the second one follows the first.
                    assert_eq!(extent, Extent::Part);
                    assert_eq!(part.get(), (u64::from(number), 10 + u64::from(number)));
                    window.write_and_complete(0, number);
                }
                Err(refusal) => assert_eq!(refusal, exposure::Refusal::Closed),
            })
        };
        for number in 1..=2 {
            part.set(number, 10 + number);
            window.open(Admits::Anyone, Extent::Part);
            window.wait(0);
        }
        origin.join().unwrap();
    });
}

#[test]
fn a_member_that_is_added_later_is_let_in() {
    explore(2, || {
        let window = Exposed::new(2);
        let origins: Vec<_> = (0..2)
            .map(|me| {
                let window = Arc::clone(&window);
                loom::thread::spawn(move || {
                    let mut number = 0;
                    window.posted.wait(|| match window.start(me, 0) {
                        Ok((admitted, _)) => {
                            number = admitted;
                            true
                        }
                        Err(_) => false,
                    });
                    window.write_and_complete(me, number);
                })
            })
            .collect();
        let number = window.exposure.next_number();
        window.open(Admits::Group { first: Some(1) }, Extent::Whole);
        window.posted.notify();
        window.origins[0].allow(number);
        window.posted.notify();
        assert_eq!(window.wait(2), Closing::Closed);
        let sum: u32 = window.cells.iter().map(|cell| cell.with_mut(|cell| unsafe { *cell })).sum();
        assert_eq!(sum, 2);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
    });
}

#[test]
fn a_post_wakes_whoever_waits_for_it() {
    explore(3, || {
        let window = Exposed::new(1);
        let origin = {
            let window = Arc::clone(&window);
            loom::thread::spawn(move || {
                let mut number = 0;
                window.posted.wait(|| match window.start(0, 0) {
                    Ok((admitted, _)) => {
                        number = admitted;
                        true
                    }
                    Err(_) => false,
                });
                window.write_and_complete(0, number);
            })
        };
        window.open(Admits::Group { first: Some(0) }, Extent::Whole);
        window.posted.notify();
        assert_eq!(window.wait(1), Closing::Closed);
        assert_eq!(window.cells[0].with_mut(|cell| unsafe { *cell }), 1);
        origin.join().unwrap();
    });
}

// covers: RMA-SHM-04
#[test]
fn a_group_of_two_is_waited_for_and_its_exposures_are_apart() {
    explore(2, || {
        let window = Exposed::new(2);
        let origins: Vec<_> = (0..2)
            .map(|me| {
                let window = Arc::clone(&window);
                loom::thread::spawn(move || {
                    let mut last = 0;
                    for _ in 0..if me == 0 { 2 } else { 1 } {
                        window
                            .posted
                            .wait(|| window.start(me, last).inspect(|started| last = started.0).is_ok());
                        window.write_and_complete(me, last);
                    }
                })
            })
            .collect();
        window.origins[1].allow(window.exposure.next_number());
        window.open(Admits::Group { first: Some(0) }, Extent::Whole);
        window.posted.notify();
        assert_eq!(window.wait(2), Closing::Closed);
        for cell in &window.cells {
            assert_eq!(cell.with_mut(|cell| unsafe { *cell }), 1);
        }
        window.open(Admits::Group { first: Some(0) }, Extent::Whole);
        window.posted.notify();
        assert_eq!(window.wait(1), Closing::Closed);
        assert_eq!(window.cells[0].with_mut(|cell| unsafe { *cell }), 2);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
    });
}

#[test]
fn a_member_that_is_not_counted_is_inside_before_or_never() {
    explore(3, || {
        let window = Exposed::new(1);
        window.open(Admits::Group { first: Some(0) }, Extent::Whole);
        let origin = {
            let window = Arc::clone(&window);
            loom::thread::spawn(move || match window.start(0, 0) {
                Ok((number, _)) => {
                    window.write_and_complete(0, number);
                    true
                }
                Err(refusal) => {
                    assert_eq!(refusal, exposure::Refusal::Closed);
                    false
                }
            })
        };
        let outcome = window.wait_among(0, &Crowd::Others(&|number| window.come(number)));
        // Nobody is in, so loom would report a racing access.
        let written = window.cells[0].with_mut(|cell| unsafe { *cell });
        let admitted = origin.join().unwrap();
        assert_eq!(written == 1, admitted);
        assert!(admitted || outcome == Closing::Closed);
        // What comes late is counted by no later exposure.
        window.open(Admits::Group { first: None }, Extent::Whole);
        assert_eq!(window.wait(0), Closing::Closed);
    });
}

#[test]
fn one_origin_does_not_stand_in_for_another() {
    explore(2, || {
        let window = Exposed::new(2);
        window.open(Admits::Anyone, Extent::Whole);
        let fast = {
            let window = Arc::clone(&window);
            loom::thread::spawn(move || {
                let (number, _) = window.start(0, 0).unwrap();
                window.write_and_complete(0, number);
                // Its second visit is refused whether the wait is over or not.
                assert!(window.start(0, number).is_err());
            })
        };
        let slow = {
            let window = Arc::clone(&window);
            loom::thread::spawn(move || {
                let (number, _) = window.start(1, 0).unwrap();
                window.write_and_complete(1, number);
            })
        };
        assert_eq!(window.wait(2), Closing::Closed);
        for cell in &window.cells {
            assert_eq!(cell.with_mut(|cell| unsafe { *cell }), 1);
        }
        fast.join().unwrap();
        slow.join().unwrap();
    });
}

#[test]
fn a_poisoned_exposure_knows_who_is_inside() {
    poison_and_look(|| Admits::Anyone);
}

#[test]
fn a_poisoned_group_knows_who_is_inside() {
    poison_and_look(|| Admits::Group { first: Some(0) });
}

/// An owner that poisons its exposure touches the memory only if no origin is at work on it.
fn poison_and_look(admits: fn() -> Admits) {
    explore(3, move || {
        let window = Exposed::new(1);
        window.open(admits(), Extent::Whole);
        let origin = {
            let window = Arc::clone(&window);
            loom::thread::spawn(move || {
                if let Ok((number, _)) = window.start(0, 0) {
                    window.write_and_complete(0, number);
                }
            })
        };
        window.exposure.poison();
        if !window.origins[0].is_at_work() {
            window.cells[0].with_mut(|cell| unsafe { *cell += 1 });
        }
        origin.join().unwrap();
    });
}

#[test]
fn a_fence_orders_the_phases_of_two_ranks() {
    explore(3, || {
        let ranks = Arc::new([Phases::new(), Phases::new()]);
        let bells = Arc::new([Bell::new(), Bell::new()]);
        let cells = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let run = {
            let (ranks, bells, cells) = (Arc::clone(&ranks), Arc::clone(&bells), Arc::clone(&cells));
            move |me: usize| {
                let other = 1 - me;
                let fence = |number, way| {
                    ranks[me].signal(0, number, way);
                    bells[other].notify();
                    bells[me].wait(|| ranks[other].heard(0, number).is_some());
                    // The other may be at the next fence already, which goes another way.
                    assert_eq!(ranks[other].heard(0, number), Some(way));
                };
                cells[me].with_mut(|cell| unsafe { *cell = 1 }); // private
                fence(1, Way::In);
                cells[other].with_mut(|cell| unsafe { *cell += 10 }); // a put
                fence(2, Way::Out);
                assert_eq!(cells[me].with_mut(|cell| unsafe { *cell }), 11);
            }
        };
        let peer = {
            let run = run.clone();
            loom::thread::spawn(move || run(1))
        };
        run(0);
        peer.join().unwrap();
    });
}

#[test]
fn a_late_rank_sees_the_break_or_is_seen() {
    explore(4, || {
        let ranks = Arc::new([Phases::new(), Phases::new()]);
        let broken = Arc::new(Broken::new());
        let data = Arc::new(UnsafeCell::new(0));
        let late = {
            let (ranks, broken, data) = (Arc::clone(&ranks), Arc::clone(&broken), Arc::clone(&data));
            loom::thread::spawn(move || {
                ranks[1].begin_writing();
                ranks[1].signal(0, 1, Way::In); // Rank 0 has signalled before it gave up, so the fence is passed.
                if broken.get().is_none() {
                    data.with_mut(|data| unsafe { *data += 1 });
                }
                ranks[1].end_writing();
            })
        };
        broken.set(0, Reason::TimedOut);
        if !ranks[1].is_writing() {
            data.with_mut(|data| unsafe { *data += 1 }); // A view of the own window.
        }
        late.join().unwrap();
        assert_eq!(broken.get(), Some((0, Reason::TimedOut)));
    });
}

/// Two origins write and mark while the owner takes marks and reads what they stand for. What it misses it finds the next time,
/// when the origins are done.
fn no_mark_is_lost(places: [usize; 2]) {
    // Two words of marks and the one above them.
    const BYTES: usize = 65;
    explore(3, move || {
        struct Mirror {
            bytes: [AtomicU32; 2],
            words: Vec<AtomicU64>,
        }
        let mirror = Arc::new(Mirror {
            bytes: [AtomicU32::new(0), AtomicU32::new(0)],
            words: (0..words_for(BYTES)).map(|_| AtomicU64::new(0)).collect(),
        });
        let origins: Vec<_> = (0..2)
            .map(|origin| {
                let mirror = Arc::clone(&mirror);
                loom::thread::spawn(move || {
                    mirror.bytes[origin].store(1, Ordering::Relaxed);
                    Marks::new(&mirror.words, BYTES).add(places[origin], 1);
                })
            })
            .collect();
        let mut private = [0; 2];
        let mut import = || {
            Marks::new(&mirror.words, BYTES).take(|start, len| {
                for (origin, &place) in places.iter().enumerate() {
                    if start <= place && place < start + len {
                        private[origin] = mirror.bytes[origin].load(Ordering::Relaxed);
                    }
                }
            });
        };
        import();
        for origin in origins {
            origin.join().unwrap();
        }
        import();
        assert_eq!(private, [1, 1]);
    });
}

#[test]
fn no_mark_of_one_word_is_lost() {
    no_mark_is_lost([3, 4]);
}

#[test]
fn no_mark_of_two_words_is_lost() {
    no_mark_is_lost([3, 64]);
}

#[test]
fn a_guard_is_held_by_one_and_wakes_the_next() {
    struct Guarded {
        guard: Guard,
        released: Bell,
        /// What the guard protects: loom reports any access that it does not order.
        data: UnsafeCell<u32>,
    }
    explore(2, || {
        let guarded =
            Arc::new(Guarded { guard: Guard::new(), released: Bell::new(), data: UnsafeCell::new(0) });
        let change = |guarded: &Guarded, rank| {
            guarded.released.wait(|| guarded.guard.try_take(rank));
            assert_eq!(guarded.guard.holder(), Some(rank));
            guarded.data.with_mut(|data| unsafe { *data += 1 });
            guarded.guard.give_back();
            guarded.released.notify();
        };
        let other = Arc::clone(&guarded);
        let other = loom::thread::spawn(move || change(&other, 1));
        change(&guarded, 0);
        other.join().unwrap();
        guarded.released.wait(|| guarded.guard.try_take(0));
        guarded.data.with(|data| assert_eq!(unsafe { *data }, 2));
    });
}

/// A target's memory with a counter of puts. loom reports any access to the memory that the count does not order.
struct Counted {
    notices: Notices,
    told: Bell,
    data: [UnsafeCell<u32>; 2],
}

impl Counted {
    fn new() -> Arc<Counted> {
        let data = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Counted { notices: Notices::new(), told: Bell::new(), data })
    }

    fn put_notify(&self, place: usize) {
        self.data[place].with_mut(|data| unsafe { *data = 7 });
        self.notices.add();
        self.told.notify();
    }

    fn wait(&self, arrivals: u64) {
        self.told.wait(|| self.notices.take(arrivals));
    }

    fn see(&self, place: usize) {
        self.data[place].with(|data| assert_eq!(unsafe { *data }, 7));
    }
}

#[test]
fn a_count_shows_the_data_of_all_puts_that_it_counts() {
    explore(2, || {
        let counted = Counted::new();
        let origins: Vec<_> = (0..2)
            .map(|place| {
                let counted = Arc::clone(&counted);
                loom::thread::spawn(move || counted.put_notify(place))
            })
            .collect();
        counted.wait(2);
        counted.see(0);
        counted.see(1);
        origins.into_iter().for_each(|origin| origin.join().unwrap());
        assert_eq!(counted.notices.untaken(), 0);
    });
}

#[test]
fn counted_puts_are_taken_one_by_one() {
    explore(2, || {
        let counted = Counted::new();
        let origin = Arc::clone(&counted);
        let origin = loom::thread::spawn(move || {
            origin.put_notify(0);
            origin.put_notify(1);
        });
        counted.wait(1);
        counted.see(0);
        counted.wait(1);
        counted.see(1);
        origin.join().unwrap();
    });
}

/// A parcel: what lies in it, and the memory that it may be copied to. Loom reports any access that the word does not order.
struct Parcel {
    word: Handover,
    data: UnsafeCell<u32>,
    offered: UnsafeCell<u32>,
}

impl Parcel {
    fn new() -> Arc<Parcel> {
        Arc::new(Parcel { word: Handover::new(), data: UnsafeCell::new(0), offered: UnsafeCell::new(0) })
    }

    fn post(&self, number: u64) {
        self.data.with_mut(|data| unsafe { *data = number as u32 });
        self.word.post(number);
    }

    /// What the receiver does with data that lie in the parcel, if it gets it.
    fn receive(&self, number: u64) -> bool {
        let claimed = self.word.claim(number);
        if claimed {
            assert_eq!(self.data.with(|data| unsafe { *data }), number as u32);
            self.word.done(number);
        }
        claimed
    }
}

/// The receiver, a direct offer or one in a store, and the sender by another way all want it, and its sender may take it back.
#[test]
fn a_parcel_is_served_once() {
    explore(3, || {
        let parcel = Parcel::new();
        parcel.post(1);
        let receiver = loom::thread::spawn({
            let parcel = Arc::clone(&parcel);
            move || u32::from(parcel.receive(1))
        });
        let other = loom::thread::spawn({
            let parcel = Arc::clone(&parcel);
            move || u32::from(parcel.receive(1))
        });
        let taken_back = parcel.word.take_back(1);
        if taken_back {
            // It is the sender's again, and the next one goes where it was.
            parcel.post(2);
            assert!(parcel.receive(2));
        }
        assert_eq!(receiver.join().unwrap() + other.join().unwrap() + u32::from(taken_back), 1);
    });
}

/// A sender copies to a place that it was granted only while the receiver leaves it the place.
#[test]
fn a_grant_is_used_or_taken_back() {
    explore(3, || {
        let parcel = Parcel::new();
        parcel.post(1);
        assert!(parcel.word.claim(1) && parcel.word.grant(1));
        let sender = loom::thread::spawn({
            let parcel = Arc::clone(&parcel);
            move || match parcel.word.look().stage() {
                Stage::Granted if parcel.word.begin(1) => {
                    parcel.offered.with_mut(|offered| unsafe { *offered = 7 });
                    parcel.word.delivered(1);
                }
                // It has other things to do, or finds the grant gone.
                _ => drop(parcel.word.withdraw(1)),
            }
        });
        let revoked = parcel.word.revoke(1);
        let seen = || parcel.offered.with(|offered| unsafe { *offered });
        if revoked {
            // The memory is the receiver's alone.
            parcel.offered.with_mut(|offered| unsafe { *offered = 9 });
        }
        sender.join().unwrap();
        match parcel.word.look().stage() {
            Stage::Delivered => assert!(!revoked && seen() == 7),
            stage => assert!(matches!(stage, Stage::Idle | Stage::Posted), "{stage:?}"),
        }
    });
}

/// A sender gives a parcel up that the receiver is about to grant or to let go: nobody begins it any more, and it is over.
#[test]
fn a_parcel_that_is_given_up_is_over() {
    for is_granted in [false, true] {
        explore(3, move || {
            let parcel = Parcel::new();
            parcel.post(1);
            let receiver = loom::thread::spawn({
                let parcel = Arc::clone(&parcel);
                move || match parcel.word.claim(1) {
                    true if is_granted => parcel.word.grant(1) && parcel.word.revoke(1),
                    true => {
                        parcel.word.let_go(1);
                        false
                    }
                    false => false,
                }
            });
            assert!(parcel.word.withdraw(1));
            receiver.join().unwrap();
            assert_eq!(parcel.word.look().stage(), Stage::Idle);
        });
    }
}

/// A receiver gives a grant up that the sender has begun to use: the sender can use the parcel for something else afterwards.
#[test]
fn a_grant_that_is_given_up_is_over() {
    explore(3, || {
        let parcel = Parcel::new();
        parcel.post(1);
        assert!(parcel.word.claim(1) && parcel.word.grant(1) && parcel.word.begin(1));
        let sender = loom::thread::spawn({
            let parcel = Arc::clone(&parcel);
            move || parcel.word.delivered(1)
        });
        parcel.word.forsake(1);
        sender.join().unwrap();
        assert!(parcel.word.look().stage().is_over());
    });
}

/// Who posts a parcel looks for offers afterwards, and who opens one looks for parcels afterwards.
#[test]
fn a_parcel_and_an_offer_do_not_miss_each_other() {
    explore(3, || {
        let shared = Arc::new((Handover::new(), AtomicU32::new(0)));
        let opener = loom::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                shared.0.look().stage() == Stage::Posted && shared.0.claim(1)
            }
        });
        shared.0.post(1);
        fence(Ordering::SeqCst);
        let by_sender = shared.1.load(Ordering::Relaxed) == 1 && shared.0.claim(1);
        let by_opener = opener.join().unwrap();
        assert!(by_sender != by_opener, "exactly one of the two serves it");
    });
}
