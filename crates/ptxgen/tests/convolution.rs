//! Convolution: legality, that what rules say is what code has, and that trees have no faults.

mod plans;

use plans::conv;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Arg, Code, Launch, Step};
use tilewright_core::space::Config;
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ptxgen::conv::SimtConv;
use tilewright_ptxgen::verify::verify;

fn input(words: &str) -> ConvInput {
    Conv.parse(&Config::parse(words).unwrap()).unwrap()
}

#[test]
fn legal_plans_have_no_faults_and_their_arguments_fit() {
    for target in plans::TARGETS {
        for plan in conv::plans(target, 30, 5) {
            let program = plan.program();
            let modules = plan.modules();
            let launches: Vec<&Launch> = program
                .steps
                .iter()
                .filter_map(|step| if let Step::Launch(launch) = step { Some(launch) } else { None })
                .collect();
            assert_eq!(launches.len(), modules.len());
            for (launch, module) in launches.into_iter().zip(&modules) {
                let faults = verify(module);
                assert!(faults.is_empty(), "{:?}: {}", plan.blueprint(), faults[0]);
                let Launch { code: Code::Ptx { entry, .. }, grid, block, args, .. } = launch else { panic!() };
                assert_eq!(*entry, module.entry.name);
                assert_eq!(*block, [module.entry.threads, 1, 1]);
                assert!(grid[1] <= 65_535 && grid[2] <= 65_535 && grid.iter().all(|g| *g > 0), "{grid:?}");
                let bytes = |arg: &Arg| match arg {
                    Arg::Buffer(..) | Arg::Workspace(_) | Arg::U64(_) => 8,
                    Arg::U32(_) => 4,
                    other => panic!("{other:?}"),
                };
                let given: Vec<u32> = args.iter().map(bytes).collect();
                let taken: Vec<u32> = module.entry.params.iter().map(|p| p.ty.bytes()).collect();
                assert_eq!(given, taken, "{entry}");
                for (arg, param) in args.iter().zip(&module.entry.params) {
                    if let Arg::Buffer(_, offset) | Arg::Workspace(offset) = arg {
                        assert_eq!(offset % u64::from(param.multiple_of), 0, "{} at {offset}", param.name);
                    }
                }
            }
        }
    }
}

#[test]
fn every_input_has_a_legal_default() {
    let kernel = Arc::new(SimtConv::new());
    let shapes = [
        "n=1,c=1,h=1,k=1,r=1",
        "n=0,c=3,h=5,k=2,r=3",
        "n=1,c=0,h=5,k=2,r=3",
        "n=1,c=3,h=5,k=0,r=3",
        "n=64,c=64,h=56,k=128,r=3,pad=1",
        "n=16,c=1,h=161,w=700,k=32,r=5,s=20,stride=2",
        "n=16,c=512,h=7,k=2048,r=1",
        "n=4,c=960,h=14,k=960,r=3,pad=1,groups=960",
        "n=1,c=3,h=1,w=5000,k=7,r=1,s=9,stride_w=3",
        "n=1,c=1,h=1000,k=1,r=7,stride=100",
        "n=3000,c=3,h=2,k=5,r=2,dilation=1",
    ];
    for target in plans::TARGETS {
        for (shape, direction) in shapes.iter().flat_map(|s| ["forward", "data", "filter"].map(|d| (s, d))) {
            for more in ["layout=nchw", "layout=nhwc,dtype=f64,align=8", "layout=nhwc,dtype=f16"] {
                let input = input(&format!("{shape},direction={direction},{more}"));
                let problem = Bound::new(kernel.clone(), plans::spec(target), input.clone()).unwrap();
                let point = problem.default_point().unwrap_or_else(|| panic!("none for {input:?} on {target}"));
                let legal = problem.space().check(&point).unwrap();
                let mut row = Vec::new();
                problem.config_features(&point, &mut row);
                assert_eq!(row.len(), problem.schema().config.len());
                assert!(row.iter().all(|x| x.is_finite()), "{row:?}");
                let empty = Conv.buffers(&input)[input.written()].len == 0;
                assert_eq!(problem.program(&legal).steps.is_empty(), empty, "{input:?}");
            }
        }
    }
}

#[test]
fn vectors_are_legal_where_elements_are_neighbours() {
    let widest = |words: &str, param: &str, scan: &str| {
        let (kernel, spec) = (SimtConv::new(), plans::spec("sm_80"));
        let space = kernel.space().bind(&kernel.symbols(&spec, &input(words))).unwrap();
        let wanted = Config::parse(&format!("scan={scan}")).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let points = (0..300).filter_map(|_| plans::point(&space, &mut rng));
        let points = points.map(|point| space.config(&point)).filter(|config| config.get("scan") == wanted.get("scan"));
        points.filter_map(|config| config.get(param)?.as_int()).max()
    };
    let of = "n=2,c=16,h=16,k=16,r=3,pad=1";
    assert_eq!(widest(of, "vec_g", "places"), Some(1));
    assert_eq!(widest(of, "vec_g", "steps"), Some(1));
    assert_eq!(widest(of, "vec_f", "places"), Some(4));
    assert_eq!(widest(&format!("{of},layout=nhwc"), "vec_g", "steps"), Some(4));
    assert_eq!(widest(&format!("{of},layout=nhwc,align=8"), "vec_g", "steps"), Some(2));
    assert_eq!(widest(&format!("{of},layout=nhwc,direction=data"), "vec_f", "places"), Some(4));
    assert_eq!(widest(&format!("{of},layout=nhwc,direction=filter"), "vec_g", "places"), Some(4));
    assert_eq!(widest("n=2,c=16,h=16,k=16,r=1", "vec_g", "places"), Some(4));
    assert_eq!(widest("n=2,c=16,h=15,k=16,r=1", "vec_g", "places"), Some(1));
    assert_eq!(widest(&format!("{of},layout=nhwc,dtype=f16"), "vec_g", "steps"), Some(8));
    assert_eq!(widest(&format!("{of},layout=nhwc,dtype=f16,align=2"), "vec_g", "steps"), Some(1));
    assert_eq!(widest("n=2,c=20,h=16,k=16,r=3,layout=nhwc,dtype=bf16", "vec_g", "steps"), Some(4));
    assert_eq!(widest(&format!("{of},layout=nhwc,dtype=f64"), "vec_g", "steps"), Some(2));
}

#[test]
fn element_types_without_code_are_refused_by_field() {
    let refused = |words: &str| SimtConv::new().accepts(&input(&format!("n=1,c=1,h=4,k=1,r=3,{words}"))).err();
    for words in ["dtype=f32", "dtype=f64", "dtype=f16", "dtype=f16,out=f32", "dtype=bf16", "dtype=bf16,out=f32"] {
        assert!(refused(words).is_none(), "{words}");
    }
    for (words, field) in [
        ("dtype=tf32", "dtype"),
        ("dtype=f32,acc=f64", "acc"),
        ("dtype=f16,acc=f16", "acc"),
        ("dtype=f32,out=f64", "out"),
        ("dtype=f32,out=f16", "out"),
        ("dtype=f16,out=bf16", "out"),
    ] {
        assert_eq!(refused(words).unwrap().field, field, "{words}");
    }
}
