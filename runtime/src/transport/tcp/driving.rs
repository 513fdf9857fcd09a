//! Who looks at the sockets of the server half. Whoever waits for something drives: it looks at them between its looks at what it
//! waits for, so that a frame is done without a change of threads. Where nobody waits, the agent does. Never waits itself, but
//! for the agent's sleep.
//!
//! A driver wakes the agent if that sleeps on the sockets, as every frame would wake it otherwise, and as the time for which it
//! sleeps says nothing about what the driver does. The agent then stays away as long as the last turn of a driver is a moment
//! ago only, since ranks that communicate wait again soon; so a request that comes in that moment is answered late by as much. A
//! driver that goes to sleep calls the agent back at once, and one that is held up in its own look misses its next turn.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::agent::Mode;
use super::door::Door;
use super::frame::Decoder;
use super::server::{BELL, OnLost, Server};
use super::socket::Poller;
use super::wire::Wire;
use crate::sync::event::Event;
use crate::sys::time::monotonic_ns;

/// How long the agent stays away after a driver's turn.
const LINGER: Duration = Duration::from_micros(250);
/// How long a driver goes on after the last frame before its caller sleeps, and in all.
const PATIENCE: Duration = Duration::from_micros(100);
const PATIENCE_MAX: Duration = Duration::from_millis(1);
/// Looks between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 4;
/// Looks before the first at which the core is given away, at most and at least: some microseconds, which a round trip takes.
const SPINS_MAX: u32 = 32;
const SPINS_MIN: u32 = 1;
/// Looks of a driver at its own condition between two looks at the sockets, where ranks that share memory can fulfil it.
const LOOKS_MIXED: u32 = 16;
/// The same for a driver whose condition is a reply.
const LOOKS_FOR_REPLY: u32 = 3;
/// With more ranks per core than this nobody looks longer than once.
const DRIVING_RANKS_PER_CORE: usize = 8;
/// The longest sleep on the sockets of a rank without an agent, which can be told by other means that it need not wait any more.
const POLLING_SLICE: Duration = Duration::from_millis(1);
/// Turns in a row for what has been asked of a rank without an agent, before the rank goes on.
const TURNS_AT_ONCE: u32 = 16;
/// How soon a driver does what only time asks for.
const CHORES_EVERY: Duration = Duration::from_millis(1);

/// How eager those are that look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eagerness {
    /// Every rank has a core.
    Spinning,
    /// There are more ranks than cores: who looks gives its core away after each look.
    Yielding,
    /// There are many more.
    Once,
}

impl Eagerness {
    fn of(ranks: usize) -> Eagerness {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        match ranks {
            few if few <= cores => Eagerness::Spinning,
            some if some <= cores * DRIVING_RANKS_PER_CORE => Eagerness::Yielding,
            _ => Eagerness::Once,
        }
    }
}

/// See the module.
pub(crate) struct Driving {
    wire: Weak<Wire>,
    poller: Arc<Poller>,
    mode: Mode,
    server: Mutex<Server>,
    /// Something was done here that requests may wait for.
    rung: AtomicBool,
    /// When a driver has had its last turn; 0 once it sleeps.
    driven_ns: AtomicU64,
    /// Threads whose waits have begun to sleep.
    sleepers: AtomicU32,
    chores_ns: AtomicU64,
    /// The agent sleeps on the sockets, or is about to.
    is_watched: AtomicBool,
    /// Where the agent sleeps while somebody drives.
    parked: Event,
    eagerness: Eagerness,
    /// How many looks are made before the core is given away. Spinning pays only while the other side has another core: the
    /// number doubles when spinning was enough, and halves when it was not.
    spins: AtomicU32,
    looks: u32,
}

impl Driving {
    pub(super) fn new(
        wire: &Arc<Wire>,
        door: Door,
        rendezvous: Decoder,
        on_lost: OnLost,
        mode: Mode,
    ) -> io::Result<Driving> {
        let poller = Arc::new(Poller::new()?);
        Ok(Driving {
            wire: Arc::downgrade(wire),
            server: Mutex::new(Server::new(wire, &poller, door, rendezvous, on_lost)?),
            poller,
            mode,
            rung: AtomicBool::new(false),
            driven_ns: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            chores_ns: AtomicU64::new(0),
            is_watched: AtomicBool::new(false),
            parked: Event::new(),
            eagerness: Eagerness::of(wire.size()),
            spins: AtomicU32::new(SPINS_MAX),
            looks: if wire.has_mapped_peers() { LOOKS_MIXED } else { 1 },
        })
    }

