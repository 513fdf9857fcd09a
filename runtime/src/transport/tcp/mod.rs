//! Reaching ranks that share no memory: authenticated connections that carry frames. Never knows windows or epochs; what a
//! frame asks for is done by whoever has registered for it.
//!
//! A rank opens one connection to every rank that it has something to say to: its *link*. On a link the rank that opened it
//! sends, and what comes back is replies. Whoever calls sends on the link and reads its replies himself, so that a request
//! costs one round trip and no change of threads at the caller. The other ends of all links are the *server half* of a
//! process, which whoever waits for something looks after meanwhile, and the *agent* otherwise: one thread per process that
//! sleeps until a connection has something for it. The server half never waits for anybody.
//!
//! Nothing but a handshake of fixed length is read from somebody who has not shown that he knows the secret of the job.
#![forbid(unsafe_code)]

pub(crate) mod agent;
mod connection;
pub(crate) mod door;
pub(crate) mod driving;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod link;
pub(crate) mod mailbox;
pub(crate) mod rendezvous;
mod server;
pub(crate) mod socket;
pub(crate) mod tally;
pub(crate) mod wire;
