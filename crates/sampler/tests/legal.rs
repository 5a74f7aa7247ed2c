//! The set of legal points against enumeration, on random spaces and by hand.

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::expr::{EvalError, Expr, Value};
use tilewright_core::space::{Param, Point, SpaceError};
use tilewright_sampler::{Conflict, Description, LegalError, LegalSet, Nearness};

/// Every point of the parameters, in lexicographic order.
fn all_points(params: &[Param]) -> Vec<Vec<u16>> {
    params.iter().fold(vec![Vec::new()], |points, p| {
        let extend = |point: &Vec<u16>| {
            let point = point.clone();
            (0..p.values.len() as u16).map(move |i| [point.as_slice(), &[i]].concat())
        };
        points.iter().flat_map(extend).collect()
    })
}

/// Legal points by evaluating every constraint at every point with core's evaluator.
fn brute_force(description: &Description) -> Vec<Vec<u16>> {
    let params = description.params();
    let holds = |point: &Vec<u16>| {
        description.constraints().iter().all(|c| {
            let lookup = |name: &str| {
                let at = params.iter().position(|p| p.name == name)?;
                Some(params[at].values[usize::from(point[at])].clone())
            };
            c.expr().is_none_or(|e| e.eval_with(&lookup).is_ok_and(|v| v.as_val().truthy()))
        })
    };
    all_points(params).into_iter().filter(holds).collect()
}

/// Everything that a set can be asked agrees with a list of its points.
fn agrees(description: &Description) -> Result<(), TestCaseError> {
    let set = LegalSet::new(description).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let legal = brute_force(description);
    prop_assert_eq!(set.count(), legal.len() as u64);
    let all = all_points(description.params());
    prop_assert_eq!(set.cartesian(), all.len() as u128);
    for point in &all {
        prop_assert_eq!(set.contains(point), legal.contains(point), "{:?}", point);
    }
    let walked: Vec<Point> = set.walk().collect();
    for (number, point) in walked.iter().enumerate() {
        prop_assert_eq!(set.index_of(point), Some(number as u64));
        prop_assert_eq!(&set.point(number as u64).unwrap(), point);
    }
    prop_assert_eq!(set.point(set.count()), None);
    let order = set.order();
    let key = |p: &[u16]| order.iter().map(|&i| p[i]).collect::<Vec<_>>();
    prop_assert!(walked.windows(2).all(|w| key(&w[0]) < key(&w[1])), "not in order");
    let list = set.list();
    prop_assert!(list.points().iter().eq(walked.iter().map(|p| &p[..])));
    for parts in [1, 3, 50] {
        let parted: Vec<Point> = set.ranges(parts).into_iter().flat_map(|r| set.walk_range(r)).collect();
        prop_assert_eq!(&parted, &walked);
    }
    for (param, found) in set.marginals().iter().enumerate() {
        let expected = |v: u16| legal.iter().filter(|p| p[param] == v).count() as u64;
        for v in 0..description.params()[param].values.len() as u16 {
            let found = found.iter().find(|(f, _)| *f == v).map_or(0, |(_, n)| *n);
            prop_assert_eq!(found, expected(v));
        }
    }
    projections_agree(&set, &legal)?;
    for point in all.iter().step_by(1 + all.len() / 7) {
        neighbours_agree(&set, &legal, point)?;
    }
    Ok(())
}

fn projections_agree(set: &LegalSet, legal: &[Vec<u16>]) -> Result<(), TestCaseError> {
    let n = set.params().len();
    for chosen in [vec![0], vec![n - 1, 0], (0..n).step_by(2).collect(), (0..n).rev().collect()] {
        let mut expected: Vec<Vec<u16>> = legal.iter().map(|p| chosen.iter().map(|&i| p[i]).collect()).collect();
        // A parameter named twice counts once.
        let once = n > 1 || chosen.len() == 1;
        if !once {
            continue;
        }
        expected.sort();
        expected.dedup();
        let projected = set.project(&chosen).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut found: Vec<Vec<u16>> = projected.walk().map(|p| p.0).collect();
        found.sort();
        prop_assert_eq!(found, expected, "onto {:?}", chosen);
    }
    Ok(())
}

