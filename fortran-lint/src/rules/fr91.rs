//! # FR91: suppression-without-effect
//!
//! A comment allows a finding that there is not: the code was mended, the line has moved, or the rule has another code.
//! Never reported for rules that did not run because of `--select` or `--ignore`.
//!
//! ## What happens
//!
//! ```fortran
//! ! rma-lint: allow FR02 the caller keeps buf in COMMON
//! call work(other)
//! ```
//!
//! A comment on a line of its own concerns the next line that is not all comment, a comment behind a statement its own
//! line. What stands there without need would hide the next finding on that line.
//!
//! ## What to do
//!
//! - Take the comment away, or put it where the finding is.
