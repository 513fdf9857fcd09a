pub(crate) mod atomic;
pub(crate) mod copy;
