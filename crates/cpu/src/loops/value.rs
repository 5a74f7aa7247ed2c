//! Values of expressions: one vector for each part of a turn of the lane loop.

use super::LowerError;
use super::lower::{Lower, plain, scalar};
use cranelift_codegen::ir::{InstBuilder, MemFlags, Type, Value, types};
use tilewright_core::dtype::DType;
use tilewright_loops::host::{Along, along};
use tilewright_loops::kernel::{Access, Binary, Expr, Unary};

/// Coefficients of 2^x on [-1/2, 1/2], Taylor's: ln(2)^k / k!. The first term that is left out is below 2^-27.
const POWER_OF_TWO: [f64; 8] = [
    1.0,
    std::f64::consts::LN_2,
    0.240_226_506_959_100_7,
    0.055_504_108_664_821_58,
    0.009_618_129_107_628_477,
    0.001_333_355_814_642_844_3,
    0.000_154_035_303_933_816_1,
    0.000_015_252_733_804_059_84,
];

impl Lower<'_, '_> {
    /// The type of a vector of lanes.
    pub(super) fn vector(&self, dtype: DType) -> Type {
        let one = scalar(dtype);
        u32::try_from(self.lanes.width).ok().filter(|w| *w > 1).and_then(|w| one.by(w)).unwrap_or(one)
    }

    fn splat(&mut self, dtype: DType, value: Value) -> Value {
        let ty = self.vector(dtype);
        if ty.is_vector() { self.b.ins().splat(ty, value) } else { value }
    }

    fn number(&mut self, dtype: DType, x: f64) -> Value {
        let one = match dtype {
            DType::F64 => self.b.ins().f64const(x),
            _ => self.b.ins().f32const(x as f32),
        };
        self.splat(dtype, one)
    }

