//! GPU kernels without a GPU: emulated, and emitted as text.

use crate::home::{Home, has};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::decision::{Alternative, Decision};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::objective::Objective;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;
use tilewright_runtime::plan_cache::{CachedPlan, PlanCache};

fn verify(home: &Home, more: &[&str]) -> Value {
    home.answer(&[&["verify", "gemm"], more].concat())
}

#[test]
fn emulated_kernels_are_verified_with_everything_covered() {
    let home = Home::new();
    let args = ["--device", "emulator:sm_80", "--variant", "gemm.simt", "--cases", "160", "--seed", "7"];
    let v = verify(&home, &args);
    has(&v, &["cases", "failed", "worst_rel_error", "races", "out_of_bounds", "other_findings", "coverage"]);
    assert_eq!(
        (&v["cases"], &v["failed"], &v["races"], &v["out_of_bounds"]),
        (&160.into(), &0.into(), &0.into(), &0.into())
    );
    let rel = v["worst_rel_error"].as_f64().unwrap();
    // Results of bf16 have eight bits.
    assert!(rel > 0.0 && rel < 1e-2, "{rel}");
    assert!(v["worst_of_bound"].as_f64() <= Some(1.0), "{v}");
    let coverage = v["coverage"].as_object().unwrap();
    for key in [
        "variant:gemm.simt.1",
        "dtype:f32",
        "dtype:f64",
        "layout:nn",
        "layout:nt",
        "layout:tn",
        "layout:tt",
        "k_s>1",
        "k_l>1",
        "k_g>1",
        "odd m",
        "odd n",
        "odd k",
        "beta:0",
        "beta:1",
        "beta:other",
        "alpha:1",
        "alpha:other",
        "split:atomic",
        "k_g>1 split:ordered",
        "k_g>1 beta:other",
        "vec_a:4",
        "vec_b:2",
        "vec_c:4",
        "stages:1",
        "stages:5",
        "load:async",
        "load:nc",
        "load:straight",
        "batch>1",
        "padded lda",
        "m:1",
        "n:1",
        "bounds:whole",
        "m_l:320",
        "k_g:64",
    ] {
        assert!(coverage.contains_key(key), "no {key:?} among {:?}", coverage.keys().collect::<Vec<_>>());
    }
    assert_eq!(coverage["variant:gemm.simt.1"], 160);
    let of = |key: &str| coverage[key].as_u64().unwrap();
    let in_order = of("k_g>1 split:ordered") + of("k_g>1 split:ticket") + of("split:stream");
    assert_eq!(of("repeated bit by bit"), in_order);
    // The same on any number of threads.
    let one = verify(&home, &[&args[..], &["--threads", "1"]].concat());
    assert_eq!(v, one);
}

#[test]
fn matrix_instructions_are_verified_in_every_type() {
    let home = Home::new();
    for types in ["f16", "bf16", "f64", "i8"] {
        let args = ["--device", "emulator:sm_80", "--variant", "gemm.mma", "--dtype", types, "--cases", "56"];
        let v = verify(&home, &args);
        assert_eq!((&v["cases"], &v["failed"]), (&56.into(), &0.into()), "{v}");
        let coverage = v["coverage"].as_object().unwrap();
        for key in ["variant:gemm.mma.1", "load:async", "k_g>1", "layout:tn", "layout:nt", "stages:4", "vec_c:2"] {
            assert!(coverage.contains_key(key), "no {key:?} among {:?}", coverage.keys().collect::<Vec<_>>());
        }
    }
}

