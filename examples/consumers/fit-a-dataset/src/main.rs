//! Fits measurements that have nothing to do with Tilewright's own kernels, with `core` and `perfmodel-mlp` alone, and
//! prints how well inputs are predicted that the model never saw.

use std::error::Error;
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::metrics::Scores;
use tilewright_core::predictor::{Fit, RowPredictor};
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_mlp::{Layout, MlpFit, Settings};

/// Numbers in [0, 1) that look random: a made-up dataset needs no more.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A made-up reduction of `rows` rows of `length` numbers by blocks of threads: waves of blocks, a start-up cost for each,
/// and a penalty for threads that have nothing to do. In seconds, with 2% of noise.
fn seconds(rows: f64, length: f64, threads: f64, unroll: f64, noise: &mut Noise) -> f64 {
    let waves = (rows / (2048.0 / threads).floor()).ceil();
    let steps = (length / (threads * unroll)).ceil();
    let block = 2e-6 + steps * unroll * 1.5e-9 + threads.log2() * 4e-8 + 3e-8 / unroll;
    waves * block * (1.0 + 0.02 * (noise.next() - 0.5))
}

fn measurements() -> Result<TrainingSet, Box<dyn Error>> {
    let schema = FeatureSchema {
        input: vec![Feature::size("rows"), Feature::size("length")],
        config: vec![Feature::size("threads"), Feature::size("unroll")],
    };
    let mut noise = Noise(1);
    let mut data = TrainingSet::new(schema);
    for input in 0..160 {
        let rows = (2f64).powf(4.0 + 12.0 * noise.next()).floor();
        let length = (2f64).powf(4.0 + 14.0 * noise.next()).floor();
        for threads in [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0] {
            for unroll in [1.0, 2.0, 4.0, 8.0] {
                let row = [rows, length, threads, unroll].map(|x| x as f32);
                data.push(&row, seconds(rows, length, threads, unroll, &mut noise), input)?;
            }
        }
    }
    Ok(data)
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = measurements()?;
    let (held_out, train): (Vec<usize>, Vec<usize>) = (0..data.len()).partition(|&row| data.groups[row] % 5 == 0);
    let (train, held_out) = (data.subset(&train), data.subset(&held_out));

    let settings = Settings { layout: Layout::new(vec![32, 64, 32])?, ..Settings::default() };
    let model = MlpFit { settings, screen: None }.fit(&train, 7)?;

    let mut predicted = Vec::new();
    model.predict(&held_out.rows, &mut predicted);
    let scores = Scores::new(&held_out, &predicted).ok_or("nothing was held out")?;
    println!("fitted on {} rows, judged on {} rows of inputs never seen", train.len(), held_out.len());
    println!("mean squared error of the log time: {:.5} (r2 {:.4})", scores.mse_log, scores.r2);
    println!("rank correlation within an input:   {:.4}", scores.rank_correlation);
    println!("cost of following the model:        {:.2}%", 100.0 * scores.top1_regret);
    if scores.r2 < 0.9 {
        return Err(format!("r2 is {:.3}: the model has learned too little", scores.r2).into());
    }
    Ok(())
}
