//! The fitted model as its users see it.

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_core::feature::{Feature, FeatureSchema};
use tilewright_core::predictor::{Coverage, Fit, Predictor, RowPredictor};
use tilewright_core::prior::WithPrior;
use tilewright_core::problem::Problem;
use tilewright_core::setting::SettingError;
use tilewright_core::training::TrainingSet;
use tilewright_perfmodel_mlp::{
    Ablation, FeatureScale, Layout, Mlp, MlpFit, ScreenSettings, Settings, SplitBy, TrainError, mse,
};
use tilewright_testkit::toy::{self, ScaleConfig};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Small enough for a test: 32-32, a few epochs.
fn quick(epochs: usize) -> MlpFit {
    let layout = Layout::new(vec![32, 32]).expect("a layout");
    MlpFit { settings: Settings { layout, epochs, ..Settings::default() }, screen: None }
}

fn quick_screen() -> ScreenSettings {
    let layout = Layout::new(vec![16, 16]).expect("a layout");
    ScreenSettings { layout, points: 2048, epochs: 12, least_space: 1, ..ScreenSettings::default() }
}

fn predict(model: &Mlp, rows: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    model.predict(rows, &mut out);
    out
}

#[test]
fn conforms_to_the_contract_of_a_fit() {
    tilewright_testkit::fit(&quick(40)).unwrap();
    let screened = MlpFit { screen: Some(quick_screen()), ..quick(20) };
    tilewright_testkit::fit(&screened).unwrap();
}

#[test]
fn learns_unseen_inputs_of_a_matrix_multiplication() {
    let data = synthetic::training_set(400, 10, &mut rng(1));
    let test = synthetic::training_set(60, 10, &mut rng(2));
    let model = quick(30).fit(&data, 1).expect("the rows are sound");
    let (error, variance) = (mse(&model, &test), model.report().variance);
    assert!(error < 0.02 * variance, "error {error}, variance {variance}");
    assert!((model.report().best_mse() / error).ln().abs() < 1.0, "validation tells of unseen inputs");
}

#[test]
fn several_networks_say_the_mean_of_what_each_says_and_err_less() {
    let data = synthetic::training_set(60, 10, &mut rng(1));
    let test = synthetic::training_set(60, 10, &mut rng(2));
    let several = MlpFit { settings: Settings { members: 3, ..quick(6).settings }, screen: None };
    let model = several.fit(&data, 7).expect("the rows are sound");
    assert_eq!((model.members(), model.layout()), (3, quick(6).settings.layout));
    let first = quick(6).fit(&data, 7).expect("the rows are sound");
    assert_eq!(model.report(), first.report(), "the first is what one alone is");
    assert_eq!(model.flops_per_row(), 3 * first.flops_per_row());
    assert!(mse(&model, &test) < mse(&first, &test));
    let read = Mlp::from_json(&model.to_json()).expect("it was written");
    assert_eq!(predict(&read, &test.rows), predict(&model, &test.rows));
    let input = synthetic::Input::draw(&mut rng(3));
    let rows = synthetic::config_rows(&input, 100, &mut rng(4));
    let whole: Vec<f32> = rows.chunks(rows.len() / 100).flat_map(|row| [&input.features(), row].concat()).collect();
    let mut scores = vec![0.0; 100];
    model.bind_features(&input.features()).expect("the features fit").score(&rows, &mut scores);
    let close = |(a, b): (&f32, f32)| (a - b).abs() < 1e-4 * (1.0 + b.abs());
    assert!(scores.iter().zip(predict(&model, &whole)).all(close));
}