fn neighbours_agree(set: &LegalSet, legal: &[Vec<u16>], point: &[u16]) -> Result<(), TestCaseError> {
    let differing = |p: &[u16]| p.iter().zip(point).filter(|(a, b)| a != b).count();
    let apart = |p: &[u16]| p.iter().zip(point).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let occurs = |param: usize, v: u16| legal.iter().any(|p| p[param] == v);
    let between = |param: usize, v: u16, occurs: &dyn Fn(u16) -> bool| {
        let (low, high) = (v.min(point[param]), v.max(point[param]));
        (low + 1..high).any(occurs)
    };
    let expected = |wanted: &dyn Fn(&[u16]) -> bool| {
        let mut out: Vec<Vec<u16>> = legal.iter().filter(|p| **p != point && wanted(p)).cloned().collect();
        out.sort();
        out
    };
    let found = |nearness| {
        let points = set.neighbours(point, nearness);
        let numbers: Vec<_> = points.iter().map(|p| set.index_of(p)).collect();
        assert!(numbers.is_sorted() && numbers.iter().all(Option::is_some));
        let mut points: Vec<Vec<u16>> = points.into_iter().map(|p| p.0).collect();
        points.sort();
        points
    };
    prop_assert_eq!(found(Nearness::Hamming), expected(&|p| differing(p) == 1));
    prop_assert_eq!(found(Nearness::StrictlyAdjacent), expected(&|p| apart(p) <= 1));
    let adjacent = |p: &[u16]| (0..p.len()).all(|i| !between(i, p[i], &|v| occurs(i, v)));
    prop_assert_eq!(found(Nearness::Adjacent), expected(&adjacent));
    let hamming_adjacent = |p: &[u16]| {
        let at = p.iter().zip(point).position(|(a, b)| a != b).unwrap_or(0);
        let with = |v: u16| {
            let mut q = point.to_vec();
            q[at] = v;
            legal.contains(&q)
        };
        differing(p) == 1 && !between(at, p[at], &with)
    };
    prop_assert_eq!(found(Nearness::HammingAdjacent), expected(&hamming_adjacent));
    Ok(())
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let ints = proptest::collection::btree_set(-4i64..=12, 1..5).prop_map(|s| s.into_iter().map(Value::Int).collect());
    let powers = Just([1i64, 2, 4, 8, 16].map(Value::Int).to_vec());
    let floats = Just([0.5, 1.0, 2.5].map(Value::Float).to_vec());
    let mixed = Just(vec![Value::Bool(true), Value::Int(3), Value::Float(0.25)]);
    let words = Just(["nn", "nt", "tt"].map(Value::from).to_vec());
    let truths = Just([false, true].map(Value::Bool).to_vec());
    prop_oneof![5 => ints, 4 => powers, 1 => floats, 1 => mixed, 1 => words, 1 => truths]
}

fn expression() -> impl Strategy<Value = String> {
    let name = (0..5usize).prop_map(|i| ["a", "b", "c", "d", "e"][i].to_owned());
    let leaf = prop_oneof![6 => name, 3 => (-2i64..20).prop_map(|i| format!("({i})")), 1 => Just("1.5".to_owned())];
    let number = leaf.prop_recursive(3, 12, 3, |inner| {
        let op = proptest::sample::select(vec!["+", "-", "*", "*", "*", "//", "%", "%", "/"]);
        let pair = (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})"));
        let call = (inner.clone(), inner.clone(), proptest::sample::select(vec!["min", "max"]));
        let call = call.prop_map(|(a, b, f)| format!("{f}({a}, {b})"));
        let choice = (inner.clone(), inner.clone(), inner.clone());
        let choice = choice.prop_map(|(a, b, c)| format!("({a} if {b} > 2 else {c})"));
        prop_oneof![8 => pair, 2 => call, 1 => choice, 1 => inner.prop_map(|a| format!("abs({a})"))]
    });
    let comparison = proptest::sample::select(vec!["<", "<=", "==", "!=", ">", ">="]);
    let compared = (number.clone(), comparison, number.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}"));
    let divides = (number.clone(), number.clone()).prop_map(|(a, b)| format!("{a} % {b} == 0"));
    let listed = number.clone().prop_map(|a| format!("{a} in [1, 2, 4, 8]"));
    let chained = (number.clone(), number.clone()).prop_map(|(a, b)| format!("1 <= {a} <= {b} + 8"));
    let truth = prop_oneof![4 => compared, 2 => divides, 1 => listed, 1 => chained, 1 => number];
    truth.prop_recursive(2, 6, 2, |inner| {
        let op = proptest::sample::select(vec!["and", "or", "or"]);
        let pair = (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})"));
        prop_oneof![3 => pair, 1 => inner.prop_map(|a| format!("not ({a})"))]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_spaces_agree_with_brute_force(
        values in proptest::collection::vec(values(), 5),
        texts in proptest::collection::vec(expression(), 0..4),
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let mut description = Description::new().lenient();
        for (name, values) in names.iter().zip(values) {
            description = description.param(Param { name: (*name).to_owned(), values });
        }
        for text in &texts {
            prop_assume!(text.parse::<Expr>().is_ok());
            description = description.constraint(text).unwrap();
        }
        agrees(&description)?;
    }
}

