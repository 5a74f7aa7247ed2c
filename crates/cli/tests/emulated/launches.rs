//! How blocks and slices of products lie over the grid, how launches follow each other, and how stages do: results against the
//! reference, and symbolic counts that are what ran.

use crate::counts::{self, Shares};
use crate::matrices::shows;
use crate::stand::{any_plan_of, check_program, input, rng};
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::program::{Code, Launch, Program, Step};
use tilewright_ops::gemm::GemmInput;
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm};
use tilewright_ptxgen::mma::{MmaGemm, MmaPlan};

/// Some plan with these parameters.
fn simt(target: &str, input: &GemmInput, config: &str) -> GemmPlan {
    any_plan_of(SimtGemm::new(), target, input, config, &mut rng(1)).unwrap_or_else(|| panic!("{input:?}, {config}"))
}

fn matrices(target: &str, input: &GemmInput, config: &str) -> MmaPlan {
    any_plan_of(MmaGemm::new(), target, input, config, &mut rng(1)).unwrap_or_else(|| panic!("{input:?}, {config}"))
}

fn launches(program: &Program) -> Vec<&Launch> {
    fn launch(step: &Step) -> &Launch {
        let Step::Launch(launch) = step else { panic!("{step:?}") };
        launch
    }
    program.steps.iter().map(launch).collect()
}

/// A program whose launches have some instruction no more.
fn without(program: &Program, instruction: &str) -> Program {
    let mut changed = program.clone();
    for step in &mut changed.steps {
        if let Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }) = step {
            *text = text.replace(instruction, "");
        }
    }
    changed
}

fn text(launch: &Launch) -> &str {
    let Code::Ptx { text, .. } = &launch.code else { panic!("{:?}", launch.code) };
    text
}

#[test]
fn stages_that_are_read_ahead_are_right_however_few_there_are() {
    let types = [("f16", 16), ("bf16,out=f32", 16), ("tf32", 8), ("f32,accuracy=tf32", 8), ("f64", 16), ("i8", 32)];
    let mut cases = Vec::new();
    for (dtype, depth) in types {
        for u in [2 * depth, 4 * depth] {
            for stages in 2..=5 {
                for k in [u - 1, u, u + 1, 2 * u, 3 * u - 1, 6 * u + 2] {
                    let layout = ["nn", "nt", "tn", "tt"][cases.len() % 4];
                    let config = format!("m_w=16,m_l=16,u={u},stages={stages},load=async,k_g=1,bounds=checked");
                    cases.push((format!("m=24,n=72,k={k},dtype={dtype},layout={layout}"), config));
                }
            }
        }
    }
    let check = |(at, (words, config)): (usize, &(String, String))| {
        let (input, target) = (input(words), ["sm_80", "sm_90"][at % 2]);
        // Stages that are never filled have no plan.
        let plan = any_plan_of(MmaGemm::new(), target, &input, config, &mut rng(at as u64))?;
        check_program(target, &input, &plan.program([0; 3]), &format!("{words} {config}"), Filling::Exact, 1);
        Some(())
    };
    let ran = cases.par_iter().enumerate().filter_map(check).count();
    assert!(3 * ran > cases.len(), "only {ran} of {} have a plan", cases.len());
}

#[test]
fn blocks_in_groups_are_right_and_counted() {
    for (m, n, k) in [(40_u32, 128_u32, 24), (17, 241, 9), (64, 256, 40)] {
        let words = |dtype: &str| format!("m={m},n={n},k={k},dtype={dtype},layout=nt,beta=other");
        let (single, half) = (input(&words("f32")), input(&words("f16")));
        let config = "m_l=16,n_l=16,k_g=1,split=ordered,raster=grouped";
        let (of_single, of_half) = (simt("sm_80", &single, config), matrices("sm_90", &half, config));
        for (target, input, program) in
            [("sm_80", &single, of_single.program([0; 3])), ("sm_90", &half, of_half.program([0; 3]))]
        {
            let [rows, groups] = [m.div_ceil(16), n.div_ceil(16) / 8];
            assert_eq!(launches(&program)[0].grid, [8 * rows, groups, 1]);
            check_program(target, input, &program, "in groups", Filling::Real, 1);
        }
        counts::check(&single, &of_single, Shares::LeftOut);
    }
}

#[test]
fn there_are_as_many_slices_as_whole_stages_make() {
    // Of 15 steps, which are two stages of 8: 15 of 16 have a part. Of 25, which are two of 16: 7 of 8.
    let (single, half) = (input("m=20,n=24,k=232,dtype=f32,layout=tn"), input("m=20,n=24,k=200,dtype=f16,layout=nn"));
    for split in ["ordered", "atomic", "ticket"] {
        let plan = simt("sm_80", &single, &format!("u=8,k_g=16,split={split},raster=m"));
        let program = plan.program([0; 3]);
        assert_eq!(launches(&program)[usize::from(split == "atomic")].grid[2], 15, "{split}");
        check_program("sm_80", &single, &program, split, Filling::Exact, 1);
        counts::check(&single, &plan, Shares::LeftOut);
    }
    let plan = matrices("sm_90", &half, "u=16,k_g=8,split=ordered,raster=m");
    assert_eq!(launches(&plan.program([0; 3]))[0].grid[2], 7);
    check_program("sm_90", &half, &plan.program([0; 3]), "of matrices", Filling::Exact, 1);
}

#[test]
fn sums_of_slices_wait_for_the_product_that_they_begin_beneath() {
    let input = input("m=32,n=32,k=256,dtype=f32,layout=nt,beta=1");
    for (target, overlaps) in [("sm_80", false), ("sm_90", true), ("sm_120", true)] {
        let program = simt(target, &input, "k_g=4,split=ordered,raster=m").program([0; 3]);
        let [product, sum] = launches(&program)[..] else { panic!("{program:?}") };
        assert!(!product.attributes.overlaps);
        assert_eq!(sum.attributes.overlaps, overlaps, "{target}");
        let place = |launch: &Launch, what: &str| text(launch).find(what);
        assert_eq!(place(product, "griddepcontrol.launch_dependents").is_some(), overlaps, "{target}");
        // Nothing of the workspace is read before.
        let waits = place(sum, "griddepcontrol.wait");
        assert_eq!(waits.is_some(), overlaps, "{target}");
        assert!(waits < place(sum, "ld.global"), "{target}");
        check_program(target, &input, &program, "overlapping", Filling::Exact, 1);
        assert_eq!(shows(target, &input, &without(&program, "griddepcontrol.wait;")), overlaps, "{target}");
        let whole = simt(target, &input, "k_g=1,raster=m").program([0; 3]);
        assert!(launches(&whole).iter().all(|launch| !text(launch).contains("griddepcontrol")), "{target}");
    }
}
