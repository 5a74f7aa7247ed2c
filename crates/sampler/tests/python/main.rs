//! T1 spaces against Python itself: which points are legal, and which are errors.
//!
//! One process of `python3` enumerates random spaces by the rule of [`LegalSet`], computed with its own parser and evaluator
//! (`reference.py`). Where there is none the test says that it skipped, or fails where `TILEWRIGHT_REQUIRE` names `python`.
//! `TILEWRIGHT_T1_SPACES` is the number of spaces and `TILEWRIGHT_T1_SEED` where they begin.

mod generate;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;
use tilewright_sampler::{Description, LegalError, LegalSet};

/// What Python says of a space.
#[derive(Deserialize)]
struct Verdict {
    /// `T`, `F` or `E` for every point, the last parameter changing fastest.
    points: String,
    /// By point that is an error, the constraints without a value.
    blamed: BTreeMap<usize, Vec<usize>>,
    /// Errors only because the language lacks a value that Python has, by kind.
    limits: BTreeMap<String, u64>,
}

/// The verdicts of Python on all documents; none where there is no Python.
fn verdicts(documents: &[Json]) -> Option<Vec<Verdict>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/reference.py");
    let python = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut python = match python {
        Ok(python) => python,
        Err(error) => {
            tilewright_testkit::skip("python", format!("python3 cannot be started: {error}"));
            return None;
        }
    };
    let mut input = python.stdin.take().unwrap();
    // Python answers when it has read everything, so that neither side waits for the other.
    input.write_all(serde_json::to_string(documents).unwrap().as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "Python ended with {}", output.status);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The points of a description in Python's order.
fn points(description: &Description) -> Vec<Vec<u16>> {
    description.params().iter().fold(vec![Vec::new()], |points, p| {
        let size = p.values.len() as u16;
        points.iter().flat_map(|point| (0..size).map(move |i| [point.as_slice(), &[i]].concat())).collect()
    })
}

/// Whether a point has these values.
fn has(description: &Description, point: &[u16], at: &Config) -> bool {
    at.0.iter().all(|(name, value)| {
        let place = description.params().iter().position(|p| p.name == *name);
        let same = |found: &Value| found.as_val().to_string() == value.as_val().to_string();
        place.is_some_and(|p| same(&description.params()[p].values[usize::from(point[p])]))
    })
}

/// What differs between our answer and Python's.
fn difference(document: &Json, verdict: &Verdict) -> Option<String> {
    let description = match Description::from_t1(&document.to_string()) {
        Ok(description) => description,
        Err(error) => return Some(format!("refused: {error}")),
    };
    let points = points(&description);
    if points.len() != verdict.points.len() {
        return Some(format!("{} points, Python has {}", points.len(), verdict.points.len()));
    }
    let named = |point: &[u16]| {
        let values =
            description.params().iter().zip(point).map(|(p, &i)| (p.name.clone(), p.values[usize::from(i)].clone()));
        Config(values.collect())
    };
    match LegalSet::new(&description) {
        Ok(set) => points.iter().zip(verdict.points.chars()).find_map(|(point, python)| {
            let ours = if set.contains(point) { 'T' } else { 'F' };
            (ours != python).then(|| format!("{}: ours {ours}, Python {python}", named(point)))
        }),
        Err(LegalError::Undefined { constraint, at, .. }) => {
            let blames = |(point, constraints): (&usize, &Vec<usize>)| {
                let named = |&c: &usize| document["ConfigurationSpace"]["Conditions"][c]["Expression"] == constraint;
                has(&description, &points[*point], &at) && constraints.iter().any(named)
            };
            let found = verdict.blamed.iter().any(blames);
            (!found).then(|| {
                format!("ours has no value of {constraint:?} at {at}, Python has none at {:?}", verdict.blamed)
            })
        }
        Err(error) => Some(format!("no space: {error}")),
    }
}

