//! Footprints: an input and its halo.
