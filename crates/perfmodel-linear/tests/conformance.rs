//! The suite that every predictor passes, and what is refused.

use tilewright_core::document::DocumentError;
use tilewright_perfmodel_linear::*;

fn property(name: &str, part: Part) -> Property {
    Property { name: name.to_owned(), part }
}

fn table(columns: &[(&str, Part)], launch_s: f64) -> Table {
    Table::new(columns.iter().map(|(n, p)| property(n, *p)).collect(), launch_s)
}

fn row(name: &str, counts: &[f64], time_s: f64) -> Row {
    Row { name: name.to_owned(), counts: counts.to_vec(), quantised: 1.0, time_s }
}

const COLUMNS: [(&str, Part); 4] =
    [("constant", Part::Overhead), ("fma", Part::Arithmetic), ("load", Part::Memory), ("store", Part::Memory)];

#[test]
fn predictors_keep_their_contract() {
    tilewright_testkit::fit(&PredictorFit::default()).unwrap();
}

#[test]
fn a_singular_matrix_names_what_cannot_be_told_apart() {
    let mut rows = table(&COLUMNS, 0.0);
    for i in 1..9 {
        let n = f64::from(i);
        rows.push(row("r", &[1.0, n * n, 3.0 * n, 6.0 * n], 1e-3 * (1.0 + n))).unwrap();
    }
    let error = LinearFit::default().fit(&rows, "d").unwrap_err();
    assert_eq!(error, LinearError::Singular(vec![vec!["load".into(), "store".into()]]));
    assert!(error.to_string().contains("load and store"), "{error}");
    let ridge = LinearFit { ridge: 1e-6, ..LinearFit::default() };
    let model = ridge.fit(&rows, "d").unwrap();
    assert!(model.report.geomean_error < 1e-3, "{:?}", model.report);
}

#[test]
fn times_at_or_below_launch_overhead_are_rejected_with_the_reason() {
    let mut rows = table(&COLUMNS, 2e-6);
    let error = rows.push(row("copy n=16", &[1.0; 4], 2e-6)).unwrap_err();
    assert!(error.to_string().contains("copy n=16") && error.to_string().contains("launch overhead"), "{error}");
    assert!(matches!(rows.push(row("w", &[1.0], 1.0)), Err(Rejected::Invalid(LinearError::Width { .. }))));
    assert!(rows.push(row("nan", &[1.0, f64::NAN, 0.0, 0.0], 1.0)).unwrap_err().to_string().contains("fma"));
    assert_eq!(rows.rows().len(), 0);
}

/// Times with overlap: the larger of arithmetic and memory, nearly.
fn overlapping() -> Table {
    let mut rows = table(&COLUMNS, 0.0);
    for i in 0..40u32 {
        let (fma, load, store) = (f64::from(i * 37 % 41) * 1e3, f64::from(i * 17 % 43) * 1e3, f64::from(i % 7) * 1e3);
        let (arithmetic, memory): (f64, f64) = (1e-9 * fma, 3e-9 * load + 2e-9 * store);
        let time = 1e-6 + (arithmetic.powi(3) + memory.powi(3)).cbrt();
        rows.push(row(&format!("{i}"), &[1.0, fma, load, store], time)).unwrap();
    }
    rows
}

#[test]
fn overlap_is_found_and_is_worth_it() {
    let rows = overlapping();
    let plain = LinearFit { form: Form::NonNegative, ..LinearFit::default() }.fit(&rows, "d").unwrap();
    let overlap = LinearFit { overlap: true, ..LinearFit::default() }.fit(&rows, "d").unwrap();
    assert!(overlap.report.geomean_error < 0.2 * plain.report.geomean_error, "{overlap:?} {plain:?}");
    assert!((overlap.sharpness.memory - 3.0).abs() < 0.5, "{:?}", overlap.sharpness);
    assert!((overlap.weights[2].seconds / 3e-9 - 1.0).abs() < 0.1, "{:?}", overlap.weights);
}

#[test]
fn models_survive_files_and_nothing_else_does() {
    let model = LinearFit { overlap: true, ..LinearFit::default() }.fit(&overlapping(), "this device").unwrap();
    let value = model.to_value().unwrap();
    assert_eq!(LinearModel::from_value(value.clone()).unwrap(), model);
    let mut damaged = value.clone();
    damaged["model"]["sharpness"]["core"] = 1.5.into();
    assert!(matches!(LinearModel::from_value(damaged), Err(ModelFileError::Document(DocumentError::Checksum { .. }))));
    let mut newer = value.clone();
    newer["version"] = 2.into();
    let version = LinearModel::from_value(newer);
    assert!(matches!(version, Err(ModelFileError::Document(DocumentError::Version { found: 2, .. }))));
    let foreign = LinearModel::from_value(serde_json::json!({"x": 1}));
    assert!(matches!(foreign, Err(ModelFileError::Document(DocumentError::Format { .. }))));
    assert!(model.expect_device("this device").is_ok());
    let error = model.expect_device("another").unwrap_err();
    assert!(error.to_string().contains("another"), "{error}");
}

#[test]
fn what_no_row_had_is_told() {
    let mut rows = table(&COLUMNS, 0.0);
    for i in 1..9 {
        let n = f64::from(i);
        rows.push(row("r", &[1.0, n * n, 3.0 * n, 0.0], 1e-3 * (1.0 + n))).unwrap();
    }
    let model = LinearFit::default().fit(&rows, "d").unwrap();
    assert_eq!(model.predict(&[1.0, 2.0, 3.0, 5.0], 1.0).unmeasured, ["store"]);
    assert!(model.predict(&[1.0, 2.0, 3.0, 0.0], 1.0).unmeasured.is_empty());
}
