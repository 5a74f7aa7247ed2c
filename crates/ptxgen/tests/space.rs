//! Legality, and that what rules say is what code has.

mod plans;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::{Expr, Value};
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Arg, Code, Launch, Step};
use tilewright_core::space::{BoundSpace, Config, Point};
use tilewright_ops::gemm::{Accuracy, Activation, Batch, Bias, Gemm, GemmInput, Layout, ScalarClass};
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::gemm::{GemmPlan, SimtGemm, Template};
use tilewright_ptxgen::mma::MmaGemm;
use tilewright_ptxgen::target::Target;
use tilewright_ptxgen::verify::verify;
use tilewright_sampler::LegalSet;
use tilewright_sampler::bacugen::{self, DeviceConstants, Guidelines, Reading};

/// The left side of a rule that is a comparison, at a point.
fn left(space: &BoundSpace, rule: &str, point: &[u16]) -> i64 {
    let rule = space.rules().iter().find(|r| r.name == rule).unwrap();
    let Expr::Compare(left, _) = &rule.expr else { panic!("{} is no comparison", rule.name) };
    let value = |name: &str| {
        let at = space.params().iter().position(|p| p.name == name);
        at.map(|i| space.params()[i].values[usize::from(point[i])].clone())
            .or_else(|| space.symbols().get(name).cloned())
    };
    left.eval_with(&value).unwrap().as_int().unwrap()
}

#[test]
fn rules_and_code_agree() {
    let kernel = SimtGemm::new();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for target in plans::TARGETS {
        let spec = plans::spec(target);
        for i in 0..60 {
            let input = if i < 40 { plans::input(&mut rng) } else { plans::typed(&mut rng) };
            let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
            let Some(point) = plans::point(&space, &mut rng) else { continue };
            let plan = kernel.plan(&spec, &input, &space.check(&point).unwrap());
            let blueprint = plan.blueprint();
            assert_eq!(left(&space, "threads", &point), i64::from(blueprint.threads));
            assert_eq!(left(&space, "shared_memory", &point), i64::from(blueprint.shared_bytes), "{blueprint:?}");
            assert_eq!(left(&space, "registers", &point), i64::from(blueprint.registers_needed), "{blueprint:?}");
        }
    }
}

/// What is not counted is neither sampled evenly nor ranked as a whole.
#[test]
fn legal_sets_of_the_products_kernels_are_counted() {
    fn counted<K: Kernel<Of = Gemm>>(kernel: &K, input: fn(&mut ChaCha8Rng) -> GemmInput) {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for _ in 0..6 {
            let target = plans::MMA_TARGETS[rng.random_range(0..plans::MMA_TARGETS.len())];
            let input = input(&mut rng);
            let space = kernel.space().bind(&kernel.symbols(&plans::spec(target), &input)).unwrap();
            let found = LegalSet::of(&space);
            assert!(found.is_ok(), "{} {target} {input:?}: {found:?}", kernel.id());
        }
    }
    counted(&SimtGemm::new(), plans::input);
    counted(&SimtGemm::new(), plans::typed);
    counted(&BacugenGemm::new(), plans::bacugen_input);
    counted(&MmaGemm::new(), plans::mma_input);
}

#[test]
fn rules_and_code_of_matrix_instructions_agree() {
    let kernel = MmaGemm::new();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for target in plans::MMA_TARGETS {
        let spec = plans::spec(target);
        for _ in 0..40 {
            let input = plans::mma_input(&mut rng);
            let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
            let Some(point) = plans::point(&space, &mut rng) else { continue };
            let plan = kernel.plan(&spec, &input, &space.check(&point).unwrap());
            let blueprint = plan.blueprint();
            assert_eq!(left(&space, "threads", &point), i64::from(blueprint.threads));
            assert_eq!(left(&space, "shared_memory", &point), i64::from(blueprint.frame.shared_bytes), "{blueprint:?}");
            assert_eq!(left(&space, "registers", &point), i64::from(blueprint.registers_needed), "{blueprint:?}");
        }
    }
}

