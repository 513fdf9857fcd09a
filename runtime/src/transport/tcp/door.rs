//! The door of a process: accepts connections and lets in those that know the secret. Never keeps more of a stranger than a
//! handshake, nor a stranger longer than a deadline, nor more than so many of them.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{Callee, HELLO_BYTES, PROOF_BYTES, Party, Secret};
use super::socket::{self, Moved, Poller};

/// What a stranger gets to prove itself.
const STRANGER_DEADLINE: Duration = Duration::from_secs(5);
/// Strangers at one time, beside one for each rank of the job. The oldest has to go when there are more.
const STRANGERS_BASE: usize = 64;

/// Between two tries to accept a connection while the process has no descriptor left for it.
const SHORTAGE_NAP: Duration = Duration::from_millis(1);
/// How long that may go on before those who knock are turned away, who would wait for an answer that never comes.
const SHORTAGE_MAX: Duration = Duration::from_secs(2);

/// See the module.
pub(crate) struct Door {
    listener: TcpListener,
    secret: Secret,
    me: Party,
    strangers: Vec<Stranger>,
    strangers_max: usize,
    /// Numbers of strangers with the poller go up from here; nothing else uses such numbers.
    next: u64,
    /// Given up for as long as it takes to turn somebody away.
    spare: Option<File>,
    /// Since when there has been no descriptor for whoever knocks.
    short_since: Option<Instant>,
}

/// Numbers from here on are those of strangers.
pub(crate) const STRANGERS_FROM: u64 = 1 << 32;

/// Somebody who has not shown yet that it belongs to the job.
struct Stranger {
    stream: TcpStream,
    number: u64,
    since: Instant,
    step: Step,
    received: [u8; HELLO_BYTES],
    filled: usize,
}

enum Step {
    Hello,
    Proof(Callee),
}

/// A descriptor that is of no use. Without one, nobody can be turned away, and those who knock have to wait.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Door {
    /// Listens at an address; port 0 takes a free one.
    pub(crate) fn open(address: SocketAddr, secret: Secret, me: Party, ranks: u32) -> io::Result<Door> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let strangers_max = STRANGERS_BASE + ranks as usize;
        Ok(Door {
            listener,
            secret,
            me,
            strangers: Vec::new(),
            strangers_max,
            next: STRANGERS_FROM,
            spare: spare(),
            short_since: None,
        })
    }

    /// Where others find the door.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Lets the poller watch the door under a number.
    pub(crate) fn watch(&self, poller: &Poller, number: u64) -> io::Result<()> {
        poller.watch(&self.listener, number)
    }

    /// Ends the connection of whoever has knocked first.
    fn turn_away(&mut self) {
        drop(self.spare.take());
        drop(self.listener.accept());
        self.spare = spare();
    }

    /// Takes in whoever has knocked.
    pub(crate) fn accept(&mut self, poller: &Poller) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    // The knock stays, so the poller would not sleep. Strangers give their descriptors back first.
                    self.strangers.clear();
                    let since = *self.short_since.get_or_insert_with(Instant::now);
                    match since.elapsed() < SHORTAGE_MAX {
                        true => thread::sleep(SHORTAGE_NAP),
                        false => self.turn_away(),
                    }
                    return;
                }
                // Nobody is left, or somebody has gone again.
                Err(_) => return,
            };
            self.short_since = None;
            if self.strangers_max <= self.strangers.len() {
                self.strangers.remove(0);
            }
            let number = self.next;
            self.next += 1;
            if socket::prepare(&stream).and_then(|()| poller.watch(&stream, number)).is_ok() {
                let received = [0; HELLO_BYTES];
                let since = Instant::now();
                self.strangers.push(Stranger {
                    stream,
                    number,
                    since,
                    step: Step::Hello,
                    received,
                    filled: 0,
                });
            }
        }
    }

    /// Hears a stranger; gives it with its name once it has proved itself. `claims` is told who it says it is before it is
    /// answered.
    pub(crate) fn hear(&mut self, number: u64, claims: impl FnMut(Party)) -> Option<(Party, TcpStream)> {
        let at = self.strangers.iter().position(|stranger| stranger.number == number)?;
        let verdict = self.strangers[at].hear(&self.secret, self.me, claims);
        match verdict {
            Verdict::Wait => None,
            Verdict::Out => {
                self.strangers.remove(at);
                None
            }
            Verdict::In(party) => Some((party, self.strangers.remove(at).stream)),
        }
    }

    /// Drops strangers whose time is over, and says when the next one's will be.
    pub(crate) fn expire(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.strangers.retain(|stranger| now.duration_since(stranger.since) < STRANGER_DEADLINE);
        let oldest = self.strangers.first()?;
        Some((oldest.since + STRANGER_DEADLINE).saturating_duration_since(now))
    }

    /// Whether a rank that has not been let in yet claims to be this one.
    pub(crate) fn is_claimed(&self, party: Party) -> bool {
        self.strangers.iter().any(|stranger| match &stranger.step {
            Step::Hello => false,
            Step::Proof(callee) => callee.claimed() == party,
        })
    }
}

enum Verdict {
    Wait,
    Out,
    In(Party),
}

impl Stranger {
    fn hear(&mut self, secret: &Secret, me: Party, mut claims: impl FnMut(Party)) -> Verdict {
        loop {
            let wanted = match self.step {
                Step::Hello => HELLO_BYTES,
                Step::Proof(_) => PROOF_BYTES,
            };
            // Not one byte more: what follows the proof is for whoever takes the connection over.
            match socket::read(&self.stream, &mut self.received[self.filled..wanted]) {
                Moved::Bytes(len) => self.filled += len,
                Moved::Nothing => return Verdict::Wait,
                Moved::Closed | Moved::Cut => return Verdict::Out,
            }
            if self.filled < wanted {
                continue;
            }
            self.filled = 0;
            match std::mem::replace(&mut self.step, Step::Hello) {
                Step::Hello => match Callee::new(secret, me, &self.received) {
                    Ok((callee, answer)) => {
                        claims(callee.claimed());
                        self.step = Step::Proof(callee);
                        // A fresh connection takes so few bytes at once, or is none.
                        match socket::write(&self.stream, &answer) {
                            Moved::Bytes(len) if len == answer.len() => {}
                            _ => return Verdict::Out,
                        }
                    }
                    Err(_) => return Verdict::Out,
                },
                Step::Proof(callee) => {
                    let (proof, _) =
                        self.received.split_first_chunk().expect("a hello is longer than a proof");
                    return match callee.check(secret, proof) {
                        Ok(party) => Verdict::In(party),
                        Err(_) => Verdict::Out,
                    };
                }
            }
        }
    }
}
