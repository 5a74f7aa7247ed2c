//! Every variant on every device of this host gives what the plainest code gives.

use std::collections::HashSet;
use std::fs;
use tilewright_computations::bfs::{Bfs, Graph, Search};
use tilewright_computations::campaign::{Log, LogError, Measured, Protocol, Trial, measure};
use tilewright_computations::computation::{Computation, Named, code_variants};
use tilewright_computations::device::{Device, Effort, FEATURES, measure as features_of};
use tilewright_computations::generate::images::{Scene, image};
use tilewright_computations::generate::keys::{Order, keys};
use tilewright_computations::generate::{graphs, matrices};
use tilewright_computations::histogram::Histogram;
use tilewright_computations::image::Image;
use tilewright_computations::isa::Isa;
use tilewright_computations::matrix::Csr;
use tilewright_computations::multiply::{Factors, Multiply};
use tilewright_computations::solver::{Solver, System};
use tilewright_computations::sort::{Keys, Sort};
use tilewright_computations::spmv::{Product, Spmv};
use tilewright_computations::transpose::{Dense, Transpose};
use tilewright_variant_select::fixed::BestFixed;

/// Every instruction set, and the widest one with three threads: shares that are not halves.
fn devices() -> Vec<Device> {
    let widest = Isa::detected().into_iter().max().expect("there is one");
    let mut devices = Device::local(&[1]).expect("one thread is there");
    devices.push(Device::with_threads(widest, 3).expect("threads start"));
    devices
}

/// Runs on one device after the other, so that what a run leaves behind is met. Gives the variants that ran, and failed.
fn check<C: Computation>(
    what: &str,
    input: &C::Input,
    devices: &[Device],
) -> (HashSet<&'static str>, HashSet<&'static str>) {
    let expected = C::reference(input);
    let (mut ran, mut failed) = (HashSet::new(), HashSet::new());
    for variant in C::variants() {
        if (variant.legal)(input).is_err() {
            continue;
        }
        let mut ready = (variant.prepare)(input);
        for device in devices {
            ready.reset();
            if ready.run(device).is_err() {
                failed.insert(variant.name);
                continue;
            }
            ran.insert(variant.name);
            if let Err(wrong) = C::judge(input, &expected, &ready.output()) {
                panic!("{} {} on {}, {what}: {wrong}", C::NAME, variant.name, device.name());
            }
        }
    }
    (ran, failed)
}

fn all<C: Computation>() -> usize {
    C::variants().len()
}

#[test]
fn products_with_sparse_matrices() {
    let devices = devices();
    let mut cases = vec![
        ("no rows", Csr::of_entries(0, 0, vec![])),
        ("one element", Csr::of_entries(1, 1, vec![(0, 0, 2.0)])),
        ("one row, empty", Csr::of_entries(1, 3, vec![])),
        ("no columns", Csr::of_entries(5, 0, vec![])),
        ("empty rows", Csr::of_entries(7, 3, vec![(2, 1, 1.0), (2, 2, -1.0), (5, 0, 3.0)])),
        ("wide", Csr::of_entries(2, 19, vec![(0, 18, 1.0), (1, 0, 2.0), (1, 9, -4.0)])),
        ("a full row", matrices::with_full_rows(37, 2, 1, 3)),
        ("blocks", matrices::blocks(5, 3, 2, 4)),
        ("mesh", matrices::mesh(9, 81, 0.1, 2)),
        ("r-mat", matrices::rmat(7, 5, 1)),
        ("power law", matrices::power_law(131, 5.0, 2.1, 100, 9)),
    ];
    for points in [5, 7, 27] {
        cases.push(("stencil", matrices::stencil(points, 5, 0.5)));
    }
    for rows in [2, 3, 7, 8, 9, 13, 31, 67, 127, 1031] {
        cases.push(("banded", matrices::banded(rows, 3, 0.7, rows as u64)));
        cases.push(("uniform", matrices::uniform(rows, 5, rows as u64)));
    }
    cases.push(("diagonals", matrices::diagonals(2053, 5, 1)));
    for (what, matrix) in cases {
        let (ran, failed) =
            check::<Spmv>(&format!("{what}, {} rows", matrix.rows()), &Product::of(matrix, 1), &devices);
        assert!(failed.is_empty() && ran.len() >= 3, "{what}: {failed:?} failed, {ran:?} ran");
    }
}

