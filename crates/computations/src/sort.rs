//! Sorting 32-bit and 64-bit floating-point keys.

mod bits;
mod locality;
mod merge;
mod radix;

use crate::computation::{Computation, Failure, InputFeature, Named, Prepared, Ready, Variant, Work};
use crate::device::{Device, cut};
use crate::generate;
use crate::generate::keys::{Order, keys};
use bits::Key;
use rand::Rng;
use std::ops::Range;

/// What is sorted, ascending by the total order of IEEE 754.
#[derive(Clone, Debug, PartialEq)]
pub enum Keys {
    /// 32 bits.
    Single(Vec<f32>),
    /// 64 bits.
    Double(Vec<f64>),
}

impl Keys {
    /// Number of keys.
    pub fn len(&self) -> usize {
        match self {
            Self::Single(keys) => keys.len(),
            Self::Double(keys) => keys.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits of a key.
    pub fn bits(&self) -> usize {
        match self {
            Self::Single(_) => 32,
            Self::Double(_) => 64,
        }
    }

    /// Ascending sequences that the keys fall into.
    pub fn ascending(&self) -> usize {
        fn count<T: PartialOrd>(keys: &[T]) -> usize {
            keys.windows(2).filter(|w| w[1] < w[0]).count() + usize::from(!keys.is_empty())
        }
        match self {
            Self::Single(keys) => count(keys),
            Self::Double(keys) => count(keys),
        }
    }
}

/// Sorting.
pub struct Sort;

/// Sorts one thread's share: keys, and scratch as long as they are.
trait Algorithm: Copy + Send + Sync + 'static {
    fn sort<B: bits::Bits>(keys: &mut [B], scratch: &mut [B]);
}

struct Sorting<'a, K: Key, A> {
    input: &'a [K],
    keys: Vec<K>,
    bits: Vec<K::Bits>,
    scratch: Vec<K::Bits>,
    algorithm: std::marker::PhantomData<A>,
}

fn sorting<'a, K: Key, A: Algorithm>(input: &'a [K]) -> Sorting<'a, K, A> {
    let zeros = vec![K::Bits::default(); input.len()];
    Sorting { input, keys: input.to_vec(), bits: zeros.clone(), scratch: zeros, algorithm: std::marker::PhantomData }
}

fn prepare<A: Algorithm>(input: &Keys) -> Ready<'_, Keys> {
    match input {
        Keys::Single(keys) => Box::new(sorting::<f32, A>(keys)),
        Keys::Double(keys) => Box::new(sorting::<f64, A>(keys)),
    }
}

impl<K: Key, A: Algorithm> Prepared<Keys> for Sorting<'_, K, A> {
    fn reset(&mut self) {
        self.keys.copy_from_slice(self.input);
    }

    fn again(&self) -> bool {
        false
    }

    /// Each thread sorts its share; shares are merged in a tree, each pair of them by all the threads that have it.
    fn run(&mut self, device: &Device) -> Result<(), Failure> {
        let isa = device.isa();
        let shares = device.ranges(self.keys.len(), 1);
        let (keys, bits) = (cut(&mut self.keys, &shares), cut(&mut self.bits, &shares));
        let parts: Vec<_> = keys.into_iter().zip(bits).zip(cut(&mut self.scratch, &shares)).collect();
        device.each(parts, |((keys, bits), scratch)| {
            isa.run(
                #[inline(always)]
                || {
                    bits::encode(keys, bits);
                    A::sort(bits, scratch);
                },
            );
        });
        let (mut from, mut to) = (&mut self.bits, &mut self.scratch);
        let mut runs = shares;
        while runs.len() > 1 {
            runs = merge_pairs(device, &runs, from, to);
            std::mem::swap(&mut from, &mut to);
        }
        let shares = device.ranges(self.keys.len(), 1);
        let parts: Vec<_> = shares.iter().cloned().zip(cut(&mut self.keys, &shares)).collect();
        let from = &*from;
        device.each(parts, |(range, keys)| {
            isa.run(
                #[inline(always)]
                || bits::decode::<K>(&from[range], keys),
            )
        });
        Ok(())
    }

    fn output(&self) -> Keys {
        K::keys(self.keys.clone())
    }
}

