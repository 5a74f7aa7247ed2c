use tilewright::{Error, Tuner, gemm};

fn main() -> Result<(), Error> {
    let (m, n, k) = (96, 64, 128);
    let (a, b, mut c) = (vec![0.5f32; m * k], vec![2.0f32; k * n], vec![0.0f32; m * n]);
    let mut product = Tuner::on("cpu")?.plan(&gemm(m, n, k))?;
    product.call(&[&a, &b], &mut [&mut c], &[1.0, 0.0])?;
    println!("{} gives {}: {}", product.config(), c[0], product.planned().reason);
    Ok(assert!(c.iter().all(|&x| x == k as f32)))
}
