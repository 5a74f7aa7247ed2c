//! Several products in one call: at constant distances, and wherever slices say.

use std::time::Duration;
use tilewright::core::space::Config;
use tilewright::kernels::Kernels;
use tilewright::planning::Planning;
use tilewright::runtime::plan::PlanSettings;
use tilewright::runtime::store::Home;
use tilewright::{Error, Tuner, gemm, gemm_batch};

fn here() -> (tempfile::TempDir, Tuner) {
    let home = tempfile::tempdir().unwrap();
    let tuner = Tuner::on("cpu").unwrap().threads(1).unwrap().budget(Duration::from_millis(200));
    let tuner = tuner.home(home.path());
    (home, tuner)
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, field: &str, part: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.field().as_deref(), Some(field), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_batch_behind_each_other_with_an_operand_that_all_share() {
    let (_home, mut tuner) = here();
    let (count, m, n, k) = (10, 5, 4, 3);
    let a: Vec<f32> = (0..count * m * k).map(|i| (i / (m * k)) as f32).collect();
    let (b, mut c) = (vec![2f32; k * n], vec![0f32; count * m * n]);
    let mut products = tuner.plan(&gemm_batch(count, m, n, k).with("stride_b", 0)).unwrap();
    products.call(&[&a, &b], &mut [&mut c], &[1.0, 0.0]).unwrap();
    for (product, c) in c.chunks(m * n).enumerate() {
        assert!(c.iter().all(|&x| x == (product * 2 * k) as f32), "{product}: {c:?}");
    }
    let refusal = products.call_batch(&[&a], &[&b], &mut [&mut c], &[1.0, 0.0]);
    refused(refusal, "batch", "10 products at constant distances");
}

#[test]
fn a_batch_of_large_products() {
    let (_home, mut tuner) = here();
    let size = 160;
    let (a, b) = (vec![0.5f64; 3 * size * size], vec![2f64; 3 * size * size]);
    let mut c = vec![0f64; 3 * size * size];
    let request = gemm_batch(3, size, size, size).with("dtype", "f64");
    tuner.plan(&request).unwrap().call(&[&a, &b], &mut [&mut c], &[1.0, 0.0]).unwrap();
    assert!(c.iter().all(|&x| x == size as f64));
}

#[test]
fn operands_that_lie_anywhere() {
    let (_home, mut tuner) = here();
    let (m, n, k) = (7, 3, 2);
    let mut product = tuner.plan(&gemm(m, n, k).with("beta", "other")).unwrap();
    let (a, b): (Vec<f32>, Vec<f32>) = ((0..40).map(|i| i as f32).collect(), vec![1.0; 6]);
    let mut c = vec![1f32; 63];
    let (first, rest) = c.split_at_mut(30);
    let (second, third) = rest.split_at_mut(22);
    let results = &mut [&mut *third, &mut *first, &mut *second];
    // The third result is too short, and nothing has run.
    let (ones, all_a) = ([&b[..], &b, &b], [&a[..14], &a[20..], &a[14..]]);
    refused(product.call_batch(&all_a, &ones, results, &[1.0, 2.0]), "c[0]", "11 elements are given, 21 of f32");
    assert!(c.iter().all(|&x| x == 1.0));
    let mut c = [[1f32; 21], [1f32; 21], [1f32; 21]];
    let [c0, c1, c2] = &mut c;
    product.call_batch(&all_a, &ones, &mut [c0, c1, c2], &[1.0, 2.0]).unwrap();
    for (c, from) in c.iter().zip([0, 20, 14]) {
        let expected = (0..21).map(|i| (2 * (from + i % 7) + 7) as f32 + 2.0);
        assert!(c.iter().copied().eq(expected), "{from}: {c:?}");
    }
}

#[test]
fn batches_that_are_none_are_named() {
    let (_home, mut tuner) = here();
    refused(tuner.plan(&gemm_batch(0, 4, 4, 4)), "batch", "0");
    refused(tuner.plan(&gemm_batch(usize::MAX, 4, 4, 4)), "batch", "");
    refused(tuner.plan(&gemm_batch(2, 4, 4, 4).with("stride_c", 15)), "stride_c", "must not overlap");
    refused(tuner.plan(&gemm_batch(2, 4, 4, 4).with("stride_a", -1)), "stride_a", "-1");
    refused(tuner.plan(&gemm_batch(2, 4, 4, 4).with("stride_b", i64::MAX)), "stride_b", "");
    let far = gemm_batch(1 << 30, 4, 4, 4).with("stride_b", 1i64 << 43);
    refused(tuner.plan(&far), "batch", "the limit is");
    let mut product = tuner.plan(&gemm(4, 4, 4)).unwrap();
    let (a, mut c, mut d) = ([1f32; 16], [0f32; 16], [0f32; 16]);
    refused(product.call_batch::<f32>(&[], &[], &mut [], &[1.0, 0.0]), "c", "at least one");
    refused(product.call_batch(&[&a], &[&a, &a], &mut [&mut c, &mut d], &[1.0, 0.0]), "a", "1 are given, 2 are needed");
    refused(product.call_batch(&[&a, &a], &[&a], &mut [&mut c, &mut d], &[1.0, 0.0]), "b", "1 are given");
    refused(product.call_batch(&[&a, &a[1..]], &[&a, &a], &mut [&mut c, &mut d], &[1.0, 0.0]), "a[1]", "15 elements");
    refused(product.call_batch(&[&a], &[&a], &mut [&mut c], &[1.0, 0.5]), "beta", "0.5");
    refused(product.call_batch(&[&[1f64; 16]], &[&[1f64; 16]], &mut [&mut [0f64; 16]], &[1.0, 0.0]), "a", "f64");
    product.call_batch(&[&a, &a], &[&a, &a], &mut [&mut c, &mut d], &[1.0, 0.0]).unwrap();
    assert_eq!((c, d), ([4f32; 16], [4f32; 16]));
}

#[test]
fn where_nothing_is_known_the_kernel_that_is_made_for_an_input_comes_first() {
    let (directory, tuner) = here();
    let (home, device) = (Home::at(directory.path()), tuner.spec());
    let kernels = Kernels::default().competing("gemm", &device, false).unwrap();
    let first = |fields: &str| {
        let planning = Planning::new(&home, &kernels, &device, None, PlanSettings::default());
        planning.decide(&Config::parse(fields).unwrap()).unwrap().1.kernel.to_string()
    };
    assert_eq!(first("m=8,n=8,k=8"), "gemm.cpu-small.5");
    assert_eq!(first("m=64,n=64,k=64,batch=1000,layout=tn"), "gemm.cpu-small.5");
    assert_eq!(first("m=600,n=500,k=500"), "gemm.cpu.6");
    assert_eq!(first("m=600,n=500,k=500,batch=3"), "gemm.cpu.6");
}
