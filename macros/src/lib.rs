//! `#[rma_epoch]` and `#[rma_test]`. Never reads files or the environment, never knows a runtime type.
//!
//! # How it is built
//!
//! | file | what it does |
//! |---|---|
//! | `parse.rs` | attribute and signature → model |
//! | `body.rs` | body → model; cuts out everything that reaches a window |
//! | `model.rs` | the epochs, the accesses and their order, as plain data with spans |
//! | `check.rs` | legality, against the epoch automaton that the runtime asks too |
//! | `expand.rs` | model → code; the only file that writes `::rma::private` paths |
//! | `messages.rs` | the table of messages: code, requirement, text, label, help |
//! | `engine.rs` | the way through them; on an error all messages and the original item come out |
//! | `test_case.rs` | `#[rma_test]` |
//!
//! Macros see names, not types. So the checker reports early and in the words of an epoch what can be seen in the
//! text, and everything else is held by types: inside the body a window's name is a handle that has only the legal
//! calls, a get yields a `Pending` value that only the closed epoch opens, and a buffer that is lent to a transfer
//! stays borrowed until then.
#![forbid(unsafe_code)]

mod body;
mod check;
mod element;
mod engine;
mod expand;
mod messages;
mod model;
mod parse;
mod test_case;

use proc_macro::TokenStream;

