//! ISAAC's Table 1: the proportion of candidates that are legal, uniform against the generative models.
//!
//! ```text
//! cargo run --release -p tilewright-sampler --example table1
//! ```

use tilewright_sampler::{Settings, compare};

#[path = "../tests/spaces/mod.rs"]
mod spaces;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let alpha = args.next().transpose()?.unwrap_or(100);
    let warmup = args.next().transpose()?.unwrap_or(500);
    println!("{:<12} {:>14} {:>12} {:>9} {:>9} {:>12} {:>8}", "space", "cartesian", "legal", "samples", "uniform", "categorical", "chained");
    for (name, (space, bound)) in [("isaac", spaces::isaac_gemm_f32()?), ("work-group", spaces::work_group_gemm()?)] {
        for learn in [0, 5_000, 20_000, 50_000] {
            let settings = Settings { alpha, warmup, warmup_candidates: 10_000_000, ..Settings::default() };
            let seen = compare(&space, &bound, settings, (learn, 2_000), 1)?;
            let [uniform, categorical, chained] =
                [seen.uniform, seen.categorical, seen.chained].map(|a| 100.0 * a.rate());
            println!(
                "{name:<12} {:>14} {:>12} {:>9} {uniform:>8.3}% {categorical:>11.2}% {chained:>7.1}%",
                bound.cartesian(),
                bound.count_legal(),
                warmup + learn,
            );
        }
    }
    Ok(())
}
