//! Peak rates of the host, measured: multiply-adds from registers, and reads from each level of memory.

#[cfg(target_arch = "x86_64")]
use crate::codegen::{
    peak::{READ, multiply_adds, reads},
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

/// Each rate is the best of several rounds of about this long: interference only ever lowers a rate, and a round that is shorter than
/// a scheduler's slice is likelier to be undisturbed.
const ROUND: Duration = Duration::from_millis(1);
/// The same of memory: what is read between two looks at the clock takes a good part of a millisecond there, in which other threads have ended.
const LONG_ROUND: Duration = Duration::from_millis(4);
const ROUNDS: usize = 20;
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
    for (name, bytes) in levels {
        out.insert(format!("{name}_bytes_per_s"), read_rate(threads, bytes, ROUND));
    }
    let beyond = (4 * l3 / threads).clamp(1 << 26, 1 << 28);
    out.insert("memory_bytes_per_s".to_owned(), read_rate(threads, beyond, LONG_ROUND));
    out
}

/// What a thread did in a round, and from when to when.
struct Done {
    amount: f64,
    start: Instant,
    end: Instant,
}

/// What several threads did from the first one's start to the last one's end: threads that had to wait for a core were not at work at once.
fn rate(round: &[Done]) -> f64 {
    let (start, end) = (round.iter().map(|of| of.start).min(), round.iter().map(|of| of.end).max());
    let seconds = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64());
    if seconds > 0.0 { round.iter().map(|of| of.amount).sum::<f64>() / seconds } else { 0.0 }
}

/// Best rate of several rounds in which all threads work at once. `make` gives each thread its work: a call does about
/// the given number of steps, or reads some data, and returns how much was done.
fn together<W: FnMut(usize) -> f64>(threads: usize, length: Duration, make: impl Fn() -> W + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let round = |work: &mut W| {
        barrier.wait();
        let (start, mut amount) = (Instant::now(), 0.0);
        loop {
            amount += work(1000);
            let end = Instant::now();
            if end - start >= length {
                return Done { amount, start, end };
            }
        }
    };
    let done: Vec<Vec<Done>> = std::thread::scope(|scope| {
        let worker = || {
            let mut work = make();
            (0..ROUNDS).map(|_| round(&mut work)).collect()
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).collect()
    });
    let mut of_threads: Vec<_> = done.into_iter().map(Vec::into_iter).collect();
    let rounds = (0..ROUNDS).map(|_| of_threads.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
    rounds.map(|round| rate(&round)).fold(0.0, f64::max)
}

/// The widest vectors of the host. None where there are none to generate for.
#[cfg(target_arch = "x86_64")]
fn widest(float: Float) -> Option<Vector> {
    let width = usize::try_from(super::spec::vec_max()).ok().filter(|_| super::spec::generates())?;
    Some(Vector { width: Width::from_bytes(width)?, float })
}

/// Multiply-adds from registers on all threads, in operations a second.
fn multiply_add_rate(threads: usize, float: Float) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(generated) = MultiplyAdds::new(float) {
        return together(threads, ROUND, || |turns| generated.run(turns));
    }
    match float {
        Float::F32 => together(threads, ROUND, || portable::<f32, 8>),
        Float::F64 => together(threads, ROUND, || portable::<f64, 4>),
    }
}

/// A generated routine, and the operations of a turn.
#[cfg(target_arch = "x86_64")]
struct MultiplyAdds {
    code: memmap2::Mmap,
    operations: f64,
}

