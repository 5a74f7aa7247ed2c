//! Random convolutions and random legal configurations for them.

use super::{point, spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::kernel::Kernel;
use tilewright_core::space::Config;
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ptxgen::conv::{ConvPlan, SimtConv};

/// Usual shapes, and every edge of the input type.
pub(crate) fn input(rng: &mut ChaCha8Rng) -> ConvInput {
    let awkward = rng.random::<bool>();
    let limits = InputLimits { max_flops: 1e9, max_bytes: 1e7 };
    let mut uniform = || rng.random();
    let drawn = match awkward {
        true => Conv.draw_awkward(&Config(Vec::new()), &limits, &mut uniform),
        false => {
            let dtype = ["f32", "f16"][usize::from(uniform() < 0.5)];
            Conv.draw(&Config(vec![("dtype".into(), dtype.into())]), &limits, &mut uniform)
        }
    };
    drawn.unwrap()
}

/// So many random legal plans for a target.
pub(crate) fn plans(target: &str, count: usize, seed: u64) -> Vec<ConvPlan> {
    let (kernel, spec) = (SimtConv::new(), spec(target));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut plans = Vec::new();
    while plans.len() < count {
        let input = input(&mut rng);
        let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
        let Some(point) = point(&space, &mut rng) else { continue };
        plans.push(kernel.plan(&spec, &input, &space.check(&point).unwrap()));
    }
    plans
}
