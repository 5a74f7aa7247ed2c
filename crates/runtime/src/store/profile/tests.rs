use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use tilewright_core::feature::Feature;
use tilewright_core::problem::Erased;
use tilewright_testkit::toy::ScaleKernel;

fn device(l3: i64) -> Arc<DeviceSpec> {
    Arc::new(DeviceSpec {
        id: "cpu".into(),
        name: "Test".into(),
        kind: DeviceKind::Cpu,
        driver: "avx2".into(),
        facts: BTreeMap::from([("l3_bytes".into(), l3), ("cores".into(), 2)]),
        measured: BTreeMap::new(),
    })
}

fn schema(name: &str) -> FeatureSchema {
    FeatureSchema { input: vec![Feature::size("n")], config: vec![Feature::size(name)] }
}

fn profile(fixed: &str, created: u64) -> Profile {
    let fixed = Config::parse(fixed).unwrap();
    let header = ProfileHeader::new(KernelId::new("toy"), &device(8), &schema("block"), fixed);
    Profile { header: ProfileHeader { created, ..header }, model: serde_json::json!({"weights": [0.1, 1e-300]}) }
}

#[test]
fn round_trip_and_identity() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.profile");
    let profile = profile("dtype=f32", 5);
    profile.write(&path).unwrap();
    let read = Profile::read(&path).unwrap();
    assert_eq!(read, profile);
    let toy = KernelId::new("toy");
    read.expect(&path, &toy, &device(8), &schema("block")).unwrap();

    let kind = |e: Result<(), StoreError>| {
        let e = e.unwrap_err();
        assert!(e.to_string().contains("x.profile"), "the file is named: {e}");
        e.kind
    };
    let other = kind(read.expect(&path, &KernelId::new("gemm"), &device(8), &schema("block")));
    assert!(matches!(other, StoreErrorKind::OtherKernel { .. }));
    let other = kind(read.expect(&path, &toy, &device(8), &schema("blocks")));
    assert!(matches!(other, StoreErrorKind::SchemaMismatch { .. }));
    let StoreErrorKind::OtherDevice(other) = kind(read.expect(&path, &toy, &device(4), &schema("block"))) else {
        panic!("another device is accepted")
    };
    assert_eq!(other.lacking, ["l3_bytes: had 8, has 4"]);
}

#[test]
fn the_most_specific_profile_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = ProfileStore::new(dir.path().join("profiles"));
    let (kernel, toy) = (Erased::new(ScaleKernel::new().named("toy")), KernelId::new("toy"));
    let find = |input: &str| {
        let found = store.find(&kernel, &device(8), &Config::parse(input).unwrap()).unwrap().best;
        found.map(|(_, p)| p.header.created)
    };
    assert_eq!(find("dtype=f32"), None, "no directory is no profile");
    for (fixed, created) in [("", 9), ("dtype=f32", 1), ("dtype=f32,threads=2", 2), ("dtype=f64", 3)] {
        let p = profile(fixed, created);
        p.write(&store.path(&toy, &device(8), &p.header.fixed)).unwrap();
    }
    assert_eq!(store.list().unwrap().len(), 4);
    assert_eq!(find("n=4,dtype=f32,threads=1"), Some(1));
    assert_eq!(find("n=4,dtype=f32,threads=2"), Some(2));
    assert_eq!(find("n=4,dtype=f64,threads=2"), Some(3));
    assert_eq!(find("n=4"), Some(1), "f32 is usual");
    let elsewhere = store.find(&kernel, &device(4), &Config::parse("n=4").unwrap()).unwrap().best;
    assert!(elsewhere.is_none(), "a profile of another device is not for this one");
    // A damaged neighbour does not hide the others.
    std::fs::write(store.path(&toy, &device(8), &Config::parse("dtype=f64").unwrap()), b"junk").unwrap();
    assert_eq!(find("n=4,dtype=f64"), Some(9));
}

#[test]
fn names_do_not_depend_on_the_order_of_words_and_stay_short() {
    let (toy, device) = (KernelId::new("toy"), device(8));
    let name = |fixed: &str| stem(toy.as_str(), &device, &Config::parse(fixed).unwrap());
    assert_eq!(name("a=1,b=2"), name("b=2,a=1"));
    let long = format!("a={}", "x".repeat(500));
    assert!(name(&long).len() < 200);
    assert_ne!(name(&long), name(&format!("{long}y")));
}

proptest! {
    /// A sound envelope around a header with one part replaced: refused, or read as just what stands there.
    #[test]
    fn a_forged_header_does_not_panic(
        part in 0usize..6,
        value in prop_oneof![Just("null"), Just("-1"), Just("1e400"), Just("[]"), Just("{\"a\":null}"), Just("\"x\"")],
    ) {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(value) else { return Ok(()) };
        let honest = profile("dtype=f32", 5);
        let mut header = serde_json::to_value(&honest.header).unwrap();
        let names = ["kernel", "device", "fixed", "stats", "created", "objective"];
        header[names[part]] = value;
        let bytes = envelope::encode(FORMAT, &header, &honest.model).unwrap();
        if let Ok(read) = Profile::from_bytes(&bytes) {
            prop_assert_eq!(serde_json::to_value(&read.header).unwrap(), header);
        }
    }
}