    fn server(&self) -> Option<MutexGuard<'_, Server>> {
        match self.server.try_lock() {
            Ok(server) => Some(server),
            // What a panic has left behind is a frame that was not done.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Looks at the sockets once. Whether there was something to do.
    fn turn(&self, wire: &Wire, all: bool) -> bool {
        self.turn_at(monotonic_ns(), wire, all)
    }

    /// The turn of a driver, which keeps the agent away.
    fn drive_once(&self, wire: &Wire) -> bool {
        let now = monotonic_ns();
        self.driven_ns.store(now, Ordering::Relaxed); // Relaxed: what the turn does is ordered by the server's lock.
        let did = self.turn_at(now, wire, false);
        // Either this turn came before the agent's chores, which have seen all that it has left to do, or, by the server's lock,
        // this sees that the agent sleeps for a time that it has worked out too early.
        if self.is_watched.load(Ordering::Relaxed) && self.is_watched.swap(false, Ordering::Relaxed) {
            wire.ring_bell();
        }
        did
    }

    fn turn_at(&self, now: u64, wire: &Wire, all: bool) -> bool {
        let Some(mut server) = self.server() else { return false };
        if self.chores_ns.load(Ordering::Relaxed) <= now {
            self.chores_ns.store(now + CHORES_EVERY.as_nanos() as u64, Ordering::Relaxed);
            server.chores(wire, &self.rung);
        }
        // What is wrong with the poller the agent finds, too.
        let did = server.turn(wire, &self.rung, all).unwrap_or(false);
        drop(server);
        self.answer_rings(wire);
        did
    }

    /// Lets requests that wait be looked at again now, by the caller or by whoever has the sockets.
    pub(super) fn attend(&self, wire: &Wire) {
        self.rung.store(true, Ordering::Release); // Release: pairs with the Acquire in `look_again_if`.
        self.answer_rings(wire);
    }

    fn answer_rings(&self, wire: &Wire) {
        loop {
            // SeqCst: either this sees that somebody has rung, or who has rung sees that the server is free.
            fence(Ordering::SeqCst);
            if !self.rung.load(Ordering::Relaxed) {
                return;
            }
            // Whoever has it looks when it gives it back.
            let Some(mut server) = self.server() else { return };
            server.look_again_if(wire, &self.rung);
        }
    }

    /// Lets requests that wait be looked at again soon.
    pub(super) fn ring(&self, wire: &Wire) {
        self.rung.store(true, Ordering::Release); // Release: as in `attend`.
        fence(Ordering::SeqCst); // SeqCst: pairs with the fence in `watch`.
        if self.is_watched.load(Ordering::Relaxed) {
            wire.ring_bell();
        }
    }

    /// Looks at the sockets until `ready` gives a value or patience is at its end.
    pub(crate) fn drive<R>(&self, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        self.drive_between(self.looks, ready)
    }

    /// As `drive`, for a caller whose own looks are at a socket.
    pub(super) fn drive_for_reply<R>(&self, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        match self.mode {
            Mode::PollingInWaits => ready(),
            Mode::Thread | Mode::Timer(_) | Mode::Polling => self.drive_between(LOOKS_FOR_REPLY, ready),
        }
    }

    /// Whether a thread serves others while the rank computes.
    pub(crate) fn has_agent(&self) -> bool {
        self.mode.has_thread()
    }

    /// Does what others have asked for, where no agent does: at the beginning of a call.
    pub(crate) fn serve(&self) {
        if self.mode == Mode::Polling {
            self.serve_always();
        }
    }

    /// As `serve`, and says how long the caller of a wait may sleep that can sleep for so long.
    pub(super) fn serve_before_sleep(&self, slice: Duration) -> Duration {
        self.serve();
        match self.has_agent() {
            true => slice,
            false => slice.min(POLLING_SLICE),
        }
    }

    /// As `serve`, with the fault too: for what has to be served before ranks can reach each other.
    pub(super) fn serve_always(&self) {
        let Some(wire) = self.wire.upgrade().filter(|_| !self.has_agent()) else { return };
        for _ in 0..TURNS_AT_ONCE {
            if !self.turn(&wire, true) {
                break;
            }
        }
    }

    /// Sleeps on the sockets, where no agent does, at most for so long, and serves what comes. May return early.
    pub(crate) fn sleep(&self, slice: Duration) {
        // An error is met by the turn.
        let _ = self.poller.sleep(Some(slice.min(POLLING_SLICE)));
        self.serve_always();
    }

    fn drive_between<R>(&self, looks: u32, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
        let Some(wire) = self.wire.upgrade().filter(|_| self.eagerness != Eagerness::Once) else {
            return ready();
        };
        let mut pace = Pace::new(self);
        loop {
            for _ in 0..looks {
                if let Some(value) = ready() {
                    pace.was_enough();
                    return Some(value);
                }
                std::hint::spin_loop();
            }
            if !pace.goes_on(self.drive_once(&wire)) {
                break;
            }
        }
        // Other threads may go on driving: the next turn sends the agent away again.
        self.driven_ns.store(0, Ordering::Relaxed);
        self.parked.notify();
        None
    }

    /// Counts a thread whose wait begins to sleep (1) or has ended (-1).
    pub(crate) fn count_sleeper(&self, change: i32) {
        self.sleepers.fetch_add(change.cast_unsigned(), Ordering::Relaxed); // Relaxed: a hint for the agent.
    }

    /// What the agent does that looks at ticks only.
    pub(super) fn attend_at_ticks(&self, wire: &Wire, tick: Duration) {
        loop {
            thread::sleep(tick);
            while self.turn(wire, true) {}
        }
    }

    /// What the agent does.
    pub(super) fn attend_always(&self, wire: &Wire) -> io::Result<()> {
        loop {
            self.stay_away();
            self.watch(wire)?;
            let mut pace = Pace::new(self);
            let mut all = true;
            while self.lingers().is_none() {
                let did = self.turn(wire, std::mem::take(&mut all));
                // A rank that sleeps leaves its core to its agent, for more frames that may come at once.
                let may_look =
                    self.eagerness == Eagerness::Spinning && self.sleepers.load(Ordering::Relaxed) != 0;
                if !may_look || !pace.goes_on(did) {
                    break;
                }
            }
        }
    }

    /// Sleeps until something has come and nobody else looks at it.
    fn watch(&self, wire: &Wire) -> io::Result<()> {
        self.is_watched.store(true, Ordering::Relaxed);
        let timeout = match self.server() {
            Some(mut server) => server.chores(wire, &self.rung),
            None => Some(Duration::ZERO),
        };
        fence(Ordering::SeqCst); // SeqCst: pairs with the one in `ring`.
        let is_needed = self.lingers().is_none() && !self.rung.load(Ordering::Relaxed);
        if is_needed && self.poller.wait(timeout)?.contains(&BELL) {
            // Nobody else does: a driver that did would send back to sleep whom it has woken.
            wire.silence_bell();
        }
        self.is_watched.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Sleeps as long as somebody drives.
    fn stay_away(&self) {
        while self.lingers().is_some() {
            let ticket = self.parked.announce();
            if let Some(time) = self.lingers() {
                self.parked.sleep(ticket, Some(time));
            }
        }
    }

    /// How long the agent is not needed.
    fn lingers(&self) -> Option<Duration> {
        let driven = self.driven_ns.load(Ordering::Relaxed);
        let since = Duration::from_nanos(monotonic_ns().saturating_sub(driven));
        LINGER.checked_sub(since).filter(|left| !left.is_zero())
    }
}

/// How often a thread looks before it gives its core away, and before it sleeps.
struct Pace<'a> {
    driving: &'a Driving,
    begun: Instant,
    /// The last time that there was something to do.
    last: Instant,
    spins: u32,
    /// Looks since then.
    looks: u32,
}

impl<'a> Pace<'a> {
    fn new(driving: &'a Driving) -> Pace<'a> {
        let now = Instant::now();
        let spins = match driving.eagerness {
            // Relaxed, here and below: a guess that no other word depends on.
            Eagerness::Spinning => driving.spins.load(Ordering::Relaxed),
            Eagerness::Yielding | Eagerness::Once => 0,
        };
        Pace { driving, begun: now, last: now, spins, looks: 0 }
    }

    /// Notes a look that found something, or nothing; whether there is to be another one.
    fn goes_on(&mut self, did: bool) -> bool {
        if did {
            self.was_enough();
            self.last = Instant::now();
            self.looks = 0;
            return self.last - self.begun < PATIENCE_MAX;
        }
        self.looks += 1;
        if self.looks == self.spins && SPINS_MIN < self.spins {
            self.spins /= 2;
            self.driving.spins.store(self.spins, Ordering::Relaxed);
        }
        if self.spins < self.looks {
            thread::yield_now();
        }
        if !self.looks.is_multiple_of(LOOKS_PER_CLOCK) {
            return true;
        }
        let now = Instant::now();
        let patience = match self.driving.eagerness {
            Eagerness::Spinning => PATIENCE,
            // Others have to have their turns before it is clear that nothing comes.
            Eagerness::Yielding | Eagerness::Once => PATIENCE_MAX,
        };
        now - self.last < patience && now - self.begun < PATIENCE_MAX
    }

    /// Notes that what was waited for has come.
    fn was_enough(&mut self) {
        if self.looks < self.spins && self.spins < SPINS_MAX {
            self.spins *= 2;
            self.driving.spins.store(self.spins, Ordering::Relaxed);
        }
    }
}
