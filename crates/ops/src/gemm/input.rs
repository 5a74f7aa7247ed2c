//! What a caller of GEMM has.

use super::batch::{Batch, STRIDES};
use crate::types;
use std::fmt;
use std::hash::{Hash, Hasher};
use tilewright_core::computation::{InputError, size_field};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::program;
use tilewright_core::space::{Config, Symbols};

/// Which operands are stored transposed: first letter A, second B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// A is m x k, B is k x n.
    Nn,
    /// A is m x k, B is stored n x k.
    Nt,
    /// A is stored k x m, B is k x n.
    Tn,
    /// A is stored k x m, B is stored n x k.
    Tt,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 4] = [Self::Nn, Self::Nt, Self::Tn, Self::Tt];

    /// As in inputs: `nn nt tn tt`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nn => "nn",
            Self::Nt => "nt",
            Self::Tn => "tn",
            Self::Tt => "tt",
        }
    }

    /// Whether A is stored k x m.
    pub const fn a_transposed(self) -> bool {
        matches!(self, Self::Tn | Self::Tt)
    }

    /// Whether B is stored n x k.
    pub const fn b_transposed(self) -> bool {
        matches!(self, Self::Nt | Self::Tt)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a scalar when code is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarClass {
    /// Exactly 0: the operand is never read.
    Zero,
    /// Exactly 1.
    One,
    /// Anything else.
    Other,
}

impl ScalarClass {
    /// The class of a value.
    pub fn of(value: f64) -> Self {
        if value == 0.0 {
            Self::Zero
        } else if value == 1.0 {
            Self::One
        } else {
            Self::Other
        }
    }

    /// The values that code for this class computes right with. Code for any other value multiplies: it gives 1 its due, and
    /// reads what a zero must leave unread.
    pub fn values(self) -> program::ScalarClass {
        match self {
            Self::Zero => program::ScalarClass::Exactly(0.0),
            Self::One => program::ScalarClass::Exactly(1.0),
            Self::Other => program::ScalarClass::AllBut(0.0),
        }
    }

    fn word(self) -> Value {
        match self {
            Self::Zero => Value::Int(0),
            Self::One => Value::Int(1),
            Self::Other => Value::Str("other".into()),
        }
    }
}

/// Shapes, element type, layout and scalar classes of one GEMM. Leading dimensions count elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GemmInput {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Length of the reduction.
    pub k: usize,
    /// Element types of A and B, of sums, and of C.
    pub types: ElementTypes,
    /// Which operands are transposed.
    pub layout: Layout,
    /// Leading dimension of A as stored.
    pub lda: usize,
    /// Leading dimension of B as stored.
    pub ldb: usize,
    /// Leading dimension of C.
    pub ldc: usize,
    /// Class of alpha.
    pub alpha: ScalarClass,
    /// Class of beta.
    pub beta: ScalarClass,
    /// All three base addresses are multiples of this many bytes.
    pub align: usize,
    /// Several products of this shape.
    pub batch: Batch,
}

/// Largest m, n, k and leading dimension: what BLAS libraries with 32-bit integers take.
const MAX_SIZE: u64 = i32::MAX as u64;
/// Largest buffer, in bytes: addresses of one buffer fit a 47-bit user address space.
const MAX_BYTES: u128 = 1 << 46;
const WORDS: [&str; 13] =
    ["m", "n", "k", "dtype", "acc", "out", "layout", "lda", "ldb", "ldc", "alpha", "beta", "align"];

/// Of the fields that tell inputs of one program apart: an input is looked up before every call of its plan.
impl Hash for GemmInput {
    fn hash<H: Hasher>(&self, state: &mut H) {
        [self.m, self.n, self.k, self.lda, self.ldb, self.ldc].into_iter().for_each(|size| state.write_usize(size));
        self.types.hash(state);
        state.write_u32(u32::from_le_bytes([self.layout as u8, self.alpha as u8, self.beta as u8, 0]));
        state.write_u32(self.batch.count);
    }
}

impl GemmInput {
    /// A tight input: smallest leading dimensions, alpha = 1, beta = 0, 64-byte aligned.
    pub fn new(m: usize, n: usize, k: usize, types: impl Into<ElementTypes>, layout: Layout) -> Self {
        let mut input = Self {
            m,
            n,
            k,
            types: types.into(),
            layout,
            lda: 0,
            ldb: 0,
            ldc: m.max(1),
            alpha: ScalarClass::One,
            beta: ScalarClass::Zero,
            align: 64,
            batch: Batch::ONE,
        };
        input.lda = input.a_stored().0.max(1);
        input.ldb = input.b_stored().0.max(1);
        input
    }

