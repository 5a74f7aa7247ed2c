//! Schemas, buffers, verdicts, objectives, fingerprints.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tilewright_core::buffer::{Buffer, Expected, ExpectedBuffer};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::measurement::Measurement;
use tilewright_core::objective::{Direction, Objective};
use tilewright_core::training::{TrainingError, TrainingSet};

fn schema(input: &[&str], config: &[&str]) -> FeatureSchema {
    let sizes = |names: &[&str]| names.iter().map(|n| Feature::size(n)).collect();
    FeatureSchema { input: sizes(input), config: sizes(config) }
}

#[test]
fn schema_hashes_tell_names_order_kind_and_split_apart() {
    let mut flag = schema(&["m", "n"], &["k_l"]);
    flag.input[0] = Feature::flag("m");
    let all = [
        schema(&["m", "n"], &["k_l"]),
        schema(&["n", "m"], &["k_l"]),
        schema(&["m"], &["n", "k_l"]),
        schema(&["mn"], &["k_l"]),
        schema(&["m", "n", "k_l"], &[]),
        schema(&[], &[]),
        flag,
    ];
    let hashes: BTreeSet<String> = all.iter().map(FeatureSchema::hash).collect();
    assert_eq!(hashes.len(), all.len());
    assert!(hashes.iter().all(|h| h.len() == 32 && h.bytes().all(|b| b.is_ascii_hexdigit())));
    assert_eq!(all[0].expect(&all[0].clone()), Ok(()));
    let refused = all[0].expect(&all[1]).unwrap_err();
    assert_eq!((refused.model, refused.rows), (all[0].hash(), all[1].hash()));
}