/// Whatever a kernel takes is drawn where nothing is fixed.
#[test]
fn every_type_layout_accuracy_and_epilogue_is_covered() {
    let home = Home::new();
    let covered = |more: &[&str], wanted: &[&str]| {
        let v = verify(&home, &[&["--device", "emulator:sm_80", "--seed", "3"], more].concat());
        assert_eq!((&v["failed"], &v["races"]), (&0.into(), &0.into()), "{v}");
        let coverage = v["coverage"].as_object().unwrap();
        for key in wanted {
            assert!(
                coverage.contains_key(*key),
                "{more:?}: no {key:?} among {:?}",
                coverage.keys().collect::<Vec<_>>()
            );
        }
    };
    let both = ["dtype:f16", "dtype:bf16", "dtype:f32", "dtype:f64", "out:f32", "accuracy:tf32", "accuracy:3xtf32"];
    let results = ["layout:nn", "layout:nt", "layout:tn", "layout:tt", "bias:row", "bias:column", "activation:relu"];
    let real = [both, results].concat();
    let (simt, mma) = (["--variant", "gemm.simt", "--cases", "150"], ["--variant", "gemm.mma", "--cases", "120"]);
    covered(&simt, &[&real[..], &["dtype:c32", "dtype:c64"]].concat());
    covered(&mma, &[&real[..], &["dtype:tf32", "dtype:i8", "acc:f16", "acc:bf16"]].concat());
    let conjugates = ["layout:nc", "layout:tc", "layout:cn", "layout:ct", "layout:cc", "bias:row"];
    covered(&["--dtype", "c32", "--cases", "60"], &conjugates);
}

#[test]
fn the_stencil_of_bacugen_is_verified_in_its_types() {
    let home = Home::new();
    let variant = ["--device", "emulator:sm_80", "--variant", "gemm.bacugen", "--cases", "40"];
    for types in ["f32", "c64"] {
        let v = verify(&home, &[&variant[..], &["--dtype", types]].concat());
        assert_eq!((&v["cases"], &v["failed"], &v["races"]), (&40.into(), &0.into(), &0.into()), "{v}");
        let coverage = v["coverage"].as_object().unwrap();
        let dtype = format!("dtype:{types}");
        for key in
            ["variant:gemm.bacugen.2", &dtype, "load:nc", "load:global", "layout:nn", "layout:tt", "odd m", "odd k"]
        {
            assert!(coverage.contains_key(key), "no {key:?} among {:?}", coverage.keys().collect::<Vec<_>>());
        }
    }
}

#[test]
fn one_dtype_one_variant_and_an_old_target() {
    let home = Home::new();
    let v = verify(&home, &["--device", "emulator:sm_50", "--variant", "gemm.simt", "--dtype", "f64", "--cases", "20"]);
    let coverage = v["coverage"].as_object().unwrap();
    assert!(!coverage.contains_key("dtype:f32") && !coverage.contains_key("load:async"), "{coverage:?}");
    assert!(!coverage.contains_key("split:atomic"), "sm_50 adds no f64 atomically: {coverage:?}");
    // A kernel that has nothing legal there takes no turns.
    let v = verify(&home, &["--device", "emulator:sm_50", "--dtype", "f16", "--cases", "4"]);
    assert_eq!(v["coverage"]["variant:gemm.simt.1"], 4, "{v}");
}

#[test]
fn emulators_choose_as_hardware_may() {
    let home = Home::new();
    let device = "emulator:sm_80:mma=truncated:schedule=7";
    let v = verify(&home, &["--device", device, "--cases", "24"]);
    assert_eq!((&v["device"], &v["failed"], &v["races"]), (&device.into(), &0.into(), &0.into()));
    home.error(&["verify", "gemm", "--device", "emulator:sm_80:mma=fast", "--cases", "1"], 2, "device");
}

#[test]
fn kernels_of_a_computation_take_turns() {
    let home = Home::new();
    let variants = |more: &[&str]| {
        let v = home.answer(&[&["verify", "conv", "--device", "emulator:sm_80", "--cases", "12"], more].concat());
        assert_eq!((&v["cases"], &v["failed"]), (&12.into(), &0.into()));
        let count = |kernel: &str| v["coverage"][format!("variant:{kernel}")].as_u64();
        ["conv.simt.1", "conv.winograd.1", "conv.direct.1"].map(count)
    };
    assert_eq!(variants(&[]), [Some(4), Some(4), Some(4)]);
    assert_eq!(variants(&["--variant", "conv.direct"]), [None, None, Some(12)]);
    // The others have no code for it.
    assert_eq!(variants(&["--dtype", "f16"]), [Some(12), None, None]);
}

fn emit(home: &Home, words: &[&str]) -> Value {
    home.answer(&[&["emit", "gemm"], words].concat())
}

