//! `ldmatrix`, `stmatrix` and `mma.sync`.

use super::Worker;
use super::access::{Checked, Place, addresses, put};
use super::shadow::{Touch, warps};
use super::tensor::TensorCore;
use super::warp::Warp;
use super::words::{Own, read, write};
use crate::behaviour::MmaRounding;
use crate::finding::Fault;
use crate::kernel::{Data, Matrix, Multiply};
use crate::lanes::{FULL, Registers, WARP, store};
use crate::rounding::{HALF, Round, bfloat, half, narrow};
use crate::types::{Space, Ty};

/// Bytes of a row of eight 16-bit elements.
const ROW: u64 = 16;

impl<'a> Worker<'a> {
    /// Matrix i is given by the addresses of its eight rows in lanes 8i to 8i + 7; lane l holds row l / 4, elements
    /// 2 (l mod 4) and the next.
    pub(super) fn move_matrix(&mut self, w: usize, warp: &mut Warp, mask: u32, matrix: &Matrix) {
        let pc = warp.pc;
        self.expect_all_lanes(w, pc, mask);
        let rows = FULL >> (WARP - 8 * matrix.registers.len());
        let at = addresses(&warp.registers, matrix.address, rows);
        let touch = if matrix.is_store { Touch::Write } else { Touch::Read };
        let checked = Checked::new(pc, w, matrix.space, ROW, touch);
        let shape = self.shape(pc, Space::Shared, &at, rows, ROW);
        let mut elements = if matrix.is_store { gathered(&warp.registers, matrix) } else { [[0u16; 8]; WARP] };
        self.groups(checked, at, rows, shape, |worker, group, good| {
            let Place::Shared(_) = group.place else { return };
            let mut words = Own(&mut worker.shared);
            for lane in warps(good) {
                for (i, element) in elements[lane].iter_mut().enumerate() {
                    let at = group.at[lane] + 2 * i as u64;
                    if matrix.is_store {
                        write(&mut words, at, 2, u64::from(*element));
                    } else {
                        *element = read(&words, at, 2) as u16;
                    }
                }
            }
        });
        if matrix.is_store {
            return;
        }
        for (i, to) in matrix.registers.iter().enumerate() {
            let lane = |l: usize| {
                let [(r0, c0), (r1, c1)] = fragment(l, matrix.transposed);
                u32::from(elements[8 * i + r0][c0]) | u32::from(elements[8 * i + r1][c1]) << 16
            };
            store(&mut warp.registers, *to, std::array::from_fn(lane), mask);
        }
    }

    /// `mma.sync` of a warp.
    pub(super) fn multiply(&mut self, w: usize, warp: &mut Warp, mask: u32, multiply: &Multiply) {
        self.expect_all_lanes(w, warp.pc, mask);
        let core = match self.setting.behaviour.mma {
            MmaRounding::Exact => None,
            MmaRounding::Truncated => TensorCore::of(multiply, self.setting.kernel.before_ampere),
        };
        product(&mut warp.registers, multiply, core);
    }

    /// Instructions of a whole warp have no result where lanes are missing.
    fn expect_all_lanes(&mut self, w: usize, pc: u32, mask: u32) {
        if mask != FULL {
            self.fault(w, pc, (!mask).trailing_zeros() as usize, None, Fault::InactiveLane);
        }
    }
}

/// Row and column of the two elements of a lane.
fn fragment(lane: usize, transposed: bool) -> [(usize, usize); 2] {
    let (row, column) = (lane / 4, 2 * (lane % 4));
    if transposed { [(column, row), (column + 1, row)] } else { [(row, column), (row, column + 1)] }
}

/// The rows that a store writes, from all lanes.
fn gathered(registers: &Registers, matrix: &Matrix) -> [[u16; 8]; WARP] {
    let mut out = [[0u16; 8]; WARP];
    for (i, slot) in matrix.registers.iter().enumerate() {
        for (lane, bits) in registers.words[usize::from(*slot)].0.iter().enumerate() {
            let [(r0, c0), (r1, c1)] = fragment(lane, matrix.transposed);
            out[8 * i + r0][c0] = *bits as u16;
            out[8 * i + r1][c1] = (*bits >> 16) as u16;
        }
    }
    out
}

/// Most rows, columns, and depth of an `mma`.
const M: usize = 16;
const N: usize = 8;
const K: usize = 32;