#[test]
fn rules_and_code_of_bacugen_agree() {
    let kernel = BacugenGemm::new();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for target in plans::TARGETS {
        let spec = plans::spec(target);
        for _ in 0..12 {
            let input = plans::bacugen_input(&mut rng);
            let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
            let Some(point) = plans::point(&space, &mut rng) else { continue };
            let plan = kernel.plan(&spec, &input, &space.check(&point).unwrap());
            let blueprint = &plan.blueprint().product;
            assert_eq!(left(&space, "threads_per_block", &point), i64::from(blueprint.threads));
            assert_eq!(left(&space, "shared_per_block", &point), i64::from(blueprint.shared_bytes), "{blueprint:?}");
            assert_eq!(left(&space, "registers", &point), i64::from(blueprint.registers_needed), "{blueprint:?}");
        }
    }
}

/// A point of a space that is legal there, with values that another space has too; `None` at a dead end.
fn among(space: &BoundSpace, other: &BoundSpace, rng: &mut ChaCha8Rng) -> Option<Point> {
    let (mut point, mut allowed) = (Vec::new(), Vec::new());
    for (param, theirs) in space.params().iter().zip(other.params()) {
        assert_eq!(param.name, theirs.name);
        space.next_values(&point, &mut allowed);
        allowed.retain(|&i| theirs.index_of(&param.values[usize::from(i)]).is_some());
        point.push(*allowed.get(rng.random_range(0..allowed.len().max(1)))?);
    }
    Some(Point(point))
}

/// What is legal for the kernel is what the paper's space has, but for what our code needs besides.
#[test]
fn legal_points_of_bacugen_are_the_papers() {
    let kernel = BacugenGemm::new();
    let device = DeviceConstants::known("sm_90").unwrap();
    let guidelines = Guidelines { min_threads: 512, min_blocks: 2, min_regs_reuse: 1.0 };
    let ours_alone = ["registers", "body"];
    for (dtype, layout) in [(DType::F32, Layout::Nn), (DType::F64, Layout::Tt), (DType::C32, Layout::Cn)] {
        let input = GemmInput::new(1000, 900, 800, dtype, layout);
        let ours = kernel.space().bind(&kernel.symbols(&plans::spec("sm_90"), &input)).unwrap();
        let of_paper = bacugen::Layout::parse(layout.name()).unwrap();
        let papers = bacugen::space(dtype, of_paper, &device, &guidelines, Reading::Scaled).unwrap();
        let (mut rng, mut drawn, mut kept) = (ChaCha8Rng::seed_from_u64(8), 0, 0);
        for _ in 0..10_000 {
            let Some(point) = among(&papers, &ours, &mut rng) else { continue };
            let config = papers.config(&point);
            let load = Config::parse("load=nc").unwrap();
            let all = Config(config.0.iter().cloned().chain(load.0).collect());
            let broken = ours.first_broken(&all.to_point(ours.params(), None).unwrap()).map(|rule| rule.name.clone());
            assert!(broken.as_ref().is_none_or(|rule| ours_alone.contains(&rule.as_str())), "{config}: {broken:?}");
            (drawn, kept) = (drawn + 1, kept + usize::from(broken.is_none()));
            if drawn == 200 {
                break;
            }
        }
        assert!(kept > 30, "{dtype} {layout}: only {kept} of {drawn} are legal");
        for _ in 0..100 {
            let Some(point) = plans::point(&ours, &mut rng) else { continue };
            let mut config = ours.config(&point);
            config.0.retain(|(name, _)| name != "load");
            let point = config.to_point(papers.params(), None).unwrap();
            papers.check(&point).unwrap_or_else(|e| panic!("{dtype} {layout} {config}: {e}"));
        }
    }
}

#[test]
fn legal_plans_have_no_faults_and_their_arguments_fit() {
    for target in plans::TARGETS {
        plans::plans(target, 25, 5).iter().for_each(sound);
        plans::typed_plans(target, 15, 6).iter().for_each(sound);
        plans::paired_plans(target, 15, 6).iter().for_each(sound);
        plans::bacugen_plans(target, 15, 6).iter().for_each(sound);
    }
    for target in plans::MMA_TARGETS {
        plans::mma_plans(target, 40, 6).iter().for_each(sound);
    }
}