#[test]
fn code_is_emitted_with_its_launch() {
    let home = Home::new();
    let answer = emit(&home, &["m=512", "n=384", "k=100", "dtype=f32", "layout=nt", "--target", "sm_90"]);
    has(&answer, &["text", "entry", "launch", "config", "steps", "workspace_bytes"]);
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains(".target sm_90") && text.contains(answer["entry"].as_str().unwrap()), "{text}");
    // The lowest that knows sm_90.
    assert!(text.starts_with(".version 7.8\n"), "{text}");
    let grid: Vec<u64> = answer["launch"]["grid"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
    let tile = |name: &str| answer["config"][name].as_u64().unwrap();
    assert_eq!(grid, [512u64.div_ceil(tile("m_l")), 384u64.div_ceil(tile("n_l")), tile("k_g")]);
    assert_eq!(answer["launch"]["block"][0].as_u64().unwrap() % 32, 0);
    if let Some(registers) = answer.get("registers") {
        assert!(registers.as_u64() > Some(16), "{answer}");
        assert_eq!(answer["spills"], 0);
        assert!(answer["shared_bytes"].as_u64() >= Some(1024), "{answer}");
    }
}

/// Unless one is named, the variant that takes the input and suits it best, of those that have the parameters that are given.
#[test]
fn the_variant_that_takes_the_input_is_emitted() {
    let home = Home::new();
    let kernel = |words: &[&str]| {
        let answer = emit(&home, &[&["m=64", "n=64", "k=128"], words].concat());
        assert!(answer["text"].as_str().is_some(), "{answer}");
        answer["kernel"].as_str().unwrap().to_owned()
    };
    let (simt, mma) = ("gemm.simt.1", "gemm.mma.1");
    for (words, expected) in [
        (&["dtype=f32", "--target", "sm_80"][..], simt),
        (&["dtype=f16", "--target", "sm_80"], mma),
        (&["dtype=f16", "--target", "sm_75"], simt),
        (&["dtype=f16", "bias=row", "activation=relu", "--target", "sm_90"], mma),
        (&["dtype=tf32", "--target", "sm_80"], mma),
        (&["dtype=i8", "layout=nt", "--target", "sm_80"], mma),
        (&["accuracy=3xtf32", "--target", "sm_80"], mma),
        (&["dtype=f64", "--target", "sm_80"], mma),
        (&["dtype=f64", "--target", "sm_120"], simt),
        (&["dtype=c32", "--target", "sm_80"], simt),
        (&["dtype=f16", "--target", "sm_80", "--variant", "gemm.simt"], simt),
        (&["dtype=f16", "--target", "sm_80", "--config", "m_s=4,vec_c=4"], simt),
    ] {
        assert_eq!(kernel(words), expected, "{words:?}");
    }
    let counted = home.answer(&["count", "gemm", "m=64", "n=64", "k=128", "dtype=i8", "--target", "sm_80"]);
    assert_eq!(counted["kernel"], mma);
    // No kernel takes it: the first says why.
    let refused = ["emit", "gemm", "m=64", "n=64", "k=64", "dtype=f16", "acc=f64", "--target", "sm_80"];
    assert!(home.error(&refused, 2, "acc").message.contains("f64"));
}

#[test]
fn a_given_configuration_is_emitted_and_every_step_of_it() {
    let home = Home::new();
    let words = ["m=64", "n=64", "k=512", "dtype=f64", "beta=other", "--target"];
    let config = ["--config", "m_s=2,n_s=2,m_l=32,n_l=32,u=8,k_g=4,split=ordered,load=global"];
    let answer = emit(&home, &[&words[..], &["sm_60"], &config].concat());
    assert_eq!((&answer["config"]["k_g"], &answer["config"]["m_l"]), (&4.into(), &32.into()));
    let steps = answer["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "the product, and the ordered sum");
    assert_eq!(steps[0]["entry"], answer["entry"]);
    assert_eq!(answer["workspace_bytes"], 4 * 64 * 64 * 8);
    assert!(answer["text"].as_str().unwrap().starts_with(".version 5.0\n"));
    // Asynchronous copies that fetch whole lines came with PTX 7.4; others need no later version than the target itself.
    let config = ["--config", "load=async,stages=3,vec_b=1"];
    let answer = emit(&home, &[&words[..], &["sm_80"], &config].concat());
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with(".version 7.4\n") && text.contains(".L2::128B"), "{text}");
    let config = ["--config", "load=async,stages=3,vec_a=1,vec_b=1"];
    let answer = emit(&home, &[&words[..], &["sm_80"], &config].concat());
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with(".version 7.0\n") && text.contains("cp.async"), "{text}");
    // For people it is a text with comments.
    let out = home.run(&[&["emit", "gemm"], &words[..], &["sm_60"]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with("// gemm.simt.1 for m=64") && text.contains("// arguments: buffer 0 + 0"), "{text}");
}

