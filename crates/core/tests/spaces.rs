//! Properties of bound spaces: the walk against brute force over the Cartesian product.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tilewright_core::expr::Value;
use tilewright_core::space::{
    BoundSpace, Census, Config, Param, ParamSpace, Point, PointError, RuleGroup, SpaceError, Symbols,
};

/// Rule texts over the parameters `a b c w` and the symbols `s t`; some cannot be evaluated everywhere.
const RULES: [&str; 14] = [
    "a * b <= s",
    "(a + b) % 2 == 0 or c > 1",
    "a <= b <= c",
    "s % a == 0",
    "w != 'x'",
    "w == 'y' or a > 1",
    "c // b >= 1",
    "a / (b - 2) < 2",
    "t == 0 or s % t == 0",
    "s > 2",
    "t",
    "True",
    "1 // t >= 0",
    "a in [1, 3] and c not in (2, 4)",
];

/// Few values in any order, or rarely more than the bits of two words.
fn param(name: &'static str) -> impl Strategy<Value = Param> {
    let many = (60i64..130).prop_map(|count| (1..=count).collect());
    prop_oneof![60 => prop::collection::vec(1i64..6, 1..5), 1 => many].prop_map(move |values| Param::ints(name, values))
}

fn space() -> impl Strategy<Value = (ParamSpace, BoundSpace)> {
    let words = prop::sample::subsequence(vec!["x", "y", "z"], 1..=3).prop_map(|w| Param::words("w", w));
    let rules = prop::sample::subsequence(RULES.to_vec(), 0..5);
    (param("a"), param("b"), param("c"), words, rules, 0i64..12, 0i64..4).prop_map(|(a, b, c, w, rules, s, t)| {
        let mut builder = ParamSpace::builder().param(a).param(b).param(c).param(w);
        for (i, text) in rules.iter().enumerate() {
            builder = builder.rule(&format!("rule {i}"), RuleGroup::User, text, "drawn");
        }
        let space = builder.build().unwrap();
        let bound = space.bind(&Symbols::new().with("s", s).with("t", t)).unwrap();
        (space, bound)
    })
}

/// Every point, in lexicographic order of the indices.
fn all_points(space: &BoundSpace) -> Vec<Point> {
    let mut points = vec![Vec::new()];
    for p in space.params() {
        points = points
            .iter()
            .flat_map(|head: &Vec<u16>| (0..p.values.len() as u16).map(|i| [head.as_slice(), &[i]].concat()))
            .collect();
    }
    points.into_iter().map(Point).collect()
}

/// Legality from first principles: every rule, unfolded, evaluated by name.
fn legal_by_definition(space: &ParamSpace, bound: &BoundSpace, point: &[u16]) -> bool {
    let config = bound.config(point);
    let lookup = |n: &str| config.get(n).or_else(|| bound.symbols().get(n)).cloned();
    space.rules().iter().all(|r| r.expr.eval_with(&lookup).is_ok_and(|v| v.as_val().truthy()))
}

fn walk(space: &BoundSpace) -> Vec<Point> {
    let mut seen = Vec::new();
    assert!(space.for_each_legal(|p| {
        seen.push(Point::from(p));
        true
    }));
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_walk_is_brute_force((space, bound) in space()) {
        let all = all_points(&bound);
        prop_assert_eq!(all.len() as u128, bound.cartesian());
        let (legal, illegal): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| legal_by_definition(&space, &bound, p));
        prop_assert_eq!(bound.count_legal(), legal.len() as u64);
        prop_assert_eq!(bound.first_legal(), legal.first().cloned());
        // Twice: the second walk reads what the first one remembered.
        prop_assert_eq!(&walk(&bound), &legal);
        prop_assert_eq!(&walk(&bound.clone()), &legal);
        let mut rejected_by = BTreeMap::new();
        for rule in illegal.iter().filter_map(|p| bound.first_broken(p)) {
            *rejected_by.entry(rule.name.clone()).or_default() += 1;
        }
        prop_assert_eq!(bound.census(), Census { legal: legal.len() as u128, rejected_by });
    }

    #[test]
    fn one_point_is_judged_alike_everywhere((space, bound) in space()) {
        for point in all_points(&bound) {
            let legal = legal_by_definition(&space, &bound, &point);
            prop_assert!(bound.contains(&point));
            prop_assert_eq!(bound.is_legal(&point), legal);
            let broken = bound.broken(&point);
            prop_assert_eq!(broken.is_empty(), legal);
            match bound.check(&point) {
                Ok(at) => prop_assert!(legal && at.point() == &*point),
                Err(illegal) => {
                    prop_assert!(broken.contains(&illegal.rule.as_str()));
                    let rule = space.rules().iter().find(|r| r.name == illegal.rule).unwrap();
                    let named: Vec<String> = illegal.numbers.iter().map(|(n, _)| n.clone()).collect();
                    prop_assert_eq!(named, rule.expr.names().into_iter().collect::<Vec<_>>());
                    prop_assert!(illegal.to_string().contains(&rule.expr.to_string()));
                }
            }
        }
    }

    #[test]
    fn shards_in_order_are_the_walk((_, bound) in space(), at_least in 0usize..300) {
        let shards = bound.shards(at_least);
        let mut seen = Vec::new();
        for shard in &shards {
            bound.for_each_legal_in(shard, &mut |p: &[u16]| {
                seen.push(Point::from(p));
                true
            });
        }
        prop_assert_eq!(seen, walk(&bound));
    }

    #[test]
    fn a_walk_stops_when_told((_, bound) in space(), after in 1usize..10) {
        let legal = bound.count_legal() as usize;
        let mut visits = 0;
        let complete = bound.for_each_legal(|_| {
            visits += 1;
            visits < after
        });
        prop_assert_eq!(visits, after.min(legal));
        prop_assert_eq!(complete, legal < after);
    }

    #[test]
    fn points_and_configurations_agree((_, bound) in space()) {
        for point in all_points(&bound) {
            let config = bound.config(&point);
            let back = config.to_point(bound.params(), None).unwrap();
            // A value that stands twice in a parameter's list has two indices; the configurations are the same.
            prop_assert_eq!(bound.config(&back), config.clone());
            prop_assert_eq!(Config::parse(&config.to_string()), Ok(config));
        }
    }
}

