//! Forwards what ranks write, line by line. Never interprets it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStderr, ChildStdout};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Tags;

/// A longer line is passed on in pieces of this size; other ranks' lines may come between them.
const LINE_MAX_BYTES: usize = 1 << 20;
/// How long somebody who is no rank, and holds a rank's pipe open, may be silent.
const STRANGER_GRACE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// Bytes read from a rank at once.
const READ_BYTES: usize = 64 << 10;

/// Cuts a rank's output into whole lines.
struct Lines {
    tag: Vec<u8>,
    pending: Vec<u8>,
}

impl Lines {
    fn new(rank: u32, tags: Tags) -> Lines {
        let tag = match tags {
            Tags::Off => Vec::new(),
            Tags::On => format!("[{rank}] ").into_bytes(),
        };
        Lines { tag, pending: Vec::new() }
    }

    /// Takes what a rank wrote and gives the lines that have become whole, tagged.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(bytes);
        let whole = match self.pending.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None if LINE_MAX_BYTES <= self.pending.len() => self.pending.len(),
            None => 0,
        };
        let lines: Vec<u8> = self.pending.drain(..whole).collect();
        self.tagged(&lines)
    }

    /// Gives what is left when the rank has closed its end: a line without an end.
    fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.pending);
        self.tagged(&rest)
    }

    fn tagged(&self, lines: &[u8]) -> Vec<u8> {
        if self.tag.is_empty() {
            return lines.to_vec();
        }
        lines.split_inclusive(|&byte| byte == b'\n').flat_map(|line| [&self.tag, line].concat()).collect()
    }
}

/// One of the launcher's own streams, on which nothing is glued to a line without an end.
struct Sink<W> {
    stream: W,
    mid_line: bool,
    /// Why the stream takes nothing any more: what ranks write to it is dropped, and they run on.
    closed: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    fn new(stream: W) -> Sink<W> {
        Sink { stream, mid_line: false, closed: None }
    }

    fn write(&mut self, lines: &[u8]) {
        if lines.is_empty() || self.closed.is_some() {
            return;
        }
        let separator: &[u8] = match self.mid_line {
            true => b"\n",
            false => b"",
        };
        let text = [separator, lines].concat();
        self.closed = self.stream.write_all(&text).and_then(|()| self.stream.flush()).err();
        self.mid_line = !lines.ends_with(b"\n");
    }

    /// Whether all was written that somebody wanted to read: a reader that has gone wants no more.
    fn finish(self, name: &str) -> io::Result<()> {
        match self.closed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(io::Error::new(error.kind(), format!("{name}: {error}")))
            }
            _ => Ok(()),
        }
    }
}

enum Stream {
    Out,
    Err,
}

struct Source {
    pipe: OwnedFd,
    lines: Lines,
    stream: Stream,
}

/// The output of all ranks of a job.
pub(super) struct Output {
    sources: Vec<Source>,
    /// Readable once all ranks have ended.
    over: Arc<OwnedFd>,
}

impl Output {
    pub(super) fn new() -> io::Result<Output> {
        let over = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Output { sources: Vec::new(), over: Arc::new(over) })
    }

    /// What tells `forward` that all ranks have ended.
    pub(super) fn over(&self) -> Over {
        Over(Arc::clone(&self.over))
    }

    /// Adds the pipes of a rank.
    pub(super) fn add(&mut self, rank: u32, tags: Tags, out: Option<ChildStdout>, err: Option<ChildStderr>) {
        let mut add = |pipe: OwnedFd, stream| {
            self.sources.push(Source { pipe, lines: Lines::new(rank, tags), stream });
        };
        if let Some(pipe) = out {
            add(pipe.into(), Stream::Out)
        }
        if let Some(pipe) = err {
            add(pipe.into(), Stream::Err)
        }
    }

    /// Forwards until every rank has closed its ends. Once all ranks have ended, a stranger that holds a pipe open
    /// is listened to only as long as it goes on talking.
    ///
    /// # Errors
    /// What kept the launcher from passing output on, as a full disk.
    pub(super) fn forward(mut self) -> io::Result<()> {
        let mut out = Sink::new(io::stdout().lock());
        let mut err = Sink::new(io::stderr());
        let mut buffer = vec![0; READ_BYTES];
        for source in &self.sources {
            let flags = rustix::fs::fcntl_getfl(&source.pipe)?;
            rustix::fs::fcntl_setfl(&source.pipe, flags | OFlags::NONBLOCK)?;
        }
        let mut over = false;
        while !self.sources.is_empty() {
            let pipes = self.sources.iter().map(|source| &source.pipe);
            let told = (!over).then_some(&*self.over);
            let mut watched: Vec<_> =
                pipes.chain(told).map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)).collect();
            match poll(&mut watched, over.then_some(&STRANGER_GRACE)) {
                Ok(0) => break,
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = watched.iter().map(|watch| !watch.revents().is_empty()).collect();
            over = over || ready[self.sources.len()];
            let mut ready = ready.into_iter();
            self.sources.retain_mut(|source| {
                if ready.next() != Some(true) {
                    return true;
                }
                let (lines, open) = match rustix::io::read(&source.pipe, &mut buffer) {
                    Ok(0) => (source.lines.finish(), false),
                    Ok(len) => (source.lines.push(&buffer[..len]), true),
                    Err(Errno::AGAIN | Errno::INTR) => return true,
                    Err(_) => (source.lines.finish(), false),
                };
                match source.stream {
                    Stream::Out => out.write(&lines),
                    Stream::Err => err.write(&lines),
                }
                open
            });
        }
        out.finish("standard output").and(err.finish("standard error"))
    }
}

/// Says that all ranks have ended.
pub(super) struct Over(Arc<OwnedFd>);

impl Over {
    pub(super) fn tell(&self) {
        // Cannot fail: the counter of a new event descriptor has room for one.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Copies the launcher's input to a rank until either ends.
pub(super) fn forward_input(mut to: std::process::ChildStdin) {
    let mut buffer = vec![0; READ_BYTES];
    let mut input = io::stdin().lock();
    loop {
        match input.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(len) => match to.write_all(&buffer[..len]).and_then(|()| to.flush()) {
                Ok(()) => {}
                Err(_) => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_tagged() {
        let mut lines = Lines::new(3, Tags::On);
        assert_eq!(lines.push(b"half "), b"");
        assert_eq!(lines.push(b"line\nanother\nand"), b"[3] half line\n[3] another\n");
        assert_eq!(lines.push(b" more"), b"");
        assert_eq!(lines.finish(), b"[3] and more");
        assert_eq!(lines.finish(), b"");
    }

    #[test]
    fn untagged_bytes_are_unchanged() {
        let mut lines = Lines::new(0, Tags::Off);
        let mut all = lines.push(b"\n\xff\0x\n y");
        all.extend(lines.finish());
        assert_eq!(all, b"\n\xff\0x\n y");
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut lines = Lines::new(0, Tags::Off);
        let piece = vec![b'x'; READ_BYTES];
        let passed: usize = (0..100).map(|_| lines.push(&piece).len()).sum();
        assert!(READ_BYTES * 100 - LINE_MAX_BYTES <= passed);
    }

    #[test]
    fn nothing_is_glued_to_an_unfinished_line() {
        let mut bytes = Vec::new();
        let mut sink = Sink::new(&mut bytes);
        sink.write(b"no end");
        sink.write(b"");
        sink.write(b"next\n");
        assert_eq!(bytes, b"no end\nnext\n");
    }
}
