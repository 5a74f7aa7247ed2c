//! Sorting 32-bit and 64-bit floating-point keys.

mod bits;
mod locality;
mod merge;
mod radix;

use crate::description::{DataFeature, Description, Routine, Variant, exactly, size, spec};
use crate::device::{Device, cut};
use crate::generate::keys::{Order, keys};
use crate::isa::on_isa;
use crate::source::{Fault, Field, Generator, Numbers};
use bits::Key;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{Buffer, BufferSpec, Buffers, ExpectedBuffer, Filling, Role};
use tilewright_core::computation::Work;
use tilewright_core::dtype::DType;

/// What is sorted, ascending by the total order of IEEE 754.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// binary32 or binary64.
    pub dtype: DType,
    /// Numbers of that type.
    pub values: Vec<f64>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::of(DType::F64, Vec::new())
    }
}

impl Keys {
    /// Numbers as keys of a type, binary32 or binary64.
    pub fn of(dtype: DType, mut values: Vec<f64>) -> Self {
        if dtype == DType::F32 {
            values.iter_mut().for_each(|x| *x = f64::from(*x as f32));
        }
        Self { dtype, values }
    }

    /// Number of keys.
    fn count(&self) -> usize {
        self.values.len()
    }

    /// Bits of a key.
    fn bits(&self) -> usize {
        8 * self.dtype.size()
    }

    /// Ascending sequences that the keys fall into.
    fn ascending(&self) -> usize {
        let keys = &self.values;
        keys.windows(2).filter(|w| w[1] < w[0]).count() + usize::from(!keys.is_empty())
    }
}

/// Sorting: `keys`, and `sorted`.
pub struct Sort;

/// Sorts one thread's share: keys, and scratch as long as they are.
trait Algorithm: Copy + Send + Sync + 'static {
    fn of(params: &[i64]) -> Self;
    fn sort<B: bits::Bits>(self, keys: &mut [B], scratch: &mut [B]);
}

fn prepare<A: Algorithm>(data: &Arc<Keys>, params: &[i64]) -> Routine {
    match data.dtype {
        DType::F32 => sorting::<f32, A>(data.count(), A::of(params)),
        _ => sorting::<f64, A>(data.count(), A::of(params)),
    }
}

/// Each thread sorts its share; shares are merged in a tree, each pair of them by all the threads that have it.
fn sorting<K: Key, A: Algorithm>(count: usize, algorithm: A) -> Routine {
    let zeros = vec![K::Bits::default(); count];
    // Keys as integers, and as many more.
    let scratch = Mutex::new([zeros.clone(), zeros]);
    Box::new(move |device, inputs, output| {
        let (isa, keys, sorted) = (device.isa(), inputs[0].as_slice::<K>(), output.as_mut_slice::<K>());
        let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let [bits, scratch] = &mut *scratch;
        let shares = device.ranges(keys.len(), 1);
        let own = shares.iter().map(|share| &keys[share.clone()]);
        let parts: Vec<_> = own.zip(cut(bits, &shares)).zip(cut(scratch, &shares)).collect();
        device.each(parts, |((keys, bits), scratch)| {
            on_isa!(isa, {
                bits::encode(keys, bits);
                algorithm.sort(bits, scratch);
            });
        });
        let (mut from, mut to) = (bits, scratch);
        let mut runs = shares.clone();
        while runs.len() > 1 {
            runs = merge_pairs(device, &runs, from, to);
            std::mem::swap(&mut from, &mut to);
        }
        let from = &*from;
        device.each_range(shares, sorted, |range, keys| on_isa!(isa, bits::decode::<K>(&from[range], keys)));
        Ok(())
    })
}

/// Merges runs two by two, every thread making the same share of all that comes out.
fn merge_pairs<B: bits::Bits>(device: &Device, runs: &[Range<usize>], from: &[B], to: &mut [B]) -> Vec<Range<usize>> {
    let isa = device.isa();
    let merged: Vec<Range<usize>> =
        runs.chunks(2).map(|pair| pair[0].start..pair.last().map_or(0, |last| last.end)).collect();
    for (pair, out) in runs.chunks(2).zip(&merged) {
        let (left, right) = (&from[pair[0].clone()], pair.get(1).map_or(&from[..0], |r| &from[r.clone()]));
        device.each_range(device.ranges(out.len(), 1), &mut to[out.clone()], |range, out| {
            let ends = [range.start, range.end].map(|at| merge::diagonal(left, right, at));
            let (left, right) = (&left[ends[0].0..ends[1].0], &right[ends[0].1..ends[1].1]);
            on_isa!(isa, merge::merge(left, right, out));
        });
    }
    merged
}

