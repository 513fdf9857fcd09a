pub(crate) mod primitive;
