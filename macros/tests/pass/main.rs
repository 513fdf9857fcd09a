//! Programs that must compile, each a file with one idea; each runs as threads and as processes.
//! Never holds a mistake: `tests/ui/` does.

mod access_and_exposure;
mod early_ways_out;
mod elements;
mod exchange;
mod fields;
mod generic;
mod get_range;
mod get_value;
mod local_accesses;
mod mixed_answers;
mod nocheck;
mod offers;
mod operators;
mod ordinary_rust;
mod own_error;
mod owned_window;
mod phases;
mod ring;
mod two_kinds;
mod two_windows;
mod user_names;
