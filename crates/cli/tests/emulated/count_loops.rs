//! Random kernels of loops, and random measuring kernels, are counted as the emulator runs them: every class, every test kernel.

use crate::counts::{Shares, compare, counted_and_run, emulated, symbolic, triples};
use crate::stand::{device, rng, run};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use tilewright_core::buffer::{Buffer, BufferSpec, Role, Workload};
use tilewright_core::dtype::DType;
use tilewright_core::program::{self, Arg, Code, Program, Step};
use tilewright_core::space::Config;
use tilewright_loops::kernel::{Mapping, Stmt, visit};
use tilewright_loops::library::{self, Beside, COPIES, Cached, Operation, Transposing};
use tilewright_loops::{Instance, LoopError, LoopKernel};
use tilewright_ptxgen::count::{CountError, Counter, Launch};
use tilewright_ptxgen::ir::{Axis, Builder, Compare, Form, Index, Module, Space, Special, Type};
use tilewright_ptxgen::loops::{count, program};
use tilewright_ptxgen::micro::{self, Micro};
use tilewright_ptxgen::print::print;
use tilewright_ptxgen::ragged;

type Sizes = BTreeMap<&'static str, i64>;

fn any<T: Copy>(rng: &mut ChaCha8Rng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

/// Threads of a group along two axes.
fn group(rng: &mut ChaCha8Rng) -> (i64, i64) {
    (any(rng, &[4, 8, 16, 32]), any(rng, &[1, 2, 4, 8, 16]))
}

/// Products `n x m` by `m x l`, with or without tiles of any depth.
fn product(rng: &mut ChaCha8Rng) -> Result<(LoopKernel, Sizes), LoopError> {
    let (x, y) = group(rng);
    let mut times = |of: i64| of * rng.random_range(1..4);
    let sizes = [("n", times(y)), ("l", times(x)), ("m", times(x.max(16)))].into();
    let kernel = match rng.random_range(0..5) {
        0 => library::matmul((x, y)),
        1 => library::skinny_matmul((x, y)),
        2 => library::naive_matmul((x, y)),
        _ => {
            let depth = any(rng, &[2, 4, 8, 16]);
            let tiled = library::naive_matmul((x, y))?.split("k", depth, "ko", "ki")?;
            let (a, b) = (rng.random_range(0..3), rng.random_range(0..3));
            let tiled = tiled.prefetch("a", "ta", Some("ko"), &["it", "ki"], a)?;
            if rng.random() { tiled.prefetch("b", "tb", Some("ko"), &["ki", "jt"], b) } else { Ok(tiled) }
        }
    };
    Ok((kernel?, sizes))
}

/// Kernels that move data.
fn moving(rng: &mut ChaCha8Rng) -> Result<(LoopKernel, Sizes), LoopError> {
    let (x, y) = group(rng);
    let threads = any(rng, &[32, 64, 128, 256]);
    let n = threads * rng.random_range(1..5);
    let k = rng.random_range(1..6);
    let square = [("n", x.max(y) * rng.random_range(1..4))].into();
    let one = [("n", n)].into();
    let two: Sizes = [("n", n), ("k", k)].into();
    Ok(match rng.random_range(0..11) {
        0 => (library::scale_and_add(rng.random_range(1..7), threads)?, one),
        1 => (library::transpose(any(rng, &Transposing::ALL), (x, y))?, square),
        2 => (library::stride_one(any(rng, &COPIES), threads)?, one),
        3 => (library::strided_sums(rng.random_range(1..6), 32)?, [("n", 32 * rng.random_range(1..3))].into()),
        4 => (library::empty((x, y))?, square),
        5 => (library::bank_stride(rng.random_range(1..9), any(rng, &[32, 64, 128]))?, [("n", 256), ("k", k)].into()),
        6 => (library::atomics(threads)?, two),
        7 => {
            let mixed = library::mixed(any(rng, &Beside::ALL), any(rng, &[0, 4, 8, 16]), threads)?;
            (mixed, [("n", n), ("k", k), ("m", rng.random_range(1..5))].into())
        }
        8 => {
            let sizes = [("n", n), ("k", k), ("m", rng.random_range(1..5))].into();
            (library::cached(any(rng, &Cached::ALL), threads)?, sizes)
        }
        9 => (library::uncoalesced(rng.random_range(1..20), threads)?, two),
        _ => (library::reread(threads)?, [("n", n), ("k", k), ("m", rng.random_range(1..9))].into()),
    })
}

/// Kernels that compute, and the other test kernels.
fn computing(rng: &mut ChaCha8Rng) -> Result<(LoopKernel, Sizes), LoopError> {
    let (x, y) = group(rng);
    let square = x.max(y) * rng.random_range(1..3);
    Ok(match rng.random_range(0..4) {
        0 => {
            let what = any(rng, &Operation::ALL);
            (library::arithmetic(what, rng.random(), (x, y))?, [("n", square), ("k", rng.random_range(1..9))].into())
        }
        1 => (library::finite_difference((x, y))?, [("n", square)].into()),
        2 => (library::convolution((x, 4))?, [("n", x.max(4))].into()),
        _ => {
            let threads = any(rng, &[32, 64, 128]);
            (library::n_body(threads)?, [("n", threads * rng.random_range(1..3))].into())
        }
    })
}

/// Loops that each thread runs are split or not, and written out or not, where the kernel allows it.
fn transformed(mut kernel: LoopKernel, sizes: &Sizes, rng: &mut ChaCha8Rng) -> LoopKernel {
    let own = |k: &LoopKernel| -> Vec<&'static str> {
        let own = k.loops.iter().filter(|l| matches!(l.mapping, Mapping::Sequential | Mapping::Unrolled));
        own.map(|l| l.index).collect()
    };
    let names = [("outer_1", "inner_1"), ("outer_2", "inner_2")];
    for ((outer, inner), index) in names.into_iter().zip(own(&kernel)) {
        let extent = kernel.find_loop(index).unwrap().extent.clone();
        let divides = |by: &i64| extent.eval(index, sizes).is_ok_and(|e| e % by == 0);
        let factors: Vec<i64> = [2, 3, 4, 5, 8].into_iter().filter(divides).collect();
        if factors.is_empty() || rng.random_range(0..3) == 0 {
            continue;
        }
        kernel = kernel.clone().split(index, any(rng, &factors), outer, inner).unwrap_or(kernel);
    }
    for index in own(&kernel) {
        let extent = kernel.find_loop(index).unwrap().extent.constant();
        let mapping = match extent {
            Some(1..=16) if rng.random() => Mapping::Unrolled,
            _ => Mapping::Sequential,
        };
        kernel = kernel.map(index, mapping).unwrap();
    }
    kernel
}

