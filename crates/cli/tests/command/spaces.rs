//! `space --t1` and `space bacugen`.

use crate::home::Home;
use tilewright_core::dtype::DType;
use tilewright_sampler::LegalSet;
use tilewright_sampler::bacugen::{self, DeviceConstants, Layout, Reading};

const DESCRIPTION: &str = r#"{"ConfigurationSpace": {"TuningParameters": [
    {"Name": "bx", "Type": "int", "Values": "[16 * i for i in range(1, 9)]", "Default": 16},
    {"Name": "by", "Type": "int", "Values": [1, 2, 4, 8]},
    {"Name": "pad", "Type": "int", "Values": "[0, 1]"}],
  "Conditions": [
    {"Expression": "32 <= bx * by <= 256", "Parameters": ["bx", "by"]},
    {"Expression": "pad == 0 or bx % 32 == 0", "Parameters": ["pad", "bx"]}]}}"#;

fn write(home: &Home, text: &str) -> String {
    let path = home.path().join("space.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_description_is_counted_listed_sampled_and_explained() {
    let home = Home::new();
    let file = write(&home, DESCRIPTION);
    let list = home.path().join("list.csv");
    let list = list.to_str().unwrap();
    let answer = home.answer(&["space", "--t1", &file, "--why", "--list", list, "--sample", "2000"]);
    let pairs: Vec<(i64, i64)> = (1..9).flat_map(|i| [1, 2, 4, 8].map(|y| (16 * i, y))).collect();
    let fits = |(x, y): &&(i64, i64)| (32..=256).contains(&(x * y));
    let legal: usize = pairs.iter().filter(fits).map(|(x, _)| if x % 32 == 0 { 2 } else { 1 }).sum();
    assert_eq!((&answer["cartesian"], &answer["legal"]), (&64.0.into(), &legal.into()));
    assert!(answer["seconds"].as_f64().unwrap() > 0.0);
    let rejected = answer["rejected_by"].as_object().unwrap();
    let sum: u64 = rejected.values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!((rejected.len(), sum as usize), (2, 64 - legal));
    let samplers = answer["samplers"].as_array().unwrap();
    let names: Vec<&str> = samplers.iter().map(|s| s["sampler"].as_str().unwrap()).collect();
    assert_eq!(names, ["counted", "uniform", "categorical", "chained"]);
    assert_eq!(samplers[0]["acceptance"], 1.0);
    let text = std::fs::read_to_string(list).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("bx,by,pad", legal + 1));
    assert!(lines.contains(&"128,2,1") && !lines.contains(&"16,2,1"));
    assert!(String::from_utf8(home.run(&["space", "--t1", &file]).stdout).unwrap().contains("legal of"));
}

#[test]
fn bad_descriptions_name_the_file_and_the_fault() {
    let home = Home::new();
    let of = |from: &str, to: &str| write(&home, &DESCRIPTION.replace(from, to));
    let fault = |file: &str, code: i32| home.error(&["space", "--t1", file], code, file).message;
    let conflict = fault(&of("32 <= bx * by <= 256", "bx * by <= 256 and bx > 200"), 3);
    assert!(conflict.contains("conflict") || conflict.contains("nothing fulfils"), "{conflict}");
    let broken = fault(&of("bx % 32", "bx %% 32"), 2);
    assert!(broken.contains("position") && broken.contains("expected"), "{broken}");
    assert!(fault(&of("pad == 0 or bx % 32", "bx % pad"), 2).contains("division by zero"));
    assert!(fault(&of("bx % 32", "bz % 32"), 2).contains("\"bz\""));
    assert!(fault(&of("[1, 2, 4, 8]", "[]"), 2).contains("no values"));
    assert!(fault(&of("range(1, 9)", "range(1, 9"), 2).contains("position"));
    assert!(fault(&write(&home, &DESCRIPTION[..200]), 2).contains("no T1 description"));
    home.error(&["space", "--t1", "nowhere.json"], 2, "nowhere.json");
    home.error(&["space", "gemm", "--t1", "nowhere.json"], 2, "t1");
    let params: Vec<String> = (0..5).map(|i| format!(r#"{{"Name": "p{i}", "Values": "range(60000)"}}"#)).collect();
    let huge = format!(r#"{{"ConfigurationSpace": {{"TuningParameters": [{}]}}}}"#, params.join(","));
    assert!(fault(&write(&home, &huge), 2).contains("2^64"));
}

#[test]
fn bacugen_answers_with_the_numbers_of_the_sampler() {
    let home = Home::new();
    // Larger sets are counted in the tests of the sampler, where loops judge them.
    let fermi = ["space", "bacugen", "type=zgemm", "layout=nc", "reading=printed", "--device-spec", "fermi-s2050"];
    let table1 = ["--guidelines", "min_threads=512,min_blocks=2,min_regs_reuse=2"];
    let answer = home.answer(&[&fermi[..], &table1].concat());
    let (device, layout) = (DeviceConstants::known("fermi-s2050").unwrap(), Layout::parse("nc").unwrap());
    let guidelines = bacugen::paper::table1(DType::C64).unwrap();
    let bound = bacugen::space(DType::C64, layout, &device, &guidelines, Reading::Printed).unwrap();
    assert_eq!(answer["legal"], LegalSet::of(&bound).unwrap().count());
    assert!(answer["cartesian"].as_f64().unwrap() > 1e19 && answer["seconds"].is_number());
    let other = ["space", "bacugen", "type=zgemm", "layout=ct", "--device-spec", "sm_13", "--guidelines"];
    let older = home.answer(&[&other[..], &["min_threads=256,min_regs_reuse=1"]].concat());
    assert!(older["legal"].as_u64().unwrap() > 0);
    home.error(&["space", "bacugen", "type=hgemm"], 2, "type");
    home.error(&["space", "bacugen", "layout=nx"], 2, "layout");
    home.error(&["space", "bacugen", "kind=1"], 2, "kind");
    home.error(&["space", "bacugen", "--device-spec", "abacus"], 2, "device-spec");
    home.error(&["space", "bacugen", "--guidelines", "reuse=1"], 2, "guidelines");
    let none = home.error(&[&other[..], &["min_regs_reuse=90"]].concat(), 3, "guidelines");
    assert!(none.message.contains("min_regs_reuse"), "{}", none.message);
}
