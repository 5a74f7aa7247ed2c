//! Convolution: legality, that what rules say is what code has, and that trees have no faults.

mod plans;

use plans::conv;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::fmt::Debug;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Arg, Code, Launch, Program, Step};
use tilewright_core::space::Config;
use tilewright_ops::conv::{Conv, ConvInput};
use tilewright_ptxgen::conv::{DirectConv, SimtConv, WinogradConv};
use tilewright_ptxgen::ir::Module;
use tilewright_ptxgen::verify::verify;

fn input(words: &str) -> ConvInput {
    Conv.parse(&Config::parse(words).unwrap()).unwrap()
}

/// No faults, and every launch has the arguments that its module takes.
fn check(program: &Program, modules: &[Module], what: &dyn Debug) {
    let launches: Vec<&Launch> = program
        .steps
        .iter()
        .filter_map(|step| if let Step::Launch(launch) = step { Some(launch) } else { None })
        .collect();
    assert_eq!(launches.len(), modules.len());
    for (launch, module) in launches.into_iter().zip(modules) {
        let faults = verify(module);
        assert!(faults.is_empty(), "{what:?}: {}", faults[0]);
        let Launch { code: Code::Ptx { entry, .. }, grid, block, args, .. } = launch else { panic!() };
        assert_eq!(*entry, module.entry.name);
        assert_eq!(*block, [module.entry.threads, 1, 1]);
        assert!(grid[1] <= 65_535 && grid[2] <= 65_535 && grid.iter().all(|g| *g > 0), "{grid:?}");
        let bytes = |arg: &Arg| match arg {
            Arg::Buffer(..) | Arg::Workspace(_) | Arg::U64(_) | Arg::F64(_) => 8,
            Arg::U32(_) | Arg::F32(_) => 4,
            other => panic!("{other:?}"),
        };
        let given: Vec<u32> = args.iter().map(bytes).collect();
        let taken: Vec<u32> = module.entry.params.iter().map(|p| p.ty.bytes()).collect();
        assert_eq!(given, taken, "{entry}");
        for (arg, param) in args.iter().zip(&module.entry.params) {
            let (Arg::Buffer(_, at) | Arg::Workspace(at) | Arg::U64(at)) = arg else { continue };
            assert_eq!(at % u64::from(param.multiple_of), 0, "{} at {at}", param.name);
        }
    }
}

