//! Helpers for the cross-crate tests. Nothing else may depend on this package.
