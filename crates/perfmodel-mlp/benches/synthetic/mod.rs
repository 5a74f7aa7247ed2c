#![allow(dead_code, reason = "each bench, test and example uses its own part")]
//! A made-up tiled matrix multiplication: cheap to time, shaped like the real thing.
//!
//! Benches, tests and examples that need more points than any recorded data set has draw them from here. The cost is an
//! analytic model (register and cache tiles, padding, splits of K, packing) with a little noise; nothing of it is
//! measured on a machine.

use rand::Rng;
use rand::seq::IndexedRandom;
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::training::TrainingSet;

/// Columns of an input and of a configuration.
pub(crate) fn schema() -> FeatureSchema {
    FeatureSchema {
        input: ["m", "n", "k", "flops", "intensity"]
            .map(Feature::size)
            .into_iter()
            .chain(["transpose_a", "transpose_b"].map(Feature::flag))
            .collect(),
        config: [
            "m_s",
            "n_s",
            "m_l",
            "n_l",
            "u",
            "k_s",
            "k_l",
            "k_g",
            "vec",
            "prefetch",
            "registers",
            "tile_bytes",
            "tiles_m",
            "tiles_n",
            "pad_m",
            "pad_n",
            "k_slice",
            "parallel",
        ]
        .map(Feature::size)
        .into_iter()
        .chain(["pack_a", "pack_b"].map(Feature::flag))
        .collect(),
    }
}

/// Sizes and transposes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    m: f64,
    n: f64,
    k: f64,
    transpose_a: bool,
    transpose_b: bool,
}

impl Input {
    /// Log-uniform sizes from 16 to 8192.
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        let mut size = || (rng.random_range(4.0f64..13.0)).exp2().round();
        Self { m: size(), n: size(), k: size(), transpose_a: rng.random(), transpose_b: rng.random() }
    }

    /// The input's features, in the schema's order.
    pub(crate) fn features(&self) -> Vec<f32> {
        let flops = 2.0 * self.m * self.n * self.k;
        let bytes = 4.0 * (self.m * self.k + self.k * self.n + self.m * self.n);
        let flags = [self.transpose_a, self.transpose_b].map(|flag| f32::from(u8::from(flag)));
        let sizes = [self.m, self.n, self.k, flops, flops / bytes].map(|size| size as f32);
        sizes.into_iter().chain(flags).collect()
    }
}

/// Tile sizes, splits and packing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    m_s: f64,
    n_s: f64,
    m_l: f64,
    n_l: f64,
    u: f64,
    k_s: f64,
    k_l: f64,
    k_g: f64,
    vec: f64,
    prefetch: f64,
    pack_a: bool,
    pack_b: bool,
}

