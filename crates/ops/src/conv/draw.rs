//! Training inputs: shapes as networks have them, on a logarithmic scale.

use super::input::{ConvInput, Direction, Layout};
use tilewright_core::computation::{Computation, InputError, InputLimits};
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Attempts at meeting the limits before sizes are halved.
const ATTEMPTS: usize = 64;
/// Doublings between the smallest and the largest limit of operations that an input is drawn under.
const DOUBLINGS: f64 = 8.0;
/// Filters, the usual ones several times.
const FILTERS: [[usize; 2]; 14] =
    [[1, 1], [1, 1], [1, 1], [3, 3], [3, 3], [3, 3], [3, 3], [5, 5], [5, 5], [7, 7], [1, 7], [3, 1], [5, 10], [2, 2]];

pub(super) type Uniform<'a> = &'a mut dyn FnMut() -> f64;

/// Fields by name.
pub(super) type Fields = Vec<(&'static str, Value)>;

pub(super) fn draw(fixed: &Config, limits: &InputLimits, uniform: Uniform<'_>) -> Result<ConvInput, InputError> {
    within(fixed, limits, uniform, &candidate)
}

/// A candidate within the limits; candidates are made of images with sides up to the given number, and as many channels. Fields
/// in `fixed` replace a candidate's own.
pub(super) fn within(
    fixed: &Config,
    limits: &InputLimits,
    uniform: Uniform<'_>,
    candidate: &dyn Fn(f64, Uniform<'_>) -> Fields,
) -> Result<ConvInput, InputError> {
    // Sizes of work on a logarithmic scale too: otherwise nearly all inputs would lie just below the limit.
    let max_flops = limits.max_flops * (-DOUBLINGS * uniform()).exp2();
    let mut largest = max_flops.powf(0.35).clamp(4.0, 512.0);
    // The last refusal, unless something was an input.
    let (mut refused, mut is_input) = (None, false);
    loop {
        let most = if largest > 1.0 { max_flops.max(1.0) } else { limits.max_flops };
        for _ in 0..ATTEMPTS {
            match with_fixed(candidate(largest, uniform), fixed) {
                Ok(input) => {
                    is_input = true;
                    let work = super::Conv.work(&input);
                    if work.flops <= most && work.bytes <= limits.max_bytes {
                        return Ok(input);
                    }
                }
                // The rest of the candidate may have been in the way of a fixed field.
                Err(error) => refused = Some(error),
            }
        }
        if largest <= 1.0 {
            let nothing =
                || InputError::new("n", "no input with the fixed fields is within the limits of flops and bytes");
            return Err(refused.filter(|_| !is_input).unwrap_or_else(nothing));
        }
        largest = (largest / 2.0).max(1.0);
    }
}

/// The fields of a candidate with the fixed ones in their place; what stands for both directions goes before either.
fn with_fixed(candidate: Fields, fixed: &Config) -> Result<ConvInput, InputError> {
    let is_fixed = |name: &str| {
        let both = name.split_once('_').map_or(name, |(both, _)| both);
        fixed.get(name).is_some() || fixed.get(both).is_some()
    };
    let own = candidate.into_iter().filter(|(name, _)| !is_fixed(name)).map(|(name, value)| (name.to_owned(), value));
    ConvInput::parse(&Config(own.chain(fixed.0.iter().cloned()).collect()))
}

fn candidate(largest: f64, uniform: Uniform<'_>) -> Fields {
    let [r, s] = FILTERS[pick(FILTERS.len(), uniform)];
    let stride = if uniform() < 0.25 { 2 } else { 1 };
    let pad = |extent: usize, on: bool| if on { extent / 2 } else { 0 };
    let is_padded = uniform() < 0.7;
    let image = |extent: usize, uniform: Uniform<'_>| size(2.0 * largest, uniform).max(extent);
    let (h, w) = match uniform() < 0.8 {
        true => [image(r.max(s), uniform); 2].into(),
        false => (image(r, uniform), image(s, uniform)),
    };
    let n = size(16.0_f64.min(largest), uniform);
    let (mut c, mut k) = (size(8.0 * largest, uniform), size(8.0 * largest, uniform));
    let mut groups = 1;
    let kind = uniform();
    if kind < 0.08 {
        (k, groups) = (c, c);
    } else if kind < 0.14 {
        groups = [2, 4, 8][pick(3, uniform)];
        (c, k) = (c.next_multiple_of(groups), k.next_multiple_of(groups));
    } else if kind < 0.2 {
        c = [1, 3, 4][pick(3, uniform)];
    }
    let layout = Layout::ALL[pick(2, uniform)];
    let direction = if uniform() < 0.7 { Direction::Forward } else { Direction::ALL[pick(3, uniform)] };
    let sizes = [("n", n), ("c", c), ("h", h), ("w", w), ("k", k), ("r", r), ("s", s), ("groups", groups)];
    let pads = [("pad_h", pad(r, is_padded)), ("pad_w", pad(s, is_padded)), ("stride_h", stride), ("stride_w", stride)];
    let sizes = sizes.into_iter().chain(pads).map(|(name, size)| (name, Value::from(size)));
    let dtype = if uniform() < 0.5 { "f32" } else { "f64" };
    let words = [("layout", layout.name()), ("direction", direction.name()), ("dtype", dtype)];
    sizes.chain(words.map(|(name, word)| (name, Value::from(word)))).collect()
}

pub(super) fn pick(n: usize, uniform: Uniform<'_>) -> usize {
    ((uniform() * n as f64) as usize).min(n - 1)
}

/// A size from 1 to `largest` on a logarithmic scale; half are rounded as real shapes are (to multiples of 8 or 16, or powers
/// of two), the rest are as they fall.
fn size(largest: f64, uniform: Uniform<'_>) -> usize {
    let x = (uniform() * largest.max(1.0).ln()).exp();
    let kind = uniform();
    let rounded = if kind < 0.25 {
        x.log2().round().exp2()
    } else if kind < 0.5 && x >= 12.0 {
        let step = if uniform() < 0.5 { 8.0 } else { 16.0 };
        (x / step).round() * step
    } else {
        x.round()
    };
    rounded.clamp(1.0, largest.max(1.0)) as usize
}
