//! `ldmatrix` and `mma.sync`.

use super::Worker;
use super::access::{Checked, Place, addresses};
use super::shadow::Touch;
use super::warp::Warp;
use super::words::{Own, read};
use crate::finding::Fault;
use crate::kernel::{Factor, Matrix, Multiply};
use crate::lanes::{FULL, Registers, WARP, store};
use crate::rounding::{HALF, Round, bfloat, half, narrow};
use crate::types::Space;

/// Bytes of a row of eight 16-bit elements.
const ROW: u64 = 16;

impl<'a> Worker<'a> {
    /// Matrix i is given by the addresses of its eight rows in lanes 8i to 8i + 7; lane l receives row l / 4, elements
    /// 2 (l mod 4) and the next.
    pub(super) fn load_matrix(&mut self, w: usize, warp: &mut Warp, mask: u32, matrix: &Matrix) {
        let pc = warp.pc;
        if mask != FULL {
            self.fault(w, pc, (!mask).trailing_zeros() as usize, None, Fault::InactiveLane);
        }
        let count = matrix.to.len();
        let rows = FULL >> (WARP - 8 * count);
        let at = addresses(&warp.registers, matrix.address, rows);
        let checked = Checked { pc, warp: w, space: matrix.space, bytes: ROW, align: ROW, touch: Touch::Read };
        let shape = self.shape(pc, Space::Shared, &at, rows, ROW);
        let mut elements = [[0u16; 8]; WARP];
        self.groups(checked, at, rows, shape, |worker, group, good| {
            if let Place::Shared(_) = group.place {
                for lane in super::shadow::warps(good) {
                    let words = Own(&mut worker.shared);
                    elements[lane] = std::array::from_fn(|i| read(&words, group.at[lane] + 2 * i as u64, 2) as u16);
                }
            }
        });
        for (i, to) in matrix.to.iter().enumerate() {
            let element = |row: usize, column: usize| {
                let (row, column) = if matrix.transposed { (column, row) } else { (row, column) };
                u32::from(elements[8 * i + row][column])
            };
            let lane = |l: usize| element(l / 4, 2 * (l % 4)) | element(l / 4, 2 * (l % 4) + 1) << 16;
            store(&mut warp.registers, *to, std::array::from_fn(lane), mask);
        }
    }
}

/// Rows and columns of a result.
const M: usize = 16;
const N: usize = 8;

/// D = A B + C for one warp. Products are exact and are summed with C in binary64 from k = 0 upwards; the sum is rounded
/// once. The hardware's order and intermediate precision are not specified.
pub(super) fn multiply(registers: &mut Registers, m: &Multiply) {
    let value = |bits: u32| match m.factor {
        Factor::Half => half(bits as u16),
        Factor::Bfloat => bfloat(bits as u16),
    };
    let mut a = [[0f64; 16]; M];
    let mut b = [[0f64; N]; 16];
    for lane in 0..WARP {
        let (group, within) = (lane / 4, 2 * (lane % 4));
        for (r, slot) in m.a.iter().enumerate() {
            let bits = registers.words[usize::from(*slot)].0[lane];
            let (row, k) = (group + 8 * (r % 2), within + 8 * (r / 2));
            (a[row][k], a[row][k + 1]) = (value(bits), value(bits >> 16));
        }
        for (r, slot) in m.b.iter().enumerate() {
            let bits = registers.words[usize::from(*slot)].0[lane];
            let k = within + 8 * r;
            (b[k][group], b[k + 1][group]) = (value(bits), value(bits >> 16));
        }
    }
    let mut sums = accumulators(registers, m);
    for (row, sums) in sums.iter_mut().enumerate() {
        for k in 0..m.depth {
            for (sum, b) in sums.iter_mut().zip(&b[k]) {
                *sum += a[row][k] * b;
            }
        }
    }
    let rounded = |x: f64| if m.single { (x as f32).to_bits() } else { narrow(x, HALF, Round::Nearest) };
    for (r, to) in m.to.iter().enumerate() {
        let lane = |l: usize| {
            let (group, within) = (l / 4, 2 * (l % 4));
            if m.single {
                rounded(sums[group + 8 * (r / 2)][within + r % 2])
            } else {
                let row = &sums[group + 8 * r];
                rounded(row[within]) | rounded(row[within + 1]) << 16
            }
        };
        store(registers, *to, std::array::from_fn(lane), FULL);
    }
}

fn accumulators(registers: &Registers, m: &Multiply) -> [[f64; N]; M] {
    let mut out = [[0f64; N]; M];
    for lane in 0..WARP {
        let (group, within) = (lane / 4, 2 * (lane % 4));
        for (r, slot) in m.c.iter().enumerate() {
            let bits = registers.words[usize::from(*slot)].0[lane];
            if m.single {
                out[group + 8 * (r / 2)][within + r % 2] = f64::from(f32::from_bits(bits));
            } else {
                let row = &mut out[group + 8 * r];
                (row[within], row[within + 1]) = (half(bits as u16), half((bits >> 16) as u16));
            }
        }
    }
    out
}
