//! What a caller of GEMM has.

use super::accuracy::Accuracy;
use super::batch::{Batch, STRIDES};
use super::epilogue::{Bias, Epilogue};
use super::layout::Layout;
use crate::types;
use std::hash::{Hash, Hasher};
use tilewright_core::computation::{InputError, size_field};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::program;
use tilewright_core::space::{Config, Symbols};

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

/// Shapes, element types, layout, scalar classes, accuracy and epilogue of one GEMM. Leading dimensions count elements.
///
/// Of complex types alpha and beta are real numbers too: each scales both components. Of integers they are 0 or 1, and sums are
/// exact: no reduction is so long that its sum could pass the range of 32 bits. A caller who adds to a C beyond that range has no
/// right result.
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
    /// What may be done to operands before they are multiplied.
    pub accuracy: Accuracy,
    /// What is done to sums before they are written.
    pub epilogue: Epilogue,
    /// Several products of this shape.
    pub batch: Batch,
}

/// Largest m, n, k and leading dimension: what BLAS libraries with 32-bit integers take.
const MAX_SIZE: u64 = i32::MAX as u64;
/// Largest buffer, in bytes: addresses of one buffer fit a 47-bit user address space.
const MAX_BYTES: u128 = 1 << 46;
/// Longest sum of products of 8-bit integers that no operands carry out of the range of 32 bits.
const MAX_EXACT_K: u64 = (i32::MAX / (i8::MIN as i32 * i8::MIN as i32)) as u64;
const WORDS: [&str; 16] = [
    "m",
    "n",
    "k",
    "dtype",
    "acc",
    "out",
    "layout",
    "lda",
    "ldb",
    "ldc",
    "alpha",
    "beta",
    "align",
    "accuracy",
    "bias",
    "activation",
];

/// Of the fields that tell inputs of one program apart: an input is looked up before every call of its plan.
impl Hash for GemmInput {
    fn hash<H: Hasher>(&self, state: &mut H) {
        [self.m, self.n, self.k, self.lda, self.ldb, self.ldc].into_iter().for_each(|size| state.write_usize(size));
        self.types.hash(state);
        let Epilogue { bias, activation } = self.epilogue;
        // Two bits hold the four classes of accuracy.
        let more = self.accuracy as u8 | (bias as u8) << 2 | (activation as u8) << 4;
        state.write_u32(u32::from_le_bytes([self.layout as u8, self.alpha as u8, self.beta as u8, more]));
        state.write_u32(self.batch.count);
    }
}

