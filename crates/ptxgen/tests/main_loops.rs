//! What NVIDIA's assembler makes of products: main loops that are multiply-adds, and the instructions that are meant.
//!
//! As `ptxas.rs`, they need the assemblers of `scripts/ptxas.sh`.

mod assembler;
mod plans;

use assembler::sass::MainLoop;
use assembler::{Assembled, Assembler};
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, Launch, Step};
use tilewright_core::space::Config;
use tilewright_ops::conv::Conv;
use tilewright_ops::gemm::{Gemm, GemmInput, Layout};
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::conv::SimtConv;
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};
use tilewright_ptxgen::ir::Module;
use tilewright_ptxgen::mma::MmaGemm;
use tilewright_ptxgen::print::print;

/// What large tiles have in common.
const LARGE: &str = "m_l=128,n_l=128,k_s=1,k_l=1,k_g=1,vec_a=4,vec_b=4,vec_c=4,split=ordered,raster=m,bounds=checked";

/// The large tile that a tuner picks for large square matrices.
fn large_tile(target: &str, config: &str) -> GemmPlan {
    let input = GemmInput::new(4096, 4096, 4096, DType::F32, Layout::Nt);
    tile(target, input, &format!("{config},m_s=8,n_s=8,{LARGE}"))
}

fn tile(target: &str, input: GemmInput, config: &str) -> GemmPlan {
    let problem = Bound::new(Arc::new(SimtGemm::new()), plans::spec(target), input).unwrap();
    let point = Config::parse(config).unwrap().to_point(problem.space().params(), None).unwrap();
    problem.plan(&problem.space().check(&point).unwrap())
}

#[test]
fn the_main_loop_of_a_large_tile_is_multiply_adds() {
    let Some(assembler) = Assembler::find() else { return };
    let through_registers = |u: usize| format!("u={u},stages=2,load=nc,occupancy=1");
    let two_blocks = "u=16,stages=2,load=nc,occupancy=2".to_owned();
    let two_blocks_async = "u=16,stages=3,load=async,occupancy=2".to_owned();
    // Of stages of 16 steps the rest of a stage is one hundredth more.
    for (target, u, least, config) in [
        ("sm_80", 16, 0.915, through_registers(16)),
        ("sm_80", 32, 0.92, through_registers(32)),
        ("sm_80", 16, 0.915, two_blocks_async),
        ("sm_90", 16, 0.915, through_registers(16)),
        ("sm_90", 32, 0.92, through_registers(32)),
        ("sm_90", 16, 0.915, two_blocks),
    ] {
        let plan = large_tile(target, &config);
        let two = plan.blueprint().config.occupancy == 2;
        let of = MainLoop::of(&assembler, &plan.modules().remove(0)).unwrap();
        println!(
            "{target}, {config}: {} registers, {} of {} instructions of the main loop are FFMA ({:.4}), {} conflicts ({:.4} of an issue slot), \
             {} loads in {} passes",
            of.registers,
            of.multiplies,
            of.instructions,
            of.share(),
            of.conflicts,
            of.per_slot(),
            of.loads,
            of.passes
        );
        assert_eq!(of.multiplies, u * 64, "{target}");
        assert!(of.share() >= least, "{target}: {}", of.share());
        assert!(of.per_slot() >= 0.88, "{target}: {}", of.per_slot());
        assert!(of.conflicts * 100 <= of.multiplies * 3, "{target}: {}", of.conflicts);
        // Of 16 bytes each, and two passes.
        assert_eq!([of.loads, of.passes], [u * 4, 2 * u * 4], "{target}");
        assert_eq!(of.spilled, 0, "{target}");
        assert!(!two || of.registers <= 128, "{target}: {} registers", of.registers);
    }
}

