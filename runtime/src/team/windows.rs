//! The barrier over all windows of a team. Never touches a window's memory: it asks what each window has open, and lets those
//! with two copies of their memory move what has changed; where there is one copy, to meet is to complete.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::Team;
use super::collective::Call;
use crate::error::{Error, ErrorKind, Result};

/// What the caller's handle of one window has open. The handle changes it; its team, which may be in another thread, reads it.
pub(crate) struct OpenEpochs {
    window: u64,
    /// Targets with an open access.
    pub(crate) started: Count,
    /// Targets with a held lock.
    pub(crate) locked: Count,
    /// Views of the own memory that live.
    pub(crate) views: Count,
    /// Moves what has changed between two copies of the own memory.
    mover: OnceLock<Weak<dyn Mover>>,
}

/// What moves bytes between the two copies of a window's memory. It may be asked in any thread.
pub(crate) trait Mover: Send + Sync {
    /// Brings what the owner stored to where others look.
    fn publish(&self);
    /// Brings what others have put to where the owner looks.
    fn import(&self);
}

impl OpenEpochs {
    /// Says, once, what moves the window's bytes.
    pub(crate) fn moves_by(&self, mover: Arc<dyn Mover>) {
        let _ = self.mover.set(Arc::downgrade(&mover)); // A window has one pair of copies, made with it.
    }

    fn mover(&self) -> Option<Arc<dyn Mover>> {
        self.mover.get().and_then(Weak::upgrade)
    }
}

/// A number that one thread at a time changes. As cheap as a `Cell`.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed) // Relaxed: the number orders nothing.
    }

    #[inline(always)]
    pub(crate) fn set(&self, count: usize) {
        self.0.store(count, Ordering::Relaxed); // Relaxed: as above.
    }

    #[inline(always)]
    pub(crate) fn replace(&self, count: usize) -> usize {
        let before = self.get();
        self.set(count);
        before
    }
}

impl Team {
    /// Counts a new window among those that [`rma_barrier`](Team::rma_barrier) completes.
    pub(crate) fn watch(&self, window: u64) -> Arc<OpenEpochs> {
        let count = Count::default;
        let mover = OnceLock::new();
        let open = Arc::new(OpenEpochs { window, started: count(), locked: count(), views: count(), mover });
        let mut windows = self.windows.borrow_mut();
        windows.retain(|window| window.strong_count() != 0);
        windows.push(Arc::downgrade(&open));
        open
    }

    /// The barrier that also completes every transfer on every window of the team, at both sides (in the seeds, BARRIER of
    /// a communicator that has windows).
    ///
    /// What members did to the windows before it, under locks or inside of fence phases, each member sees after it. A
    /// posted window stays posted, and a fence phase stays open. [`barrier`](Team::barrier) has no effect on windows, and
    /// [`Window::fence`](crate::Window::fence) is for one window. Windows of a [`duplicate`](Team::duplicate) are not
    /// this team's.
    ///
    /// ```
    /// use rma::{LockKind, Rank, Window};
    /// let seen = rma::spawn(2, |team| {
    ///     let (a, b) = (Window::<u8>::allocate(team, 1)?, Window::<u8>::allocate(team, 1)?);
    ///     let other = Rank(1 - team.rank().0);
    ///     for window in [&a, &b] {
    ///         window.lock(other, LockKind::Exclusive, |epoch| epoch.put(other, 0, 7))?;
    ///     }
    ///     team.rma_barrier()?;
    ///     Ok((a.load(0)?, b.load(0)?))
    /// })?;
    /// assert!(seen.into_iter().all(|seen: rma::Result<_>| seen.unwrap() == (7, 7)));
    /// # Ok::<(), rma::Error>(())
    /// ```
    ///
    /// # Errors
    /// `MixedSync` with an own access or lock open on a window of the team, `EpochStillOpen` with a local view alive: this rank
    /// has not arrived then. Otherwise as [`barrier`](Team::barrier).
    #[track_caller]
    pub fn rma_barrier(&self) -> Result<()> {
        const CALL: Call = Call::new("rma_barrier");
        for open in self.windows.borrow().iter().filter_map(Weak::upgrade) {
            let (kind, what) = match (open.started.get(), open.locked.get(), open.views.get()) {
                (0, 0, 0) => continue,
                (0, 0, _) => (ErrorKind::EpochStillOpen, "a local view of the own window"),
                (0, ..) => (ErrorKind::MixedSync, "an own lock"),
                _ => (ErrorKind::MixedSync, "an own access, which is not completed"),
            };
            return Err(Error::new(kind, CALL.name)
                .caller(self.rank())
                .window(open.window)
                .other(what.to_owned()));
        }
        let open = self.windows.borrow().iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        let movers: Vec<Arc<dyn Mover>> = open.iter().filter_map(|open| open.mover()).collect();
        movers.iter().for_each(|mover| mover.publish());
        // What a fence phase has sent to ranks without shared memory may be on its way still.
        self.complete_links(CALL)?;
        self.meet(CALL, 0)?;
        movers.iter().for_each(|mover| mover.import());
        Ok(())
    }
}
