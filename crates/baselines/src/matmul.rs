//! oneDNN's products of narrow operands as a kernel.

use crate::foreign::onednn::{ElementKind, OneDnn, Product, ProductDescription, Tensor};
use crate::inventory::inventory;
use crate::kernel::threads_of;
use std::sync::Arc;
use tilewright_core::buffer::BufferSpec;
use tilewright_core::computation::{Computation, InputError};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::feature::Feature;
use tilewright_core::id::KernelId;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::program::{DeviceError, HostArgs, HostCode, Program, check_buffers};
use tilewright_core::space::{BoundSpace, Legal, ParamSpace, Point, Symbols, Values};
use tilewright_ops::gemm::{A, B, C, Gemm, GemmInput, ScalarClass};

/// The kernel `gemm.onednn`.
#[derive(Debug)]
pub(crate) struct OneDnnGemm {
    library: &'static OneDnn,
    space: ParamSpace,
}

/// Products of narrow operands; those of binary32 are other libraries' best.
const NARROW: [ElementTypes; 7] = [
    with_sums(DType::Bf16, DType::F32, DType::F32),
    with_sums(DType::Bf16, DType::F32, DType::Bf16),
    ElementTypes::all(DType::Bf16),
    with_sums(DType::F16, DType::F32, DType::F32),
    with_sums(DType::F16, DType::F32, DType::F16),
    ElementTypes::all(DType::F16),
    with_sums(DType::I8, DType::I32, DType::I32),
];

const fn with_sums(operand: DType, accumulator: DType, output: DType) -> ElementTypes {
    ElementTypes { operand, accumulator, output }
}

impl OneDnnGemm {
    /// The one of the host, if the library is found.
    pub(crate) fn of_host() -> Option<Arc<dyn AnyKernel>> {
        // No rule that could fail to parse, and no parameter without values.
        let space = ParamSpace::builder().build().unwrap_or_else(|e| unreachable!("{e}"));
        inventory().onednn.map(|library| Arc::new(Erased::new(Self { library, space })) as Arc<dyn AnyKernel>)
    }
}

impl Kernel for OneDnnGemm {
    type Of = Gemm;
    type Plan = Program;

    fn id(&self) -> KernelId {
        KernelId::new("gemm.onednn.1")
    }

    fn computation(&self) -> &Gemm {
        &Gemm
    }

    fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// Single products that are not empty, with alpha = 1 and beta = 0.
    fn accepts(&self, input: &GemmInput) -> Result<(), InputError> {
        input.only(&NARROW)?;
        for (name, size) in [("m", input.m), ("n", input.n), ("k", input.k)] {
            if size == 0 {
                return Err(InputError::new(name, "0: the library has no empty products"));
            }
        }
        if input.batch.count > 1 {
            let message = format!("{} products at once: the library is called for one", input.batch.count);
            return Err(InputError::new("batch", message));
        }
        if input.alpha != ScalarClass::One {
            return Err(InputError::new("alpha", "the library is called for alpha = 1 only"));
        }
        if input.beta != ScalarClass::Zero {
            return Err(InputError::new("beta", "the library is called for beta = 0 only"));
        }
        Ok(())
    }

    fn symbols(&self, device: &DeviceSpec, input: &GemmInput) -> Symbols {
        input.symbols(device)
    }

    /// With the library's code, so that no run makes it.
    fn plan(&self, device: &DeviceSpec, input: &GemmInput, _: &Legal<'_>) -> Program {
        let threads = threads_of(device);
        let made = self.library.product(&description(input, threads)).map_err(|e| e.to_string());
        Program::host(Arc::new(Code { buffers: Gemm.buffers(input), made, is_parallel: threads > 1 }), 0)
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

fn element(dtype: DType) -> ElementKind {
    match dtype {
        DType::F16 => ElementKind::F16,
        DType::Bf16 => ElementKind::Bf16,
        DType::I8 => ElementKind::I8,
        DType::I32 => ElementKind::I32,
        _ => ElementKind::F32,
    }
}

/// The transposed product, `C' = op(B)' op(A)'`: the library likes results whose rows lie together.
fn description(input: &GemmInput, threads: usize) -> ProductDescription {
    let &GemmInput { m, n, k, layout, lda, ldb, ldc, types, .. } = input;
    let matrix = |dims: [usize; 2], strides: [usize; 2]| Tensor {
        dims: dims.map(|size| size as i64).to_vec(),
        strides: strides.map(|stride| stride as i64).to_vec(),
    };
    let b = matrix([n, k], if layout.b_transposed() { [1, ldb] } else { [ldb, 1] });
    let a = matrix([k, m], if layout.a_transposed() { [1, lda] } else { [lda, 1] });
    let (operand, output) = (element(types.operand), element(types.output));
    ProductDescription { matrices: [(b, operand), (a, operand), (matrix([n, m], [ldc, 1]), output)], threads }
}

struct Code {
    buffers: Vec<BufferSpec>,
    /// Or why there is none.
    made: Result<Product, String>,
    is_parallel: bool,
}

impl HostCode for Code {
    fn leaves_threads_spinning(&self) -> bool {
        self.is_parallel
    }

    fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
        check_buffers(&self.buffers, args.buffers)?;
        let product = self.made.as_ref().map_err(|why| DeviceError::Load(why.clone()))?;
        let wrong = |message: &str| DeviceError::Argument { name: "buffers".to_owned(), message: message.to_owned() };
        let Ok([a, b, c]) = args.buffers.get_disjoint_mut([A, B, C]) else {
            return Err(wrong("a product has a, b and c"));
        };
        let c = c.bytes_mut().ok_or_else(|| wrong("c is only lent for reading"))?;
        product.run([b.bytes(), a.bytes()], c).map_err(|e| DeviceError::Fault(e.to_string()))
    }
}