/// The kernels of a class, the class chosen by the seed so that each gets its share.
fn drawn(seed: u64) -> (String, Instance) {
    let mut rng = rng(seed);
    for _ in 0..100 {
        let (kernel, sizes) = match seed % 3 {
            0 => product(&mut rng),
            1 => moving(&mut rng),
            _ => computing(&mut rng),
        }
        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let kernel = transformed(kernel, &sizes, &mut rng);
        let what = format!("seed {seed}: {} {sizes:?} {:?}", kernel.name, kernel.loops);
        if let Ok(instance) = Instance::new(kernel, &sizes) {
            return (what, instance);
        }
    }
    panic!("seed {seed}: no kernel has these sizes");
}

fn words(instance: &Instance) -> Config {
    Config(instance.sizes().iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect())
}

#[test]
fn random_kernels_of_loops() {
    let target = "sm_80".parse().unwrap();
    (0..triples()).into_par_iter().for_each(|seed| {
        let (what, instance) = drawn(seed);
        let counts = count(instance.kernel(), target).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (_, program) = program(&instance, target).unwrap_or_else(|e| panic!("{what}: {e}"));
        let ran = emulated(&program, &instance.workload(seed), &what);
        counted_and_run(&counts, &words(&instance), &ran, Shares::Compared, &what);
    });
}

