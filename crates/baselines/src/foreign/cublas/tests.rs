use super::light::Candidate;
use super::numbers::Numbers;
use super::*;
use tilewright_core::space::Config;

#[test]
fn without_the_libraries_there_is_a_reason() {
    match open() {
        Ok((identity, found)) => {
            assert!(identity.path.is_some_and(|path| path.is_file()));
            assert_eq!(found.iter().map(|l| l.name().to_owned()).collect::<Vec<_>>(), ["cublas", "cublaslt"]);
        }
        Err(reason) => assert!(reason.contains("libcublas"), "{reason}"),
    }
}

#[test]
fn releases_are_named_with_what_is_needed() {
    let path = Path::new("/x/libcublas.so.13");
    let why = |version, driver| expect_release(path, version, driver).err().unwrap_or_default();
    assert_eq!(why([12, 9, 1], Some(12_000)), "");
    assert_eq!((why([11, 11, 3], Some(13_000)), why([13, 0, 2], None)), (String::new(), String::new()));
    let (old, new) = (why([10, 2, 3], Some(12_090)), why([13, 0, 2], Some(12_090)));
    for part in ["/x/libcublas.so.13", "cuBLAS 10.2.3", "releases 11 to 13 are needed"] {
        assert!(old.contains(part), "{old}");
    }
    for part in ["cuBLAS 13.0.2", "a driver of CUDA 13", "CUDA 12.9"] {
        assert!(new.contains(part), "{new}");
    }
}

#[test]
fn calls_are_checked_before_anything_is_called() {
    let call =
        |fields: &str| LibraryCall { library: "cublas".into(), option: 0, input: Config::parse(fields).unwrap() };
    let input = parsed(&call("m=3,n=4,k=5,dtype=f32")).unwrap();
    let refused = |fields: &str| match parsed(&call(fields)) {
        Err(DeviceError::Argument { name, .. }) => name,
        other => panic!("{fields}: {other:?}"),
    };
    assert_eq!(refused("m=3,n=4"), "k");
    assert_eq!(refused("m=3,n=4,k=5,batch=2"), "batch");
    let stage = |bytes| Stage {
        stream: std::ptr::null_mut(),
        buffers: &[0, 0, 0],
        bytes,
        scalars: &[1.0, 0.0],
        scratch: 0,
        scratch_bytes: 0,
    };
    assert_eq!(fits(&input, &stage(&[60, 80, 48])), Ok(()));
    assert!(fits(&input, &stage(&[60, 80, 47])).is_err());
    assert!(fits(&input, &stage(&[60, 80])).is_err());
    assert_eq!(size_of::<Candidate>(), 8 * 8 + 8 + 4 + 4 + 4 * 4);
}

#[test]
fn numbers_are_called_by_the_library_s_enumerations() {
    let called = |fields: &str| {
        let input = Gemm.parse(&Config::parse(&format!("m=4,n=4,k=4,{fields}")).unwrap()).unwrap();
        let numbers = Numbers::of(&input);
        ([numbers.operand, numbers.output, numbers.compute, numbers.scale()], operations(&input))
    };
    // CUDA_R_32F, CUBLAS_COMPUTE_32F, and so on.
    assert_eq!(called("dtype=f32,layout=tn"), ([0, 0, 68, 0], [1, 0]));
    assert_eq!(called("dtype=f32,accuracy=tf32").0, [0, 0, 77, 0]);
    assert_eq!(called("dtype=f32,accuracy=3xtf32").0, [0, 0, 68, 0]);
    assert_eq!(called("dtype=tf32").0, [0, 0, 77, 0]);
    assert_eq!(called("dtype=f64").0, [1, 1, 70, 1]);
    assert_eq!(called("dtype=f16").0, [2, 2, 68, 0]);
    assert_eq!(called("dtype=f16,acc=f16").0, [2, 2, 64, 2]);
    assert_eq!(called("dtype=bf16,out=f32").0, [14, 0, 68, 0]);
    assert_eq!(called("dtype=i8").0, [3, 10, 72, 10]);
    assert_eq!(called("dtype=c32,layout=cn"), ([4, 4, 68, 4], [2, 0]));
    assert_eq!(called("dtype=c64,layout=tc"), ([5, 5, 70, 5], [1, 2]));
}
