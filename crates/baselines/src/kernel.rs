//! Routines of libraries as kernels of the computation `gemm`.

use crate::call::{BatchCall, Checked, GemmCall, check_sizes};
use crate::inventory::{Identity, inventory};
use bytemuck::Pod;
use std::fmt;
use std::sync::Arc;
use tilewright_core::buffer::{BufferSpec, View};
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, LibraryCall, Program, check_buffers};
use tilewright_core::space::{BoundSpace, Legal, Param, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{ALPHA, BETA, Gemm, GemmInput};

/// `C = alpha · op(A) · op(B) + beta · C` on a number of threads (at least one).
pub(crate) type Run<T> = Box<dyn Fn(&mut GemmCall<'_, T>, usize) + Send + Sync>;

/// The same for each product of a batch.
pub(crate) type RunBatch<T> = Box<dyn Fn(&mut BatchCall<'_, T>, usize) + Send + Sync>;

/// One product of bfloat16 numbers, given as their bits, with results of binary32.
pub(crate) type RunHalves = Box<dyn Fn(&mut GemmCall<'_, u16, f32>, usize) + Send + Sync>;

/// Products of complex numbers, several or one.
pub(crate) struct ComplexRoutine {
    pub(crate) cgemm: RunBatch<[f32; 2]>,
    pub(crate) zgemm: RunBatch<[f64; 2]>,
}

/// A GEMM of the host.
pub(crate) struct Routine {
    /// Name, version and file.
    pub(crate) identity: Identity,
    pub(crate) sgemm: Run<f32>,
    pub(crate) dgemm: Run<f64>,
    pub(crate) sbatch: RunBatch<f32>,
    pub(crate) dbatch: RunBatch<f64>,
    /// None where the library has no complex products, or they are not called.
    pub(crate) complex: Option<ComplexRoutine>,
    /// The same by three real products each, where the library has a routine for that.
    pub(crate) three_m: Option<ComplexRoutine>,
    /// None where the library has no products of bfloat16 numbers.
    pub(crate) halves: Option<RunHalves>,
}

impl fmt::Debug for Routine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routine({})", self.identity)
    }
}

/// What is behind a library's name in that of its `gemm3m`.
pub(crate) const THREE_M: &str = "-3m";

/// Most candidates of cuBLASLt for an input: the values of the parameter `option`.
pub const CANDIDATES: u32 = 64;

/// A routine of a library. `gemm3m` of one that has it is a kernel of its own, such as `gemm.mkl-3m`. A routine of the host has one legal
/// configuration, and so has cuBLAS; of cuBLASLt the parameter `option` is the place of a candidate in the library's own order. How many there
/// are for an input only the device knows: the others do not run.
#[derive(Debug)]
pub struct LibraryGemm {
    name: String,
    /// None for a routine of a device's maker.
    routine: Option<&'static Routine>,
    /// Whether complex products are made of three real ones.
    three_m: bool,
    space: ParamSpace,
}

impl LibraryGemm {
    fn new(name: &str, routine: Option<&'static Routine>, params: impl IntoIterator<Item = Param>) -> Self {
        // No rule that could fail to parse, and no parameter without values.
        let space = ParamSpace::builder().params(params).build().unwrap_or_else(|e| unreachable!("{e}"));
        Self { name: name.to_owned(), routine, three_m: false, space }
    }

    /// Those of the host that are found on this machine.
    pub fn of_host() -> Vec<Self> {
        let routines = inventory().routines.iter();
        let all = routines.clone().map(|routine| Self::new(routine.identity.name, Some(routine), []));
        all.chain(routines.filter(|routine| routine.three_m.is_some()).map(Self::of_three_products)).collect()
    }

    fn of_three_products(routine: &'static Routine) -> Self {
        let plain = Self::new(&format!("{}{THREE_M}", routine.identity.name), Some(routine), []);
        Self { three_m: true, ..plain }
    }

    /// cuBLAS and cuBLASLt, whether they are found or not.
    pub fn of_cuda() -> Vec<Self> {
        let options = Param::ints("option", 0..i64::from(CANDIDATES));
        vec![Self::new("cublas", None, []), Self::new("cublaslt", None, [options])]
    }

    /// The kernel without its type.
    pub fn erased(self) -> Arc<dyn AnyKernel> {
        Arc::new(Erased::new(self))
    }
}

/// Products of bfloat16 numbers that libraries have.
const HALVES: ElementTypes = ElementTypes { operand: DType::Bf16, accumulator: DType::F32, output: DType::F32 };

/// Products that cuBLAS has, of any layout. Which of them a release has code for on a device, it says itself.
pub(crate) const ON_DEVICES: [ElementTypes; 11] = [
    ElementTypes::all(DType::F32),
    ElementTypes::all(DType::F64),
    ElementTypes::all(DType::C32),
    ElementTypes::all(DType::C64),
    ElementTypes { operand: DType::F16, accumulator: DType::F32, output: DType::F16 },
    ElementTypes { operand: DType::F16, accumulator: DType::F32, output: DType::F32 },
    ElementTypes::all(DType::F16),
    ElementTypes { operand: DType::Bf16, accumulator: DType::F32, output: DType::Bf16 },
    HALVES,
    ElementTypes { operand: DType::Tf32, accumulator: DType::F32, output: DType::F32 },
    ElementTypes { operand: DType::I8, accumulator: DType::I32, output: DType::I32 },
];

/// Refuses integers that lie where cuBLAS does not take them: its products of them read four at a time.
fn fours(input: &GemmInput) -> Result<(), InputError> {
    let fields = [("align", input.align), ("lda", input.lda), ("ldb", input.ldb)];
    let odd = fields.into_iter().find(|(_, value)| input.dtype() == DType::I8 && value % 4 != 0);
    odd.map_or(Ok(()), |(name, value)| {
        Err(InputError::new(name, format!("{value} is no multiple of 4, which cuBLAS needs of {}", input.dtype())))
    })
}

impl Routine {
    /// The element types of products that the library has.
    fn types(&self) -> Vec<ElementTypes> {
        let complex = self.complex.is_some().then_some(GemmInput::COMPLEX).into_iter().flatten();
        GemmInput::PLAIN.into_iter().chain(complex).chain(self.halves.is_some().then_some(HALVES)).collect()
    }
}

/// The threads of a device of the host.
pub(crate) fn threads_of(device: &DeviceSpec) -> usize {
    device.fact("threads").and_then(|t| usize::try_from(t).ok()).unwrap_or(1).max(1)
}

/// A call on the host: the routine, what of the input is known beforehand, and how many threads it is given.
struct HostCall {
    routine: &'static Routine,
    checked: Result<Checked, InputError>,
    dtype: DType,
    three_m: bool,
    buffers: Vec<BufferSpec>,
    threads: usize,
}

impl HostCall {
    fn new((routine, three_m): (&'static Routine, bool), device: &DeviceSpec, input: &GemmInput) -> Self {
        let checked = Checked::new(input);
        // The crates multiply by an alpha of zero, and a NaN survives that: no reduction is what is meant.
        let checked = if input.multiplies() { checked } else { checked.map(Checked::without_products) };
        let (buffers, threads) = (Gemm.buffers(input), threads_of(device));
        Self { routine, checked, dtype: input.dtype(), three_m, buffers, threads }
    }
}

impl Kernel for LibraryGemm {
    type Of = Gemm;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::from(format!("gemm.{}.1", self.name))
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// Products of plain element types, and of others where the library has them, of sizes that fit 32-bit BLAS. On a CUDA device, and
    /// of bfloat16, one at a time.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        match self.routine {
            Some(_) if self.three_m => input.only(&GemmInput::COMPLEX).and_then(|()| input.only_three_products())?,
            Some(routine) => input.only(&routine.types())?,
            None => input.only(&ON_DEVICES).and_then(|()| fours(input))?,
        }
        if input.batch.count > 1 && (self.routine.is_none() || input.types == HALVES) {
            let message = format!("{} products at once: {} is called for one", input.batch.count, self.name);
            return Err(InputError::new("batch", message));
        }
        check_sizes(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, at: &Legal<'_>) -> Program {
        let option = at.point().first().map_or(0, |&option| u32::from(option));
        match self.routine {
            Some(routine) => Program::host(Arc::new(HostCall::new((routine, self.three_m), device, input)), 0),
            None => Program::library(LibraryCall { library: self.name.clone(), option, input: Gemm.fields(input) }),
        }
    }

    fn generate(&self, plan: &Program) -> Program {
        plan.clone()
    }

    fn feature_names(&self) -> Vec<Feature> {
        self.space.params().iter().map(|param| Feature::flag(&param.name)).collect()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, at: &Values<'_>, out: &mut Vec<f32>) {
        out.extend(at.point().iter().map(|&option| f32::from(option)));
    }

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        space.first_legal()
    }
}

impl HostCode for HostCall {
    fn leaves_threads_spinning(&self) -> bool {
        self.threads > 1
    }

    fn checks_buffers(&self) -> bool {
        true
    }

    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let Ok(checked) = &self.checked else { return Err(refusal(&self.checked, &self.buffers, args)) };
        let (routine, threads) = (self.routine, self.threads);
        let complex = if self.three_m { &routine.three_m } else { &routine.complex };
        let ran = match (self.dtype, complex) {
            (DType::C32, Some(complex)) => {
                batch_on(checked, args).map(|mut batch| (complex.cgemm)(&mut batch, threads))
            }
            (DType::C64, Some(complex)) => {
                batch_on(checked, args).map(|mut batch| (complex.zgemm)(&mut batch, threads))
            }
            (DType::Bf16, _) => halves_on(checked, args, routine, threads),
            (DType::F32, _) => batch_on(checked, args).map(|mut batch| match batch.count {
                1 => (routine.sgemm)(&mut batch.whole, threads),
                _ => (routine.sbatch)(&mut batch, threads),
            }),
            _ => batch_on(checked, args).map(|mut batch| match batch.count {
                1 => (routine.dgemm)(&mut batch.whole, threads),
                _ => (routine.dbatch)(&mut batch, threads),
            }),
        };
        ran.ok_or_else(|| refusal(&self.checked, &self.buffers, args))
    }
}

