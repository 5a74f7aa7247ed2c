//! `transfer`: choices on a device that ran nothing; and the maps of `select`.

use crate::home::Home;
use std::fmt::Write;

const SIDECAR: &str = r#"{
    "format": "tilewright-dataset", "version": 1,
    "columns": {
        "device": "device", "input": ["n", "k"], "config": [], "variant": "variant",
        "time": {"column": "s", "unit": "s"}, "status": {"column": "ok", "ok": 1}, "group": "family"
    }
}"#;

/// "many" costs a start for every core, "one" none; "d" never recorded "third", which is slow.
fn dataset(home: &Home) -> String {
    let mut table = "device,family,n,k,variant,s,ok\n".to_owned();
    for (device, cores) in [("a", 4), ("b", 16), ("c", 40), ("d", 100)] {
        for i in 0..120 {
            let n = 10 * i * i + 10;
            let times = [("one", f64::from(n)), ("many", f64::from(90 * cores) + f64::from(n) / 10.0)];
            for (variant, time) in times {
                writeln!(table, "{device},{},{n},{},{variant},{time},1", i % 20, i % 3).unwrap();
            }
            if device != "d" {
                writeln!(table, "{device},{},{n},{},third,1e9,1", i % 20, i % 3).unwrap();
            }
        }
    }
    let path = home.path().join("made.csv");
    std::fs::write(&path, table).unwrap();
    std::fs::write(path.with_extension("schema.json"), SIDECAR).unwrap();
    path.display().to_string()
}

