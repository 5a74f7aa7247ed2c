use super::*;
use crate::domain::Field;

fn sizes(names: &[&str]) -> Domain {
    let field = |name: &&str| Field { name: (*name).to_owned(), words: Vec::new() };
    Domain { fields: names.iter().map(field).collect(), ..Domain::default() }
}

/// Seconds by a rule for inputs of two sizes on a grid.
fn table<'a>(domain: &'a Domain, seconds: &dyn Fn(i64, i64) -> Vec<Cell>) -> Table<'a> {
    let inputs: Vec<Vec<i64>> = (0..64).map(|i| vec![1 << (i % 8), 3 << (i / 8)]).collect();
    let cells = inputs.iter().map(|n| seconds(n[0], n[1])).collect();
    Table { domain, inputs, cells, guessed: Vec::new() }
}

fn two(first_is_better: bool) -> Vec<Cell> {
    let (a, b) = if first_is_better { (1.0, 2.0) } else { (3.0, 1.5) };
    vec![Cell::Seconds(a), Cell::Seconds(b), Cell::Seconds(4.0)]
}

#[test]
fn a_product_a_ratio_and_a_multiple_are_found() {
    let domain = sizes(&["m", "n"]);
    for rule in [|m, n| m * n <= 100, |m, n| m <= 2 * n, |m: i64, _| m % 8 == 0] {
        let table = table(&domain, &|m, n| two(rule(m, n)));
        let fitted = fit(&table, &FitSettings::default()).unwrap();
        assert_eq!((fitted.tree.leaves(), fitted.chosen.len()), (2, 2), "{:?}", fitted.tree);
        assert!(fitted.training.worst < 1e-9 && fitted.cross_validated.unwrap().mean < 0.2, "{fitted:?}");
    }
}

#[test]
fn words_part_inputs() {
    let words = vec!["nn".into(), "tt".into()];
    let mut domain = sizes(&["m", "n"]);
    domain.fields[1].words = words;
    let inputs: Vec<Vec<i64>> = (0..20).map(|i| vec![i, i % 2]).collect();
    let cells = inputs.iter().map(|n| two(n[1] == 1)).collect();
    let fitted = fit(&Table { domain: &domain, inputs, cells, guessed: Vec::new() }, &FitSettings::default()).unwrap();
    assert!(matches!(fitted.tree, Tree::Branch { test: Test::Is { field: 1, .. }, .. }), "{:?}", fitted.tree);
}

use crate::tree::Test;

#[test]
fn noise_grows_no_tree() {
    let domain = sizes(&["m", "n"]);
    let mut state = 1u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1.0 + (state >> 40) as f64 / f64::from(1u32 << 24) * 0.3
    };
    let inputs: Vec<Vec<i64>> = (0..64).map(|i| vec![1 << (i % 8), 3 << (i / 8)]).collect();
    let cells = inputs.iter().map(|_| vec![Cell::Seconds(noise()), Cell::Seconds(noise())]).collect();
    let fitted = fit(&Table { domain: &domain, inputs, cells, guessed: Vec::new() }, &FitSettings::default()).unwrap();
    assert!(fitted.tree.leaves() <= 3, "{:?}", fitted.tree);
}

#[test]
fn one_input_is_one_leaf() {
    let domain = Domain::default();
    let table = Table { domain: &domain, inputs: vec![vec![]], cells: vec![two(false)], guessed: Vec::new() };
    let fitted = fit(&table, &FitSettings::default()).unwrap();
    assert_eq!((fitted.tree.leaf(&[])[0], fitted.tree.leaves(), fitted.cross_validated), (1, 1, None));
}

#[test]
fn what_is_not_legal_is_followed_by_what_is() {
    let domain = sizes(&["m"]);
    // The first is the best wherever it is legal, which no single test says.
    let cell = |i: i64| if [1, 4, 5, 9, 12].contains(&i) { Cell::Illegal } else { Cell::Seconds(1.0) };
    let inputs: Vec<Vec<i64>> = (0..16).map(|i| vec![i]).collect();
    let cells = (0..16).map(|i| vec![cell(i), Cell::Seconds(2.0), Cell::Failed, Cell::Untimed]).collect();
    let fitted = fit(&Table { domain: &domain, inputs, cells, guessed: Vec::new() }, &FitSettings::default()).unwrap();
    assert_eq!(fitted.tree.leaf(&[3])[..2], [0, 1], "{:?}", fitted.tree);
    assert!(fitted.training.worst < 1e-9, "{fitted:?}");
}

#[test]
fn what_tells_nothing_is_refused() {
    let domain = sizes(&["m"]);
    let fitted =
        |inputs, cells| fit(&Table { domain: &domain, inputs, cells, guessed: Vec::new() }, &FitSettings::default());
    assert_eq!(fitted(vec![], vec![]), Err(FitError::NothingTimed));
    assert_eq!(fitted(vec![vec![1]], vec![vec![Cell::Failed, Cell::Illegal]]), Err(FitError::NothingTimed));
    let ragged = fitted(vec![vec![1], vec![2]], vec![vec![Cell::Failed], vec![]]);
    assert_eq!(ragged, Err(FitError::Ragged { row: 1, cells: 0, expected: 1 }));
    assert_eq!(fitted(vec![vec![1]], vec![]), Err(FitError::Ragged { row: 0, cells: 0, expected: 0 }));
}

#[test]
fn a_cover_leaves_out_what_helps_nobody() {
    let rows = [[true, false, false], [false, true, false], [true, true, false], [false, false, false]].map(Vec::from);
    assert_eq!(cover(&rows, 8), (vec![0, 1], 1));
    assert_eq!(cover(&rows, 1), (vec![0], 2));
    assert_eq!(cover(&[], 8), (vec![], 0));
}

/// Few inputs do not say where the border is; a model that knows does, and one that is wrong is not believed.
#[test]
fn guesses_help_where_they_are_right() {
    let domain = sizes(&["m"]);
    let row = |is_small: bool| two(is_small);
    let fitted = |guess: &dyn Fn(i64) -> bool| {
        let inputs: Vec<Vec<i64>> = [1, 2, 3, 400, 500, 600, 90, 110, 95, 105].iter().map(|&m| vec![m]).collect();
        let cells = inputs.iter().map(|n| row(n[0] <= 100)).collect();
        let guessed = (1..200).map(|m| (vec![m], row(guess(m)))).collect();
        fit(&Table { domain: &domain, inputs, cells, guessed }, &FitSettings::default()).unwrap()
    };
    assert!(fitted(&|m| m <= 100).cross_validated.unwrap().worst < 1e-9);
    let misled = fitted(&|m| m > 20);
    assert!(misled.training.worst < 1e-9, "{misled:?}");
}
