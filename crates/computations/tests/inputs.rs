//! What names data, what is kept of them, and programs that come to no result.

use std::fs;
use std::sync::Arc;
use std::time::Instant;
use tilewright_computations::bfs::Bfs;
use tilewright_computations::described::Described;
use tilewright_computations::description::Description;
use tilewright_computations::device::Device;
use tilewright_computations::generate::matrices;
use tilewright_computations::histogram::Histogram;
use tilewright_computations::isa::Isa;
use tilewright_computations::kernel::VariantKernel;
use tilewright_computations::matrix::Csr;
use tilewright_computations::solver::Solver;
use tilewright_computations::sort::Sort;
use tilewright_computations::source::Source;
use tilewright_computations::spmv::Spmv;
use tilewright_computations::transpose::Transpose;
use tilewright_core::buffer::{BufferSpec, Filling};
use tilewright_core::computation::{Computation, InputError, InputLimits};
use tilewright_core::data::Data;
use tilewright_core::device::{Device as _, DeviceSpec, HostDevice};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::space::Config;
use tilewright_testkit::toy;

fn narrow() -> HostDevice<Instant> {
    toy::host_device_with(Arc::new(Device::single(Isa::BASE).spec(&toy::device())))
}

/// A device with the widest vectors there are.
fn wide() -> DeviceSpec {
    let mut wide = (*toy::device()).clone();
    wide.facts.insert("vec_max".into(), 64);
    wide
}

fn config(text: &str) -> Config {
    Config::parse(text).expect(text)
}

fn refused(text: &str) -> InputError {
    Described::<Spmv>::default().parse(&config(text)).expect_err(text)
}

#[test]
fn names_read_back() {
    let of = Described::<Spmv>::default();
    for (given, complete) in [
        ("matrix=banded,rows=100,half=3", "matrix=banded,rows=100,half=3,density=1,seed=1"),
        ("matrix=banded,seed=7,density=0.25,half=3,rows=100", "matrix=banded,rows=100,half=3,density=0.25,seed=7"),
        ("matrix=stencil,points=7,side=9", "matrix=stencil,points=7,side=9,shift=0.1"),
    ] {
        let source = of.parse(&config(given)).expect(given);
        assert_eq!(of.fields(&source).to_string(), complete);
        assert_eq!(of.parse(&config(complete)), Ok(source));
    }
}

