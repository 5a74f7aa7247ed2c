//! Products of complex numbers from three real ones (Gauss; Higham, *Stability of a method for multiplying complex matrices with three
//! real matrix multiplications*, 1992).
//!
//! Vectors hold real and imaginary parts by turns, as operands do. A *direct* accumulator adds up such a vector times the pair of an element
//! across it, real part by real part and imaginary by imaginary: one multiply-add makes two of the three products. For each two vectors a
//! *cross* accumulator adds up the third, the sum of both parts times the sum of the element's: the sums of vectors are made in registers at
//! each step, those of elements as they are packed. So two vectors take three multiply-adds where four would do the same with two products
//! a part. Only the store takes differences, once for all of the reduction. A conjugate is a matter of signs, of these and of the sums'.

use iced_x86::{Instruction, Register};

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, S, Tile};

impl Tile {
    /// Vectors of sums of parts: one for each two vectors, or for the last alone.
    pub(super) const fn crosses(&self) -> usize {
        self.vecs.div_ceil(2)
    }

    /// Accumulators of an element across vectors.
    pub(super) const fn three_m_accumulators(&self) -> usize {
        self.vecs + self.crosses()
    }

    /// Accumulator of vector `i` and element `j` in set `set`.
    pub(super) fn direct(&self, set: usize, j: usize, i: usize) -> Register {
        self.accumulator(set, j * self.three_m_accumulators() + i)
    }

    /// Accumulator of the sums of pair `p` of vectors and element `j`.
    fn cross(&self, set: usize, j: usize, p: usize) -> Register {
        self.direct(set, j, self.vecs + p)
    }

    /// Bytes from where a step's elements along `s` begin to the sum of the parts of one: sums lie behind all elements of the step.
    pub(crate) const fn sum_at(&self, j: usize) -> i64 {
        (self.outs() * self.element() + j * self.vector.float.bytes()) as i64
    }

    /// Bytes from where S points to the parts of element `j` of a step, and to their sum.
    fn disps(&self, kk: usize, j: usize) -> [i64; 2] {
        [self.s_disp(kk, self.numbers.parts() * j), kk as i64 * i64::from(self.s_k) + self.sum_at(j)]
    }

    /// The vectors of pair `p`; the last is a pair by itself where their number is odd.
    const fn pair(&self, p: usize) -> [usize; 2] {
        [2 * p, if 2 * p + 1 < self.vecs { 2 * p + 1 } else { 2 * p }]
    }
}

/// The first and the second parts of two vectors.
fn emit_parts(tile: &Tile, e: &mut Emitter, to: [Register; 2], [a, b]: [Register; 2]) {
    for (second, to) in to.into_iter().enumerate() {
        match tile.vector.halves_of_pairs(second == 1) {
            (code, Some(order)) => e.push(Instruction::with4(code, to, a, b, order)),
            (code, None) => e.op3(code, to, a, b),
        }
    }
}

/// The multiply-adds of a step.
pub(super) fn emit_step(tile: &Tile, e: &mut Emitter, kk: usize) {
    let (vector, set) = (tile.vector, kk % tile.k_l);
    let sums = tile.vecs;
    let others = sums + tile.crosses();
    for i in 0..tile.vecs {
        tile.emit_load_v(e, tile.free(i), kk, i);
    }
    let combine = if tile.conjugated[0] { vector.sub() } else { vector.add() };
    for p in 0..tile.crosses() {
        let (sum, spare) = (tile.free(sums + p), tile.free(others));
        emit_parts(tile, e, [sum, spare], tile.pair(p).map(|i| tile.free(i)));
        e.op3(combine, sum, sum, spare);
    }
    let rotate = tile.free_count() - others;
    for j in 0..tile.outs() {
        let [pair, sum] = [0, 1].map(|n| tile.free(others + (2 * j + n) % rotate));
        let [parts_at, sum_at] = tile.disps(kk, j);
        e.op2_load(vector.broadcast_of(tile.element()), pair, mem(S, parts_at));
        for i in 0..tile.vecs {
            e.fma(tile.direct(set, j, i), tile.free(i), pair);
        }
        e.broadcast(sum, mem(S, sum_at));
        for p in 0..tile.crosses() {
            e.fma(tile.cross(set, j, p), tile.free(sums + p), sum);
        }
    }
}

/// Makes of the accumulators of each element its vectors of C, in the direct ones; three registers are free.
pub(super) fn emit_combined(tile: &Tile, e: &mut Emitter, [first, second, alpha]: [Register; 3]) {
    let vector = tile.vector;
    if tile.scales() {
        e.broadcast(alpha, mem(ARGS, at::ALPHA));
    }
    // The real part is a difference unless one operand alone is conjugated, and what the third product is too much by is a sum then.
    let [real, excess] = if tile.conjugated[0] == tile.conjugated[1] {
        [vector.sub(), vector.add()]
    } else {
        [vector.add(), vector.sub()]
    };
    for (j, p) in (0..tile.outs()).flat_map(|j| (0..tile.crosses()).map(move |p| (j, p))) {
        let pair = tile.pair(p);
        let [low, high] = pair.map(|i| tile.direct(0, j, i));
        emit_parts(tile, e, [first, second], [low, high]);
        e.op3(real, low, first, second);
        e.op3(excess, first, first, second);
        e.op3(vector.sub(), first, tile.cross(0, j, p), first);
        if tile.scales() {
            [low, first].into_iter().for_each(|part| e.op3(vector.mul(), part, part, alpha));
        }
        let bytes = vector.float.bytes();
        if pair[0] != pair[1] {
            e.op3(vector.unpack(bytes, true), high, low, first);
        }
        e.op3(vector.unpack(bytes, false), low, low, first);
    }
}
