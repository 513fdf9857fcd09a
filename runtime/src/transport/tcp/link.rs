//! A link: the connection that this rank has opened to another one. Whoever calls sends on it and reads the replies itself.
//! Never holds a lock while it sleeps.
//!
//! Frames are staged and sent together: when a request wants its reply, when the staged ones are many, and when the caller
//! says so. Frames arrive in the order in which they were staged. While a caller waits for room to send, it goes on
//! reading, so that two sides that have much to say to each other can't block each other.
//!
//! Several threads of a rank may wait on one link. One of them reads at a time, for all; the others sleep until it has found
//! something or stops reading. Nobody else reads meanwhile: who sleeps on the connection would not learn of a reply that another
//! one has taken from it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::driving::Driving;
use super::frame::{DATA_MAX_BYTES, Decoder, Kind, Writer, seal};
use super::handshake::{ANSWER_BYTES, Caller, Party, Secret};
use super::socket::{self, Moved, Woken};
use super::tally::Tally;
use crate::error::{Error, Result};

/// Staged bytes from which on they are sent without being asked for.
pub(crate) const PUSH_BYTES: usize = 64 << 10;
/// Staged bytes from which on a caller waits until the other side has taken some.
pub(crate) const STAGED_MAX_BYTES: usize = 256 << 20;
/// How long a transfer that need not wait gives the connection to take more before it stages the rest.
const STREAMING_PATIENCE: Duration = Duration::from_millis(20);

/// What is left of the patience of one transfer.
pub(crate) struct Streaming(Duration);

impl Streaming {
    pub(crate) fn new() -> Streaming {
        Streaming(STREAMING_PATIENCE)
    }
}
/// What the system gets to say that nobody listens at an address, or that somebody does.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest sleep of a thread that another one reads for.
const FOLLOWER_SLICE: Duration = Duration::from_millis(5);

/// Asked before every sleep: how long to sleep at most, or the error that ends the wait.
pub(crate) type Pause<'a> = &'a mut dyn FnMut() -> Result<Duration>;

/// Why a call on a link failed.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The connection is gone, or could not be made; what is known about it.
    Gone(&'static str),
    /// The caller's pause ended the wait.
    Ended(Error),
}

impl From<Error> for Cut {
    fn from(error: Error) -> Cut {
        Cut::Ended(error)
    }
}

/// See the module.
pub(crate) struct Link {
    address: SocketAddr,
    tally: Arc<Tally>,
    /// What a thread looks after while it waits for a reply.
    driving: Option<Arc<Driving>>,
    state: Mutex<State>,
    /// A thread reads for all. Changed with the state's lock, and read with that of `incoming`, too.
    reading: AtomicBool,
    /// Told when the state changes, when replies have arrived and when a thread stops reading.
    changed: Condvar,
    staged: Mutex<Staged>,
    incoming: Mutex<Decoder>,
    /// Whether the connection has been opened; it stays so.
    opened: AtomicBool,
    gone: AtomicBool,
    next_request: AtomicU64,
}

#[derive(Default)]
struct State {
    connection: Connection,
    replies: HashMap<u64, Vec<u8>>,
    /// Requests whose callers have gone before the reply.
    unwanted: HashSet<u64>,
}

#[derive(Default)]
enum Connection {
    #[default]
    None,
    /// A thread is about to make it.
    Opening,
    Open(Arc<TcpStream>),
}

#[derive(Default)]
struct Staged {
    bytes: Vec<u8>,
    /// The last frame, while more may be added to it: its mark, and where it begins.
    open: Option<(u128, usize)>,
    /// How much of it has been sent.
    sent: usize,
}

