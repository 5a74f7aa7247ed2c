//! Sums in pairs of f16: what code adds them, what is refused, and what the assembler makes of it.

mod assembler;
mod plans;

use assembler::Assembler;
use assembler::sass::MainLoop;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::{GemmInput, Layout};
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};
use tilewright_ptxgen::ir::{Inst, Type, for_each_inst};
use tilewright_ptxgen::print::print;

const PAIRS: ElementTypes = ElementTypes::all(DType::F16);
const LARGE: &str = "m_s=8,n_s=8,m_l=128,n_l=128,k_s=1,k_l=1,k_g=1,u=16,vec_a=8,vec_b=8,vec_c=8,stages=2,load=nc,\
                     split=ordered,raster=m,bounds=checked,occupancy=1";

fn problem(target: &str, input: GemmInput) -> Bound<SimtGemm> {
    Bound::new(Arc::new(SimtGemm::new()), plans::spec(target), input).unwrap()
}

/// A plan for large matrices, by what differs from [`LARGE`].
fn large(target: &str, types: ElementTypes, layout: Layout, config: &str) -> GemmPlan {
    let problem = problem(target, GemmInput::new(4096, 4096, 4096, types, layout));
    let params = problem.space().params();
    let base = Config::parse(LARGE).unwrap().to_point(params, None).unwrap();
    let point = Config::parse(config).unwrap().to_point(params, Some(&base)).unwrap();
    let legal = problem.space().check(&point).unwrap_or_else(|e| panic!("{config}: {e}"));
    problem.plan(&legal)
}

#[test]
fn a_pair_is_added_by_one_instruction_and_widened_once() {
    for (config, sets) in [
        ("", 1),
        ("m_s=4,n_s=4,m_l=64,n_l=64,k_s=2,vec_a=4,vec_b=4,vec_c=4", 2),
        ("m_s=4,n_s=1,m_l=128,n_l=16,vec_b=1,vec_c=4", 1),
    ] {
        let plan = large("sm_80", PAIRS, Layout::Nt, config);
        let (module, c) = (plan.modules().remove(0), &plan.blueprint().config);
        let (mut fused, mut widened) = (0, 0);
        for_each_inst(&module.entry.body, &mut |inst| match inst {
            Inst::Fma { ty, .. } => {
                // Single multiply-adds are of the store, which there are none of with alpha = 1 and beta = 0.
                assert_eq!(*ty, Type::F16x2, "{config}");
                fused += 1;
            }
            Inst::Cvt { to: Type::F32, from: Type::F16, .. } => widened += 1,
            _ => {}
        });
        assert_eq!(fused, c.u * c.m_s * c.n_s / 2, "{config}");
        assert_eq!(widened, sets * c.m_s * c.n_s, "{config}");
    }
}

#[test]
fn threads_hold_whole_pairs() {
    for (m, n, k) in [(1, 1, 1), (1, 4096, 64), (33, 7, 20)] {
        let problem = problem("sm_60", GemmInput::new(m, n, k, PAIRS, Layout::Nn));
        let default = problem.default_point().unwrap();
        assert!(problem.space().at(&default).unwrap().int("m_s").is_some_and(|rows: u32| rows.is_multiple_of(2)));
        let single = Config::parse("m_s=1").unwrap().to_point(problem.space().params(), Some(&default)).unwrap();
        assert_eq!(problem.space().check(&single).unwrap_err().rule, "pairs");
    }
}

#[test]
fn devices_without_arithmetic_of_f16_have_nothing_legal() {
    let input = GemmInput::new(64, 64, 64, PAIRS, Layout::Nt);
    let point = problem("sm_60", input.clone()).default_point().unwrap();
    for (target, why) in [("sm_50", Some("f16_arithmetic")), ("sm_52", Some("f16_arithmetic")), ("sm_60", None)] {
        let problem = problem(target, input.clone());
        assert_eq!(problem.default_point().is_none(), why.is_some(), "{target}");
        let broken = problem.space().check(&point).err().map(|illegal| illegal.rule);
        assert!(broken.as_deref() == why || why.is_none(), "{target}: {broken:?}");
    }
}

#[test]
fn sums_narrower_than_there_is_code_for_are_refused_by_name() {
    let types = |operand, accumulator, output| ElementTypes { operand, accumulator, output };
    let input = |types| GemmInput::new(64, 64, 64, types, Layout::Nn);
    let refused = |types| SimtGemm::new().accepts(&input(types)).unwrap_err().to_string();
    assert_eq!(refused(types(DType::Bf16, DType::Bf16, DType::Bf16)), "acc: there is no code for bf16: f32");
    assert_eq!(refused(types(DType::F32, DType::F16, DType::F32)), "acc: there is no code for f16: f32");
    assert_eq!(refused(types(DType::F16, DType::F16, DType::Bf16)), "out: there is no code for bf16: f16 or f32");
    assert_eq!(BacugenGemm::new().accepts(&input(PAIRS)).unwrap_err().field, "dtype");
}

