//! The mixed pool on the recorded rows of a campaign on a GPU.

use std::path::Path;
use std::sync::Arc;
use tilewright::device::emulator;
use tilewright::kernels::Kernels;
use tilewright_bench_suite::campaign::TaskRow;
use tilewright_bench_suite::campaign::pool::{PoolError, PoolReport, PoolScore, Ratios, judge};
use tilewright_core::device::{Device, DeviceSpec};
use tilewright_core::problem::AnyKernel;
use tilewright_emulator::Behaviour;

fn records() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("records/h200")
}

fn json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(records().join(name)).unwrap()).unwrap()
}

/// The rows of a run of which an older version noted only the best of the generated kernels.
fn rows() -> Vec<TaskRow> {
    serde_json::from_value(json("2026-11-27-campaign-second.json")["rows"].take()).unwrap()
}

fn device() -> Arc<DeviceSpec> {
    emulator("sm_90".parse().unwrap(), Behaviour::default()).unwrap().spec().clone()
}

fn judged(rows: &[TaskRow]) -> Result<PoolReport, PoolError> {
    let kernels = Kernels::default().competing("gemm", &device(), false).unwrap();
    let kernels: Vec<&dyn AnyKernel> = kernels.iter().map(|kernel| &**kernel).collect();
    judge(rows, &kernels, &device(), 0, &|| false)
}

fn score<'a>(report: &'a PoolReport, way: &str) -> &'a PoolScore {
    report.scores.iter().find(|score| score.way == way).unwrap_or_else(|| panic!("no {way} in {:?}", report.scores))
}

#[test]
fn a_selector_in_the_pool_is_never_far_below_the_vendor_once_two_are_timed() {
    let rows = rows();
    let report = judged(&rows).unwrap();
    assert_eq!((report.tasks, report.choices.len()), (rows.len(), rows.len()));
    let ways: Vec<&str> = report.scores.iter().map(|score| score.way.as_str()).collect();
    let kept = ["keeping cublas", "keeping cublaslt-best"];
    assert_eq!(ways, ["generated", "selector", "first two timed", kept[0], kept[1], "oracle"]);
    let over = |way: &str| score(&report, way).over_default;
    assert!(over("generated").worst < 0.6 && over("selector").geomean > over("generated").geomean, "{report:?}");
    assert!(over("first two timed").below == 0 && over("first two timed").geomean > over("selector").geomean);
    assert!(over(kept[0]).below == 0 && over(kept[0]).geomean > 1.1, "{:?}", over(kept[0]));
    let oracle = score(&report, "oracle");
    for PoolScore { way, tasks, over_default, over_best } in &report.scores {
        assert!(*tasks == rows.len() && over_default.geomean <= oracle.over_default.geomean, "{way}");
        assert!(over_best.geomean <= over_default.geomean, "{way}");
    }
    // Of each task: what is generated is the row's own ratio, and no choice is above the oracle's.
    for (choice, row) in report.choices.iter().zip(&rows) {
        assert_eq!((&choice.stage, &choice.name, &choice.dtype), (&row.stage, &row.name, &row.dtype));
        let ratios: Vec<f64> = choice.chosen.iter().map(|chosen| chosen.as_ref().unwrap().1).collect();
        assert!((ratios[0] - row.ratio_default.unwrap()).abs() < 1e-12, "{choice:?}");
        assert!(ratios.iter().all(|ratio| ratio <= ratios.last().unwrap()), "{choice:?}");
    }
    for part in ["| keeping cublas | 114 | 1.", "| oracle |", "gemm.simt.1", "114 tasks of 13 different sizes"] {
        assert!(report.text().contains(part), "no {part:?} in {}", report.text());
    }
}

/// `pool FILE.json --json`, as the README quotes it.
#[test]
fn the_record_is_what_the_example_gives() {
    let record = json("2026-11-27-pool.json");
    let of_second = &record["runs"].as_array().unwrap()[1];
    assert_eq!(of_second["rows"], "2026-11-27-campaign-second.json");
    let recorded: Vec<PoolScore> = serde_json::from_value(of_second["scores"].clone()).unwrap();
    let found = judged(&rows()).unwrap().scores;
    assert_eq!(found.len(), recorded.len());
    let is_close = |a: &Ratios, b: &Ratios| {
        (a.geomean - b.geomean).abs() < 1e-9 && (a.worst - b.worst).abs() < 1e-9 && a.below == b.below
    };
    for (found, recorded) in found.iter().zip(&recorded) {
        let is_same =
            is_close(&found.over_default, &recorded.over_default) && is_close(&found.over_best, &recorded.over_best);
        assert!(
            is_same && (&found.way, found.tasks) == (&recorded.way, recorded.tasks),
            "{found:?} beside {recorded:?}"
        );
    }
}

#[test]
fn all_generated_kernels_of_a_row_are_variants() {
    let mut values = json("2026-11-27-campaign-second.json")["rows"].take();
    for row in values.as_array_mut().unwrap() {
        let (cost, winner) = (row["cost"].as_f64().unwrap(), row["kernel"].clone());
        row["kernels"] = serde_json::json!([
            {"kernel": "gemm.other.1", "cost": 1.5 * cost},
            {"kernel": winner, "cost": cost},
        ]);
    }
    let report = judged(&serde_json::from_value::<Vec<TaskRow>>(values).unwrap()).unwrap();
    let all = ["cublas", "cublaslt", "cublaslt-best", "gemm.mma.1", "gemm.other.1", "gemm.simt.1"];
    assert_eq!(report.variants, all);
    assert_eq!(score(&report, "generated"), score(&judged(&rows()).unwrap(), "generated"));
}

/// A task on which the vendor's best did not run says nothing of keeping it, and one without its default nothing at all.
#[test]
fn a_variant_is_kept_where_it_ran() {
    let mut some = rows();
    some[0].baselines.retain(|of| of.name != "cublaslt-best");
    some[1].baselines.retain(|of| of.name != "cublas");
    let report = judged(&some).unwrap();
    assert_eq!(report.tasks, some.len() - 1);
    assert_eq!(score(&report, "keeping cublas").tasks, some.len() - 1);
    assert_eq!(score(&report, "keeping cublaslt-best").tasks, some.len() - 2);
    assert_eq!((report.choices[0].chosen.len(), &report.choices[0].chosen[4]), (6, &None));
}

#[test]
fn what_cannot_be_judged_says_why() {
    let kernels = Kernels::default().competing("gemm", &device(), false).unwrap();
    let kernels: Vec<&dyn AnyKernel> = kernels.iter().map(|kernel| &**kernel).collect();
    let error = judge(&rows(), &kernels, &device(), 0, &|| true).unwrap_err();
    assert!(matches!(error, PoolError::Stopped), "{error}");
    let mut alone = rows();
    alone.iter_mut().for_each(|row| row.baselines.clear());
    let error = judged(&alone).unwrap_err();
    assert!(matches!(error, PoolError::NoVendor), "{error}");
    assert!(matches!(judged(&[]), Err(PoolError::NoVendor)));
    let mut same = rows();
    same.retain(|row| row.shape.starts_with("512x512x512"));
    let error = judged(&same).unwrap_err();
    assert!(same.len() > 2 && error.to_string().contains("1 sizes of tasks are too few"), "{error}");
}
