//! Any bytes as a Matrix Market file: refused, or a matrix whose facts and product can be asked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_computations::matrix::market;

fuzz_target!(|bytes: &[u8]| {
    let Ok(matrix) = market::parse(bytes) else { return };
    assert_eq!(matrix.entries().count(), matrix.nonzeros());
    let _ = (matrix.longest(), matrix.diagonals_up_to(1_000));
    // A short text may name many rows.
    if matrix.rows() <= 10_000 && matrix.cols <= 10_000 {
        assert_eq!(matrix.times(&vec![1.0; matrix.cols]).len(), matrix.rows());
    }
});
