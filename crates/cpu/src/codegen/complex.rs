//! Products of complex numbers from products of real ones.
//!
//! A tile multiplies vectors, whose lanes hold real and imaginary parts by turns, by the real part and by the imaginary part of each
//! element across them: two accumulators, each by the multiply-adds of a real product. Only the store brings them together, once for
//! all of the reduction: the second is turned, its components exchanged, and signs tell what is added and what subtracted. A
//! conjugate is a matter of these signs, and alpha goes into them: both cost nothing.

use iced_x86::{Instruction, Register};

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, Tile};
use crate::scalar::Float;

/// Brings the accumulators of each element across vectors together, in the first of them; two registers are free for factors.
pub(super) fn emit_combined(tile: &Tile, e: &mut Emitter, [direct, turned]: [Register; 2]) {
    let vector = tile.vector;
    let broadcast = vector.broadcast_of(tile.element());
    e.op2_load(broadcast, direct, mem(ARGS, at::DIRECT));
    e.op2_load(broadcast, turned, mem(ARGS, at::TURNED));
    let (exchange, order) = vector.exchange();
    for (j, i) in (0..tile.outs()).flat_map(|j| (0..tile.vecs).map(move |i| (j, i))) {
        let [real, imaginary] = [0, 1].map(|part| tile.acc(0, 2 * j + part, i));
        e.push(Instruction::with3(exchange, imaginary, imaginary, order));
        e.op3(vector.mul(), real, real, direct);
        e.fma(real, imaginary, turned);
    }
}

/// What products with a real part of the second operand are multiplied by, and those with an imaginary part once they are turned:
/// alpha with the signs that conjugates ask for.
pub(crate) fn factors(float: Float, alpha: f64, [v_conjugated, s_conjugated]: [bool; 2]) -> [[u64; 2]; 2] {
    let sign = |negative: bool| if negative { -alpha } else { alpha };
    let direct = [alpha, sign(v_conjugated)];
    // With v = x + iy and s = z + iw the parts are xz - yw and yz + xw.
    let turned = [sign(v_conjugated == s_conjugated), sign(s_conjugated)];
    [direct, turned].map(|pair| match float {
        Float::F32 => {
            let [low, high] = pair.map(|x| u64::from((x as f32).to_bits()));
            [low | high << 32, 0]
        }
        Float::F64 => pair.map(f64::to_bits),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_those_of_the_definition() {
        let (v, s) = ((2.0, 3.0), (5.0, 7.0));
        for (v_conjugated, s_conjugated) in [(false, false), (true, false), (false, true), (true, true)] {
            let [direct, turned] =
                factors(Float::F64, 1.0, [v_conjugated, s_conjugated]).map(|p| p.map(f64::from_bits));
            let out = [v.0 * s.0 * direct[0] + v.1 * s.1 * turned[0], v.1 * s.0 * direct[1] + v.0 * s.1 * turned[1]];
            let y = if v_conjugated { -v.1 } else { v.1 };
            let w = if s_conjugated { -s.1 } else { s.1 };
            assert_eq!(out, [v.0 * s.0 - y * w, y * s.0 + v.0 * w]);
        }
        assert_eq!(factors(Float::F32, 1.0, [false; 2])[1], [0x3f80_0000_bf80_0000, 0]);
    }
}