/// An element type that libraries of the host have.
pub(crate) trait Element: Pod + Copy + Send + Sync {
    const DTYPE: DType;
    fn of(scalar: f64) -> Self;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
    fn of(scalar: f64) -> Self {
        scalar as f32
    }
}

impl Element for f64 {
    const DTYPE: DType = DType::F64;
    fn of(scalar: f64) -> Self {
        scalar
    }
}

impl Element for [f32; 2] {
    const DTYPE: DType = DType::C32;
    fn of(scalar: f64) -> Self {
        [scalar as f32, 0.0]
    }
}

impl Element for [f64; 2] {
    const DTYPE: DType = DType::C64;
    fn of(scalar: f64) -> Self {
        [scalar, 0.0]
    }
}

/// The call that a program is run for, as bare as our own: beyond the library only the types and lengths of three buffers are looked
/// at. None where they do not fit.
#[inline]
pub(crate) fn batch_on<'a, T: Element>(checked: &Checked, args: &'a mut HostArgs<'_, '_>) -> Option<BatchCall<'a, T>> {
    let &[alpha, beta] = args.scalars.get(ALPHA..=BETA)? else { return None };
    let [a, b, c] = &mut *args.buffers else { return None };
    let fits = |view: &View<'_>| view.dtype() == T::DTYPE;
    if !(fits(a) & fits(b) & fits(c) & c.is_writable()) {
        return None;
    }
    checked.on((T::of(alpha), T::of(beta)), a.as_slice(), b.as_slice(), c.as_mut_slice())
}