/// Makes the body of a function an epoch: a stretch of the program in which it may reach into other ranks' windows.
///
/// Inside, ordinary Rust says what moves. `u.at(rank)[i] = x` puts, `let x = u.at(rank)[i]` gets, and the function
/// returns when everything has moved. What would race does not compile.
///
/// # A ring
///
/// Four ranks stand in a ring. Each has a window of two elements, its own value and a copy of its left neighbour's.
///
/// ```
/// use rma::{Rank, Team, Window, rma_epoch};
///
/// /// Everybody puts its own value into the right neighbour's window.
/// #[rma_epoch(fence(u))]
/// fn pass_on(u: &mut Window<u64>, right: Rank) -> rma::Result<()> {
///     u.at(right)[1] = u[0];
///     Ok(())
/// }
///
/// /// The window as a slice: nobody else can reach it meanwhile.
/// #[rma_epoch(local(u))]
/// fn set(u: &mut Window<u64>, value: u64) -> rma::Result<()> {
///     u[0] = value;
///     Ok(())
/// }
///
/// fn ring(team: &Team) -> rma::Result<u64> {
///     let (me, n) = (team.rank().0, team.size());
///     let mut u = Window::<u64>::allocate(team, 2)?;
///     set(&mut u, u64::from(me) * 10)?;
///     pass_on(&mut u, Rank((me + 1) % n))?;
///     u.load(1)
/// }
///
/// let seen: rma::Result<Vec<u64>> = rma::spawn(4, ring)?.into_iter().collect();
/// assert_eq!(seen?, [30, 0, 10, 20]);
/// # Ok::<(), rma::Error>(())
/// ```
///
/// Three rules are enough to start:
///
/// 1. An annotated function returns a [`Result`], and its body ends in one: `Ok(())`, or `Ok(x)` where `x` is the value
///    of a get.
/// 2. `u.at(rank)[…]` is another rank's memory, `u[…]` one's own.
/// 3. One's own memory is filled in a `local` epoch before, and read after the epoch in which others write to it.
///
/// # Places and operators
///
/// | written | means |
/// |---|---|
/// | `u.at(r)[i] = x;` | put of one element |
/// | `u.at(r)[a..b].copy_from_slice(&buffer);` | put of a range; the buffer is lent until the epoch ends |
/// | `u.at(r)[a..b].copy_from_slice(vector);` | put of a range; the vector or array is handed over |
/// | `u.at(r)[i] = v[j];`, `u.at(r)[a..b].copy_from_slice(&v[c..d]);` | put out of one's own window, this one or another |
/// | `let x = u.at(r)[i];` | get of one element, as a `Pending` value |
/// | `let row = u.at(r)[a..b].to_vec();` | get of a range, as a pending vector |
/// | `buffer.copy_from_slice(&u.at(r)[a..b]);` | get into a buffer, which is lent until the epoch ends |
/// | `v[j] = u.at(r)[i];`, `v[c..d].copy_from_slice(&u.at(r)[a..b]);` | get into one's own window, this one or another |
/// | `u.at(r)[i] += x;`, also `*=`, `&=`, `\|=`, `^=` | accumulate, atomic per element |
/// | `u.at(r)[i].min(x);`, `u.at(r)[i].max(x);` | accumulate of the lesser, the greater |
/// | `u.at(r)[a..b] += &buffer;` and kin | accumulate of a range |
/// | `u.at(r)[i].fetch_add(x)`, also `fetch_mul`, `fetch_min`, `fetch_max`, `fetch_and`, `fetch_or`, `fetch_xor` | combine and fetch the old value, pending |
/// | `u.at(r)[i].swap(x)`, `u.at(r)[i].compare_swap(expected, new)` | exchange and fetch the old value, pending |
/// | `u[i]`, `u[i] = x`, `u[i] += x` | one's own memory |
/// | `buffer.copy_from_slice(&u[a..b]);`, `u[a..b].copy_from_slice(&buffer);` | a copy from or to one's own memory |
/// | `u.fence()?;` | in a `fence` epoch: ends a phase and opens the next |
///
/// The handle also answers `u.len()`, `u.len_at(r)?`, `u.rank()` and `u.size()`. A range needs its end: `a..u.len()`.
///
/// A buffer that is lent must outlive the epoch, so it comes from outside the body; what the body makes itself it hands
/// over by value.
///
/// A rank is a `Rank` or a bare number. Transfers of one epoch have no order among themselves: do not put to and get
/// from one place in one epoch.
///
/// # When data arrive
///
/// With the end of the epoch. A get therefore yields `Pending<T>`, which has no operators; return it, alone or in a
/// tuple, `Option` or `Vec`, and the function returns what it has become. A function of type `rma::Result<u64>` may end in
/// `Ok(w.at(r)[0].fetch_add(1))`. Where another way out has a plain value, make it pending: `return Ok(7.into())`.
///
/// # Kinds
///
/// | attribute | the epoch | one's own window meanwhile |
/// |---|---|---|
/// | `fence(u)` | everybody calls the function; everybody may reach everybody | loads, old or new where others put; stores only if the phase has no put or accumulate |
/// | `lock(u, rank = r, exclusive)` | `r`'s window, alone | loads and stores |
/// | `lock(u, rank = r, shared)` | `r`'s window, beside other shared holders | loads and stores |
/// | `access(u, targets = [a, b])` | the targets' windows, which they expose meanwhile | loads and stores, unless it is exposed too |
/// | `exposure(u, origins = [a, b])` | none; the origins may come, and the function returns when they have completed | loads |
/// | `exposure(u, origins = any, count = n)` | none; any may come, and the function returns when `n` have completed | loads |
/// | `exchange(u, targets = […], origins = […])` | `exposure` and `access` at once | loads |
/// | `local(u)` | none | a slice, `&mut [T]` |
/// | `local(u, read)` | none | a slice, `&[T]` |
///
/// A load of a place into which others put in the same phase may see the old value or the new one. After the closing fence
/// the value is sure: in the next phase, or after the function. For an exposure, that is after the function. The handle's
/// own stores, `u.store(i, x)?` and `u.write(i, &buffer)?`, are judged as `u[i] = x` is.
///
/// `fence`, `exposure`, `exchange` and `local` take the window by `&mut`, the others by `&` or `&mut`. `targets` and
/// `origins` take an array of ranks or anything that lends a slice of them. A set names each rank once.
///
/// `lock`, `access` and `exchange` take `info`: `strong` (the default) waits until the target is open, `weak` may wait
/// later, and `nocheck` does not wait, since the program knows that the target is open. That knowledge must be written
/// down: `info = nocheck, because = "the barrier above follows every post"`. It is shown when it was wrong.
///
/// A lock needs nothing from the rank that it locks:
///
/// ```
/// use rma::{Rank, Team, Window, rma_epoch};
///
/// #[rma_epoch(lock(counter, rank = owner, exclusive))]
/// fn take_ticket(counter: &Window<u64>, owner: Rank) -> rma::Result<u64> {
///     Ok(counter.at(owner)[0].fetch_add(1))
/// }
///
/// #[rma_epoch(lock(bins, rank = 0, shared))]
/// fn count(bins: &Window<u64>, samples: &[usize]) -> rma::Result<()> {
///     for &sample in samples {
///         bins.at(0)[sample] += 1;
///     }
///     Ok(())
/// }
///
/// #[rma_epoch(local(u, read))]
/// fn total(u: &Window<u64>) -> rma::Result<u64> {
///     Ok(u.iter().sum())
/// }
///
/// let ranks = rma::spawn(3, |team: &Team| {
///     let window = Window::<u64>::allocate(team, 4)?;
///     assert!(take_ticket(&window, Rank(0))? < 3);
///     count(&window, &[1, 2, 3, 3])?;
///     team.barrier()?;
///     if team.rank() == Rank(0) {
///         assert_eq!(total(&window)?, 3 + 3 * 4);
///     }
///     Ok(())
/// })?;
/// ranks.into_iter().collect::<rma::Result<()>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
///
/// Post, start, complete and wait involve only neighbours:
///
/// ```
/// use rma::{Rank, Team, Window, rma_epoch};
///
/// #[rma_epoch(exchange(u, targets = [left, right], origins = [left, right]))]
/// fn halos(u: &mut Window<f64>, left: Rank, right: Rank, n: usize) -> rma::Result<()> {
///     u.at(left)[n + 1] = u[1];
///     u.at(right)[0] = u[n];
///     Ok(())
/// }
///
/// #[rma_epoch(access(u, targets = [owner]))]
/// fn report(u: &Window<f64>, owner: Rank, at: usize, x: f64) -> rma::Result<()> {
///     u.at(owner)[at] = x;
///     Ok(())
/// }
///
/// #[rma_epoch(exposure(u, origins = any, count = n))]
/// fn collect(u: &mut Window<f64>, n: usize) -> rma::Result<()> {
///     Ok(())
/// }
///
/// let ranks = rma::spawn(3, |team: &Team| {
///     let (me, n) = (team.rank().0, team.size());
///     let mut u = Window::<f64>::allocate(team, 6)?;
///     halos(&mut u, Rank((me + n - 1) % n), Rank((me + 1) % n), 4)?;
///     match me {
///         0 => collect(&mut u, n as usize - 1)?,
///         _ => report(&u, Rank(0), me as usize, 1.5)?,
///     }
///     if me == 0 {
///         assert_eq!((u.load(1)?, u.load(2)?), (1.5, 1.5));
///     }
///     Ok(())
/// })?;
/// ranks.into_iter().collect::<rma::Result<()>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
///
/// # Events without a window
///
/// The kind `offer` belongs to Put/Get/Offer (`rma::pgo`): its body issues puts and gets under a tag, on a team, and ends in an
/// offer that waits for them and serves so many events of others.
///
/// | written | means |
/// |---|---|
/// | `offer(team, tag = t, count = n, over = buffer)` | the attribute; `events = puts` (the default), `gets` or `both`; without `over` nothing is offered, and `count = 0` |
/// | `team.at(r)[a..b].copy_from_slice(&buffer);` | put into what `r` offers; the buffer is lent until the offer has completed |
/// | `buffer.copy_from_slice(&team.at(r)[a..b]);` | get from what `r` offers |
/// | `team.combine(r)[a..b]…` | the event goes on with the next one to `r` |
///
/// ```
/// use rma::{Rank, Team, rma_epoch};
///
/// #[rma_epoch(offer(team, tag = 3, count = 2, over = halo))]
/// fn halos(team: &Team, halo: &mut [f64], rim: &[f64], left: Rank, right: Rank) -> rma::Result<()> {
///     team.at(left)[1..2].copy_from_slice(rim);
///     team.at(right)[0..1].copy_from_slice(rim);
///     Ok(())
/// }
///
/// let sums: rma::Result<Vec<f64>> = rma::spawn(3, |team| {
///     let (me, n) = (team.rank().0, team.size());
///     let mut halo = [0.0; 2];
///     halos(team, &mut halo, &[f64::from(me)], Rank((me + n - 1) % n), Rank((me + 1) % n))?;
///     Ok(halo[0] + halo[1])
/// })?.into_iter().collect();
/// assert_eq!(sums?, [3.0, 2.0, 1.0]);
/// # Ok::<(), rma::Error>(())
/// ```
///
/// # Several windows, and windows in fields
///
/// `fence(u, v)` opens both windows. Epochs of different kinds stand side by side, the first outermost:
/// `#[rma_epoch(local(old), fence(new))]`. A window that is no parameter gets a name: `fence(u = self.field)`.
///
/// # Ways out
///
/// However control leaves the body (its end, `return`, `?`, a panic), the epoch is closed: nobody waits for a fence that
/// never comes or a lock that is never given back. An error that leaves the body is returned after that, as whatever
/// error type the function has, if `rma::Error` converts into it.
///
/// # What is refused
///
/// The annotation says each of these with what to write instead:
///
/// - a get that is used where it stands, as in `u.at(r)[i] + 1.0`, and a lent buffer that is used under its own name before
///   the epoch ends: the data are not there yet;
/// - a store into one's own window while others may write to it, and a reference into it: use `local`;
/// - a transfer to another parameter's window than the attribute opens, to a rank that it does not open where all of them
///   are written as numbers, or in an epoch that opens none;
/// - a second epoch on the same window, `await`, and transfers inside closures: nothing could close the epoch;
/// - `nocheck` without its reason.
///
/// Two mistakes are seen by types alone, so the words are those of rustc:
///
/// - a get's value that has a name and is used too early has the wrong type: E0369, cannot add `{float}` to
///   `rma::Pending<'_, f64>`. Return the value and use what the function returns;
/// - a buffer that the body makes and lends dies too early: E0597, `buffer` does not live long enough. Get a vector by
///   `to_vec()`, hand over by value what is put, or take the buffer as a parameter.
///
/// What only the running program knows is an `rma::Error`: a rank, worked out by the program, that the epoch has not opened
/// (`TransferOutsideEpoch`), a place outside the window (`OutOfBounds`). An index into one's own memory that is out of
/// range panics, as with a slice.
///
/// # Registers
///
/// A compiler may keep memory in registers while another rank changes it. In C and Rust it cannot: accesses in an epoch
/// are volatile wherever another rank may touch the bytes, and a `local` epoch is a borrow, between two compiler and
/// memory barriers. Memory that Fortran code also reaches must be COMMON or VOLATILE there, or pass through a dummy
/// call; for plain Rust memory that something else changes there are `rma::touch` and `rma::touch_mut`. The advice has a
/// page of its own, `docs/registers.md`.
#[proc_macro_attribute]
pub fn rma_epoch(attribute: TokenStream, item: TokenStream) -> TokenStream {
    engine::epoch(attribute.into(), item.into()).into()
}