#[test]
fn the_main_loop_of_a_wide_tile_is_multiply_adds_in_every_layout() {
    let Some(assembler) = Assembler::find() else { return };
    for (target, layout) in ["sm_80", "sm_90"].into_iter().flat_map(|target| Layout::ALL.map(|layout| (target, layout)))
    {
        let input = GemmInput::new(4096, 4096, 4096, DType::F32, layout);
        let plan = tile(target, input, &format!("m_s=8,n_s=16,u=16,stages=2,load=nc,occupancy=1,{LARGE}"));
        let of = MainLoop::of(&assembler, &plan.modules().remove(0)).unwrap();
        let (share, slot, conflicts) = (of.share(), of.per_slot(), of.conflicts as f64 / of.multiplies as f64);
        println!(
            "{target} {layout}: {share:.4}, {slot:.4} of an issue slot, {conflicts:.4} conflicts, {} registers",
            of.registers
        );
        assert!(share >= 0.92 && slot >= 0.88 && conflicts <= 0.03, "{target} {layout}");
        assert_eq!((of.multiplies, of.spilled), (16 * 128, 0), "{target} {layout}");
    }
}

/// The machine code of a kernel's default for large matrices, and what the assembler says of it.
fn default_code<K: Kernel<Of = Gemm>>(
    kernel: K,
    assembler: &Assembler,
    target: &str,
    types: &str,
) -> (Assembled, Vec<(Option<String>, String)>) {
    let fields = Config::parse(&format!("m=4096,n=4096,k=4096,{types}")).unwrap();
    let problem = Bound::new(Arc::new(kernel), plans::spec(target), Gemm.parse(&fields).unwrap()).unwrap();
    let point = problem.default_point().unwrap();
    let program = problem.program(&problem.space().check(&point).unwrap());
    // A sum of slices may follow.
    let [Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }), ..] = &program.steps[..] else {
        panic!("{program:?}")
    };
    let done = assembler.assemble(target.parse().unwrap(), text).unwrap();
    let code = assembler.disassemble(&done.cubin).unwrap();
    assert_eq!(done.spilled, 0, "{target} {types}");
    assert!(done.warnings.is_empty(), "{target} {types}: {:?}", done.warnings);
    assert!(code.iter().all(|(_, op)| !op.contains("STL") && !op.contains("LDL")), "{target} {types}: local memory");
    (done, code)
}

/// How many instructions of a name there are, and how many of them access 16 bytes.
fn accesses(code: &[(Option<String>, String)], name: &str) -> [usize; 2] {
    let of: Vec<&String> = code.iter().map(|(_, op)| op).filter(|op| assembler::name(op).starts_with(name)).collect();
    [of.len(), of.iter().filter(|op| op.contains(".128")).count()]
}

#[test]
fn defaults_for_large_matrices_are_the_instructions_that_are_meant() {
    let Some(assembler) = Assembler::find() else { return };
    // Of matrix instructions a lane holds two neighbouring elements of C.
    let matrices = [
        ("dtype=f16,acc=f32,layout=tn", "HMMA", ""),
        ("dtype=bf16,acc=f32,layout=nt", "HMMA", ""),
        ("dtype=tf32,acc=f32,out=f32,layout=nn", "HMMA", ".64"),
        ("dtype=f64,layout=nt", "DMMA", ".128"),
        ("dtype=i8,layout=tn", "IMMA", ".64"),
    ];
    for target in ["sm_80", "sm_90", "sm_120"] {
        for (types, op, width) in matrices {
            let (done, code) = default_code(MmaGemm::new(), &assembler, target, types);
            let products = assembler::main_loop(&code, op).iter().filter(|found| found.starts_with(op)).count();
            let [copies, wide] = accesses(&code, "LDGSTS");
            println!("gemm.mma {target} {types}: {products} {op}, {copies} LDGSTS, {} registers", done.registers);
            assert!(products >= 16, "{target} {types}: {products} {op}");
            assert!(copies > 0 && wide == copies, "{target} {types}: {wide} of {copies} LDGSTS are 16 bytes");
            let stores = code.iter().map(|(_, op)| op).filter(|op| assembler::name(op).starts_with("STG"));
            let stores: Vec<&String> = stores.collect();
            assert!(!stores.is_empty() && stores.iter().all(|op| op.contains(width)), "{target} {types}: {stores:?}");
        }
        for (types, op) in [("dtype=f32,layout=nt", "FFMA"), ("dtype=f64,layout=tn", "DFMA")] {
            let (done, code) = default_code(SimtGemm::new(), &assembler, target, types);
            let products = assembler::main_loop(&code, op).iter().filter(|found| found.starts_with(op)).count();
            let [[loads, wide_loads], [stores, wide_stores]] = ["LDG", "STG"].map(|name| accesses(&code, name));
            println!(
                "gemm.simt {target} {types}: {products} {op}, {loads} LDG, {stores} STG, {} registers",
                done.registers
            );
            assert!(products >= 256, "{target} {types}: {products} {op}");
            assert!(loads > 0 && wide_loads == loads, "{target} {types}: {wide_loads} of {loads} LDG are 16 bytes");
            assert!(
                stores > 0 && wide_stores == stores,
                "{target} {types}: {wide_stores} of {stores} STG are 16 bytes"
            );
        }
        for (types, op, products) in [
            ("dtype=f32,layout=nn", "FFMA", 16 * 36),
            ("dtype=f64,layout=tt", "DFMA", 16 * 16),
            ("dtype=c32,layout=nc", "FFMA", 16 * 16 * 4),
            ("dtype=c64,layout=cn", "DFMA", 8 * 6 * 4),
        ] {
            let (done, code) = default_code(BacugenGemm::new(), &assembler, target, types);
            let found = assembler::main_loop(&code, op).iter().filter(|found| found.starts_with(op)).count();
            println!("gemm.bacugen {target} {types}: {found} {op}, {} registers", done.registers);
            assert_eq!(found, products, "{target} {types}");
            let loads: Vec<&String> =
                code.iter().map(|(_, op)| op).filter(|op| assembler::name(op).starts_with("LDG")).collect();
            assert!(loads.iter().any(|op| op.contains(".CONSTANT")), "{target} {types}: no read-only path: {loads:?}");
        }
    }
}

