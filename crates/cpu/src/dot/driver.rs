//! What follows from an input and a configuration, and the loops over the tiles of C.

use super::space::Config;
use super::tile::{Ahead, DotTile};
use crate::codegen::abi::PanelArgs;
use crate::codegen::vector::{Vector, Width};
use crate::exec::code::Invoke;
use crate::exec::driver::{Call, scalar_bits};
use crate::exec::parts::Parts;
use crate::scalar::Float;
use crate::split::{Split, share};
use iced_x86::IcedError;
use tilewright_ops::gemm::{GemmInput, ScalarClass};

/// Derived values of one plan.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) input: GemmInput,
    pub(super) config: Config,
    pub(super) vector: Vector,
    m: Split,
    n: Split,
}

/// Big tiles and small ones. There are no partial ones: their unit is an element.
const KINDS: usize = 2;

/// Routines start at this alignment, in bytes.
const ALIGN: usize = 64;

/// Where the routine of each kind of tile starts.
pub(super) type Entries = [[usize; KINDS]; KINDS];

impl Blueprint {
    /// Derives the values; the configuration must be legal for the input.
    pub(super) fn new(input: GemmInput, config: Config) -> Self {
        let vector =
            Vector { width: Width::from_bytes(config.vec).unwrap_or(Width::X), float: Float::of(input.dtype()) };
        let (m, n) = (Split::new(input.m, 1, config.m_s), Split::new(input.n, 1, config.n_s));
        Self { input, config, vector, m, n }
    }

    fn es(&self) -> usize {
        self.vector.float.bytes()
    }

    /// Bytes between rows of A, columns of B and columns of C.
    fn strides(&self) -> [usize; 3] {
        let GemmInput { lda, ldb, ldc, .. } = self.input;
        [lda, ldb, ldc].map(|ld| ld * self.es())
    }

    fn tile(&self, m: usize, n: usize) -> DotTile {
        let [a_row, b_column, c_column] = self.strides().map(|bytes| bytes as i32);
        DotTile {
            vector: self.vector,
            m,
            n,
            k_s: self.config.k_s,
            k_l: self.config.k_l,
            tail: self.input.k % self.vector.lanes(),
            a_row,
            b_column,
            c_column,
            prefetch: match (self.config.prefetch, self.config.rows_stay) {
                (false, _) => Ahead::None,
                (true, true) => Ahead::B,
                (true, false) => Ahead::A,
            },
            alpha: self.input.alpha,
            beta: self.input.beta,
        }
    }

    fn args(&self, call: &Call) -> PanelArgs {
        let lanes = self.vector.lanes();
        let (vectors, tail) = (self.input.k / lanes, self.input.k % lanes);
        let mut v_mask = [0; 8];
        v_mask.iter_mut().take(tail * self.es() / 4).for_each(|word| *word = u32::MAX);
        PanelArgs {
            k_main: vectors / self.config.k_s,
            k_tail: vectors % self.config.k_s,
            alpha: scalar_bits(self.vector.float, call.alpha),
            beta: scalar_bits(self.vector.float, call.beta),
            v_mask,
            ..PanelArgs::default()
        }
    }

    /// # Safety
    /// As for [`Parts::run_plainly`]; `T` is the plan's element type.
    unsafe fn plainly<T>(&self, call: &Call, alpha: T, beta: T)
    where
        T: Copy + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let GemmInput { m, n, k, lda, ldb, ldc, .. } = self.input;
        let (a, b, c) = (call.a.cast::<T>(), call.b.cast::<T>(), call.c.cast::<T>());
        for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
            // SAFETY: the caller's contract; C is read only if beta is not zero.
            unsafe {
                let terms = (0..k).map(|p| *a.add(i * lda + p) * *b.add(j * ldb + p));
                let sum = alpha * terms.fold(T::default(), |sum, term| sum + term);
                let to = c.add(i + j * ldc);
                to.write(if self.input.beta == ScalarClass::Zero { sum } else { beta * to.read() + sum });
            }
        }
    }
}

impl Parts for Blueprint {
    type Entries = Entries;

    fn generate(&self) -> Result<(Vec<u8>, Entries), IcedError> {
        let (mut code, mut entries) = (Vec::new(), Entries::default());
        for (m, n) in (0..KINDS).flat_map(|m| (0..KINDS).map(move |n| (m, n))) {
            if self.m.has(m) && self.n.has(n) {
                code.resize(code.len().next_multiple_of(ALIGN), 0xcc);
                entries[m][n] = code.len();
                code.extend(self.tile(self.m.units(m), self.n.units(n)).assemble()?);
            }
        }
        Ok((code, entries))
    }

    fn threads(&self) -> usize {
        self.config.t_m * self.config.t_n
    }

    unsafe fn run_part(&self, thread: usize, call: &Call, entries: &Entries, runs: &impl Invoke) {
        let (c, es) = (&self.config, self.es());
        let rows = share(&(0..self.m.tiles()), thread % c.t_m, c.t_m);
        let columns = share(&(0..self.n.tiles()), thread / c.t_m, c.t_n);
        let [a_row, b_column, c_column] = self.strides();
        let (outer, inner) =
            if c.rows_stay { ((&self.m, rows), (&self.n, columns)) } else { ((&self.n, columns), (&self.m, rows)) };
        let mut args = self.args(call);
        for tile in outer.1 {
            for run in inner.0.runs(inner.1.clone()) {
                let units = inner.0.units(run.kind);
                let ((m, n), (m_kind, n_kind)) = if c.rows_stay {
                    args.s_step = (units * b_column) as isize;
                    args.c_step = (units * c_column) as isize;
                    ((tile, run.first), (outer.0.kind(tile), run.kind))
                } else {
                    args.v_step = (units * a_row) as isize;
                    args.c_step = (units * es) as isize;
                    ((run.first, tile), (run.kind, outer.0.kind(tile)))
                };
                let (m, n) = (self.m.start(m), self.n.start(n));
                args.v = call.a.wrapping_add(m * a_row);
                args.s = call.b.wrapping_add(n * b_column);
                args.c = call.c.wrapping_add(m * es + n * c_column);
                args.tiles = run.count;
                // SAFETY: the arguments describe tiles within the caller's extents.
                unsafe { runs.invoke(entries[m_kind][n_kind], &raw mut args) };
            }
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
