//! `repository`: training data in a folder, and out of it again.

use crate::home::Home;
use std::fmt::Write;
use std::path::Path;

const SIDECAR: &str = r#"{
    "format": "tilewright-dataset", "version": 1,
    "columns": {
        "device": "device", "input": ["n"], "config": [], "variant": "variant",
        "time": {"column": "s", "unit": "s"}, "status": {"column": "ok", "ok": 1}, "group": "family"
    }
}"#;

fn write(path: &Path, sidecar: &str) -> String {
    let mut table = "device,family,n,variant,s,ok\n".to_owned();
    for (device, start) in [("a", 30.0), ("b", 100.0), ("c", 300.0)] {
        for n in 1..40 {
            let (flat, steep) = (start, f64::from(n * n));
            writeln!(table, "{device},{},{n},flat,{flat},1\n{device},{},{n},steep,{steep},1", n % 5, n % 5).unwrap();
            writeln!(table, "{device},{},{n},broken,,0", n % 5).unwrap();
        }
    }
    std::fs::write(path, table).unwrap();
    std::fs::write(path.with_extension("schema.json"), sidecar).unwrap();
    path.display().to_string()
}

#[test]
fn what_was_recorded_comes_back() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name).display().to_string();
    let data = write(&home.path().join("made.csv"), SIDECAR);
    std::fs::write(at("devices.csv"), "device,cores\na,3\nb,10\nc,30\n").unwrap();
    let (store, devices) = (at("store"), at("devices.csv"));
    let imported = home.answer(&["repository", "import", &store, &data, "--device-features", &devices]);
    assert_eq!(imported["recorded"][2]["cases"], 39);
    // Another machine records a second set.
    home.answer(&["repository", "import", &store, &data, "--set", "other"]);
    let listed = home.answer(&["repository", "list", &store]);
    assert_eq!(listed["recorded"].as_array().map(Vec::len), Some(6));
    let first = &listed["recorded"][0];
    assert_eq!((&first["set"], &first["device"], &first["cases"]), (&"made".into(), &"a".into(), &39.into()));
    assert_eq!((&first["device_features"], &listed["recorded"][5]["device_features"]), (&1.into(), &0.into()));
    let (out, known) = (at("out.csv"), at("known.csv"));
    let exported = home.answer(&["repository", "export", &store, "made", "--out", &out, "--device-features", &known]);
    assert_eq!((&exported["cases"], &exported["rows"]), (&117.into(), &351.into()));
    assert_eq!(std::fs::read_to_string(&known).unwrap(), "device,cores\na,3\nb,10\nc,30\n");
    let score = |data: &str| {
        let all = ["select", "evaluate", data, "--method", "forest", "--holdout", "row:0.3"];
        home.answer(&all)["fraction_of_oracle"].as_f64().unwrap()
    };
    assert_eq!(score(&data), score(&out));
    let transfer = ["transfer", "evaluate", &out, "--device-features", &known, "--target", "b"];
    assert!(home.answer(&transfer)["fraction_of_oracle"].as_f64().unwrap() > 0.5);
}

/// Whatever is wrong with the files of a repository: `list` tells the rest, `plan` answers, and both name the file.
#[test]
fn damaged_segments_are_listed() {
    let home = Home::new();
    home.answer(&["tune", "gemm.cpu", "--threads", "1", "--dtype", "f32", "--no-table", "--samples", "40"]);
    // Of another device by its number of threads, so that what it recorded is what is known.
    std::fs::remove_dir_all(home.path().join("profiles")).unwrap();
    let mut files = home.files("repository");
    files.retain(|file| file.extension().is_some_and(|e| e == "seg"));
    let segment = files.remove(0);
    assert!(files.is_empty(), "{files:?}");
    let (format, store) = (home.path().join("repository/format"), home.path().join("repository"));
    let whole = std::fs::read(&segment).unwrap();
    let plan = ["plan", "gemm", "m=33", "n=21", "k=17", "--threads", "2", "--budget=100ms", "--fresh"];
    let list = ["repository", "list", store.to_str().unwrap()];
    let named = |args: &[&str], file: &Path| {
        let answer = home.answer(args);
        let damaged = answer["damaged"].as_array().unwrap_or_else(|| panic!("{args:?}: {answer}")).clone();
        let count = damaged.iter().filter(|one| one.as_str().unwrap().contains(file.to_str().unwrap())).count();
        assert_eq!(count, 1, "{args:?}: {damaged:?}");
    };
    assert!(home.answer(&plan)["damaged"].is_null() && home.answer(&list)["damaged"].is_null());
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for bytes in [&[][..], &whole[..7], &whole[..whole.len() / 2], &flipped, b"a diary\n"] {
        std::fs::write(&segment, bytes).unwrap();
        named(&plan, &segment);
        named(&list, &segment);
    }
    std::fs::write(&segment, &whole).unwrap();
    std::fs::write(&format, "tilewright rep").unwrap();
    named(&plan, &store);
    home.error(&list, 1, "store");
}

#[test]
fn what_cannot_be_kept_names_its_field() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name).display().to_string();
    let data = write(&home.path().join("made.csv"), SIDECAR);
    let store = at("store");
    home.error(&["repository", "list", &store], 2, "store");
    std::fs::create_dir(at("empty")).unwrap();
    home.error(&["repository", "list", &at("empty")], 2, "store");
    assert_eq!(std::fs::read_dir(at("empty")).unwrap().count(), 0, "looking writes nothing");
    home.error(&["repository", "list", &home.path().display().to_string()], 1, "store");
    home.error(&["repository", "import", &store, &data, "--set", "a\nb"], 2, "set");
    home.error(&["repository", "list", "redis://user@host"], 2, "store");
    let tiled = SIDECAR.replace(r#""config": []"#, r#""config": ["family"]"#).replace(r#", "group": "family""#, "");
    let tiled = write(&home.path().join("tiled.csv"), &tiled);
    home.error(&["repository", "import", &store, &tiled], 2, &tiled);
    assert!(!Path::new(&store).exists(), "nothing is written before all of it was looked at");
    home.answer(&["repository", "import", &store, &data]);
    home.error(&["repository", "export", &store, "none", "--out", &at("out.csv")], 3, "set");
    home.error(&["repository", "export", &store, "made", "--out", &at("out.txt")], 2, "out");
}
