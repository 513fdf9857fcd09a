//! How a window is to be, beside its length. Never makes one without all ranks.

use super::Window;
use super::memory::{CallerMemory, Home};
use super::raw::{Atomicity, Begins, Mirror, Private, RawWindow, Refused, Shape};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::job::MemoryModel;
use crate::team::Team;

/// What a new window is to be like, where [`Window::allocate`] and [`Window::create`] leave no choice. Every rank says it
/// for its own part, and parts may differ.
///
/// ```
/// let units = rma::spawn(2, |team| {
///     // A displacement that others give for this rank's part counts records of three numbers.
///     let mut window = rma::WindowOptions::new().disp_unit(24).allocate::<u64>(team, 30)?;
///     window.fence(|epoch| epoch.put(rma::Rank(1), 2, [1, 2, 3]))?;
///     window.load(6)
/// })?;
/// assert_eq!(units.into_iter().collect::<rma::Result<Vec<u64>>>()?, [0, 1]);
/// # Ok::<(), rma::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options make a window by `allocate` or `create`"]
pub struct WindowOptions {
    disp_unit: Option<usize>,
    memory_model: Option<MemoryModel>,
    begins: Begins,
    atomicity: Atomicity,
    mirror: Mirror,
}

impl WindowOptions {
    /// The displacement unit is the size of an element, and the memory model that of the job.
    pub fn new() -> WindowOptions {
        WindowOptions::default()
    }

    /// Sets the displacement unit of this rank's part in bytes: what a displacement that others give is multiplied with.
    pub fn disp_unit(self, bytes: usize) -> WindowOptions {
        WindowOptions { disp_unit: Some(bytes), ..self }
    }

    /// Sets how many copies the runtime makes of this rank's part, whatever [the job's default](MemoryModel) is. A window over
    /// memory of the caller has two in any case.
    pub fn memory_model(self, model: MemoryModel) -> WindowOptions {
        WindowOptions { memory_model: Some(model), ..self }
    }

    /// Lets this rank's part begin posted, for anybody: the first call of its owner is the wait, on the guard that
    /// [`Window::posted`] gives. Otherwise a window begins as its owner's, and the first call is [`Window::post`].
    ///
    /// ```
    /// use rma::{Info, Rank, Window, WindowOptions};
    /// let rounds = rma::spawn(3, |team| {
    ///     let mut window: Window<u64> = WindowOptions::new().created_posted().allocate(team, 3)?;
    ///     let me = team.rank();
    ///     if me != Rank(0) {
    ///         window.access(&[Rank(0)], Info::NoCheck, |epoch| epoch.put(Rank(0), me.index(), 7))?;
    ///     }
    ///     window.posted()?.wait(if me == Rank(0) { 2 } else { 0 })?;
    ///     Ok(window.local()?.to_vec())
    /// })?;
    /// # let rounds: Vec<Vec<u64>> = rounds.into_iter().collect::<rma::Result<_>>()?;
    /// assert_eq!(rounds[0], [0, 7, 7]);
    /// # Ok::<(), rma::Error>(())
    /// ```
    pub fn created_posted(self) -> WindowOptions {
        WindowOptions { begins: Begins::Posted, ..self }
    }

    /// Says what keeps accumulates to one element apart; all ranks must say the same. The results do not depend on it, only the
    /// speed.
    pub fn atomicity(self, atomicity: Atomicity) -> WindowOptions {
        WindowOptions { atomicity, ..self }
    }

    /// Keeps the mirror of this rank's part in memory that the system does not page out, so that a transfer never waits for a
    /// disk; the private copy stays as it is. Where there is no mirror, this says nothing.
    pub fn locked_mirror(self) -> WindowOptions {
        WindowOptions { mirror: Mirror::Locked, ..self }
    }

    /// As [`Window::allocate`], with these options.
    ///
    /// # Errors
    /// As [`Window::allocate`], `BadDispUnit` on all ranks if one has a unit of 0, and
    /// `CollectiveMismatch` if they say different things about atomicity.
    #[track_caller]
    pub fn allocate<T: Element>(&self, team: &Team, len: usize) -> Result<Window<T>> {
        let private = match self.memory_model.unwrap_or(team.context().memory_model()) {
            MemoryModel::Unified => Ok(None),
            MemoryModel::Separate => Private::zeroed::<T>(len).map(Some),
        };
        let made = RawWindow::allocate(team, self.shape::<T>(len), private);
        made.map(Window::over).map_err(|refused| refused.error)
    }

    /// As [`Window::create`], with these options.
    ///
    /// # Errors
    /// As [`Window::create`], `BadDispUnit` on all ranks if one has a unit of 0, and `System` on all ranks if the system does not
    /// lock as much memory as one asks for.
    #[track_caller]
    pub fn create<T: Element, M: CallerMemory<T>>(
        &self,
        team: &Team,
        mut memory: M,
    ) -> Result<Window<T>, Returned<M>> {
        let shape = self.shape::<T>(memory.elements().len());
        let made = RawWindow::allocate(team, shape, Ok(Some(Private::over(memory))));
        made.map(Window::over).map_err(|Refused { error, private }| Returned {
            error,
            memory: private.and_then(Private::into_memory).unwrap_or_else(|| M::none(Home(team.context()))),
        })
    }

    fn shape<T: Element>(&self, len: usize) -> Shape {
        // More than the address space holds is refused as such, not wrapped around.
        let bytes = len.saturating_mul(size_of::<T>());
        let unit = self.disp_unit.unwrap_or(size_of::<T>());
        let element = const { &T::SHAPE };
        Shape {
            bytes,
            capacity: None,
            unit,
            element,
            atomicity: self.atomicity,
            begins: self.begins,
            mirror: self.mirror,
        }
    }
}

/// An error of a call that was given the caller's memory, and the memory. `?` turns it into the [`Error`] alone.
#[derive(Debug)]
pub struct Returned<M> {
    /// Why the call failed.
    pub error: Error,
    /// What the call was given.
    pub memory: M,
}

impl<M> From<Returned<M>> for Error {
    fn from(returned: Returned<M>) -> Error {
        returned.error
    }
}

impl<M> std::fmt::Display for Returned<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl<M: std::fmt::Debug> std::error::Error for Returned<M> {}