fn described(params: &[(&str, &[i64])], constraints: &[&str]) -> Description {
    let mut out = Description::new();
    for (name, values) in params {
        out = out.param(Param::ints(name, values.iter().copied()));
    }
    for text in constraints {
        out = out.constraint(text).unwrap();
    }
    out
}

const POWERS: &[i64] = &[1, 2, 4, 8, 16, 32];

#[test]
fn edges_of_spaces() {
    for (params, constraints) in [
        (vec![("a", POWERS)], vec![]),
        (vec![("a", POWERS), ("b", POWERS)], vec!["a == 3"]),
        (vec![("a", POWERS), ("b", POWERS)], vec!["a * b == 4", "a == b"]),
        (vec![("a", &[7]), ("b", POWERS), ("c", &[1])], vec!["a % b == c - 1 or b == 1"]),
        (vec![("a", POWERS), ("b", &[0, 1, 2])], vec!["a % b == 0"]),
        (vec![("a", POWERS), ("b", &[0, 1, 2])], vec!["b == 0 or a % b == 0"]),
        (vec![("a", POWERS), ("b", POWERS), ("c", POWERS)], vec!["a ** b < 1000 or c > 4", "2 ** a > b"]),
        (vec![("a", &[i64::MAX, 1]), ("b", &[2, 1])], vec!["a * b > 0"]),
    ] {
        agrees(&described(&params, &constraints).lenient()).unwrap();
    }
}

/// Followed point by point, the sum would have more states than are followed.
#[test]
fn truths_and_numbers_of_one_word_are_told_apart() {
    let names: Vec<String> = (0..10).map(|i| format!("p{i}")).collect();
    let params: Vec<(&str, &[i64])> = names.iter().map(|n| (n.as_str(), POWERS)).collect();
    let one = |pair: &[String]| format!("(1 if {} > 4 and {} > 4 and True else 0)", pair[0], pair[1]);
    let sum = names.chunks(2).map(one).collect::<Vec<_>>().join(" + ");
    let set = LegalSet::new(&described(&params, &[&format!("{sum} == 5 or False")])).unwrap();
    // Three of six values are larger.
    assert_eq!(set.count(), 3u64.pow(10));
}

#[test]
fn constraints_without_a_value_are_faults() {
    let undefined = |constraints: &[&str]| {
        let params = [("a", POWERS), ("b", &[0, 1, 2]), ("c", &[0, 3])];
        match LegalSet::new(&described(&params, constraints)) {
            Err(LegalError::Undefined { constraint, at, error }) => Some((constraint, at.to_string(), error)),
            Ok(_) => None,
            Err(e) => panic!("{e}"),
        }
    };
    let zero = EvalError::DivisionByZero;
    assert_eq!(undefined(&["a % b == 0"]), Some(("a % b == 0".into(), "a=1,b=0".into(), zero.clone())));
    assert_eq!(undefined(&["8 % b == 0"]), Some(("8 % b == 0".into(), "b=0".into(), zero.clone())));
    assert_eq!(undefined(&["a < 4", "1 // 0 == 1"]), Some(("1 // 0 == 1".into(), String::new(), zero)));
    // Where others exclude the values, nothing is wrong.
    assert_eq!(undefined(&["a % b == 0", "b > 0"]), None);
    assert_eq!(undefined(&["b == 0 or a % b == 0"]), None);
    assert_eq!(undefined(&["a % (b + c) == 0", "b + c != 0"]), None);
    assert_eq!(undefined(&["8 % b == 0 and b != 0"]), None);
}

