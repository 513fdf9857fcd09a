pub(crate) mod shm;