impl Staged {
    fn left(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Gives the connection what it takes.
    fn push(&mut self, stream: &TcpStream, tally: &Tally) -> Moved {
        let mut all = 0;
        while self.sent < self.bytes.len() {
            match socket::write(stream, &self.bytes[self.sent..]) {
                Moved::Bytes(len) => {
                    tally.wrote(len);
                    self.sent += len;
                    all += len;
                }
                Moved::Nothing if all == 0 => return Moved::Nothing,
                Moved::Nothing => return Moved::Bytes(all),
                lost @ (Moved::Closed | Moved::Cut) => return lost,
            }
        }
        self.bytes.clear();
        self.open = None;
        self.sent = 0;
        // What a single large transfer took is given back.
        self.bytes.shrink_to(4 * PUSH_BYTES);
        Moved::Bytes(all)
    }
}

impl Link {
    pub(crate) fn new(address: SocketAddr, tally: Arc<Tally>, driving: Option<Arc<Driving>>) -> Link {
        Link {
            address,
            tally,
            driving,
            state: Mutex::default(),
            reading: AtomicBool::new(false),
            changed: Condvar::new(),
            staged: Mutex::default(),
            incoming: Mutex::new(Decoder::new()),
            opened: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            next_request: AtomicU64::new(1),
        }
    }

    /// Opens the connection, if no thread has yet.
    #[inline]
    pub(crate) fn open(&self, secret: &Secret, from: Party, to: Party, pause: Pause<'_>) -> Result<(), Cut> {
        match self.is_open() {
            true => Ok(()),
            false => self.open_now(secret, from, to, pause),
        }
    }

    #[cold]
    fn open_now(&self, secret: &Secret, from: Party, to: Party, pause: Pause<'_>) -> Result<(), Cut> {
        let mut state = self.state();
        loop {
            match state.connection {
                Connection::Open(_) => return Ok(()),
                Connection::Opening => {
                    drop(state);
                    let slice = self.rest(pause)?.min(FOLLOWER_SLICE);
                    state = self.sleep(self.state(), slice);
                }
                Connection::None => break,
            }
        }
        self.refuse_gone()?;
        state.connection = Connection::Opening;
        drop(state);
        // The other rank may be about to open its link to this one.
        let mut rest = || {
            let slice = pause()?;
            Ok(match &self.driving {
                Some(driving) => {
                    driving.serve_always();
                    driving.serve_before_sleep(slice)
                }
                None => slice,
            })
        };
        let opened = connect(self.address, secret, from, to, &mut rest);
        let mut state = self.state();
        let outcome = match opened {
            Ok(stream) => {
                state.connection = Connection::Open(Arc::new(stream));
                // Relaxed: whoever needs the connection takes it from the state.
                self.opened.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(cut) => {
                state.connection = Connection::None;
                if let Cut::Gone(_) = cut {
                    self.gone.store(true, Ordering::Relaxed); // Relaxed: a hint; whoever misses it finds out itself.
                }
                Err(cut)
            }
        };
        self.changed.notify_all();
        outcome
    }

    /// Asks the pause, and serves others before the sleep that it allows if no agent does.
    fn rest(&self, pause: Pause<'_>) -> Result<Duration> {
        let slice = pause()?;
        Ok(match &self.driving {
            Some(driving) => driving.serve_before_sleep(slice),
            None => slice,
        })
    }

    /// Whether the connection was opened.
    pub(crate) fn is_open(&self) -> bool {
        self.opened.load(Ordering::Relaxed)
    }

    /// A number for a request that wants a reply.
    pub(crate) fn fresh_request(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed) // Relaxed: only uniqueness matters.
    }

    /// Makes room for so many bytes, so that a large transfer that has to be staged does not move what is staged already.
    pub(crate) fn reserve(&self, bytes: usize) {
        if PUSH_BYTES <= bytes {
            let mut staged = self.staged();
            // What the connection takes meanwhile needs no room; what is not there can be got later, too.
            let _ = staged.bytes.try_reserve(bytes.min(STAGED_MAX_BYTES));
        }
    }