/// A generator of keys whose first field is their number; `others` draws the rest of the fields.
macro_rules! of_keys {
    ($name:expr, $fields:expr, $make:expr, $others:expr $(,)?) => {
        Generator {
            name: $name,
            fields: $fields,
            rows: |_| 0.0,
            elements: |n| n.real("count"),
            make: $make,
            draw: |dice, count| {
                let others: fn(f64, &mut crate::source::Dice<'_>) -> Vec<f64> = $others;
                std::iter::once(count.round()).chain(others(count, dice)).collect()
            },
        }
    };
}

impl Description for Sort {
    const NAME: &'static str = "sort";
    const FIELD: &'static str = "keys";
    const DRAWN: (f64, f64) = (200.0, 5e5);
    const ELEMENT_BYTES: f64 = 16.0;
    const BUFFERS: (f64, f64) = (0.0, 16.0);
    type Data = Keys;

    const GENERATORS: &'static [Generator<Keys>] = &[
        of_keys!("random", &[COUNT, BITS, Field::seed()], |n| made(Order::Random, n), |_, dice| {
            vec![dice.pick([32.0, 64.0]), dice.seed()]
        }),
        of_keys!("reversed", &[COUNT, BITS, Field::seed()], |n| made(Order::Reversed, n), |_, dice| {
            vec![dice.pick([32.0, 64.0]), dice.seed()]
        }),
        of_keys!(
            "almost-sorted",
            &[COUNT, Field::real("share", 0.0, 1.0), BITS, Field::seed()],
            |n| made(Order::AlmostSorted(n.real("share")), n),
            // The paper's almost sorted keys, and keys that are more sorted.
            |_, dice| {
                let share = if dice.chance(0.5) { dice.between(200.0, 250.0) } else { dice.between(1.0, 200.0) };
                vec![share.floor() / 1000.0, dice.pick([32.0, 64.0]), dice.seed()]
            },
        ),
        of_keys!(
            "runs",
            &[COUNT, Field::whole("run", 1, 1 << 28), BITS, Field::seed()],
            |n| made(Order::Runs(n.whole("run")), n),
            |count, dice| vec![dice.count(20.0, count), dice.pick([32.0, 64.0]), dice.seed()],
        ),
    ];
    const AWKWARD: &'static [&'static str] = &[
        "keys=random,count=0,bits=64,seed=1",
        "keys=random,count=1,bits=32,seed=1",
        "keys=random,count=2,bits=64,seed=1",
        "keys=reversed,count=17,bits=32,seed=1",
        "keys=runs,count=97,run=7,bits=64,seed=1",
        "keys=almost-sorted,count=1009,share=0.2,bits=32,seed=1",
    ];
    const FEATURES: &'static [DataFeature<Keys>] = &[
        size("n", |k| k.count() as f64),
        size("n_bits", |k| k.bits() as f64),
        size("asc_seq", |k| k.ascending() as f64),
    ];

    /// Numbers between white space.
    fn read(file: &[u8]) -> Option<Result<Keys, Fault>> {
        Some(parse(file).map(|keys| Keys::of(DType::F64, keys)))
    }

    fn work(keys: &Keys) -> Work {
        Work { flops: 0.0, bytes: (keys.count() * keys.bits() / 4) as f64 }
    }

    fn specs(keys: &Keys) -> Vec<BufferSpec> {
        vec![spec("keys", keys.dtype, keys.count(), Role::In), spec("sorted", keys.dtype, keys.count(), Role::Out)]
    }

    /// Seeds turn the keys round. Special ones are both zeros, both infinities and numbers that are none.
    fn fill(data: &Keys, filling: Filling, seed: u64, buffers: &mut [Buffer]) {
        let count = data.count();
        let turn = (seed % count.max(1) as u64) as usize;
        let special = [f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, -1.0];
        for (i, &key) in data.values.iter().enumerate() {
            let key = match filling {
                Filling::Exact => key.round(),
                Filling::Special if i % 7 == 0 => special[i / 7 % special.len()],
                Filling::Real | Filling::Special => key,
            };
            buffers[0].set_f64((i + count - turn) % count, key);
        }
    }

    fn reference(_: &Keys, before: &Buffers) -> ExpectedBuffer {
        let keys = &before[0];
        let mut values: Vec<f64> = (0..keys.len()).map(|i| keys.get_f64(i)).collect();
        values.sort_by(f64::total_cmp);
        exactly(1, values)
    }

    fn variants() -> Vec<Variant<Keys>> {
        vec![
            Variant::new("radix", prepare::<radix::Radix>),
            Variant::new("merge", prepare::<merge::Merge>),
            Variant::new("locality", prepare::<locality::Locality>).param("least_run", &[8, 16, 24, 32, 48], 24),
        ]
    }
}

const COUNT: Field = Field::whole("count", 0, 1 << 28);
const BITS: Field = Field::one_of("bits", &[32.0, 64.0]).or(64.0);

fn made(order: Order, n: &Numbers<'_>) -> Keys {
    let dtype = if n.whole("bits") == 64 { DType::F64 } else { DType::F32 };
    Keys::of(dtype, keys(order, n.whole("count"), n.seed()))
}

fn parse(file: &[u8]) -> Result<Vec<f64>, Fault> {
    let mut keys = Vec::new();
    for (number, line) in file.split(|&b| b == b'\n').enumerate() {
        let mut at = 0;
        for word in line.split(u8::is_ascii_whitespace) {
            let text = String::from_utf8_lossy(word);
            let place = (number + 1, at + 1);
            at += word.len() + 1;
            if !word.is_empty() {
                let fault = |e| Fault { line: place.0, column: place.1, message: format!("{text:?}: {e}") };
                keys.push(text.parse::<f64>().map_err(fault)?);
            }
        }
    }
    Ok(keys)
}