    pub(super) fn value(&mut self, e: &Expr, dtype: DType) -> Result<Vec<Value>, LowerError> {
        let parts = usize::try_from(self.lanes.parts).unwrap_or(1);
        Ok(match e {
            Expr::Number(x) => vec![self.number(dtype, *x); parts],
            Expr::Local(name) => self.local(name),
            Expr::Index(at) => self.index(at, dtype),
            Expr::Load(access) => self.load(access)?,
            Expr::Unary(op, a) => {
                let a = self.value(a, dtype)?;
                a.into_iter().map(|a| self.unary(*op, a, dtype)).collect()
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, dtype)?, self.value(b, dtype)?);
                a.into_iter().zip(b).map(|(a, b)| self.binary(*op, a, b)).collect()
            }
            Expr::Fma(a, b, c) => {
                let (a, b, c) = (self.value(a, dtype)?, self.value(b, dtype)?, self.value(c, dtype)?);
                let three = a.into_iter().zip(b).zip(c);
                three.map(|((a, b), c)| self.fma(a, b, c)).collect()
            }
        })
    }

    fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        if self.has_fma {
            return self.b.ins().fma(a, b, c);
        }
        let product = self.b.ins().fmul(a, b);
        self.b.ins().fadd(product, c)
    }

    fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        match op {
            Binary::Add => self.b.ins().fadd(a, b),
            Binary::Sub => self.b.ins().fsub(a, b),
            Binary::Mul => self.b.ins().fmul(a, b),
            Binary::Div => self.b.ins().fdiv(a, b),
        }
    }

    fn unary(&mut self, op: Unary, a: Value, dtype: DType) -> Value {
        match op {
            Unary::Sqrt => self.b.ins().sqrt(a),
            Unary::Rsqrt => {
                let (one, root) = (self.number(dtype, 1.0), self.b.ins().sqrt(a));
                self.b.ins().fdiv(one, root)
            }
            Unary::Exp => self.exp(a),
        }
    }

    /// A power of e in binary32: 2 to a whole number by the exponent's bits, 2 to the rest by a polynomial. Results beyond the
    /// range of normal numbers come as the nearest power of two within it.
    fn exp(&mut self, x: Value) -> Value {
        let dtype = DType::F32;
        let scale = self.number(dtype, std::f64::consts::LOG2_E);
        let (low, high) = (self.number(dtype, -126.0), self.number(dtype, 127.0));
        let scaled = self.b.ins().fmul(x, scale);
        let above = self.b.ins().fmax(scaled, low);
        let scaled = self.b.ins().fmin(above, high);
        let whole = self.b.ins().nearest(scaled);
        let rest = self.b.ins().fsub(scaled, whole);
        let mut power = self.number(dtype, POWER_OF_TWO[7]);
        for c in POWER_OF_TWO[..7].iter().rev() {
            let c = self.number(dtype, *c);
            power = self.fma(power, rest, c);
        }
        let float = self.vector(dtype);
        let int = float.as_int();
        let whole = self.b.ins().fcvt_to_sint_sat(int, whole);
        let bits = self.b.ins().iconst(types::I32, 127);
        let bias = if int.is_vector() { self.b.ins().splat(int, bits) } else { bits };
        let exponent = self.b.ins().iadd(whole, bias);
        let shifted = self.b.ins().ishl_imm(exponent, 23);
        let little = MemFlags::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        let factor = self.b.ins().bitcast(float, little, shifted);
        self.b.ins().fmul(power, factor)
    }

    fn index(&mut self, at: &tilewright_loops::Affine, dtype: DType) -> Vec<Value> {
        let (sum, constant) = self.affine(at);
        let first = match sum {
            Some(sum) => self.b.ins().iadd_imm(sum, constant),
            None => self.b.ins().iconst(types::I64, constant),
        };
        let float = self.b.ins().fcvt_from_sint(scalar(dtype), first);
        let step = self.lane.map_or(0, |lane| at.factor(lane));
        let first = self.splat(dtype, float);
        let parts = (0..self.lanes.parts).map(|part| {
            let lanes = (0..self.lanes.width).map(|lane| ((part * self.lanes.width + lane) * step) as f64);
            let offsets = self.numbers(dtype, &lanes.collect::<Vec<_>>());
            self.b.ins().fadd(first, offsets)
        });
        parts.collect()
    }

    /// A vector of constants.
    fn numbers(&mut self, dtype: DType, lanes: &[f64]) -> Value {
        let mut vector = self.number(dtype, lanes[0]);
        for (lane, x) in lanes.iter().enumerate().skip(1) {
            let one = match dtype {
                DType::F64 => self.b.ins().f64const(*x),
                _ => self.b.ins().f32const(*x as f32),
            };
            vector = self.b.ins().insertlane(vector, one, lane as u8);
        }
        vector
    }

    fn load(&mut self, access: &Access) -> Result<Vec<Value>, LowerError> {
        let array = self.instance.kernel().find_array(access.array)?.clone();
        let (base, offset) = self.address(&array, &access.at);
        let (one, vector) = (scalar(array.dtype), self.vector(array.dtype));
        let bytes = array.dtype.size() as i64;
        let parts = usize::try_from(self.lanes.parts).unwrap_or(1);
        Ok(match along(self.instance, access) {
            Along::Same => {
                let value = self.b.ins().load(one, plain(), base, offset);
                vec![self.splat(array.dtype, value); parts]
            }
            Along::Neighbours => {
                let step = self.lanes.width * bytes;
                (0..self.lanes.parts)
                    .map(|part| self.b.ins().load(vector, plain(), base, offset + (part * step) as i32))
                    .collect()
            }
            Along::Apart(far) => {
                let mut out = Vec::new();
                for part in 0..self.lanes.parts {
                    let mut joined = None;
                    for lane in 0..self.lanes.width {
                        let by = (part * self.lanes.width + lane) * far * bytes;
                        let (base, at) = self.moved(base, offset, by);
                        let value = self.b.ins().load(one, plain(), base, at);
                        joined = Some(match joined {
                            None if vector.is_vector() => self.b.ins().scalar_to_vector(vector, value),
                            None => value,
                            Some(so_far) => self.b.ins().insertlane(so_far, value, lane as u8),
                        });
                    }
                    out.extend(joined);
                }
                out
            }
        })
    }
}
