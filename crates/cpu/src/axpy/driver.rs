//! What follows from an input and a configuration, and the loop over the blocks of C.

use super::space::Config;
use super::tile::AxpyTile;
use crate::codegen::abi::PanelArgs;
use crate::codegen::vector::{Vector, Width};
use crate::exec::code::Invoke;
use crate::exec::driver::{Call, scalar_bits};
use crate::exec::parts::Parts;
use crate::scalar::Float;
use crate::split::{KINDS, Split, share};
use iced_x86::IcedError;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Derived values of one plan.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    vector: Vector,
    sides: Sides,
    /// Blocks of the long side, in vectors.
    v: Split,
    /// Groups of columns.
    k: Split,
}

/// The product as columns of a matrix times scalars: C itself, or its transpose where that is one column. Distances in elements.
#[derive(Clone, Copy, Debug)]
struct Sides {
    /// Whether the matrix is B.
    mirrored: bool,
    long: usize,
    across: usize,
    v_column: usize,
    s_step: usize,
    s_column: usize,
    c_column: usize,
}

/// Whether a row of C is computed as a column: all of it is contiguous, and so is B along it.
pub(super) fn is_row(input: &GemmInput) -> bool {
    input.m == 1 && input.ldc == 1 && input.layout.b_transposed()
}

impl Sides {
    fn of(input: &GemmInput) -> Self {
        let GemmInput { m, n, lda, ldb, ldc, layout, .. } = *input;
        if is_row(input) {
            let s_step = if layout.a_transposed() { 1 } else { lda };
            Self { mirrored: true, long: n, across: m, v_column: ldb, s_step, s_column: 0, c_column: 0 }
        } else {
            let (s_step, s_column) = if layout.b_transposed() { (ldb, 1) } else { (1, ldb) };
            Self { mirrored: false, long: m, across: n, v_column: lda, s_step, s_column, c_column: ldc }
        }
    }
}

/// Where the routine of each kind of block starts.
pub(super) type Entries = [usize; KINDS];

/// Routines start at this alignment, in bytes.
const ALIGN: usize = 64;

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: GemmInput, config: Config) -> Self {
        let vector =
            Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float: Float::of(input.dtype()) };
        let sides = Sides::of(&input);
        let v = Split::into_multiple(sides.long, vector.lanes(), config.block, config.t);
        let k = Split::new(input.k, 1, config.k_s);
        Self { input, config, vector, sides, v, k }
    }

    fn es(&self) -> usize {
        self.vector.float.bytes()
    }

    fn tile(&self, kind: usize) -> AxpyTile {
        let Sides { across, v_column, s_step, s_column, c_column, .. } = self.sides;
        let [v_column, s_step, s_column, c_column] =
            [v_column, s_step, s_column, c_column].map(|distance| (distance * self.es()) as i32);
        AxpyTile {
            vector: self.vector,
            vectors: self.v.units(kind),
            tail: if kind == 2 { self.v.tail() } else { 0 },
            m_s: self.config.m_s,
            s: across,
            k: self.k,
            v_column,
            c_column,
            s_step,
            s_column,
            prefetch: self.config.prefetch,
            alpha: self.input.alpha,
            beta: self.input.beta,
        }
    }
}

impl Parts for Blueprint {
    type Entries = Entries;

    fn generate(&self) -> Result<(Vec<u8>, Entries), IcedError> {
        let (mut code, mut entries) = (Vec::new(), Entries::default());
        for (kind, entry) in entries.iter_mut().enumerate().filter(|(kind, _)| self.v.has(*kind)) {
            code.resize(code.len().next_multiple_of(ALIGN), 0xcc);
            *entry = code.len();
            code.extend(self.tile(kind).assemble()?);
        }
        Ok((code, entries))
    }

    fn threads(&self) -> usize {
        self.config.t
    }

    unsafe fn run_part(&self, thread: usize, call: &Call, entries: &Entries, runs: &impl Invoke) {
        let (v, s) = if self.sides.mirrored { (call.b, call.a) } else { (call.a, call.b) };
        let mut v_mask = [0; 8];
        v_mask.iter_mut().take(self.v.tail() * self.es() / 4).for_each(|word| *word = u32::MAX);
        let mut args = PanelArgs {
            s,
            alpha: scalar_bits(self.vector.float, call.alpha),
            beta: scalar_bits(self.vector.float, call.beta),
            v_mask,
            ..PanelArgs::default()
        };
        for block in share(&(0..self.v.tiles()), thread, self.config.t) {
            let start = self.v.start(block) * self.es();
            args.v = v.wrapping_add(start);
            args.c = call.c.wrapping_add(start);
            // SAFETY: the arguments describe a block within the caller's extents.
            unsafe { runs.invoke(entries[self.v.kind(block)], &raw mut args) };
        }
    }

    unsafe fn run_plainly(&self, call: &Call) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.vector.float {
                Float::F32 => self.plainly::<f32>(call, call.alpha as f32, call.beta as f32),
                Float::F64 => self.plainly::<f64>(call, call.alpha, call.beta),
            }
        }
    }
}

impl Blueprint {
    /// # Safety
    /// As for [`Parts::run_plainly`]; `T` is the plan's element type.
    unsafe fn plainly<T>(&self, call: &Call, alpha: T, beta: T)
    where
        T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let Sides { mirrored, long, across, v_column, s_step, s_column, c_column } = self.sides;
        let (v, s) = if mirrored { (call.b, call.a) } else { (call.a, call.b) };
        let (v, s, c) = (v.cast::<T>(), s.cast::<T>(), call.c.cast::<T>());
        for (j, i) in (0..across).flat_map(|j| (0..long).map(move |i| (j, i))) {
            // SAFETY: the caller's contract; C is read only if beta is not zero.
            unsafe {
                let terms = (0..self.input.k).map(|p| *v.add(i + p * v_column) * *s.add(p * s_step + j * s_column));
                let sum = alpha * terms.fold(T::default(), |sum, term| sum + term);
                let to = c.add(i + j * c_column);
                to.write(if self.input.beta == ScalarClass::Zero { sum } else { beta * to.read() + sum });
            }
        }
    }
}
