//! An epoch on a type.

use rma::{Rank, Window, rma_epoch};

#[rma_epoch(fence(u))]
pub struct Body;

fn main() {}