#[test]
fn an_input_unlike_all_of_training_is_told() {
    let data = synthetic::training_set(40, 4, &mut rng(1));
    let fitted = quick(2).fit(&data, 1).expect("the rows are sound");
    let read = Mlp::from_json(&fitted.to_json()).expect("it was written");
    let width = data.schema.input.len();
    let far: Vec<f32> = (0..width).map(|at| data.rows.iter().skip(at).step_by(data.schema.width()).sum()).collect();
    for model in [&fitted, &read] {
        let coverage = |input: &[f32]| model.bind_features(input).expect("the features fit").coverage();
        assert!(data.rows.chunks(data.schema.width()).all(|row| coverage(&row[..width]) == Coverage::Full));
        assert_eq!(coverage(&far), Coverage::None, "{far:?}");
    }
    // Of several devices: an input is near whatever the device that is left out.
    let fixed = fitted.fixing(&[1e9]).expect("one column is an input's");
    let coverage = |input: &[f32]| fixed.bind_features(&input[..width - 1]).expect("the features fit").coverage();
    assert_eq!([coverage(&data.rows), coverage(&far)], [Coverage::Full, Coverage::None]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let data = synthetic::training_set(60, 10, &mut rng(3));
    let fit = MlpFit { screen: Some(quick_screen()), ..quick(3) };
    let on = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        pool.install(|| fit.fit(&data, seed)).expect("the rows are sound").to_json()
    };
    let one = on(1, 9);
    assert_eq!(one, on(3, 9));
    assert_ne!(one, on(1, 10));
}

/// What a coarse model knows of the toy's cost: two of its five parameters.
fn coarse(problem: &dyn Problem, point: &[u16]) -> f64 {
    let config = ScaleConfig::of(&problem.space().at(point).expect("a point of the toy"));
    let registers = problem.device().fact("registers").map_or(1, |r| r.unsigned_abs() as usize);
    let n = problem.input().get("n").and_then(|n| n.as_int()).unwrap_or(0) as usize;
    let best = toy::target(n, registers);
    let apart = |a: usize, b: usize| (a as f64 / b as f64).log2().powi(2);
    1e-9 * n as f64 * (1.0 + 0.2 * apart(config.width, best.width) + 0.1 * apart(config.unroll, best.unroll))
}

/// Rows of some inputs, so many points each, with costs over what a prior expects.
fn toy_rows(prior: fn(&dyn Problem, &[u16]) -> f64, lengths: &[usize], points: usize) -> TrainingSet {
    let mut set = TrainingSet::new(toy::problem(1).schema().clone());
    for (group, &n) in lengths.iter().enumerate() {
        let problem = toy::problem(n);
        for point in tilewright_testkit::legal_points(problem.space(), points, n as u64) {
            let mut row = Vec::new();
            problem.input_features(&mut row);
            problem.config_features(&point, &mut row);
            let cost = toy::cost_s(&problem, &point) / prior(&problem, &point);
            set.push(&row, cost, group as u32).expect("a sound row");
        }
    }
    set
}

#[test]
fn a_prior_of_another_kind_makes_up_for_rows() {
    let (train, test) = ([300, 900, 2000, 5000, 9000, 20_000], [1500, 7000]);
    let error = |prior| {
        let model = quick(30).fit(&toy_rows(prior, &train, 40), 3).expect("the rows are sound");
        (mse(&model, &toy_rows(prior, &test, 100)), model)
    };
    let ((without, _), (with, model)) = (error(|_, _| 1.0), error(coarse));
    assert!(with < 0.8 * without, "{with} over the prior, {without} without");
    let sum = WithPrior::new(toy::Formula { kind: "coarse", is_costly: false, seconds: coarse }, model);
    let problem = toy::problem(7000);
    tilewright_testkit::predictor(&sum, &problem).unwrap();
    let points = tilewright_testkit::legal_points(problem.space(), 100, 7000);
    let logs = sum.bind(&problem).expect("the schema is the toy's").score_each(&points);
    let errors = points.iter().zip(logs).map(|(p, log)| (f64::from(log) - toy::cost_s(&problem, p).ln()).powi(2));
    let error = errors.sum::<f64>() / points.len() as f64;
    assert!(error < 2.0 * with, "{error} of the sum, {with} of its model");
}

