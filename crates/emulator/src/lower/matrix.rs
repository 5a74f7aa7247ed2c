//! `mma`, `ldmatrix`, `stmatrix`.

use super::Lowering;
use super::words::Words;
use crate::counts::{Class, Precision};
use crate::kernel::{Matrix, Multiply, Run};
use crate::module::LoadError;
use crate::text::ast::Instruction;
use crate::types::{Space, Ty};

/// Shapes of `mma` with 8 columns: the word, rows, depth.
const SHAPES: [(&str, usize, usize); 8] = [
    ("m16n8k16", 16, 16),
    ("m16n8k8", 16, 8),
    ("m16n8k4", 16, 4),
    ("m16n8k32", 16, 32),
    ("m8n8k4", 8, 4),
    ("m8n8k16", 8, 16),
    ("m8n8k8", 8, 8),
    ("m8n8k32", 8, 32),
];

/// Whether PTX has the shape for factors of a type.
fn has_shape(factor: Ty, rows: usize, depth: usize) -> bool {
    match factor {
        Ty::F16 | Ty::Bf16 => rows == 16 && matches!(depth, 8 | 16),
        Ty::Tf32 => rows == 16 && matches!(depth, 4 | 8),
        Ty::F64 => matches!((rows, depth), (8, 4) | (16, 4 | 8 | 16)),
        _ => matches!((rows, depth), (8, 16) | (16, 16 | 32)),
    }
}

impl<'a> Lowering<'a> {
    /// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`
    pub(super) fn multiply(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        words.ignore(&["sync", "aligned"]);
        let types = [words.ty(), words.ty(), words.ty(), words.ty()];
        let [Some(c_type), Some(b_type), Some(a_type), Some(d_type)] = types else {
            return self.error("four types are expected");
        };
        let saturate = words.take("satfinite");
        let is_known = matches!(
            (a_type, b_type, c_type),
            (Ty::F16, Ty::F16, Ty::F32 | Ty::F16)
                | (Ty::Bf16, Ty::Bf16, Ty::F32)
                | (Ty::Tf32, Ty::Tf32, Ty::F32)
                | (Ty::F64, Ty::F64, Ty::F64)
                | (Ty::S8 | Ty::U8, Ty::S8 | Ty::U8, Ty::S32)
        );
        if !is_known {
            return self.error("factors and sums of these types are not supported");
        }
        if d_type != c_type || (saturate && c_type != Ty::S32) {
            return self.error("a sum of this type is not supported");
        }
        let shape = SHAPES.iter().find(|(word, ..)| words.take(word)).filter(|(_, m, k)| has_shape(a_type, *m, *k));
        let Some(&(_, rows, depth)) = shape else { return self.error("this shape is not supported") };
        words.ignore(&["rn"]);
        if [words.first(), words.first()] != [Some("row"), Some("col")] {
            return self.error("this layout is not supported");
        }
        let [d, a, b, c] = i.operands.as_slice() else { return self.error("four operands are expected") };
        let factor = if a_type == Ty::F64 { Ty::F64 } else { Ty::B32 };
        // A register of A holds a few elements of one row, and four lanes share a row.
        let (blocks, per_b) = (rows / 8, depth / (4 * Multiply::packed(a_type)));
        let (sums, element) = if c_type == Ty::F16 { (blocks, Ty::B32) } else { (2 * blocks, c_type) };
        let a = self.list(a, blocks * per_b, factor, false)?;
        let b = self.list(b, per_b, factor, false)?;
        let c = self.list(c, sums, element, false)?;
        let to = self.list(d, sums, element, true)?;
        let precision = match a_type {
            Ty::F16 | Ty::Bf16 => Precision::Half,
            Ty::Tf32 => Precision::Single,
            Ty::F64 => Precision::Double,
            _ => Precision::Byte,
        };
        let class = Class::Tensor(precision, (rows * 8 * depth) as u32);
        let multiply = Multiply { factors: [a_type, b_type], rows, depth, sum: c_type, saturate, to, a, b, c };
        self.emit(Run::Multiply(Box::new(multiply)), Some(class));
        Ok(())
    }

    pub(super) fn move_matrix(&mut self, i: &Instruction<'a>, words: &mut Words<'a>) -> Result<(), LoadError> {
        let is_store = i.name == "stmatrix";
        words.ignore(&["sync", "aligned"]);
        let transposed = words.take("trans");
        let Some(count) = words.pick(&[("x1", 1), ("x2", 2), ("x4", 4)]) else {
            return self.error("a number of matrices is expected: .x1, .x2 or .x4");
        };
        if !(words.take("m8n8") && words.ty() == Some(Ty::B16)) {
            return self.error("only .m8n8 of .b16 is supported");
        }
        let space = words.space().unwrap_or(Space::Generic);
        let [first, second] = i.operands.as_slice() else { return self.error("two operands are expected") };
        let (list, address) = if is_store { (second, first) } else { (first, second) };
        let address = self.address(address, space)?;
        let registers = self.list(list, count, Ty::B32, !is_store)?;
        // Rows of 16 bytes: cells of shared memory may stay as wide as they are.
        let matrix = Matrix { space, address, transposed, is_store, registers };
        let count = count as u32;
        let class = if is_store { Class::MatrixStore(count) } else { Class::MatrixLoad(count) };
        self.emit(Run::Matrix(Box::new(matrix)), Some(class));
        Ok(())
    }
}
