//! Which scopes of a rank are open, so that there is one at a time of a team and tag. Never knows what they issue.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::Key;
use super::hub::Hub;
use crate::sync::guard::Guard;

/// Scopes that have a seat; more than these are noted in a list.
const SEATS: usize = 4;

/// The teams and tags with an open scope. There are few at a time, so each has a seat, which it takes by one exchange and gives up by
/// a store.
pub(super) struct Scopes {
    turn: Guard,
    seats: [Seat; SEATS],
    /// How many are in the list.
    listed: AtomicU32,
    list: Mutex<Vec<(u64, u64)>>,
}

#[derive(Default)]
struct Seat {
    is_taken: AtomicU32,
    team: AtomicU64,
    tag: AtomicU64,
}

/// A scope of the same team and tag is open.
pub(super) struct IsOpen;

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes {
            turn: Guard::new(),
            seats: Default::default(),
            listed: AtomicU32::new(0),
            list: Mutex::default(),
        }
    }

    /// Runs `body` alone. It is short, and waits for nobody.
    fn alone<R>(&self, body: impl FnOnce() -> R) -> R {
        while !self.turn.try_take(0) {
            std::thread::yield_now();
        }
        let result = body();
        self.turn.give_back();
        result
    }

    fn has(&self, mark: (u64, u64)) -> bool {
        // Acquire: pairs with the Release in `leave`: what a scope did before its end is seen by the next one.
        let is_in = |seat: &Seat| {
            seat.is_taken.load(Ordering::Acquire) != 0
                && (seat.team.load(Ordering::Relaxed), seat.tag.load(Ordering::Relaxed)) == mark
        };
        self.seats.iter().any(is_in)
            || (self.listed.load(Ordering::Relaxed) != 0 && self.list().contains(&mark))
    }

    /// Notes that a scope of a team and tag is open, unless there is one.
    pub(super) fn enter(&self, mark: (u64, u64)) -> Result<Option<usize>, IsOpen> {
        self.alone(|| {
            if self.has(mark) {
                return Err(IsOpen);
            }
            // Relaxed, here and below: whoever looks has the turn, too.
            let seat = self.seats.iter().position(|seat| seat.is_taken.load(Ordering::Relaxed) == 0);
            match seat.map(|at| &self.seats[at]) {
                Some(seat) => {
                    seat.team.store(mark.0, Ordering::Relaxed);
                    seat.tag.store(mark.1, Ordering::Relaxed);
                    seat.is_taken.store(1, Ordering::Relaxed);
                }
                None => {
                    self.listed.fetch_add(1, Ordering::Relaxed);
                    self.list().push(mark);
                }
            }
            Ok(seat)
        })
    }

    /// Notes that it is not open any more.
    pub(super) fn leave(&self, mark: (u64, u64), seat: Option<usize>) {
        match seat {
            Some(seat) => self.seats[seat].is_taken.store(0, Ordering::Release), // Release: pairs with the Acquire in `has`.
            None => self.alone(|| {
                self.list().retain(|&other| other != mark);
                self.listed.fetch_sub(1, Ordering::Relaxed);
            }),
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        // Nothing panics while the list is inconsistent.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    pub(super) fn has_scope(&self, key: &Key) -> bool {
        self.scopes.alone(|| self.scopes.has((key.team, key.tag)))
    }
}