#[cfg(target_arch = "x86_64")]
impl MultiplyAdds {
    /// None where the host has no vectors to generate for, or gives no executable memory.
    fn new(float: Float) -> Option<Self> {
        let (code, operations) = multiply_adds(widest(float)?).ok()?;
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

/// Reads on all threads, each of data of its own of about this size, again and again, in bytes a second.
fn read_rate(threads: usize, bytes: usize, round: Duration) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(generated) = Reads::new() {
        return together(threads, round, || {
            let data = vec![Turn([1; READ]); bytes.div_ceil(READ).max(1)];
            let (generated, mut next) = (&generated, 0);
            move |_| {
                let mut read = 0.0;
                while read < PIECE as f64 {
                    let piece = &data[next..data.len().min(next + PIECE / READ)];
                    next = (next + piece.len()) % data.len();
                    read += generated.run(piece);
                }
                read
            }
        });
    }
    together(threads, round, || {
        let data = vec![1u64; (bytes / 8).max(64)];
        move |_| {
            black_box(sum(black_box(&data)));
            (data.len() * 8) as f64
        }
    })
}

/// Bytes between two looks at the clock, about: of what a first-level cache holds many passes, beside which a look takes nothing, and of what
/// leaves all caches a part of one, since a pass takes longer than a round.
#[cfg(target_arch = "x86_64")]
const PIECE: usize = 1 << 19;

/// What a turn of the routine reads. No vector of it lies across two lines.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Turn(#[expect(dead_code, reason = "only generated code reads it")] [u8; READ]);

/// A generated routine that reads.
#[cfg(target_arch = "x86_64")]
struct Reads(memmap2::Mmap);

#[cfg(target_arch = "x86_64")]
impl Reads {
    /// None where the host has no vectors to generate for, or gives no executable memory.
    fn new() -> Option<Self> {
        Some(Self(executable(&reads(widest(Float::F32)?).ok()?).ok()?))
    }

    fn run(&self, data: &[Turn]) -> f64 {
        type Routine = unsafe extern "sysv64" fn(usize, *const Turn);
        if !data.is_empty() {
            // SAFETY: the code was generated with this signature for vectors that the host has; it reads as many turns as there are,
            // writes nothing, and changes no register that it must keep.
            unsafe { std::mem::transmute::<*const u8, Routine>(self.0.as_ptr())(data.len(), data.as_ptr()) };
        }
        size_of_val(data) as f64
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
    let mut acc = [0u64; 32];
    for chunk in data.chunks_exact(32) {
        acc.iter_mut().zip(chunk).for_each(|(a, x)| *a = a.wrapping_add(*x));
    }
    acc.iter().fold(0, |a, x| a.wrapping_add(*x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuDevice;

    /// Interference only ever lowers a rate: what is judged is the best of each over up to eight measurements, after each of them.
    fn best(holds: impl Fn(&BTreeMap<String, f64>) -> bool) {
        let device = CpuDevice::new(1).unwrap();
        let mut known = BTreeMap::new();
        for _ in 0..8 {
            for (name, rate) in measure(tilewright_core::device::Device::spec(&device)) {
                known.entry(name).and_modify(|best: &mut f64| *best = best.max(rate)).or_insert(rate);
            }
            if holds(&known) {
                return;
            }
        }
        panic!("{known:?}");
    }

    #[test]
    fn threads_that_worked_one_after_the_other_are_as_fast_as_one() {
        let start = Instant::now();
        let done = |from: u64, to: u64| {
            let [start, end] = [from, to].map(|ms| start + Duration::from_millis(ms));
            Done { amount: 1.0, start, end }
        };
        let of = |round: &[Done]| (1e3 / rate(round)).round();
        assert_eq!([of(&[done(0, 10), done(0, 10)]), of(&[done(0, 10), done(10, 20)])], [5.0, 10.0]);
        assert_eq!(rate(&[]), 0.0);
    }

    #[test]
    fn rates_agree_with_each_other() {
        best(|rates| (1.6..2.4).contains(&(rates["peak_flops_f32"] / rates["peak_flops_f64"])));
        let nearer = ["l1_bytes_per_s", "l2_bytes_per_s", "l3_bytes_per_s", "memory_bytes_per_s"];
        best(|rates| nearer.windows(2).all(|pair| rates[pair[0]] > 0.8 * rates[pair[1]]));
        // Several operations in each of more than a thousand million cycles a second.
        best(|rates| rates["peak_flops_f32"] > if super::super::spec::generates() { 8e9 } else { 1e8 });
    }
}
