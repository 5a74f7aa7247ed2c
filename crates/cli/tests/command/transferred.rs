//! What `tune` records on one device, and `plan` knows of it on another.

use crate::home::Home;
use std::fs;
use std::thread::available_parallelism;

const SHAPE: [&str; 5] = ["plan", "gemm.cpu", "m=256", "n=64", "k=256"];

fn plan(home: &Home, more: &[&str]) -> serde_json::Value {
    home.answer(&[&SHAPE[..], &["--top", "0", "--fresh"], more].concat())
}

#[test]
fn a_device_without_a_profile_learns_from_another() {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return tilewright_testkit::skip("cores", "two numbers of threads are two devices, and there is one core");
    }
    let home = Home::new();
    assert_eq!(plan(&home, &["--threads", "1", "--budget", "50ms"])["knowledge"], "default");
    let tune = ["tune", "gemm.cpu", "--threads", "2", "--samples", "200", "--no-table", "--dtype", "f32"];
    home.answer(&tune);
    // The same campaign again adds no measurement, and none is recorded twice.
    let tuned = home.answer(&tune);
    let measured = tuned["samples"].as_u64().unwrap() + tuned["failed"].as_u64().unwrap();
    let store = home.path().join("repository").display().to_string();
    let listed = home.answer(&["repository", "list", &store]);
    let recorded = &listed["recorded"][0];
    let samples = recorded["samples"].as_u64().unwrap();
    assert!((200..=measured).contains(&samples), "{listed}, of {measured}");
    assert!(recorded["device_features"].as_u64().unwrap() >= 8, "{listed}");

    let planned = plan(&home, &["--threads", "1"]);
    assert_eq!((&planned["knowledge"], &planned["model"]), (&"transfer".into(), &"transfer".into()), "{planned}");
    assert!(planned["predicted_s"].is_null() && planned["considered"].as_u64().unwrap() > 1000, "{planned}");
    // It is kept, and not fitted again.
    let kept = home.only_file("transferred");
    let before = fs::metadata(&kept).unwrap().modified().unwrap();
    assert_eq!(plan(&home, &["--threads", "1"])["config"], planned["config"]);
    assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), before);
    // Elsewhere nothing is recorded, and a profile is asked for by name.
    let elsewhere = home.path().join("elsewhere").display().to_string();
    let nothing = plan(&home, &["--threads", "1", "--budget", "50ms", "--repository", &elsewhere]);
    assert_eq!(nothing["knowledge"], "default");
    let missing = [&SHAPE[..], &["--threads", "1", "--model", "mlp"]].concat();
    assert!(home.error(&missing, 2, "model").message.contains("no profile"));

    // A changed byte: what can be planned without it is.
    let segment = home.files("repository").into_iter().find(|f| f.extension().is_some_and(|e| e == "seg")).unwrap();
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replace("\"m\":", "\"rows\":")).unwrap();
    let without = home.run(&[&SHAPE[..], &["--top", "0", "--fresh", "--threads", "1", "--budget", "50ms"]].concat());
    let said = String::from_utf8_lossy(&without.stderr);
    assert!(without.status.success() && said.contains("checksum") && said.contains(".seg"), "{said}");
}

#[test]
fn shots_are_timed_recorded_and_known_later() {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return tilewright_testkit::skip("cores", "two numbers of threads are two devices, and there is one core");
    }
    let home = Home::new();
    let plan = ["plan", "transpose", "rows=301", "cols=203", "--threads", "1", "--budget", "200ms"];
    let shots = [&plan[..], &["--shots", "2"]].concat();
    assert!(home.error(&shots, 2, "shots").message.contains("no other device"));
    let one = ["plan", "gemm.cpu", "m=64", "n=64", "k=64", "--threads", "1", "--shots", "1"];
    assert!(home.error(&one, 2, "shots").message.contains("one kernel"));

    home.answer(&["tune", "transpose", "--threads", "2", "--samples", "120", "--no-table"]);
    let timed = home.run(&shots);
    let said = String::from_utf8_lossy(&timed.stderr);
    assert!(timed.status.success() && said.contains("shot 2 of 2") && said.contains("2 inputs timed"), "{said}");
    // The plan itself timed a third input, which the next one knows too.
    let later = home.answer(&["plan", "transpose", "rows=100", "cols=900", "--threads", "1", "--budget", "200ms"]);
    let reason = later["reason"].as_str().unwrap();
    assert!(reason.contains("3 inputs timed here"), "{reason}");
    // A selector of the device's own knows better.
    home.answer(&["tune", "transpose", "--threads", "1", "--samples", "120", "--no-table"]);
    let tuned = home.run(&[&shots[..], &["--fresh"]].concat());
    let said = String::from_utf8_lossy(&tuned.stderr);
    assert!(tuned.status.success() && said.contains("no shots"), "{said}");
}
