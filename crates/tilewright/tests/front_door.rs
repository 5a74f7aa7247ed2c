//! The front door from outside: plans, calls, kernels from closures, and what is refused.

use std::sync::Arc;
use std::time::Duration;
use tilewright::own::KernelBuilder;
use tilewright::runtime::plan::PlanStats;
use tilewright::search::Strategy;
use tilewright::{Callable, Error, OwnKernel, Tuner, gemm};
use tilewright_testkit::{Effort, computation, kernel, toy};

fn axpy() -> KernelBuilder {
    KernelBuilder::new("axpy")
        .input("n", 0..=1 << 22)
        .param("chunk", [16, 64, 256, 1024])
        .param("order", ["up", "down"])
        .define("chunks", "(n + chunk - 1) // chunk")
        .rule("chunks <= 100000")
        .reads::<f32>("x", "n")
        .updates::<f32>("y", "n")
        .writes::<f64>("sums", "n // 16")
        .scalar("a")
        .flops("2 * n")
        .code(|at| {
            let (chunk, chunks, is_down) = (at.size("chunk"), at.size("chunks"), at.word("order") == "down");
            move |args| {
                let (x, y, sums) = (args.input::<f32>("x")?, args.output::<f32>("y")?, args.output::<f64>("sums")?);
                let a = args.scalar("a")? as f32;
                for i in 0..chunks {
                    let from = chunk * if is_down { chunks - 1 - i } else { i };
                    let to = (from + chunk).min(x.len());
                    x[from..to].iter().zip(&mut y[from..to]).for_each(|(x, y)| *y += a * x);
                }
                for (sum, part) in sums.iter_mut().zip(x.chunks(16)) {
                    *sum = part.iter().map(|x| f64::from(*x)).sum();
                }
                Ok(())
            }
        })
        .reference(|before| {
            let (x, y, a) = (before.values("x"), before.values("y"), before.scalar("a"));
            let sums = x.chunks_exact(16).map(|part| part.iter().sum()).collect();
            vec![x.iter().zip(y).map(|(x, y)| a * x + y).collect(), sums]
        })
}

fn built() -> OwnKernel {
    axpy().build().unwrap()
}