#[test]
fn faults_name_their_field() {
    for (text, field, part) in [
        ("rows=3", "matrix", "missing"),
        ("matrix=baned,rows=3", "matrix", "generators stencil banded"),
        ("matrix=baned", "matrix", "neither a file nor one of the generators stencil banded"),
        ("matrix=banded,rows=100", "half", "missing"),
        ("matrix=banded,rows=0,half=1", "rows", "within 1"),
        ("matrix=banded,rows=1.5,half=1", "rows", "integer"),
        ("matrix=banded,rows=x,half=1", "rows", "integer"),
        ("matrix=banded,rows=10,half=1,density=0.12345678", "density", "six decimals"),
        ("matrix=banded,rows=10,half=1,sides=3", "sides", "unknown"),
        ("matrix=banded,rows=10000000,half=1000", "rows half", "keep rows to at most 99950, or half to at most 9"),
        (
            "matrix=uniform,rows=1000,per_row=1000000",
            "rows per_row",
            "keep rows to at most 200, or per_row to at most 200000",
        ),
        ("matrix=stencil,points=27,side=5000", "side", "keep side to at most 194"),
        ("matrix=sparse,rows=9,cols=9,entries=200000001", "entries", "keep entries to at most 200000000"),
        ("matrix=", "matrix", "no value is given: a file or one of the generators stencil"),
        ("matrix=banded,rows=,half=1", "rows", "no value is given: an integer within 1..="),
        ("matrix=stencil,points=9,side=4", "points", "none of"),
        ("matrix=held:mine", "matrix", "held"),
    ] {
        let error = refused(text);
        assert!(error.field == field && error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn files_are_known_by_their_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mtx");
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 4.0\n";
    fs::write(&path, text).expect("is written");
    let of = Arc::new(Described::<Spmv>::default());
    let named = Config(vec![("matrix".into(), path.display().to_string().as_str().into())]);
    let source = of.parse(&named).expect("a file");
    let complete = of.fields(&source);
    assert_eq!(of.parse(&complete).as_ref(), Ok(&source), "{complete}");
    assert_eq!(of.data(&source).expect("it is there").nonzeros(), 1);

    // Another content is another input; the complete name of the old one is refused.
    fs::write(&path, text.replace("4.0", "17.25")).expect("is written");
    let other = of.parse(&named).expect("a file");
    assert_ne!(other, source);
    let error = of.parse(&complete).expect_err("the content is another one");
    assert_eq!(error.field, "content");

    // A line that is no entry, in another computation's words: line and column.
    fs::write(&path, text.replace("1 1 4.0", "1 1 4.x")).expect("is written");
    let error = of.parse(&named).expect_err("a fault");
    assert!(error.field == "matrix" && error.message.contains("line 3, column 5"), "{error}");
}

#[test]
fn a_file_that_vanished_is_an_error_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mtx");
    fs::write(&path, "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 4.0\n").expect("is written");
    let named = Config(vec![("matrix".into(), path.display().to_string().as_str().into())]);
    let source = Described::<Spmv>::default().parse(&named).expect("a file");
    fs::remove_file(&path).expect("is there");
    // Another process, which has not read it.
    let of = Arc::new(Described::<Spmv>::default());
    let kernel = Arc::new(VariantKernel::all(&of).expect("spaces").remove(0));
    let mut host = narrow();
    let problem = Bound::new(kernel, host.spec().clone(), source).expect("symbols");
    let point = problem.default_point().expect("a point");
    let work = problem.workload(Filling::Real, 0);
    let program = problem.program(&problem.space().check(&point).expect("it is legal"));
    let run = host.upload(&Data::Given(Arc::new(work))).and_then(|()| host.run(&program));
    assert!(matches!(&run, Err(DeviceError::Argument { name, .. }) if name == "matrix"), "{run:?}");
}

#[test]
fn held_data_are_there_until_they_are_released() {
    let of = Described::<Spmv>::default();
    let source = of.hold("mine", matrices::stencil(5, 6, 0.1));
    assert_eq!(of.parse(&of.fields(&source)), Ok(source.clone()));
    let other = of.hold("mine", matrices::stencil(5, 7, 0.1));
    assert_ne!(source, other);
    assert_eq!(of.data(&source).expect_err("replaced").field, "content");
    of.release("mine");
    assert_eq!(of.parse(&config("matrix=held:mine")).expect_err("released").field, "matrix");
}

#[test]
fn inputs_are_drawn_within_limits_with_what_is_fixed() {
    let of = Described::<Spmv>::default();
    let limits = InputLimits { max_flops: 1e6, max_bytes: 1e5 };
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1u32 << 24)
    };
    for _ in 0..40 {
        let source = of.draw(&config("half=2"), &limits, &mut uniform).expect("banded matrices have it");
        assert!(of.fields(&source).to_string().starts_with("matrix=banded,"));
        assert!(of.work(&source).bytes <= 1e5);
    }
    let error = of.draw(&config("half=2,points=5"), &limits, &mut uniform).expect_err("no generator has both");
    assert_eq!(error.field, "half");
    assert_eq!(of.draw(&config("depth=2"), &limits, &mut uniform).expect_err("no field").field, "depth");
    assert_eq!(of.draw(&config("half=x"), &limits, &mut uniform).expect_err("no number").field, "half");
}

#[test]
fn features_are_computed_once_and_their_cost_is_known() {
    let of = Arc::new(Described::<Spmv>::default());
    let source = of.parse(&config("matrix=uniform,rows=500,per_row=9")).expect("a name");
    let kernels = VariantKernel::all(&of).expect("spaces");
    let spec = narrow().spec().clone();
    let problems: Vec<_> =
        kernels.into_iter().map(|k| Bound::new(Arc::new(k), spec.clone(), source.clone()).expect("symbols")).collect();
    assert_eq!(problems[0].features_seconds(), None);
    let rows: Vec<Vec<f32>> = problems
        .iter()
        .map(|p| {
            let mut row = Vec::new();
            p.input_features(&mut row);
            row
        })
        .collect();
    assert!(rows.iter().all(|row| *row == rows[0]) && rows[0][1] > 4000.0, "{rows:?}");
    let seconds = problems[0].features_seconds().expect("they were computed");
    assert!(seconds > 0.0 && problems.iter().all(|p| p.features_seconds() == Some(seconds)));
}

/// Seconds of the fastest product of several, by rows.
fn product_seconds(source: &Source) -> (f64, f64) {
    let of = Arc::new(Described::<Spmv>::default());
    let kernel = Arc::new(VariantKernel::all(&of).expect("spaces").remove(1));
    let mut host = toy::host_device_with(Arc::new(Device::of(&wide()).expect("a thread").spec(&toy::device())));
    let problem = Bound::new(kernel, host.spec().clone(), source.clone()).expect("symbols");
    let program = problem.program(&problem.space().check(&[]).expect("it is legal"));
    host.upload(&problem.data(0)).expect("memory");
    let once = |_| {
        let began = Instant::now();
        host.run(&program).expect("products have results");
        began.elapsed().as_secs_f64()
    };
    let product = (0..9).map(once).fold(f64::INFINITY, f64::min);
    problem.input_features(&mut Vec::new());
    (problem.features_seconds().expect("they were computed"), product)
}