#[test]
fn too_much_padding_is_illegal() {
    let wide = Product::of(matrices::with_full_rows(300, 1, 1, 1), 1);
    let legal: HashSet<_> = Spmv::variants().iter().filter(|v| (v.legal)(&wide).is_ok()).map(|v| v.name).collect();
    assert!(!legal.contains("dia") && !legal.contains("ell") && legal.contains("csr"), "{legal:?}");
}

#[test]
fn sorting() {
    let devices = devices();
    let orders = [Order::Random, Order::Reversed, Order::AlmostSorted(0.2), Order::Runs(7)];
    for count in [0, 1, 2, 3, 7, 15, 16, 17, 31, 97, 1009, 4099] {
        for order in orders {
            let double = keys(order, count, 1);
            let single = double.iter().map(|&k| k as f32).collect();
            for input in [Keys::Double(double), Keys::Single(single)] {
                let (ran, _) = check::<Sort>(&format!("{order:?}, {count} keys"), &input, &devices);
                assert_eq!(ran.len(), all::<Sort>());
            }
        }
    }
    let special =
        vec![0.0, -0.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, f64::MIN_POSITIVE, -1.0, 5e-324, f64::NAN, -f64::NAN];
    check::<Sort>("special values", &Keys::Double(special.clone()), &devices);
    check::<Sort>("equal keys", &Keys::Double(vec![1.5; 203]), &devices);
    check::<Sort>("special values", &Keys::Single(special.into_iter().map(|k| k as f32).collect()), &devices);
}

#[test]
fn histograms() {
    let devices = devices();
    let scenes = [
        Scene::Noise(256),
        Scene::Noise(3),
        Scene::Flat,
        Scene::Ramp,
        Scene::Patches(5),
        Scene::Photo(9),
        Scene::Half(0.3),
    ];
    check::<Histogram>("no pixels", &Image { width: 0, pixels: vec![] }, &devices);
    for side in [1, 2, 7, 31, 67, 131] {
        for scene in scenes {
            let (ran, _) =
                check::<Histogram>(&format!("{scene:?}, {side}"), &image(scene, side, side + 2, 1), &devices);
            assert_eq!(ran.len(), all::<Histogram>());
        }
    }
}

#[test]
fn searches() {
    let devices = devices();
    let mut cases = vec![
        ("no vertices", Graph::of_edges(0, &[])),
        ("one vertex", Graph::of_edges(1, &[])),
        ("no edges", Graph::of_edges(7, &[])),
        ("two parts", Graph::of_edges(9, &[(0, 1), (1, 2), (4, 5), (5, 6), (6, 4), (7, 8)])),
        ("a loop and a double edge", Graph::of_edges(3, &[(0, 0), (0, 1), (1, 0), (1, 2)])),
        ("path", graphs::grid(61, 1)),
        ("grid", graphs::grid(13, 17)),
        ("cliques", graphs::cliques(5, 9)),
        ("stars", graphs::stars(3, 50)),
        ("small world", graphs::small_world(307, 3, 0.1, 1)),
    ];
    for seed in 0..6 {
        cases.push(("r-mat", graphs::rmat(8, 3, seed)));
        cases.push(("sparse", graphs::uniform(499, 300, seed)));
        cases.push(("dense", graphs::uniform(200, 4000, seed)));
    }
    for (what, graph) in cases {
        let (ran, _) = check::<Bfs>(what, &Search::of(graph, 3, 5), &devices);
        assert_eq!(ran.len(), all::<Bfs>());
    }
}