#[test]
fn rules_without_parameters_decide_everything() {
    let space = ParamSpace::builder()
        .param(Param::ints("a", [1, 2, 3]))
        .rule("device", RuleGroup::Hardware, "avx512 == 1", "")
        .build()
        .unwrap();
    let with = |flag: i64| space.bind(&Symbols::new().with("avx512", flag)).unwrap();
    assert_eq!(with(1).count_legal(), 3);
    assert_eq!(with(0).count_legal(), 0);
    assert_eq!(with(0).first_legal(), None);
    assert_eq!(with(0).preferred_point(|_| Vec::new()), None);
    let illegal = with(0).check(&[1]).unwrap_err();
    assert_eq!(illegal.numbers, [("avx512".to_owned(), Value::Int(0))]);
    for shard in with(0).shards(3) {
        assert!(with(0).for_each_legal_in(&shard, &mut |_: &[u16]| panic!("nothing is legal")));
    }
}

#[test]
fn a_space_without_parameters_has_one_point() {
    let empty = ParamSpace::builder().build().unwrap().bind(&Symbols::new()).unwrap();
    assert_eq!(empty.cartesian(), 1);
    assert_eq!(walk(&empty), [Point(Vec::new())]);
    assert_eq!(empty.shards(8).len(), 1);
}

#[test]
fn many_parameters_take_the_other_path() {
    let mut builder = ParamSpace::builder();
    for i in 0..40 {
        builder = builder.param(Param::ints(&format!("p{i}"), if i < 3 { vec![0, 1] } else { vec![0] }));
    }
    let space = builder.rule("some", RuleGroup::User, "p0 + p1 + p2 + p39 >= 2", "").build().unwrap();
    let bound = space.bind(&Symbols::new()).unwrap();
    assert_eq!(bound.count_legal(), 4);
    let legal = all_points(&bound).into_iter().filter(|p| bound.is_legal(p)).count();
    assert_eq!(legal, 4);
}

#[test]
fn a_rule_that_cannot_be_evaluated_says_so() {
    let space = ParamSpace::builder().param(Param::ints("a", [0, 1])).rule("r", RuleGroup::User, "6 / a > 1", "why");
    let bound = space.build().unwrap().bind(&Symbols::new()).unwrap();
    assert_eq!(bound.check(&[0]).unwrap_err().why, "division by zero");
    assert_eq!(bound.count_legal(), 1);
}

