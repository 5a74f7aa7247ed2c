//! Features of a device, by small microbenchmarks in the spirit of Nitro's custom ones, and the sizes of its caches.

use super::Device;
use crate::isa::Isa;
use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// A named number that tells devices apart.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFeature {
    /// Its name with the unit, one of [`FEATURES`].
    pub name: &'static str,
    /// Its value, positive.
    pub value: f64,
}

/// How long the microbenchmarks take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Milliseconds, for tests: the numbers mean little.
    Trial,
    /// About a second a device.
    Full,
}

/// The names of all features, in the order of [`measure`]. `scratch_gbps` is the bandwidth of what fits the first cache: what
/// shared memory is on a GPU. `shared_atomic_ms` is for counters of a thread's own, `global_atomic_ms` for those of all threads.
pub const FEATURES: [&str; 13] = [
    "cores",
    "simd_bits",
    "l1_kib",
    "l2_kib",
    "l3_kib",
    "peak_gflops_sp",
    "peak_gflops_dp",
    "peak_gbps",
    "l2_gbps",
    "scratch_gbps",
    "shared_atomic_ms",
    "global_atomic_ms",
    "fork_join_us",
];

/// Measures a device. Each number is the best of several runs: what the device can do, whatever else the host does.
pub fn measure(device: &Device, effort: Effort) -> Vec<DeviceFeature> {
    device.enter(|| measure_inside(device, effort))
}

/// Measures devices in turns, so that what passes by on the host meets all of them alike, and keeps the best of each number.
pub fn measure_in_turns(devices: &[Device], effort: Effort, rounds: usize) -> Vec<Vec<DeviceFeature>> {
    let mut all: Vec<Vec<DeviceFeature>> = devices.iter().map(|device| measure(device, effort)).collect();
    for _ in 1..rounds {
        for (device, known) in devices.iter().zip(&mut all) {
            for (known, new) in known.iter_mut().zip(measure(device, effort)) {
                let time = known.name.ends_with("_ms") || known.name.ends_with("_us");
                known.value = if time { known.value.min(new.value) } else { known.value.max(new.value) };
            }
        }
    }
    all
}

fn measure_inside(device: &Device, effort: Effort) -> Vec<DeviceFeature> {
    let (runs, scale) = match effort {
        Effort::Trial => (1, 64),
        Effort::Full => (8, 1),
    };
    let cache = |level| cache_kib(level).unwrap_or(0.0).max(1.0);
    let values = [
        device.threads() as f64,
        device.isa().lanes() as f64 * 64.0,
        cache(1),
        cache(2),
        cache(3),
        flops::<f32>(device, runs, 400_000 / scale),
        flops::<f64>(device, runs, 400_000 / scale),
        // Four times the last cache, or what is left of that where it is shared by many.
        bandwidth(device, runs, (8 << 20) / scale, 1),
        bandwidth(device, runs, 20 << 10, 400 / scale),
        bandwidth(device, runs, 1 << 10, 8000 / scale),
        atomics(device, runs, 1_000_000 / scale, true),
        atomics(device, runs, 1_000_000 / scale, false),
        fork_join(device, 100 * runs),
    ];
    FEATURES.into_iter().zip(values).map(|(name, value)| DeviceFeature { name, value }).collect()
}

/// The best of several runs in seconds.
fn best(runs: usize, mut run: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64().max(1e-9)
    };
    (0..runs).map(once).fold(f64::INFINITY, f64::min)
}

/// Sizes of data and unified caches as the kernel reports them.
fn cache_kib(level: u32) -> Option<f64> {
    let folders = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let read = |folder: &std::path::Path, file: &str| fs::read_to_string(folder.join(file)).ok();
    folders.flatten().map(|f| f.path()).find_map(|folder| {
        let here: u32 = read(&folder, "level")?.trim().parse().ok()?;
        let data = read(&folder, "type")?.trim() != "Instruction";
        let size = read(&folder, "size")?;
        let kib: f64 = size.trim().trim_end_matches('K').parse().ok()?;
        (here == level && data).then_some(kib)
    })
}

