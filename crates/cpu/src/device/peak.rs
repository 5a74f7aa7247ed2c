//! Peak rates of the host, measured: multiply-adds from registers, and reads from each level of memory.

#[cfg(target_arch = "x86_64")]
use crate::codegen::{
    peak::multiply_adds,
    vector::{Vector, Width},
};
#[cfg(target_arch = "x86_64")]
use crate::exec::memory::executable;
use crate::scalar::Float;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilewright_core::device::DeviceSpec;

/// Each rate is the best of several rounds of about this long: interference only ever lowers a rate.
const ROUND: Duration = Duration::from_millis(4);
const ROUNDS: usize = 5;
/// How often the rounds of each number type come.
const TURNS: usize = 4;

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
    // Rounds of both types take turns: a core's clock goes up and down from one tenth of a second to the next, and one should not have all of the best.
    for _ in 0..TURNS {
        for (name, float) in [("peak_flops_f32", Float::F32), ("peak_flops_f64", Float::F64)] {
            let rate = multiply_add_rate(threads, float);
            out.entry(name.to_owned()).and_modify(|best: &mut f64| *best = best.max(rate)).or_insert(rate);
        }
    }
    // Half a cache, so that what else lives there does not push the data out; several times the last one for memory. Of the last cache
    // a host has as much to itself as others leave it: a few times the second one is nowhere too much.
    let (l2, l3) = (fact("l2_bytes"), fact("l3_bytes"));
    let third = (l3 / 2 / threads).min((4 * l2).max(1 << 20));
    let levels = [("l1", fact("l1d_bytes") / 2), ("l2", l2 / 2), ("l3", third)];
    for (name, bytes) in levels.into_iter().chain([("memory", (4 * l3 / threads).clamp(1 << 26, 1 << 28))]) {
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

/// A generated routine, and the operations of a turn.
#[cfg(target_arch = "x86_64")]
struct Generated {
    code: memmap2::Mmap,
    operations: f64,
}

#[cfg(target_arch = "x86_64")]
impl Generated {
    /// None where the host has no vectors to generate for, or gives no executable memory.
    fn new(float: Float) -> Option<Self> {
        let width = usize::try_from(super::spec::vec_max()).ok().filter(|_| super::spec::generates())?;
        let vector = Vector { width: Width::from_bytes(width)?, float };
        let (code, operations) = multiply_adds(vector).ok()?;
        Some(Self { code: executable(&code).ok()?, operations })
    }

    fn run(&self, turns: usize) -> f64 {
        type Routine = unsafe extern "sysv64" fn(usize);
        // SAFETY: the code was generated with this signature for vectors that the host has; it touches no memory, and no register that
        // it must keep.
        unsafe { std::mem::transmute::<*const u8, Routine>(self.code.as_ptr())(turns.max(1)) };
        turns.max(1) as f64 * self.operations
    }
}

/// Multiply-adds from registers on all threads, in operations a second.
fn multiply_add_rate(threads: usize, float: Float) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(generated) = Generated::new(float) {
        return together(threads, || |turns| generated.run(turns));
    }
    match float {
        Float::F32 => together(threads, || portable::<f32, 8>),
        Float::F64 => together(threads, || portable::<f64, 4>),
    }
}

/// Independent chains: enough for two units of five cycles' latency.
const CHAINS: usize = 12;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuDevice;

    /// Interference lowers a rate for a while; one good measurement of eight is enough.
    fn some(holds: impl Fn(&BTreeMap<String, f64>) -> bool) {
        let device = CpuDevice::new(1).unwrap();
        let mut tries = Vec::new();
        for _ in 0..8 {
            let rates = measure(tilewright_core::device::Device::spec(&device));
            if holds(&rates) {
                return;
            }
            tries.push(rates);
        }
        panic!("{tries:?}");
    }

    #[test]
    fn rates_agree_with_each_other() {
        some(|rates| (1.6..2.4).contains(&(rates["peak_flops_f32"] / rates["peak_flops_f64"])));
        let nearer = ["l1_bytes_per_s", "l2_bytes_per_s", "l3_bytes_per_s", "memory_bytes_per_s"];
        some(|rates| nearer.windows(2).all(|pair| rates[pair[0]] > 0.8 * rates[pair[1]]));
        // Several operations in each of more than a thousand million cycles a second.
        some(|rates| rates["peak_flops_f32"] > if super::super::spec::generates() { 8e9 } else { 1e8 });
    }
}
