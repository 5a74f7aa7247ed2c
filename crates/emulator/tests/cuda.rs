//! Textbook CUDA C, compiled by NVIDIA's compiler (`tests/cuda/compile.py`): the results are those of the host, and
//! nothing is found.

mod fixture;

use fixture::{assert_close, bytes_of, f32_buffer, launch, numbers, product, read_f32, read_u32, u32_buffer};
use tilewright_emulator::{Argument, Launch, Memory, Module, Report};

fn module(name: &str) -> Module {
    let path = format!("{}/tests/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    Module::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn run(name: &str, grid: [u32; 3], block: [u32; 3], args: &[Argument], memory: &mut Memory) -> Report {
    let report = launch(&module(name), name, grid, block, args, memory);
    assert_eq!(report.findings, [], "{name}");
    report
}

fn integers(count: usize, below: u32, seed: u64) -> Vec<u32> {
    numbers(count, seed).iter().map(|x| ((f64::from(*x) + 1.0) / 2.0 * f64::from(below)) as u32).collect()
}

fn int(x: usize) -> Argument {
    Argument::U32(x as u32)
}

#[test]
fn reduction() {
    let (x, mut memory) = (numbers(5000, 1), Memory::new());
    let ids = [f32_buffer(&mut memory, "in", &x), f32_buffer(&mut memory, "out", &[0.0])];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(5000)];
    run("reduction", [3, 1, 1], [256, 1, 1], &args, &mut memory);
    assert_close(&read_f32(&memory, ids[1]), &[x.iter().map(|x| f64::from(*x)).sum()], 1e-3);
}

#[test]
fn scan() {
    let (x, mut memory) = (integers(300, 100, 2), Memory::new());
    let ids = [u32_buffer(&mut memory, "in", &x), u32_buffer(&mut memory, "out", &[0; 300])];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(300)];
    let launch = Launch { shared_bytes: 2 * 128 * 4, ..Launch::new("scan", [3, 1, 1], [128, 1, 1], &args) };
    let report = module("scan").launch(&launch, &mut memory).unwrap();
    assert_eq!(report.findings, []);
    let sums = |segment: &[u32]| {
        segment
            .iter()
            .scan(0, |s, x| {
                *s += x;
                Some(*s)
            })
            .collect::<Vec<u32>>()
    };
    assert_eq!(read_u32(&memory, ids[1]), x.chunks(128).flat_map(sums).collect::<Vec<_>>());
}

#[test]
fn histogram() {
    let (x, mut memory) = (integers(3001, 256, 3), Memory::new());
    let data: Vec<u8> = x.iter().map(|x| *x as u8).collect();
    let ids = [memory.add("in", &data).unwrap(), u32_buffer(&mut memory, "bins", &[0; 256])];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(3001)];
    run("histogram", [4, 1, 1], [96, 1, 1], &args, &mut memory);
    let count = |bin: u32| data.iter().filter(|d| u32::from(**d) == bin).count() as u32;
    assert_eq!(read_u32(&memory, ids[1]), (0..256).map(count).collect::<Vec<_>>());
}

#[test]
fn transpose() {
    let (rows, columns) = (37, 50);
    let x: Vec<f64> = numbers(rows * columns, 4).iter().map(|x| f64::from(*x)).collect();
    let mut memory = Memory::new();
    let data = bytes_of(&x, f64::to_le_bytes);
    let ids = [memory.add("in", &data).unwrap(), memory.add_unwritten("out", data.len()).unwrap()];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(rows), int(columns)];
    run("transpose", [4, 3, 1], [16, 16, 1], &args, &mut memory);
    let turned: Vec<f64> =
        (0..columns).flat_map(|c| (0..rows).map(move |r| (r, c))).map(|(r, c)| x[r * columns + c]).collect();
    assert_eq!(memory.read(ids[1]), bytes_of(&turned, f64::to_le_bytes));
}

#[test]
fn stencil() {
    let (x, w, mut memory) = (numbers(500, 5), numbers(7, 6), Memory::new());
    let module = module("stencil");
    let weights = memory.variable(&module, "weights").unwrap();
    memory.write(weights, &bytes_of(&w, f32::to_le_bytes)).unwrap();
    let ids = [f32_buffer(&mut memory, "in", &x), f32_buffer(&mut memory, "out", &[0.0; 500])];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(500)];
    let report = launch(&module, "stencil", [4, 1, 1], [128, 1, 1], &args, &mut memory);
    assert_eq!(report.findings, []);
    let at = |i: i64| usize::try_from(i).ok().and_then(|i| x.get(i)).map_or(0.0, |x| f64::from(*x));
    let expected = |i: i64| (0..7).map(|d| f64::from(w[d as usize]) * at(i + d - 3)).sum();
    assert_close(&read_f32(&memory, ids[1]), &(0..500).map(expected).collect::<Vec<f64>>(), 1e-5);
}

