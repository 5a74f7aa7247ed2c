//! `y = a x + y` in chunks and with unrolled loops, described by closures; then tuned, planned and called like any other kernel.

use std::time::Duration;
use tilewright::{Args, At, Before, Error, KernelBuilder, Tuner};

/// One way of running it: `chunk` elements at a time, `unroll` of them in a row.
fn code(at: &At<'_>) -> impl Fn(&mut Args<'_>) -> Result<(), tilewright::core::program::DeviceError> + use<> {
    let (chunk, unroll) = (at.size("chunk"), at.size("unroll"));
    move |args| {
        let (x, y, a) = (args.input::<f32>("x")?, args.output::<f32>("y")?, args.scalar("a")? as f32);
        for (x, y) in x.chunks(chunk).zip(y.chunks_mut(chunk)) {
            for (x, y) in x.chunks(unroll).zip(y.chunks_mut(unroll)) {
                x.iter().zip(y).for_each(|(x, y)| *y += a * x);
            }
        }
        Ok(())
    }
}

fn right(before: &Before<'_>) -> Vec<Vec<f64>> {
    let (x, y, a) = (before.values("x"), before.values("y"), before.scalar("a"));
    vec![x.iter().zip(y).map(|(x, y)| a * x + y).collect()]
}

fn main() -> Result<(), Error> {
    let saxpy = KernelBuilder::new("saxpy")
        .input("n", 1..=1 << 24)
        .param("chunk", [64, 256, 1024, 4096])
        .param("unroll", [1, 2, 4, 8, 16])
        .rule("chunk <= max(64, n)")
        .reads::<f32>("x", "n")
        .updates::<f32>("y", "n")
        .scalar("a")
        .flops("2 * n")
        .code(code)
        .reference(right)
        .build()?;

    let mut tuner = Tuner::on("cpu")?.threads(1)?.budget(Duration::from_secs(1));
    let tuned = tuner.tune(&saxpy.any_input())?;
    println!("{} samples of {} inputs, log {}", tuned.samples, tuned.kernels[0].inputs, tuned.kernels[0].log.display());

    let (x, mut y) = (vec![2f32; 10_000], vec![1f32; 10_000]);
    let mut planned = tuner.plan(&saxpy.with("n", x.len()))?;
    planned.call(&[&x], &mut [&mut y], &[3.0])?;
    println!("{}: {}", planned.config(), planned.planned().reason);
    assert!(planned.planned().verified && y.iter().all(|&y| y == 7.0));
    Ok(())
}
