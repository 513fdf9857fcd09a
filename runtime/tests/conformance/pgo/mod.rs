//! Put, get and offer: one suite for the families and for the ways to offer. Never uses a window, unless a case is about both.
//!
//! Most bodies run once per [`Mode`], one after the other in one job, each under tags of its own.

pub(crate) mod basics;
#[cfg(feature = "progressive")]
pub(crate) mod chain;
pub(crate) mod collective;
pub(crate) mod extras;
pub(crate) mod lanes;
pub(crate) mod messages;
pub(crate) mod order;
pub(crate) mod programs;
#[cfg(feature = "progressive")]
pub(crate) mod progressive;
pub(crate) mod random;
pub(crate) mod requests;
pub(crate) mod trouble;
pub(crate) mod wired;
pub(crate) mod worked;

use std::time::Duration;

use rma::pgo::{Count, Destination, Events, PUTS_OK, Scope, Source, Status, malloc, over};
use rma::{Element, Rank, Section, Team};

/// What a call gets that should not end: short, as a call that ends too early does so at once, and a suite has many of them.
const PENDING: Duration = Duration::from_millis(40);

/// Makes a call that can't end, and shows that it does not.
pub(crate) fn pends<T>(team: &Team, call: impl FnOnce() -> rma::Result<T>) -> rma::Error {
    match rma::private::testing::with_limit(team, PENDING, call) {
        Ok(_) => panic!("the call should not end"),
        Err(error) => {
            assert_eq!(error.kind(), rma::ErrorKind::Stalled, "{error}");
            error
        }
    }
}

/// Which family a body uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Plain,
    #[cfg(feature = "progressive")]
    Progressive,
}

/// How a body offers its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A blocking offer of private memory.
    Blocking,
    /// A blocking offer of memory that ranks share.
    Shared,
    /// A request, which is waited for at once.
    Request,
    /// A request that serves nothing before it is waited for.
    Late,
}

/// A family, a way to offer, and the tags that the two have for themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) family: Family,
    pub(crate) style: Style,
    pub(crate) tag: u64,
}

// covers: PGO-IOFFER-02 -- the suite passes with requests in place of blocking offers
// covers: PGO-PROG-01, PGO-PROG-02 -- and with the progressive calls in place of the others
pub(crate) fn modes() -> impl Iterator<Item = Mode> {
    let families = [
        Family::Plain,
        #[cfg(feature = "progressive")]
        Family::Progressive,
    ];
    let styles = [Style::Blocking, Style::Shared, Style::Request, Style::Late];
    let all = families.into_iter().flat_map(move |family| styles.map(|style| (family, style)));
    all.zip((1..).map(|number| number * 1000)).map(|((family, style), tag)| Mode { family, style, tag })
}

impl Mode {
    pub(crate) fn put<'s, 'd>(
        self,
        scope: &Scope<'s, '_>,
        origin: impl Source<'s>,
        target: Rank,
        section: impl Into<Section<'d>>,
    ) -> rma::Result<()> {
        match self.family {
            Family::Plain => scope.put(origin, target, section),
            #[cfg(feature = "progressive")]
            Family::Progressive => scope.putp(origin, target, section),
        }
    }

    pub(crate) fn get<'s, 'd>(
        self,
        scope: &Scope<'s, '_>,
        origin: impl Destination<'s>,
        target: Rank,
        section: impl Into<Section<'d>>,
    ) -> rma::Result<()> {
        match self.family {
            Family::Plain => scope.get(origin, target, section),
            #[cfg(feature = "progressive")]
            Family::Progressive => scope.getp(origin, target, section),
        }
    }

    /// A put whose event goes on.
    pub(crate) fn put_more<'s, 'd>(
        self,
        scope: &Scope<'s, '_>,
        origin: impl Source<'s>,
        target: Rank,
        section: impl Into<Section<'d>>,
    ) -> rma::Result<()> {
        match self.family {
            Family::Plain => scope.combine().put(origin, target, section),
            #[cfg(feature = "progressive")]
            Family::Progressive => scope.combine().putp(origin, target, section),
        }
    }

    /// Waits for the own events of the scope.
    pub(crate) fn flush(self, scope: &Scope<'_, '_>) -> rma::Result<()> {
        match self.family {
            Family::Plain => scope.offer(rma::pgo::nothing(), 0),
            #[cfg(feature = "progressive")]
            Family::Progressive => scope.offerp(rma::pgo::nothing(), 0),
        }
        .map(drop)
    }

    /// Offers a buffer in the mode's way and waits until it has served so many events.
    pub(crate) fn serve_in<T: Element>(
        self,
        team: &Team,
        scope: &Scope<'_, '_>,
        buffer: &mut Vec<T>,
        events: Events,
        count: impl Into<Count>,
    ) -> rma::Result<Status> {
        let count = count.into();
        match self.style {
            Style::Blocking => {
                let over = over(buffer.as_mut_slice(), events);
                match self.family {
                    Family::Plain => scope.offer(over, count),
                    #[cfg(feature = "progressive")]
                    Family::Progressive => scope.offerp(over, count),
                }
            }
            Style::Shared => {
                let mut memory = malloc::<T>(team, buffer.len())?;
                memory.copy_from_slice(buffer);
                let outcome = {
                    let over = over(&mut memory, events);
                    match self.family {
                        Family::Plain => scope.offer(over, count),
                        #[cfg(feature = "progressive")]
                        Family::Progressive => scope.offerp(over, count),
                    }
                };
                buffer.copy_from_slice(&memory);
                outcome
            }
            Style::Request | Style::Late => {
                let over = over(std::mem::take(buffer), events);
                let over = if self.style == Style::Late { over.late() } else { over };
                let mut request = match self.family {
                    Family::Plain => scope.ioffer(over, count)?,
                    #[cfg(feature = "progressive")]
                    Family::Progressive => scope.iofferp(over, count)?,
                };
                let outcome = scope.wait(&mut request);
                *buffer = request.into_inner();
                outcome
            }
        }
    }

    /// As `serve_in`, in a scope of its own that issues nothing.
    pub(crate) fn serve<T: Element>(
        self,
        team: &Team,
        tag: u64,
        buffer: &mut Vec<T>,
        events: Events,
        count: impl Into<Count>,
    ) -> rma::Result<Status> {
        rma::pgo::scope(team, tag, |scope| self.serve_in(team, scope, buffer, events, count))
    }

    /// Takes so many puts into a new buffer.
    pub(crate) fn receive<T: Element + Default>(
        self,
        team: &Team,
        tag: u64,
        len: usize,
        count: u64,
    ) -> rma::Result<Vec<T>> {
        let mut buffer = vec![T::default(); len];
        self.serve(team, tag, &mut buffer, PUTS_OK, count)?;
        Ok(buffer)
    }
}
