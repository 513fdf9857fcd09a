//! # FR18: remedy-lost-on-the-way
//!
//! ASYNCHRONOUS, VOLATILE or COMMON protects the actual argument or the dummy argument, but not both: on the other side of
//! the call the compiler knows nothing of it. It is never a finding of its own: it rides, as a reason, on the finding of
//! the hazard that the remedy fails to remove.
//!
//! ## What happens
//!
//! ```fortran
//! real, asynchronous :: field(100)
//! call receive(field)
//! …
//! subroutine receive(buf)
//!   real :: buf(100)                       ! a local, for all that the compiler of this routine knows
//!   call MPI_IRECV(buf, 100, MPI_REAL, 0, 7, comm, request, ierror)
//!   call MPI_WAIT(request, status, ierror)
//!   total = sum(buf)                       ! may use registers from before the wait
//! end subroutine
//! ```
//!
//! The other way round, a wrapper whose dummy argument is ASYNCHRONOUS protects nothing in a caller whose variable is not:
//! with gfortran 12 the interface of `mpi_f08` alone did not help.
//!
//! ## What to do
//!
//! - With `mpif.h`: a COMMON block that both declare, or an opaque call with the buffer on the side of the access.
//! - With `use mpi` and `use mpi_f08`: give the attribute to both, the actual and the dummy argument:
//!
//!   ```fortran
//!   real, asynchronous :: buf(100)
//!   ```
