//! Every computation and every variant keeps the contract, on every instruction set of this host and on three threads.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use tilewright_computations::bfs::{Bfs, Graph};
use tilewright_computations::described::Described;
use tilewright_computations::description::Description;
use tilewright_computations::device::Device;
use tilewright_computations::generate::images::{Scene, image};
use tilewright_computations::generate::keys::{Order, keys};
use tilewright_computations::generate::{graphs, matrices};
use tilewright_computations::histogram::Histogram;
use tilewright_computations::image::Image;
use tilewright_computations::isa::Isa;
use tilewright_computations::kernel::VariantKernel;
use tilewright_computations::matrix::Csr;
use tilewright_computations::solver::Solver;
use tilewright_computations::sort::{Keys, Sort};
use tilewright_computations::source::Source;
use tilewright_computations::spmv::Spmv;
use tilewright_computations::transpose::{Dense, Transpose};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::{Device as _, HostDevice};
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_testkit::toy;
use tilewright_testkit::{self as testkit, Effort};

fn host(device: &Device) -> HostDevice<Instant> {
    toy::host_device_with(Arc::new(device.spec(&toy::device())))
}

/// The computation and all its variants on these data; gives the variants that apply to some of them.
fn conform<D: Description>(cases: Vec<(String, D::Data)>) -> HashSet<&'static str> {
    let of = Arc::new(Described::<D>::default());
    let held: Vec<Source> = cases.into_iter().map(|(name, data)| of.hold(&name, data)).collect();
    conform_sources(&of, &held)
}

fn conform_sources<D: Description>(of: &Arc<Described<D>>, sources: &[Source]) -> HashSet<&'static str> {
    testkit::computation(&**of, sources).unwrap();
    let widest = Isa::detected().into_iter().max().expect("there is one");
    // Shares that are not halves.
    let mut threads = host(&Device::with_threads(widest, 3).expect("threads start"));
    let mut legal = HashSet::new();
    for kernel in VariantKernel::all(of).expect("the spaces are whole") {
        let kernel = Arc::new(kernel);
        testkit::kernel(&kernel, &mut threads, sources, &Effort { probes: 20, runs: 2, ..Effort::default() }).unwrap();
        for device in Device::local(&[1]).expect("one thread is there") {
            for source in sources {
                legal.extend(runs_right(&kernel, &mut host(&device), source));
            }
        }
    }
    legal
}

/// The default point on real data, once; the kernel's name where there is a point.
fn runs_right<D: Description>(
    kernel: &Arc<VariantKernel<D>>,
    device: &mut HostDevice<Instant>,
    source: &Source,
) -> Option<&'static str> {
    let problem = Bound::new(kernel.clone(), device.spec().clone(), source.clone()).expect("symbols are known");
    let point = problem.default_point()?;
    let work = problem.workload(Filling::Real, 3);
    let program = problem.program(&problem.space().check(&point).expect("it is legal"));
    let expected = problem.reference(&work.buffers, &work.scalars).unwrap();
    device.upload(&Data::Given(Arc::new(work))).expect("memory");
    device.run(&program).expect("these inputs have results");
    let verdict = expected.compare(&device.read().expect("memory"));
    assert!(verdict.is_right(), "{} for {source:?} on {:?}: {verdict:?}", kernel.name(), device.spec());
    Some(kernel.name())
}

fn variants<D: Description>() -> usize {
    D::variants().len()
}

/// What the description itself calls awkward, and some of what is drawn.
#[test]
fn named_inputs_conform() {
    fn one<D: Description>() {
        let of = Arc::new(Described::<D>::default());
        let parsed = |text: &&str| of.parse(&Config::parse(text).expect(text)).expect(text);
        let sources: Vec<Source> = D::AWKWARD.iter().map(parsed).collect();
        conform_sources(&of, &sources);
    }
    one::<Spmv>();
    one::<Sort>();
    one::<Histogram>();
    one::<Bfs>();
    one::<Solver>();
    one::<Transpose>();
}

