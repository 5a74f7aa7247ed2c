//! What a model sees of a configuration: what transformations move, and what it sees of the product.

use super::space::{DERIVED, Description};
use crate::gemm::features;
use tilewright_core::feature::Feature;
use tilewright_core::space::Values;

/// Sizes besides those of the product.
const MORE: [&str; 6] = ["side", "tile_count", "filter_bytes", "input_bytes", "product_bytes", "use_tiles"];

pub(super) fn names() -> Vec<Feature> {
    MORE.into_iter().map(Feature::size).chain(features::names()).collect()
}

/// NaN where a name has no value, which is nowhere at a legal point.
pub(super) fn append(at: &Values<'_>, out: &mut Vec<f32>) {
    let names = Description::get();
    let (derived, batch) = (at.ints::<u64, { DERIVED.len() }>(names.derived), at.ints::<u32, 1>(names.batch));
    let (Some(derived), Some([batch])) = (derived, batch) else {
        return out.resize(out.len() + self::names().len(), f32::NAN);
    };
    let [side, tile_count, filters, inputs, products, outputs, m, n] = derived;
    // A size of 0 is seen as 1.
    let sizes = [side, tile_count, filters, inputs, products];
    out.extend(sizes.into_iter().map(|x| x.max(1) as f32));
    // The share of the tiles' places that are outputs.
    out.push(outputs.max(1) as f32 / (tile_count * side * side).max(1) as f32);
    features::features([m as u32, n as u32], batch, &names.product, at, out);
}