/// Merges runs two by two, every thread making the same share of all that comes out.
fn merge_pairs<B: bits::Bits>(device: &Device, runs: &[Range<usize>], from: &[B], to: &mut [B]) -> Vec<Range<usize>> {
    let isa = device.isa();
    let merged: Vec<Range<usize>> =
        runs.chunks(2).map(|pair| pair[0].start..pair.last().map_or(0, |last| last.end)).collect();
    for (pair, out) in runs.chunks(2).zip(&merged) {
        let (left, right) = (&from[pair[0].clone()], pair.get(1).map_or(&from[..0], |r| &from[r.clone()]));
        let shares = device.ranges(out.len(), 1);
        let parts: Vec<_> = shares.iter().cloned().zip(cut(&mut to[out.clone()], &shares)).collect();
        device.each(parts, |(range, out)| {
            let ends = [range.start, range.end].map(|at| merge::diagonal(left, right, at));
            let (left, right) = (&left[ends[0].0..ends[1].0], &right[ends[0].1..ends[1].1]);
            isa.run(
                #[inline(always)]
                || merge::merge(left, right, out),
            );
        });
    }
    merged
}

impl Computation for Sort {
    const NAME: &'static str = "sort";
    type Input = Keys;
    type Output = Keys;

    fn variants() -> Vec<Variant<Keys, Keys>> {
        vec![
            Variant {
                name: "radix",
                legal: |_| Ok(()),
                prepare: prepare::<radix::Radix>,
                work: |k| {
                    let (n, passes) = (k.len() as f64, k.bits() as f64 / 8.0);
                    Work {
                        streamed: 2.0 * n * passes,
                        cached: (2.0 + passes) * n,
                        other: 3.0 * n * passes,
                        ..Work::default()
                    }
                },
            },
            Variant {
                name: "merge",
                legal: |_| Ok(()),
                prepare: prepare::<merge::Merge>,
                work: |k| {
                    let n = k.len() as f64;
                    let levels = (n / 16.0).max(2.0).log2().ceil();
                    Work {
                        streamed: 2.0 * n * levels,
                        cached: 16.0 * n,
                        other: 4.0 * n * levels + 16.0 * n,
                        ..Work::default()
                    }
                },
            },
            Variant {
                name: "locality",
                legal: |_| Ok(()),
                prepare: prepare::<locality::Locality>,
                work: |k| {
                    let n = k.len() as f64;
                    let levels = (k.ascending() as f64).min(n / 16.0).max(2.0).log2().ceil();
                    Work { streamed: 2.0 * n * levels, cached: n, other: 5.0 * n * levels + 2.0 * n, ..Work::default() }
                },
            },
        ]
    }

    fn features() -> Vec<InputFeature<Keys>> {
        vec![
            InputFeature { name: "n", flag: false, of: |k| k.len() as f64 },
            InputFeature { name: "n_bits", flag: false, of: |k| k.bits() as f64 },
            InputFeature { name: "asc_seq", flag: false, of: |k| k.ascending() as f64 },
        ]
    }

    fn reference(input: &Keys) -> Keys {
        let mut sorted = input.clone();
        match &mut sorted {
            Keys::Single(keys) => keys.sort_by(f32::total_cmp),
            Keys::Double(keys) => keys.sort_by(f64::total_cmp),
        }
        sorted
    }

    fn judge(_: &Keys, expected: &Keys, found: &Keys) -> Result<(), String> {
        fn first<K: Key>(expected: &[K], found: &[K]) -> Option<usize> {
            let differ = |(e, f): (&K, &K)| e.ordered() != f.ordered();
            let at = expected.iter().zip(found).position(differ);
            at.or_else(|| (expected.len() != found.len()).then_some(expected.len().min(found.len())))
        }
        let at = match (expected, found) {
            (Keys::Single(e), Keys::Single(f)) => first(e, f),
            (Keys::Double(e), Keys::Double(f)) => first(e, f),
            _ => Some(0),
        };
        at.map_or(Ok(()), |at| Err(format!("differs at {at}")))
    }

    fn inputs() -> Vec<Named<Keys>> {
        generate::collection("sequences", 210, |rng, seed| {
            let count = generate::sized(rng, 200.0, 80_000.0) as usize;
            let order = match seed % 7 {
                0 | 1 => Order::Random,
                2 => Order::Reversed,
                // The paper's almost sorted keys, and keys that are more sorted.
                3 => Order::AlmostSorted(f64::from(rng.random_range(200..250)) / 1000.0),
                4 => Order::AlmostSorted(f64::from(rng.random_range(1..200)) / 1000.0),
                _ => Order::Runs(generate::sized(rng, 20.0, count as f64) as usize),
            };
            let bits = if rng.random_bool(0.5) { 64 } else { 32 };
            let what = match order {
                Order::AlmostSorted(share) => format!("{count},{share},{bits},{seed}"),
                Order::Runs(length) => format!("{count},{length},{bits},{seed}"),
                _ => format!("{count},{bits},{seed}"),
            };
            Named::new(order.name(), &what, move || {
                let keys = keys(order, count, seed);
                if bits == 64 { Keys::Double(keys) } else { Keys::Single(keys.iter().map(|&k| k as f32).collect()) }
            })
        })
    }
}