#[test]
fn matmul() {
    let [m, n, k] = [33, 40, 21];
    let (a, b, mut memory) = (numbers(m * k, 7), numbers(k * n, 8), Memory::new());
    let ids = [&a, &b, &vec![0.0; m * n]].map(|v| f32_buffer(&mut memory, "matrix", v));
    let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
    args.extend([m, n, k].map(int));
    run("matmul", [3, 3, 1], [16, 16, 1], &args, &mut memory);
    assert_close(&read_f32(&memory, ids[2]), &product(&a, &b, [m, n, k]), 1e-5);
}

#[test]
fn softmax() {
    let (rows, columns) = (3, 300);
    let (x, mut memory) = (numbers(rows * columns, 9), Memory::new());
    let x: Vec<f32> = x.iter().map(|x| 10.0 * x).collect();
    let ids = [f32_buffer(&mut memory, "in", &x), f32_buffer(&mut memory, "out", &x)];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(columns)];
    run("softmax", [rows as u32, 1, 1], [128, 1, 1], &args, &mut memory);
    let mut expected = Vec::new();
    for row in x.chunks(columns) {
        let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        expected.extend(row.iter().map(|x| f64::from(*x).exp() / total));
    }
    assert_close(&read_f32(&memory, ids[1]), &expected, 1e-6);
}

#[test]
fn dot() {
    let [x, y] = [10, 11].map(|seed| numbers(2000, seed).iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
    let mut memory = Memory::new();
    let ids = [&x, &y, &vec![0.0]].map(|v| memory.add("vector", &bytes_of(v, f64::to_le_bytes)).unwrap());
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), Argument::buffer(ids[2]), int(2000)];
    run("dot", [2, 1, 1], [256, 1, 1], &args, &mut memory);
    let found = f64::from_le_bytes(memory.read(ids[2]).try_into().unwrap());
    let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
    assert!((found - expected).abs() < 1e-11, "{found}, expected {expected}");
}

#[test]
fn bitonic() {
    let (mut x, mut memory) = (integers(1024, 100_000, 12), Memory::new());
    let id = u32_buffer(&mut memory, "data", &x);
    run("bitonic", [2, 1, 1], [256, 1, 1], &[Argument::buffer(id)], &mut memory);
    x.chunks_mut(512).for_each(<[u32]>::sort_unstable);
    assert_eq!(read_u32(&memory, id), x);
}

#[test]
fn spmv() {
    let (rows, columns) = (50, 70);
    let lengths = integers(rows, 80, 13);
    let starts: Vec<u32> = std::iter::once(0)
        .chain(lengths.iter().scan(0, |s, l| {
            *s += l;
            Some(*s)
        }))
        .collect();
    let count = starts[rows] as usize;
    let (places, values, x) = (integers(count, columns as u32, 14), numbers(count, 15), numbers(columns, 16));
    let mut memory = Memory::new();
    let ids = [
        u32_buffer(&mut memory, "starts", &starts),
        u32_buffer(&mut memory, "columns", &places),
        f32_buffer(&mut memory, "values", &values),
        f32_buffer(&mut memory, "x", &x),
        f32_buffer(&mut memory, "y", &vec![0.0; rows]),
    ];
    let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
    args.push(int(rows));
    run("spmv", [13, 1, 1], [128, 1, 1], &args, &mut memory);
    let row = |r: usize| {
        let terms = starts[r] as usize..starts[r + 1] as usize;
        terms.map(|i| f64::from(values[i]) * f64::from(x[places[i] as usize])).sum()
    };
    assert_close(&read_f32(&memory, ids[4]), &(0..rows).map(row).collect::<Vec<f64>>(), 1e-4);
}

