//! A kernel that a file describes, planned and called on one's own slices.

use tilewright::{Error, Request, Tuner};

#[test]
fn a_described_kernel_is_called_on_slices() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("add.c"), "void add(float *z, const float *x, const float *y, int n) {\n  for (int i = 0; i < n; i += unroll) for (int j = i; j < i + unroll && j < n; j++) z[j] = x[j] + y[j];\n}").unwrap();
    let vector = |name: &str, access: &str| {
        format!(
            r#"{{"Name": "{name}", "Type": "float", "MemoryType": "Vector", "AccessType": "{access}", "Size": "n", "FillType": "Random"}}"#
        )
    };
    let description = format!(
        r#"{{"ConfigurationSpace": {{"TuningParameters": [{{"Name": "unroll", "Values": [1, 4]}}], "Conditions": []}},
        "KernelSpecification": {{"Language": "C", "KernelName": "add", "KernelFile": "add.c", "Arguments": [{}, {}, {},
        {{"Name": "n", "Type": "int", "MemoryType": "Scalar", "FillValue": "n"}}]}}, "Inputs": [{{"Name": "n", "Values": "1..1000"}}]}}"#,
        vector("z", "WriteOnly"),
        vector("x", "ReadOnly"),
        vector("y", "ReadOnly"),
    );
    std::fs::write(at("add.json"), description).unwrap();
    let mut tuner = Tuner::on("cpu").unwrap().home(at("home")).budget(std::time::Duration::from_millis(300));
    let kernel = tuner.described(at("add.json")).unwrap();
    let mut add = tuner.plan(&Request::own(kernel.erased()).with("n", 100)).unwrap();
    assert!(add.planned().verified, "{:?}", add.planned());
    let (x, y, mut z) = (vec![1.5f32; 100], vec![2.0f32; 100], vec![0.0f32; 100]);
    add.call(&[&x, &y], &mut [&mut z], &[]).unwrap();
    assert!(z.iter().all(|z| *z == 3.5));
    let missing = tuner.described(at("none.json"));
    assert!(matches!(missing, Err(Error::Described(error)) if error.file == at("none.json")));
}
