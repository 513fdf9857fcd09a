//! What every emitted program contains besides its own lines: these files go into it as they stand.
//! The same files are compiled and tested here, except `exchange`, which needs the runtime.
//! Never knows a particular program.

pub mod files;
pub mod numbers;
pub mod space;
pub mod sums;

/// The files by module name, in the order in which they are emitted.
pub const FILES: [(&str, &str); 5] = [
    ("numbers", include_str!("numbers.rs")),
    ("sums", include_str!("sums.rs")),
    ("space", include_str!("space.rs")),
    ("files", include_str!("files.rs")),
    ("exchange", include_str!("exchange.rs")),
];