#[test]
fn compact() {
    let x: Vec<u32> = integers(1000, 200, 17).iter().map(|x| x.wrapping_sub(100)).collect();
    let mut memory = Memory::new();
    let ids = [&x, &vec![0; 1000], &vec![0]].map(|v| u32_buffer(&mut memory, "numbers", v));
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), Argument::buffer(ids[2]), int(1000)];
    run("compact", [8, 1, 1], [128, 1, 1], &args, &mut memory);
    let mut expected: Vec<u32> = x.into_iter().filter(|x| *x as i32 > 0).collect();
    let count = read_u32(&memory, ids[2])[0] as usize;
    assert_eq!(count, expected.len());
    let mut found = read_u32(&memory, ids[1])[..count].to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn matvec() {
    // Multiples of 1/64 below 1 are exact in binary16: its bits are put together here.
    let half = |x: u32| -> (u16, f64) {
        let value = f64::from(x) / 64.0;
        let exponent = value.log2().floor();
        let fraction = value / exponent.exp2() - 1.0;
        if x == 0 { (0, 0.0) } else { (((exponent as i32 + 15) as u16) << 10 | (fraction * 1024.0) as u16, value) }
    };
    let (rows, columns) = (5, 260);
    let a: Vec<_> = integers(rows * columns, 64, 18).into_iter().map(half).collect();
    let x: Vec<_> = integers(columns, 64, 19).into_iter().map(half).collect();
    let mut memory = Memory::new();
    let bits = |v: &[(u16, f64)]| v.iter().flat_map(|(bits, _)| bits.to_le_bytes()).collect::<Vec<u8>>();
    let ids = [
        memory.add("a", &bits(&a)).unwrap(),
        memory.add("x", &bits(&x)).unwrap(),
        f32_buffer(&mut memory, "y", &[0.0; 5]),
    ];
    let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
    args.push(int(columns / 2));
    run("matvec", [rows as u32, 1, 1], [128, 1, 1], &args, &mut memory);
    let expected: Vec<f64> = a.chunks(columns).map(|row| row.iter().zip(&x).map(|(a, x)| a.1 * x.1).sum()).collect();
    assert_close(&read_f32(&memory, ids[2]), &expected, 1e-4);
}

#[test]
fn nbody() {
    let n = 100;
    let bodies = numbers(4 * n, 20);
    let mut memory = Memory::new();
    let ids = [f32_buffer(&mut memory, "bodies", &bodies), f32_buffer(&mut memory, "out", &vec![0.0; 4 * n])];
    let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(n)];
    run("nbody", [2, 1, 1], [64, 1, 1], &args, &mut memory);
    let body = |i: usize, axis: usize| f64::from(bodies[4 * i + axis]);
    let mut expected = vec![0.0; 4 * n];
    for i in 0..n {
        for j in 0..n {
            let d = [0, 1, 2].map(|axis| body(j, axis) - body(i, axis));
            let r = (d.iter().map(|d| d * d).sum::<f64>() + 1e-3).sqrt().recip();
            for axis in 0..3 {
                expected[4 * i + axis] += d[axis] * body(j, 3) * r * r * r;
            }
        }
    }
    let scale = expected.iter().fold(0f64, |m, x| m.max(x.abs()));
    assert_close(&read_f32(&memory, ids[1]), &expected, 1e-4 * scale);
}

#[test]
fn mandelbrot() {
    let (width, height, most) = (40, 24, 60);
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "out", &vec![0; width * height]);
    let args = [Argument::buffer(id), int(width), int(height), int(most)];
    run("mandelbrot", [3, 4, 1], [16, 8, 1], &args, &mut memory);
    let found = read_u32(&memory, id);
    let escape = |x: usize, y: usize, nudge: f32| {
        let cx = 3.0f32.mul_add(x as f32 / width as f32, -2.0) + nudge;
        let cy = 2.0f32.mul_add(y as f32 / height as f32, -1.0);
        let (mut zx, mut zy, mut i) = (0.0f32, 0.0f32, 0);
        while i < most as i32 && zx * zx + zy * zy < 4.0 {
            (zx, zy) = (zx.mul_add(zx, -(zy * zy)) + cx, (2.0 * zx).mul_add(zy, cy));
            i += 1;
        }
        match i % 5 {
            0 => i,
            1 => i * 2,
            2 => i / 3,
            3 => -i,
            _ => i ^ 0x55,
        }
    };
    // Points at the set's edge depend on the last bit; where the neighbourhood agrees, the result is certain.
    let mut certain = 0;
    for (i, found) in found.iter().enumerate() {
        let (x, y) = (i % width, i / width);
        let values = [-1e-5, 0.0, 1e-5].map(|nudge| escape(x, y, nudge));
        if values[0] == values[1] && values[1] == values[2] {
            assert_eq!(*found as i32, values[1], "point {x}, {y}");
            certain += 1;
        }
    }
    assert!(certain > width * height * 3 / 4, "only {certain} certain points");
}

