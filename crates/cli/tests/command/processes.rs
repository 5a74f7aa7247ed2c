//! Several processes on one home, and processes that are killed.

use crate::home::{Home, document};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;
use tilewright_runtime::log::CampaignLog;
use tilewright_runtime::plan_cache::PlanCache;

const PLAN: [&str; 6] = ["plan", "gemm.cpu", "--threads", "1", "--budget", "50ms"];
const TUNE: [&str; 7] = ["tune", "gemm.cpu", "--threads", "1", "--no-table", "--budget", "60s"];

fn plan(n: usize) -> Vec<String> {
    PLAN.map(String::from).into_iter().chain([format!("m={n}"), "n=16".into(), "k=8".into()]).collect()
}

fn started(home: &Home, args: &[String]) -> Child {
    home.start(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

fn answered(home: &Home, args: &[String]) -> Value {
    home.answer(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Every entry of the cache, all of them whole.
fn entries(home: &Home) -> usize {
    let entries = PlanCache::new(home.path().join("plans")).entries().unwrap();
    entries.iter().for_each(|(path, entry)| assert!(entry.is_ok(), "{}: {entry:?}", path.display()));
    entries.len()
}

#[test]
fn processes_that_plan_at_once_all_answer_and_leave_a_whole_cache() {
    let home = Home::new();
    // Three inputs, each by three processes; the later ones may find the answers of the earlier.
    let running: Vec<_> = (0..9).map(|i| (i % 3 + 20, started(&home, &plan(i % 3 + 20)))).collect();
    for (n, child) in running {
        let (code, answer) = document(&[], &child.wait_with_output().unwrap());
        assert_eq!((code, &answer["verified"], &answer["input"]["m"]), (0, &true.into(), &n.into()), "{answer}");
    }
    assert_eq!(entries(&home), 3);
    assert_eq!(home.files("plans").len(), 3, "no temporary file is left");
    for n in 20..23 {
        assert_eq!(answered(&home, &plan(n))["cached"], true);
    }
}

#[test]
fn a_plan_that_is_killed_leaves_a_cache_that_answers() {
    let home = Home::new();
    answered(&home, &plan(30));
    for kill in 0..8 {
        let fresh: Vec<String> = plan(30).into_iter().chain(["--fresh".into()]).collect();
        let mut child = started(&home, &fresh);
        // Around the moment at which the entry is replaced, as far as that can be told from outside.
        sleep(Duration::from_millis(40 + 15 * kill));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(entries(&home), 1);
        assert_eq!(answered(&home, &plan(30))["cached"], true, "after kill {kill}");
    }
}

/// Waits until a log has grown by some records.
fn grown(log: &Path, before: u64) {
    for _ in 0..1000 {
        sleep(Duration::from_millis(5));
        if std::fs::metadata(log).is_ok_and(|m| m.len() > before + 2000) {
            return;
        }
    }
    panic!("{} does not grow", log.display());
}

fn log_of(home: &Home) -> PathBuf {
    for _ in 0..1000 {
        match home.files("logs").pop() {
            Some(log) => return log,
            None => sleep(Duration::from_millis(5)),
        }
    }
    panic!("no log appears");
}

#[test]
fn the_second_process_that_tunes_is_turned_away_and_harms_nothing() {
    let home = Home::new();
    let first = home.start(&[&TUNE[..], &["--samples", "400"]].concat());
    let log = log_of(&home);
    grown(&log, 0);
    let field = log.to_str().unwrap();
    assert_eq!(home.error(&TUNE, 1, field).kind, "locked");
    assert_eq!(home.error(&[&TUNE[..], &["--fresh"]].concat(), 1, field).kind, "locked");
    // Another kernel's worth of tuning has a log of its own.
    home.answer(&[&TUNE[..], &["--dtype", "f64", "--samples", "30"]].concat());
    let (code, tuned) = document(&TUNE, &first.wait_with_output().unwrap());
    assert_eq!((code, &tuned["resumed"]), (0, &0.into()), "{tuned}");
    let (_, samples) = CampaignLog::read(&log).unwrap();
    assert_eq!(tuned["samples"].as_u64().unwrap() + tuned["failed"].as_u64().unwrap(), samples.len() as u64);
    assert_eq!(home.files("profiles").len(), 2);
}

#[test]
fn a_campaign_that_is_killed_again_and_again_goes_on_with_a_whole_log() {
    let home = Home::new();
    let mut seen = Vec::new();
    let mut log = PathBuf::new();
    for kill in 0..5 {
        let mut running = home.start(&[&TUNE[..], &["--samples", "100000"]].concat());
        log = log_of(&home);
        let before = std::fs::metadata(&log).map_or(0, |m| m.len());
        grown(&log, if kill == 0 { 0 } else { before });
        sleep(Duration::from_micros(1300 * kill));
        running.kill().unwrap();
        running.wait().unwrap();
        let (_, samples) = CampaignLog::read(&log).unwrap();
        assert!(samples.len() > seen.len(), "nothing was added before kill {kill}");
        assert_eq!(samples[..seen.len()], seen, "something was lost by kill {kill}");
        seen = samples;
    }
    let ok = seen.iter().filter(|s| s.outcome.is_ok()).count();
    let wanted = (ok + 20).to_string();
    let tuned = home.answer(&[&TUNE[..], &["--samples", &wanted]].concat());
    assert_eq!((&tuned["resumed"], &tuned["samples"]), (&seen.len().into(), &(ok + 20).into()));
    assert_eq!(CampaignLog::read(&log).unwrap().1[..seen.len()], seen);
}
