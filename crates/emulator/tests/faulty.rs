//! Faulty variants of CUDA kernels (`tests/cuda/lines/faulty.cu`), compiled with the lines of the source: what is wrong
//! is found in the right line, and nothing is found in the right kernels.

mod fixture;

use fixture::{f32_buffer, numbers, read_f32, read_u32, u32_buffer};
use std::sync::OnceLock;
use tilewright_emulator::{Argument, BufferId, Finding, Launch, Memory, Module, Origin, Report};

const SOURCE: &str = include_str!("cuda/lines/faulty.cu");

fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| Module::parse(include_str!("cuda/lines/faulty.ptx")).unwrap())
}

/// Variant `v` of a kernel: names of template instances are mangled.
fn run(
    name: &str,
    v: u32,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    args: &[Argument],
    memory: &mut Memory,
) -> Report {
    let prefix = format!("_Z{}{name}ILi{v}EE", name.len());
    let entry = module().entries().find(|e| e.starts_with(&prefix)).unwrap_or_else(|| panic!("{prefix}"));
    let launch = Launch { shared_bytes: shared, ..Launch::new(entry, grid, block, args) };
    module().launch(&launch, memory).unwrap_or_else(|e| panic!("{entry}: {e}"))
}

fn int(x: usize) -> Argument {
    Argument::U32(x as u32)
}

fn buffers(ids: &[BufferId]) -> Vec<Argument> {
    ids.iter().copied().map(Argument::buffer).collect()
}

fn close(found: &[f32], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| (f64::from(*f) - e).abs() < 1e-3)
}

/// A report, and whether the results are right.
type Outcome = (Report, bool);

fn reduce(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(5001, 1), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), f32_buffer(&mut memory, "out", &[0.0])];
    let args = [buffers(&ids), vec![int(5001)]].concat();
    let report = run("reduce", v, [3, 1, 1], [256, 1, 1], 0, &args, &mut memory);
    (report, close(&read_f32(&memory, ids[1]), &[x.iter().map(|x| f64::from(*x)).sum()]))
}

fn matmul(v: u32) -> Outcome {
    let [m, n, k] = [40, 39, 37];
    let (a, b, mut memory) = (numbers(m * k, 2), numbers(k * n, 3), Memory::new());
    let ids = [f32_buffer(&mut memory, "a", &a), f32_buffer(&mut memory, "b", &b)];
    let c = memory.add_unwritten("c", m * n * 4).unwrap();
    let args = [buffers(&ids), buffers(&[c]), [m, n, k].map(int).to_vec()].concat();
    let report = run("matmul", v, [3, 3, 1], [16, 16, 1], 0, &args, &mut memory);
    (report, close(&read_f32(&memory, c), &fixture::product(&a, &b, [m, n, k])))
}

/// Variant 5 is the right kernel with too little shared memory.
fn stencil(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(500, 4), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 2000).unwrap()];
    let args = [buffers(&ids), vec![int(500)]].concat();
    let shared = if v == 5 { 128 + 3 } else { 128 + 6 } * 4;
    let report = run("stencil", v % 5, [4, 1, 1], [128, 1, 1], shared, &args, &mut memory);
    let at = |i: i64| usize::try_from(i).ok().and_then(|i| x.get(i)).map_or(0.0, |x| f64::from(*x));
    let expected: Vec<f64> = (0..500).map(|i| (i - 3..=i + 3).map(at).sum()).collect();
    (report, close(&read_f32(&memory, ids[1]), &expected))
}

fn histogram(v: u32) -> Outcome {
    let data: Vec<u8> = numbers(3001, 5).iter().map(|x| (x * 128.0 + 128.0) as u8).collect();
    let mut memory = Memory::new();
    let ids = [memory.add("in", &data).unwrap(), u32_buffer(&mut memory, "bins", &[0; 256])];
    let args = [buffers(&ids), vec![int(3001)]].concat();
    let report = run("histogram", v, [3, 1, 1], [256, 1, 1], 0, &args, &mut memory);
    let count = |bin: u32| data.iter().filter(|d| u32::from(**d) == bin).count() as u32;
    (report, read_u32(&memory, ids[1]) == (0..256).map(count).collect::<Vec<_>>())
}