/// Functions that were not inlined; `calls_debug` is the same source compiled for a debugger.
#[test]
fn calls_of_functions() {
    let n = 70;
    let x = numbers(n, 21);
    for file in ["calls", "calls_debug"] {
        let mut memory = Memory::new();
        let ids = [f32_buffer(&mut memory, "x", &x), f32_buffer(&mut memory, "out", &vec![0.0; 3 * n])];
        let args = [Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(n)];
        let report = launch(&module(file), "calls", [3, 1, 1], [32, 1, 1], &args, &mut memory);
        assert_eq!(report.findings, [], "{file}");
        let square_plus = |x: f64, n: usize| if n.is_multiple_of(3) { x * x } else { x * x + n as f64 };
        let expected = (0..n).flat_map(|i| {
            let (a, b) = (square_plus(f64::from(x[i]), i), f64::from(x[n - 1 - i]));
            let seen = x[..=i].iter().map(|x| f64::from(*x));
            let (low, high) = (seen.clone().fold(f64::INFINITY, f64::min), seen.fold(f64::NEG_INFINITY, f64::max));
            [a.min(b), a.max(b), if i % 2 == 1 { square_plus(high - low, 1) * 0.5 } else { 0.0 }]
        });
        assert_close(&read_f32(&memory, ids[1]), &expected.collect::<Vec<f64>>(), 1e-5);
    }
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let module = module("refused");
    for (kernel, message) in [
        ("prints", "vprintf"),
        ("recurses", "_Z3fibi calls itself"),
        ("jumps", "calls through a register"),
        ("allocates", "malloc"),
    ] {
        let error = module.check(kernel).unwrap_or_else(|| panic!("{kernel} is accepted"));
        assert!(error.message.contains(message) && error.place.line > 1, "{error}");
        assert!(error.opcode.starts_with("call"), "{error}");
    }
    assert_eq!(module.check("points"), None);
}

#[test]
fn assertions_that_do_not_hold_are_findings() {
    for (x, faults) in [(1, vec![]), (0, vec!["assertion"])] {
        let mut memory = Memory::new();
        let id = u32_buffer(&mut memory, "x", &[x, 0]);
        let report = launch(&module("refused"), "asserts", [1; 3], [1; 3], &[Argument::buffer(id)], &mut memory);
        assert_eq!(fixture::faults(&report), faults);
    }
}

#[test]
fn variables_hold_addresses_of_others() {
    let mut memory = Memory::new();
    let id = u32_buffer(&mut memory, "x", &[0]);
    let report = launch(&module("refused"), "points", [1; 3], [1; 3], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, []);
    assert_eq!(read_u32(&memory, id), [2]);
}

#[test]
fn functions_of_the_compilers_library() {
    let n = 90;
    let x: Vec<f64> = numbers(n, 22).iter().map(|x| 8.0 * f64::from(*x)).collect();
    let mut memory = Memory::new();
    let ids = [&x, &vec![0.0; 6 * n]].map(|v| memory.add("vector", &bytes_of(v, f64::to_le_bytes)).unwrap());
    run("math", [3, 1, 1], [32, 1, 1], &[Argument::buffer(ids[0]), Argument::buffer(ids[1]), int(n)], &mut memory);
    let bytes = memory.read(ids[1]);
    for (i, row) in bytes.chunks_exact(48).enumerate() {
        let v = x[i];
        let expected = [
            (v.abs() + 0.1).powf(1.7),
            (v * 1e6).sin(),
            v.exp(),
            (v.abs() + 1.0).ln(),
            v.atan2(2.0),
            (f64::from(v.abs() as f32 + 0.5)).powf(f64::from(2.3f32)),
        ];
        for (k, (found, expected)) in row.chunks_exact(8).zip(expected).enumerate() {
            let found = f64::from_le_bytes(found.try_into().unwrap());
            let within = if k == 5 { 1e-6 } else { 1e-14 };
            assert!((found - expected).abs() <= within * expected.abs() + 1e-15, "{k} of {v}: {found}, {expected}");
        }
    }
}
