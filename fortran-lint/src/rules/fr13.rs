//! # FR13: dummy-routine-in-application
//!
//! A reason, carried in `because` by the finding that it explains: a call that was meant to keep a variable out of
//! registers leads to a procedure of the sources given. Never a finding of its own.
//!
//! ## What happens
//!
//! ```fortran
//! call MPI_WAIT(request, status, ierror)
//! call dd(buf)                             ! subroutine dd(buf); end
//! x = buf
//! ```
//!
//! An empty routine helps because the compiler cannot know that it is empty. In the same file it can, and with
//! optimisation across files it can in any file of the program.
//!
//! ## What to do
//!
//! - MPI_F_SYNC_REG with `use mpi_f08`, which belongs to the library. With `mpif.h` and `use mpi` that of MPICH 4.0 writes
//!   zero through a second argument that callers do not pass, so that it destroys memory: take a routine of your own.
//! - An empty routine compiled apart, without optimisation across files; tell the linter by `--dummy NAME`.