#[test]
fn legal_plans_have_no_faults_and_their_arguments_fit() {
    for target in plans::TARGETS {
        for plan in conv::plans(target, 30, 5) {
            check(&plan.program(), &plan.modules(), plan.blueprint());
        }
        for plan in conv::winograds(target, 10, 6) {
            check(&plan.program(), &plan.modules(), plan.product().blueprint());
        }
        for plan in conv::direct(target, 20, 7) {
            check(&plan.program(), &plan.modules(), plan.input());
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

#[test]
fn winograds_take_what_they_have_code_for_and_say_what_else_is_in_the_way() {
    let kernel = Arc::new(WinogradConv::new());
    let refused = |words: &str| kernel.accepts(&input(words)).err().map(|e| e.field);
    let of = "n=2,c=8,h=9,k=4,r=3";
    for direction in ["forward", "data"] {
        assert_eq!(refused(&format!("{of},direction={direction}")), None);
    }
    for (words, field) in [
        (format!("{of},direction=filter"), "direction"),
        (format!("{of},s=2"), "r"),
        (format!("{of},stride=2"), "stride_h"),
        (format!("{of},dilation_w=2"), "dilation_h"),
        (format!("{of},dtype=f16"), "dtype"),
        ("n=2,c=0,h=9,k=4,r=3".to_owned(), "c"),
    ] {
        assert_eq!(refused(&words).as_deref(), Some(field), "{words}");
    }
    let rejects = |words: &str, config: &str| {
        let problem = Bound::new(kernel.clone(), plans::spec("sm_80"), input(words)).unwrap();
        let default = problem.default_point();
        let point = Config::parse(config).unwrap().to_point(problem.space().params(), default.as_deref()).ok()?;
        Some(problem.space().check(&point).err()?.to_string())
    };
    // Few channels, and transformed numbers that do not fit.
    let why = rejects("n=2,c=7,h=9,k=4,r=3", "side=4").unwrap();
    assert!(why.contains("errors"), "{why}");
    let huge = "n=64,c=32,h=1000,k=32,r=3";
    let any = "side=2,m_s=8,n_s=4,m_l=64,n_l=32,k_l=1,u=8,vec_a=1,vec_b=1,stages=1,load=nc,k_s=1,vec_c=4,raster=m,bounds=checked";
    let why = rejects(huge, any).unwrap();
    assert!(why.contains("transformed"), "{why}");
}

#[test]
fn winograds_have_a_legal_default_for_all_that_fits() {
    let kernel = Arc::new(WinogradConv::new());
    let shapes = [
        "n=1,c=1,h=3,k=1,r=3",
        "n=0,c=3,h=5,k=2,r=3",
        "n=16,c=64,h=56,k=128,r=3,pad=1",
        "n=4,c=96,h=14,k=96,r=3,pad=1,groups=96",
        "n=1,c=3,h=3,w=5000,k=7,r=3",
        "n=3000,c=3,h=3,k=5,r=3,pad=2",
    ];
    for (target, shape) in plans::TARGETS.iter().flat_map(|t| shapes.map(|s| (t, s))) {
        for more in ["layout=nchw", "layout=nhwc,dtype=f64,direction=data"] {
            let input = input(&format!("{shape},{more}"));
            let problem = Bound::new(kernel.clone(), plans::spec(target), input.clone()).unwrap();
            let point = problem.default_point().unwrap_or_else(|| panic!("none for {input:?} on {target}"));
            let mut row = Vec::new();
            problem.config_features(&point, &mut row);
            assert_eq!(row.len(), problem.schema().config.len());
            assert!(row.iter().all(|x| x.is_finite()), "{row:?}");
        }
    }
}

#[test]
fn few_channels_are_taken_and_many_are_refused() {
    let kernel = Arc::new(DirectConv::new());
    let refused = |words: &str| kernel.accepts(&input(words)).err();
    for words in [
        "n=1,c=1,h=1,k=1,r=1",
        "n=0,c=3,h=5,k=2,r=3",
        "n=1,c=0,h=5,k=2,r=3",
        "n=1,c=3,h=5,k=0,r=3",
        "n=16,c=1,h=161,w=700,k=32,r=5,s=20,stride=2",
        "n=4,c=960,h=14,k=960,r=3,pad=1,groups=960",
        "n=1,c=3,h=1,w=5000,k=7,r=1,s=9,stride_w=3",
        "n=1,c=1,h=1000,w=300,k=1,r=700,s=7,stride=100",
        "n=3000,c=3,h=2,k=5,r=2,dilation=1",
    ] {
        for (target, direction) in plans::TARGETS.iter().flat_map(|t| ["forward", "data"].map(|d| (t, d))) {
            for more in ["layout=nchw", "layout=nhwc,dtype=f64"] {
                let input = input(&format!("{words},direction={direction},{more}"));
                if direction == "data" && kernel.accepts(&input).is_err() {
                    continue;
                }
                let problem = Bound::new(kernel.clone(), plans::spec(target), input.clone()).unwrap();
                let point = problem.default_point().unwrap_or_else(|| panic!("none for {input:?} on {target}"));
                let mut row = Vec::new();
                problem.config_features(&point, &mut row);
                assert_eq!(row.len(), problem.schema().config.len());
                assert!(row.iter().all(|x| x.is_finite()), "{row:?}");
            }
        }
    }
    for (words, field, says) in [
        ("n=1,c=18,h=9,k=4,r=3,groups=2", "c", "at most 8"),
        ("n=1,c=4,h=9,k=9,r=3,direction=data", "k", "at most 8"),
        ("n=1,c=4,h=9,k=4,r=3,direction=filter", "direction", "forward and data"),
        ("n=1,c=4,h=9,w=40,k=4,r=3,s=33", "s", "at most 32"),
        ("n=1,c=4,h=9,k=4,r=3,dtype=bf16", "dtype", "f32"),
    ] {
        let error = refused(words).unwrap();
        assert_eq!(error.field, field, "{words}");
        assert!(error.message.contains(says), "{words}: {}", error.message);
    }
}
