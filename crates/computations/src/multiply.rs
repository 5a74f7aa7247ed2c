//! PHiPAC's three matrix multiplications, C = A B: tiled for registers; also for the first cache; also for the second.

mod tiles;

use crate::computation::{Computation, Failure, InputFeature, Named, Prepared, Ready, Variant, Work};
use crate::device::Device;
use crate::generate::{self, rng};
use rand::Rng;

/// Two matrices, row-major: `a` of m x k, `b` of k x n.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// Rows of the product.
    pub m: usize,
    /// Columns of the product.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// The left factor.
    pub a: Vec<f64>,
    /// The right factor.
    pub b: Vec<f64>,
}

impl Factors {
    /// Seeded factors.
    pub fn random(m: usize, n: usize, k: usize, seed: u64) -> Self {
        let mut rng = rng("factors", seed);
        let mut draw = |count: usize| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        Self { m, n, k, a: draw(m * k), b: draw(k * n) }
    }
}

/// How far a multiplication is tiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tiling {
    Registers,
    First,
    Second,
}

/// Dense matrix times matrix.
pub struct Multiply;

struct Run<'a> {
    input: &'a Factors,
    c: Vec<f64>,
    tiling: Tiling,
    panels: tiles::Panels,
}

fn prepare(input: &Factors, tiling: Tiling) -> Ready<'_, Vec<f64>> {
    Box::new(Run { input, c: vec![f64::NAN; input.m * input.n], tiling, panels: tiles::Panels::default() })
}

impl Prepared<Vec<f64>> for Run<'_> {
    /// One thread, whatever the device has, as PHiPAC.
    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        let (isa, f, c) = (device.isa(), self.input, self.c.as_mut_slice());
        c.fill(0.0);
        match (self.tiling, isa.fuses()) {
            (Tiling::Registers, true) => isa.run(
                #[inline(always)]
                || tiles::registers::<true>(f, c),
            ),
            (Tiling::Registers, false) => isa.run(
                #[inline(always)]
                || tiles::registers::<false>(f, c),
            ),
            (Tiling::First, true) => isa.run(
                #[inline(always)]
                || tiles::first::<true>(f, c),
            ),
            (Tiling::First, false) => isa.run(
                #[inline(always)]
                || tiles::first::<false>(f, c),
            ),
            (Tiling::Second, true) => isa.run(
                #[inline(always)]
                || tiles::second::<true>(f, c, &mut self.panels),
            ),
            (Tiling::Second, false) => isa.run(
                #[inline(always)]
                || tiles::second::<false>(f, c, &mut self.panels),
            ),
        }
        Ok(())
    }

    fn output(&self) -> Vec<f64> {
        self.c.clone()
    }
}

fn work(f: &Factors, moved: f64) -> Work {
    let products = (f.m * f.n * f.k) as f64;
    Work {
        dp_flops: 2.0 * products,
        streamed: moved,
        cached: products / 2.0,
        other: products / 16.0,
        ..Work::default()
    }
}

impl Computation for Multiply {
    const NAME: &'static str = "multiply";
    type Input = Factors;
    type Output = Vec<f64>;

    fn variants() -> Vec<Variant<Factors, Vec<f64>>> {
        let legal = |_: &Factors| Ok(());
        vec![
            Variant {
                name: "registers",
                legal,
                prepare: |f| prepare(f, Tiling::Registers),
                work: |f| work(f, (f.m * f.k + f.k * f.n) as f64 * 4.0),
            },
            Variant {
                name: "l1",
                legal,
                prepare: |f| prepare(f, Tiling::First),
                work: |f| work(f, (f.m * f.k + f.k * f.n) as f64 * 2.0),
            },
            Variant {
                name: "l1-l2",
                legal,
                prepare: |f| prepare(f, Tiling::Second),
                work: |f| work(f, (f.m * f.k + f.k * f.n) as f64 * 3.0),
            },
        ]
    }

    fn features() -> Vec<InputFeature<Factors>> {
        vec![
            InputFeature { name: "m", flag: false, of: |f| f.m as f64 },
            InputFeature { name: "n", flag: false, of: |f| f.n as f64 },
            InputFeature { name: "k", flag: false, of: |f| f.k as f64 },
        ]
    }

    fn reference(f: &Factors) -> Vec<f64> {
        let mut c = vec![0.0; f.m * f.n];
        for (row, a) in c.chunks_mut(f.n.max(1)).zip(f.a.chunks(f.k.max(1))) {
            for (factor, b) in a.iter().zip(f.b.chunks(f.n.max(1))) {
                row.iter_mut().zip(b).for_each(|(c, b)| *c += factor * b);
            }
        }
        c
    }

    fn judge(f: &Factors, expected: &Vec<f64>, found: &Vec<f64>) -> Result<(), String> {
        if expected.len() != found.len() {
            return Err(format!("{} elements instead of {}", found.len(), expected.len()));
        }
        // Elements of the factors are at most 1, so partial sums are at most k.
        let bound = 2.0 * f64::EPSILON * (f.k * f.k + 1) as f64;
        let wrong = expected.iter().zip(found).position(|(e, f)| (e - f).abs() > bound || f.is_nan());
        wrong.map_or(Ok(()), |at| Err(format!("element {at}: {} instead of {}", found[at], expected[at])))
    }

    fn inputs() -> Vec<Named<Factors>> {
        let mut rng = rng("sizes", 5);
        // The paper's sizes go to 800. Half of the inputs have all sizes large or small alike, the others mostly small ones.
        let mut sizes = || {
            let even = rng.random_bool(0.5);
            let mut one = || if even { rng.random_range(16.0..800.0) } else { generate::sized(&mut rng, 4.0, 800.0) };
            [one(), one(), one()].map(|size| f64::round(size) as usize)
        };
        let drawn = std::iter::repeat_with(|| sizes().into()).filter(|(m, n, k)| m * n * k <= 1 << 27);
        let mut all: Vec<(usize, usize, usize)> = drawn.take(600).collect();
        all.sort_unstable();
        all.dedup();
        let named = |(seed, (m, n, k)): (usize, (usize, usize, usize))| {
            Named::new("random-sizes", &format!("{m},{n},{k},{seed}"), move || Factors::random(m, n, k, seed as u64))
        };
        all.into_iter().enumerate().map(named).collect()
    }
}
