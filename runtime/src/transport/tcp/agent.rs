//! The progress agent: one thread per process that does what other ranks ask for, whatever the rank itself is doing. Never
//! looks at the sockets while somebody of the rank does, who waits for something anyway: see `driving`.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::door::Door;
use super::driving::Driving;
use super::frame::Decoder;
use super::server::OnLost;
use super::wire::Wire;
use crate::sys;

/// How long the agent runs at once where others want its core.
const TURN: Duration = Duration::from_micros(100);

/// How the requests of others are served while the rank computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// At once, by a thread that sleeps until one comes.
    #[default]
    Thread,
    /// At ticks of a clock, by a thread that sleeps between them.
    Timer(Duration),
    /// Not at all: only when the rank calls the runtime, and while it is blocked in a call.
    Polling,
    /// As `Polling`, but only while the rank waits for others to come to it, and not while it sends or waits for an answer. It
    /// is a fault that shows why that is not enough.
    PollingInWaits,
}

impl Mode {
    /// The mode that a text names: `auto`, `thread`, `polling`, `polling,poll_only_in_wait` or `timer(10ms)`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Mode, String> {
        let tick = |text: &str| {
            let number = text.strip_prefix("timer(")?.strip_suffix("ms)")?;
            number.parse().ok().filter(|&tick| tick != 0).map(Duration::from_millis)
        };
        match text {
            "auto" | "thread" => Ok(Mode::Thread),
            "polling" => Ok(Mode::Polling),
            "polling,poll_only_in_wait" => Ok(Mode::PollingInWaits),
            other => tick(other).map(Mode::Timer).ok_or_else(|| {
                "an agent is 'auto', 'thread', 'polling' or 'timer(NUMBERms)' with a positive number"
                    .to_owned()
            }),
        }
    }

    /// Whether a thread serves others while the rank computes.
    pub(crate) fn has_thread(self) -> bool {
        matches!(self, Mode::Thread | Mode::Timer(_))
    }
}

/// Starts to serve others, in the way that `mode` says.
pub(crate) fn start(
    wire: &Arc<Wire>,
    door: Door,
    rendezvous: Decoder,
    on_lost: OnLost,
    mode: Mode,
) -> io::Result<()> {
    let driving = Arc::new(Driving::new(wire, door, rendezvous, on_lost, mode)?);
    wire.drive_by(Arc::clone(&driving));
    let wire = Arc::clone(wire);
    let run = move || {
        sys::process::take_short_turns(TURN);
        match mode {
            Mode::Timer(tick) => driving.attend_at_ticks(&wire, tick),
            // Without its sockets the process can't take part, which the others see by its silence.
            Mode::Thread | Mode::Polling | Mode::PollingInWaits => drop(driving.attend_always(&wire)),
        }
    };
    if mode.has_thread() {
        thread::Builder::new().name("rma agent".to_owned()).spawn(run)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named() {
        let timer = Mode::Timer(Duration::from_millis(10));
        for (text, mode) in [
            ("auto", Mode::Thread),
            ("thread", Mode::Thread),
            ("polling", Mode::Polling),
            ("timer(10ms)", timer),
        ] {
            assert_eq!(Mode::parse(text), Ok(mode));
        }
        for text in ["", "none", "timer", "timer(0ms)", "timer(10s)", "timer(-1ms)", "polling,often"] {
            assert!(Mode::parse(text).is_err(), "{text}");
        }
    }
}
