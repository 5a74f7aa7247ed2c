//! Complex products by three real ones.

use super::super::*;
use crate::kernel::CpuGemm;
use crate::proofs::device;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::{Accuracy, Layout};

fn product((m, n, k): (usize, usize, usize), dtype: DType, layout: Layout) -> GemmInput {
    GemmInput { accuracy: Accuracy::ThreeM, ..GemmInput::new(m, n, k, dtype, layout) }
}

fn default_of(vec_max: i64, input: &GemmInput) -> Config {
    let problem = Bound::new(Arc::new(CpuGemm::three_m()), Arc::new(device(vec_max, 1)), input.clone()).unwrap();
    problem.space().config(&problem.default_point().unwrap())
}

/// Values of these parameters, side by side.
fn said(config: &Config, names: &str) -> String {
    let values: Vec<String> = names.split(' ').map(|name| config.get(name).unwrap().to_string()).collect();
    values.join(" ")
}

#[test]
fn tiles_are_pairs_of_vectors_and_the_other_side_is_copied() {
    let tile =
        |vec_max, dtype| said(&default_of(vec_max, &product((700, 600, 500), dtype, Layout::Nt)), "m_s n_s pack_b");
    assert_eq!([tile(32, DType::C32), tile(32, DType::C64)], ["8 4 1", "4 4 1"]);
    assert_eq!([tile(64, DType::C32), tile(64, DType::C64)], ["32 4 1", "16 4 1"]);
}

#[test]
fn a_long_operand_along_k_is_turned() {
    let axis = |size, layout| said(&default_of(32, &product(size, DType::C32, layout)), "axis pack_a");
    assert_eq!([axis((2560, 64, 2560), Layout::Tn), axis((64, 2560, 2560), Layout::Nn)], ["m 1", "n 1"]);
    // Of one that lies along vectors of 16-byte elements, lines of several panels are copied at once.
    let block = |dtype| said(&default_of(32, &product((2560, 32, 2560), dtype, Layout::Nn)), "order m_l");
    assert_eq!([block(DType::C64), block(DType::C32)], ["broadcast 128", "vector 8"]);
}

#[test]
fn vectors_of_a_line_that_few_columns_read_are_loaded_where_they_lie() {
    let copies = |(vec_max, n), layout| {
        said(&default_of(vec_max, &product((2560, n, 2560), DType::C64, layout)), "pack_a prefetch")
    };
    assert_eq!([copies((64, 32), Layout::Nn), copies((64, 200), Layout::Nn)], ["0 8", "0 8"]);
    assert_eq!(
        [copies((32, 32), Layout::Nn), copies((64, 300), Layout::Nn), copies((64, 200), Layout::Tn)],
        ["1 0"; 3]
    );
}

#[test]
fn past_vectors_of_a_line_they_lead_for_more_products() {
    let leads = |size, layout| {
        [DType::C32, DType::C64]
            .map(|dtype| CpuGemm::three_m().suits(&device(64, 1), &product(size, dtype, layout)) > 0.0)
    };
    assert_eq!(
        [leads((700, 600, 500), Layout::Nt), leads((900, 900, 8), Layout::Nt), leads((2560, 16, 2560), Layout::Nn)],
        [[true; 2]; 3]
    );
    assert_eq!(
        [leads((900, 900, 4), Layout::Nt), leads((2560, 16, 2560), Layout::Tn), leads((2560, 2, 2560), Layout::Nn)],
        [[false; 2]; 3]
    );
    assert_eq!([leads((50, 50, 50), Layout::Nt), leads((32, 32, 60_000), Layout::Nt)], [[false, true]; 2]);
    assert_eq!([leads((50, 50, 50), Layout::Tn), leads((64, 64, 60_000), Layout::Nt)], [[false; 2], [true; 2]]);
}

#[test]
fn they_lead_where_much_is_multiplied_for_what_is_read() {
    let leads = |size, layout| {
        let suits = |dtype| CpuGemm::three_m().suits(&device(32, 1), &product(size, dtype, layout)) > 0.0;
        (suits(DType::C32), suits(DType::C64))
    };
    assert_eq!(leads((700, 600, 500), Layout::Nt), (true, true));
    assert_eq!(leads((2560, 16, 2560), Layout::Nn), (true, false));
    assert_eq!(
        [leads((2560, 64, 2560), Layout::Tn), leads((2560, 16, 2560), Layout::Tn)],
        [(true, true), (false, false)]
    );
    assert_eq!([leads((900, 900, 32), Layout::Nt), leads((900, 900, 8), Layout::Nt)], [(true, true), (false, false)]);
    assert_eq!([leads((32, 32, 60_000), Layout::Nt), leads((50, 50, 50), Layout::Nt)], [(false, false); 2]);
}