/// Two constraints without a value do not excuse each other, however they are written and whatever stands between them.
#[test]
fn faults_do_not_hide_each_other() {
    let faulty = |params: &[(&str, &[i64])], constraints: &[&str]| match LegalSet::new(&described(params, constraints))
    {
        Err(LegalError::Undefined { constraint, at, .. }) => format!("{constraint} at {at}"),
        Ok(set) => format!("{} legal", set.count()),
        Err(e) => panic!("{e}"),
    };
    let divided: [(&str, &[i64]); 3] = [("a", &[4, 8]), ("b", &[0, 1, 2]), ("c", &[0, 3])];
    let of = |constraints: &[&str]| faulty(&divided, constraints);
    assert_eq!(of(&["a // b <= 4"]), "a // b <= 4 at a=4,b=0");
    assert_eq!(of(&["0 <= a // b <= 4"]), "0 <= a // b <= 4 at a=4,b=0");
    assert_eq!(of(&["a % b == 0", "a // b >= 2"]), "a % b == 0 at a=4,b=0");
    assert_eq!(of(&["a // b >= 2", "a % b == 0"]), "a // b >= 2 at a=4,b=0");
    assert_eq!(of(&["not (a // b < 2 or a % b > 0)"]), "not (a // b < 2 or a % b > 0) at a=4,b=0");
    // Of one parameter, beside one of two.
    assert_eq!(of(&["8 % b == 0", "a // b >= 2"]), "8 % b == 0 at b=0");
    // What is false for all other values of the parameters excuses, and what is false for some of them does not.
    assert_eq!(of(&["8 % b == 0", "b + c > 0"]), "8 % b == 0 at b=0");
    assert_eq!(of(&["8 % b == 0", "b * (c + 1) > 0"]), "8 legal");
    assert_eq!(of(&["1 // 0 == 1", "c > 3"]), "0 legal");
    assert_eq!(of(&["1 // 0 == 1", "c > 2"]), "1 // 0 == 1 at ");
    assert_eq!(of(&["a // b <= 8", "c * a > 90"]), "0 legal");
    // Overflows are no values either.
    let wide: [(&str, &[i64]); 2] = [("p", &[1, i64::MAX]), ("q", &[1, 2])];
    let large = "p=9223372036854775807,q=2";
    assert_eq!(faulty(&wide, &["0 < p * q < 9"]), format!("0 < p * q < 9 at {large}"));
    assert_eq!(faulty(&wide, &["p * q > 0", "p * q < 9"]), format!("p * q > 0 at {large}"));
    assert_eq!(faulty(&wide, &["p * q > 0", "p < 9"]), "2 legal");
}

#[test]
fn faults_are_found_among_any_number_of_combinations() {
    let found = |values: i64, constraints: &[&str]| {
        let many: Vec<i64> = (1..=values).chain([0]).collect();
        let few: [(&str, &[i64]); 2] = [("c", &[1, 2, 3, 4]), ("d", &[1, 2, 3, 4])];
        let params = [&[("a", many.as_slice()), ("b", many.as_slice())][..], &few].concat();
        LegalSet::new(&described(&params, constraints))
    };
    let at = |values, constraints: &[&str]| match found(values, constraints) {
        Err(LegalError::Undefined { at, .. }) => at.to_string(),
        other => panic!("{other:?}"),
    };
    // Two parameters and 1.2 million combinations of them: the only fault is the last.
    assert_eq!(at(1_100, &["(a + b) % (a + b) == 0"]), "a=0,b=0");
    let guarded = found(1_100, &["(a + b) % (a + b) == 0", "a * b > 0"]).unwrap();
    assert_eq!(guarded.count(), 1_100 * 1_100 * 16);
    // Four parameters and 1.4 million combinations of them.
    assert!(at(300, &["(a + c * d) // (b * c) >= 0", "d < 4"]).contains("b=0"));
    assert!(found(300, &["(a + c * d) // (b * c) >= 0", "b > d"]).is_ok());
}

/// Bounds decide `x > y` and the like, and what floats make of that no layer looks at.
#[test]
fn what_bounds_decide_is_folded() {
    let count = |text: &str| LegalSet::new(&described(&[("x", &[16, 32]), ("y", &[1, 2])], &[text])).unwrap().count();
    for text in [
        "(2 if x > y else 4) > 2.5",
        "(4 if x*y <= 1024 else 8) * 0.5 > 3",
        "(x*y >= 16) < 0.5",
        "float(x*y > 0) == 2.0",
        "-float(x > y) > 0",
        "abs(float(x > y)) < 0.5",
        "max(float(x > y), 0.5) < 1",
    ] {
        assert_eq!(count(text), 0, "{text}");
        assert_eq!(count(&format!("not ({text})")), 4, "{text}");
    }
    // A table of zeros is one of integers or one of floats: as floats, the products would lose their last bit.
    let constraints = ["x * 0.0 + y > 0", "(x * 0 + y * 9007199254740993) % 2 == 1"];
    let zeros = described(&[("x", &[16, 32]), ("y", &[1, 2])], &constraints);
    assert_eq!(LegalSet::new(&zeros).unwrap().count(), 2);
}