/// Asserts that the verifier has no objection to a plan, and that launches give what modules take.
fn sound<T: Template>(plan: &GemmPlan<T>) {
    let program = plan.program([0; 3]);
    let modules = plan.modules();
    assert_eq!(program.steps.len(), modules.len());
    for (step, module) in program.steps.iter().zip(&modules) {
        let faults = verify(module);
        assert!(faults.is_empty(), "{:?}: {}", plan.blueprint(), faults[0]);
        let Step::Launch(Launch { code: Code::Ptx { entry, .. }, grid, block, args, .. }) = step else { panic!() };
        assert_eq!(*entry, module.entry.name);
        assert_eq!(*block, [module.entry.threads, 1, 1]);
        assert!(grid[1] <= 65_535 && grid[2] <= 65_535 && grid.iter().all(|g| *g > 0), "{grid:?}");
        let bytes = |arg: &Arg| match arg {
            Arg::Buffer(..) | Arg::Workspace(_) | Arg::U64(_) => 8,
            Arg::Scalar(_) => plan.blueprint().frame().arithmetic.ty.bytes(),
            Arg::U32(_) => 4,
            other => panic!("{other:?}"),
        };
        let given: Vec<u32> = args.iter().map(bytes).collect();
        let taken: Vec<u32> = module.entry.params.iter().map(|p| p.ty.bytes()).collect();
        assert_eq!(given, taken, "{entry}");
        for (arg, param) in args.iter().zip(&module.entry.params) {
            if let Arg::U32(x) = arg {
                assert_eq!(x % param.multiple_of, 0, "{} = {x}", param.name);
            }
        }
    }
}

#[test]
fn every_input_has_a_legal_default() {
    let (kernel, bacugen) = (Arc::new(SimtGemm::new()), Arc::new(BacugenGemm::new()));
    let new = |m, n, k, dtype, layout| GemmInput::new(m, n, k, dtype, layout);
    let mut inputs = Vec::new();
    for (dtype, layout) in [(DType::F32, Layout::Nn), (DType::F64, Layout::Tn), (DType::F32, Layout::Tt)] {
        for (m, n, k) in [
            (0, 5, 3),
            (5, 0, 3),
            (5, 3, 0),
            (1, 1, 1),
            (1, 4096, 4096),
            (4096, 1, 7),
            (3, 5, 100_000),
            (2560, 16, 2560),
            (4096, 4096, 4096),
            (33, 1_000_003, 31),
        ] {
            inputs.push(new(m, n, k, dtype, layout));
            inputs.push(GemmInput { align: dtype.size(), alpha: ScalarClass::Zero, ..new(m, n, k, dtype, layout) });
            let others = plans::TYPES.into_iter().chain(plans::PAIRS).map(|(operand, accumulator, output)| {
                let types = ElementTypes { operand, accumulator, output };
                let align = if dtype == DType::F64 { 64 } else { operand.size().max(output.size()) };
                GemmInput { align, ..GemmInput::new(m, n, k, types, layout) }
            });
            inputs.extend(others);
        }
    }
    for target in plans::TARGETS {
        // Rounding to bf16 came with sm_80, arithmetic of f16 with sm_53.
        let sm = target.parse::<Target>().unwrap().sm();
        let inputs = inputs.iter().filter(|input| sm >= 80 || input.types.output != DType::Bf16);
        for input in inputs.filter(|input| sm >= 53 || input.types.accumulator != DType::F16) {
            has_a_default(&kernel, target, input);
            if bacugen.accepts(input).is_ok() {
                has_a_default(&bacugen, target, input);
            }
        }
    }
}

#[test]
fn narrow_products_keep_memory_busy_by_default() {
    let kernel = Arc::new(SimtGemm::new());
    for target in ["sm_80", "sm_90"] {
        for (n, layout) in [16, 32, 64, 128].into_iter().flat_map(|n| [(n, Layout::Nn), (n, Layout::Tn)]) {
            let input = GemmInput::new(2560, n, 2560, DType::F32, layout);
            let problem = Bound::new(kernel.clone(), plans::spec(target), input).unwrap();
            let point = problem.default_point().unwrap();
            let plan = problem.plan(&problem.space().check(&point).unwrap());
            let holds = plan.residence(problem.device());
            println!("{target} n={n} {layout}: {holds:?} of {}", problem.space().config(&point));
            assert!(holds.threads >= 4.0 * 256.0 || holds.bytes >= 20.0 * 1024.0, "{target} n={n} {layout}: {holds:?}");
        }
    }
}

