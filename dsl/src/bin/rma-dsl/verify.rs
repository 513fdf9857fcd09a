//! Compares a run with the reference interpreter, bit for bit. Never changes what is compared.

use std::collections::HashMap;
use std::path::Path;

use rma_dsl::interp::{Inputs, run};
use rma_dsl::ir::{Init, Type, Value};

use crate::front::Loaded;

/// Computes everything again and compares the fields that the run left in `folder`.
///
/// # Errors
/// The first difference, or why there is nothing to compare.
pub(crate) fn compare(loaded: &Loaded, folder: &Path) -> Result<(), String> {
    let outcome = run(&loaded.program, &loaded.scalars, &inputs(loaded)?)
        .map_err(|error| format!("the reference interpreter stopped: {error}"))?;
    let mut n_values = 0;
    for (field, expected) in loaded.program.fields.iter().zip(&outcome.fields) {
        let path = folder.join(format!("{}.npy", field.name));
        let found = read(&path, field.ty)?;
        if found.len() != expected.values.len() {
            return Err(format!(
                "{} has {} values, and {} in the reference interpreter",
                field.name,
                found.len(),
                expected.values.len()
            ));
        }
        for (index, (found, wanted)) in found.iter().zip(&expected.values).enumerate() {
            if bits(*found) != bits(*wanted) {
                return Err(format!(
                    "{} differs at cell ({}): {found}, and {wanted} in the reference interpreter",
                    field.name,
                    cell(index, &expected.lens)
                ));
            }
            n_values += 1;
        }
    }
    println!("verified: {n_values} values are the same bits in the reference interpreter");
    Ok(())
}

fn cell(index: usize, lens: &[usize]) -> String {
    let mut rest = index;
    let mut at: Vec<String> = Vec::new();
    for len in lens.iter().rev() {
        at.push((rest % len).to_string());
        rest /= len;
    }
    at.reverse();
    at.join(", ")
}

fn bits(value: Value) -> u64 {
    match value {
        Value::Bool(value) => u64::from(value),
        Value::I64(value) => value as u64,
        Value::U64(value) => value,
        Value::F32(value) => u64::from(value.to_bits()),
        Value::F64(value) => value.to_bits(),
    }
}

/// Files that the program's initial values come from.
fn inputs(loaded: &Loaded) -> Result<Inputs, String> {
    let mut files = HashMap::new();
    for field in &loaded.program.fields {
        for (_, init) in &field.init {
            if let Init::File(name) = init {
                files.insert(name.clone(), read(Path::new(name), field.ty)?);
            }
        }
    }
    Ok(Inputs { files, steps_max: None })
}

/// The values of a `.npy` file.
fn read(path: &Path, ty: Type) -> Result<Vec<Value>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let wrong = || format!("{} is no .npy file", path.display());
    let head = bytes.get(8..10).ok_or_else(wrong)?;
    let start = match bytes.get(6) {
        Some(1) => 10 + usize::from(u16::from_le_bytes([head[0], head[1]])),
        _ => {
            let more = bytes.get(10..12).ok_or_else(wrong)?;
            12 + u32::from_le_bytes([head[0], head[1], more[0], more[1]]) as usize
        }
    };
    let data = bytes.get(start..).ok_or_else(wrong)?;
    let eight = data.chunks_exact(8).map(|word| word.try_into().expect("chunks of eight"));
    Ok(match ty {
        Type::F32 => data
            .chunks_exact(4)
            .map(|word| Value::F32(f32::from_le_bytes(word.try_into().expect("chunks of four"))))
            .collect(),
        Type::I64 => eight.map(|word| Value::I64(i64::from_le_bytes(word))).collect(),
        Type::U64 => eight.map(|word| Value::U64(u64::from_le_bytes(word))).collect(),
        Type::F64 | Type::Bool => eight.map(|word| Value::F64(f64::from_le_bytes(word))).collect(),
    })
}
