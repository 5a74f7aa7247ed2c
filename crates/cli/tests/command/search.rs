//! Searches of recordings, and recordings of others.

use crate::home::Home;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A Kernel Tuner cache of 16 x 8 points, one in ten failed; the optimum takes 1 ms.
pub(crate) fn cache(home: &Home, name: &str, slower: f64) -> PathBuf {
    let mut entries = serde_json::Map::new();
    for x in 0..16 {
        for y in 0..8 {
            let away = f64::from((x - 11_i32).pow(2) + 3 * (y - 2_i32).pow(2));
            let time = match (x + y) % 10 {
                9 => json!("RuntimeFailedConfig"),
                _ => json!(slower * (1.0 + 0.05 * away)),
            };
            let entry = json!({"x": x, "y": y, "time": time, "compile_time": 100.0, "benchmark_time": 10.0});
            entries.insert(format!("{x},{y}"), entry);
        }
    }
    let all: Vec<i32> = (0..16).collect();
    let file = json!({
        "device_name": name, "kernel_name": "k", "tune_params_keys": ["x", "y"],
        "tune_params": {"x": all, "y": all[..8]}, "cache": entries,
    });
    let path = home.path().join(format!("{name}.json"));
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

fn device(path: &std::path::Path) -> String {
    format!("replay:{}", path.display())
}

#[test]
fn every_field_of_the_contract_is_there() {
    let home = Home::new();
    let file = cache(&home, "one", 1.0);
    let found = home.answer(&[
        "search",
        "--device",
        &device(&file),
        "--strategy",
        "random",
        "--budget",
        "5,20",
        "--repeats",
        "8",
    ]);
    assert_eq!(found["strategy"], "random");
    assert_eq!(found["optimum_s"], 0.001);
    assert_eq!(found["budgets"], json!([5, 20]));
    let fractions: Vec<f64> = found["fraction_of_optimum"].as_array().unwrap().iter().flat_map(Value::as_f64).collect();
    assert!(fractions[0] <= fractions[1] && fractions[1] <= 1.0 && fractions[0] > 0.0, "{fractions:?}");
    assert_eq!((&found["stopped_by"], &found["stopped_at_fraction"]), (&json!("evaluations"), &json!(20.0 / 128.0)));
    assert!(found["miss_rate"].as_f64().unwrap() <= 1.0 && found["seconds"].as_f64().unwrap() > 0.0);
    // 20 evaluations of 0.11 s each.
    assert!((found["simulated_s"].as_f64().unwrap() - 2.2).abs() < 1e-9);
}

#[test]
fn a_bound_that_was_learned_for_another_epsilon_says_so() {
    let home = Home::new();
    let file = device(&cache(&home, "one", 1.0));
    let warns = |strategy: &str, epsilon: &str| {
        let run = home.run(&["search", "--device", &file, "--strategy", strategy, "--epsilon", epsilon]);
        assert!(run.status.success());
        String::from_utf8(run.stderr).unwrap().contains("learned at an epsilon of 5%")
    };
    assert!(warns("early-stop", "0.1") && !warns("early-stop", "0.05") && !warns("early-stop-conservative", "0.1"));
    assert!(warns("guided-stop", "0.1") && !warns("guided-stop", "0.05") && !warns("random,guided", "0.1"));
}

#[test]
fn strategies_stop_by_themselves_and_are_compared() {
    let home = Home::new();
    let (file, plot) = (device(&cache(&home, "one", 1.0)), home.path().join("plot.svg"));
    let plotted = plot.display().to_string();
    let names = "auto,early-stop,early-stop-conservative,exhaustive";
    let found = home.answer(&["search", "--device", &file, "--strategy", names, "--repeats", "4", "--plot", &plotted]);
    let rows = found["compared"].as_array().unwrap();
    assert_eq!(rows.iter().map(|r| r["strategy"].as_str().unwrap()).collect::<Vec<_>>().join(","), names);
    assert_eq!(rows[2]["stopped_by"], "bound");
    assert!((rows[2]["stopped_at_fraction"].as_f64().unwrap() - 0.9).abs() < 0.02);
    assert_eq!((&rows[3]["stopped_by"], &rows[3]["miss_rate"]), (&json!("exhausted"), &json!(0.0)));
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.matches("<polygon").count() == 4 && svg.trim_end().ends_with("</svg>"));
    assert!(names.split(',').all(|name| svg.contains(name)), "the legend names every strategy");
    let grid =
        home.answer(&["search", "--device", &file, "--strategy", "early-stop-vuduc", "--repeats", "3", "--grid"]);
    assert_eq!(grid["grid"].as_array().unwrap().len(), 36);
}