/// Keeps a plan for an input, as if it had been decided on a GPU with these facts.
fn keep(home: &Home, input: &str, config: &str, facts: &[(&str, i64)]) -> PathBuf {
    let typical = "sm_90".parse::<Target>().unwrap().spec();
    let mut spec = DeviceSpec { id: "cuda:0".into(), name: "some H200".into(), kind: DeviceKind::Cuda, ..typical };
    spec.facts.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), *value)));
    let input = Gemm.parse(&Config::parse(input).unwrap()).unwrap();
    let problem = Bound::new(Arc::new(SimtGemm::new()), Arc::new(spec), input).unwrap();
    let point = Config::parse(config).unwrap().to_point(problem.space().params(), problem.default_point().as_deref());
    let config = problem.space().config(&point.unwrap());
    let kernel = problem.kernel();
    let chosen = Alternative { kernel, config: config.clone(), predicted_s: None, measured_s: Some(1e-5) };
    let decision = Decision::of(chosen, 1, "test".into());
    let (predicted_s, measured_s, max_rel_error, looks) = (None, Some(1e-5), Some(0.0), Vec::new());
    let plan = CachedPlan { config, predicted_s, measured_s, max_rel_error, decision, looks };
    PlanCache::new(home.path().join("plans")).put(&problem, &Objective::default(), &plan).unwrap()
}

#[test]
fn the_plan_of_a_gpu_is_emitted_where_one_is_known() {
    let home = Home::new();
    let words = ["m=512", "n=384", "k=96", "--target"];
    let on = |target: &'static str| emit(&home, &[&words[..], &[target]].concat());
    let default = on("sm_90");
    assert_eq!(default["origin"], "default");
    let other = if default["config"]["u"] == 16 { 8 } else { 16 };
    let path = keep(&home, "m=512,n=384,k=96", &format!("u={other},vec_a=1"), &[("multiprocessors", 140)]);
    let planned = on("sm_90");
    assert_eq!((&planned["config"]["u"], &planned["config"]["vec_a"]), (&other.into(), &1.into()));
    assert_eq!(planned["origin"]["planned"], "some H200");
    // Only for that target, that input, and where nothing else is asked for.
    assert_eq!(on("sm_80")["origin"], "default");
    assert_eq!(emit(&home, &["m=512", "n=384", "k=95", "--target", "sm_90"])["origin"], "default");
    let given = emit(&home, &[&words[..], &["sm_90", "--config", "vec_b=1"]].concat());
    assert_eq!((&given["origin"], &given["config"]["u"]), (&"given".into(), &default["config"]["u"]));
    // A damaged entry is not trusted, and keeps nobody from the default.
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(on("sm_90")["origin"], "default");
}

#[test]
fn an_empty_result_needs_no_code() {
    let home = Home::new();
    let answer = emit(&home, &["m=0", "n=4", "k=4", "--target", "sm_80"]);
    assert!(answer["steps"].as_array().unwrap().is_empty() && answer.get("text").is_none(), "{answer}");
}

#[test]
fn the_legal_space_of_a_target() {
    let home = Home::new();
    let legal = |device: &str| {
        let answer = home.answer(&["space", "gemm", "m=7", "n=5", "k=9", "--device", device, "--why"]);
        assert!(answer["rejected_by"]["whole_rows"].as_u64() > Some(0), "{answer}");
        assert_eq!(answer["kernel"], "gemm.simt.1");
        answer["legal"].as_u64().unwrap()
    };
    assert!(legal("emulator:sm_80") > legal("emulator:sm_75"), "only one of them copies asynchronously");
}

