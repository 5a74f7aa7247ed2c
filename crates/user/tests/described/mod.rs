//! A small kernel in a folder of its own.

use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tilewright_compile::{Compilers, Compiling, NativeHost};
use tilewright_core::device::Device;
use tilewright_testkit::toy;
use tilewright_user::{OnDevice, UserError, UserKernel};

/// y = factor x, in steps.
pub(crate) const SOURCE: &str = r"
void scale(float *y, const float *x, int n, double factor) {
    for (int i = 0; i < n; i += step)
        for (int j = i; j < i + step && j < n; j++) y[j] = (float)(factor * x[j]) WRONG;
}
void plain(float *y, const float *x, int n, double factor) {
    for (int i = 0; i < n; i++) y[i] = (float)(factor * x[i]);
}
";

/// Its description.
pub(crate) const DESCRIPTION: &str = r#"{
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "step", "Type": "int", "Values": "[2**i for i in range(6)]", "Default": 4},
            {"Name": "WRONG", "Type": "string", "Values": "['', '+ 0']", "Default": ""}
        ],
        "Conditions": [{"Expression": "step <= n", "Parameters": ["step"]}]
    },
    "KernelSpecification": {
        "Language": "C", "KernelName": "scale", "KernelFile": "scale.c",
        "Arguments": [
            {"Name": "y", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "Size": "n", "Output": true},
            {"Name": "x", "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": "n", "FillType": "Random", "FillValue": 1.0},
            {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": "n"},
            {"Name": "factor", "Type": "double", "MemoryType": "Scalar", "FillValue": 1.5}
        ],
        "Reference": {"KernelName": "plain"}
    },
    "Inputs": [{"Name": "n", "Values": "1..5000"}],
    "Work": {"Flops": "n"}
}"#;

/// A folder with the kernel and a description.
pub(crate) fn folder(description: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scale.c"), SOURCE).unwrap();
    std::fs::write(folder.path().join("scale.json"), description).unwrap();
    folder
}

/// A device of the host that takes sources.
pub(crate) fn device(built: &Path) -> Box<dyn Device> {
    let natives = || Ok(Box::new(NativeHost::new(toy::host_device())) as Box<dyn Device>);
    let compilers = Arc::new(Compilers::new(built));
    Box::new(Compiling::new(toy::host_device(), compilers).with_natives(Box::new(natives)))
}

/// The kernel of a folder.
pub(crate) fn open(folder: &TempDir) -> Result<UserKernel, UserError> {
    let built = folder.path().join("built");
    let referee = OnDevice::new(move || Ok(device(&built)));
    UserKernel::open(&folder.path().join("scale.json"), Box::new(referee))
}
