//! Legality, and that what rules say is what code has.

mod plans;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::dtype::DType;
use tilewright_core::expr::{Expr, Value};
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Arg, Code, Step};
use tilewright_core::space::BoundSpace;
use tilewright_ops::gemm::{Batch, GemmInput, Layout, ScalarClass};
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::verify::verify;

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
        for _ in 0..40 {
            let input = plans::input(&mut rng);
            let space = kernel.space().bind(&kernel.symbols(&spec, &input)).unwrap();
            let Some(point) = plans::point(&space, &mut rng) else { continue };
            let plan = kernel.plan(&spec, &input, &kernel.decode(&point)).unwrap();
            let blueprint = plan.blueprint();
            assert_eq!(left(&space, "threads", &point), i64::from(blueprint.threads()));
            assert_eq!(left(&space, "shared_memory", &point), i64::from(blueprint.shared_bytes()), "{blueprint:?}");
            assert_eq!(left(&space, "registers", &point), i64::from(blueprint.registers_needed()), "{blueprint:?}");
        }
    }
}

#[test]
fn legal_plans_have_no_faults_and_their_arguments_fit() {
    for target in plans::TARGETS {
        for plan in plans::plans(target, 25, 5) {
            let program = plan.program([0; 3]);
            let modules = plan.modules();
            assert_eq!(program.steps.len(), modules.len());
            for (step, module) in program.steps.iter().zip(&modules) {
                let faults = verify(module);
                assert!(faults.is_empty(), "{:?}: {}", plan.blueprint(), faults[0]);
                let Step::Launch { code: Code::Ptx { entry, .. }, grid, block, args, .. } = step else { panic!() };
                assert_eq!(*entry, module.entry.name);
                assert_eq!(*block, [module.entry.threads, 1, 1]);
                assert!(grid[1] <= 65_535 && grid[2] <= 65_535 && grid.iter().all(|g| *g > 0), "{grid:?}");
                let bytes = |arg: &Arg| match arg {
                    Arg::Buffer(..) | Arg::Workspace(_) | Arg::U64(_) => 8,
                    Arg::Scalar(_) => plan.blueprint().arithmetic.bytes(),
                    Arg::U32(_) => 4,
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
    }
}

#[test]
fn every_input_has_a_legal_default() {
    let kernel = std::sync::Arc::new(SimtGemm::new());
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
        }
    }
    for target in plans::TARGETS {
        for input in &inputs {
            let problem = Bound::new(kernel.clone(), plans::spec(target), input.clone()).unwrap();
            let point = problem.default_point().unwrap_or_else(|| panic!("none for {input:?} on {target}"));
            assert!(problem.space().is_legal(&point));
            let mut row = Vec::new();
            problem.config_features(&point, &mut row);
            assert_eq!(row.len(), problem.schema().config.len());
            assert!(row.iter().all(|x| x.is_finite()), "{row:?}");
            assert!(problem.program(&point).is_ok());
        }
    }
}

#[test]
fn refusals_name_the_rule_and_its_numbers() {
    let kernel = SimtGemm::new();
    let plan = plans::plans("sm_80", 1, 1).remove(0);
    let mut config = plan.blueprint().config.clone();
    let input = GemmInput::new(512, 512, 512, DType::F32, Layout::Nt);
    (config.m_s, config.n_s, config.m_l, config.n_l, config.k_l) = (1, 1, 64, 64, 1);
    let illegal = kernel.plan(&plans::spec("sm_80"), &input, &config).unwrap_err();
    assert_eq!(illegal.rule, "threads");
    assert!(illegal.numbers.contains(&("m_l".to_owned(), Value::Int(64))), "{illegal}");
    config.m_s = 7;
    assert_eq!(kernel.plan(&plans::spec("sm_80"), &input, &config).unwrap_err().rule, "value");
}

#[test]
fn batches_are_limited_and_weaken_alignment() {
    let kernel = SimtGemm::new();
    let spec = plans::spec("sm_80");
    let input = GemmInput::new(64, 64, 64, DType::F32, Layout::Nt);
    let point = kernel.default_point(&spec, &input).unwrap();
    let config = kernel.decode(&point);
    assert!(config.vec_a > 1, "{config:?}");
    let plan = |count, stride| {
        let batch = Batch { count, strides: [stride; 3] };
        kernel.plan(&spec, &GemmInput { batch, ..input.clone() }, &config)
    };
    assert!(plan(10, 4096).is_ok());
    assert_eq!(plan(10, 4097).unwrap_err().rule, "aligned_a");
    assert_eq!(plan(70_000, 4096).unwrap_err().rule, "batch");
}
