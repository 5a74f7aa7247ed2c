//! The textbook in the accumulator's type, in any order, with faults to be found.

use tilewright_core::buffer::Buffer;
use tilewright_core::dtype::DType;
use tilewright_core::element::Complex;
use tilewright_ops::gemm::{A, ALPHA, Activation, B, BETA, BIAS, Bias, C, GemmInput};

/// What is done to operands before they are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    AsTheyAre,
    RoundedToTf32,
    /// Their two parts of tf32, three products of them.
    SplitInTf32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    ForgetsConjugate,
    LosesProduct,
    DoublesProduct,
    ForgetsBias,
    ForgetsActivation,
    SwapsParts,
}

pub(crate) struct Naive {
    pub(crate) operands: Operands,
    pub(crate) fault: Fault,
    /// Of the order of summation.
    pub(crate) seed: u64,
}

impl Naive {
    pub(crate) fn right(seed: u64) -> Self {
        Self { operands: Operands::AsTheyAre, fault: Fault::None, seed }
    }

    pub(crate) fn run(&self, input: &GemmInput, buffers: &mut [Buffer], scalars: &[f64]) {
        for product in 0..input.batch.count {
            let from = input.batch.strides.map(|stride| (stride * u64::from(product)) as usize);
            for (i, j) in (0..input.m).flat_map(|i| (0..input.n).map(move |j| (i, j))) {
                let at = from[C] + i + j * input.ldc;
                let result = self.element(input, (buffers, scalars), from, (i, j));
                buffers[C].set(at, result).unwrap();
            }
        }
    }

    fn element(
        &self,
        input: &GemmInput,
        (buffers, scalars): (&[Buffer], &[f64]),
        from: [usize; 3],
        (i, j): (usize, usize),
    ) -> Complex {
        let acc = input.types.accumulator;
        let mut sum = (0.0, 0.0);
        for p in order(input.k, self.seed).into_iter().filter(|_| input.multiplies()) {
            let a = if input.layout.a_transposed() { p + i * input.lda } else { i + p * input.lda };
            let b = if input.layout.b_transposed() { j + p * input.ldb } else { p + j * input.ldb };
            let (a, b) = (buffers[A].get(from[A] + a).unwrap(), buffers[B].get(from[B] + b).unwrap());
            let conjugate =
                |x: Complex, is: bool| if is && self.fault != Fault::ForgetsConjugate { (x.0, -x.1) } else { x };
            let (a, b) = (conjugate(a, input.layout.a_conjugated()), conjugate(b, input.layout.b_conjugated()));
            let times = match self.fault {
                Fault::LosesProduct if p == 0 => 0,
                Fault::DoublesProduct if p == 0 => 2,
                _ => 1,
            };
            (0..times).for_each(|_| sum = self.multiplied(acc, a, b, sum));
        }
        let both = |x: Complex, f: &dyn Fn(f64) -> f64| (f(x.0), f(x.1));
        let add = |x: Complex, y: Complex| round(acc, (x.0 + y.0, x.1 + y.1));
        let mut result = if input.multiplies() { round(acc, both(sum, &|x| scalars[ALPHA] * x)) } else { (0.0, 0.0) };
        if scalars[BETA] != 0.0 {
            let c = buffers[C].get(from[C] + i + j * input.ldc).unwrap();
            result = add(result, round(acc, both(c, &|x| scalars[BETA] * x)));
        }
        let bias = match input.epilogue.bias {
            Bias::None => None,
            Bias::Row => buffers[BIAS].get(i),
            Bias::Column => buffers[BIAS].get(j),
        };
        if let Some(bias) = bias.filter(|_| self.fault != Fault::ForgetsBias) {
            result = add(result, bias);
        }
        let result = if self.fault == Fault::SwapsParts { (result.1, result.0) } else { result };
        match input.epilogue.activation {
            Activation::Relu if self.fault != Fault::ForgetsActivation => {
                both(result, &|x| if x > 0.0 { x } else { 0.0 })
            }
            _ => result,
        }
    }

    /// `sum + a b`.
    fn multiplied(&self, acc: DType, a: Complex, b: Complex, sum: Complex) -> Complex {
        if !acc.is_complex() {
            let products = self.parts(a.0).into_iter().flat_map(|x| self.parts(b.0).into_iter().map(move |y| (x, y)));
            let kept = if self.operands == Operands::SplitInTf32 { 3 } else { 1 };
            return products.take(kept).fold(sum, |sum, (x, y)| {
                let product = round(acc, (x * y, 0.0)).0;
                round(acc, (sum.0 + product, 0.0))
            });
        }
        let one = |x: f64, y: f64| round(acc, (x * y, 0.0)).0;
        let re = round(acc, (one(a.0, b.0) - one(a.1, b.1), 0.0)).0;
        let im = round(acc, (one(a.0, b.1) + one(a.1, b.0), 0.0)).0;
        round(acc, (sum.0 + re, sum.1 + im))
    }

    fn parts(&self, x: f64) -> Vec<f64> {
        let first = round(DType::Tf32, (x, 0.0)).0;
        match self.operands {
            Operands::AsTheyAre => vec![x],
            Operands::RoundedToTf32 => vec![first],
            Operands::SplitInTf32 if x.is_finite() => vec![first, round(DType::Tf32, (x - first, 0.0)).0],
            Operands::SplitInTf32 => vec![first, 0.0],
        }
    }
}

/// The nearest number of a type.
fn round(dtype: DType, x: Complex) -> Complex {
    let mut one = Buffer::zeroed(dtype, 1);
    one.set(0, x).unwrap();
    one.get(0).unwrap()
}

/// A permutation.
fn order(k: usize, seed: u64) -> Vec<usize> {
    let key = |p: usize| (p as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by_key(|&p| key(p));
    order
}