/// Element `j` of a register of a factor.
fn element(ty: Ty, bits: u64, j: usize) -> f64 {
    match ty {
        Ty::F16 => half((bits >> (16 * j)) as u16),
        Ty::Bf16 => bfloat((bits >> (16 * j)) as u16),
        Ty::Tf32 => f64::from(f32::from_bits(bits as u32 & 0xffff_e000)),
        Ty::F64 => f64::from_bits(bits),
        Ty::S8 => f64::from((bits >> (8 * j)) as i8),
        _ => f64::from((bits >> (8 * j)) as u8),
    }
}

/// D = A B + C for one warp. Products of 8- to 19-bit factors are exact and are summed with C in binary64 from k = 0
/// upwards, exactly for integers, and rounded once, unless a tensor core is given that does otherwise; the hardware's order
/// and intermediate precision are not specified. Products of binary64 are added by fused multiply-adds in the same order.
fn product(registers: &mut Registers, m: &Multiply, core: Option<TensorCore>) {
    let (a, b) = factors(registers, m);
    let mut sums = accumulators(registers, m);
    for (a, sums) in a.iter().zip(&mut sums).take(m.rows) {
        if let Some(core) = core {
            for (column, sum) in sums.iter_mut().enumerate() {
                let b: [f64; K] = std::array::from_fn(|k| b[k][column]);
                *sum = core.sum(&a[..m.depth], &b[..m.depth], *sum);
            }
            continue;
        }
        for (a, b) in a.iter().zip(&b).take(m.depth) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = if m.sum == Ty::F64 { a.mul_add(*b, *sum) } else { *sum + a * b };
            }
        }
    }
    write_sums(registers, m, &sums);
}

/// A by rows and B by rows, from the fragments of all lanes.
fn factors(registers: &Registers, m: &Multiply) -> ([[f64; K]; M], [[f64; N]; K]) {
    let [left, right] = m.factors;
    let (per, blocks, wide) = (Multiply::packed(left), m.rows / 8, left == Ty::F64);
    let mut a = [[0f64; K]; M];
    let mut b = [[0f64; N]; K];
    for (r, slot) in m.a.iter().enumerate() {
        for (lane, bits) in registers.values(*slot, wide).into_iter().enumerate() {
            let (row, k) = (lane / 4 + 8 * (r % blocks), per * (lane % 4) + 4 * per * (r / blocks));
            for j in 0..per {
                a[row][k + j] = element(left, bits, j);
            }
        }
    }
    for (r, slot) in m.b.iter().enumerate() {
        for (lane, bits) in registers.values(*slot, wide).into_iter().enumerate() {
            let k = per * (lane % 4) + 4 * per * r;
            for j in 0..per {
                b[k + j][lane / 4] = element(right, bits, j);
            }
        }
    }
    (a, b)
}

/// Row and column of a lane's register `r` of a sum; of its first element where there are two.
fn place_of_sum(m: &Multiply, lane: usize, r: usize) -> (usize, usize) {
    let (group, within) = (lane / 4, 2 * (lane % 4));
    if m.sum == Ty::F16 { (group + 8 * r, within) } else { (group + 8 * (r / 2), within + r % 2) }
}

fn write_sums(registers: &mut Registers, m: &Multiply, sums: &[[f64; N]; M]) {
    let wide = m.sum == Ty::F64;
    for (r, to) in m.to.iter().enumerate() {
        let bits = |lane: usize| {
            let (row, column) = place_of_sum(m, lane, r);
            let x = sums[row][column];
            u64::from(match m.sum {
                Ty::F16 => {
                    let [low, high] = [x, sums[row][column + 1]].map(|x| narrow(x, HALF, Round::Nearest));
                    low | high << 16
                }
                Ty::S32 if m.saturate => x as i32 as u32,
                Ty::S32 => x as i64 as u32,
                Ty::F64 => return x.to_bits(),
                _ => (x as f32).to_bits(),
            })
        };
        let data = Data { slot: *to, bytes: if wide { 8 } else { 4 } };
        put(registers, data, std::array::from_fn(bits), FULL);
    }
}

fn accumulators(registers: &Registers, m: &Multiply) -> [[f64; N]; M] {
    let mut out = [[0f64; N]; M];
    for (r, slot) in m.c.iter().enumerate() {
        for (lane, bits) in registers.values(*slot, m.sum == Ty::F64).into_iter().enumerate() {
            let (row, column) = place_of_sum(m, lane, r);
            out[row][column] = match m.sum {
                Ty::F64 => f64::from_bits(bits),
                Ty::S32 => f64::from(bits as i32),
                Ty::F16 => {
                    out[row][column + 1] = half((bits >> 16) as u16);
                    half(bits as u16)
                }
                _ => f64::from(f32::from_bits(bits as u32)),
            };
        }
    }
    out
}