/// The product of large matrices by matrix instructions.
fn large_product(target: &str, types: &str, config: &str) -> Module {
    let fields = Config::parse(&format!("m=4096,n=4096,k=4096,{types}")).unwrap();
    let problem = Bound::new(Arc::new(MmaGemm::new()), plans::spec(target), Gemm.parse(&fields).unwrap()).unwrap();
    let base = "vec_c=2,stages=3,load=async,k_g=1,split=ordered,raster=m,bounds=checked";
    let config = Config::parse(&format!("{config},{base}")).unwrap();
    let point = config.to_point(problem.space().params(), None).unwrap();
    let legal = problem.space().check(&point).unwrap_or_else(|e| panic!("{types}: {e}"));
    problem.plan(&legal).modules().remove(0)
}

#[test]
fn the_main_loop_of_matrix_products_is_what_was_written() {
    let Some(assembler) = Assembler::find() else { return };
    let tile = |more: &str| format!("m_w=64,n_w=64,m_l=128,n_l=128,{more}");
    let double = "m_w=32,n_w=64,m_l=64,n_l=128,u=16,vec_a=2,vec_b=2".to_owned();
    let thrice = tile("u=8,vec_a=4,vec_b=4");
    let [half, single, byte] = ["u=32,vec_a=8,vec_b=8", "u=16,vec_a=4,vec_b=4", "u=64,vec_a=16,vec_b=16"].map(tile);
    // Products of a stage, and loads of fragments: of 64 rows of A or columns of B four a step.
    let cases = [
        ("sm_80", "dtype=f16,acc=f32,layout=tn", &half, "HMMA", 64, "LDSM", 16),
        ("sm_90", "dtype=bf16,acc=f32,layout=nt", &half, "HMMA", 64, "LDSM", 16),
        ("sm_80", "dtype=tf32,acc=f32,out=f32,layout=tn", &single, "HMMA", 64, "LDSM", 16),
        ("sm_80", "dtype=i8,layout=tn", &byte, "IMMA", 64, "LDSM", 16),
        // Of 64 rows of A or columns of B sixteen words a step.
        ("sm_80", "dtype=i8,layout=nt", &byte, "IMMA", 64, "LDS", 64),
        ("sm_80", "accuracy=tf32,layout=tn", &single, "HMMA", 64, "LDSM", 16),
        ("sm_90", "accuracy=3xtf32,layout=tn", &thrice, "HMMA", 96, "LDSM", 8),
        ("sm_80", "dtype=f64,layout=nt", &double, "DMMA", 128, "LDS", 48),
        ("sm_90", "dtype=f64,layout=tn", &double, "DMMA", 16, "LDS", 48),
    ];
    for (target, types, config, op, products, load, loads) in cases {
        let module = large_product(target, types, config);
        let done = assembler.assemble(module.target, &print(&module)).unwrap();
        let code = assembler.disassemble(&done.cubin).unwrap();
        let body = assembler::main_loop(&code, op);
        let count = |name: &str| body.iter().filter(|op| op.starts_with(name)).count();
        println!(
            "{target} {types}: {} {op}, {} {load}, {} LDGSTS of {} instructions, {} registers",
            count(op),
            count(load),
            count("LDGSTS"),
            body.len(),
            done.registers
        );
        assert_eq!(count(op), products, "{target} {types}");
        // The assembler may load an element twice rather than keep it.
        assert!((loads..=loads + loads / 8).contains(&count(load)), "{target} {types}");
        // Copies of 16 bytes, and nothing in local memory.
        let mut copies = body.iter().filter(|op| op.starts_with("LDGSTS")).peekable();
        assert!(copies.peek().is_some() && copies.all(|op| op.contains(".128")), "{target} {types}");
        assert!(code.iter().all(|(_, op)| !op.contains("STL") && !op.contains("LDL")), "{target} {types} spills");
        assert_eq!(done.spilled, 0, "{target} {types}");
    }
}

