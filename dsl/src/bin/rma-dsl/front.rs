//! stub
use std::path::Path;
use rma_dsl::ir::{Program, Scalars, Setting};
use crate::Stop;
pub struct Loaded { pub program: Program, pub text: String, pub scalars: Scalars }
pub fn load(_: &Path, _: &[Setting], _: Option<&str>) -> Result<Loaded, Stop> { Err(Stop::Sentence("stub".into())) }
pub fn parameters(_: &Program) -> String { String::new() }
pub fn ir_text(_: &Program) -> String { String::new() }
pub fn plan_text(_: &Program) -> String { String::new() }
pub fn steps_max(_: &Program, _: &Scalars) -> Option<u64> { None }