fn has_a_default<K: Kernel<Of = Gemm>>(kernel: &Arc<K>, target: &str, input: &GemmInput) {
    let problem = Bound::new(kernel.clone(), plans::spec(target), input.clone()).unwrap();
    let point = problem.default_point().unwrap_or_else(|| panic!("none for {input:?} on {target}"));
    let legal = problem.space().check(&point).unwrap();
    let mut row = Vec::new();
    problem.config_features(&point, &mut row);
    assert_eq!(row.len(), problem.schema().config.len());
    assert!(row.iter().all(|x| x.is_finite()), "{row:?}");
    assert!(!problem.program(&legal).steps.is_empty() || input.m * input.n == 0);
}

#[test]
fn every_input_of_matrix_instructions_has_a_legal_default() {
    let kernel = Arc::new(MmaGemm::new());
    let sizes = [
        (0, 5, 3),
        (5, 3, 0),
        (1, 1, 1),
        (1, 4096, 4096),
        (4096, 1, 7),
        (3, 5, 100_000),
        (2560, 16, 2560),
        (4096, 4096, 4096),
        (33, 1_000_003, 31),
    ];
    for [operand, accumulator, output] in plans::MMA_TYPES {
        let types = ElementTypes { operand, accumulator, output };
        for (i, (m, n, k)) in sizes.into_iter().enumerate() {
            for target in plans::MMA_TARGETS {
                let mut input = GemmInput::new(m, n, k, types, Layout::ALL[i % 4]);
                if operand == DType::F32 {
                    input.accuracy = [Accuracy::Tf32, Accuracy::ThreeTf32][i % 2];
                }
                input.epilogue.bias = Bias::ALL[i % 3];
                has_a_default(&kernel, target, &input);
                let align = operand.size().max(output.size());
                has_a_default(&kernel, target, &GemmInput { align, alpha: ScalarClass::Zero, ..input });
            }
        }
    }
}

#[test]
fn what_matrix_instructions_do_not_multiply_is_refused() {
    let kernel = MmaGemm::new();
    let refused = |types: ElementTypes| kernel.accepts(&GemmInput::new(64, 64, 64, types, Layout::Tn)).unwrap_err();
    let single = refused(DType::F32.into());
    assert_eq!(single.field, "accuracy");
    assert!(single.message.contains("gemm.simt") && single.message.contains("3xtf32"), "{}", single.message);
    assert_eq!(refused(DType::C32.into()).field, "dtype");
    let half = ElementTypes { accumulator: DType::F64, ..ElementTypes::all(DType::F16) };
    assert_eq!(refused(half).field, "acc");
    // Devices that have no such instructions have nothing legal.
    let input = GemmInput::new(64, 64, 64, DType::F64, Layout::Nt);
    let problem = |target: &str| Bound::new(Arc::new(MmaGemm::new()), plans::spec(target), input.clone()).unwrap();
    let point = problem("sm_80").default_point().unwrap();
    let old = problem("sm_70");
    assert!(old.default_point().is_none());
    assert_eq!(old.space().check(&point).unwrap_err().rule, "target");
}

#[test]
fn finished_sums_are_not_added_in_parts() {
    let input = |dtype: DType| GemmInput::new(64, 64, 640, dtype, Layout::Nt);
    let rule = |input: GemmInput, split: &str| {
        let problem = Bound::new(Arc::new(MmaGemm::new()), plans::spec("sm_80"), input).unwrap();
        let config = Config::parse(&format!("k_g=2,vec_c=1,split={split}")).unwrap();
        let point = config.to_point(problem.space().params(), problem.default_point().as_deref()).unwrap();
        problem.space().check(&point).err().map(|illegal| illegal.rule)
    };
    for dtype in [DType::Tf32, DType::F64, DType::I8] {
        let mut relu = input(dtype);
        relu.epilogue.activation = Activation::Relu;
        assert_eq!(rule(input(dtype), "atomic"), None, "{dtype}");
        assert_eq!(rule(relu, "atomic").as_deref(), Some("atomic_results"), "{dtype}");
    }
    // Integers are summed in order only where that is not all.
    let mut biased = input(DType::I8);
    assert_eq!(rule(biased.clone(), "ordered").as_deref(), Some("exact_sums"));
    biased.epilogue.bias = Bias::Column;
    assert_ne!(rule(biased, "ordered").as_deref(), Some("exact_sums"));
}

