//! Peak rates of the host, measured: multiply-adds from registers, and reads from each level of memory.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilewright_core::device::DeviceSpec;

/// Each rate is the best of several rounds of about this long: interference only ever lowers a rate.
const ROUND: Duration = Duration::from_millis(4);
const ROUNDS: usize = 5;

/// Rates of all threads of the device together, measured once per process.
pub(super) fn measured(spec: &DeviceSpec) -> BTreeMap<String, f64> {
    static KNOWN: Mutex<Option<HashMap<i64, BTreeMap<String, f64>>>> = Mutex::new(None);
    let threads = spec.fact("threads").unwrap_or(1);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().entry(threads).or_insert_with(|| measure(spec)).clone()
}

fn measure(spec: &DeviceSpec) -> BTreeMap<String, f64> {
    let fact = |name| spec.fact(name).and_then(|x| usize::try_from(x).ok()).unwrap_or(1);
    let threads = fact("threads");
    let mut out = BTreeMap::new();
    out.insert("peak_flops_f32".to_owned(), together(threads, || multiply_adds_f32));
    out.insert("peak_flops_f64".to_owned(), together(threads, || multiply_adds_f64));
    // Half a cache, so that what else lives there does not push the data out; several times the last one for memory.
    let levels = [("l1", fact("l1d_bytes") / 2), ("l2", fact("l2_bytes") / 2), ("l3", fact("l3_bytes") / 2 / threads)];
    for (name, bytes) in
        levels.into_iter().chain([("memory", (4 * fact("l3_bytes") / threads).clamp(1 << 26, 1 << 28))])
    {
        let rate = together(threads, || {
            let data = vec![1u64; (bytes / 8).max(64)];
            move |_| {
                black_box(sum(black_box(&data)));
                (data.len() * 8) as f64
            }
        });
        out.insert(format!("{name}_bytes_per_s"), rate);
    }
    out
}

/// Best rate of several rounds in which all threads work at once. `make` gives each thread its work: a call does about
/// the given number of steps and returns how much was done.
fn together<W: FnMut(usize) -> f64>(threads: usize, make: impl Fn() -> W + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let round = |work: &mut W| {
        barrier.wait();
        let (start, mut done) = (Instant::now(), 0.0);
        while start.elapsed() < ROUND {
            done += work(1000);
        }
        done / start.elapsed().as_secs_f64()
    };
    let rates: Vec<[f64; ROUNDS]> = std::thread::scope(|scope| {
        let worker = || {
            let mut work = make();
            std::array::from_fn(|_| round(&mut work))
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).collect()
    });
    (0..ROUNDS).map(|r| rates.iter().map(|of| of[r]).sum()).fold(0.0, f64::max)
}

/// Independent chains: enough for two units of five cycles' latency.
const CHAINS: usize = 12;

macro_rules! multiply_adds {
    ($name:ident, $type:ty, $lanes32:expr, $lanes64:expr) => {
        /// Runs multiply-adds from registers; returns the floating-point operations done.
        fn $name(steps: usize) -> f64 {
            #[inline(always)]
            fn run<const L: usize>(steps: usize) -> f64 {
                let mut acc = [[0 as $type; L]; CHAINS];
                let (a, b) = (black_box([0.5 as $type; L]), black_box([0.25 as $type; L]));
                for _ in 0..steps {
                    for chain in &mut acc {
                        for ((c, a), b) in chain.iter_mut().zip(&a).zip(&b) {
                            *c = a.mul_add(*b, *c);
                        }
                    }
                }
                black_box(acc);
                (2 * steps * CHAINS * L) as f64
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn wide(steps: usize) -> f64 {
                    run::<$lanes64>(steps)
                }
                #[target_feature(enable = "avx2,fma")]
                fn middle(steps: usize) -> f64 {
                    run::<$lanes32>(steps)
                }
                match super::spec::vec_max() {
                    // SAFETY: `vec_max` is 64 only where the host has AVX-512F.
                    64 => return unsafe { wide(steps) },
                    // SAFETY: `vec_max` is 32 only where the host has AVX2 and FMA.
                    32 => return unsafe { middle(steps) },
                    _ => {}
                }
            }
            portable::<$type, $lanes32>(steps)
        }
    };
}

/// Without fused multiply-adds: a product and a sum.
fn portable<T, const L: usize>(steps: usize) -> f64
where
    T: Copy + From<f32> + std::ops::Mul<Output = T> + std::ops::Add<Output = T>,
{
    let mut acc = [[T::from(0.0); L]; CHAINS];
    let (a, b) = (black_box([T::from(0.5); L]), black_box([T::from(0.25); L]));
    for _ in 0..steps {
        for chain in &mut acc {
            for ((c, a), b) in chain.iter_mut().zip(&a).zip(&b) {
                *c = *a * *b + *c;
            }
        }
    }
    black_box(acc);
    (2 * steps * CHAINS * L) as f64
}

multiply_adds!(multiply_adds_f32, f32, 8, 16);
multiply_adds!(multiply_adds_f64, f64, 4, 8);

fn sum(data: &[u64]) -> u64 {
    #[inline(always)]
    fn run(data: &[u64]) -> u64 {
        let mut acc = [0u64; 32];
        for chunk in data.chunks_exact(32) {
            acc.iter_mut().zip(chunk).for_each(|(a, x)| *a = a.wrapping_add(*x));
        }
        acc.iter().fold(0, |a, x| a.wrapping_add(*x))
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide(data: &[u64]) -> u64 {
            run(data)
        }
        if super::spec::vec_max() >= 32 {
            // SAFETY: `vec_max` is 32 or more only where the host has AVX2.
            return unsafe { wide(data) };
        }
    }
    run(data)
}
