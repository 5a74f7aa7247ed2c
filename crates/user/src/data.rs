//! The data of an input: what the description says, by a seed.

use crate::arguments::{Fill, Held, Kind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, Buffers, Filling, Role};
use tilewright_core::dtype::DType;

/// Data come in so many versions: a reference may be as slow as the kernel, and is made once for each.
const VERSIONS: u64 = 4;

/// What poisons integers that are only written: no small number, and no index.
const POISON: u8 = 0xa5;

/// The last bits of random reals, which are the same in all of a buffer.
const MARKS: u64 = 0xf;

/// A real with the mark of its buffer in its last bits: numbers of two buffers are hardly ever equal. Kernels compare such numbers, and
/// configurations that are equally right may take equal ones either way.
fn marked(x: f64, mark: u64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_bits((x as f32).to_bits() & !(MARKS as u32) | mark as u32)),
        DType::F64 => f64::from_bits(x.to_bits() & !MARKS | mark),
        _ => x,
    }
}

/// The contents of the buffer of that number, of so many components. `constant` is the value of a constant fill.
pub(crate) fn filled(
    (number, held): (usize, &Held),
    len: usize,
    constant: Option<f64>,
    filling: Filling,
    seed: u64,
) -> Buffer {
    let mut buffer = Buffer::zeroed(held.element.dtype, len);
    if held.role == Role::Out {
        poison(&mut buffer, held);
        return buffer;
    }
    match &held.fill {
        Fill::Constant(_) => {
            let value = constant.unwrap_or(0.0);
            write(&mut buffer, held, || value);
        }
        Fill::Contents(bytes) => {
            let common = bytes.len().min(buffer.bytes().len());
            buffer.bytes_mut()[..common].copy_from_slice(&bytes[..common]);
        }
        Fill::Random(most) => {
            let mut rng = ChaCha8Rng::seed_from_u64(held.seed.wrapping_mul(0x9e37_79b9).wrapping_add(seed % VERSIONS));
            rng.set_stream(name_number(held.name));
            let most = *most;
            match (held.element.kind, filling) {
                (Kind::Float, Filling::Exact) => write(&mut buffer, held, || f64::from(rng.random_range(-8i32..=8))),
                (Kind::Float, _) => {
                    let mark = number as u64 & MARKS;
                    write(&mut buffer, held, || marked(most * rng.random_range(-1.0..1.0), mark, held.element.dtype));
                }
                (_, Filling::Exact) => write(&mut buffer, held, || rng.random_range(0.0..=most.min(8.0)).floor()),
                _ => write(&mut buffer, held, || rng.random_range(0.0..most + 1.0).floor()),
            }
        }
    }
    buffer
}

/// The same data with every random float moved by a unit in the last place of the largest, up or down by a seed. `None` where
/// nothing moves, or memory runs out.
pub(crate) fn nudged(held: &[Held], before: &Buffers, seed: u64) -> Option<Buffers> {
    let moves = |held: &Held| {
        held.role != Role::Out && held.element.kind == Kind::Float && matches!(held.fill, Fill::Random(_))
    };
    if !held.iter().any(moves) {
        return None;
    }
    let nudge = |(held, before): (&Held, &Buffer)| {
        let mut buffer = before.try_clone().ok()?;
        if moves(held) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(name_number(held.name));
            let finite = (0..before.len()).map(|i| before.get_f64(i).abs()).filter(|x| x.is_finite());
            let step = finite.fold(0.0, f64::max) * rounding(held.element.dtype);
            (0..before.len()).for_each(|i| {
                let step = if rng.random::<bool>() { step } else { -step };
                buffer.set_f64(i, before.get_f64(i) + step);
            });
        }
        Some(buffer)
    };
    held.iter().zip(before).map(nudge).collect()
}

/// A unit in the last place of 1.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        _ => f64::from(f32::EPSILON),
    }
}

/// Buffers of one description have streams of their own.
fn name_number(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
}

fn poison(buffer: &mut Buffer, held: &Held) {
    if held.element.kind == Kind::Float {
        (0..buffer.len()).for_each(|i| buffer.set_f64(i, f64::NAN));
    } else {
        buffer.bytes_mut().fill(POISON);
    }
}

/// Writes numbers one after the other.
fn write(buffer: &mut Buffer, held: &Held, mut next: impl FnMut() -> f64) {
    match (buffer.dtype(), held.element.kind) {
        (DType::F32, _) => buffer.as_mut_slice::<f32>().fill_with(|| next() as f32),
        (DType::F64, _) => buffer.as_mut_slice::<f64>().fill_with(next),
        (_, Kind::Float) => (0..buffer.len()).for_each(|i| buffer.set_f64(i, next())),
        _ => {
            let size = held.element.bytes;
            for place in buffer.bytes_mut().chunks_exact_mut(size) {
                place.copy_from_slice(&(next() as i64).to_le_bytes()[..size]);
            }
        }
    }
}
