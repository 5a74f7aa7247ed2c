//! The products of DeepBench's list for training and inference on servers, by the layers that they come from.

use super::Shape;
use tilewright_ops::gemm::Layout::{self, Nn, Nt, Tn};

/// Forward and backward of a layer: A as it is, and transposed.
const BOTH: [Layout; 2] = [Nn, Tn];

/// Every distinct shape of the list, each with the layouts that it has there.
pub(super) fn shapes() -> Vec<Shape> {
    let mut all = Vec::new();
    let mut add = |family: &str, m: usize, n: usize, k: usize, layouts: &[Layout]| {
        let one = |layout: &Layout| (format!("{family}-{m}x{n}x{k}-{layout}"), [m, n, k], *layout);
        all.extend(layouts.iter().map(one));
    };
    for size in [1760, 2048, 2560, 4096] {
        for batch in [16, 32, 64, 128, 7000] {
            add("recurrent", size, batch, size, &BOTH);
        }
        add("recurrent", size, 7133, size, &[Nt]);
        // Output layers over characters and words.
        add("softmax", 5124, 9124, size, &BOTH);
        add("softmax", 35, 8457, size, &BOTH);
    }
    for (size, gates, long) in [(2560, 7680, 5481), (1024, 3072, 7435)] {
        for batch in [16, 32, 64, 128] {
            add("gates", gates, batch, size, &BOTH);
        }
        add("gates", gates, long, size, &[Nt]);
    }
    for size in [1536, 2048, 2816] {
        for batch in [16, 32] {
            add("gates", 3 * size, batch, size, &BOTH);
        }
    }
    for steps in [24_000, 48_000] {
        for size in [1024, 1536, 2048, 2560, 2816] {
            add("sequence", 3 * size, steps, size, &BOTH);
        }
        for (side, size) in [512, 1024].into_iter().flat_map(|side| [1530, 1536, 2048, 2560, 2816].map(|s| (side, s))) {
            add("sequence", side, steps, size, &BOTH);
        }
    }
    for side in [512, 1024] {
        for batch in [8, 16] {
            add("speaker", side, batch, 500_000, &BOTH);
        }
        for batch in [16, 32] {
            add("speaker", side, batch, 512, &[Nn, Nt]);
        }
    }
    add("speaker", 1024, 700, 512, &BOTH);
    all
}