#[test]
fn registers_are_given_to_warps_by_fours() {
    // 18 warps take as many registers as 20: with 112 for each thread, as many as 65,536 are for 576, a device refused the launch.
    let input = GemmInput::new(9, 1545, 2058, DType::F64, Layout::Nt);
    let problem = Bound::new(Arc::new(BacugenGemm::new()), plans::spec("sm_90"), input).unwrap();
    let config = "n_dim=48,m_dim=12,k_blk=6,n_blk=96,m_blk=96,m_dim_a=96,n_dim_a=6,m_dim_b=96,n_dim_b=6,load=nc";
    let point = Config::parse(config).unwrap().to_point(problem.space().params(), None).unwrap();
    assert_eq!(problem.space().check(&point).unwrap_err().rule, "registers");
}

#[test]
fn tickets_are_for_the_tiles_of_one_product() {
    let rule = |n: usize, batch: u32| {
        let mut input = GemmInput::new(16, n, 640, DType::F32, Layout::Nt);
        input.batch = Batch::tight(batch, &input);
        let config = "m_s=2,n_s=2,m_l=16,n_l=16,u=8,k_s=1,k_l=1,k_g=2,vec_a=1,vec_b=1,vec_c=2,stages=1,load=global,raster=n,\
                      bounds=checked,occupancy=1,split=ticket";
        let problem = problem(input);
        let point = Config::parse(config).unwrap().to_point(problem.space().params(), None).unwrap();
        problem.space().broken(&point).contains(&"tickets")
    };
    assert_eq!([rule(16 * 4096, 1), rule(16 * 4096 + 1, 1), rule(64, 2)], [false, true, true]);
}

/// A problem on `sm_80`.
fn problem(input: GemmInput) -> Bound<SimtGemm> {
    Bound::new(Arc::new(SimtGemm::new()), plans::spec("sm_80"), input).unwrap()
}

#[test]
fn refusals_name_the_rule_and_its_numbers() {
    let problem = problem(GemmInput::new(512, 512, 512, DType::F32, Layout::Nt));
    let space = problem.space();
    let config = Config::parse("m_s=1,n_s=1,m_l=64,n_l=64,k_l=1").unwrap();
    let mut point = config.to_point(space.params(), problem.default_point().as_deref()).unwrap();
    let illegal = space.check(&point).unwrap_err();
    assert_eq!(illegal.rule, "threads");
    assert!(illegal.numbers.contains(&("m_l".to_owned(), Value::Int(64))), "{illegal}");
    point.0[0] = 100;
    assert_eq!(space.check(&point).unwrap_err().rule, "value");
}

#[test]
fn devices_older_than_the_oldest_target_have_nothing_legal() {
    let mut old = (*plans::spec("sm_50")).clone();
    old.facts.insert("sm".into(), 37);
    let input = GemmInput::new(64, 64, 64, DType::F32, Layout::Nt);
    let point = problem(input.clone()).default_point().unwrap();
    let old = Bound::new(Arc::new(SimtGemm::new()), Arc::new(old), input).unwrap();
    assert_eq!(old.space().check(&point).unwrap_err().rule, "target");
}

#[test]
fn batches_are_limited_and_weaken_alignment() {
    let input = GemmInput::new(64, 64, 64, DType::F32, Layout::Nt);
    let alone = problem(input.clone());
    let point = alone.default_point().unwrap();
    assert!(alone.space().at(&point).unwrap().int("vec_a") > Some(1), "{}", alone.space().config(&point));
    let broken = |count, stride| {
        let batch = Batch { count, strides: [stride; 3] };
        let problem = problem(GemmInput { batch, ..input.clone() });
        problem.space().check(&point).err().map(|illegal| illegal.rule)
    };
    assert_eq!(broken(10, 4096), None);
    assert_eq!(broken(10, 4097).as_deref(), Some("aligned_a"));
    assert_eq!(broken(70_000, 4096).as_deref(), Some("batch"));
}