#[test]
fn sums_in_f16_take_half_the_registers() {
    let of = |accumulator| {
        let types = ElementTypes { operand: DType::F16, accumulator, output: DType::F16 };
        large("sm_80", types, Layout::Nt, "").blueprint().registers_needed
    };
    assert!(of(DType::F16) + 32 <= of(DType::F32), "{} {}", of(DType::F16), of(DType::F32));
}

/// Names of the instructions of a plan's main loop, and how often each occurs.
fn main_loop(assembler: &Assembler, plan: &GemmPlan) -> (BTreeMap<String, usize>, u32) {
    let module = plan.modules().remove(0);
    let done = assembler.assemble(module.target, &print(&module)).unwrap();
    assert_eq!(done.spilled, 0, "{:?}", plan.blueprint());
    let mut ops: BTreeMap<String, usize> = BTreeMap::new();
    for op in assembler::main_loop(&assembler.disassemble(&done.cubin).unwrap(), "HFMA2") {
        *ops.entry(op.split('.').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    (ops, done.registers)
}

#[test]
fn the_main_loop_multiplies_pairs_and_takes_none_apart() {
    let Some(assembler) = Assembler::find() else { return };
    for (target, layout) in [
        ("sm_80", Layout::Nt),
        ("sm_80", Layout::Tn),
        ("sm_90", Layout::Nt),
        ("sm_90", Layout::Nn),
        ("sm_120", Layout::Nt),
    ] {
        let (ops, registers) = main_loop(&assembler, &large(target, PAIRS, layout, ""));
        let all: usize = ops.values().sum();
        let count = |name: &str| ops.get(name).copied().unwrap_or(0);
        println!("{target} {layout}: {} HFMA2 of {all}, {registers} registers: {ops:?}", count("HFMA2"));
        assert_eq!(count("HFMA2"), 16 * 32, "{target} {layout}");
        assert_eq!([count("FFMA"), count("HADD2")], [0; 2], "{target} {layout}: sums are widened in the loop");
        // Operands that are transposed on their way to shared memory are taken apart there: two registers of a load of 8 elements each.
        let transposed = usize::from(layout.a_transposed()) + usize::from(!layout.b_transposed());
        assert!(count("PRMT") <= 4 * transposed, "{target} {layout}: operands are copied to both halves");
        assert!(count("HFMA2") * 100 >= all * 85, "{target} {layout}: {all} instructions");
    }
}

#[test]
fn pairs_read_shared_memory_as_wide_as_they_lie_there() {
    let Some(assembler) = Assembler::find() else { return };
    for config in ["", "load=async,stages=3", "u=32", "m_s=16,n_s=16,m_l=256,n_l=128,u=8"] {
        let plan = large("sm_80", PAIRS, Layout::Nt, config);
        let (of, c) = (MainLoop::of(&assembler, &plan.modules().remove(0)).unwrap(), &plan.blueprint().config);
        println!("{config}: {} {} of {}, {} conflicts", of.multiplies, of.op, of.instructions, of.conflicts);
        // Of 16 bytes, which are 8 rows or columns, and two passes.
        let loads = (c.u * (c.m_s + c.n_s) / 8) as usize;
        assert_eq!([of.loads, of.passes], [loads, 2 * loads], "{config}");
        assert_eq!((of.multiplies, of.spilled), ((c.u * c.m_s * c.n_s / 2) as usize, 0), "{config}");
        assert!(of.share() >= 0.89, "{config}: {}", of.share());
        assert!(of.registers <= c.m_s * c.n_s / 2 + 80, "{config}: {} registers", of.registers);
    }
}

#[test]
fn the_default_for_large_matrices_keeps_its_pairs_in_registers() {
    let Some(assembler) = Assembler::find() else { return };
    for (target, layout) in [("sm_80", Layout::Nt), ("sm_90", Layout::Tn), ("sm_120", Layout::Nn)] {
        let problem = problem(target, GemmInput::new(4096, 4096, 4096, PAIRS, layout));
        let point = problem.default_point().unwrap();
        let (ops, registers) = main_loop(&assembler, &problem.plan(&problem.space().check(&point).unwrap()));
        println!("{target} {layout}: {registers} registers, {ops:?} of {}", problem.space().config(&point));
        assert!(ops["HFMA2"] >= 256 && ops["HFMA2"] * 100 >= 85 * ops.values().sum::<usize>(), "{target} {layout}");
    }
}