/// Multiplies bfloat16 numbers. None where the buffers do not fit.
fn halves_on(checked: &Checked, args: &mut HostArgs<'_, '_>, routine: &Routine, threads: usize) -> Option<()> {
    let &[alpha, beta] = args.scalars.get(ALPHA..=BETA)? else { return None };
    let [a, b, c] = &mut *args.buffers else { return None };
    let fits = (a.dtype() == DType::Bf16) & (b.dtype() == DType::Bf16) & (c.dtype() == DType::F32) & c.is_writable();
    let gemm = routine.halves.as_ref().filter(|_| fits)?;
    let (alpha, beta) = (alpha as f32, beta as f32);
    let mut batch = checked.on((alpha, beta), a.as_slice::<u16>(), b.as_slice(), c.as_mut_slice())?;
    gemm(&mut batch.whole, threads);
    Some(())
}

/// Why a call was not made.
#[cold]
pub(crate) fn refusal(
    checked: &Result<Checked, InputError>,
    specs: &[BufferSpec],
    args: &HostArgs<'_, '_>,
) -> DeviceError {
    if let Err(why) = checked {
        return refused(why.clone());
    }
    let scalars = || DeviceError::Argument {
        name: "alpha, beta".to_owned(),
        message: format!("{} scalars are given", args.scalars.len()),
    };
    check_buffers(specs, args.buffers).err().unwrap_or_else(scalars)
}

/// An argument of a call that is refused.
pub(crate) fn refused(why: InputError) -> DeviceError {
    DeviceError::Argument { name: why.field, message: why.message }
}