    /// The facts of a device and this input by the names that rules of GEMM kernels use.
    pub fn symbols(&self, device: &DeviceSpec) -> Symbols {
        let mut s = device.symbols();
        s.set("m", self.m);
        s.set("n", self.n);
        s.set("k", self.k);
        s.set("element", self.dtype().size());
        s.set("transpose_a", self.layout.a_transposed());
        s.set("transpose_b", self.layout.b_transposed());
        s.set("lda", self.lda);
        s.set("ldb", self.ldb);
        s.set("ldc", self.ldc);
        s.set("align", self.operand_align());
        s.set("batch", i64::from(self.batch.count));
        for (name, stride) in STRIDES.into_iter().zip(self.batch.strides) {
            // At most 2^43, as `Batch` says.
            s.set(name, stride as i64);
        }
        s.set("multiplies", self.multiplies());
        s.set("beta_zero", self.beta == ScalarClass::Zero);
        s
    }

    /// How these names follow from the fields, in the language of rules.
    pub fn derivations() -> Vec<(&'static str, String)> {
        let texts = [
            ("element", types::SIZES),
            ("transpose_a", "layout in ['tn', 'tt']"),
            ("transpose_b", "layout in ['nt', 'tt']"),
            ("multiplies", "k > 0 and alpha != 0"),
            ("beta_zero", "beta == 0"),
            // A single product has no field that says so.
            ("batch", "batch"),
            ("batch", "1"),
            ("stride_a", "stride_a"),
            ("stride_a", "0"),
            ("stride_b", "stride_b"),
            ("stride_b", "0"),
            ("stride_c", "stride_c"),
            ("stride_c", "0"),
        ];
        texts.map(|(name, text)| (name, text.to_owned())).to_vec()
    }

    /// The power of two that all operands of all products of a batch are aligned to, in bytes.
    pub fn operand_align(&self) -> usize {
        let strides = self.batch.strides.iter().zip(self.operand_types());
        let zeros = strides.map(|(s, dtype)| (s * dtype.size() as u64).trailing_zeros().min(30));
        zeros.fold(self.align, |align, zeros| align.min(1 << zeros))
    }

    pub(super) fn parse(fields: &Config) -> Result<Self, InputError> {
        let known = || WORDS.into_iter().chain(["batch"]).chain(STRIDES);
        if let Some((name, _)) = fields.0.iter().find(|(n, _)| known().all(|k| k != n)) {
            let known = known().collect::<Vec<_>>().join(" ");
            return Err(InputError::new(name, format!("unknown key: a GEMM input has {known}")));
        }
        let size = |name| size_field(fields, name, 0, MAX_SIZE, None).map(|x| x as usize);
        let mut input = Self::new(size("m")?, size("n")?, size("k")?, element_types(fields)?, layout(fields)?);
        for (name, rows) in [("lda", input.a_stored().0), ("ldb", input.b_stored().0), ("ldc", input.m)] {
            let least = rows.max(1) as u64;
            let ld = size_field(fields, name, least, MAX_SIZE, Some(least))
                .map_err(|e| InputError::new(name, format!("{} (at least the stored rows)", e.message)))?;
            *match name {
                "lda" => &mut input.lda,
                "ldb" => &mut input.ldb,
                _ => &mut input.ldc,
            } = ld as usize;
        }
        input.alpha = scalar(fields, "alpha", ScalarClass::One)?;
        input.beta = scalar(fields, "beta", ScalarClass::Zero)?;
        input.align = types::align(fields, input.types)?;
        // Before a batch multiplies what would already be too large.
        input.check_bytes()?;
        input.batch = Batch::parse(fields, &input)?;
        input.check_bytes()?;
        Ok(input)
    }

    fn check_bytes(&self) -> Result<(), InputError> {
        let operands =
            [("a", self.lda, self.a_stored().1), ("b", self.ldb, self.b_stored().1), ("c", self.ldc, self.n)];
        let types = self.operand_types();
        for (((name, ld, columns), stride), dtype) in operands.into_iter().zip(self.batch.strides).zip(types) {
            let elements = ld as u128 * columns as u128 + u128::from(self.batch.count - 1) * u128::from(stride);
            let bytes = elements * dtype.size() as u128;
            if bytes > MAX_BYTES {
                let field = match name {
                    _ if self.batch.count > 1 => "batch",
                    "c" => "n",
                    _ => "k",
                };
                let message = format!("operand {name} would take {bytes} bytes; the limit is {MAX_BYTES}");
                return Err(InputError::new(field, message));
            }
        }
        Ok(())
    }