fn warp_sum(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(128, 6), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 8).unwrap()];
    let report = run("warp_sum", v, [2, 1, 1], [32, 1, 1], 0, &buffers(&ids), &mut memory);
    let expected: Vec<f64> = x.chunks(64).map(|c| c.iter().map(|x| f64::from(*x)).sum()).collect();
    (report, close(&read_f32(&memory, ids[1]), &expected))
}

fn pipeline(v: u32) -> Outcome {
    let (tiles, mut memory) = (5, Memory::new());
    let x = numbers(tiles * 256 + 4, 7);
    let ids = [f32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 256).unwrap()];
    let args = [buffers(&ids), vec![int(tiles)]].concat();
    let report = run("pipeline", v, [1, 1, 1], [64, 1, 1], 0, &args, &mut memory);
    let sum = |t: usize| (0..tiles).map(|tile| f64::from(x[tile * 256 + (4 * t + 5) % 256])).sum();
    (report, close(&read_f32(&memory, ids[1]), &(0..64).map(sum).collect::<Vec<f64>>()))
}

fn add4(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(256, 8), Memory::new());
    let ids =
        [f32_buffer(&mut memory, "in", &[&x[..], &[0.0; 4]].concat()), memory.add_unwritten("out", 1024).unwrap()];
    let args = [buffers(&ids), vec![int(256)]].concat();
    let report = run("add4", v, [1, 1, 1], [64, 1, 1], 0, &args, &mut memory);
    let expected: Vec<f64> = x.iter().enumerate().map(|(i, x)| f64::from(*x) + (i % 4 + 1) as f64).collect();
    (report, close(&read_f32(&memory, ids[1]), &expected))
}

fn buckets(v: u32) -> Outcome {
    let x: Vec<u32> = numbers(320, 9).iter().map(|x| (x * 50.0 + 50.0) as u32).collect();
    let mut memory = Memory::new();
    let ids = [u32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 128).unwrap()];
    let args = [buffers(&ids), vec![int(320)]].concat();
    let report = run("buckets", v, [1, 1, 1], [32, 1, 1], 0, &args, &mut memory);
    let expected = (0..32).map(|t| {
        let mut count = [0u32; 8];
        (t..320).step_by(32).for_each(|i| count[(x[i] & 7) as usize] += 1);
        let most = (1..8).fold(0, |most, i| if count[i] > count[most] { i } else { most });
        most as u32 + 8 * count[(x[t] & 7) as usize]
    });
    (report, read_u32(&memory, ids[1]) == expected.collect::<Vec<_>>())
}

fn last_block(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(64, 10), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), memory.add_unwritten("parts", 32).unwrap()];
    let out = memory.add_unwritten("out", 4).unwrap();
    let args = [buffers(&ids), buffers(&[out])].concat();
    let report = run("last_block", v, [8, 1, 1], [64, 1, 1], 0, &args, &mut memory);
    (report, close(&read_f32(&memory, out), &[x.iter().map(|x| f64::from(*x)).sum()]))
}

fn shift(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(300, 11), Memory::new());
    let ids = ["in", "out", "same"].map(|name| f32_buffer(&mut memory, name, &x));
    let args = [buffers(&ids), vec![int(300)]].concat();
    let report = run("shift", v, [3, 1, 1], [128, 1, 1], 0, &args, &mut memory);
    let mut expected: Vec<f64> = x[1..].iter().map(|x| f64::from(*x)).collect();
    expected.push(f64::from(x[299]));
    (report, close(&read_f32(&memory, ids[1]), &expected))
}

fn count(v: u32) -> Outcome {
    let x: Vec<u32> = numbers(200, 12).iter().map(|x| (x * 50.0) as i32 as u32).collect();
    let mut memory = Memory::new();
    let ids = [u32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 32).unwrap()];
    let args = [buffers(&ids), vec![int(200)]].concat();
    let report = run("count", v, [2, 1, 1], [128, 1, 1], 0, &args, &mut memory);
    let warp = |w: usize| x.iter().skip(32 * w).take(32).filter(|x| **x as i32 > 0).count() as u32;
    (report, read_u32(&memory, ids[1]) == (0..8).map(warp).collect::<Vec<_>>())
}