#[test]
fn log_features_beat_raw_ones() {
    let data = synthetic::training_set(300, 10, &mut rng(4));
    let settings = Settings { epochs: 15, ..quick(1).settings };
    let layouts = vec![settings.layout.clone()];
    let ablation = Ablation { layouts, sizes: vec![1, 200, 1500, 1_000_000], settings, test: 0.2 };
    let mut heard = 0;
    let report = ablation.run(&data, 1, &mut |_| heard += 1).expect("the rows are sound");
    assert_eq!((report.architectures.len(), report.sizes.len(), heard), (2, 2, 4));
    assert_eq!(report.training_rows + report.test_rows, data.len());
    assert_eq!(report.architectures[1].features, FeatureScale::Raw);
    let [log, raw] = [0, 1].map(|at| report.architectures[at].mse.expect("it converges"));
    assert!(log < 0.5 * raw, "log {log}, raw {raw}");
    let [few, many] = [0, 1].map(|at| report.sizes[at].mse.expect("it converges"));
    assert!(many < few, "{few} with 200 rows, {many} with 1500");
}

#[test]
fn cross_validation_scores_every_row_once() {
    let data = synthetic::training_set(100, 8, &mut rng(5));
    let cv = quick(10).cross_validate(&data, 4, 1).expect("the rows are sound");
    assert_eq!(cv.fold_mse.len(), 4);
    assert!(cv.r2 > 0.8 && cv.r2 < 1.0, "{cv:?}");
    let error = quick(10).cross_validate(&data, 1, 1).expect_err("one fold");
    assert!(matches!(error, TrainError::Setting(SettingError { field: "folds", .. })));
}

#[test]
fn missing_constant_and_infinite_cells_are_no_obstacle() {
    let schema = FeatureSchema {
        input: vec![Feature::size("n"), Feature::size("constant")],
        config: vec![Feature::size("tile"), Feature::flag("on")],
    };
    let mut data = TrainingSet::new(schema);
    for at in 0..600u32 {
        let n = (at % 30 + 1) as f32;
        let (tile, slow) = if at % 3 == 0 { (f32::NAN, 8.0) } else { ((at % 7 + 1) as f32, 1.0) };
        let on = if at % 50 == 0 { f32::INFINITY } else { 0.0 };
        data.push(&[n, 7.0, tile, on], f64::from(n) * slow, at % 30).expect("the row fits");
    }
    let model = quick(60).fit(&data, 1).expect("the rows are sound");
    let scores = predict(&model, &[4.0, 7.0, f32::NAN, 0.0, 4.0, 7.0, 3.0, 0.0, 4.0, 1e30, f32::NEG_INFINITY, 0.0]);
    assert!(scores.iter().all(|score| score.is_finite()), "{scores:?}");
    let ratio = (scores[0] - scores[1]).exp();
    assert!((5.0..12.0).contains(&ratio), "a missing tile is 8 times slower, not {ratio}");
    assert!((scores[2] - scores[0]).abs() < 0.05, "an infinite tile counts as missing: {scores:?}");
}

#[test]
fn unusable_rows_are_typed_errors() {
    let good = synthetic::training_set(10, 10, &mut rng(6));
    let fit = |change: &dyn Fn(&mut TrainingSet)| {
        let mut data = good.clone();
        change(&mut data);
        quick(1).fit(&data, 1).map(|_| ()).expect_err("the rows are unsound")
    };
    assert_eq!(fit(&|data| *data = data.subset(&[0; 5])), TrainError::TooFewRows { rows: 5, needed: 20 });
    assert_eq!(fit(&|data| data.costs[7] = f64::NAN), TrainError::NonFiniteTarget { row: 7 });
    assert_eq!(fit(&|data| data.costs[8] = -1.0), TrainError::NonFiniteTarget { row: 8 });
    assert!(matches!(fit(&|data| data.rows.truncate(9)), TrainError::Length { field: "rows", .. }));
    assert!(matches!(fit(&|data| data.groups.truncate(9)), TrainError::Length { field: "groups", .. }));
    let empty = |data: &mut TrainingSet| data.schema = FeatureSchema { input: vec![], config: vec![] };
    assert_eq!(fit(&empty), TrainError::NoFeatures);
    let bad = MlpFit { settings: Settings { batch: 0, ..quick(1).settings }, screen: None };
    assert!(matches!(bad.fit(&good, 1).map(|_| ()), Err(TrainError::Setting(SettingError { field: "batch", .. }))));
}

