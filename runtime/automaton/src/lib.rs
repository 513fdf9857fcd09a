//! The epoch automaton: states, calls, and what each call does to each state, as one table.
//! Never allocates, never does I/O, never reads a clock.
//!
//! # Words
//!
//! A [`State`] is one rank's view of one window and one *tracked target*: what the caller has open toward that target
//! ([`AccessState`]), what it has open toward other ranks of the same window ([`Elsewhere`]), and how far its own
//! memory is open ([`ExposureState`]). A [`Call`] is seen from the same rank. [`Inputs`] are the predicates beside the
//! table: argument checks, groups and counts. They are three-valued, and an unknown one gives the union of the outcomes
//! of yes and no.
//!
//! The table serves three kinds of program:
//!
//! - **The runtime** knows its inputs, so that a step has exactly one outcome.
//!
//!   ```
//!   use rma_automaton::{Call, Check, Dialect, ErrorKind, Inputs, Outcome, State, Toward};
//!
//!   let start = Call::Start(Toward::This, Check::Checked);
//!   let Some(Outcome::Next(started)) = State::CREATED.step(Dialect::Seed, start, Inputs::FINE).only() else {
//!       unreachable!("a window that was just created can be started");
//!   };
//!   let again = started.step(Dialect::Seed, start, Inputs::FINE).only();
//!   assert_eq!(again, Some(Outcome::Error(ErrorKind::StartNested)));
//!   ```
//!
//! - **The macro** asks how to emit a local access. In a fence epoch, stores are volatile until the body has put, and
//!   then an error, unless they are known to stay outside the exposed range (input `unordered`):
//!
//!   ```
//!   use rma_automaton::{Assertion, Call, Dialect, ErrorKind, Inputs, LocalAccess, LocalOp};
//!   use rma_automaton::{State, StateSet, Toward, Transfer};
//!
//!   let walk = |states: StateSet, call| states.step(Dialect::Seed, call, Inputs::UNKNOWN).next();
//!   let opened = walk(StateSet::of(State::CREATED), Call::Fence(Assertion::None));
//!   assert_eq!(opened.local_access(LocalOp::Store), Some(LocalAccess::Volatile));
//!
//!   let updating = walk(opened, Call::Transfer(Toward::This, Transfer::Put));
//!   let strict = LocalAccess::VolatileUnless(ErrorKind::StoreDuringUpdate);
//!   assert_eq!(updating.local_access(LocalOp::Store), Some(strict));
//!
//!   let private = walk(StateSet::of(State::CREATED), Call::View(LocalOp::Store));
//!   assert_eq!(private.local_access(LocalOp::Store), Some(LocalAccess::Plain));
//!   ```
//!
//! - **A linter** carries the set of states that the paths to a place allow, and accuses a call only if it errs in
//!   all of them. A window that comes from elsewhere starts as [`StateSet::ALL`].
//!
//!   ```
//!   use rma_automaton::{Assertion, Call, Dialect, ErrorKind, Inputs, State, StateSet, Toward, Transfer, Tri};
//!
//!   // What a linter knows of arguments that it cannot evaluate: they are taken to be right.
//!   let lenient = Inputs { own: Tri::Unknown, unordered: Tri::Unknown, ends: Tri::Unknown, ..Inputs::FINE };
//!   let put = Call::Transfer(Toward::This, Transfer::Put);
//!
//!   let unknown = StateSet::ALL.step(Dialect::Mpi, put, lenient);
//!   assert!(unknown.may_err() && !unknown.must_err());
//!
//!   // IF (flag) CALL MPI_WIN_FENCE(MPI_MODE_NOSUCCEED, win, ierr): both branches meet, neither has an epoch open.
//!   let branch = State::CREATED.step(Dialect::Mpi, Call::Fence(Assertion::NoSucceed), lenient).next();
//!   let wrong = branch.union(StateSet::of(State::CREATED)).step(Dialect::Mpi, put, lenient);
//!   assert!(wrong.must_err() && wrong.errors().contains(ErrorKind::TransferOutsideEpoch));
//!   ```
//!
//! For a program with several targets of one window, keep one state for each target and step all of them with each
//! call, which is `Toward::This` for the states of the targets it names and `Toward::Another` for the rest (or keep
//! one state for all targets and call everything `This`, if the program treats its targets alike). Local accesses
//! under locks are judged by the state whose target is the caller itself, since its own locks count there. A part of
//! the window that is never exposed has a state of its own.
//!
//! # Map
//!
//! `state` (what can be open), `call` (what can be called, and what is known about it), `outcome` (what can result),
//! `table` (the rules), `step` (reads the table), `error` (the list of kinds).
//!
//! # Order of checks
//!
//! A call earns the first error of this list:
//!
//! 1. the window is freed or poisoned;
//! 2. arguments: `rank`, then `bounds`;
//! 3. the state: first what the caller has open as origin (access and elsewhere), then its exposure;
//! 4. predicates: `vouched`, `in_group`, `permitted`, `count`, `unordered`.
//!
//! A refused call changes nothing.
//!
//! # Where the requirements are silent
//!
//! - A plain barrier does nothing in any state, a freed or poisoned window's included. FINALIZE of a freed window does
//!   nothing; FREE and FINALIZE take a poisoned window to `Freed`; every other call on a poisoned window is `Poisoned`,
//!   except POISON itself, which does nothing there. A freed window answers every call but these two with
//!   `WindowFreed` (POISON and PEER_UPDATE too).
//! - A fence phase counts as in use from the caller's first transfer in it, toward whatever target. A phase in use is
//!   open at FREE, at FINALIZE and for an asserted NOPRECEDE (`EpochStillOpen`); an unused one is not. Calls that open
//!   another style's epoch in an unused phase end the phase. A window barrier of the communicator on a window that is
//!   not posted does what a fence without assertion does.
//! - An exposed or locked-by-its-owner window gives no guard: `EpochStillOpen`, except that a window posted for gets
//!   gives one for reading. A fence phase counts as exposed here whether it is used or not; LOCK_ALL counts as a lock by
//!   the owner. Readers' guards are counted (`ends`), the guard for writing is alone; any other pair of guards is
//!   `EpochStillOpen`. A guard forbids the caller all calls that expose, fence, offer, lock by its owner (LOCK with
//!   `own`, LOCK_ALL), free or finalize the window: `EpochStillOpen`; a WAIT or TEST under a guard too, if the window is
//!   posted. Where a guard and an exposure both stand against a call, the guard's error is the one. Dropping a guard
//!   that does not exist is `NotLocked`. A store under a guard for reading is `ConflictingAccess`. START, COMPLETE, LOCK,
//!   UNLOCK and transfers toward peers do not mind the caller's guards.
//! - LOCK_ALL is not nested in, and nests, nothing: `LockHeld`. FLUSH without a lock toward the target is `NotLocked`;
//!   so is UNLOCK inside LOCK_ALL, and UNLOCK_ALL without it. An inner exclusive lock in a shared nest makes the nest
//!   exclusive, with its own way of checking, until the nest ends; no other inner lock changes it. An inner lock names
//!   the same window as the outer one, so `own` is not read for it: the side that is held counts.
//! - A call imports at most where it leads to a legal outcome, and `Stale` becomes `Private` exactly where the table of
//!   `visibility.md` section 2 has an import, LOCK_ALL and SYNC counting as imports, guards and offers too.
//! - Calls toward other targets: whether a given one of them is started or locked is not tracked, so START, LOCK,
//!   COMPLETE, UNLOCK, FLUSH and transfers toward another are legal where the calls' style is open there (START and
//!   LOCK also where nothing is). COMPLETE and UNLOCK toward another leave `Elsewhere` as it is unless `ends` is yes.
//!   COMPLETE toward both ends everything that is started, and is refused only if nothing is. In a fence phase there
//!   is one style for all targets; LOCK_ALL covers the other targets.
//! - `vouched` and `in_group` are read wherever a NOCHECK epoch toward the named target is open or opened: by START,
//!   transfer and COMPLETE (both), by LOCK, transfer, FLUSH and UNLOCK (`vouched` only). LOCK and LOCK_ALL read
//!   `vouched` also without NOCHECK. Toward other targets only the opening calls read them, with the same rule.
//!   A failed promise of a START epoch is `NotPosted`, of a lock epoch `NoCheckConflict`. `permitted` is read by
//!   transfers toward the tracked target in START epochs.
//! - An offer needs memory with no epoch, guard or used phase on it; an unfinished START or LOCK toward peers counts as
//!   one (`MixedSync`; a guard: `EpochStillOpen`). Offers of one memory are counted. While it is offered, START, LOCK,
//!   LOCK_ALL, POST, fences and the communicator's window barrier are `MixedSync`, guards are `LocalAccessDuringOffer`,
//!   and FREE and FINALIZE are `EpochStillOpen`. Finishing no offer is `NotOffered`.
//! - SYNC is legal on every window that is neither freed nor poisoned. PEER_UPDATE matters to a window that no epoch of
//!   its owner will import: `Private` becomes `Stale`, unless the caller's own checked exclusive lock keeps peers out.
//! - UNLOCK of the last level of an own lock moves nothing that the states record; neither does dropping a guard.
//! - A TEST that does not end changes nothing, but its other checks are those of WAIT.
#![no_std]
#![forbid(unsafe_code)]

mod call;
mod error;
mod outcome;
mod state;
mod step;
mod table;

pub use call::{Assertion, Call, Dialect, Input, Inputs, LocalOp, Permit, Toward, Transfer, Tri, WaitFor};
pub use error::ErrorKind;
pub use outcome::{ErrorSet, LocalAccess, Outcome, Outcomes};
pub use state::{AccessState, Check, Elsewhere, ExposureState, Held, LockKind, Side, State, StateSet};