#[test]
fn products_with_sparse_matrices() {
    let mut cases = vec![
        ("no rows", Csr::of_entries(0, 0, vec![])),
        ("one element", Csr::of_entries(1, 1, vec![(0, 0, 2.0)])),
        ("one row, empty", Csr::of_entries(1, 3, vec![])),
        ("no columns", Csr::of_entries(5, 0, vec![])),
        ("empty rows", Csr::of_entries(7, 3, vec![(2, 1, 1.0), (2, 2, -1.0), (5, 0, 3.0)])),
        ("wide", Csr::of_entries(2, 19, vec![(0, 18, 1.0), (1, 0, 2.0), (1, 9, -4.0)])),
        ("unsorted and double", Csr::of_entries(3, 4, vec![(2, 3, 1.0), (0, 1, 1.0), (2, 0, 2.0), (2, 3, 0.5)])),
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
    let cases = cases.into_iter().enumerate().map(|(i, (what, m))| (format!("{i} {what}"), m));
    assert_eq!(conform::<Spmv>(cases.collect()).len(), variants::<Spmv>());
}

#[test]
fn too_much_padding_is_illegal() {
    let legal = conform::<Spmv>(vec![("wide".into(), matrices::with_full_rows(300, 1, 1, 1))]);
    assert!(!legal.contains("dia") && !legal.contains("ell") && legal.contains("csr"), "{legal:?}");
}

#[test]
fn sorting() {
    let orders = [Order::Random, Order::Reversed, Order::AlmostSorted(0.2), Order::Runs(7)];
    let mut cases = Vec::new();
    for count in [0, 1, 2, 3, 7, 15, 16, 17, 31, 97, 1009, 4099] {
        for order in orders {
            for dtype in [DType::F32, DType::F64] {
                cases.push((format!("{count} {order:?} of {dtype}"), Keys::of(dtype, keys(order, count, 1))));
            }
        }
    }
    let special =
        vec![0.0, -0.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, f64::MIN_POSITIVE, -1.0, 5e-324, f64::NAN, -f64::NAN];
    cases.push(("special in 32 bits".into(), Keys::of(DType::F32, special.clone())));
    cases.push(("special".into(), Keys::of(DType::F64, special)));
    cases.push(("equal keys".into(), Keys::of(DType::F64, vec![1.5; 63])));
    assert_eq!(conform::<Sort>(cases).len(), variants::<Sort>());
}

#[test]
fn histograms() {
    let scenes = [
        Scene::Noise(256),
        Scene::Noise(3),
        Scene::Flat,
        Scene::Ramp,
        Scene::Patches(5),
        Scene::Photo(9),
        Scene::Half(0.3),
    ];
    let mut cases = vec![("no pixels".to_owned(), Image { width: 0, pixels: vec![] })];
    for side in [1, 2, 7, 31, 67, 131] {
        cases.extend(scenes.map(|scene| (format!("{scene:?} {side}"), image(scene, side, side + 2, 1))));
    }
    assert_eq!(conform::<Histogram>(cases).len(), variants::<Histogram>());
}

#[test]
fn searches() {
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
    let cases = cases.into_iter().enumerate().map(|(i, (what, g))| (format!("{i} {what}"), g));
    assert_eq!(conform::<Bfs>(cases.collect()).len(), variants::<Bfs>());
}

#[test]
fn solvers() {
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
    assert_eq!(conform::<Solver>(cases.map(|(what, m)| (what.to_owned(), m)).into()).len(), variants::<Solver>());
}

#[test]
fn transpositions() {
    let mut cases = Vec::new();
    for (rows, cols) in [
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
        cases.extend(
            [true, false].map(|row_major| (format!("{rows}x{cols} {row_major}"), Dense { rows, cols, row_major })),
        );
    }
    assert_eq!(conform::<Transpose>(cases).len(), variants::<Transpose>());
}

#[test]
fn all_six_have_kernels_with_ids_of_their_own() {
    let kernels = tilewright_computations::kernels().expect("the spaces are whole");
    let ids: HashSet<String> = kernels.iter().map(|k| k.id().to_string()).collect();
    assert_eq!((ids.len(), kernels.len()), (35, 35));
    let computations: HashSet<String> = kernels.iter().map(|k| k.computation().to_string()).collect();
    assert_eq!(
        computations,
        HashSet::from(["spmv", "sort", "histogram", "bfs", "solve", "transpose"].map(String::from))
    );
}