#[test]
fn an_absurd_learning_rate_is_reported_as_divergence() {
    let data = synthetic::training_set(60, 10, &mut rng(7));
    let settings = Settings { learning_rate: 1e30, weight_decay: 1.0, ..quick(5).settings };
    let error = MlpFit { settings, screen: None }.fit(&data, 1).map(|_| ()).expect_err("it diverges");
    assert!(matches!(error, TrainError::Diverged { .. }), "{error}");
}

#[test]
fn a_flat_cost_is_predicted_as_it_is() {
    let mut data = synthetic::training_set(20, 10, &mut rng(8));
    data.costs.fill(2.5e-3);
    let model = quick(20).fit(&data, 1).expect("the rows are sound");
    let worst = predict(&model, &data.rows).iter().map(|y| (y - 2.5e-3f32.ln()).abs()).fold(0.0, f32::max);
    assert!(worst < 0.05, "{worst}");
}

#[test]
fn early_stopping_restores_the_best_weights() {
    let data = synthetic::training_set(40, 4, &mut rng(9));
    let settings = Settings { epochs: 200, patience: 5, split_by: SplitBy::Row, ..quick(1).settings };
    let model = MlpFit { settings, screen: None }.fit(&data, 1).expect("the rows are sound");
    let report = model.report();
    assert_eq!(report.best_mse(), report.validation_mse.iter().copied().fold(f64::INFINITY, f64::min));
    assert!(report.validation_mse.len() <= report.best_epoch + 6);
}

#[test]
fn the_error_of_inputs_that_chose_no_epoch_is_not_the_lower_one() {
    let settings = Settings { epochs: 60, patience: 60, split_by: SplitBy::Group, ..quick(1).settings };
    let fit = MlpFit { settings, screen: None };
    let mut above = 0;
    for seed in 0..4 {
        let data = synthetic::training_set(30, 4, &mut rng(20 + seed));
        let report = fit.fit(&data, seed).expect("the rows are sound").report().clone();
        let unseen = report.unseen_mse.expect("inputs were set aside");
        assert!(unseen.is_finite() && unseen >= report.best_mse(), "{unseen} {}", report.best_mse());
        above += usize::from(unseen > report.best_mse());
    }
    assert!(above > 0, "halves of few inputs never choose the same epoch each time");
}

#[test]
fn the_screen_keeps_the_best_point_of_the_full_model() {
    let data = synthetic::training_set(200, 10, &mut rng(10));
    let model = MlpFit { screen: Some(quick_screen()), ..quick(10) }.fit(&data, 1).expect("the rows are sound");
    let (mut lost, mut kept) = (0, 0.0);
    for seed in 100..130 {
        let mut rng = rng(seed);
        let input = synthetic::Input::draw(&mut rng);
        let rows = synthetic::config_rows(&input, 4000, &mut rng);
        let (mut dense, mut cheap) = (vec![0.0; 4000], vec![0.0; 4000]);
        let mut scorer = model.bind_features(&input.features()).expect("the features fit");
        assert!(!scorer.score_screen(&rows, &mut cheap), "without a sample there is nothing to distil on");
        scorer.set_sample(synthetic::config_rows(&input, 2048, &mut rng));
        scorer.score(&rows, &mut dense);
        assert!(scorer.score_screen(&rows, &mut cheap), "there is a screen");
        let report = scorer.screen_report().expect("there is a screen");
        let best = (0..4000).min_by(|&a, &b| dense[a].total_cmp(&dense[b])).expect("there are points");
        let least = cheap.iter().copied().fold(f32::INFINITY, f32::min);
        lost += usize::from(cheap[best] > least + report.margin);
        kept += report.kept / 30.0;
    }
    assert!(lost <= 1, "{lost} of 30 best points were screened away");
    assert!(kept < 0.3, "{kept} of the points were kept");
}