#[test]
fn features_cost_less_than_a_product() {
    for text in [
        "matrix=banded,rows=30000,half=3,density=0.8",
        "matrix=uniform,rows=12000,per_row=12",
        "matrix=power-law,rows=20000,mean=9,exponent=2.2,longest=2000",
        "matrix=rmat,scale=14,per_row=12",
        "matrix=mesh,side=150,mixing=30",
        "matrix=full-rows,rows=20000,per_row=4,full=3",
    ] {
        let source = Described::<Spmv>::default().parse(&config(text)).expect(text);
        let runs: Vec<(f64, f64)> = (0..3).map(|_| product_seconds(&source)).collect();
        let least = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
        let (features, product) = (least(|r| r.0), least(|r| r.1));
        println!("{text}: features {:.1} us, a product {:.1} us", features * 1e6, product * 1e6);
        assert!(features < product, "{text}: features {features} s, a product {product} s");
    }
}

/// The variants that run, and those that say that there is no result.
fn solve(matrix: Csr) -> (Vec<&'static str>, Vec<(&'static str, String)>) {
    let of = Arc::new(Described::<Solver>::default());
    let source = of.hold("matrix", matrix);
    let (mut ran, mut failed, mut host) = (Vec::new(), Vec::new(), narrow());
    for kernel in VariantKernel::all(&of).expect("spaces") {
        let name = kernel.name();
        let problem = Bound::new(Arc::new(kernel), host.spec().clone(), source.clone()).expect("symbols");
        let work = problem.workload(Filling::Real, 0);
        let program =
            problem.program(&problem.space().check(&problem.default_point().expect("a point")).expect("it is legal"));
        let expected = problem.reference(&work.buffers, &work.scalars).unwrap();
        host.upload(&Data::Given(Arc::new(work))).expect("memory");
        match host.run(&program).and_then(|()| host.read()) {
            Ok(after) => {
                let verdict = expected.compare(&after);
                assert!(verdict.is_right(), "{name}: {verdict:?}");
                ran.push(name);
            }
            Err(DeviceError::NoResult(why)) => failed.push((name, why)),
            Err(other) => panic!("{name}: {other}"),
        }
    }
    (ran, failed)
}

#[test]
fn solvers_that_cannot_solve_say_so() {
    let failed = |matrix| solve(matrix).1.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    // Neither positive definite nor negative definite; then no diagonal; then singular.
    let indefinite = failed(Csr::of_entries(4, 4, vec![(0, 0, 1.0), (1, 1, -1.0), (2, 2, 2.0), (3, 3, -3.0)]));
    assert!(indefinite.contains(&"cg-fainv"), "{indefinite:?}");
    let hollow = Csr::of_entries(2, 2, vec![(0, 1, 1.0), (1, 0, 1.0)]);
    let without = failed(hollow.clone());
    assert!(without.contains(&"cg-jacobi") && without.contains(&"bicgstab-fainv"), "{without:?}");
    let (_, why) = solve(hollow);
    assert!(why.iter().any(|(name, why)| *name == "cg-jacobi" && why.contains("row 0")), "{why:?}");
    let (ran, _) = solve(Csr::of_entries(2, 2, vec![(0, 0, 1.0)]));
    assert!(ran.is_empty(), "{ran:?}");
}

#[test]
fn devices_are_what_their_facts_say() {
    for device in Device::local(&[1, 2]).expect("threads start") {
        let again = Device::of(&device.spec(&toy::device())).expect("threads start");
        assert_eq!(again.name(), device.name());
    }
    assert_eq!(Some(Device::of(&wide()).expect("one thread").isa()), Isa::detected().into_iter().max());
}

/// What is told before data are made is what their buffers take, for every generator that there is.
fn is_foretold<D: Description>() {
    let of = Described::<D>::default();
    let limits = InputLimits { max_flops: 1e9, max_bytes: 4e6 };
    for generator in D::GENERATORS {
        let name = Config(vec![(D::FIELD.to_owned(), generator.name.into())]);
        let mut state = 0.3;
        for _ in 0..20 {
            let mut uniform = || {
                state = f64::fract(state * 997.0 + 0.123);
                state
            };
            let source = of.draw(&name, &limits, &mut uniform).unwrap();
            let told = of.footprint(&source) as f64;
            let made: u64 = of.buffers(&source).iter().map(BufferSpec::bytes).sum();
            let fields = of.fields(&source);
            // Entries at the same place are one; rows of a power law stray; every buffer has an end, and images have bins.
            assert!(told * 1.2 + 2048.0 >= made as f64, "{fields}: {told} told, {made} made");
            assert!(told <= 4.0 * made as f64 + 2048.0, "{fields}: {told} told, {made} made");
        }
    }
}

#[test]
fn the_memory_of_data_is_told_before_they_are_made() {
    is_foretold::<Spmv>();
    is_foretold::<Solver>();
    is_foretold::<Bfs>();
    is_foretold::<Sort>();
    is_foretold::<Histogram>();
    is_foretold::<Transpose>();
}