fn features(home: &Home, text: &str) -> String {
    let path = home.path().join("devices.csv");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const DEVICES: &str = "device,vendor,cores,year\na,x,4,2013\nb,y,16,2010\nc,x,40,2012\nd,y,100,2011\n";

#[test]
fn an_unseen_device_is_chosen_for() {
    let home = Home::new();
    let (data, devices) = (dataset(&home), features(&home, DEVICES));
    let common = ["transfer", "evaluate", &data, "--device-features", &devices, "--repeats", "2", "--target", "c"];
    let evaluate = |more: &[&str]| home.answer(&[&common, more].concat());
    for more in
        [&["--dfs", "auto"][..], &["--dfs", "full"], &["--dfs", "cv"], &["--dfs", "forward"], &["--sources", "b,d"]]
    {
        let answer = evaluate(more);
        for field in ["fraction_of_oracle", "native", "random", "majority", "fixed_best", "seconds"] {
            let value = answer[field].as_f64().unwrap_or_else(|| panic!("{field}: {answer}"));
            assert!(value > 0.0, "{field}: {answer}");
        }
        assert!(answer["features"].is_array());
        assert!(answer["fraction_of_oracle"].as_f64().unwrap() > 0.9, "{more:?}: {answer}");
    }
    let auto = evaluate(&["--dfs", "auto"]);
    assert!(auto["features"].as_array().unwrap().contains(&"cores".into()), "{auto}");
    assert!(auto["fraction_of_oracle"].as_f64() > auto["majority"].as_f64(), "{auto}");
    let above = auto["above"].as_array().unwrap().iter().find(|a| a["what"] == "majority").unwrap();
    let difference = auto["fraction_of_oracle"].as_f64().unwrap() - auto["majority"].as_f64().unwrap();
    assert!((above["mean"].as_f64().unwrap() - difference).abs() < 1e-9, "paired: {above}");
    // Features come in one by one, while they gain more than chance would.
    let forward = evaluate(&["--dfs", "forward"]);
    let found = &forward["reason"]["forward"];
    assert_eq!(forward["dfs"], "forward");
    let (features, scores) = (found["features"].as_array().unwrap(), found["scores"].as_array().unwrap());
    assert!(scores.len() == features.len() + 1 && found["fits"].as_u64().unwrap() >= 27, "{forward}");
    assert!(scores.is_sorted_by(|a, b| a.as_f64() < b.as_f64()), "{forward}");
    let profiles = home.path().join("profiles.csv");
    std::fs::write(&profiles, "variant,kernel,input,metric,value\nmany,k,0,inst_fp_32,0.9\none,k,0,inst_fp_32,0.8\n")
        .unwrap();
    let p = evaluate(&["--dfs", "p", "--profiles", profiles.to_str().unwrap()]);
    assert_eq!(p["features"], serde_json::json!(["cores"]));
}

#[test]
fn shots_are_worth_something_and_end_with_the_inputs() {
    let home = Home::new();
    let (data, devices) = (dataset(&home), features(&home, DEVICES));
    let common = ["transfer", "evaluate", &data, "--device-features", &devices, "--repeats", "2", "--target", "c"];
    let answer = home.answer(&[&common[..], &["--shots", "3,250"]].concat());
    let shots = answer["shots"].as_array().unwrap();
    let counts: Vec<u64> = shots.iter().map(|s| s["shots"].as_u64().unwrap()).collect();
    assert_eq!(counts, [0, 3, 250]);
    let of = |i: usize, field: &str| shots[i][field].as_f64().unwrap();
    assert!(of(2, "timed") < 250.0 && of(2, "next_saves") == 0.0 && of(1, "timed") == 3.0, "{answer}");
    assert!(of(1, "expected_loss") < of(0, "expected_loss") && of(2, "fraction_of_oracle") > 0.97, "{answer}");
    assert_eq!(answer["fraction_of_oracle"], shots[2]["fraction_of_oracle"]);
    assert_eq!(answer["shots_above_none"][1]["shots"], 250);
    // None is the choice without shots.
    let none = home.answer(&common);
    assert_eq!(none["fraction_of_oracle"], shots[0]["fraction_of_oracle"]);
    home.error(&[&common[..], &["--shots", "251"]].concat(), 2, "--shots <K>");
}

#[test]
fn what_cannot_be_transferred_names_its_field() {
    let home = Home::new();
    let (data, devices) = (dataset(&home), features(&home, DEVICES));
    let with = |more: &[&str], field: &str| {
        let common = ["transfer", "evaluate", &data, "--device-features", &devices];
        home.error(&[&common, more].concat(), 2, field)
    };
    with(&["--target", "z"], "target");
    with(&["--target", "a", "--sources", "b,z"], "sources");
    with(&["--target", "a", "--sources", "a"], "sources");
    with(&["--target", "a", "--sources", "b,c", "--dfs", "cv"], "sources");
    with(&["--target", "a", "--sources", "b,c", "--dfs", "forward"], "sources");
    with(&["--target", "a", "--dfs", "p"], "profiles");
    // Without a table, only published devices are known.
    home.error(&["transfer", "evaluate", &data, "--target", "a"], 2, "device-features");
    features(&home, "device,cores\na,4\nb,\nc,40\nd,100\n");
    with(&["--target", "b", "--dfs", "full"], "device-features");
    features(&home, "device,cores\na,4\na,4\n");
    with(&["--target", "a"], &devices);
}

/// Configurations have no names that another device knows: what `auto` learns with tells them apart by their parameters.
#[test]
fn configurations_are_chosen_for_an_unseen_device() {
    let home = Home::new();
    let mut table = "device,n,tile,s,ok\n".to_owned();
    for (device, cores) in [("a", 4), ("b", 16), ("c", 40), ("d", 100)] {
        for i in 1..60u32 {
            // What the tiles do not fill runs all the same; no two inputs were tried with the same tiles.
            let n = 37 * i;
            for tile in [5 + i % 7, 20 + i % 11, 64 + i % 13, 250 + i % 17] {
                let rounds = n.div_ceil(tile).div_ceil(cores);
                writeln!(table, "{device},{n},{tile},{},1", rounds * (tile + 8)).unwrap();
            }
        }
    }
    let path = home.path().join("tiled.csv");
    std::fs::write(&path, table).unwrap();
    let sidecar = SIDECAR
        .replace(r#"["n", "k"]"#, r#"["n"]"#)
        .replace(r#""config": [], "variant": "variant""#, r#""config": ["tile"], "variant": null"#);
    std::fs::write(path.with_extension("schema.json"), sidecar.replace(r#", "group": "family""#, "")).unwrap();
    let devices = features(&home, DEVICES);
    let data = path.display().to_string();
    let common = ["transfer", "evaluate", &data, "--device-features", &devices, "--dfs", "full"];
    let answer = home.answer(&[&common[..], &["--target", "c"]].concat());
    assert_eq!(answer["learner"], "trees");
    assert!(answer["native"].as_f64() > Some(0.95), "{answer}");
    let forest = home.answer(&[&common[..], &["--target", "c", "--learner", "forest"]].concat());
    assert!(answer["fraction_of_oracle"].as_f64() > forest["random"].as_f64(), "{answer} {forest}");
    assert_eq!(forest["learner"], "forest");
}

/// A source of which a split leaves nothing, and one on which nothing ran, say nothing and stop nobody.
#[test]
fn a_source_with_nothing_to_tell_is_left_out() {
    let home = Home::new();
    let (data, devices) = (dataset(&home), features(&home, DEVICES));
    let table = std::fs::read_to_string(&data).unwrap();
    let dead: String = table
        .lines()
        .map(|l| if l.starts_with("a,") { format!("{}0\n", &l[..l.len() - 1]) } else { format!("{l}\n") })
        .collect();
    std::fs::write(&data, dead).unwrap();
    let common = ["transfer", "evaluate", &data, "--device-features", &devices, "--dfs", "full"];
    assert!(home.answer(&[&common[..], &["--target", "c"]].concat())["fraction_of_oracle"].as_f64() > Some(0.5));
    let alone = home.error(&[&common[..], &["--target", "c", "--sources", "a"]].concat(), 2, "sources");
    assert!(alone.message.contains("on which anything ran"), "{}", alone.message);
    // All of the target is held out: it has no model of its own, and says so.
    let whole = home.answer(&[&common[..], &["--target", "c", "--holdout", "device=c"]].concat());
    assert!(whole["native"].is_null() && whole["fixed_best_of_target"].is_null(), "{whole}");
    let text = home.run(&[&common[..], &["--target", "c", "--holdout", "device=c"]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("unknown") && !text.contains("NaN"), "{text}");
}

#[test]
fn maps_are_drawn() {
    let home = Home::new();
    let data = dataset(&home);
    let file = home.path().join("map.svg").display().to_string();
    let common = ["select", "evaluate", &data, "--method", "forest", "--map", &file];
    home.answer(&common);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("chosen by forest"), "{svg}");
    // Texts stand on lines of their own.
    for text in ["fastest", "one", "many", "n", "k"] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text}: {svg}");
    }
    home.error(&[&common[..], &["--axes", "n,none"]].concat(), 2, "axes");
    home.error(&[&common[..], &["--axes", "n"]].concat(), 2, "axes");
}

#[test]
fn without_a_target_every_device_is_one_in_turn() {
    let home = Home::new();
    let (data, devices) = (dataset(&home), features(&home, DEVICES));
    let common = ["transfer", "evaluate", &data, "--device-features", &devices, "--shots", "3"];
    let every = home.answer(&common);
    let of =
        |i: usize, field: &str| every["means"][i][field].as_f64().unwrap_or_else(|| panic!("{i} {field}: {every}"));
    let targets: Vec<&str> =
        every["devices"].as_array().unwrap().iter().map(|d| d["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["a", "b", "c", "d"]);
    let alone = home.answer(&[&common[..], &["--target", "c"]].concat());
    assert_eq!(every["devices"][2]["fraction_of_oracle"], alone["fraction_of_oracle"]);
    let blind: Vec<f64> =
        (0..4).map(|d| every["devices"][d]["shots"][0]["fraction_of_oracle"].as_f64().unwrap()).collect();
    assert!((of(0, "mean") - blind.iter().sum::<f64>() / 4.0).abs() < 1e-12, "{every}");
    assert!(of(0, "mean_top3") >= of(0, "mean") && of(0, "worst") <= of(0, "mean"));
    assert_eq!(
        (&every["means"][1]["what"], &every["means"][0]["above"]),
        (&"after 3 shots".into(), &serde_json::Value::Null)
    );
    let confidence = &every["confidence"];
    let [expected, sure] = ["expected_loss", "sure"].map(|field| confidence[field].as_f64().unwrap());
    assert!((0.0..0.5).contains(&expected) && (0.0..=1.0).contains(&sure), "{confidence}");
}
