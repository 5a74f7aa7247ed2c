//! Scores boosted trees.
use tilewright_core::choice::FitSelector;
use tilewright_datasets::{Dataset, SplitSpec};
use tilewright_variant_select::metrics::Table1;
use tilewright_variant_select::trees::{BoostedTrees, Objective};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let data = Dataset::read(args.next().unwrap_or_default())?;
    let spec: SplitSpec = args.next().unwrap_or_default().parse()?;
    let repeats: u64 = args.next().unwrap_or_default().parse()?;
    let filter: Option<SplitSpec> = std::env::var("DEV").ok().map(|d| format!("device={d}").parse().unwrap());
    let base = BoostedTrees::default();
    let settings: Vec<(String, BoostedTrees)> = args
        .map(|a| {
            let mut s = base.clone();
            for kv in a.split(',') {
                let (k, v) = kv.split_once('=').unwrap_or((kv, "0"));
                match k {
                    "trees" => s.trees = v.parse().unwrap(),
                    "depth" => s.depth = v.parse().unwrap(),
                    "leaves" => s.leaves = v.parse().unwrap(),
                    "rate" => s.rate = v.parse().unwrap(),
                    "bins" => s.bins = v.parse().unwrap(),
                    "columns" => s.columns = v.parse().unwrap(),
                    "cases" => s.cases = v.parse().unwrap(),
                    "least" => s.least = v.parse().unwrap(),
                    "l2" => s.l2 = v.parse().unwrap(),
                    "cap" => s.cap = v.parse().unwrap(),
                    "list" => s.objective = Objective::Listwise { temperature: v.parse().unwrap() },
                    _ => {}
                }
            }
            (a, s)
        })
        .collect();
    for (name, s) in settings {
        let start = std::time::Instant::now();
        let mut all = Vec::new();
        for seed in 0..repeats {
            let mut split = data.split(&spec, seed)?;
            if let Some(f) = &filter {
                let keep = data.split(f, 0)?.held_out;
                let keep: std::collections::HashSet<usize> = keep.into_iter().collect();
                split.train.retain(|r| keep.contains(r));
                split.held_out.retain(|r| keep.contains(r));
            }
            let model = s.fit(&data.choices_of(&split.train)?, seed)?;
            all.push(Table1::of(&*model, &data.choices_of(&split.held_out)?).unwrap());
        }
        let m = Table1::mean(&all).unwrap();
        println!(
            "{name:40} {:.4} {:.4} miss {:.3} w20 {:.3} fail {} {:.1}s",
            m.fraction_of_oracle,
            m.fraction_of_oracle_top3,
            m.delta_miss,
            m.worst20,
            m.failed,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