#[test]
fn faults_of_a_description_are_typed() {
    let a = || Param::ints("a", [1, 2]);
    let build = |b: tilewright_core::space::SpaceBuilder| b.build().unwrap_err();
    assert_eq!(build(ParamSpace::builder().param(Param::ints("a", []))), SpaceError::NoValues("a".into()));
    assert_eq!(build(ParamSpace::builder().param(a()).param(a())), SpaceError::Duplicate("a".into()));
    assert_eq!(build(ParamSpace::builder().param(a()).define("a", "1")), SpaceError::Duplicate("a".into()));
    let twice = ParamSpace::builder().param(a()).define("d", "a").define("d", "2 * a");
    assert_eq!(build(twice), SpaceError::Duplicate("d".into()));
    let many = build(ParamSpace::builder().param(Param::ints("a", 0..65_536)));
    assert_eq!(many, SpaceError::TooManyValues { name: "a".into(), count: 65_536 });
    let unparsed = build(ParamSpace::builder().param(a()).rule("r", RuleGroup::User, "a <", ""));
    assert!(matches!(unparsed, SpaceError::Parse { ref rule, .. } if rule == "r"), "{unparsed}");
    let unknown = ParamSpace::builder().param(a()).rule("r", RuleGroup::User, "a < limit", "").build().unwrap();
    let error = unknown.bind(&Symbols::new()).unwrap_err();
    assert_eq!(error, SpaceError::UnknownName { rule: "r".into(), name: "limit".into() });
}

#[test]
fn definitions_are_inlined_in_order() {
    let space = ParamSpace::builder()
        .param(Param::ints("a", [1, 2, 3, 4]))
        .define("tile", "a * 2")
        .define("bytes", "tile * 4")
        .rule("fits", RuleGroup::Hardware, "bytes <= 16", "")
        .build()
        .unwrap();
    assert_eq!(space.rules()[0].expr.to_string(), "a * 2 * 4 <= 16");
    assert_eq!(space.bind(&Symbols::new()).unwrap().count_legal(), 2);
}

#[test]
fn configurations_are_read_or_refused() {
    let params = [Param::ints("a", [1, 2]), Param::words("w", ["x", "y"])];
    let point = |text: &str, base: Option<&[u16]>| Config::parse(text).and_then(|c| c.to_point(&params, base));
    assert_eq!(point("a=2,w=x", None), Ok(Point(vec![1, 0])));
    assert_eq!(point(" w = y , a = 1 ", None), Ok(Point(vec![0, 1])));
    assert_eq!(point("a=2.0,w=x", None), Ok(Point(vec![1, 0])), "numbers are compared as numbers");
    assert_eq!(point("w=y", Some(&[1, 0])), Ok(Point(vec![1, 1])));
    assert_eq!(point("", Some(&[1, 0])), Ok(Point(vec![1, 0])));
    assert_eq!(point("a=2", None), Err(PointError::MissingParameter("w".into())));
    assert_eq!(point("a", None), Err(PointError::NotAPair("a".into())));
    assert_eq!(point("=1,w=x", None), Err(PointError::NotAPair("=1".into())));
    assert_eq!(point("a=1,a=2,w=x", None), Err(PointError::Twice("a".into())));
    assert_eq!(Config::from_fields(["a=1", ""]), Err(PointError::NotAPair(String::new())));
    assert_eq!(Config::from_fields(["a=1", " w = x,y "]).unwrap().get("w"), Some(&Value::from("x,y")));
    assert!(matches!(point("b=1", None), Err(PointError::UnknownParameter { name, .. }) if name == "b"));
    let wrong = point("a=3,w=x", None).unwrap_err();
    assert_eq!(wrong.to_string(), "parameter \"a\" cannot be 3: its values are 1 2");
    assert!(matches!(point("a=1,w=1", None), Err(PointError::NotAValue { .. })));
}

proptest! {
    /// The characters are those of which real words consist, so that many texts are nearly right.
    #[test]
    fn any_text_is_the_point_it_says_or_names_what_is_wrong(text in "(a|w|b| |=|,|x|y|1|2|\\.0|-){0,9}", dense in any::<bool>()) {
        let text = if dense { format!("a=2,w={text}") } else { text };
        let params = [Param::ints("a", [1, 2]), Param::words("w", ["x", "y"])];
        match Config::parse(&text).and_then(|c| c.to_point(&params, None)) {
            Ok(point) => {
                for word in text.split(',').filter(|w| !w.trim().is_empty()) {
                    let (name, value) = word.split_once('=').unwrap();
                    let at = params.iter().position(|p| p.name == name.trim()).unwrap();
                    prop_assert_eq!(params[at].index_of(&Value::parse(value.trim())), Some(point[at]));
                }
            }
            Err(error) => prop_assert!(!error.name().is_empty() && !error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_words_are_read_without_a_panic(words in prop::collection::vec(".{0,12}", 0..5)) {
        if let Ok(config) = Config::from_fields(words.iter().map(String::as_str)) {
            prop_assert_eq!(config.0.len(), words.len());
        }
    }
}

#[test]
fn configurations_keep_their_order_in_json() {
    let config = Config::parse("z=1,a=2.5,m=nn,f=true").unwrap();
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(json, r#"{"z":1,"a":2.5,"m":"nn","f":true}"#);
    assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    assert!(serde_json::from_str::<Config>("[1]").is_err());
}
