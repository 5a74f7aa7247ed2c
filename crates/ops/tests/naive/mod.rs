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
    BiasOfOtherAxis,
    ForgetsActivation,
    SwapsParts,
}

pub(crate) struct Naive {
    pub(crate) operands: Operands,
    pub(crate) fault: Fault,
    /// Whether it sums in f32 as tensor cores do: four products at a time, each term and the result cut.
    pub(crate) cuts: bool,
    /// Of the order of summation.
    pub(crate) seed: u64,
}

impl Naive {
    pub(crate) fn right(seed: u64) -> Self {
        Self { operands: Operands::AsTheyAre, fault: Fault::None, cuts: false, seed }
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
        let factors = if input.multiplies() { self.factors(input, buffers, from, (i, j)) } else { Vec::new() };
        let sum = if self.cuts { (self.cut(&factors), 0.0) } else { self.rounded(acc, &factors) };
        let both = |x: Complex, f: &dyn Fn(f64) -> f64| (f(x.0), f(x.1));
        let add = |x: Complex, y: Complex| round(acc, (x.0 + y.0, x.1 + y.1));
        let mut result = if input.multiplies() { round(acc, both(sum, &|x| scalars[ALPHA] * x)) } else { (0.0, 0.0) };
        if scalars[BETA] != 0.0 {
            let c = buffers[C].get(from[C] + i + j * input.ldc).unwrap();
            result = add(result, round(acc, both(c, &|x| scalars[BETA] * x)));
        }
        let bias = match input.epilogue.bias {
            Bias::None => None,
            bias => {
                let is_row = (bias == Bias::Row) ^ (self.fault == Fault::BiasOfOtherAxis);
                buffers[BIAS].get((if is_row { i } else { j }) % buffers[BIAS].len())
            }
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

    /// What is multiplied for an element, in the order of summation.
    fn factors(
        &self,
        input: &GemmInput,
        buffers: &[Buffer],
        from: [usize; 3],
        (i, j): (usize, usize),
    ) -> Vec<(Complex, Complex)> {
        let mut out = Vec::new();
        for p in order(input.k, self.seed) {
            let a = if input.layout.a_transposed() { p + i * input.lda } else { i + p * input.lda };
            let b = if input.layout.b_transposed() { j + p * input.ldb } else { p + j * input.ldb };
            let (a, b) = (buffers[A].get(from[A] + a).unwrap(), buffers[B].get(from[B] + b).unwrap());
            let conjugate =
                |x: Complex, is: bool| if is && self.fault != Fault::ForgetsConjugate { (x.0, -x.1) } else { x };
            let factors = (conjugate(a, input.layout.a_conjugated()), conjugate(b, input.layout.b_conjugated()));
            let times = match self.fault {
                Fault::LosesProduct if p == 0 => 0,
                Fault::DoublesProduct if p == 0 => 2,
                _ => 1,
            };
            out.extend(std::iter::repeat_n(factors, times));
        }
        out
    }

    /// The sum of the products, each operation rounded.
    fn rounded(&self, acc: DType, factors: &[(Complex, Complex)]) -> Complex {
        factors.iter().fold((0.0, 0.0), |sum, (a, b)| self.multiplied(acc, *a, *b, sum))
    }

    /// The sum of the products of real numbers as tensor cores make it: four and the sum so far at a time, of which each keeps 25
    /// bits of the largest, and the result 24.
    fn cut(&self, factors: &[(Complex, Complex)]) -> f64 {
        let products: Vec<f64> = factors.iter().flat_map(|(a, b)| self.products(a.0, b.0)).collect();
        let exponent = |x: f64| ((x.abs().to_bits() >> 52) as i32) - 1023;
        let kept = |x: f64, of: f64, bits: i32| {
            let unit = 2f64.powi(exponent(of) - bits + 1);
            (x / unit).trunc() * unit
        };
        products.chunks(4).fold(0.0, |sum, four| {
            let terms = || four.iter().copied().chain([sum]);
            let largest = terms().fold(0.0, |most: f64, x| most.max(x.abs()));
            let total: f64 = terms().map(|x| if largest.is_normal() { kept(x, largest, 25) } else { x }).sum();
            if total.is_normal() { kept(total, total, 24) } else { total }
        })
    }

    /// The products that are summed for one of real numbers.
    fn products(&self, a: f64, b: f64) -> Vec<f64> {
        let (a, b) = (self.parts(a), self.parts(b));
        let all = a.iter().flat_map(|x| b.iter().map(move |y| x * y));
        all.take(if self.operands == Operands::SplitInTf32 { 3 } else { 1 }).collect()
    }

    /// `sum + a b`.
    fn multiplied(&self, acc: DType, a: Complex, b: Complex, sum: Complex) -> Complex {
        if !acc.is_complex() {
            return self.products(a.0, b.0).into_iter().fold(sum, |sum, product| {
                let product = round(acc, (product, 0.0)).0;
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