#[test]
fn random_kernels_are_of_every_class() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut fetched = 0;
    for seed in 0..3000 {
        let (_, instance) = drawn(seed);
        visit(&instance.kernel().body, &mut |s| fetched += usize::from(matches!(s, Stmt::Fetch { .. })));
        *seen.entry(instance.kernel().name.clone()).or_default() += 1;
    }
    let library = [library::measurement_set(library::Scale::Tiny), library::test_set(library::Scale::Tiny)];
    for case in library.into_iter().flat_map(Result::unwrap) {
        let name = &case.instance.kernel().name;
        assert!(seen.contains_key(name) || name.starts_with("uncoalesced"), "{name} of {seen:?}");
    }
    assert!(fetched > 900, "{fetched}");
}

/// The launch of a measuring kernel: its parameters are the sizes.
fn check_micro(micro: &Micro) {
    let Step::Launch(program::Launch { grid, args, .. }) = &micro.program.steps[0] else { unreachable!() };
    let names = micro.module.entry.params.iter().map(|p| p.name.clone());
    let words = names.zip(args).filter_map(|(name, arg)| match arg {
        Arg::U32(x) => Some((name, i64::from(*x).into())),
        Arg::U64(x) => Some((name, (*x as i64).into())),
        _ => None,
    });
    let words: Vec<_> = words.chain([("blocks".to_owned(), i64::from(grid[0]).into())]).collect();
    let launch = Launch::new([Index::param("blocks"), 1.into(), 1.into()]);
    let mut counter = Counter::new();
    counter.launch(&micro.module, &launch).unwrap_or_else(|e| panic!("{}: {e}", micro.name));
    let counts = counter.finish();
    let buffers = micro.buffers.iter().map(|s| Buffer::zeroed(s.dtype, s.len)).collect();
    let work = Workload { specs: micro.buffers.clone(), buffers, scalars: Vec::new() };
    let ran = emulated(&micro.program, &work, &micro.name);
    compare(&symbolic(&counts, &Config(words), &micro.name), &ran, &counts, &micro.name);
}

#[test]
fn random_measuring_kernels() {
    let target = "sm_80".parse().unwrap();
    check_micro(&micro::empty(target));
    (0..triples() / 2).into_par_iter().for_each(|seed| {
        let mut rng = rng(seed);
        let (blocks, times) = (rng.random_range(1..6), rng.random_range(1..7));
        let traffic = any(&mut rng, &[micro::Traffic::Read, micro::Traffic::Write, micro::Traffic::Copy]);
        let bytes = rng.random_range(1..1 << 18);
        check_micro(&match seed % 4 {
            0 => micro::fma(target, Type::F32, blocks, times),
            1 => micro::fma(target, Type::F64, blocks, times),
            2 => micro::shared(target, blocks, times),
            _ => micro::memory(target, traffic, blocks, bytes, times),
        });
    });
}

