//! C ABI, `rma.h` and the Fortran module over the `rma` runtime. Holds nothing, and never more than translations.
