//! `select`: choices among variants of recorded datasets.

use crate::home::Home;
use std::fmt::Write;
use std::path::PathBuf;

const SIDECAR: &str = r#"{
    "format": "tilewright-dataset", "version": 1,
    "columns": {
        "device": "device", "input": ["n", "k"], "config": [], "variant": "variant",
        "time": {"column": "s", "unit": "s"}, "status": {"column": "ok", "ok": 1}, "group": "family"
    }
}"#;

/// Two devices; "flat" costs the same for all sizes, "steep" grows with them, "broken" always fails.
fn dataset(home: &Home, sidecar: &str) -> String {
    let mut table = "device,family,n,k,variant,s,ok\n".to_owned();
    for (device, flat) in [("here", 100.0), ("there", 1000.0)] {
        for n in 1..80 {
            let size = n * n;
            let steep = f64::from(size);
            for (variant, time, ok) in [("flat", flat, 1), ("steep", steep, 1), ("broken", 1.0, 0)] {
                let time = if ok == 1 { time.to_string() } else { String::new() };
                writeln!(table, "{device},{},{size},{},{variant},{time},{ok}", n % 20, n % 3).unwrap();
            }
        }
    }
    let path: PathBuf = home.path().join("made.csv");
    std::fs::write(&path, table).unwrap();
    std::fs::write(path.with_extension("schema.json"), sidecar).unwrap();
    path.display().to_string()
}

#[test]
fn methods_are_scored_by_their_choices() {
    let home = Home::new();
    let data = dataset(&home, SIDECAR);
    let evaluate = |method: &str| {
        home.answer(&["select", "evaluate", &data, "--method", method, "--holdout", "family:0.25", "--repeats", "2"])
    };
    let of = |answer: &serde_json::Value, field: &str| answer[field].as_f64().unwrap_or_else(|| panic!("{field}"));
    let fixed = of(&evaluate("fixed"), "fraction_of_oracle");
    for method in ["softmax", "regression", "svm", "forest", "trees"] {
        let answer = evaluate(method);
        assert_eq!(answer["method"], method);
        let fraction = of(&answer, "fraction_of_oracle");
        assert!(fraction > 0.93 && fraction > fixed, "{method}: {answer}");
        for field in ["delta_miss", "delta_err", "best5", "worst20", "worst50", "fraction_of_oracle_top3"] {
            assert!((0.0..=1.0).contains(&of(&answer, field)), "{method} {field}: {answer}");
        }
        assert!(of(&answer, "predict_ns") > 0.0 && of(&answer, "predict_cold_ns") > 0.0);
        let interval = &answer["interval"];
        assert!(
            interval["low"].as_f64() <= Some(fraction) && interval["high"].as_f64() >= Some(fraction),
            "{interval}"
        );
        assert_eq!(interval["count"], 2, "devices are the units");
        assert_eq!(answer["failed"], 0, "what always fails is never chosen");
        assert_eq!(answer["devices"].as_array().map(Vec::len), Some(2));
    }
}

/// The best variant depends on a word; one device never ran "steep", and "violet" stands in held-out rows only.
#[test]
fn words_of_inputs_decide_and_new_ones_do_no_harm() {
    let home = Home::new();
    let mut table = "device,family,n,k,variant,s,ok\n".to_owned();
    for device in ["here", "there", "third"] {
        for n in 1..60 {
            let word = if n == 59 { "violet" } else { ["red", "green", "blue"][n % 3] };
            let times = [("flat", 300), ("steep", 10 * n), ("special", if word == "blue" { 20 } else { 900 })];
            for (variant, time) in times.into_iter().filter(|t| device != "there" || t.0 != "steep") {
                writeln!(table, "{device},{},{n},{word},{variant},{time},1", if n == 59 { 99 } else { n % 20 })
                    .unwrap();
            }
        }
    }
    let (path, devices) = (home.path().join("words.csv"), home.path().join("devices.csv"));
    std::fs::write(&path, table).unwrap();
    std::fs::write(path.with_extension("schema.json"), SIDECAR).unwrap();
    std::fs::write(&devices, "device,cores\nhere,1\nthere,2\nthird,3\n").unwrap();
    let path = path.display().to_string();
    let fraction = |answer: &serde_json::Value| answer["fraction_of_oracle"].as_f64().unwrap();
    for method in ["softmax", "forest", "extra-trees", "trees", "process", "blend"] {
        let known = home.answer(&["select", "evaluate", &path, "--method", method, "--holdout", "family:0.25"]);
        assert!(fraction(&known) > 0.9, "{method}: {known}");
        let new = home.answer(&["select", "evaluate", &path, "--method", method, "--holdout", "k=violet"]);
        assert!(new["cases"].as_u64() > Some(0) && fraction(&new) > 0.3, "{method}: {new}");
    }
    let devices = devices.display().to_string();
    let known = ["transfer", "evaluate", &path, "--target", "there", "--device-features", &devices, "--holdout"];
    assert!(fraction(&home.answer(&[&known[..], &["family:0.33"]].concat())) > 0.9);
    assert!(fraction(&home.answer(&[&known[..], &["k=violet"]].concat())) > 0.3);
}

