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

/// Starts the agent of a process.
pub(crate) fn start(wire: &Arc<Wire>, door: Door, rendezvous: Decoder, on_lost: OnLost) -> io::Result<()> {
    let driving = Arc::new(Driving::new(wire, door, rendezvous, on_lost)?);
    wire.drive_by(Arc::clone(&driving));
    let wire = Arc::clone(wire);
    thread::Builder::new().name("rma agent".to_owned()).spawn(move || {
        sys::process::take_short_turns(TURN);
        // Without its sockets the process can't take part, which the others see by its silence.
        let _ = driving.attend_always(&wire);
    })?;
    Ok(())
}
