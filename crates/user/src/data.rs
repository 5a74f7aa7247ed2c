//! The data of an input: what the description says, by a seed.

use crate::arguments::{Fill, Held, Kind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, Filling, Role};
use tilewright_core::dtype::DType;

/// Data come in so many versions: a reference may be as slow as the kernel, and is made once for each.
const VERSIONS: u64 = 4;

/// What poisons integers that are only written: no small number, and no index.
const POISON: u8 = 0xa5;

/// The contents of a buffer of so many components. `constant` is the value of a constant fill.
pub(crate) fn filled(held: &Held, len: usize, constant: Option<f64>, filling: Filling, seed: u64) -> Buffer {
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
                (Kind::Float, _) => write(&mut buffer, held, || most * rng.random_range(-1.0..1.0)),
                (_, Filling::Exact) => write(&mut buffer, held, || rng.random_range(0.0..=most.min(8.0)).floor()),
                _ => write(&mut buffer, held, || rng.random_range(0.0..most + 1.0).floor()),
            }
        }
    }
    buffer
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