#[test]
fn a_device_that_is_held_out_is_chosen_for_by_the_others() {
    let home = Home::new();
    let data = dataset(&home, SIDECAR);
    let answer = home.answer(&["select", "evaluate", &data, "--method", "regression", "--holdout", "device=there"]);
    assert_eq!(answer["cases"], 79);
}

/// Where the "flat" variant pays off follows from a fact of the device that only the table of devices has.
#[test]
fn facts_of_devices_reach_derived_features() {
    let home = Home::new();
    let derived = r#""device_features": ["start"], "derived": {"rounds": "n / start"}, "columns""#;
    let data = dataset(&home, &SIDECAR.replacen("\"columns\"", derived, 1));
    let table = home.path().join("devices.csv");
    std::fs::write(&table, "device,start\nhere,100\nthere,1000\n").unwrap();
    let common = ["select", "evaluate", &data, "--method", "forest", "--holdout", "device=there"];
    let score = |args: &[&str]| home.answer(args)["fraction_of_oracle"].as_f64().unwrap();
    let known = score(&[&common[..], &["--device-features", table.to_str().unwrap()]].concat());
    // Unknown, the feature is missing everywhere, and the other device's edge is taken for this one's.
    assert!(known > score(&common), "{known}");
    home.error(&[&common[..], &["--device-features", "none.csv"]].concat(), 2, "none.csv");
}

#[test]
fn what_cannot_be_evaluated_names_its_field() {
    let home = Home::new();
    let data = dataset(&home, SIDECAR);
    home.error(&["select", "evaluate", &data, "--holdout", "nothing:0.5"], 2, "holdout");
    home.error(&["select", "evaluate", &data, "--holdout", "n:1.5"], 2, "holdout");
    let twice = dataset(&home, &SIDECAR.replace("\"n\", \"k\"", "\"n\", \"n\""));
    home.error(&["select", "evaluate", &twice], 2, &twice);
    let missing = home.path().join("none.csv").display().to_string();
    home.error(&["select", "evaluate", &missing], 2, &missing);
}

#[test]
fn what_could_not_be_written_is_refused_before_anything_is_fitted() {
    let home = Home::new();
    let data = dataset(&home, SIDECAR);
    let folder = home.path().display().to_string();
    let with = |map: &str, axes: &[&str]| [&["select", "evaluate", &data, "--map", map][..], axes].concat().join("\n");
    let error = |args: String, field: &str| home.error(&args.split('\n').collect::<Vec<_>>(), 2, field).message;
    assert!(error(with(&folder, &[]), "map").contains("is a folder"));
    error(with("/proc/none/x.svg", &[]), "map");
    error(with(&format!("{folder}/x.svg"), &["--axes", "n,n"]), "axes");
    assert!(!home.path().join("x.svg").exists());
    home.error(&["model", "evaluate", &data, "--holdout", "none:0.5"], 2, "holdout");
}

#[test]
fn a_table_without_rows_and_a_device_on_which_nothing_ran_are_named() {
    let home = Home::new();
    let data = dataset(&home, SIDECAR);
    let table = std::fs::read_to_string(&data).unwrap();
    let dead: String = table
        .lines()
        .map(|l| if l.starts_with("there") { format!("{}0\n", &l[..l.len() - 1]) } else { format!("{l}\n") })
        .collect();
    std::fs::write(&data, dead).unwrap();
    let nothing = home.error(&["select", "evaluate", &data, "--method", "fixed"], 2, "dataset").message;
    assert!(nothing.contains("device \"there\": no case"), "{nothing}");
    std::fs::write(&data, table.lines().next().unwrap()).unwrap();
    for command in [&["select", "evaluate", &data][..], &["transfer", "evaluate", &data, "--target", "here"]] {
        assert!(home.error(command, 2, &data).message.contains("no rows"));
    }
}

#[test]
fn nothing_that_ran_is_an_error_of_the_dataset() {
    let home = Home::new();
    let data = dataset(&home, &SIDECAR.replace("\"ok\": 1", "\"ok\": 7"));
    home.error(&["select", "evaluate", &data, "--method", "regression"], 2, "dataset");
}