#[test]
fn given_statistics_count_what_depends_on_data() {
    // Blocks go round as often as their data say, and half of a warp's threads find a number above one.
    let mut b = Builder::new();
    let x = b.buffer("x", 16);
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let (rows, own) = (b.mad_wide(block, 4u32, x), b.mad_wide(tid, 4u32, x));
    let trips = b.load(Space::Global, Type::U32, 1, rows, 0);
    b.repeat("rows", trips[0], |b, _| b.barrier());
    let flag = b.load(Space::Global, Type::U32, 1, own, 128);
    let set = b.compare(Compare::Gt, flag[0], 1u32, None);
    b.when(set, Form::Branch, |b| {
        b.load(Space::Global, Type::U32, 1, own, 0);
    });
    let module = Module { target: "sm_80".parse().unwrap(), entry: b.finish("sparse", 32) };
    let mut launch = Launch::new([Index::param("blocks"), 1.into(), 1.into()]);
    let mut words = vec![("blocks".to_owned(), 2i64.into())];
    let counts = loop {
        match tilewright_ptxgen::count::count(&module, &launch) {
            Ok(counts) => break counts,
            Err(CountError::DataDependent { statistics, .. }) => {
                for name in statistics {
                    let value: i64 = if name.ends_with(".trips") { 5 } else { 16 };
                    words.push((name.clone(), value.into()));
                    assert!(launch.statistics.insert(name), "asked twice");
                }
            }
            Err(error) => panic!("{error}"),
        }
    };
    let code = Code::Ptx { text: print(&module), entry: "sparse".into() };
    let launch = program::Launch::new(code, [2, 1, 1], [32, 1, 1], vec![Arg::Buffer(0, 0)]);
    let mut data = Buffer::zeroed(DType::I32, 64);
    for (i, number) in data.as_mut_slice::<u32>().iter_mut().enumerate() {
        *number = if i < 2 { 3 + 4 * i as u32 } else { u32::from((32..48).contains(&i)) * 2 };
    }
    let specs = vec![BufferSpec { name: "x", dtype: DType::I32, len: 64, role: Role::In }];
    let work = Workload { specs, buffers: vec![data], scalars: Vec::new() };
    let ran = emulated(&Program::launch(launch), &work, "sparse");
    compare(&symbolic(&counts, &Config(words), "sparse"), &ran, &counts, "sparse");
}

#[test]
fn ragged_rows_are_right_and_counted_by_statistics_of_them() {
    let (rows, lengths) = (ragged::ROWS as usize, [3usize, 9, 1, 7]);
    let (all, longest) = (lengths.len() * rows, 9);
    let wanted = |row: usize| row % rows < 40;
    let element = |row: usize, column: usize| (row % 7) as f32 - column as f32;
    let mut buffers: Vec<Buffer> = [(DType::F32, all * longest), (DType::F32, longest), (DType::I32, lengths.len())]
        .into_iter()
        .chain([(DType::I32, all), (DType::F32, all)])
        .map(|(dtype, len)| Buffer::zeroed(dtype, len))
        .collect();
    for (i, a) in buffers[0].as_mut_slice::<f32>().iter_mut().enumerate() {
        *a = element(i % all, i / all);
    }
    buffers[1].as_mut_slice::<f32>().iter_mut().enumerate().for_each(|(i, x)| *x = i as f32 + 1.0);
    buffers[2].as_mut_slice::<u32>().iter_mut().zip(lengths).for_each(|(to, n)| *to = n as u32);
    buffers[3].as_mut_slice::<u32>().iter_mut().enumerate().for_each(|(row, to)| *to = u32::from(wanted(row)));
    let spec = |(name, b): (&'static str, &Buffer)| {
        let role = if name == "y" { Role::InOut } else { Role::In };
        BufferSpec { name, dtype: b.dtype(), len: b.len(), role }
    };
    let specs = ragged::BUFFERS.into_iter().zip(&buffers).map(spec).collect();
    let work = Workload { specs, buffers, scalars: Vec::new() };
    let target = "sm_80".parse().unwrap();
    let program = ragged::program(target, lengths.len() as u32);
    let after = run(&mut device("sm_80"), &program, &work, "ragged");
    for (row, y) in after[4].as_slice::<f32>().iter().enumerate() {
        let sum: f32 = (0..lengths[row / rows]).map(|j| element(row, j) * (j as f32 + 1.0)).sum();
        assert_eq!(*y, if wanted(row) { sum } else { 0.0 }, "{row}");
    }
    // What goes round evenly on average is counted as if it did everywhere.
    let names = ["ragged/columns[23].trips", "ragged/wanted[24]/when[1].threads"];
    let launch = Launch { statistics: names.map(str::to_owned).into(), ..ragged::launch() };
    let counts = tilewright_ptxgen::count::count(&ragged::module(target), &launch).unwrap();
    let words = [("slices", 4i64), (names[0], 5), (names[1], 40)].map(|(name, n)| (name.to_owned(), n.into()));
    let ran = emulated(&program, &work, "ragged");
    compare(&symbolic(&counts, &Config(words.into()), "ragged"), &ran, &counts, "ragged");
}