#[test]
fn batches_run_where_there_is_code_for_them() {
    let home = Home::new();
    let answer = emit(&home, &["m=32", "n=32", "k=32", "batch=6", "stride_b=0", "--target", "sm_80"]);
    let args = answer["launch"]["args"].as_array().unwrap();
    assert!(args.contains(&"u64 4096".into()) && args.contains(&"u64 0".into()), "{args:?}");
    assert_eq!(answer["launch"]["grid"][2].as_u64().unwrap() % 6, 0);
    for size in ["8", "200"].map(|size| ["m", "n", "k"].map(|name| format!("{name}={size}"))) {
        let [m, n, k] = size.each_ref().map(String::as_str);
        let ran = home.answer(&["run", "gemm", m, n, k, "batch=2", "--threads", "1"]);
        assert!(ran["variant"].as_str().unwrap().starts_with("gemm.cpu"), "{ran}");
    }
}

#[test]
fn an_emulator_never_times() {
    let home = Home::new();
    let on = ["--device", "emulator:sm_80"];
    let input = ["gemm", "m=8", "n=8", "k=8"];
    for command in [
        &["tune", "gemm"][..],
        &["bench", "gemm", "--baselines", "none"],
        &[&["plan"], &input[..]].concat(),
        &[&["explain"], &input[..]].concat(),
        &[&["run"], &input[..]].concat(),
    ] {
        let error = home.error(&[command, &on].concat(), 2, "device");
        assert!(error.message.contains("never times"), "{command:?}: {}", error.message);
    }
}

/// The kernel's own name, with or without its version; no other.
fn emit_variant(home: &Home) {
    for variant in ["gemm.simt", "gemm.simt.1"] {
        let answer = emit(home, &["m=8", "n=8", "k=8", "--target", "sm_80", "--variant", variant]);
        assert_eq!(answer["kernel"], "gemm.simt.1");
    }
    let unknown = ["emit", "gemm", "m=8", "n=8", "k=8", "--target", "sm_80", "--variant", "gemm.simt.9"];
    assert!(home.error(&unknown, 2, "variant").message.contains("gemm.simt.9"));
    let unknown = ["verify", "gemm", "--device", "emulator:sm_80", "--cases", "1", "--variant", "mma"];
    assert!(home.error(&unknown, 2, "variant").message.contains("gemm.simt.1"));
}