#[test]
fn solvers() {
    let devices = devices();
    let cases = [
        ("no unknowns", Csr::of_entries(0, 0, vec![])),
        ("one unknown", Csr::of_entries(1, 1, vec![(0, 0, 4.0)])),
        ("diagonal", Csr::of_entries(5, 5, (0..5).map(|i| (i, i, 1.0 + f64::from(i))).collect())),
        ("stencil", matrices::stencil(5, 7, 0.1)),
        ("27 points", matrices::stencil(27, 4, 0.5)),
        ("mesh", matrices::mesh(7, 49, 0.5, 1)),
        ("coupled blocks", matrices::coupled_blocks(13, 4, 0.1, 1)),
        ("dominant", matrices::dominant(101, 5, 0.2, 1)),
    ];
    for (what, matrix) in cases {
        let (ran, failed) = check::<Solver>(what, &System::of(matrix, 1), &devices);
        assert!(failed.is_empty() && ran.len() == all::<Solver>(), "{what}: {failed:?} failed");
    }
}

#[test]
fn solvers_that_cannot_solve_say_so() {
    let device = &devices()[..1];
    // Neither positive definite nor negative definite; then no diagonal; then singular.
    let indefinite = Csr::of_entries(4, 4, vec![(0, 0, 1.0), (1, 1, -1.0), (2, 2, 2.0), (3, 3, -3.0)]);
    let (_, failed) = check::<Solver>("indefinite", &System::of(indefinite, 1), device);
    assert!(failed.contains("cg-fainv"), "{failed:?}");
    let hollow = Csr::of_entries(2, 2, vec![(0, 1, 1.0), (1, 0, 1.0)]);
    let (_, failed) = check::<Solver>("no diagonal", &System::of(hollow, 1), device);
    assert!(failed.contains("cg-jacobi") && failed.contains("bicgstab-fainv"), "{failed:?}");
    let singular = System { rhs: vec![1.0, 2.0], ..System::of(Csr::of_entries(2, 2, vec![(0, 0, 1.0)]), 1) };
    let (ran, _) = check::<Solver>("singular", &singular, device);
    assert!(ran.is_empty(), "{ran:?}");
}

#[test]
fn transpositions() {
    let devices = devices();
    let mut seen = HashSet::new();
    for (m, n) in [
        (1, 1),
        (1, 9),
        (9, 1),
        (2, 3),
        (3, 2),
        (4, 6),
        (6, 4),
        (8, 8),
        (5, 97),
        (97, 5),
        (12, 18),
        (64, 48),
        (31, 37),
        (64, 65),
        (66, 130),
        (2, 401),
        (360, 24),
        (24, 360),
        (71, 71),
    ] {
        for row_major in [true, false] {
            let (ran, _) = check::<Transpose>(&format!("{m}x{n}"), &Dense::random(m, n, row_major, 1), &devices);
            seen.extend(ran);
        }
    }
    assert_eq!(seen.len(), all::<Transpose>());
}

#[test]
fn multiplications() {
    let devices = devices();
    for (m, n, k) in [
        (0, 3, 2),
        (3, 0, 2),
        (3, 2, 0),
        (1, 1, 1),
        (4, 8, 1),
        (5, 9, 3),
        (3, 7, 64),
        (17, 33, 65),
        (65, 130, 70),
        (8, 40, 200),
        (197, 19, 195),
    ] {
        let (ran, _) = check::<Multiply>(&format!("{m}x{n}x{k}"), &Factors::random(m, n, k, 1), &devices);
        assert_eq!(ran.len(), all::<Multiply>());
    }
}