#[test]
fn bytes_are_exchanged_and_parts_are_rounded_once() {
    let Some(assembler) = Assembler::find() else { return };
    let byte = "m_w=64,n_w=64,m_l=128,n_l=128,u=64,vec_a=16,vec_b=16";
    let single = |u: u32| format!("m_w=32,n_w=64,m_l=64,n_l=128,u={u},vec_a=4,vec_b=4");
    let byte = byte.to_owned();
    // Of two steps, but one of 3xtf32: eight exchanges for each four registers of fragments; a rounding for each element, which asks whether it is a number,
    // or two and a difference.
    let cases = [
        ("dtype=i8,layout=nn", byte.clone(), "IMMA", [("PRMT", 2 * 32), ("FADD", 0)]),
        ("dtype=i8,layout=nt", byte, "IMMA", [("PRMT", 4 * 32), ("FADD", 0)]),
        ("accuracy=tf32,layout=nt", single(16), "HMMA", [("FSETP", 2 * 24), ("FADD", 0)]),
        ("accuracy=3xtf32,layout=nt", single(8), "HMMA", [("FSETP", 2 * 24), ("FADD", 24)]),
    ];
    for (types, config, op, expected) in cases {
        let module = large_product("sm_80", types, &config);
        let done = assembler.assemble(module.target, &print(&module)).unwrap();
        let body = assembler::main_loop(&assembler.disassemble(&done.cubin).unwrap(), op);
        let mut ops: std::collections::BTreeMap<&str, usize> = Default::default();
        body.iter().for_each(|op| *ops.entry(op.split('.').next().unwrap_or_default()).or_default() += 1);
        println!("{types}: {ops:?}, {} registers", done.registers);
        for (name, count) in expected {
            assert_eq!(ops.get(name).copied().unwrap_or(0), count, "{types}: {name}");
        }
        assert_eq!(done.spilled, 0, "{types}");
    }
}

#[test]
fn complex_products_are_four_multiply_adds_whatever_is_conjugated() {
    let Some(assembler) = Assembler::find() else { return };
    let rest = "k_s=1,k_l=1,k_g=1,stages=2,load=nc,split=ordered,raster=m,bounds=checked,occupancy=1";
    for (dtype, op, config, products) in [
        (DType::C32, "FFMA", "m_s=4,n_s=4,m_l=64,n_l=64,u=8,vec_a=1,vec_b=1,vec_c=2", 8 * 16),
        (DType::C64, "DFMA", "m_s=2,n_s=4,m_l=32,n_l=64,u=8,vec_a=1,vec_b=1,vec_c=1", 8 * 8),
    ] {
        for (target, layout) in
            [("sm_80", Layout::Nt), ("sm_80", Layout::Cn), ("sm_90", Layout::Tc), ("sm_90", Layout::Cc)]
        {
            let plan = tile(target, GemmInput::new(1024, 1024, 1024, dtype, layout), &format!("{config},{rest}"));
            let module = plan.modules().remove(0);
            let done = assembler.assemble(module.target, &print(&module)).unwrap();
            let body = assembler::main_loop(&assembler.disassemble(&done.cubin).unwrap(), op);
            let count = |ops: &[&str]| body.iter().filter(|found| ops.iter().any(|op| found.starts_with(op))).count();
            println!("{target} {dtype} {layout}: {} instructions, {} {op}", body.len(), count(&[op]));
            assert_eq!(count(&[op]), 4 * products, "{target} {dtype} {layout}");
            // Signs are part of the operands.
            assert_eq!(count(&["FADD", "FMUL", "DADD", "DMUL"]), 0, "{target} {dtype} {layout}");
            assert_eq!(done.spilled, 0, "{target} {dtype} {layout}");
        }
    }
}

