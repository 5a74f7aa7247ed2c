//! What a GPU's configuration becomes: blocks, threads, macros, arguments and variables of the module.

use std::sync::Arc;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::problem::AnyKernel;
use tilewright_core::program::{Arg, Code, DeviceError, Language, Launch, Step};
use tilewright_core::space::{Config, Point};
use tilewright_user::{OnDevice, UserKernel};

const DESCRIPTION: &str = r#"{
    "General": {"BenchmarkName": "blur", "OutputFormat": "JSON"},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[32, 64, 2048]"},
            {"Name": "tile", "Type": "int", "Values": "[1, 3]"},
            {"Name": "radius", "Type": "int", "Values": "[2, 7]"},
            {"Name": "fast", "Type": "int", "Values": "[True, False]"}
        ],
        "Conditions": []
    },
    "KernelSpecification": {
        "Language": "CUDA", "KernelName": "blur<float, tile>", "KernelFile": "blur.cu", "CompilerOptions": ["-std=c++11"],
        "GlobalSizeType": "CUDA", "GlobalSize": {"X": "9999"}, "LocalSize": {"X": "block_size_x", "Y": "2"},
        "GridDivX": ["block_size_x", "tile"], "ProblemSize": ["n", 6], "SharedMemory": "4 * block_size_x", "Stream": null,
        "Arguments": [
            {"Name": "out", "Type": "float2", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "ProblemSize[0] * ProblemSize[1]", "FillType": "Constant", "FillValue": 0.0, "Output": 1},
            {"Name": "in", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": "ProblemSize[0] + max(radius) - 1", "FillType": "Random", "FillValue": 1.0},
            {"Name": "weights", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "MemType": "Constant", "Size": "max(radius)", "FillType": "Random", "FillValue": 1.0},
            {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "n"}
        ]
    },
    "Inputs": [{"Name": "n", "Values": "1..10000"}]
}"#;

fn kernel() -> Arc<dyn AnyKernel> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("blur.cu"),
        "template <class T, int t> __global__ void blur(T *out) { grid_size_x; }",
    )
    .unwrap();
    let path = folder.path().join("blur.json");
    std::fs::write(&path, DESCRIPTION).unwrap();
    let none = OnDevice::new(|| Err(DeviceError::Run("no reference is asked for".into())));
    UserKernel::open(&path, Box::new(none)).unwrap().erased()
}

fn gpu() -> Arc<DeviceSpec> {
    let facts = [
        ("threads_per_block", 1024),
        ("grid_x", 1 << 30),
        ("grid_y", 65535),
        ("grid_z", 65535),
        ("shared_optin", 99 << 10),
        ("sm", 80),
    ];
    Arc::new(DeviceSpec {
        id: "paper".into(),
        name: "paper".into(),
        kind: DeviceKind::Emulator,
        driver: String::new(),
        facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
        measured: Default::default(),
    })
}

fn launch(point: [u16; 4]) -> Launch {
    let problem = kernel().problem(&gpu(), &Config::parse("n=1000").unwrap()).unwrap();
    let program = problem.program(&problem.space().check(&Point(point.to_vec())).unwrap());
    let Step::Launch(launch) = program.steps[0].clone() else { panic!() };
    assert_eq!(program.steps.len(), 1);
    launch
}

#[test]
fn a_configuration_becomes_a_launch() {
    let one = launch([1, 1, 0, 0]);
    // By Kernel Tuner's rule: the problem over the divisors, rounded up; what `GlobalSize` says is not asked.
    assert_eq!((one.grid, one.block, one.shared_bytes), ([6, 6, 1], [64, 2, 1], 256));
    assert_eq!(one.args, [Arg::Buffer(0, 0), Arg::Buffer(1, 0), Arg::Buffer(2, 0), Arg::I32(1000)]);
    assert_eq!(one.symbols, [("weights".to_owned(), 2)]);
    let Code::Source(source) = one.code else { panic!() };
    assert_eq!((source.language, source.entry.as_str()), (Language::Cuda, "blur<float, tile>"));
    let macros: Vec<String> = source.macros.iter().map(|(name, value)| format!("{name}={value}")).collect();
    // The source names the size of the grid, so it is defined too.
    let sizes = ["grid_size_x=6", "block_size_y=2"];
    assert_eq!(macros[..5], ["block_size_x=64", "tile=3", "radius=2", "fast=1", "kernel_tuner=1"]);
    assert!(macros.contains(&sizes[0].to_owned()) && !macros.contains(&sizes[1].to_owned()), "{macros:?}");
}

#[test]
fn limits_of_the_device_are_rules() {
    let problem = kernel().problem(&gpu(), &Config::parse("n=1000").unwrap()).unwrap();
    let broken = problem.space().check(&[2, 0, 0, 0]).err().unwrap().to_string();
    assert!(broken.contains("threads"), "{broken}");
    assert_eq!(problem.space().count_legal(), 16);
}

#[test]
fn buffers_have_what_their_sizes_say() {
    let problem = kernel().problem(&gpu(), &Config::parse("n=1000").unwrap()).unwrap();
    let work = problem.workload(tilewright_core::buffer::Filling::Real, 0);
    let lens: Vec<usize> = work.specs.iter().map(|spec| spec.len).collect();
    assert_eq!(lens, [2 * 6000, 1006, 7]);
    assert!(work.buffers[0].get_f64(11_999).is_nan(), "what is only written is poisoned");
    assert!((0..1006).all(|i| work.buffers[1].get_f64(i).abs() < 1.0));
}