/// Profiles on disk carry this hash: a change of it makes every one of them unreadable.
#[test]
fn the_schema_hash_is_stable() {
    assert_eq!(schema(&["m"], &["u"]).hash(), schema(&["m"], &["u"]).hash());
    let json = serde_json::to_string(&schema(&["m"], &["u"])).unwrap();
    assert_eq!(json, r#"{"input":[{"name":"m","kind":"size"}],"config":[{"name":"u","kind":"size"}]}"#);
}

#[test]
fn buffers_are_aligned_and_typed() {
    for dtype in DType::ALL {
        for len in [0, 1, 3, 63, 64, 65, 1000] {
            let mut buffer = Buffer::zeroed(dtype, len);
            assert_eq!(buffer.bytes().as_ptr().addr() % 64, 0, "{dtype} x {len}");
            assert_eq!(buffer.bytes().len(), len * dtype.size());
            assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
            assert!(buffer.bytes_mut().iter().all(|b| *b == 0));
        }
    }
    let mut doubles = Buffer::zeroed(DType::F64, 5);
    doubles.as_mut_slice::<f64>()[4] = 2.5;
    assert_eq!(doubles.get_f64(4), 2.5);
    let copy = doubles.clone();
    doubles.set_f64(4, 3.0);
    assert_eq!((copy.get_f64(4), doubles.get_f64(4)), (2.5, 3.0));
    assert_eq!(doubles.as_slice::<u64>()[0], 0);
}

#[test]
#[should_panic(expected = "another size")]
fn a_view_of_another_size_is_refused() {
    let _ = Buffer::zeroed(DType::F64, 5).as_slice::<f32>();
}

#[test]
#[should_panic(expected = "overflows")]
fn a_buffer_beyond_the_address_space_is_refused() {
    let _ = Buffer::zeroed(DType::F64, usize::MAX / 4);
}

/// One element against its reference and bound.
fn judge(expected: f64, found: f64, bound: f32) -> tilewright_core::buffer::Verdict {
    let mut after = Buffer::zeroed(DType::F64, 1);
    after.set_f64(0, found);
    let expected = ExpectedBuffer { index: 0, values: vec![expected], bounds: vec![bound] };
    Expected { buffers: vec![expected] }.compare(&[after])
}

#[test]
fn verdicts_on_special_values() {
    const INF: f64 = f64::INFINITY;
    for (expected, found, bound, right) in [
        (1.0, 1.0, 0.0, true),
        (1.0, 1.5, 0.5, true),
        (1.0, 1.6, 0.5, false),
        (f64::NAN, f64::NAN, 0.0, true),
        (f64::NAN, 1.0, 1.0, false),
        (1.0, f64::NAN, 1.0, false),
        (INF, INF, 0.0, true),
        (INF, -INF, 1.0, false),
        (INF, 1e308, 1.0, false),
        (1.0, INF, 1.0, false),
        (0.0, -0.0, 0.0, true),
    ] {
        let verdict = judge(expected, found, bound);
        assert_eq!(verdict.is_right(), right, "{found} for {expected} within {bound}: {verdict:?}");
        assert_eq!(verdict.wrong, u64::from(!right));
        assert_eq!(verdict.first.is_some(), !right);
        assert!(!verdict.max_rel_error.is_nan() && !verdict.worst_of_bound.is_nan());
    }
    let off = judge(2.0, 2.5, 1.0);
    assert_eq!((off.max_rel_error, off.worst_of_bound), (0.25, 0.5));
    assert_eq!(judge(1.0, f64::NAN, 1.0).max_rel_error, f64::INFINITY);
}

#[test]
#[should_panic(expected = "bounds of buffer 0")]
fn a_reference_with_too_few_bounds_is_refused() {
    let expected = ExpectedBuffer { index: 0, values: vec![1.0], bounds: Vec::new() };
    Expected { buffers: vec![expected] }.compare(&[Buffer::zeroed(DType::F64, 1)]);
}

#[test]
fn costs_are_positive_and_finite_or_absent() {
    let mut m = Measurement::recorded(0.5);
    m.metrics =
        BTreeMap::from([("gflops".to_owned(), 50.0), ("tiny".to_owned(), 1e-310), ("bad".to_owned(), f64::NAN)]);
    let cost = |metric: &str, direction| Objective { metric: metric.into(), direction }.cost(&m);
    assert_eq!(Objective::default().cost(&m), Some(0.5));
    assert_eq!(cost("gflops", Direction::Maximize), Some(0.02));
    assert_eq!(cost("tiny", Direction::Maximize), None);
    assert_eq!(cost("bad", Direction::Minimize), None);
    assert_eq!(cost("energy_j", Direction::Minimize), None);
    m.time_s = -1.0;
    assert_eq!(Objective::default().cost(&m), None);
}

#[test]
fn fingerprints_follow_facts_and_not_rates() {
    let spec = DeviceSpec {
        id: "cpu".into(),
        name: "a processor".into(),
        kind: DeviceKind::Cpu,
        driver: "avx2".into(),
        facts: BTreeMap::from([("cores".to_owned(), 2)]),
        measured: BTreeMap::new(),
    };
    let mut same = spec.clone();
    same.measured.insert("flops".into(), 1e11);
    same.id = "cpu:0".into();
    assert_eq!(spec.fingerprint(), same.fingerprint());
    let changes: [fn(&mut DeviceSpec); 4] = [
        |s| s.name.push('x'),
        |s| s.driver = "avx512".into(),
        |s| s.kind = DeviceKind::Replay,
        |s| s.facts.extend([("cores".to_owned(), 3)]),
    ];
    for change in changes {
        let mut other = spec.clone();
        change(&mut other);
        assert_ne!(spec.fingerprint(), other.fingerprint(), "{other:?}");
    }
    assert_eq!(spec.symbols().get("cores"), Some(&Value::Int(2)));
}

#[test]
fn training_rows_are_checked() {
    let mut set = TrainingSet::new(schema(&["m"], &["u"]));
    let refused = set.push(&[1.0], 1.0, 0).unwrap_err();
    assert_eq!(refused.to_string(), "row 0 has 1 features, the schema has 2");
    for cost in [0.0, -1.0, f64::INFINITY] {
        let message = format!("cost {cost}; costs are positive and finite");
        assert_eq!(set.push(&[1.0, 2.0], cost, 0), Err(TrainingError { row: 0, message }));
    }
    assert!(set.push(&[1.0, 2.0], f64::NAN, 0).is_err());
    assert!(set.is_empty());
    for i in 0..4u8 {
        set.push(&[f32::from(i), 2.0], 1.0 + f64::from(i), u32::from(i)).unwrap();
    }
    let some = set.subset(&[3, 1]);
    assert_eq!((some.row(0), some.row(1)), (&[3.0, 2.0][..], &[1.0, 2.0][..]));
    assert_eq!((some.costs, some.groups), (vec![4.0, 2.0], vec![3, 1]));
}

proptest! {
    #[test]
    fn values_read_back_from_their_text(i in any::<i64>(), f in any::<f64>(), b in any::<bool>()) {
        prop_assert_eq!(Value::parse(&Value::Int(i).to_string().replace("(-9223372036854775807 - 1)", &i.to_string())), Value::Int(i));
        prop_assert_eq!(Value::parse(&Value::Bool(b).to_string()), Value::Bool(b));
        if f.is_finite() {
            prop_assert_eq!(Value::parse(&Value::Float(f).to_string()), Value::Float(f));
        }
    }

    #[test]
    fn no_word_panics(text in "\\PC{0,20}") {
        let value = Value::parse(&text);
        prop_assert!(value.as_f64().is_none_or(f64::is_finite));
    }
}
