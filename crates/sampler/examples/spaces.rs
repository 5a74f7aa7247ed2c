//! Building and asking the spaces of T1 descriptions, timed: our side of `scripts/spaces.sh`.
//!
//! ```text
//! cargo run --release -p tilewright-sampler --example spaces -- [--points FOLDER] FILE...
//! ```
//!
//! One line of JSON for each file: seconds from its text to the set (fastest and median of many), to the flat list of
//! all points, nanoseconds of a query, points a second drawn uniformly on one thread. With `--points`, all points go to
//! `FOLDER/NAME.csv`, values separated by commas.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilewright_core::space::Point;
use tilewright_sampler::{Description, LegalSet};

/// Repetitions of what takes milliseconds.
const ROUNDS: usize = 41;
/// Different queries: as many as stay in a core's cache.
const QUERIES: usize = 1 << 12;
/// Times that each is asked in one measurement.
const REPEATS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let folder = args.next_if(|a| a == "--points").and_then(|_| args.next()).map(PathBuf::from);
    for file in args {
        let text = std::fs::read_to_string(&file)?;
        let set = LegalSet::new(&Description::from_t1(&text)?)?;
        let name = Path::new(&file).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.csv")), rows(&set))?;
        }
        println!("{}", line(&name, &text, &set)?);
    }
    Ok(())
}

fn line(name: &str, text: &str, set: &LegalSet) -> Result<serde_json::Value, Box<dyn Error>> {
    let build = || -> Result<LegalSet, Box<dyn Error>> { Ok(LegalSet::new(&Description::from_t1(text)?)?) };
    build()?;
    let built = times(|| build().map(|set| set.count()).ok());
    let listed = times(|| build().map(|set| set.list().points().len()).ok());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let width = set.params().len();
    let points: Vec<Point> = (0..QUERIES).filter_map(|_| set.sample(&mut rng)).collect();
    let numbers: Vec<u64> = points.iter().filter_map(|p| set.index_of(p)).collect();
    // Half of the asked points are legal: every other one has one index changed.
    let mut asked = points.clone();
    for (i, point) in asked.iter_mut().enumerate().skip(1).step_by(2) {
        let at = i / 2 % width;
        point.0[at] = (point.0[at] + 1) % set.params()[at].values.len() as u16;
    }
    let per_query = |seconds: f64| 1e9 * seconds / QUERIES as f64;
    let contains = fastest(|| asked.iter().filter(|p| set.contains(p)).count() as u64);
    let index = fastest(|| points.iter().filter_map(|p| set.index_of(p)).fold(0, u64::wrapping_add));
    let mut row = vec![0; width];
    let point = fastest(|| numbers.iter().map(|&n| u64::from(set.write_point(n, &mut row))).sum());
    let sample = fastest(|| (0..QUERIES).map(|_| u64::from(set.sample_into(&mut rng, &mut row))).sum());
    Ok(serde_json::json!({
        "space": name, "cartesian": set.cartesian() as f64, "legal": set.count(), "nodes": set.nodes(), "bytes": set.bytes(),
        "built_s": built.0, "built_median_s": built.1, "listed_s": listed.0, "listed_median_s": listed.1,
        "contains_ns": per_query(contains), "index_of_ns": per_query(index), "point_ns": per_query(point),
        "samples_per_second": QUERIES as f64 / sample,
    }))
}

/// Fastest and median time of some repetitions.
fn times<T>(mut work: impl FnMut() -> T) -> (f64, f64) {
    let mut all: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    (all[0], all[ROUNDS / 2])
}

/// The fastest time of one round of the queries.
fn fastest(mut work: impl FnMut() -> u64) -> f64 {
    let one = |_| {
        let start = Instant::now();
        for _ in 0..REPEATS {
            black_box(work());
        }
        start.elapsed().as_secs_f64() / REPEATS as f64
    };
    (0..9).map(one).fold(f64::INFINITY, f64::min)
}

fn rows(set: &LegalSet) -> String {
    let mut out = String::new();
    let mut walk = set.walk();
    while let Some(point) = walk.next_point() {
        for (i, (param, &index)) in set.params().iter().zip(point).enumerate() {
            let _ = write!(out, "{}{}", if i == 0 { "" } else { "," }, param.values[usize::from(index)]);
        }
        out.push('\n');
    }
    out
}
