//! # FR90: suppression-without-reason
//!
//! A comment allows a finding and does not say why, names no rule, or says something else than `allow`. It allows
//! nothing. Never reported for a comment that gives a reason behind a code.
//!
//! ## What happens
//!
//! ```fortran
//! x = buf     ! rma-lint: allow FR02
//! ```
//!
//! Whoever reads the line later can't know whether the finding was judged or only shut up. The finding stays.
//!
//! ## What to do
//!
//! - Give the reason behind the code: `! rma-lint: allow FR02 the message was received by a blocking probe before`.
//! - For one variable of several on the line: `! rma-lint: allow FR02(buf) reason`.
