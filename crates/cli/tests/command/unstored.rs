//! Answers that cannot be stored are answers all the same, and say so.

use crate::home::{Home, fault};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tilewright_runtime::log::CampaignLog;

const TUNE: [&str; 8] = ["tune", "gemm.cpu", "--threads", "1", "--dtype", "f32", "--no-table", "--budget=60s"];
const PLAN: [&str; 8] = ["plan", "gemm.cpu", "m=33", "n=21", "k=17", "--threads", "1", "--budget=100ms"];

fn why(answer: &Value) -> &str {
    answer["unstored"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// What is to be the user's folder is a file, a device, a link to itself, or a place where nobody can write.
#[test]
fn a_home_that_is_none_keeps_no_answer_from_its_caller() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name);
    fs::write(at("file"), "mine").unwrap();
    symlink("turn", at("turn")).unwrap();
    for place in [at("file"), at("file/below"), at("turn"), "/dev/null".into(), "/proc/none".into()] {
        let names_place = |answer: &Value| why(answer).contains(place.to_str().unwrap());
        let (code, planned) = home.json_in(&place, &PLAN);
        assert!(code == 0 && planned["verified"] == true && names_place(&planned), "{planned}");
        assert!(planned["damaged"].is_null(), "{planned}");
        let (code, run) = home.json_in(&place, &["run", "gemm", "m=33", "n=21", "k=17", "--threads", "1"]);
        assert!(code == 0 && run["time_s"].is_number(), "{run}");
        let (code, tuned) = home.json_in(&place, &[&TUNE[..], &["--samples", "60"]].concat());
        assert!(code == 0 && tuned["samples"].as_u64() >= Some(60) && names_place(&tuned), "{tuned}");
        assert!(tuned["profile"].is_null() && tuned["cv_mse"].is_number(), "{tuned}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "mine");
    let out = home.run(&[&TUNE[..], &["--samples", "60", "--out", "/proc/none/x.profile", "--json"]].concat());
    let told = crate::home::document(&TUNE, &out);
    assert!(fault(&told, 2, "out").message.contains("/proc/none/x.profile"));
    assert!(home.files("logs").is_empty(), "nothing was measured");
}

/// The table of inputs that were never seen comes from the model in memory where its file is none.
#[test]
fn a_profile_that_is_not_stored_is_judged_all_the_same() {
    let home = Home::new();
    let tune = ["tune", "spmv.dia", "--threads", "1", "--samples", "24", "--budget=60s"];
    let (code, tuned) = home.json_in(Path::new("/proc/none"), &tune);
    assert!(code == 0 && !tuned["held_out"].as_array().unwrap().is_empty(), "{tuned}");
}

#[test]
fn a_full_disk_is_named_and_nothing_is_lost() {
    let home = Home::new();
    // Room for the log's header and some records.
    let tune = [&TUNE[..], &["--samples", "60"]].concat();
    let (code, answer) = home.json_within(16, &tune);
    let log = home.only_file("logs");
    assert!(code == 0 && why(&answer).contains(log.to_str().unwrap()) && why(&answer).contains("no space"), "{answer}");
    let (_, kept) = CampaignLog::read(&log).unwrap();
    let all = answer["samples"].as_u64().unwrap() + answer["failed"].as_u64().unwrap();
    assert!(kept.len() > 10 && (kept.len() as u64) < all, "{} records in 16 KiB of {answer}", kept.len());
    let resumed = home.answer(&tune);
    assert_eq!(resumed["resumed"], kept.len());
    // The profile does not fit: the old one stays.
    let profile = home.only_file("profiles");
    let before = fs::read(&profile).unwrap();
    let more = [&TUNE[..], &["--samples", "61"]].concat();
    // Room for the longer log, not for the profile.
    let kib = fs::metadata(&log).unwrap().len() / 1024 + 4;
    assert!(kib < before.len() as u64 / 1024);
    let (code, answer) = home.json_within(kib, &more);
    assert!(code == 0 && why(&answer).contains(profile.to_str().unwrap()) && answer["profile"].is_null(), "{answer}");
    assert_eq!(fs::read(&profile).unwrap(), before);

    let planned = home.answer(&PLAN);
    let entry = home.only_file("plans");
    let (code, unstored) = home.json_within(1, &[&PLAN[..], &["--fresh"]].concat());
    assert!(code == 0 && unstored["verified"] == true, "{unstored}");
    assert!(why(&unstored).contains(entry.to_str().unwrap()), "{unstored}");
    let again = home.answer(&PLAN);
    assert_eq!((&again["cached"], &again["config"]), (&true.into(), &planned["config"]));
    assert_eq!(home.files("plans").len(), 1, "no temporary file is left");
    // A table is printed, too.
    let bench = ["bench", "sort", "--threads", "1", "--budget", "1s"];
    let table = home.path().join("table.md");
    let (code, answer) = home.json_within(0, &[&bench[..], &["--out", table.to_str().unwrap()]].concat());
    assert!(code == 0 && why(&answer).contains("table.md") && !table.exists(), "{answer}");
}
