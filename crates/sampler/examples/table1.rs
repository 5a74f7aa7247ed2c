//! ISAAC's Table 1: the proportion of candidates that are legal, uniform against the generative models.
//!
//! ```text
//! cargo run --release -p tilewright-sampler --example table1
//! ```

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::space::{BoundSpace, ParamSpace};
use tilewright_sampler::{Acceptance, Categorical, Chained, Counts, DrawError, Sampler, Settings};

#[path = "../tests/spaces/mod.rs"]
mod spaces;

/// Samples behind each line of the table.
const SAMPLES: [u64; 5] = [1_000, 5_000, 20_000, 50_000, 100_000];

/// Acceptance over the last samples of a line, and the spread of the model after it.
type Line = (Acceptance, f64);

fn lines<S: Sampler>(mut sampler: S, counts: fn(&S) -> &Counts, bound: &BoundSpace) -> Result<Vec<Line>, DrawError> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut drawn = 0;
    let mut out = Vec::new();
    for samples in SAMPLES {
        let measured = samples / 4;
        let mut before = Acceptance::default();
        while drawn < samples {
            if drawn == samples - measured {
                before = sampler.acceptance().clone();
            }
            sampler.draw(bound, &mut rng)?;
            drawn += 1;
        }
        out.push((sampler.acceptance().since(&before), counts(&sampler).perplexity()));
    }
    Ok(out)
}

fn table(name: &str, space: &ParamSpace, bound: &BoundSpace) -> Result<(), DrawError> {
    let census = bound.census();
    let uniform = census.legal as f64 / bound.cartesian() as f64;
    println!("{name}: {} of {} points are legal, uniform {:.3}%", census.legal, bound.cartesian(), 100.0 * uniform);
    println!("{:>9} {:>12} {:>14} {:>12} {:>14}", "samples", "categorical", "spread", "chained", "spread");
    let settings = Settings { warmup_candidates: 10_000_000, ..Settings::default() };
    let categorical = lines(Categorical::new(space, settings), Categorical::counts, bound)?;
    let chained = lines(Chained::new(space, settings), Chained::counts, bound)?;
    for (samples, (a, b)) in SAMPLES.into_iter().zip(categorical.into_iter().zip(chained)) {
        let [left, right] = [&a.0, &b.0].map(|seen| 100.0 * seen.rate());
        println!("{samples:>9} {left:>11.2}% {:>14.3e} {right:>11.1}% {:>14.3e}", a.1, b.1);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (name, (space, bound)) in
        [("ISAAC's GEMM", spaces::isaac_gemm_f32()?), ("work-group GEMM", spaces::work_group_gemm()?)]
    {
        table(name, &space, &bound)?;
    }
    Ok(())
}
