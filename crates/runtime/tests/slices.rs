//! Plans run on the caller's own slices: nothing is copied, and elements lie wherever their type may.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::buffer::{Buffer, Element, Filling, Role, View, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Val, Value};
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Bound, Erased, Problem, ProblemError};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{Config, Point};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_ops::gemm::C;
use tilewright_runtime::table::HostPlan;

/// What stands around the slices and must stand there afterwards.
const AROUND: f64 = -77.0;
/// Elements around a slice: more than a cache line.
const MARGIN: usize = 20;

fn problem(words: &str) -> Bound<CpuGemm> {
    let kernel = Arc::new(CpuGemm::new());
    let input = kernel.computation().parse(&Config::parse(words).unwrap()).unwrap();
    Bound::new(kernel, CpuDevice::new(2).unwrap().spec().clone(), input).unwrap()
}

fn program(problem: &Bound<CpuGemm>, point: &Point) -> Program {
    problem.program(&problem.space().check(point).unwrap())
}

/// A legal point by chance that stores as asked for.
fn point(problem: &Bound<CpuGemm>, store: &str, seed: u64) -> Option<Point> {
    let space = problem.space();
    let point = space.preferred_point(|param| {
        let mut values: Vec<Value> = (0..param.values.len()).map(|i| param.values[i].clone()).collect();
        values.shuffle(&mut ChaCha8Rng::seed_from_u64(seed ^ (param.name.len() as u64) << 32));
        // What stores around the caches ask of the rest comes first.
        match param.name.as_str() {
            "store" => vec![Value::from(store)],
            "axis" if store == "stream" => vec![Value::from("m")],
            "u" if store == "stream" => {
                values.sort_by_key(|v| std::cmp::Reverse(v.as_int()));
                values
            }
            "k_g" if store == "stream" => vec![Value::from(1i64)],
            _ => values,
        }
    })?;
    let stores = space.check(&point).ok()?.get("store") == Some(Val::Str(store));
    stores.then_some(point)
}

/// A caller's vectors with an operand somewhere in each.
struct Lent<T> {
    vectors: Vec<Vec<T>>,
    starts: Vec<usize>,
}

trait Number: Element + PartialEq + std::fmt::Debug {
    const AROUND: Self;
}

impl Number for f32 {
    const AROUND: Self = AROUND as Self;
}

impl Number for f64 {
    const AROUND: Self = AROUND;
}

impl<T: Number> Lent<T> {
    /// Copies of the operands, each so many elements behind the start of a cache line.
    fn new(work: &Workload, offsets: [usize; 3]) -> Self {
        let lent = |(buffer, offset): (&Buffer, usize)| {
            let mut vector = vec![T::AROUND; buffer.len() + 3 * MARGIN];
            let line = vector.as_ptr().align_offset(64);
            vector[line + offset..][..buffer.len()].copy_from_slice(buffer.as_slice::<T>());
            (vector, line + offset)
        };
        let (vectors, starts) = work.buffers.iter().zip(offsets).map(lent).unzip();
        Self { vectors, starts }
    }

    fn views<'a>(&'a mut self, work: &Workload) -> Vec<View<'a>> {
        let slices = self.vectors.iter_mut().zip(&self.starts).zip(&work.specs);
        let view = |((vector, start), spec): ((&'a mut Vec<T>, &usize), &tilewright_core::buffer::BufferSpec)| {
            let slice = &mut vector[*start..][..spec.len];
            if spec.role == Role::In { View::from(&*slice) } else { View::from(slice) }
        };
        slices.map(view).collect()
    }

    /// The operands, where nothing around them has changed.
    fn taken(&self, work: &Workload) -> Vec<Buffer> {
        let taken = |((vector, start), spec): ((&Vec<T>, &usize), &tilewright_core::buffer::BufferSpec)| {
            let (before, rest) = vector.split_at(*start);
            let (slice, after) = rest.split_at(spec.len);
            assert!(before.iter().chain(after).all(|x| *x == T::AROUND), "{}: written around it", spec.name);
            let mut buffer = Buffer::zeroed(T::DTYPE, spec.len);
            buffer.as_mut_slice::<T>().copy_from_slice(slice);
            buffer
        };
        self.vectors.iter().zip(&self.starts).zip(&work.specs).map(taken).collect()
    }
}

fn multiplies<T: Number>(words: &str, store: &str, rounds: usize) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let problem = problem(&format!("{words},dtype={}", T::DTYPE));
    let work = problem.workload(Filling::Exact, 1);
    let expected = problem.reference(&work.buffers, &work.scalars).unwrap();
    let points = (0..rounds as u64).filter_map(|seed| point(&problem, store, seed));
    points
        .map(|point| {
            let mut plan = HostPlan::new(&program(&problem, &point)).unwrap();
            for round in 0..3 {
                // Aligned, and then off by one to fifteen elements.
                let offset = |rng: &mut ChaCha8Rng| if round == 0 { 0 } else { rng.random_range(1..16) };
                let offsets = [offset(&mut rng), offset(&mut rng), offset(&mut rng)];
                let mut lent = Lent::<T>::new(&work, offsets);
                plan.call(&mut lent.views(&work), &work.scalars).unwrap();
                let verdict = expected.compare(&lent.taken(&work));
                assert!(verdict.is_right(), "{words} {offsets:?} {point:?}: {:?}", verdict.first);
            }
        })
        .count()
}

