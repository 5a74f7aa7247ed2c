//! What `tune` records on one device, and `plan` knows of it on another.

use crate::home::Home;
use std::fs;
use std::thread::available_parallelism;

const SHAPE: [&str; 5] = ["plan", "gemm", "m=256", "n=64", "k=256"];

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
    let tune = ["tune", "gemm", "--threads", "2", "--samples", "200", "--no-table", "--dtype", "f32"];
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
