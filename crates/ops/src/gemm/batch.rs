//! Several products of one shape in one call.

use super::input::GemmInput;
use tilewright_core::computation::{InputError, size_field};
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Products of one shape, their operands at constant distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// How many, at least one.
    pub count: u32,
    /// Elements from one product's operand to the next, of A, B and C. A and B may overlap, or be shared at distance 0;
    /// those of C must not. All 0 for a single product.
    pub strides: [u64; 3],
}

/// Most products of a batch, and longest distance: as other sizes of BLAS.
const MAX_COUNT: u64 = i32::MAX as u64;
const MAX_STRIDE: u64 = 1 << 43;
pub(super) const STRIDES: [&str; 3] = ["stride_a", "stride_b", "stride_c"];

impl Batch {
    /// A single product.
    pub const ONE: Self = Self { count: 1, strides: [0; 3] };

    /// So many products of a shape, one right behind the other: whole columns, those of the last one too.
    pub fn tight(count: u32, input: &GemmInput) -> Self {
        if count == 1 {
            return Self::ONE;
        }
        let columns = [(input.lda, input.a_stored().1), (input.ldb, input.b_stored().1), (input.ldc, input.n)];
        Self { count, strides: columns.map(|(ld, columns)| ld as u64 * columns as u64) }
    }

    /// Reads `batch` and `stride_a`, `stride_b`, `stride_c`; the shape is known.
    pub(super) fn parse(fields: &Config, input: &GemmInput) -> Result<Self, InputError> {
        let count = size_field(fields, "batch", 1, MAX_COUNT, Some(1))? as u32;
        if count == 1 {
            let named = STRIDES.into_iter().find(|name| fields.get(name).is_some());
            return named.map_or(Ok(Self::ONE), |name| {
                Err(InputError::new(name, "a single product has no strides: write batch=COUNT too"))
            });
        }
        let mut batch = Self::tight(count, input);
        let least = [0, 0, GemmInput::stored_len(input.m, input.n, input.ldc) as u64];
        for ((name, stride), least) in STRIDES.into_iter().zip(&mut batch.strides).zip(least) {
            let why = if least > 0 { " (products of C must not overlap)" } else { "" };
            *stride = size_field(fields, name, least, MAX_STRIDE, Some((*stride).min(MAX_STRIDE)))
                .map_err(|e| InputError::new(name, format!("{}{why}", e.message)))?;
        }
        Ok(batch)
    }

    /// The fields; none for a single product.
    pub(super) fn fields(&self) -> Vec<(String, Value)> {
        if self.count == 1 {
            return Vec::new();
        }
        let names = ["batch"].into_iter().chain(STRIDES);
        let values = [u64::from(self.count)].into_iter().chain(self.strides);
        // Both are below 2^43.
        names.zip(values).map(|(name, value)| (name.to_owned(), Value::Int(value as i64))).collect()
    }

    /// Elements before the operands of a product.
    pub(super) fn offsets(&self, product: u32) -> [usize; 3] {
        self.strides.map(|stride| (stride * u64::from(product)) as usize)
    }

    /// Elements from the first to the last of all products of an operand that is so long.
    pub(super) fn len(&self, operand: usize, of_one: usize) -> usize {
        if of_one == 0 { 0 } else { (u64::from(self.count - 1) * self.strides[operand]) as usize + of_one }
    }
}