impl GemmInput {
    /// A tight input: smallest leading dimensions, alpha = 1, beta = 0, 64-byte aligned, of full accuracy, without an epilogue.
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
            accuracy: Accuracy::Full,
            epilogue: Epilogue::default(),
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
            ("transpose_a", "layout in ['tn', 'tt', 'tc', 'cn', 'ct', 'cc']"),
            ("transpose_b", "layout in ['nt', 'tt', 'ct', 'nc', 'tc', 'cc']"),
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
        let types = types::of_products(fields)?;
        let layout = Layout::parse(fields, types.operand)?;
        let mut input = Self::new(size("m")?, size("n")?, size("k")?, types, layout);
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
        input.accuracy = Accuracy::parse(fields, input.types)?;
        input.epilogue = Epilogue::parse(fields, input.types.output)?;
        input.check_integers()?;
        // Before a batch multiplies what would already be too large.
        input.check_bytes()?;
        input.batch = Batch::parse(fields, &input)?;
        input.check_bytes()?;
        Ok(input)
    }

    /// What keeps sums of integers exact.
    fn check_integers(&self) -> Result<(), InputError> {
        let dtype = self.dtype();
        if !dtype.is_integer() {
            return Ok(());
        }
        if self.k as u64 > MAX_EXACT_K {
            let message =
                format!("{} is not within 0..={MAX_EXACT_K}: longer sums of {dtype} may pass 32 bits", self.k);
            return Err(InputError::new("k", message));
        }
        let other = [("alpha", self.alpha), ("beta", self.beta)].into_iter().find(|(_, c)| *c == ScalarClass::Other);
        other.map_or(Ok(()), |(name, _)| {
            Err(InputError::new(name, format!("sums of {dtype} are taken as they are: it is 0 or 1")))
        })
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
        let pairs = pairs.chain(self.more_words()).map(|(n, v)| (n.to_owned(), v));
        Config(pairs.chain(self.batch.fields()).collect())
    }

    /// The operands' type, and the others where they differ from what is usual with it.
    pub(super) fn type_words(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let ElementTypes { operand, accumulator, output } = self.types;
        let usual = ElementTypes::of(operand);
        let others = [("acc", accumulator, usual.accumulator), ("out", output, usual.output)].into_iter();
        let others = others.filter(|(_, dtype, usual)| dtype != usual).map(|(name, dtype, _)| (name, dtype));
        [("dtype", operand)].into_iter().chain(others).map(|(name, dtype)| (name, dtype.name().into()))
    }

    /// Accuracy and epilogue, where they say something.
    pub(super) fn more_words(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.accuracy.field().into_iter().chain(self.epilogue.fields())
    }

    /// Element type of A and B.
    pub fn dtype(&self) -> DType {
        self.types.operand
    }

    /// Element types of A, B and C.
    pub fn operand_types(&self) -> [DType; 3] {
        [self.types.operand, self.types.operand, self.types.output]
    }

    /// Refuses other element types than these, and every epilogue, for kernels and libraries that have no code for them.
    ///
    /// # Errors
    /// The field, `dtype`, `acc`, `out`, `bias` or `activation`, and what may stand there.
    pub fn only(&self, known: &[ElementTypes]) -> Result<(), InputError> {
        self.only_types(known)?;
        match self.epilogue.fields().next() {
            Some((name, value)) => Err(InputError::new(name, format!("there is no code for {value}: none"))),
            None => Ok(()),
        }
    }

    /// Refuses other element types than these, for kernels that have code for every epilogue.
    ///
    /// # Errors
    /// The field, `dtype`, `acc` or `out`, and what may stand there.
    pub fn only_types(&self, known: &[ElementTypes]) -> Result<(), InputError> {
        types::only(self.types, known)
    }

    /// Refuses an input that does not allow three real products for a complex one, for kernels and libraries that have code for no others.
    ///
    /// # Errors
    /// The field `accuracy`, and what it takes.
    pub fn only_three_products(&self) -> Result<(), InputError> {
        if self.accuracy == Accuracy::ThreeM {
            return Ok(());
        }
        let (name, wanted) = (self.accuracy.name(), Accuracy::ThreeM.name());
        let message = format!("{name}: three real products for a complex one take accuracy={wanted}");
        Err(InputError::new("accuracy", message))
    }

    /// f32 and f64 throughout: what most code is for.
    pub const PLAIN: [ElementTypes; 2] = types::PLAIN;

    /// Complex types throughout.
    pub const COMPLEX: [ElementTypes; 2] = [ElementTypes::all(DType::C32), ElementTypes::all(DType::C64)];

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

    /// Elements of the bias.
    pub fn bias_len(&self) -> usize {
        match self.epilogue.bias {
            Bias::None => 0,
            Bias::Row => self.m,
            Bias::Column => self.n,
        }
    }

    /// Bytes of all operands and the bias, all products of a batch together.
    pub fn total_bytes(&self) -> u64 {
        let bias = (self.bias_len(), self.types.output);
        let operands = self.lens().into_iter().zip(self.operand_types());
        operands.chain([bias]).map(|(len, dtype)| len as u64 * dtype.size() as u64).sum()
    }

    /// Operations of one product of the definition: a multiplication and an addition of real numbers, or four of each.
    pub(super) fn flops_of_one(&self) -> f64 {
        if self.dtype().is_complex() { 8.0 } else { 2.0 }
    }

    /// Whether A and B are read at all: not if alpha = 0 or the reduction is empty.
    pub fn multiplies(&self) -> bool {
        self.k > 0 && self.alpha != ScalarClass::Zero
    }
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
