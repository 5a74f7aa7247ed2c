//! Data for convolutions.

use super::input::{ConvInput, Direction};
use crate::filling;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::buffer::{Buffer, BufferSpec, Filling, Role, Workload};

/// Position of the images, or their gradient.
pub const X: usize = 0;
/// Position of the filters, or their gradient.
pub const F: usize = 1;
/// Position of the outputs, or their gradient.
pub const Y: usize = 2;
/// Position of the bias, where there is one.
pub const BIAS: usize = 3;
/// Position of the residual behind a bias; without one it is one less.
pub const RESIDUAL: usize = 4;

impl ConvInput {
    /// The position of the tensor that is written.
    pub fn written(&self) -> usize {
        match self.direction {
            Direction::Forward => Y,
            Direction::Data => X,
            Direction::Filter => F,
        }
    }

    /// The position of the tensor that taps gather from, with zeros beyond its edges.
    pub fn gathered(&self) -> usize {
        if self.direction == Direction::Data { Y } else { X }
    }

    /// The position of the residual, where there is one.
    pub fn residual(&self) -> Option<usize> {
        self.epilogue.residual.then_some(if self.epilogue.bias { RESIDUAL } else { BIAS })
    }
}

/// Data of which only what is gathered holds what is not finite: whether a zero beyond the edge is multiplied is a kernel's affair.
pub(super) fn make(input: &ConvInput, filling: Filling, seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let specs = specs(input);
    let mut buffers = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let filling = match filling {
            Filling::Special if position != input.gathered() => Filling::Real,
            other => other,
        };
        let mut buffer = Buffer::zeroed(spec.dtype, spec.len);
        filling::fill(&mut buffer, |_| {
            if spec.role == Role::Out { f64::NAN } else { filling::draw(&mut rng, filling, spec.dtype) }
        });
        buffers.push(buffer);
    }
    Workload { specs, buffers, scalars: Vec::new() }
}

/// The buffers without their contents.
pub(super) fn specs(input: &ConvInput) -> Vec<BufferSpec> {
    let [x, f, y] = input.tensors().lens();
    let named = [("x", x), ("f", f), ("y", y)].into_iter().enumerate();
    let spec = |(position, (name, len))| {
        let (role, dtype) = match position == input.written() {
            true => (Role::Out, input.types.output),
            false => (Role::In, input.types.operand),
        };
        BufferSpec { name, dtype, len, role }
    };
    let more = [("bias", input.k, input.epilogue.bias), ("residual", y, input.epilogue.residual)];
    let more = more.into_iter().filter(|(.., is_there)| *is_there);
    let more = more.map(|(name, len, _)| BufferSpec { name, dtype: input.types.output, len, role: Role::In });
    named.map(spec).chain(more).collect()
}
