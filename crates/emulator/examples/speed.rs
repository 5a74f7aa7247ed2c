//! How fast generated products of 256 x 256 matrices run: thread instructions a second on one thread of the host and on
//! two, and how that scales. Prints JSON.
//!
//! ```text
//! cargo run --release -p tilewright-emulator --example speed [-- NAME [SECONDS]]
//! ```
//!
//! The kernels in `tests/ptx/speed` are what `ptxgen` prints for `m=256,n=256,k=256` on sm_80: `f32_2x2` is the default
//! configuration, the others change the tile of a thread, the layout or the type. Of each, the fastest of the runs that
//! fit into the time counts: what else the host does only adds to a run.

use std::path::Path;
use std::time::{Duration, Instant};
use tilewright_emulator::{Argument, Launch, Memory, Module};

/// Sides of the matrices.
const N: usize = 256;

struct Case {
    name: &'static str,
    entry: &'static str,
    grid: [u32; 3],
    block: u32,
    element: usize,
}

const CASES: [Case; 4] = [
    Case { name: "f32_8x8", entry: "gemm_f32_nn", grid: [4, 4, 1], block: 64, element: 4 },
    Case { name: "f32_8x8_async", entry: "gemm_f32_nt", grid: [4, 4, 1], block: 64, element: 4 },
    Case { name: "f32_2x2", entry: "gemm_f32_nn", grid: [16, 16, 1], block: 64, element: 4 },
    Case { name: "f64_4x4", entry: "gemm_f64_nn", grid: [4, 8, 1], block: 128, element: 8 },
];

type Failure = Box<dyn std::error::Error>;

/// Thread instructions of a run, and the seconds of the fastest one.
fn measure(case: &Case, threads: usize, time: Duration) -> Result<(u64, f64), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/speed").join(format!("{}.ptx", case.name));
    let module = Module::parse(&std::fs::read_to_string(path)?)?;
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for name in ["a", "b", "c"] {
        args.push(Argument::buffer(memory.add(name, &vec![0; N * N * case.element])?));
    }
    args.extend(std::iter::repeat_n(Argument::U32(N as u32), 6));
    args.extend([1.0, 0.0].map(|x| if case.element == 8 { Argument::F64(x) } else { Argument::F32(x as f32) }));
    let launch = Launch::new(case.entry, case.grid, [case.block, 1, 1], &args);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let (start, mut best, mut instructions) = (Instant::now(), f64::INFINITY, 0);
    while start.elapsed() < time {
        let begin = Instant::now();
        let report = pool.install(|| module.launch(&launch, &mut memory))?;
        best = best.min(begin.elapsed().as_secs_f64());
        instructions = report.counts.total().threads;
        if let Some(finding) = report.findings.first() {
            return Err(finding.to_string().into());
        }
    }
    Ok((instructions, best))
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = args.get(1).map_or(Ok(2.0), |s| s.parse())?;
    let time = Duration::try_from_secs_f64(seconds)?;
    let chosen = CASES.iter().filter(|c| args.first().is_none_or(|name| name == c.name || name == "all"));
    let mut lines = Vec::new();
    for case in chosen {
        let (instructions, one) = measure(case, 1, time)?;
        let (_, two) = measure(case, 2, time)?;
        let rate = |s: f64| instructions as f64 / s / 1e6;
        lines.push(format!(
            "{{\"kernel\":\"{}\",\"thread_instructions\":{instructions},\"one_thread_s\":{one:.4},\
             \"one_thread_million_per_s\":{:.0},\"two_threads_s\":{two:.4},\"two_threads_million_per_s\":{:.0},\
             \"scaling\":{:.2}}}",
            case.name,
            rate(one),
            rate(two),
            one / two
        ));
    }
    println!("[{}]", lines.join(",\n "));
    Ok(())
}