impl Config {
    /// A random configuration within the registers and the cache.
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        loop {
            let mut pick = |from: &[f64]| *from.choose(rng).expect("the choices are not empty");
            let config = Self {
                m_s: pick(&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]),
                n_s: pick(&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]),
                m_l: pick(&[16.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0]),
                n_l: pick(&[16.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0]),
                u: pick(&[16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
                k_s: pick(&[1.0, 2.0, 4.0, 8.0]),
                k_l: pick(&[1.0, 2.0, 4.0, 8.0]),
                k_g: pick(&[1.0, 2.0, 4.0, 8.0, 16.0]),
                vec: pick(&[4.0, 8.0, 16.0]),
                prefetch: pick(&[1.0, 2.0, 4.0, 8.0]),
                pack_a: pick(&[0.0, 1.0]) > 0.5,
                pack_b: pick(&[0.0, 1.0]) > 0.5,
            };
            if config.registers() <= 64.0 && config.tile_bytes() <= 4.0 * 1024.0 * 1024.0 {
                return config;
            }
        }
    }

    fn registers(&self) -> f64 {
        self.m_s * self.n_s + self.m_s + self.n_s
    }

    fn tile_bytes(&self) -> f64 {
        4.0 * self.u * (self.m_l + self.n_l)
    }

    /// Appends the configuration's features for an input, in the schema's order.
    pub(crate) fn features(&self, input: &Input, out: &mut Vec<f32>) {
        let (tiles_m, tiles_n) = ((input.m / self.m_l).ceil(), (input.n / self.n_l).ceil());
        let sizes = [
            self.m_s,
            self.n_s,
            self.m_l,
            self.n_l,
            self.u,
            self.k_s,
            self.k_l,
            self.k_g,
            self.vec,
            self.prefetch,
            self.registers(),
            self.tile_bytes(),
            tiles_m,
            tiles_n,
            tiles_m * self.m_l / input.m,
            tiles_n * self.n_l / input.n,
            input.k / (self.k_g * self.k_l),
            tiles_m * tiles_n * self.k_g,
        ];
        out.extend(sizes.map(|size| size as f32));
        out.extend([self.pack_a, self.pack_b].map(|flag| f32::from(u8::from(flag))));
    }

    /// Seconds of this configuration on the input.
    pub(crate) fn cost(&self, input: &Input) -> f64 {
        let (tiles_m, tiles_n) = ((input.m / self.m_l).ceil(), (input.n / self.n_l).ceil());
        let rows = tiles_m * (self.m_l / (self.m_s * self.vec)).ceil() * self.m_s * self.vec;
        let columns = tiles_n * (self.n_l / self.n_s).ceil() * self.n_s;
        let registers = self.registers();
        let latency = (self.m_s * self.n_s * self.k_s / 8.0).min(1.0);
        let spill = if registers > 31.0 { 1.0 + 0.08 * (registers - 31.0) } else { 1.0 };
        let width = (self.vec / 16.0).powf(0.9);
        let rate = 1.1e11 * width * latency / spill / (1.0 + 0.25 * (1.0 / self.m_s + 1.0 / self.n_s));
        let compute = 2.0 * rows * columns * input.k / rate;
        let level = |bytes: f64| if bytes < 32e3 { 0.0 } else { ((bytes / 32e3).log2() / 5.0).powf(1.5) };
        let cache = 1.0 + 0.5 * level(self.tile_bytes());
        let traffic = 4.0 * input.k * (rows * tiles_n + columns * tiles_m);
        let strided = |stride: bool, packed: bool| if stride && !packed { 2.5 } else { 1.0 };
        let memory = traffic / 4e10 * strided(input.transpose_a, self.pack_a) * strided(input.transpose_b, self.pack_b)
            / self.prefetch.powf(0.1);
        let packing = 8.0 * input.k / 1e10
            * (f64::from(u8::from(self.pack_a)) * input.m + f64::from(u8::from(self.pack_b)) * input.n);
        let parallel = (tiles_m * tiles_n * self.k_g).min(2.0);
        let split = 1e-6 * self.k_g + 4.0 * input.m * input.n * (self.k_g + self.k_l - 2.0) / 2e10;
        let loops = 2e-8 * tiles_m * tiles_n * self.k_g * (1.0 + input.k / self.u);
        (compute * cache).hypot(memory) / parallel + packing + split + loops + 2e-7
    }
}

/// Measured rows: `inputs` inputs with `configs` configurations each, with 3 % of noise.
pub(crate) fn training_set(inputs: usize, configs: usize, rng: &mut impl Rng) -> TrainingSet {
    let mut data = TrainingSet::new(schema());
    for group in 0..inputs {
        let input = Input::draw(rng);
        for _ in 0..configs {
            let config = Config::draw(rng);
            let mut row = input.features();
            config.features(&input, &mut row);
            let noise = 1.0 + 0.03 * rng.random_range(-1.0..1.0);
            data.push(&row, config.cost(&input) * noise, group as u32).expect("the row fits the schema");
        }
    }
    data
}

/// Feature rows of `configs` random configurations of one input.
pub(crate) fn config_rows(input: &Input, configs: usize, rng: &mut impl Rng) -> Vec<f32> {
    let mut rows = Vec::with_capacity(configs * schema().config.len());
    for _ in 0..configs {
        Config::draw(rng).features(input, &mut rows);
    }
    rows
}
