//! Judges a GEMM that was written by hand: a right one, and one that forgets the last step of the reduction.

use std::error::Error;
use tilewright_core::buffer::{Buffer, Filling};
use tilewright_core::computation::Computation;
use tilewright_core::space::Config;
use tilewright_ops::gemm::{A, B, C, Gemm, GemmInput};

fn naive(input: &GemmInput, buffers: &mut [Buffer], k: usize) {
    for j in 0..input.n {
        for i in 0..input.m {
            let term = |p: usize| buffers[A].get_f64(i + p * input.lda) * buffers[B].get_f64(p + j * input.ldb);
            let sum: f64 = (0..k).map(term).sum();
            buffers[C].set_f64(i + j * input.ldc, sum);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let input = Gemm.parse(&Config::parse("m=17,n=9,k=33,lda=20")?)?;
    for (name, k) in [("right", input.k), ("one step short", input.k - 1)] {
        let mut work = Gemm.workload(&input, Filling::Real, 1);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars)?;
        naive(&input, &mut work.buffers, k);
        let verdict = expected.compare(&work.buffers);
        println!("{name}: {} wrong elements, largest relative error {:.1e}", verdict.wrong, verdict.max_rel_error);
    }
    Ok(())
}