#[test]
fn a_campaign_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("transpose.log");
    let inputs = [(3, 70), (70, 80)]
        .map(|(m, n)| Named::new("dense", &format!("{m},{n}"), move || Dense::random(m, n, true, 1)));
    let protocol = Protocol { rounds: 2, ..Protocol::default() };
    let mut log = Log::open(&path).expect("a new log");
    for input in &inputs {
        log.push(measure::<Transpose>(input, &devices(), &protocol).expect("right results")).expect("is written");
    }
    let first = log.lines()[0].clone();
    assert_eq!(first.trials.len(), devices().len() * all::<Transpose>());
    for trial in &first.trials {
        let (status, visits) = if trial.variant == "skinny-c2r" { ("illegal", 0) } else { ("ok", 2) };
        assert_eq!((trial.status.as_str(), trial.visits()), (status, visits), "{trial:?}");
        assert!(trial.seconds.iter().flatten().all(|s| *s > 0.0));
    }
    drop(log);
    // The second line was being written when the process died.
    let text = fs::read(&path).expect("the log");
    fs::write(&path, &text[..text.len() - 10]).expect("is cut");
    let mut log = Log::open(&path).expect("a cut log");
    assert!(log.has("transpose", "dense(3,70)") && !log.has("transpose", "dense(70,80)"));
    assert_eq!(log.lines(), std::slice::from_ref(&first));
    assert_eq!(log.forget(|line| line.input == "dense(3,70)").expect("is written"), 1);
    assert!(!log.has("transpose", "dense(3,70)"));
    log.push(first.clone()).expect("is written");
    drop(log);
    assert_eq!(Log::open(&path).expect("the log").lines(), std::slice::from_ref(&first));
    fs::write(&path, [b"no measurement\n".as_slice(), &text].concat()).expect("is spoilt");
    assert!(matches!(Log::open(&path), Err(LogError::Line { line: 1, .. })));
}

#[test]
fn halves_that_disagree_are_doubted() {
    let trial = |variant: &str, even: f64, odd: f64| Trial {
        device: "d".into(),
        variant: variant.into(),
        status: "ok".into(),
        reason: None,
        seconds: [even, odd].repeat(5).into_iter().map(Some).collect(),
    };
    let measured = |trials| Measured {
        computation: "c".into(),
        input: "i".into(),
        family: "f".into(),
        features: Vec::new(),
        features_s: Vec::new(),
        trials,
        work: Vec::new(),
    };
    let agrees = measured(vec![trial("a", 1.0, 1.5), trial("b", 2.0, 3.0)]);
    assert!(agrees.doubt() < 1e-9, "{}", agrees.doubt());
    // Each half prefers another variant, twice as fast there.
    let disagrees = measured(vec![trial("a", 1.0, 2.0), trial("b", 2.0, 1.0)]);
    assert!((disagrees.doubt() - 0.5).abs() < 1e-9, "{}", disagrees.doubt());
}

#[test]
fn what_fails_has_no_time() {
    let hollow = || System::of(Csr::of_entries(2, 2, vec![(0, 1, 1.0), (1, 0, 1.0)]), 1);
    let input = Named::new("hollow", "", hollow);
    let protocol = Protocol { rounds: 1, ..Protocol::default() };
    let measured = measure::<Solver>(&input, &devices()[..1], &protocol).expect("no wrong result");
    let trial = measured.trials.iter().find(|t| t.variant == "cg-jacobi").expect("it was tried");
    assert_eq!((trial.status.as_str(), trial.fastest()), ("failed", None));
    assert!(trial.reason.as_deref().is_some_and(|why| why.contains("row 0")), "{trial:?}");
}

#[test]
fn code_variants_leave_out_what_does_not_apply() {
    let mut set = code_variants::<Spmv>(&devices()[0]).expect("names are unique");
    let narrow = Product::of(matrices::stencil(5, 6, 0.1), 1);
    set.record_times(&narrow, &[("dia", 1e-6), ("csr", 2e-6)]).expect("both apply");
    set.record_times(&Product::of(matrices::stencil(5, 9, 0.1), 1), &[("dia", 2e-6), ("csr", 4e-6)])
        .expect("both apply");
    set.tune(&BestFixed, 0).expect("there are times");
    assert_eq!(set.explain(&narrow).expect("something applies").chosen, "dia");
    let wide = Product::of(matrices::with_full_rows(300, 1, 1, 1), 1);
    assert_ne!(set.explain(&wide).expect("something applies").chosen, "dia");
    assert_eq!(set.call(&wide).expect("something applies").expect("it does not fail").len(), 300);
    assert!(set.feature_costs().iter().all(|cost| cost.calls > 0));
}

#[test]
fn features_of_devices_are_positive() {
    for device in devices() {
        let features = features_of(&device, Effort::Trial);
        assert!(features.iter().map(|f| f.name).eq(FEATURES));
        assert!(features.iter().all(|f| f.value.is_finite() && f.value > 0.0), "{}: {features:?}", device.name());
    }
}
