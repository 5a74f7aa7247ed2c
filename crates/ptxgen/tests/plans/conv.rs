//! Random convolutions and random legal configurations for them.

use super::{point, spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::kernel::Kernel;
use tilewright_core::space::Config;
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ptxgen::conv::{ConvPlan, DirectConv, DirectPlan, SimtConv, WinogradConv, WinogradPlan};

/// Usual shapes, and every edge of the input type.
pub(crate) fn input(rng: &mut ChaCha8Rng) -> ConvInput {
    drawn("", rng)
}

/// The same with some fields fixed.
fn drawn(fixed: &str, rng: &mut ChaCha8Rng) -> ConvInput {
    let awkward = rng.random::<bool>();
    let limits = InputLimits { max_flops: 1e9, max_bytes: 1e7 };
    let mut uniform = || rng.random();
    let fixed = |more: &str| Config::parse(&format!("{fixed}{more}")).unwrap();
    let drawn = match awkward {
        true => Conv.draw_awkward(&fixed(""), &limits, &mut uniform),
        false => {
            let dtype = ["f32", "f16"][usize::from(uniform() < 0.5)];
            let comma = if fixed("").0.is_empty() { "" } else { "," };
            Conv.draw(&fixed(&format!("{comma}dtype={dtype}")), &limits, &mut uniform)
        }
    };
    drawn.unwrap()
}

/// So many random legal plans for a target.
pub(crate) fn plans(target: &str, count: usize, seed: u64) -> Vec<ConvPlan> {
    plans_of(&SimtConv::new(), "", target, count, seed)
}

/// The same of Winograd's convolution.
pub(crate) fn winograds(target: &str, count: usize, seed: u64) -> Vec<WinogradPlan> {
    plans_of(&WinogradConv::new(), "r=3,s=3,stride=1,dilation=1", target, count, seed)
}

/// The same of the direct convolution.
pub(crate) fn direct(target: &str, count: usize, seed: u64) -> Vec<DirectPlan> {
    plans_of(&DirectConv::new(), "", target, count, seed)
}

fn plans_of<K: Kernel<Of = Conv>>(kernel: &K, fixed: &str, target: &str, count: usize, seed: u64) -> Vec<K::Plan> {
    let (spec, mut rng) = (spec(target), ChaCha8Rng::seed_from_u64(seed));
    let mut plans = Vec::new();
    while plans.len() < count {
        let input = drawn(fixed, &mut rng);
        if kernel.accepts(&input).is_err() {
            continue;
        }
        let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
        let Some(point) = point(&space, &mut rng) else { continue };
        plans.push(kernel.plan(&spec, &input, &space.check(&point).unwrap()));
    }
    plans
}