trait Real: Copy + Send + Sync + Default {
    fn small(i: usize) -> Self;
    fn step<const FUSE: bool>(self, by: Self, plus: Self) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Real for $t {
            fn small(i: usize) -> Self {
                0.5 + 0.001 * i as $t
            }
            #[inline(always)]
            fn step<const FUSE: bool>(self, by: Self, plus: Self) -> Self {
                if FUSE { self.mul_add(by, plus) } else { self * by + plus }
            }
        }
    };
}
real!(f32);
real!(f64);

/// Independent multiply-adds in as many accumulators as keep two units of the widest registers busy.
#[inline(always)]
fn chains<T: Real, const FUSE: bool, const N: usize>(steps: usize) -> [T; N] {
    let mut all: [T; N] = std::array::from_fn(T::small);
    let (by, plus) = (black_box(T::small(1)), black_box(T::small(2)));
    for _ in 0..steps {
        for a in &mut all {
            *a = a.step::<FUSE>(by, plus);
        }
    }
    all
}

/// Accumulators of type `T` that hide the latency of two units: 8 registers where multiply and add fuse, else 12.
fn accumulators<T>(isa: Isa) -> usize {
    let registers = if isa.fuses() { 8 } else { 12 };
    registers * isa.lanes() * size_of::<f64>() / size_of::<T>()
}

fn chains_on<T: Real>(isa: Isa, steps: usize) {
    macro_rules! run {
        ($fuse:literal, $accumulators:literal) => {{
            black_box(isa.run(
                #[inline(always)]
                || chains::<T, $fuse, $accumulators>(steps),
            ));
        }};
    }
    match (isa.fuses(), accumulators::<T>(isa)) {
        (false, 24) => run!(false, 24),
        (false, 48) => run!(false, 48),
        (false, _) => run!(false, 96),
        (true, 32) => run!(true, 32),
        (true, 64) => run!(true, 64),
        (true, _) => run!(true, 128),
    }
}

/// 10^9 operations a second.
fn flops<T: Real>(device: &Device, runs: usize, steps: usize) -> f64 {
    let isa = device.isa();
    let seconds = best(runs, || {
        device.spmd(|_| chains_on::<T>(isa, steps));
    });
    2.0 * (accumulators::<T>(isa) * steps * device.threads()) as f64 / seconds * 1e-9
}

#[inline(always)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 0.5 * c;
    }
}

/// 10^9 bytes a second of a + b s, `elements` a vector and thread.
fn bandwidth(device: &Device, runs: usize, elements: usize, passes: usize) -> f64 {
    let isa = device.isa();
    // The three vectors together are what must fit.
    let each = (elements / 3).max(64);
    let mut data: Vec<_> = (0..device.threads()).map(|_| [vec![0.0; each], vec![1.0; each], vec![2.0; each]]).collect();
    let seconds = best(runs, || {
        device.each(data.iter_mut().collect(), |[a, b, c]| {
            for _ in 0..passes.max(1) {
                isa.run(
                    #[inline(always)]
                    || triad(black_box(a.as_mut_slice()), b, c),
                );
            }
        });
    });
    (24 * each * passes.max(1) * device.threads()) as f64 / seconds * 1e-9
}

/// Milliseconds of 10^6 atomic additions: to counters of the thread's own, or to one table of all threads.
fn atomics(device: &Device, runs: usize, count: usize, own: bool) -> f64 {
    const LINES: usize = 32;
    let counters: Vec<AtomicU64> = (0..8 * LINES * device.threads()).map(|_| AtomicU64::new(0)).collect();
    let seconds = best(runs, || {
        device.spmd(|thread| {
            let first = if own { thread * 8 * LINES } else { 0 };
            for i in 0..count {
                counters[first + i * 8 % (8 * LINES)].fetch_add(1, Relaxed);
            }
        });
    });
    seconds * 1e3 * (1e6 / count as f64)
}

/// Microseconds to call a function on all threads and wait for them.
fn fork_join(device: &Device, runs: usize) -> f64 {
    let seconds = best(runs, || {
        black_box(device.spmd(black_box));
    });
    seconds * 1e6
}