#[test]
fn many_values_of_one_parameter() {
    let many: Vec<i64> = (0..700).collect();
    let description = described(&[("a", &many), ("b", &[1, 3, 7, 300])], &["a % b == 1", "a + b < 690"]);
    agrees(&description).unwrap();
}

#[test]
fn closures_and_expressions_say_the_same() {
    let params = || described(&[("a", POWERS), ("b", POWERS), ("c", POWERS)], &["a <= 16"]);
    let closure = params().closure("small", ["c", "a"], |[c, a]: [i64; 2]| a * c <= 64);
    let closure = closure.closure("odd one", ["b"], |[b]: [i64; 1]| b != 4);
    let expression = params().constraint("a * c <= 64").unwrap().constraint("b != 4").unwrap();
    let (closure, expression) = (LegalSet::new(&closure).unwrap(), LegalSet::new(&expression).unwrap());
    let sorted = |set: &LegalSet| {
        let mut points: Vec<Point> = set.walk().collect();
        points.sort();
        points
    };
    assert_eq!(sorted(&closure), sorted(&expression));
    assert!(closure.count() > 0);
}

#[test]
fn faults_are_typed() {
    let fault = |d: &Description| LegalSet::new(d).unwrap_err();
    let twice = described(&[("a", POWERS), ("a", POWERS)], &[]);
    assert_eq!(fault(&twice), LegalError::Space(SpaceError::Duplicate("a".into())));
    assert_eq!(fault(&described(&[("a", &[])], &[])), LegalError::Space(SpaceError::NoValues("a".into())));
    let unknown = described(&[("a", POWERS)], &["a < 4", "a * z < 4"]);
    assert!(matches!(fault(&unknown), LegalError::UnknownName { name, .. } if name == "z"));
    let wrong = Description::new().constraint("a * (b").unwrap_err();
    assert!(matches!(wrong, LegalError::Parse { error, .. } if error.position == 6));
    let many: Vec<i64> = (0..60_000).collect();
    let five = ["a", "b", "c", "d", "e"].map(|n| (n, many.as_slice()));
    assert_eq!(fault(&described(&five, &[])), LegalError::TooMany);
    let four = described(&five[..4], &[]);
    assert_eq!(LegalSet::new(&four).unwrap().count(), 60_000u64.pow(4));
}

#[test]
fn conflicts_are_minimal() {
    let description = described(
        &[("a", POWERS), ("b", POWERS), ("c", POWERS)],
        &["a != b", "a * b > 900", "c < 4", "a < 8", "b + c >= 2"],
    );
    let conflict = Conflict::find(&description).unwrap().unwrap();
    assert_eq!(conflict.constraints, ["a * b > 900", "a < 8"]);
    assert_eq!(Conflict::find(&described(&[("a", POWERS)], &["a > 4"])).unwrap(), None);
    let alone = Conflict::find(&described(&[("a", POWERS)], &["a > 4", "1 > 2"])).unwrap().unwrap();
    assert_eq!(alone.constraints, ["1 > 2"]);
}

#[test]
fn samples_are_uniform_and_seeded() {
    let description = described(
        &[("a", POWERS), ("b", POWERS), ("c", POWERS), ("d", &[0, 1, 2])],
        &["a * b <= 32", "c % a == 0", "b >= c or d == 1"],
    );
    let set = LegalSet::new(&description).unwrap();
    let draws = set.count() * 400;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut counts = vec![0u64; set.count() as usize];
    for _ in 0..draws {
        let point = set.sample(&mut rng).unwrap();
        counts[set.index_of(&point).unwrap() as usize] += 1;
    }
    let chi_square: f64 = counts.iter().map(|&n| (n as f64 - 400.0).powi(2) / 400.0).sum();
    let freedom = (set.count() - 1) as f64;
    // Five standard deviations of chi-square: one seed in a million.
    assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
    let draw = |seed| set.sample(&mut ChaCha8Rng::seed_from_u64(seed));
    assert_eq!(draw(3), draw(3));
    let empty = LegalSet::new(&described(&[("a", POWERS)], &["a > 99"])).unwrap();
    assert_eq!(empty.sample(&mut rng), None);
}
