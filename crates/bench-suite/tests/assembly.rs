//! NVIDIA's assembler on random legal plans of every GEMM for GPUs: all are taken, without a warning, and the report of what spills
//! is to be trusted. The example `assemble` is the long form.

use std::sync::Arc;
use tilewright::kernels::Kernels;
use tilewright_bench_suite::assembly::{Assembly, LIMITS, Tally, gemm_classes};
use tilewright_bench_suite::cases::Cases;
use tilewright_core::device::DeviceKind;
use tilewright_core::space::Config;
use tilewright_ptxgen::target::Target;
use tilewright_runtime::ptxas::Ptxas;

/// Plans of a variant and a target.
const PLANS: usize = 5;

/// The assembler of a target, where the tests of `ptxgen` find it too.
fn assembler(sm: u32) -> Option<Ptxas> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/ptxas");
    let packaged = ["cu13/nvidia/cu13/bin/ptxas", "cu12/nvidia/cuda_nvcc/bin/ptxas"];
    let found = Ptxas::find(sm).or_else(|| packaged.iter().find_map(|tool| Ptxas::at(&folder.join(tool))));
    if found.is_none() {
        tilewright_testkit::skip(
            "ptxas",
            format!("it is not under {}; scripts/ptxas.sh installs it", folder.display()),
        );
    }
    found
}

#[test]
fn legal_plans_are_taken_without_a_warning() {
    let kernels = Kernels::default();
    for kernel in kernels.variants("gemm", DeviceKind::Cuda).unwrap() {
        for (turn, target) in ["sm_80", "sm_90", "sm_120"].into_iter().enumerate() {
            let (spec, sm) =
                (Arc::new(target.parse::<Target>().unwrap().spec()), target.parse::<Target>().unwrap().sm());
            let Some(tool) = assembler(sm) else { return };
            let classes = gemm_classes(&**kernel, &spec);
            assert!(classes.len() >= 8, "{}: {classes:?}", kernel.id());
            let mut tally = Tally::default();
            for number in 0..PLANS {
                // Classes that lie apart, others for every target.
                let fixed = classes[(number * classes.len() / PLANS + turn) % classes.len()].clone();
                let cases = Cases { kernel: &**kernel, spec: spec.clone(), fixed, limits: LIMITS, seed: 7 };
                let case = cases.draw((100 * number + turn) as u64).unwrap().unwrap();
                let plan = Assembly::of(&case, &tool, sm).unwrap();
                let refused: Vec<&str> = plan.refusals().collect();
                assert!(refused.is_empty(), "{} {} {}: {refused:?}", kernel.id(), plan.input, plan.config);
                let warned: Vec<&str> = plan.warnings().collect();
                assert!(warned.is_empty(), "{} {} {}: {warned:?}", kernel.id(), plan.input, plan.config);
                tally.add(&plan);
            }
            assert_eq!((tally.plans, tally.accepted(), tally.warned), (PLANS as u32, PLANS as u32, 0));
            assert_eq!(tally.unforeseen, 0, "{} {target}: {tally:?}", kernel.id());
            assert!(tally.registers > 16, "{} {target}: {tally:?}", kernel.id());
        }
    }
}

/// A sum of so many numbers that are all loaded before, as PTX with a limit of registers.
fn sum(numbers: usize, limit: u32) -> String {
    let mut body = String::from("    ld.param.u64 %d1, [p];\n");
    (0..numbers).for_each(|i| body += &format!("    ld.volatile.global.f32 %f{i}, [%d1+{}];\n", 4 * i));
    body += "    mov.f32 %f999, 0f00000000;\n    bar.sync 0;\n";
    (0..numbers).rev().for_each(|i| body += &format!("    fma.rn.f32 %f999, %f999, %f{i}, %f{i};\n"));
    body += "    st.global.f32 [%d1], %f999;\n    ret;\n";
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sum(.param .u64 p)\n.maxnreg {limit}\n{{\n    \
         .reg .f32 %f<1000>;\n    .reg .b64 %d<2>;\n{body}}}\n"
    )
}

#[test]
fn what_spills_is_seen_and_what_is_wrong_is_refused() {
    let Some(tool) = assembler(80) else { return };
    let free = tool.assemble(&sum(64, 128), 80).unwrap();
    let used = free.entry("sum").unwrap();
    assert!(used.registers > 64 && used.spills() == 0 && used.stack_bytes == 0, "{used:?}");
    let tight = tool.assemble(&sum(64, 32), 80).unwrap();
    let used = tight.entry("sum").unwrap();
    assert!(used.registers <= 32 && used.spill_stores > 0 && used.spill_loads > 0 && used.stack_bytes > 0, "{used:?}");
    // A thread that could have more registers was given too few; one that has all there are was bound to spill.
    let plan = |most_registers| Assembly {
        input: Config::default(),
        config: Config::default(),
        launches: vec![Ok(tight.clone())],
        most_registers,
    };
    assert!(
        !plan(Some(32)).spills_unforeseen() && plan(Some(40)).spills_unforeseen() && plan(None).spills_unforeseen()
    );
    // No kernel has so few registers, and the assembler says so.
    let warned = tool.assemble(&sum(4, 4), 80).unwrap();
    assert!(warned.warnings.iter().any(|line| line.contains("register")), "{:?}", warned.warnings);
    assert!(tool.assemble(&sum(4, 32).replace("bar.sync 0", "no.such"), 80).is_err());
}