/// Makes a function a test that runs as a job: `#[rma_test(ranks = 4, transports = [local, shm])]`.
///
/// The function takes the team and returns a [`Result`]. It becomes a module of its name with one test per transport:
/// `local` runs the ranks as threads, `shm` as processes, `tcp` as processes that are connected. Without `transports` it runs as threads. A transport that does
/// not exist yet is skipped, and the test says so.
///
/// ```
/// use rma::{Team, rma_test};
///
/// #[rma_test(ranks = 3, transports = [local, shm, tcp])]
/// fn everybody_counts(team: &Team) -> rma::Result<()> {
///     let mut sum = [1u64];
///     team.allreduce(&mut sum, rma::Sum)?;
///     assert_eq!(sum, [3]);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn rma_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    engine::test(attribute.into(), item.into()).into()
}

/// Makes a structure an element of windows: `#[derive(Clone, Copy, Element)]` with `#[repr(C)]`.
///
/// Every field must be an element itself: a number, `rma::Bool`, an array of elements, a structure that derives this.
///
/// ```
/// use rma::{Element, Rank, Window};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     charge: i32,
///     alive: rma::Bool,
///     unused: [u8; 3],
/// }
///
/// rma::spawn(2, |team| {
///     let (me, other) = (team.rank(), Rank(1 - team.rank().0));
///     let mut sent = Window::<Particle>::allocate(team, 4)?;
///     let mine = Particle { position: [1.0; 3], charge: me.0 as i32, alive: true.into(), unused: [0; 3] };
///     sent.fence(|epoch| epoch.put(other, 2, mine))?;
///     assert_eq!(sent.load(2)?, Particle { charge: other.0 as i32, ..mine });
///     Ok(())
/// })?.into_iter().collect::<rma::Result<()>>()?;
/// # Ok::<(), rma::Error>(())
/// ```
///
/// A structure with padding does not compile, since padding would carry whatever was in memory to other ranks; name it as a
/// field, as above. `#[element(padded)]` allows it where the layout is given: transfers then move the fields and leave the
/// padding of their destination alone.
#[proc_macro_derive(Element, attributes(element))]
pub fn element(item: TokenStream) -> TokenStream {
    engine::derive_element(item.into()).into()
}