fn here() -> (tempfile::TempDir, Tuner) {
    let home = tempfile::tempdir().unwrap();
    let tuner = Tuner::on("cpu").unwrap().threads(1).unwrap().budget(Duration::from_millis(300));
    let tuner = tuner.home(home.path());
    (home, tuner)
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, field: &str, part: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.field().as_deref(), Some(field), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_product_on_the_callers_slices() {
    let (_home, mut tuner) = here();
    let (m, n, k) = (17, 9, 33);
    let (a, b) = (vec![0.5f64; m * k], vec![2.0f64; k * n]);
    let mut c = vec![1.0f64; m * n];
    let mut product = tuner.plan(&gemm(m, n, k).with("dtype", "f64").with("beta", "other")).unwrap();
    product.call(&[&a, &b], &mut [&mut c], &[1.0, 3.0]).unwrap();
    assert!(c.iter().all(|&x| x == k as f64 + 3.0), "{c:?}");
    assert!(product.planned().verified && !product.planned().cached);
    let again = tuner.plan(&gemm(m, n, k).with("dtype", "f64").with("beta", "other")).unwrap();
    assert!(again.planned().cached, "{}", again.planned().reason);
    assert_eq!(again.config(), product.config());
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let (_home, mut tuner) = here();
    let mut product: Callable = tuner.plan(&gemm(4, 3, 2)).unwrap();
    let (a, b, mut c) = ([1f32; 8], [1f32; 6], [0f32; 12]);
    refused(product.call(&[&a], &mut [&mut c], &[1.0, 0.0]), "inputs", "1 are given, 2 are needed: a, b");
    refused(product.call::<f32>(&[&a, &b], &mut [], &[1.0, 0.0]), "outputs", "c");
    refused(product.call(&[&a, &b[..5]], &mut [&mut c], &[1.0, 0.0]), "b", "5 elements of f32 are given, 6 of f32");
    refused(product.call(&[&a, &b], &mut [&mut c[..11]], &[1.0, 0.0]), "c", "11");
    refused(product.call(&[&[1f64; 8], &[1f64; 6]], &mut [&mut [0f64; 12]], &[1.0, 0.0]), "a", "f64");
    refused(product.call(&[&a, &b], &mut [&mut c], &[1.0, 0.5]), "beta", "0.5");
    refused(product.call(&[&a, &b], &mut [&mut c], &[1.0]), "beta", "missing");
    product.call(&[&a, &b], &mut [&mut c], &[1.0, 0.0]).unwrap();
    assert_eq!(c, [2f32; 12]);
}

#[test]
fn names_that_are_none_are_refused() {
    refused(Tuner::on("gpu").map(drop), "device", "gpu");
    refused(Tuner::on("emulator:sm_80").unwrap().threads(2).map(drop), "threads", "emulator");
    let (_home, mut tuner) = here();
    refused(tuner.plan(&tilewright::Request::of("gem").with("m", 1)), "kernel", "gem");
    refused(tuner.plan(&gemm(1, 1, 1).with("q", 1)), "q", "unknown");
    refused(tuner.plan(&gemm(1, 1, 1).with("m", -1)), "m", "-1");
    refused(tuner.plan(&built().with("n", 1i64 << 40)), "n", "not within");
    let home = tempfile::tempdir().unwrap();
    let mut other = Tuner::on("emulator:sm_80").unwrap().home(home.path());
    refused(other.plan(&tilewright::Request::of("gemm.cpu")).map(drop), "device", "gemm.cpu");
}

#[test]
fn a_device_without_a_clock_computes_by_the_default() {
    let home = tempfile::tempdir().unwrap();
    let mut tuner = Tuner::on("emulator:sm_80").unwrap().home(home.path());
    let mut product = tuner.plan(&gemm(5, 4, 3)).unwrap();
    let (a, b, mut c) = ([1f32; 15], [2f32; 12], [0f32; 20]);
    product.call(&[&a, &b], &mut [&mut c], &[1.0, 0.0]).unwrap();
    assert_eq!(c, [6f32; 20]);
    assert!(product.planned().reason.contains("nothing was timed"), "{}", product.planned().reason);
    assert_eq!(product.planned().stats, PlanStats { seconds: product.planned().stats.seconds, ..PlanStats::default() });
}

#[test]
fn a_described_kernel_keeps_every_promise_of_a_kernel() {
    let own = Arc::new(built());
    let inputs: Vec<Vec<u64>> = [0, 1, 15, 16, 17, 1000].map(|n| vec![n]).into();
    computation(tilewright::core::kernel::Kernel::computation(&*own), &inputs).unwrap();
    let effort = Effort { probes: 100, runs: 6, ..Effort::default() };
    kernel(&own, &mut toy::host_device(), &inputs, &effort).unwrap();
}

#[test]
fn a_described_kernel_is_tuned_planned_remembered_and_called() {
    let (home, tuner) = here();
    let own = built();
    let mut tuner = tuner.samples(60).seed(3).budget(Duration::from_secs(20));
    let report = tuner.tune(&own.any_input()).unwrap();
    let profile = &report.kernels[0].model.as_ref().unwrap().profile;
    assert!(report.samples >= 60 && profile.starts_with(home.path()), "{profile:?}");
    let mut tuner = tuner.budget(Duration::from_millis(200)).strategy(Strategy::Random);
    let planned = tuner.plan(&own.with("n", 4000)).unwrap();
    let (model, searched) = (&planned.planned().decision.model, &planned.planned().searched);
    assert_eq!(model.as_deref(), Some("mlp"), "{}", planned.planned().reason);
    assert_eq!(searched.as_ref().map(|s| s.strategy.as_str()), Some("random"));
    assert!(planned.planned().verified);
    let again = tuner.plan(&own.with("n", 4000)).unwrap();
    assert!(again.planned().cached);
    assert_eq!(again.buffers().len(), 3);
}

#[test]
fn code_that_computes_wrong_is_never_chosen() {
    let (_home, mut tuner) = here();
    let wrong = |scale: f32| {
        KernelBuilder::new("half-wrong")
            .input("n", 1..=1000)
            .param("wrong", [0, 1])
            .reads::<f32>("x", "n")
            .writes::<f32>("y", "n")
            .code(move |at| {
                let factor = if at.size("wrong") == 1 { scale } else { 2.0 };
                move |args| {
                    let (x, y) = (args.input::<f32>("x")?, args.output::<f32>("y")?);
                    x.iter().zip(y).for_each(|(x, y)| *y = factor * x);
                    Ok(())
                }
            })
            .reference(|before| vec![before.values("x").iter().map(|x| 2.0 * x).collect()])
    };
    let planned = tuner.plan(&wrong(2.5).build().unwrap().with("n", 500)).unwrap();
    assert_eq!(planned.config().to_string(), "wrong=0");
    let all_wrong = wrong(2.5).rule("wrong == 1").build().unwrap();
    let error = tuner.plan(&all_wrong.with("n", 501)).unwrap_err();
    assert!(error.to_string().contains("right result"), "{error}");
}

#[test]
fn descriptions_that_are_none_name_what_is_wrong() {
    let fault = |builder: KernelBuilder, field: &str, part: &str| {
        let error = builder.build().map(drop).unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    fault(KernelBuilder::new("a b"), "name", "spaces");
    fault(KernelBuilder::new("none"), "buffers", "written");
    fault(axpy().input("n", 1..=2), "n", "twice");
    fault(axpy().param("x", [1]), "x", "twice");
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    fault(axpy().input("m", 2..=1), "m", "range");
    fault(axpy().writes::<f32>("z", "q + 1"), "z", "none of the inputs n");
    fault(axpy().writes::<f32>("z", "n +"), "z", "expected");
    fault(axpy().rule("chunk <"), "space", "expected");
    fault(axpy().param::<i64>("empty", []), "space", "no values");
    fault(axpy().start("chunk=17"), "start", "17");
    let missing = KernelBuilder::new("missing").writes::<f32>("y", "1");
    fault(missing, "reference", "missing");
}

#[test]
fn lengths_that_are_no_numbers_are_refused_by_input() {
    let (_home, mut tuner) = here();
    let own = axpy().input("m", 0..=10).writes::<f32>("ratio", "100 // m").build().unwrap();
    refused(tuner.plan(&own.with("n", 10).with("m", 0)), "ratio", "length");
    refused(tuner.plan(&own.with("n", 10)), "m", "missing");
}