    pub(super) fn fields(&self) -> Config {
        let size = |x: usize| Value::from(x);
        let sizes = [("m", size(self.m)), ("n", size(self.n)), ("k", size(self.k))];
        let pairs = [
            ("layout", self.layout.name().into()),
            ("lda", size(self.lda)),
            ("ldb", size(self.ldb)),
            ("ldc", size(self.ldc)),
            ("alpha", self.alpha.word()),
            ("beta", self.beta.word()),
            ("align", size(self.align)),
        ];
        let pairs = sizes.into_iter().chain(self.type_words()).chain(pairs);
        Config(pairs.map(|(n, v)| (n.to_owned(), v)).chain(self.batch.fields()).collect())
    }

    /// The operands' type, and the others where they differ from it.
    pub(super) fn type_words(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let ElementTypes { operand, accumulator, output } = self.types;
        let others = [("acc", accumulator), ("out", output)].into_iter().filter(move |(_, dtype)| *dtype != operand);
        [("dtype", operand)].into_iter().chain(others).map(|(name, dtype)| (name, dtype.name().into()))
    }

    /// Element type of A and B.
    pub fn dtype(&self) -> DType {
        self.types.operand
    }

    /// Element types of A, B and C.
    pub fn operand_types(&self) -> [DType; 3] {
        [self.types.operand, self.types.operand, self.types.output]
    }

    /// Refuses other element types than these, for kernels and libraries that have no code for them.
    ///
    /// # Errors
    /// The field, `dtype`, `acc` or `out`, and what may stand there.
    pub fn only(&self, known: &[ElementTypes]) -> Result<(), InputError> {
        types::only(self.types, known)
    }

    /// f32 and f64 throughout: what most code is for.
    pub const PLAIN: [ElementTypes; 2] = types::PLAIN;

    /// Rows and columns of A as stored.
    pub fn a_stored(&self) -> (usize, usize) {
        if self.layout.a_transposed() { (self.k, self.m) } else { (self.m, self.k) }
    }

    /// Rows and columns of B as stored.
    pub fn b_stored(&self) -> (usize, usize) {
        if self.layout.b_transposed() { (self.n, self.k) } else { (self.k, self.n) }
    }

    /// Elements from the first to the last of a stored matrix.
    pub fn stored_len(rows: usize, columns: usize, ld: usize) -> usize {
        if rows == 0 || columns == 0 { 0 } else { ld * (columns - 1) + rows }
    }

    /// Elements of A, B and C, all products of a batch together.
    pub fn lens(&self) -> [usize; 3] {
        [0, 1, 2].map(|operand| self.batch.len(operand, self.lens_of_one()[operand]))
    }

    /// Elements of A, B and C of one product.
    pub fn lens_of_one(&self) -> [usize; 3] {
        let (a, b) = (self.a_stored(), self.b_stored());
        [
            Self::stored_len(a.0, a.1, self.lda),
            Self::stored_len(b.0, b.1, self.ldb),
            Self::stored_len(self.m, self.n, self.ldc),
        ]
    }

    /// Bytes of all three operands, all products of a batch together.
    pub fn total_bytes(&self) -> u64 {
        self.lens().iter().zip(self.operand_types()).map(|(&l, dtype)| l as u64 * dtype.size() as u64).sum()
    }

    /// Whether A and B are read at all: not if alpha = 0 or the reduction is empty.
    pub fn multiplies(&self) -> bool {
        self.k > 0 && self.alpha != ScalarClass::Zero
    }
}

fn element_types(fields: &Config) -> Result<ElementTypes, InputError> {
    let operand = types::real(fields, "dtype", DType::F32)?;
    let (accumulator, output) = (types::real(fields, "acc", operand)?, types::real(fields, "out", operand)?);
    Ok(ElementTypes { operand, accumulator, output })
}

fn layout(fields: &Config) -> Result<Layout, InputError> {
    let Some(value) = fields.get("layout") else {
        return Ok(Layout::Nn);
    };
    let text = value.to_string();
    let known = Layout::ALL.into_iter().find(|l| l.name() == text);
    known.ok_or_else(|| InputError::not("layout", value, "one of nn, nt, tn and tt"))
}

fn scalar(fields: &Config, name: &str, default: ScalarClass) -> Result<ScalarClass, InputError> {
    match fields.get(name) {
        None => Ok(default),
        Some(Value::Str(s)) if s == "other" => Ok(ScalarClass::Other),
        Some(value) => value
            .as_f64()
            .map(ScalarClass::of)
            .ok_or_else(|| InputError::not(name, value, "a number or the word other")),
    }
}
