use super::*;
use std::sync::Arc;
use tilewright_core::buffer::{Filling, Workload, views};
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, HostArgs, HostCode, Launch, Step};
use tilewright_core::space::Config;
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_testkit::toy;

#[test]
fn plans_are_found_by_their_input_and_run_on_the_callers_buffers() {
    let mut table: PlanTable<toy::ScaleInput, HostPlan> = PlanTable::default();
    let input = toy::ScaleInput { n: 1000, dtype: DType::F32 };
    let problem = toy::problem(1000);
    let work = problem.workload(Filling::Exact, 3);
    let expected = problem.reference(&work.buffers, &work.scalars).unwrap();
    let mut buffers = work.buffers.clone();
    let point = problem.default_point().unwrap();
    table.insert(input.clone(), HostPlan::new(&problem.program(&problem.space().check(&point).unwrap())).unwrap());
    for _ in 0..3 {
        table.get_mut(&input).unwrap().call(&mut views(&mut buffers), &work.scalars).unwrap();
    }
    assert!(expected.compare(&buffers).is_right());
    assert!(!table.contains_key(&toy::ScaleInput { n: 999, dtype: DType::F32 }));
    assert!(!table.contains_key(&toy::ScaleInput { n: 1000, dtype: DType::F64 }));
}

#[test]
fn programs_that_are_not_for_the_host_are_refused() {
    let code = Code::Ptx { text: String::new(), entry: "e".into() };
    let error = HostPlan::new(&Program::launch(Launch::new(code, [1; 3], [1; 3], Vec::new()))).err().unwrap();
    assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
    for (offset, bytes) in [(0, 9), (8, 1), (u64::MAX, 2)] {
        let fill = Step::Fill { offset, bytes, value: 1 };
        let error = HostPlan::new(&Program::new(vec![fill], 8)).err().unwrap();
        assert!(matches!(error, DeviceError::Argument { .. }), "{error}");
    }
}

#[test]
fn the_workspace_is_filled_before_the_call() {
    struct Sum;
    impl HostCode for Sum {
        fn run(&self, args: &mut HostArgs<'_, '_>) -> Result<(), DeviceError> {
            let sum = args.workspace.bytes().iter().map(|b| f64::from(*b)).sum();
            args.buffers[0].set_f64(0, sum);
            args.workspace.bytes_mut().fill(9);
            Ok(())
        }
    }
    let fill = |offset, bytes, value| Step::Fill { offset, bytes, value };
    let call = Program::host(Arc::new(Sum), 0).steps.remove(0);
    let program = Program::new(vec![fill(0, 4, 1), fill(4, 2, 10), call], 6);
    let mut plan = HostPlan::new(&program).unwrap();
    let mut buffers = vec![Buffer::zeroed(DType::F64, 1)];
    for _ in 0..2 {
        plan.call(&mut views(&mut buffers), &[]).unwrap();
        assert_eq!(buffers[0].get_f64(0), 24.0);
    }
}

/// A plan of the processor's GEMM for an input.
fn gemm(words: &str) -> (Workload, HostPlan) {
    let kernel = Arc::new(CpuGemm::new());
    let input = kernel.computation().parse(&Config::parse(words).unwrap()).unwrap();
    let problem = Bound::new(kernel, CpuDevice::new(1).unwrap().spec().clone(), input).unwrap();
    let program = problem.program(&problem.space().check(&problem.default_point().unwrap()).unwrap());
    (problem.workload(Filling::Exact, 1), HostPlan::new(&program).unwrap())
}

#[test]
fn scalars_that_a_plan_was_not_made_for_are_refused_by_name() {
    let cases: [(&str, &[f64], &str, &str); 9] = [
        ("alpha=1,beta=0", &[2.0, 0.0], "alpha", "2 is given, and the plan was made for exactly 1"),
        ("alpha=1,beta=0", &[1.0, 1.0], "beta", "1 is given, and the plan was made for exactly 0"),
        ("alpha=0,beta=1", &[0.5, 1.0], "alpha", "0.5 is given, and the plan was made for exactly 0"),
        ("alpha=1,beta=0", &[f64::NAN, 0.0], "alpha", "NaN is given"),
        // A general beta multiplies what a zero must not read.
        ("alpha=other,beta=other", &[2.0, 0.0], "beta", "0 is given, and the plan was made for any value but 0"),
        ("alpha=1,beta=0", &[], "alpha, beta", "missing: 0 scalars are given, 2 are needed: alpha, beta"),
        ("alpha=1,beta=0", &[1.0], "beta", "missing: 1 scalars are given"),
        ("alpha=1,beta=0", &[3.0], "alpha", "3 is given"),
        ("alpha=1,beta=0", &[1.0, 0.0, 0.0], "scalars", "3 are given, 2 are taken: alpha, beta"),
    ];
    for (words, scalars, field, part) in cases {
        let (work, mut plan) = gemm(&format!("m=5,n=4,k=3,{words}"));
        let mut buffers = work.buffers.clone();
        let error = plan.call(&mut views(&mut buffers), scalars);
        let Err(DeviceError::Argument { name, message }) = &error else {
            panic!("{words} with {scalars:?}: {error:?}")
        };
        assert_eq!(name, field, "{message}");
        assert!(message.contains(part), "{words}: {message}");
        assert!(
            buffers.iter().zip(&work.buffers).all(|(a, b)| a.bytes() == b.bytes()),
            "{words}: it ran in spite of it"
        );
        plan.call(&mut views(&mut buffers), &work.scalars).unwrap();
    }
    let (mut work, mut plan) = gemm("m=5,n=4,k=3,alpha=other,beta=other");
    plan.call(&mut views(&mut work.buffers), &[1.0, -2.0]).unwrap();
}
