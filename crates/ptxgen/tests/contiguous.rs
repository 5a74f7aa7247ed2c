//! Ways of operands to where they are multiplied, other than rows of shared memory: what is refused, and what the assembler makes of the main
//! loop. Tiles stay contiguous along the reduction, or rows of A go straight to registers.

mod assembler;
mod plans;

use assembler::Assembler;
use assembler::sass::MainLoop;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::{GemmInput, Layout};
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};

const LARGE: &str = "m_s=8,n_s=8,m_l=128,n_l=128,k_s=1,k_l=1,k_g=1,u=32,vec_a=4,vec_b=4,vec_c=4,stages=2,load=async,\
                     split=ordered,raster=m,bounds=checked,occupancy=1";

/// A plan for large matrices by what differs from [`LARGE`], or the rule that it breaks.
fn large(target: &str, dtype: DType, layout: Layout, config: &str) -> Result<GemmPlan, String> {
    planned(target, GemmInput::new(4096, 4096, 4096, dtype, layout), config)
}

fn planned(target: &str, input: GemmInput, config: &str) -> Result<GemmPlan, String> {
    let problem = Bound::new(Arc::new(SimtGemm::new()), plans::spec(target), input).unwrap();
    let params = problem.space().params();
    let base = Config::parse(LARGE).unwrap().to_point(params, None).unwrap();
    let point = Config::parse(config).unwrap().to_point(params, Some(&base)).unwrap();
    problem.space().check(&point).map(|legal| problem.plan(&legal)).map_err(|illegal| illegal.rule)
}

#[test]
fn only_numbers_of_four_bytes_in_whole_vectors_stay_together() {
    let rule = |dtype, layout, config| large("sm_80", dtype, layout, config).err();
    assert_eq!(rule(DType::F32, Layout::Tn, ""), None);
    // Nothing is transposed, and single elements are transposed by their copies.
    assert_eq!(rule(DType::F64, Layout::Nt, "vec_a=2,vec_b=2,vec_c=2,u=8"), None);
    assert_eq!(rule(DType::F64, Layout::Tn, "vec_a=1,vec_b=1,vec_c=2,u=8"), None);
    assert_eq!(rule(DType::F64, Layout::Tn, "vec_a=2,vec_b=1,vec_c=2,u=8").as_deref(), Some("deep_steps_a"));
}

#[test]
fn the_main_loop_is_multiply_adds_in_every_layout() {
    let Some(assembler) = Assembler::find() else { return };
    let wide = "n_s=16,n_l=256,u=16";
    // Where both operands are read along the reduction, the assembler leaves more conflicts of registers than of tiles that are transposed on
    // their way, which `main_loops.rs` holds to the limits of all.
    for (layout, config, least, conflicts) in [
        (Layout::Nn, "", [0.92, 0.88], 0.03),
        (Layout::Nn, wide, [0.92, 0.88], 0.03),
        (Layout::Tt, wide, [0.92, 0.88], 0.03),
        (Layout::Tn, "", [0.915, 0.88], 0.05),
    ] {
        for target in ["sm_80", "sm_90"] {
            let plan = large(target, DType::F32, layout, config).unwrap();
            let of = MainLoop::of(&assembler, &plan.modules().remove(0)).unwrap();
            let (found, c) = ([of.share(), of.per_slot()], &plan.blueprint().config);
            println!("{target} {layout} {config}: {found:.4?}, {} conflicts, {} registers", of.conflicts, of.registers);
            assert_eq!(of.multiplies, (c.u * c.m_s * c.n_s) as usize, "{target} {layout}");
            assert!(found[0] >= least[0] && found[1] >= least[1], "{target} {layout} {config}: {found:?}");
            assert!(of.conflicts as f64 <= conflicts * of.multiplies as f64, "{target} {layout}: {}", of.conflicts);
            // Of 16 bytes each and two passes, as of tiles that lie along rows; nothing goes through registers.
            let loads = (c.u * (c.m_s + c.n_s) / 4) as usize;
            assert_eq!(
                [of.loads, of.passes, of.stores, of.spilled as usize],
                [loads, 2 * loads, 0, 0],
                "{target} {layout}"
            );
        }
    }
}

/// The same tiles and threads with rows of A through shared memory: few columns multiply what is stored and loaded for them.
#[test]
fn rows_of_few_columns_go_straight_to_registers() {
    let Some(assembler) = Assembler::find() else { return };
    let tile = "m_s=4,n_s=16,m_l=128,n_l=16,k_l=4,u=32,k_g=8,vec_a=4,vec_b=4";
    for layout in [Layout::Nn, Layout::Tn] {
        for target in ["sm_80", "sm_90"] {
            let of = |load: &str| {
                let input = GemmInput::new(2560, 16, 2560, DType::F32, layout);
                let plan = planned(target, input, &format!("{tile},load={load}")).unwrap();
                let of = MainLoop::of(&assembler, &plan.modules().remove(0)).unwrap();
                let (share, bytes) = (of.share(), plan.blueprint().shared_bytes);
                println!(
                    "{target} {layout} {load}: {share:.4}, {} loads in {} passes and {} stores in {} of shared memory, {bytes} bytes",
                    of.loads, of.passes, of.stores, of.store_passes
                );
                of
            };
            let (through, straight) = (of("nc"), of("straight"));
            assert_eq!((straight.multiplies, straight.spilled), (through.multiplies, 0));
            assert!(straight.share() > through.share() + 0.01, "{target} {layout}");
            // Those of 16 columns of a step by 16 bytes are left, and the stores of one operand.
            assert_eq!((straight.loads, through.loads), (8 * 4, 8 * 5), "{target} {layout}");
            assert!(3 * straight.passes <= 2 * through.passes && 3 * straight.store_passes <= through.store_passes);
        }
    }
}
