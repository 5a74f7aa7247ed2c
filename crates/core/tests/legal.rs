//! Checked points, and what they say by name.

use proptest::prelude::*;
use tilewright_core::expr::{Val, Value};
use tilewright_core::space::{BoundSpace, Param, ParamSpace, RuleGroup, SpaceError, Symbols};

fn described() -> ParamSpace {
    ParamSpace::builder()
        .param(Param::ints("a", 1..=5))
        .param(Param::words("w", ["x", "y"]))
        .param(Param::ints("b", 0..=4))
        .define("double", "2 * a")
        .define("wide", "w == 'y'")
        .define("fixed", "n * 2")
        .define("share", "double // b")
        .define("sum", "share + double + fixed if wide else double")
        .define("half", "a / 2")
        .rule("divides", RuleGroup::User, "b != 0 and double % b == 0", "whole shares")
        .rule("few", RuleGroup::User, "sum <= limit", "not too many")
        .build()
        .unwrap()
}

fn space() -> BoundSpace {
    described().bind(&Symbols::new().with("n", 3).with("limit", 20)).unwrap()
}

proptest! {
    /// Indices of any kind are judged without a panic, and a name says what its text says.
    #[test]
    fn any_indices_are_judged(point in prop::collection::vec(0u16..8, 0..5), remembers in any::<bool>()) {
        let space = space();
        if remembers {
            space.remember();
        }
        let inside = space.contains(&point);
        let checked = space.check(&point);
        prop_assert_eq!(checked.is_ok(), space.is_legal(&point));
        prop_assert_eq!(space.at(&point).is_some(), inside);
        prop_assert!(space.config(&point).0.len() <= 3);
        match checked {
            Ok(legal) => {
                prop_assert!(inside && space.broken(&point).is_empty() && space.first_broken(&point).is_none());
                prop_assert_eq!(legal.point(), point.as_slice());
                prop_assert!(std::ptr::eq(legal.space(), &space));
            }
            Err(illegal) if inside => {
                prop_assert!(space.broken(&point).contains(&illegal.rule.as_str()), "{}", illegal);
                prop_assert_eq!(space.first_broken(&point).map(|r| r.name.clone()), Some(illegal.rule));
            }
            Err(illegal) => prop_assert_eq!(illegal.rule.as_str(), "value"),
        }
        if let Some(values) = space.at(&point) {
            for (name, text) in described().names() {
                let of = |n: &str| values.get(n).map(Value::from);
                prop_assert_eq!(values.get(name).map(Value::from), text.eval_with(&of).ok(), "{}", name);
            }
        }
    }
}

#[test]
fn names_are_read_together_and_one_by_one() {
    let (description, space) = (described(), space());
    let legal = space.check(&[1, 1, 2]).unwrap();
    let names = ["a", "double", "share", "sum"].map(|n| description.name(n).unwrap());
    assert_eq!(names.map(Some), ["a", "double", "share", "sum"].map(|n| space.name(n)));
    assert_eq!(legal.ints::<u32, 4>(names), Some([2, 4, 2, 12]));
    assert_eq!(
        (legal.int::<usize>("sum"), legal.int::<i64>("limit"), legal.get("w")),
        (Some(12), Some(20), Some(Val::Str("y")))
    );
    assert_eq!(
        (legal.get("fixed"), legal.get("wide"), legal.int::<u8>("wide")),
        (Some(Val::Int(6)), Some(Val::Bool(true)), Some(1))
    );
    assert_eq!((legal.get("half"), legal.int::<i64>("half")), (Some(Val::Float(1.0)), None));
    assert_eq!((legal.get("none"), description.name("n"), description.name("none")), (None, None, None));
    assert_eq!(format!("{legal:?}"), "a=2,w=y,b=2");
}

#[test]
fn what_has_no_value_says_none() {
    let space = space();
    let values = space.at(&[1, 0, 0]).unwrap();
    assert!(space.check(values.point()).is_err());
    // A name has none where one that it mentions has none, in a branch that is not taken too.
    assert_eq!((values.get("share"), values.get("sum"), values.int("double")), (None, None, Some(4)));
    // A name of a larger space is none of this one.
    let larger =
        (0..9).fold(ParamSpace::builder(), |s, i| s.param(Param::ints(&format!("p{i}"), [1]))).define("q", "1");
    let foreign = larger.build().unwrap().name("q").unwrap();
    assert_eq!(values.read([foreign]), None);
}

#[test]
fn names_may_be_many_but_not_endless() {
    let chain = |length: usize| {
        let start = ParamSpace::builder().param(Param::ints("a", 1..=3)).define("n0", "a");
        (1..length).fold(start, |s, i| s.define(&format!("n{i}"), &format!("n{} + 1", i - 1))).build()
    };
    let space = chain(128).unwrap().bind(&Symbols::new()).unwrap();
    assert_eq!(space.check(&[2]).unwrap().int("n127"), Some(130));
    assert_eq!(chain(129).unwrap_err(), SpaceError::TooManyNames(129));
    let unknown = ParamSpace::builder().define("x", "y + 1").build().unwrap().bind(&Symbols::new());
    assert_eq!(unknown.unwrap_err(), SpaceError::UnknownName { rule: "x".into(), name: "y".into() });
}

#[test]
fn indices_outside_are_refused_with_the_numbers() {
    let space = space();
    let why = |point: &[u16]| space.check(point).unwrap_err().why;
    assert_eq!(why(&[0]), "1 indices for 3 parameters");
    assert_eq!(why(&[0, 2, 0]), "index 2 of parameter \"w\", which has 2 values");
    assert_eq!(space.config(&[1, 7, 1]).to_string(), "a=2,b=1");
}

#[test]
fn clones_know_each_other() {
    let (one, other) = (space(), space());
    assert!(one.clone().is_clone_of(&one) && !one.is_clone_of(&other));
}
