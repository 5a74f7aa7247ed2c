//! How fast kernels run: thread instructions a second on a 256³ product in binary32.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fixture::{f32_buffer, module, numbers};
use tilewright_emulator::{Argument, Launch, Memory};

fn gemm(c: &mut Criterion) {
    let mut group = c.benchmark_group("256x256x256");
    for (name, entry, tile, block) in
        [("sgemm16.ptx", "sgemm16", 16, [16, 16, 1]), ("sgemm64.ptx", "sgemm64", 64, [8, 8, 1])]
    {
        let module = module(name);
        let mut memory = Memory::new();
        let x = numbers(256 * 256, 1);
        let ids = [0; 3].map(|_| f32_buffer(&mut memory, "x", &x));
        let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
        args.extend([Argument::U32(256), Argument::U32(256), Argument::U32(256), Argument::F32(1.0)]);
        let launch = Launch::new(entry, [256 / tile, 256 / tile, 1], block, &args);
        let report = module.launch(&launch, &mut memory).expect("the kernel runs");
        assert_eq!(report.findings, []);
        group.throughput(Throughput::Elements(report.counts.total().threads));
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
            group.bench_function(format!("{entry}/{threads} threads"), |b| {
                b.iter(|| pool.install(|| module.launch(&launch, &mut memory)).expect("the kernel runs"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, gemm);
criterion_main!(benches);