fn by_hand(parameters: &[(&str, Json)], constraints: &[&str]) -> Json {
    let parameters: Vec<Json> = parameters.iter().map(|(n, v)| json!({"Name": n, "Values": v})).collect();
    let conditions: Vec<Json> = constraints.iter().map(|c| json!({"Expression": c})).collect();
    json!({"ConfigurationSpace": {"TuningParameters": parameters, "Conditions": conditions}})
}

/// What random spaces would rarely hit: sides of a limit, errors behind each other.
fn awkward() -> Vec<Json> {
    let decided = [("x", json!([16, 32])), ("y", json!([1, 2]))];
    let divided = [("a", json!([4, 8])), ("b", json!([0, 1, 2])), ("c", json!([0, 3]))];
    let wide = [("p", json!([i64::MAX, i64::MIN, 1, -1])), ("q", json!([(1i64 << 53) + 1, -1, 3]))];
    let of = |parameters: &[(&str, Json)], all: &[&[&str]]| -> Vec<Json> {
        all.iter().map(|constraints| by_hand(parameters, constraints)).collect()
    };
    [
        of(
            &decided,
            &[
                &["(2 if x > y else 4) > 2.5"],
                &["(4 if x*y <= 1024 else 8) * 0.5 > 3"],
                &["(x*y >= 16) < 0.5"],
                &["float(x*y > 0) == 2.0"],
                &["x * 0 + y == 2", "x * 0.0 + y / 2 == 0.5"],
            ],
        ),
        of(
            &divided,
            &[
                &["a // b <= 4"],
                &["0 <= a // b <= 4"],
                &["a % b == 0", "a // b >= 2"],
                &["a % b == 0", "b > 0"],
                &["a % (b + c) == 0", "b + c != 0"],
                &["8 % b == 0", "b + c > 5"],
                &["8 % b == 0 and b != 0"],
                &["not (1 // b > 3 or a // b < 2)"],
                &["1 // 0 == 1", "a > 8"],
                &["1 // 0 == 1", "a > 4"],
            ],
        ),
        of(
            &wide,
            &[
                &["p % q == 0"],
                &["p * q > 0", "p < 0"],
                &["0 < p * q < 9"],
                &["p / q < 3074457345618258602.5"],
                &["abs(p) >= 0 or q > 4"],
                &["round(p * 1.0) == p"],
                &["p // q < 2 or q == -1"],
            ],
        ),
    ]
    .concat()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn spaces_are_those_that_python_enumerates() {
    let (count, seed) = (number("TILEWRIGHT_T1_SPACES", 10_000), number("TILEWRIGHT_T1_SEED", 1));
    let mut documents = awkward();
    let random = (0..count).map(|i| generate::document(&mut ChaCha8Rng::seed_from_u64(seed + i)));
    documents.extend(random);
    let start = Instant::now();
    let Some(verdicts) = verdicts(&documents) else { return };
    let python = start.elapsed();
    assert_eq!(verdicts.len(), documents.len());
    let (mut wrong, mut errors, mut legal, mut points) = (Vec::new(), 0, 0, 0);
    let mut limits: BTreeMap<&str, u64> = BTreeMap::new();
    for (document, verdict) in documents.iter().zip(&verdicts) {
        wrong.extend(difference(document, verdict).map(|found| format!("{found}\n  in {document}")));
        errors += usize::from(verdict.points.contains('E'));
        legal += verdict.points.matches('T').count();
        points += verdict.points.len();
        verdict.limits.iter().for_each(|(kind, n)| *limits.entry(kind).or_default() += n);
    }
    println!(
        "{} spaces, {errors} of them errors; {legal} of {points} points legal; {:.1} s, of these Python {:.1} s",
        documents.len(),
        start.elapsed().as_secs_f64(),
        python.as_secs_f64()
    );
    println!("points that are errors only because the language has no such values: {limits:?}");
    assert!(wrong.is_empty(), "{} spaces differ:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
}
