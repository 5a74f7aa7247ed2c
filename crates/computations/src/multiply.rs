//! PHiPAC's three matrix multiplications, C = A B: tiled for registers; also for the first cache; also for the second.

mod tiles;

use crate::description::{DataFeature, Description, Failure, OperationMix, Routine, Variant, size, spec};
use crate::device::Device;
use crate::isa::on_isa;
use crate::matrix::{error_bound, exact_sum};
use crate::source::{Field, Generator};
use crate::spmv::fill_vector;
use std::sync::{Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role, View};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// Sizes of a product, row-major: `a` of m x k, `b` of k x n.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sizes {
    /// Rows of the product.
    pub m: usize,
    /// Columns of the product.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
}

/// Sizes and elements.
#[derive(Clone, Copy)]
struct Factors<'a> {
    m: usize,
    n: usize,
    k: usize,
    a: &'a [f64],
    b: &'a [f64],
}

/// How far a multiplication is tiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tiling {
    Registers,
    First,
    Second,
}

/// Dense matrix times matrix: `a`, `b`, and `c`.
pub struct Multiply;

struct Run {
    sizes: Sizes,
    tiling: Tiling,
    panels: Mutex<tiles::Panels>,
}

fn prepare(sizes: &Sizes, tiling: Tiling) -> Box<dyn Routine> {
    Box::new(Run { sizes: *sizes, tiling, panels: Mutex::default() })
}

impl Routine for Run {
    /// One thread, whatever the device has, as PHiPAC.
    fn run(&self, device: &Device, inputs: &[View<'_>], output: &mut View<'_>) -> Result<(), Failure> {
        let (isa, Sizes { m, n, k }, c) = (device.isa(), self.sizes, output.as_mut_slice::<f64>());
        let f = &Factors { m, n, k, a: inputs[0].as_slice(), b: inputs[1].as_slice() };
        let panels = &mut *self.panels.lock().unwrap_or_else(PoisonError::into_inner);
        c.fill(0.0);
        match (self.tiling, isa.fuses()) {
            (Tiling::Registers, true) => on_isa!(isa, tiles::registers::<true>(f, c)),
            (Tiling::Registers, false) => on_isa!(isa, tiles::registers::<false>(f, c)),
            (Tiling::First, true) => on_isa!(isa, tiles::first::<true>(f, c)),
            (Tiling::First, false) => on_isa!(isa, tiles::first::<false>(f, c)),
            (Tiling::Second, true) => on_isa!(isa, tiles::second::<true>(f, c, panels)),
            (Tiling::Second, false) => on_isa!(isa, tiles::second::<false>(f, c, panels)),
        }
        Ok(())
    }
}

fn operations(f: &Sizes, moved: f64) -> OperationMix {
    let products = (f.m * f.n * f.k) as f64;
    OperationMix {
        dp_flops: 2.0 * products,
        streamed: moved,
        cached: products / 2.0,
        other: products / 16.0,
        ..OperationMix::default()
    }
}

/// Elements of both factors.
fn elements(f: &Sizes) -> f64 {
    (f.m * f.k + f.k * f.n) as f64
}

impl Description for Multiply {
    const NAME: &'static str = "multiply";
    const FIELD: &'static str = "factors";
    const DRAWN: (f64, f64) = (16.0, 640_000.0);
    const ELEMENT_BYTES: f64 = 8.0;
    type Data = Sizes;

    fn generators() -> Vec<Generator<Sizes>> {
        vec![Generator {
            name: "random",
            fields: vec![Field::whole("m", 0, 1 << 14), Field::whole("n", 0, 1 << 14), Field::whole("k", 0, 1 << 14)],
            elements: |n| n.real("m") * n.real("k") + n.real("k") * n.real("n") + n.real("m") * n.real("n"),
            make: |n| Sizes { m: n.whole("m"), n: n.whole("n"), k: n.whole("k") },
            // The paper's sizes go to 800. Half of the inputs have all sizes large or small alike, the others mostly small ones.
            draw: |dice, elements| {
                let (even, most) = (dice.chance(0.5), elements.sqrt().max(4.0));
                let mut one = || if even { dice.between(most.min(16.0), most) } else { dice.log(4.0, most) };
                [one(), one(), one()].map(f64::round).to_vec()
            },
        }]
    }

    fn awkward() -> &'static [&'static str] {
        &["m=0,n=3,k=2", "m=3,n=2,k=0", "m=1,n=1,k=1", "m=17,n=33,k=65", "m=197,n=19,k=195"]
    }

    fn work(f: &Sizes) -> Work {
        let bytes = 8.0 * (elements(f) + (f.m * f.n) as f64);
        Work { flops: 2.0 * (f.m * f.n * f.k) as f64, bytes }
    }

    fn features() -> Vec<DataFeature<Sizes>> {
        vec![size("m", |f| f.m as f64), size("n", |f| f.n as f64), size("k", |f| f.k as f64)]
    }

    fn specs(f: &Sizes) -> Vec<BufferSpec> {
        vec![
            spec("a", DType::F64, f.m * f.k, Role::In),
            spec("b", DType::F64, f.k * f.n, Role::In),
            spec("c", DType::F64, f.m * f.n, Role::Out),
        ]
    }

    fn fill(_: &Sizes, filling: Filling, seed: u64, buffers: &mut [Buffer]) {
        fill_vector(filling, seed, buffers[0].as_mut_slice());
        fill_vector(filling, seed.wrapping_add(1 << 40), buffers[1].as_mut_slice());
    }

    fn reference(f: &Sizes, before: &Buffers) -> ExpectedBuffer {
        let (a, b) = (before[0].as_slice::<f64>(), before[1].as_slice::<f64>());
        let element = |at: usize| {
            let (row, column) = (at / f.n, at % f.n);
            exact_sum((0..f.k).map(|p| (a[row * f.k + p], b[p * f.n + column])), 0.0)
        };
        let (values, bounds) = (0..f.m * f.n).map(element).map(error_bound).unzip();
        ExpectedBuffer { index: 2, values, bounds }
    }

    fn variants() -> Vec<Variant<Sizes>> {
        vec![
            Variant::new("registers", |f, _| prepare(f, Tiling::Registers), |f| operations(f, 4.0 * elements(f))),
            Variant::new("l1", |f, _| prepare(f, Tiling::First), |f| operations(f, 2.0 * elements(f))),
            Variant::new("l1-l2", |f, _| prepare(f, Tiling::Second), |f| operations(f, 3.0 * elements(f))),
        ]
    }
}