fn row_sums(v: u32) -> Outcome {
    let (x, mut memory) = (numbers(600, 13), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), memory.add_unwritten("out", 480).unwrap()];
    let args = [buffers(&ids), vec![int(120), int(5)]].concat();
    let report = run("row_sums", v, [2, 1, 1], [64, 1, 1], 0, &args, &mut memory);
    let expected = x.chunks(5).map(|row| row.iter().map(|x| f64::from(*x)).sum());
    (report, close(&read_f32(&memory, ids[1]), &expected.collect::<Vec<_>>()))
}

type Kernel = fn(u32) -> Outcome;

const KERNELS: [(char, Kernel); 12] = [
    ('r', reduce),
    ('m', matmul),
    ('s', stencil),
    ('h', histogram),
    ('w', warp_sum),
    ('p', pipeline),
    ('v', add4),
    ('l', buckets),
    ('f', last_block),
    ('g', shift),
    ('b', count),
    ('u', row_sums),
];

/// The marks of faults in the source, and the kinds that they are found as.
const FAULTS: [(&str, &str); 37] = [
    ("r1", "out_of_bounds"),
    ("r2", "inactive_lane"),
    ("r3", "race"),
    ("r4", "out_of_bounds"),
    ("r5", "race"),
    ("m1", "out_of_bounds"),
    ("m2", "race"),
    ("m3", "race"),
    ("m4", "race"),
    ("m5", "out_of_bounds"),
    ("m6", "divergent_barrier"),
    ("m7", "out_of_bounds"),
    ("m8", "out_of_bounds"),
    ("s1", "unwritten"),
    ("s2", "unwritten"),
    ("s3", "out_of_bounds"),
    ("s4", "out_of_bounds"),
    ("s5", "out_of_bounds"),
    ("h1", "race"),
    ("h2", "unwritten"),
    ("h3", "race"),
    ("h4", "race"),
    ("h5", "unwritten"),
    ("h6", "race"),
    ("w1", "race"),
    ("w2", "race"),
    ("p1", "in_flight"),
    ("p2", "in_flight"),
    ("p3", "race"),
    ("p4", "misaligned"),
    ("v1", "misaligned"),
    ("v2", "out_of_bounds"),
    ("l1", "unwritten"),
    ("f1", "race"),
    ("g1", "race"),
    ("g2", "race"),
    ("b1", "inactive_lane"),
];

/// More of them, where the line has no other fault.
const MORE: [(&str, &str); 4] = [("f2", "race"), ("b2", "inactive_lane"), ("b3", "trap"), ("u1", "undefined")];

fn line_of(mark: &str) -> u32 {
    let marked = |line: &str| line.split('@').skip(1).any(|m| m.split_whitespace().next() == Some(mark));
    SOURCE.lines().position(marked).unwrap_or_else(|| panic!("no mark {mark}")) as u32 + 1
}

#[test]
fn right_kernels_are_right_and_nothing_is_found() {
    for (letter, kernel) in KERNELS {
        let (report, is_right) = kernel(0);
        assert_eq!(report.findings, [], "{letter}");
        assert!(is_right, "{letter}");
    }
}

#[test]
fn faults_are_found_in_their_lines() {
    let mut missed = Vec::new();
    for (mark, kind) in FAULTS.into_iter().chain(MORE) {
        let (letter, v) = mark.split_at(1);
        let (_, kernel) = KERNELS.into_iter().find(|(l, _)| letter.starts_with(*l)).unwrap();
        let (report, _) = kernel(v.parse().unwrap());
        let line = line_of(mark);
        let is_line = |source: &Option<Origin>| source.as_ref().is_some_and(|s| s.at.line == line);
        let is_it = |f: &&Finding| {
            f.fault.name() == kind && (is_line(&f.source) || f.first.as_ref().is_some_and(|s| is_line(&s.source)))
        };
        match report.findings.iter().find(is_it) {
            Some(finding) => assert!(finding.to_string().contains(&format!("faulty.cu line {line}")), "{finding}"),
            None => missed.push(format!(
                "{mark}, line {line}: {:?}",
                report.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
            )),
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}