    /// Stages a frame.
    pub(crate) fn stage(&self, kind: Kind, request: u64, body: impl FnOnce(Writer<'_>)) {
        self.tally.frames_sent.add(1);
        let mut staged = self.staged();
        staged.open = None;
        body(Writer::new(&mut staged.bytes, kind, request));
    }

    /// Adds `more` (of `len` bytes) to the frame that was staged last, if that has the same mark and room; otherwise to a new
    /// one that begins with `head`. Frames that are added to want no reply. Sends staged frames if they have become many, as
    /// [`push_if_many`](Link::push_if_many) does.
    pub(crate) fn stage_more(
        &self,
        kind: Kind,
        mark: u128,
        head: impl FnOnce(&mut Vec<u8>),
        len: usize,
        more: impl FnOnce(&mut Vec<u8>),
        (streaming, pause): (&mut Streaming, Pause<'_>),
    ) -> Result<(), Cut> {
        let mut staged = self.staged();
        let Staged { bytes, open, sent } = &mut *staged;
        let start = match *open {
            // Not to one whose header has been sent.
            Some((marked, start))
                if marked == mark && *sent <= start && bytes.len() - start + len <= DATA_MAX_BYTES =>
            {
                start
            }
            _ => {
                self.tally.frames_sent.add(1);
                let start = bytes.len();
                drop(Writer::new(bytes, kind, 0));
                head(bytes);
                *open = Some((mark, start));
                start
            }
        };
        more(bytes);
        seal(bytes, start);
        match staged.left() < PUSH_BYTES {
            true => Ok(()),
            false => {
                drop(staged);
                self.push_some(streaming, pause)
            }
        }
    }

    /// Sends staged frames if they have become many. Waits only if they are more than memory should hold.
    pub(crate) fn push_if_many(&self, pause: Pause<'_>) -> Result<(), Cut> {
        let left = self.staged().left();
        match left < PUSH_BYTES {
            true => Ok(()),
            false => self.push_some(&mut Streaming::new(), pause),
        }
    }

    fn push_some(&self, streaming: &mut Streaming, pause: Pause<'_>) -> Result<(), Cut> {
        let stream = self.stream()?;
        loop {
            let mut staged = self.staged();
            let moved = staged.push(&stream, &self.tally);
            let left = staged.left();
            drop(staged);
            match moved {
                Moved::Closed | Moved::Cut => return Err(self.broken()),
                _ if left < PUSH_BYTES => return Ok(()),
                Moved::Bytes(_) | Moved::Nothing => {}
            }
            let slice = match left < STAGED_MAX_BYTES {
                true if streaming.0.is_zero() => return Ok(()),
                true => streaming.0,
                false => self.rest(pause)?,
            };
            let begun = Instant::now();
            let woken = socket::wait(&stream, PollFlags::IN | PollFlags::OUT, slice);
            self.refuse_cut(&stream, woken)?;
            streaming.0 = streaming.0.saturating_sub(begun.elapsed());
            self.read_available(&stream)?;
        }
    }

    /// Sends all staged frames.
    pub(crate) fn push(&self, pause: Pause<'_>) -> Result<(), Cut> {
        let stream = self.stream()?;
        loop {
            let mut staged = self.staged();
            let moved = staged.push(&stream, &self.tally);
            let left = staged.left();
            drop(staged);
            match moved {
                Moved::Closed | Moved::Cut => return Err(self.broken()),
                _ if left == 0 => return Ok(()),
                Moved::Bytes(_) | Moved::Nothing => {}
            }
            let woken = socket::wait(&stream, PollFlags::IN | PollFlags::OUT, self.rest(pause)?);
            self.refuse_cut(&stream, woken)?;
            self.read_available(&stream)?;
        }
    }

    /// Sends what the connection takes now, for those that can't wait.
    pub(crate) fn push_now(&self) {
        if let Ok(stream) = self.stream() {
            // A connection that has gone has nobody to tell.
            let _ = self.staged().push(&stream, &self.tally);
        }
    }

    /// Waits for the reply to a request, after sending what is staged. Gives its body.
    pub(crate) fn reply(&self, request: u64, pause: Pause<'_>) -> Result<Vec<u8>, Cut> {
        self.await_reply(request, pause).or_else(|cut| {
            // What came before the end counts, whoever has read it.
            if let Ok(stream) = self.stream() {
                while let Ok(true) = self.read_available(&stream) {}
            }
            self.arrived(request).ok_or(cut)
        })
    }

    fn await_reply(&self, request: u64, pause: Pause<'_>) -> Result<Vec<u8>, Cut> {
        self.push(pause)?;
        let stream = self.stream()?;
        let mut look = || {
            // It may have come together with another one.
            if let Some(body) = self.arrived(request) {
                return Some(Ok(body));
            }
            match self.read_available(&stream) {
                Ok(_) => self.arrived(request).map(Ok),
                Err(cut) => Some(Err(cut)),
            }
        };
        let arrived = match &self.driving {
            Some(driving) => driving.drive_for_reply(&mut look),
            None => look(),
        };
        if let Some(arrived) = arrived {
            return arrived;
        }
        loop {
            if let Some(body) = self.arrived(request) {
                return Ok(body);
            }
            self.refuse_gone()?;
            // Not while this thread reads for all: a caller's pause may ask something on this link, too.
            let slice = self.rest(pause)?;
            let state = self.state();
            if state.replies.contains_key(&request) {
                continue;
            }
            // Relaxed, here and below: the locks order it.
            if self.reading.load(Ordering::Relaxed) {
                drop(self.sleep(state, slice.min(FOLLOWER_SLICE)));
                continue;
            }
            self.reading.store(true, Ordering::Relaxed);
            drop(state);
            let outcome = self.read_for_all(&stream, request, slice);
            let state = self.state();
            self.reading.store(false, Ordering::Relaxed);
            drop(state);
            self.changed.notify_all();
            outcome?;
        }
    }

    /// Sends what the connection takes now, and reads what has arrived. For callers that wait for several links.
    pub(crate) fn exchange_now(&self) -> Result<(), Cut> {
        let stream = self.stream()?;
        if let Moved::Closed | Moved::Cut = self.staged().push(&stream, &self.tally) {
            return Err(self.broken());
        }
        self.read_available(&stream).map(|_| ())
    }

    /// Takes the reply to a request, if it has arrived.
    pub(crate) fn arrived(&self, request: u64) -> Option<Vec<u8>> {
        self.state().replies.remove(&request)
    }

    /// How much is staged and not sent yet.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.staged().left()
    }

    /// The connection, and what to watch it for, if there is one, and how long the caller may sleep at most.
    pub(super) fn watched(&self) -> Option<((Arc<TcpStream>, PollFlags), Duration)> {
        // What another thread reads for all is not seen on the connection.
        let (reads, longest) = match self.reading.load(Ordering::Relaxed) {
            true => (PollFlags::empty(), FOLLOWER_SLICE),
            false => (PollFlags::IN, Duration::MAX),
        };
        let flags = if self.staged_bytes() == 0 { reads } else { reads | PollFlags::OUT };
        Some(((self.stream().ok()?, flags), longest))
    }

    /// Reads what has arrived, or sleeps until something does, unless the reply to this request is there.
    fn read_for_all(&self, stream: &TcpStream, request: u64, slice: Duration) -> Result<(), Cut> {
        // Waits for those that read just now, and whoever comes later leaves everything to this thread.
        if self.read_with(self.incoming(), stream)? || self.state().replies.contains_key(&request) {
            return Ok(());
        }
        let woken = socket::wait(stream, PollFlags::IN, slice);
        self.refuse_cut(stream, woken)?;
        self.read_with(self.incoming(), stream)?;
        Ok(())
    }

    /// Drops the reply to a request that nobody waits for any more, whether it has come or will.
    pub(crate) fn forget(&self, request: u64) {
        let mut state = self.state();
        if state.replies.remove(&request).is_none() {
            state.unwanted.insert(request);
        }
    }

    /// Takes what has arrived, unless another thread does; whether that was anything.
    fn read_available(&self, stream: &TcpStream) -> Result<bool, Cut> {
        let incoming = match self.incoming.try_lock() {
            Ok(incoming) => incoming,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        match self.reading.load(Ordering::Relaxed) {
            true => Ok(false),
            false => self.read_with(incoming, stream),
        }
    }

    fn read_with(&self, mut incoming: MutexGuard<'_, Decoder>, stream: &TcpStream) -> Result<bool, Cut> {
        let mut any = false;
        loop {
            match socket::read(stream, incoming.room()) {
                Moved::Bytes(len) => {
                    self.tally.bytes_received.add(len as u64);
                    incoming.filled(len);
                }
                Moved::Nothing => break,
                Moved::Closed | Moved::Cut => {
                    drop(incoming);
                    return Err(self.broken());
                }
            }
            loop {
                match incoming.next() {
                    Ok(Some(mut frame)) if frame.kind == Kind::Reply => {
                        any = true;
                        self.tally.replies_received.add(1);
                        let (request, body) = (frame.request, frame.body.rest().to_vec());
                        let mut state = self.state();
                        if !state.unwanted.remove(&request) {
                            state.replies.insert(request, body);
                        }
                    }
                    Ok(None) => break,
                    Ok(Some(_)) | Err(_) => {
                        drop(incoming);
                        return Err(self.broken());
                    }
                }
            }
            if any {
                break;
            }
        }
        Ok(any)
    }

    fn stream(&self) -> Result<Arc<TcpStream>, Cut> {
        match &self.state().connection {
            Connection::Open(stream) => Ok(Arc::clone(stream)),
            Connection::None | Connection::Opening => Err(Cut::Gone("there is no connection")),
        }
    }

    fn refuse_gone(&self) -> Result<(), Cut> {
        match self.gone.load(Ordering::Relaxed) {
            true => Err(Cut::Gone("the connection is gone")),
            false => Ok(()),
        }
    }

    /// Gives up a connection whose other side has not been heard of for too long.
    fn refuse_cut(&self, stream: &TcpStream, woken: Woken) -> Result<(), Cut> {
        match woken == Woken::TimeOver && socket::is_cut(stream) {
            false => Ok(()),
            true => {
                self.broken();
                Err(Cut::Gone("nothing that was sent is acknowledged any more: the link is cut"))
            }
        }
    }

    fn broken(&self) -> Cut {
        self.gone.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        Cut::Gone("the connection is gone")
    }

    fn sleep<'a>(&'a self, state: MutexGuard<'a, State>, slice: Duration) -> MutexGuard<'a, State> {
        match self.changed.wait_timeout(state, slice) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the tables are inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incoming(&self) -> MutexGuard<'_, Decoder> {
        // A reply that finds no memory panics between two frames.
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&self) -> MutexGuard<'_, Staged> {
        // A body that panics leaves a frame behind that says its length, so the stream stays whole.
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to an address and proves to know the secret.
pub(crate) fn connect(
    address: SocketAddr,
    secret: &Secret,
    from: Party,
    to: Party,
    pause: Pause<'_>,
) -> Result<TcpStream, Cut> {
    let broken = |error: io::Error| match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => {
            Cut::Gone("no more files may be open here: raise the limit (ulimit -n)")
        }
        _ => Cut::Gone("nobody listens at its address"),
    };
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(broken)?;
    socket::prepare(&stream).map_err(broken)?;
    let (caller, hello) = Caller::new(from, to).map_err(|_| Cut::Gone("the system gives no random bytes"))?;
    send_all(&stream, &hello, pause)?;
    let mut answer = [0; ANSWER_BYTES];
    let mut filled = 0;
    while filled < ANSWER_BYTES {
        match socket::read(&stream, &mut answer[filled..]) {
            Moved::Bytes(len) => filled += len,
            Moved::Nothing => {
                socket::wait(&stream, PollFlags::IN, pause()?);
            }
            Moved::Closed | Moved::Cut => {
                return Err(Cut::Gone(
                    "it refused the handshake: another job, another version, a wrong secret, or too few files may be open there (ulimit -n)",
                ));
            }
        }
    }
    let proof =
        caller.prove(secret, &answer).map_err(|_| Cut::Gone("it does not know the secret of the job"))?;
    send_all(&stream, &proof, pause)?;
    Ok(stream)
}

fn send_all(stream: &TcpStream, bytes: &[u8], pause: Pause<'_>) -> Result<(), Cut> {
    let mut sent = 0;
    while sent < bytes.len() {
        match socket::write(stream, &bytes[sent..]) {
            Moved::Bytes(len) => sent += len,
            Moved::Nothing => {
                socket::wait(stream, PollFlags::OUT, pause()?);
            }
            Moved::Closed | Moved::Cut => return Err(Cut::Gone("the connection is gone")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
