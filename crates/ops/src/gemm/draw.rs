//! Training inputs: shapes on a logarithmic scale, awkward ones among them.

use super::accuracy::Accuracy;
use super::batch::{Batch, STRIDES};
use super::input::{GemmInput, ScalarClass};
use super::layout::Layout;
use crate::types;
use tilewright_core::computation::{InputError, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::space::Config;

/// Attempts at meeting the limits before sizes are halved.
const ATTEMPTS: usize = 64;
/// Doublings between the smallest and the largest limit of operations that an input is drawn under.
const DOUBLINGS: f64 = 8.0;

pub(super) fn draw(
    fixed: &Config,
    limits: &InputLimits,
    uniform: &mut dyn FnMut() -> f64,
) -> Result<GemmInput, InputError> {
    within(limits, uniform, |largest, uniform| candidate(fixed, largest, uniform))
}

/// A candidate within the limits; candidates are made with sizes up to the given one.
pub(super) fn within(
    limits: &InputLimits,
    uniform: &mut dyn FnMut() -> f64,
    candidate: impl Fn(f64, &mut dyn FnMut() -> f64) -> Result<GemmInput, InputError>,
) -> Result<GemmInput, InputError> {
    // Sizes of work on a logarithmic scale too: otherwise nearly all inputs would lie just below the limit.
    let max_flops = limits.max_flops * (-DOUBLINGS * uniform()).exp2();
    // Largest size such that one thin dimension still allows it; halved while nothing fits.
    let mut largest = max_flops.sqrt().clamp(16.0, 65_536.0);
    loop {
        // Where sizes are fixed, they need only keep the caller's limit.
        let most = if largest > 1.0 { max_flops.max(1.0) } else { limits.max_flops };
        for _ in 0..ATTEMPTS {
            let input = candidate(largest, uniform)?;
            let products = f64::from(input.batch.count);
            let flops = input.flops_of_one() * input.m as f64 * input.n as f64 * input.k as f64 * products;
            if flops <= most && input.total_bytes() as f64 <= limits.max_bytes {
                return Ok(input);
            }
        }
        if largest <= 1.0 {
            return Err(InputError::new("m", "no input with the fixed fields is within the limits of flops and bytes"));
        }
        largest = (largest / 2.0).max(1.0);
    }
}

fn candidate(fixed: &Config, largest: f64, uniform: &mut dyn FnMut() -> f64) -> Result<GemmInput, InputError> {
    let sizes = [(); 3].map(|()| size(largest, uniform));
    let layout = Layout::ALL[pick(4, uniform)];
    let dtype = if uniform() < 0.5 { DType::F32 } else { DType::F64 };
    let mut input = GemmInput::new(sizes[0], sizes[1], sizes[2], dtype, layout);
    if uniform() < 0.25 {
        input.beta = if uniform() < 0.5 { ScalarClass::One } else { ScalarClass::Other };
    }
    if uniform() < 0.1 {
        input.alpha = ScalarClass::Other;
    }
    let padded = uniform() < 0.15 && STRIDES.iter().all(|name| fixed.get(name).is_none());
    let pad = 1 + pick(32, uniform);
    let mut input = with_fixed(suited(input, fixed, uniform)?, fixed, &["ld"])?;
    if padded {
        for (name, ld) in [("lda", &mut input.lda), ("ldb", &mut input.ldb), ("ldc", &mut input.ldc)] {
            *ld += if fixed.get(name).is_none() { pad } else { 0 };
        }
        // Products of a batch that is fixed lie as far apart as padded columns take.
        input.batch = Batch::tight(input.batch.count, &input);
    }
    Ok(input)
}

/// A candidate in real types as one of the types that are fixed, of which some have more layouts and some fewer scalars.
pub(super) fn suited(
    mut input: GemmInput,
    fixed: &Config,
    uniform: &mut dyn FnMut() -> f64,
) -> Result<GemmInput, InputError> {
    if fixed.get("dtype").is_some() {
        input.types = types::of_products(fixed)?;
    } else {
        match Accuracy::fixed(fixed).own_types() {
            [] => return Ok(input),
            [one] => input.types = (*one).into(),
            several => input.types = several[pick(several.len(), uniform)].into(),
        }
    }
    let layouts = Layout::every(input.dtype());
    if layouts.len() > Layout::ALL.len() {
        input.layout = layouts[pick(layouts.len(), uniform)];
    }
    if input.dtype().is_integer() {
        (input.alpha, input.beta) = [input.alpha, input.beta].map(of_integers).into();
    }
    Ok(input)
}

/// A class of scalars as products of integers have it.
pub(super) fn of_integers(class: ScalarClass) -> ScalarClass {
    if class == ScalarClass::Other { ScalarClass::One } else { class }
}

/// The input with fixed fields in place of its own. Words with one of the prefixes follow from the others unless they are fixed
/// themselves.
pub(super) fn with_fixed(input: GemmInput, fixed: &Config, derived: &[&str]) -> Result<GemmInput, InputError> {
    let mut fields = input.fields();
    for (name, value) in &fixed.0 {
        match fields.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, v)) => *v = value.clone(),
            None => fields.0.push((name.clone(), value.clone())),
        }
    }
    fields.0.retain(|(n, _)| !derived.iter().any(|prefix| n.starts_with(prefix)) || fixed.get(n).is_some());
    GemmInput::parse(&fields)
}

pub(super) fn pick(n: usize, uniform: &mut dyn FnMut() -> f64) -> usize {
    ((uniform() * n as f64) as usize).min(n - 1)
}

/// A size from 1 to `largest` on a logarithmic scale; half are rounded as real shapes are (to multiples of 16 or 32, or
/// powers of two), a tenth lie one beside a power of two, the rest are as they fall.
fn size(largest: f64, uniform: &mut dyn FnMut() -> f64) -> usize {
    let x = (uniform() * largest.ln()).exp();
    let power = x.log2().round().exp2();
    let kind = uniform();
    let rounded = if kind < 0.2 {
        power
    } else if kind < 0.5 && x >= 24.0 {
        let step = if uniform() < 0.5 { 16.0 } else { 32.0 };
        (x / step).round() * step
    } else if kind < 0.6 {
        if uniform() < 0.5 { power + 1.0 } else { power - 1.0 }
    } else {
        x.round()
    };
    rounded.clamp(1.0, largest) as usize
}
