//! Element types and alignment, as fields of inputs give them.

use tilewright_core::computation::{InputError, size_field};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// f32 and f64 throughout: what most code is for.
pub(crate) const PLAIN: [ElementTypes; 2] = [ElementTypes::all(DType::F32), ElementTypes::all(DType::F64)];

/// Bytes of an element by the field `dtype`, in the language of rules.
pub(crate) const SIZES: &str = "8 if dtype == 'f64' else 2 if dtype in ['f16', 'bf16'] else 4";

/// A field that is a real type.
pub(crate) fn real(fields: &Config, name: &str, default: DType) -> Result<DType, InputError> {
    let Some(value): Option<&Value> = fields.get(name) else {
        return Ok(default);
    };
    let known = value.to_string().parse::<DType>().ok().filter(|d| !d.is_complex() && !d.is_integer());
    known.ok_or_else(|| InputError::not(name, value, "one of f16, bf16, tf32, f32 and f64"))
}

/// The field `align`: a power of two, and a multiple of the largest element in memory.
pub(crate) fn align(fields: &Config, types: ElementTypes) -> Result<usize, InputError> {
    let least = types.operand.size().max(types.output.size());
    let align = size_field(fields, "align", least as u64, 64, Some(64))?;
    if align.is_power_of_two() {
        Ok(align as usize)
    } else {
        Err(InputError::new("align", format!("{align} is not a power of two within {least}..=64")))
    }
}

/// Refuses other element types than these.
pub(crate) fn only(own: ElementTypes, known: &[ElementTypes]) -> Result<(), InputError> {
    let refuse = |name: &str, has: DType, of: fn(&ElementTypes) -> DType, among: &[ElementTypes]| {
        let mut names: Vec<&str> = among.iter().map(|t| of(t).name()).collect();
        names.dedup();
        Err(InputError::new(name, format!("there is no code for {has}: {}", names.join(" or "))))
    };
    let read: Vec<ElementTypes> = known.iter().copied().filter(|t| t.operand == own.operand).collect();
    if read.is_empty() {
        return refuse("dtype", own.operand, |t| t.operand, known);
    }
    let summed: Vec<ElementTypes> = read.iter().copied().filter(|t| t.accumulator == own.accumulator).collect();
    if summed.is_empty() {
        return refuse("acc", own.accumulator, |t| t.accumulator, &read);
    }
    if summed.iter().all(|t| t.output != own.output) {
        return refuse("out", own.output, |t| t.output, &summed);
    }
    Ok(())
}