#[test]
fn bad_devices_targets_and_variants_are_named() {
    let home = Home::new();
    let input = ["gemm", "m=8", "n=8", "k=8"];
    let space = |device: &str, code, field| {
        home.error(&[&["space"], &input[..], &["--device", device]].concat(), code, field).message
    };
    assert!(space("abacus", 2, "device").contains("emulator:sm_XX"));
    assert!(space("emulator:sm_42", 2, "device").contains("sm_50 "));
    assert!(space("cuda:first", 2, "device").contains("cuda:0"));
    assert!(space("replay:", 2, "device").contains("file"));
    assert!(space("replay:times.csv", 2, "device").contains("no code"));
    assert!(space("cuda:0", 4, "device").contains("cuda:0"));

    let emit =
        |more: &[&'static str], code, field| home.error(&[&["emit"], &input[..], more].concat(), code, field).message;
    assert!(emit(&["--target", "sm_42"], 2, "target").contains("sm_50 "));
    assert!(emit(&["--target", "sm_80", "--variant", "gemm.cpu"], 2, "variant").contains("gemm.simt.1"));
    assert!(emit(&["dtype=f8", "--target", "sm_80"], 2, "dtype").contains("f8"));
    assert!(emit(&["--target", "sm_80", "--config", "tile=7"], 2, "config").contains("\"tile\""));
    assert!(emit(&["--target", "sm_80", "--config", "u=7"], 2, "config").contains("its values are"));
    emit_variant(&home);
    home.error(&["emit", "fft", "--target", "sm_80"], 2, "kernel");
    home.error(&["emit", "gemm.cpu.6", "m=8", "n=8", "k=8", "--target", "sm_80"], 2, "device");
    let (code, _) = home.json(&["emit", "gemm", "m=8", "n=8", "k=8"]);
    assert_eq!(code, 2, "a target must be named");

    // The rule and its numbers.
    let large = ["emit", "gemm", "m=2048", "n=2048", "k=64", "--target", "sm_80", "--config"];
    let illegal = |config: &'static str| home.error(&[&large[..], &[config]].concat(), 2, "config").message;
    let threads = illegal("m_s=1,n_s=1,m_l=128,n_l=128");
    assert!(threads.contains("\"threads\"") && threads.contains("m_l = 128") && threads.contains("1024"), "{threads}");
    let old = home.error(
        &["emit", "gemm", "m=64", "n=64", "k=64", "--target", "sm_75", "--config", "load=async,stages=3"],
        2,
        "config",
    );
    assert!(old.message.contains("\"async\"") && old.message.contains("sm = 75"), "{}", old.message);
    // More products than a grid has room for: no configuration is legal.
    let many = home.error(&["emit", "gemm", "m=1", "n=1", "k=1", "batch=70000", "--target", "sm_80"], 3, "input");
    assert!(many.message.contains("\"batch\""), "{}", many.message);
}

#[test]
fn operations_are_counted_in_the_sizes() {
    let home = Home::new();
    let config = "m_s=8,n_s=8,m_l=64,n_l=64,u=8,k_l=1,k_s=1,k_g=1,vec_a=1,vec_b=1,vec_c=4,stages=1,load=global,split=ordered,\
                  raster=m,bounds=checked,occupancy=1";
    let words = ["count", "gemm", "m=100", "n=130", "k=50", "dtype=f32", "layout=nt", "--config", config];
    let answer = home.answer(&words);
    has(&answer, &["kernel", "input", "config", "sizes", "counts"]);
    let fma = &answer["counts"]["fma.f32"];
    assert_eq!(fma["value"], 2 * 3 * 64 * 64 * 56);
    assert_eq!(fma["expression"], "32768*ceil(m/64)*ceil(n/64)*ceil(k/8)");
    assert_eq!(answer["counts"]["groups"]["value"], 6);
    let text = String::from_utf8(home.run(&words).stdout).unwrap();
    assert!(text.contains("fma.f32") && text.contains("ceil(k/8)"), "{text}");
    let (code, error) = home.json(&["count", "gemm", "m=4", "n=4", "k=4", "--target", "sm_1"]);
    assert_eq!((code, &error["error"]["field"]), (2, &"target".into()));
}

fn count<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["count", "ragged", "slices=3"], more].concat()
}

#[test]
fn what_depends_on_data_is_counted_by_statistics() {
    let home = Home::new();
    let names = ["ragged/columns[23].trips", "ragged/wanted[24]/when[1].threads"];
    let missing = home.error(&count(&[]), 2, "statistic");
    assert_eq!(missing.kind, "missing-statistics");
    for name in names {
        assert!(missing.message.contains(&format!("--statistic '{name}=N'")), "{}", missing.message);
    }
    let (trips, threads) = (format!("{}=7", names[0]), format!("{}=40", names[1]));
    let one = home.error(&count(&["--statistic", &trips]), 2, "statistic").message;
    assert!(one.contains(names[1]) && !one.contains(names[0]), "{one}");
    let both = ["--statistic", &trips, "--statistic", &threads];
    let answer = home.answer(&count(&both));
    assert_eq!(answer["statistics"], serde_json::json!({ names[0]: 7, names[1]: 40 }));
    let value = |property: &str| answer["counts"][property]["value"].as_i64().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((value("fma.f32"), value("store.global.32")), (3 * 64 * 7, 3 * 40), "{answer}");
    assert_eq!(answer["counts"]["fma.f32"]["expression"], "64*slices*ragged/columns[23].trips");
    let unknown = home.error(&count(&[&both[..], &["--statistic", "ragged/rows.trips=1"]].concat()), 2, "statistic");
    assert_eq!(unknown.kind, "unknown-statistic");
    assert!(unknown.message.contains("rows.trips") && unknown.message.contains(names[0]), "{}", unknown.message);
    let twice = home.error(&count(&["--statistic", &trips, "--statistic", &trips]), 2, "statistic");
    assert!(twice.message.contains("twice"), "{}", twice.message);
    let none = home.error(&["count", "gemm", "m=4", "n=4", "k=4", "--statistic", "x=1"], 2, "statistic");
    assert!(none.message.contains("asks for none"), "{}", none.message);
}
