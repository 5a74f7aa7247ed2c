//! What NVIDIA's assembler says of legal plans: whether it takes their code, what it spills, and what it warns of.

use crate::cases::Case;
use std::sync::Arc;
use tilewright_core::computation::InputLimits;
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::problem::AnyKernel;
use tilewright_core::program::{Code, Step};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Layout;
use tilewright_runtime::ptxas::{Assembled, Ptxas, PtxasError};

/// Inputs whose code is assembled and not run may be as large as users have them.
pub const LIMITS: InputLimits = InputLimits { max_flops: 1e12, max_bytes: 1e10 };

/// A plan, and what the assembler says of each of its launches.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The input.
    pub input: Config,
    /// The configuration.
    pub config: Config,
    /// Of each launch of the program: what it uses, or why it is refused.
    pub launches: Vec<Result<Assembled, String>>,
    /// The most registers that the hardware, or the blocks that the plan wants on a multiprocessor, leave a thread.
    pub most_registers: Option<u32>,
}

impl Assembly {
    /// Generates the code of a case and assembles it for compute capability `sm`.
    ///
    /// # Errors
    /// The assembler does not run, or the point of the case is not legal. What it refuses is part of the answer.
    pub fn of(case: &Case, tool: &Ptxas, sm: u32) -> Result<Self, AssemblyError> {
        let space = case.problem.space();
        let plan = space.check(&case.point).map_err(|e| AssemblyError::Illegal(e.to_string()))?;
        // A space that lets plans ask for blocks defines a cap below the limit of the hardware.
        let most_registers = plan.int("register_cap").or_else(|| plan.int("register_limit"));
        let program = case.problem.program(&plan);
        let mut launches = Vec::new();
        for step in &program.steps {
            let Step::Launch(launch) = step else { continue };
            let Code::Ptx { text, .. } = &launch.code else { continue };
            launches.push(match tool.assemble(text, sm) {
                Ok(code) => Ok(code),
                Err(PtxasError::Refused(why)) => Err(why),
                Err(error @ PtxasError::Io { .. }) => return Err(error.into()),
            });
        }
        Ok(Self { input: case.problem.input(), config: space.config(&case.point), launches, most_registers })
    }

    fn taken(&self) -> impl Iterator<Item = &Assembled> {
        self.launches.iter().filter_map(|launch| launch.as_ref().ok())
    }

    /// Why launches are refused.
    pub fn refusals(&self) -> impl Iterator<Item = &str> {
        self.launches.iter().filter_map(|launch| launch.as_ref().err().map(String::as_str))
    }

    /// Bytes of spill stores and loads of a thread, of all launches.
    pub fn spills(&self) -> u32 {
        self.taken().flat_map(|code| &code.entries).map(|entry| entry.spills()).sum()
    }

    /// Whether something spills although the code was given fewer registers than it could have: the generator then misjudged its need. Where a
    /// thread has all that the plan leaves it, a spill was foreseen, and the space admits a little of it.
    pub fn spills_unforeseen(&self) -> bool {
        let mut spilled = self.taken().flat_map(|code| &code.entries).filter(|entry| entry.spills() > 0);
        spilled.any(|entry| self.most_registers.is_none_or(|most| entry.registers < most))
    }

    /// Registers of a thread, of the launch that has most.
    pub fn registers(&self) -> u32 {
        self.taken().flat_map(|code| &code.entries).map(|entry| entry.registers).max().unwrap_or(0)
    }

    /// What the assembler warns of.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.taken().flat_map(|code| code.warnings.iter().map(String::as_str))
    }
}

/// Why a plan is not assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// The point is none of the space, or breaks a rule.
    #[error("{0}")]
    Illegal(String),
    /// The assembler does not run.
    #[error(transparent)]
    Ptxas(#[from] PtxasError),
}

/// How many plans of a class came out in which way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Plans.
    pub plans: u32,
    /// Those with a launch that is refused.
    pub refused: u32,
    /// Those that spill.
    pub spilled: u32,
    /// Those of them whose [spill was not foreseen](Assembly::spills_unforeseen).
    pub unforeseen: u32,
    /// Bytes of spill stores and loads of a thread of the plan that spills most.
    pub most_spilled: u32,
    /// Those that the assembler warns of.
    pub warned: u32,
    /// Most registers of a thread.
    pub registers: u32,
}

impl Tally {
    /// Counts a plan.
    pub fn add(&mut self, plan: &Assembly) {
        self.plans += 1;
        self.refused += u32::from(plan.refusals().next().is_some());
        self.spilled += u32::from(plan.spills() > 0);
        self.unforeseen += u32::from(plan.spills_unforeseen());
        self.most_spilled = self.most_spilled.max(plan.spills());
        self.warned += u32::from(plan.warnings().next().is_some());
        self.registers = self.registers.max(plan.registers());
    }

    /// Plans that the assembler takes.
    pub fn accepted(&self) -> u32 {
        self.plans - self.refused
    }
}

/// The types and layouts of products that a kernel has code for, as fields of an input.
pub fn gemm_classes(kernel: &dyn AnyKernel, spec: &Arc<DeviceSpec>) -> Vec<Config> {
    const TYPES: [DType; 9] =
        [DType::F16, DType::Bf16, DType::Tf32, DType::F32, DType::F64, DType::C32, DType::C64, DType::I8, DType::I32];
    let mut out = Vec::new();
    for operand in TYPES {
        for (sum, result) in TYPES.into_iter().flat_map(|sum| TYPES.map(|result| (sum, result))) {
            for layout in Layout::every(operand) {
                let words = [("dtype", operand.name()), ("acc", sum.name()), ("out", result.name())];
                let words = words.into_iter().chain([("layout", layout.name())]);
                let fields = Config(words.map(|(name, word)| (name.to_owned(), word.into())).collect());
                let sizes = ["m", "n", "k"].map(|size| (size.to_owned(), 64.into()));
                let input = Config(sizes.into_iter().chain(fields.0.clone()).collect());
                if kernel.problem(spec, &input).is_ok_and(|problem| problem.default_point().is_some()) {
                    out.push(fields);
                }
            }
        }
    }
    out
}
