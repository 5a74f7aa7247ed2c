//! What instructions ask of the target and of the version of PTX.

use crate::ir::{Arith, Caching, CopyThrough, Inst, MmaKind, Module, Ties, Type, for_each_inst};
use crate::target::Version;

/// A feature that not every target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The instruction.
    pub name: &'static str,
    /// First compute capability that has it.
    pub sm: u32,
    /// First version of PTX that has it.
    pub version: Version,
}

/// What an instruction needs beyond the oldest target.
pub fn needs(inst: &Inst) -> Option<Feature> {
    let feature = |name, sm, version: (u8, u8)| Some(Feature { name, sm, version: Version(version.0, version.1) });
    match inst {
        Inst::CpAsync { through: CopyThrough::SecondByLine, .. } => feature("cp.async by lines", 80, (7, 4)),
        Inst::CpAsync { .. } | Inst::CpAsyncCommit | Inst::CpAsyncWait { .. } => feature("cp.async", 80, (7, 0)),
        Inst::Mma { kind: MmaKind::F64Deep, .. } => feature("mma.sync of f64, 16 deep", 90, (7, 8)),
        Inst::Mma { .. } => feature("mma.sync", 80, (7, 0)),
        Inst::Ldmatrix { .. } => feature("ldmatrix", 75, (6, 5)),
        Inst::GridRelease | Inst::GridWait => feature("launches that overlap", 90, (7, 8)),
        Inst::Fence { lighter: true } => feature("fence.acq_rel", 70, (6, 0)),
        Inst::Red { ty: Type::F64, .. } | Inst::Atom { ty: Type::F64, .. } => feature("atomic add of f64", 60, (5, 0)),
        Inst::RoundTf32 { ties: Ties::Away, .. } => feature("rounding to tf32", 80, (7, 0)),
        Inst::RoundTf32 { ties: Ties::Even, .. } => feature("rounding to tf32, ties to even", 90, (7, 8)),
        Inst::Cvt { to: Type::Bf16, .. } => feature("rounding to bf16", 80, (7, 0)),
        Inst::Cvt { from: Type::Bf16, .. } => feature("cvt from bf16", 90, (7, 8)),
        Inst::Fma { ty: Type::F16x2 | Type::F16, .. } => feature("f16 arithmetic", 53, (4, 2)),
        Inst::Fma { ty: Type::Bf16x2 | Type::Bf16, .. } => feature("bf16 arithmetic", 80, (7, 0)),
        Inst::Arith { op: Arith::Add | Arith::Mul | Arith::Sub, ty: Type::F16 | Type::F16x2, .. } => {
            feature("f16 arithmetic", 53, (4, 2))
        }
        Inst::Ld { caching: Caching::ReadOnly, .. } => feature("ld.global.nc", 32, (3, 1)),
        _ => None,
    }
}

/// The lowest version that knows the target and every instruction.
pub fn version(module: &Module) -> Version {
    let mut version = module.target.version();
    for_each_inst(&module.entry.body, &mut |inst| {
        version = needs(inst).map_or(version, |f| version.max(f.version));
    });
    version
}