#[test]
fn slices_at_odd_addresses_are_multiplied_in_every_layout() {
    for layout in ["nn", "nt", "tn", "tt"] {
        for shape in ["m=37,n=29,k=23", "m=64,n=16,k=48", "m=1,n=9,k=5"] {
            for scalars in ["alpha=1,beta=0", "alpha=other,beta=other"] {
                let words = format!("{shape},layout={layout},{scalars}");
                assert_eq!(multiplies::<f32>(&words, "normal", 6), 6, "{words}");
                assert_eq!(multiplies::<f64>(&words, "normal", 6), 6, "{words}");
            }
        }
    }
}

#[test]
fn plans_that_store_around_the_caches_run_on_any_slice() {
    for layout in ["nn", "nt", "tn", "tt"] {
        let words = format!("m=64,n=16,k=16,layout={layout},alpha=1,beta=0");
        assert!(multiplies::<f32>(&words, "stream", 6) > 0, "{words}");
        assert!(multiplies::<f64>(&words, "stream", 6) > 0, "{words}");
    }
}

/// What a call says of other buffers than it takes.
fn refused(change: impl Fn(&mut Vec<View<'_>>)) -> (String, String) {
    let problem = problem("m=5,n=4,k=3,dtype=f32");
    let mut plan = HostPlan::new(&program(&problem, &problem.default_point().unwrap())).unwrap();
    let takes = plan.buffers().unwrap();
    assert_eq!(takes.iter().map(|s| (s.name, s.len)).collect::<Vec<_>>(), [("a", 15), ("b", 12), ("c", 20)]);
    assert_eq!((takes[C].dtype, takes[C].role), (DType::F32, Role::Out));
    let (a, b, mut c) = ([1f32; 15], [1f32; 12], [9f32; 20]);
    let mut views = vec![View::from(&a[..]), View::from(&b[..]), View::from(&mut c[..])];
    change(&mut views);
    let error = plan.call(&mut views, &[1.0, 0.0]).unwrap_err();
    drop(views);
    assert_eq!(c, [9f32; 20], "it ran in spite of it");
    let DeviceError::Argument { name, message } = error else { panic!("{error:?}") };
    (name, message)
}

#[test]
fn buffers_that_do_not_fit_are_refused_by_name() {
    let said = |(name, message): (String, String)| format!("{name}: {message}");
    static SHORT: [f32; 11] = [0.0; 11];
    static WIDE: [f64; 15] = [0.0; 15];
    static C: [f32; 20] = [0.0; 20];
    assert_eq!(
        said(refused(|v| v[1] = View::from(&SHORT[..]))),
        "b: 11 elements of f32 are given, 12 of f32 are needed"
    );
    assert_eq!(
        said(refused(|v| v[0] = View::from(&WIDE[..]))),
        "a: 15 elements of f64 are given, 15 of f32 are needed"
    );
    assert_eq!(said(refused(|v| v[2] = View::from(&C[..]))), "c: is written, and was lent to be read only");
    assert_eq!(said(refused(|v| v.truncate(2))), "buffers: 2 are given, 3 are needed: a, b, c");
    assert_eq!(said(refused(|v| v.push(View::from(&C[..])))), "buffers: 4 are given, 3 are needed: a, b, c");
}

#[test]
fn ten_lines_multiply_slices() {
    let problem = problem("m=2,n=2,k=2,dtype=f64,align=8");
    let mut plan = HostPlan::new(&program(&problem, &problem.default_point().unwrap())).unwrap();
    let (a, b, mut c) = (vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0, 7.0, 8.0], vec![0.0; 4]);
    plan.call(&mut [(&a[..]).into(), (&b[..]).into(), (&mut c[..]).into()], &[1.0, 0.0]).unwrap();
    assert_eq!(c, [23.0, 34.0, 31.0, 46.0]);
}

#[test]
fn element_types_without_code_are_refused_by_field() {
    let kernel: Box<dyn AnyKernel> = Box::new(Erased::new(CpuGemm::new()));
    let device = CpuDevice::new(1).unwrap().spec().clone();
    let types =
        [("dtype=f16", "dtype"), ("dtype=f32,acc=f64", "acc"), ("dtype=f64,out=f32", "out"), ("dtype=c64", "dtype")];
    for (types, field) in types {
        let words = Config::parse(&format!("m=4,n=4,k=4,{types}")).unwrap();
        match kernel.problem(&device, &words).err() {
            Some(ProblemError::Input(error)) => assert_eq!(error.field, field, "{error}"),
            other => panic!("{types}: {other:?}"),
        }
    }
}