#[test]
fn a_screen_keeps_the_least_share_however_well_it_does() {
    let data = synthetic::training_set(100, 10, &mut rng(11));
    let mut model = quick(5).fit(&data, 1).expect("the rows are sound");
    let input = synthetic::Input::draw(&mut rng(1));
    let sample = synthetic::config_rows(&input, 2048, &mut rng(2));
    let mut report = |least_kept| {
        model.set_screen(Some(ScreenSettings { least_kept, ..quick_screen() })).expect("the settings are in range");
        let mut scorer = model.bind_features(&input.features()).expect("the features fit");
        scorer.set_sample(sample.clone());
        scorer.screen_report().expect("there is a screen").clone()
    };
    let (none, third) = (report(0.0), report(0.33));
    assert!(none.kept < 0.33 && none.margin == 1.5 * none.widest_excess);
    assert!(third.kept >= 0.33 && third.margin > none.margin && third.widest_excess == none.widest_excess);
}

#[test]
fn a_bound_problem_brings_its_own_sample() {
    let data = toy::training_set(&[100, 700, 3000, 20_000, 100_000], 60, 1);
    let problem = toy::problem(5000);
    let screened = |settings: ScreenSettings| {
        let model = MlpFit { screen: Some(settings), ..quick(5) }.fit(&data, 1).expect("the rows are sound");
        let scorer = model.bind(&problem).expect("the schema is the toy's");
        scorer.screen().map(|screen| screen.margin)
    };
    let margin = screened(quick_screen());
    assert!(margin.is_some_and(|margin| margin.is_finite() && margin >= 0.0), "{margin:?}");
    assert_eq!(margin, screened(quick_screen()), "the same problem gives the same screen");
    let least_space = 1 << 40;
    assert_eq!(screened(ScreenSettings { least_space, ..quick_screen() }), None, "a small space needs no screen");
}

#[test]
fn screen_settings_out_of_range_are_named() {
    let data = synthetic::training_set(10, 10, &mut rng(12));
    let mut model = quick(1).fit(&data, 1).expect("the rows are sound");
    let bad = [
        ("safety", ScreenSettings { safety: 0.5, ..quick_screen() }),
        ("least_kept", ScreenSettings { least_kept: 1.0, ..quick_screen() }),
        ("points", ScreenSettings { points: 3, ..quick_screen() }),
        ("epochs", ScreenSettings { epochs: 0, ..quick_screen() }),
        ("calibration", ScreenSettings { calibration: f64::NAN, ..quick_screen() }),
    ];
    for (name, settings) in bad {
        let fit = MlpFit { screen: Some(settings.clone()), ..quick(1) }.fit(&data, 1).map(|_| ());
        assert!(
            matches!(fit, Err(TrainError::Setting(SettingError { field, .. })) if field == name),
            "{name}: {fit:?}"
        );
        assert!(model.set_screen(Some(settings)).is_err(), "{name}");
    }
    assert!(model.set_screen(Some(quick_screen())).is_ok());
    assert_eq!(model.screen_settings(), Some(&quick_screen()));
}

#[test]
fn a_model_of_several_devices_is_fixed_to_one() {
    let data = synthetic::training_set(100, 10, &mut rng(11));
    let model = quick(5).fit(&data, 1).expect("the rows are sound");
    let (input, width) = (data.schema.input.len(), data.schema.width());
    let last = data.row(0)[input - 2..input].to_vec();
    let fixed = model.fixing(&last).expect("the input has two columns");
    assert_eq!(fixed.schema().width(), width - 2);
    let (mut full, mut short) = (Vec::new(), Vec::new());
    for i in 0..200 {
        let (row, config) = data.row(i).split_at(input);
        full.extend([&row[..input - 2], &last, config].concat());
        short.extend([&row[..input - 2], config].concat());
    }
    let agree = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
    assert!(predict(&model, &full).iter().zip(&predict(&fixed, &short)).all(agree));
    let read = Mlp::from_value(fixed.to_value()).expect("it is a model like any other");
    assert_eq!(predict(&read, &short), predict(&fixed, &short));
    assert!(model.fixing(&vec![1.0; input + 1]).is_err());
}
