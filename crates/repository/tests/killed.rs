//! Writers that are killed at random: nothing that was acknowledged is lost.
//!
//! `TILEWRIGHT_RECORDS=10000` writes as many records a writer as the full proof; tests that run often write fewer.

use crate::conformance::case;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use tilewright_repository::{Embedded, Key, Record, RecordedTime, Repository};

const WRITERS: usize = 8;
/// What tells a writer's process from a test: where to write, which writer, from which record on.
const JOB: &str = "TILEWRIGHT_WRITER";

pub(crate) fn records() -> u32 {
    std::env::var("TILEWRIGHT_RECORDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

fn open(store: &str) -> Box<dyn Repository> {
    #[cfg(feature = "redis")]
    if store.starts_with("redis://") {
        return Box::new(tilewright_repository::RedisRepository::open(store, Default::default()).unwrap());
    }
    Box::new(Embedded::open(store).unwrap())
}

/// Not a test by itself: the writers' processes.
#[test]
fn writes_what_it_is_told() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [store, writer, from, to] = job.split(' ').collect::<Vec<_>>()[..] else { panic!("{job}") };
    let mut repository = open(store);
    let key = Key::new("killed", "device").unwrap();
    let mut acknowledged = std::io::stdout().lock();
    for n in from.parse::<u32>().unwrap()..to.parse::<u32>().unwrap() {
        repository.append(&key, &case(n as f32, &[(writer, Some(1.0 + f64::from(n)))])).unwrap();
        // One write, so that a kill cannot split it from what it says.
        acknowledged.write_all(format!("ack {n}\n").as_bytes()).unwrap();
        acknowledged.flush().unwrap();
    }
}

fn spawn(store: &str, writer: usize, from: u32, to: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::writes_what_it_is_told", "--nocapture"])
        .env(JOB, format!("{store} {writer} {from} {to}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// One writer after the other for a stretch of records; every one but the last is killed after a while.
fn stretch(store: &str, writer: usize, total: u32, acknowledged: &mut BTreeSet<u32>) -> u32 {
    let (mut from, mut kills) = (0, 0);
    // A little generator will do: when exactly a process dies is up to the machine anyway.
    let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(writer as u64 + 1);
    while from < total {
        let mut child = spawn(store, writer, from, total);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let patience = (state >> 33) % (u64::from(total) / 5 + 1) + 1;
        let (mut seen, mut killed) = (0, kills >= 6);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            // The test harness says things on the same line as the first acknowledgement.
            let Some(n) = line.split("ack ").nth(1).and_then(|n| n.trim().parse::<u32>().ok()) else { continue };
            acknowledged.insert(n);
            from = from.max(n + 1);
            seen += 1;
            if !killed && seen >= patience {
                (killed, kills) = (true, kills + 1);
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
    }
    kills
}

/// Eight writers at once; then every acknowledged record is there, whole, and none is there that nobody wrote.
pub(crate) fn nothing_acknowledged_is_lost(store: &str) -> (usize, u32) {
    let total = records();
    let done: Vec<(BTreeSet<u32>, u32)> = std::thread::scope(|scope| {
        let one = |writer| {
            move || {
                let mut acknowledged = BTreeSet::new();
                let kills = stretch(store, writer, total, &mut acknowledged);
                (acknowledged, kills)
            }
        };
        let threads: Vec<_> = (0..WRITERS).map(|w| scope.spawn(one(w))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut found = vec![BTreeSet::new(); WRITERS];
    for (id, record) in open(store).read(&Key::new("killed", "device").unwrap()).unwrap() {
        let Record::Case(case) = record else { panic!("{id}: {record:?}") };
        let (n, [RecordedTime(writer, time)]) = (case.features[0].2.unwrap() as u32, &case.times[..]) else {
            panic!("{id}: {case:?}")
        };
        assert_eq!(*time, Some(1.0 + f64::from(n)), "{id}");
        found[writer.parse::<usize>().unwrap()].insert(n);
    }
    let mut lost = 0;
    for (writer, (acknowledged, _)) in done.iter().enumerate() {
        lost += acknowledged.difference(&found[writer]).count();
        assert_eq!(found[writer], (0..total).collect(), "writer {writer}");
    }
    assert_eq!(lost, 0, "acknowledged records are gone");
    let kills = done.iter().map(|d| d.1).sum();
    assert!(kills >= WRITERS as u32, "only {kills} writers were killed");
    (done.iter().map(|d| d.0.len()).sum(), kills)
}

#[test]
fn a_folder_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (acknowledged, kills) = nothing_acknowledged_is_lost(folder.path().to_str().unwrap());
    println!("{acknowledged} records acknowledged, {kills} writers killed, 0 lost");
}
