//! C ABI, `rma.h` and the Fortran module over the `rma` runtime. Empty so far: holds no call yet.
