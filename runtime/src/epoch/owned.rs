//! Transfers that own their buffers until somebody asks for them: request forms. Never gives a buffer back before its transfer is
//! done with it.
#![forbid(unsafe_code)]

use std::fmt;

use crate::error::Result;
use crate::team::Rank;
use crate::window::Returned;
use crate::window::raw::RawWindow;

/// A transfer that owns its buffers. [`wait`](Request::wait) gives them back when they are free, or hold what was got.
///
/// Whoever drops it lets the transfer go on; it is complete when its epoch is.
#[must_use = "`wait` gives the buffers back"]
pub struct Request<'epoch, B> {
    window: &'epoch RawWindow,
    target: Rank,
    buffers: B,
}

impl<'epoch, B> Request<'epoch, B> {
    /// The outcome of a transfer that was given these buffers.
    pub(crate) fn new(
        window: &'epoch RawWindow,
        target: Rank,
        outcome: Result<()>,
        buffers: B,
    ) -> Result<Request<'epoch, B>, Returned<B>> {
        match outcome {
            Ok(()) => Ok(Request { window, target, buffers }),
            Err(error) => Err(Returned { error, memory: buffers }),
        }
    }

    /// Whether the buffers are free. If so, [`wait`](Request::wait) returns at once.
    pub fn test(&self) -> bool {
        !self.window.is_kept(self.target)
    }

    /// Waits until the buffers are free and gives them back: those of a put or accumulate may be changed, that of a get holds what
    /// was got. It does not say that the target has the data; a flush or the end of the epoch does.
    ///
    /// # Errors
    /// Those of waiting for the target, for an epoch under [`Info::Weak`](crate::Info::Weak) that was not let in yet, with the
    /// buffers.
    #[track_caller]
    pub fn wait(self) -> Result<B, Returned<B>> {
        match self.window.flush_local("wait for a transfer", self.target) {
            Ok(()) => Ok(self.buffers),
            Err(error) => Err(Returned { error, memory: self.buffers }),
        }
    }
}

impl<B> fmt::Debug for Request<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request") // The buffers are not to be seen yet.
    }
}