#[test]
fn products_of_sixteen_bits_are_multiply_adds_of_what_is_widened_once() {
    let Some(assembler) = Assembler::find() else { return };
    let config = "m_s=8,n_s=8,m_l=128,n_l=128,u=16,k_s=1,k_l=1,k_g=1,vec_a=8,vec_b=8,vec_c=8,stages=2,load=nc,\
                  split=ordered,raster=m,bounds=checked,occupancy=1";
    for (operand, widens) in [(DType::F16, "HADD2"), (DType::Bf16, "PRMT")] {
        let types = ElementTypes { operand, accumulator: DType::F32, output: operand };
        let module = tile("sm_80", GemmInput::new(4096, 4096, 4096, types, Layout::Nt), config).modules().remove(0);
        let done = assembler.assemble(module.target, &print(&module)).unwrap();
        let code = assembler.disassemble(&done.cubin).unwrap();
        let body = assembler::main_loop(&code, "FFMA");
        let count = |name: &str| body.iter().filter(|op| op.starts_with(name)).count();
        println!("{operand}: {} instructions, {} {widens}", body.len(), count(widens));
        assert_eq!(count("FFMA"), 16 * 64, "{operand}");
        assert!(count(widens) <= 16 * 16, "{operand}: {} {widens}", count(widens));
        let all = |name: &str| code.iter().filter(|(_, op)| op.starts_with(name)).count();
        let wide = |name: &str| code.iter().filter(|(_, op)| op.starts_with(name) && op.contains(".128")).count();
        assert_eq!([all("LDG"), all("STG")], [wide("LDG"), wide("STG")], "{operand}: narrow accesses");
        assert_eq!(done.spilled, 0, "{operand}");
    }
}

#[test]
fn operands_of_sixteen_bits_are_widened_by_one_instruction_each() {
    let Some(assembler) = Assembler::find() else { return };
    let config = "k_s=8,k_l=128,q_s=4,q_l=16,p_s=2,p_l=8,n_s=1,n_l=1,c_l=1,u=16,scan=steps,vec_f=8,vec_g=8,stages=2,\
                  load=nc,c_s=1,c_g=1";
    for (target, dtype, widens) in [("sm_80", "f16", "HADD2"), ("sm_90", "f16", "HADD2"), ("sm_80", "bf16", "PRMT")] {
        let fields = Config::parse(&format!("n=8,c=128,h=32,k=128,r=3,pad=1,layout=nhwc,dtype={dtype}")).unwrap();
        let input = Conv.parse(&fields).unwrap();
        let problem = Bound::new(Arc::new(SimtConv::new()), plans::spec(target), input).unwrap();
        let point = Config::parse(config).unwrap().to_point(problem.space().params(), None).unwrap();
        // The first module fills the table.
        let module = problem.plan(&problem.space().check(&point).unwrap()).modules().remove(1);
        let done = assembler.assemble(module.target, &print(&module)).unwrap();
        let code = assembler.disassemble(&done.cubin).unwrap();
        let body = assembler::main_loop(&code, "FFMA");
        let count = |name: &str| body.iter().filter(|op| op.starts_with(name)).count();
        println!("{target} {dtype}: {} instructions, {} {widens}", body.len(), count(widens));
        // 16 steps of 8 outputs and 8 positions; the 8 registers of two loads are taken apart on their way to shared memory.
        assert_eq!(count("FFMA"), 16 * 64, "{target} {dtype}");
        assert!(count(widens) <= 16 * 16 + 16, "{target} {dtype}: {} {widens}", count(widens));
        assert_eq!(done.spilled, 0, "{target} {dtype}");
    }
}
