//! Routines that are made for one shape, as kernels of the computation `gemm` for small products.

use crate::call::{BatchCall, Checked, check_sizes};
use crate::foreign::small::{Dispatched, Libxsmm, NanoPlan};
use crate::inventory::{Identity, inventory};
use crate::kernel::{batch_on, refusal, refused, threads_of};
use crate::rust_crates::in_parts;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program};
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{Gemm, GemmInput, ScalarClass};

/// Most multiplications of a product: those of 128 by 128 by 128. Neither library blocks for caches.
const MOST_MULTIPLICATIONS: usize = 128 * 128 * 128;

/// Who makes routines for one shape.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Maker {
    /// A plan is chosen among kernels that were compiled beforehand.
    NanoGemm,
    /// Code is compiled for the shape: a JIT, as the generated kernels are.
    Libxsmm(Libxsmm),
}

/// A library of the host for small products.
#[derive(Clone, Debug)]
pub(crate) struct SmallRoutine {
    /// Name, version and file.
    pub(crate) identity: Identity,
    pub(crate) maker: Maker,
}

/// What a library made for an input.
pub(crate) type Made<T> = Box<dyn Fn(&mut BatchCall<'_, T>) -> Result<(), InputError> + Send + Sync>;

enum Code {
    Single(Made<f32>),
    Double(Made<f64>),
}

impl Maker {
    /// For an input of binary32 that is accepted.
    pub(crate) fn single(self, input: &GemmInput, checked: &Checked) -> Result<Made<f32>, InputError> {
        match self {
            Maker::NanoGemm => {
                let plan = NanoPlan::single(checked);
                Ok(Box::new(move |batch| plan.run(batch)))
            }
            Maker::Libxsmm(library) => jitted(library, input, checked),
        }
    }

    /// For an input of binary64 that is accepted.
    pub(crate) fn double(self, input: &GemmInput, checked: &Checked) -> Result<Made<f64>, InputError> {
        match self {
            Maker::NanoGemm => {
                let plan = NanoPlan::double(checked);
                Ok(Box::new(move |batch| plan.run(batch)))
            }
            Maker::Libxsmm(library) => jitted(library, input, checked),
        }
    }

    fn make(self, input: &GemmInput, checked: &Checked) -> Result<Code, InputError> {
        match input.dtype() {
            DType::F32 => self.single(input, checked).map(Code::Single),
            _ => self.double(input, checked).map(Code::Double),
        }
    }

    /// Small products of plain types of which nothing is empty; of libxsmm only those of alpha = 1 and beta = 0 or 1, which its
    /// code has no argument for.
    fn accepts(self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&GemmInput::PLAIN)?;
        check_sizes(input)?;
        let &GemmInput { m, n, k, .. } = input;
        if let Some((name, _)) = [("m", m), ("n", n), ("k", k)].into_iter().find(|(_, size)| *size == 0) {
            return Err(InputError::new(name, "0: nothing is made for empty products"));
        }
        if m.saturating_mul(n).saturating_mul(k) > MOST_MULTIPLICATIONS {
            let message = format!("{m} x {n} x {k} is more than 128 x 128 x 128: this is for small products");
            return Err(InputError::new("m", message));
        }
        if input.alpha == ScalarClass::Zero {
            return Err(InputError::new("alpha", "0: nothing is made for a product that is not computed"));
        }
        let Maker::Libxsmm(_) = self else { return Ok(()) };
        if input.alpha != ScalarClass::One {
            return Err(InputError::new("alpha", "libxsmm compiles code for alpha = 1 only"));
        }
        if input.beta == ScalarClass::Other {
            return Err(InputError::new("beta", "libxsmm compiles code for beta = 0 and beta = 1 only"));
        }
        // It keeps what it compiled, so that asking costs little when the program is made.
        self.make(input, &Checked::new(input)?).map(|_| ())
    }
}

fn jitted<T: Dispatched>(library: Libxsmm, input: &GemmInput, checked: &Checked) -> Result<Made<T>, InputError> {
    let code = library.compile::<T>(input, checked)?;
    Ok(Box::new(move |batch| code.run(batch)))
}

/// The routine that a library makes for an input, outside of all times. A batch is called product by product, and divided among
/// threads by its products.
#[derive(Debug)]
pub struct SmallGemm {
    routine: &'static SmallRoutine,
    space: ParamSpace,
}

impl SmallGemm {
    /// Those of the host that are found on this machine.
    pub fn of_host() -> Vec<Self> {
        let one = |routine| {
            // No rule that could fail to parse, and no parameter without values.
            let space = ParamSpace::builder().build().unwrap_or_else(|e| unreachable!("{e}"));
            Self { routine, space }
        };
        inventory().small.iter().map(one).collect()
    }

    /// The kernel without its type.
    pub fn erased(self) -> Arc<dyn AnyKernel> {
        Arc::new(Erased::new(self))
    }
}

/// A call on the host.
struct SmallCall {
    made: Result<(Checked, Code), InputError>,
    input: GemmInput,
    buffers: Vec<BufferSpec>,
    threads: usize,
}

impl fmt::Debug for SmallCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallCall({})", Gemm.fields(&self.input))
    }
}

impl Kernel for SmallGemm {
    type Of = Gemm;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::from(format!("gemm.{}.1", self.routine.identity.name))
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        self.routine.maker.accepts(input)
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    fn plan(&self, device: &DeviceSpec, input: &GemmInput, _: &Legal<'_>) -> Program {
        let made = |checked: Checked| Ok((checked, self.routine.maker.make(input, &checked)?));
        let made = Checked::new(input).and_then(made);
        let call = SmallCall { made, input: input.clone(), buffers: Gemm.buffers(input), threads: threads_of(device) };
        Program::host(Arc::new(call), 0)
    }

    fn generate(&self, plan: &Program) -> Program {
        plan.clone()
    }

    fn feature_names(&self) -> Vec<Feature> {
        Vec::new()
    }

    fn features(&self, _: &DeviceSpec, _: &GemmInput, _: &Values<'_>, _: &mut Vec<f32>) {}

    fn default_point(&self, _: &DeviceSpec, _: &GemmInput, space: &BoundSpace) -> Option<Point> {
        space.first_legal()
    }
}

impl HostCode for SmallCall {
    fn checks_buffers(&self) -> bool {
        true
    }

    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        let (checked, code) = self.made.as_ref().map_err(|why| refused(why.clone()))?;
        let ran = match code {
            Code::Single(made) => batch_on(checked, args).map(|mut batch| divided(&mut batch, self.threads, made)),
            Code::Double(made) => batch_on(checked, args).map(|mut batch| divided(&mut batch, self.threads, made)),
        };
        ran.unwrap_or_else(|| Err(refusal(&Ok(*checked), &self.buffers, args)))
    }
}

fn divided<T: Copy + Send + Sync>(
    batch: &mut BatchCall<'_, T>,
    threads: usize,
    made: &Made<T>,
) -> Result<(), DeviceError> {
    if threads <= 1 || batch.count == 1 {
        return made(batch).map_err(refused);
    }
    let first = Mutex::new(None);
    in_parts(batch, threads, |part| {
        if let Err(why) = made(part) {
            *first.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        }
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |why| Err(refused(why)))
}