/// The mean of the pairs is the difference of the means, and chance does not explain it where the budget is most of the space.
#[test]
fn the_first_strategy_is_compared_with_the_others_seed_by_seed() {
    let home = Home::new();
    let file = device(&cache(&home, "one", 1.0));
    let asked =
        ["search", "--device", &file, "--strategy", "guided,random,local", "--budget", "10,40", "--repeats", "12"];
    let found = home.answer(&asked);
    let (rows, above) = (found["compared"].as_array().unwrap(), found["above"].as_array().unwrap());
    assert_eq!(above.len(), 4, "two others at two budgets");
    let number = |of: &Value, field: &str| of[field].as_f64().unwrap();
    for (at, pair) in above.iter().enumerate() {
        let (other, budget) = (&rows[1 + at / 2], at % 2);
        assert_eq!(
            (&pair["what"], &pair["budget"], &pair["count"]),
            (&other["strategy"], &found["budgets"][budget], &json!(12))
        );
        let fraction = |row: &Value| row["fraction_of_optimum"][budget].as_f64().unwrap();
        assert!((number(pair, "mean") - (fraction(&rows[0]) - fraction(other))).abs() < 1e-12, "{pair}");
        assert!(number(pair, "low") <= number(pair, "mean") && number(pair, "mean") <= number(pair, "high"));
    }
    assert!(number(&above[1], "low") > 0.0, "guided is ahead of random: {}", above[1]);
    let text = String::from_utf8(home.run(&asked).stdout).unwrap();
    assert!(text.contains("guided above the others, paired by seed, with 95%"), "{text}");
    let alone = home.answer(&["search", "--device", &file, "--strategy", "random", "--repeats", "3"]);
    assert!(alone.get("above").is_none());
}

#[test]
fn other_devices_are_begun_from() {
    let home = Home::new();
    let (here, there) = (device(&cache(&home, "one", 1.0)), cache(&home, "other", 3.0));
    let warm = ["search", "--device", &here, "--budget", "1", "--warm-start", &there.display().to_string()];
    let found = home.answer(&warm);
    assert_eq!((&found["strategy"], &found["fraction_of_optimum"]), (&json!("auto"), &json!([1.0])));
}

#[test]
fn recordings_of_others_become_datasets() {
    let home = Home::new();
    let (file, out) = (cache(&home, "one", 1.0), home.path().join("one.csv"));
    let (file, out) = (file.display().to_string(), out.display().to_string());
    let summary = home.answer(&["data", "import", &file, "--out", &out]);
    assert_eq!((&summary["rows"], &summary["devices"], &summary["configs"]), (&json!(128), &json!(1), &json!(128)));
    let described = home.answer(&["data", "describe", &out]);
    assert_eq!(described["failures"], summary["failures"]);
    let of = |path: &str| {
        let device = format!("replay:{path}");
        let mut answer = home.answer(&["search", "--device", &device, "--budget", "10,40", "--strategy", "genetic"]);
        for volatile in ["seconds", "evaluations_per_second"] {
            answer.as_object_mut().unwrap().remove(volatile);
        }
        answer
    };
    assert_eq!(of(&file), of(&out));
}

#[test]
fn what_was_not_recorded_is_not_searched() {
    let home = Home::new();
    let file = cache(&home, "one", 1.0);
    let mut recorded: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    recorded["cache"].as_object_mut().unwrap().retain(|name, _| name.ends_with('2'));
    std::fs::write(&file, recorded.to_string()).unwrap();
    let found = home.answer(&["search", "--device", &device(&file), "--strategy", "exhaustive"]);
    assert_eq!((&found["points"], &found["evaluations"], &found["miss_rate"]), (&json!(16), &json!(16.0), &json!(0.0)));
}

#[test]
fn what_is_wrong_is_named() {
    let home = Home::new();
    let file = cache(&home, "one", 1.0);
    let replay = device(&file);
    home.error(&["search", "--device", &replay, "--budget", "0"], 2, "budget");
    home.error(&["search", "--device", &replay, "--time", "0s"], 2, "time");
    home.error(&["search", "--device", &replay, "--strategy", "magic"], 2, "strategy");
    home.error(&["search", "--device", &replay, "--epsilon", "0"], 2, "epsilon");
    home.error(&["search", "--device", &replay, "--alpha", "1.5"], 2, "alpha");
    home.error(&["search", "--device", "cpu"], 2, "device");
    home.error(&["search", "--device", &replay, "--strategy", "random", "--grid"], 2, "grid");
    let path = file.display().to_string();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert!(home.error(&["search", "--device", &replay], 2, &path).message.contains("line"));
    std::fs::write(&file, text.replacen("\"time\":", "\"time\": \"4.5\", \"was\":", 1)).unwrap();
    assert!(home.error(&["data", "import", &path], 2, &path).message.contains("4.5"));
    std::fs::write(&file, text.replacen("\"cache\":{", "\"cache\":{\"0,0\":{\"x\":0,\"y\":0,\"time\":7.0},", 1))
        .unwrap();
    assert!(home.error(&["search", "--device", &replay], 2, &path).message.contains("0,0"));
    std::fs::write(&file, text.replace("\"time\":", "\"time\": \"RuntimeFailedConfig\", \"was\":")).unwrap();
    home.error(&["search", "--device", &replay], 3, &path);
}
