//! Cases that kernels are checked on: legal configurations of odd inputs, drawn by number. The same seed and number give the same
//! case, on any device and in any order.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::problem::{AnyKernel, Problem, ProblemError};
use tilewright_core::space::{BoundSpace, Config, Point};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::verify::{Verification, Verifier, VerifyError, VerifySettings};

/// Inputs drawn for a value of a parameter that is this case's to show, before another value will do.
pub const INPUTS: u32 = 60;
/// Points drawn on each of them.
const POINTS: u32 = 24;
/// Inputs drawn for one that the kernel takes: some take one size of filters and one stride only.
const REFUSED: u32 = 4_000;

/// What cases are drawn from.
pub struct Cases<'a> {
    /// The kernel.
    pub kernel: &'a dyn AnyKernel,
    /// The facts of the device.
    pub spec: Arc<DeviceSpec>,
    /// Fields that every input has.
    pub fixed: Config,
    /// Largest input. Small ones show many configurations and every kind of edge.
    pub limits: InputLimits,
    /// Seed of all cases.
    pub seed: u64,
}

/// Something to run.
pub struct Case {
    /// The input.
    pub problem: Box<dyn Problem>,
    /// A legal configuration.
    pub point: Point,
    /// The kind of its data.
    pub filling: Filling,
    /// The seed of its data.
    pub seed: u64,
}

impl Cases<'_> {
    /// A case by its number; None where no drawn input has a legal configuration. Inputs that the kernel refuses are drawn again.
    ///
    /// Cases take turns in showing every value of every parameter: drawn at random alone, values that few rules leave (the largest
    /// tiles, many slices) would hardly be seen.
    ///
    /// # Errors
    /// Every drawn input was refused, or fields are fixed that are none of an input's.
    pub fn draw(&self, number: u64) -> Result<Option<Case>, RuntimeError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(number);
        let params = self.kernel.space().params();
        let turns: u64 = params.iter().map(|p| p.values.len() as u64).sum();
        let mut wanted = (number % turns.max(1)) as usize;
        let param = params.iter().position(|p| {
            let here = wanted < p.values.len();
            wanted -= if here { 0 } else { p.values.len() };
            here
        });
        let wanted = param.map(|param| (param, wanted as u16));
        let (mut any, mut by_default) = (None, None);
        for _ in 0..INPUTS {
            let problem = self.accepted(&mut rng)?;
            let mut drawn = |wanted| (0..POINTS).find_map(|_| point(problem.space(), wanted, &mut rng));
            match (drawn(wanted), any.is_none()) {
                (Some(point), _) => {
                    any = Some((problem, point));
                    break;
                }
                // An input without a legal configuration is possible, and says nothing about the kernel.
                (None, true) => match (drawn(None), by_default.is_none()) {
                    (Some(point), _) => any = Some((problem, point)),
                    (None, true) => by_default = problem.default_point().map(|point| (problem, point)),
                    (None, false) => {}
                },
                (None, false) => {}
            }
        }
        // Where nearly all draws are dead ends, the default is a configuration too.
        let Some((problem, point)) = any.or(by_default) else { return Ok(None) };
        let filling = problem.checked_on([Filling::Real, Filling::Exact, Filling::Special][rng.random_range(0..3)]);
        Ok(Some(Case { problem, point, filling, seed: rng.random() }))
    }

    /// An input that the kernel takes; where it takes none that is drawn, why it refused the first one.
    fn accepted(&self, rng: &mut ChaCha8Rng) -> Result<Box<dyn Problem>, RuntimeError> {
        let mut one = || {
            let fields = self.kernel.draw_awkward(&self.fixed, &self.limits, &mut || rng.random())?;
            Ok::<_, RuntimeError>(self.kernel.problem(&self.spec, &fields))
        };
        let first = match one()? {
            Err(refused @ ProblemError::Input(_)) => refused,
            other => return Ok(other?),
        };
        for _ in 1..REFUSED {
            match one()? {
                Err(ProblemError::Input(_)) => {}
                other => return Ok(other?),
            }
        }
        Err(first.into())
    }
}

impl Case {
    /// Runs it and compares what it leaves with a reference in higher precision.
    ///
    /// # Errors
    /// What the device reports.
    pub fn check(&self, device: &mut dyn Device) -> Result<Verification, VerifyError> {
        let settings = VerifySettings { fillings: vec![self.filling], seed: self.seed };
        Verifier::new(settings).check(device, &*self.problem, &self.point)
    }
}

/// A legal point, each parameter uniform among the values that the rules leave it, one of them as wanted; `None` at a dead end.
fn point(space: &BoundSpace, wanted: Option<(usize, u16)>, rng: &mut ChaCha8Rng) -> Option<Point> {
    let (mut point, mut allowed) = (Vec::new(), Vec::new());
    for depth in 0..space.params().len() {
        space.next_values(&point, &mut allowed);
        allowed.retain(|&i| wanted.is_none_or(|(param, value)| param != depth || value == i));
        point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
    }
    // A rule without parameters is nobody's last value.
    space.is_legal(&point).then_some(Point(point))
}
