//! Element types and alignment, as fields of inputs give them.

use tilewright_core::computation::{InputError, size_field};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// f32 and f64 throughout: what most code is for.
pub(crate) const PLAIN: [ElementTypes; 2] = [ElementTypes::all(DType::F32), ElementTypes::all(DType::F64)];

/// Bytes of an element by the field `dtype`, in the language of rules.
pub(crate) const SIZES: &str = "16 if dtype == 'c64' else 8 if dtype in ['f64', 'c32'] \
    else 2 if dtype in ['f16', 'bf16'] else 1 if dtype == 'i8' else 4";

/// Types that operands of products of matrices may have, by what may stand beside them.
const REALS: [DType; 5] = [DType::F16, DType::Bf16, DType::Tf32, DType::F32, DType::F64];
const COMPLEX: [DType; 2] = [DType::C32, DType::C64];

/// A field that is a real type.
pub(crate) fn real(fields: &Config, name: &str, default: DType) -> Result<DType, InputError> {
    among(fields, name, default, &REALS, "")
}

/// The fields `dtype`, `acc` and `out` of products: real types, complex types, or 8-bit integers that are summed in 32 bits.
pub(crate) fn of_products(fields: &Config) -> Result<ElementTypes, InputError> {
    let operands = [&REALS[..], &COMPLEX, &[DType::I8]].concat();
    let operand = among(fields, "dtype", DType::F32, &operands, "")?;
    let beside: &[DType] = match operand {
        complex if complex.is_complex() => &COMPLEX,
        integer if integer.is_integer() => &[DType::I32],
        _ => &REALS,
    };
    let usual = ElementTypes::of(operand);
    let why = format!(", with operands of {operand}");
    let accumulator = among(fields, "acc", usual.accumulator, beside, &why)?;
    Ok(ElementTypes { operand, accumulator, output: among(fields, "out", usual.output, beside, &why)? })
}

/// A field that is one of these types.
fn among(fields: &Config, name: &str, default: DType, known: &[DType], why: &str) -> Result<DType, InputError> {
    let Some(value): Option<&Value> = fields.get(name) else {
        return Ok(default);
    };
    let refused = || {
        let names: Vec<&str> = known.iter().map(|dtype| dtype.name()).collect();
        let names = match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("one of {} and {last}", others.join(", ")),
            _ => names.concat(),
        };
        InputError::not(name, value, &format!("{names}{why}"))
    };
    value.to_string().parse::<DType>().ok().filter(|dtype| known.contains(dtype)).ok_or_else(refused)
}

/// The field `align`: a power of two, and a multiple of what the elements in memory are aligned to: of complex ones, a component.
pub(crate) fn align(fields: &Config, types: ElementTypes) -> Result<usize, InputError> {
    let least = least_align(types);
    let align = size_field(fields, "align", least as u64, 64, Some(64))?;
    if align.is_power_of_two() {
        Ok(align as usize)
    } else {
        Err(InputError::new("align", format!("{align} is not a power of two within {least}..=64")))
    }
}

/// What elements in memory are aligned to.
pub(crate) fn least_align(types: ElementTypes) -> usize {
    types.operand.align().max(types.output.align())
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
