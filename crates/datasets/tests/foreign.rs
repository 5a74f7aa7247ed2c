//! Recordings by KTT and CLBlast: what is read, and what is refused.

use std::path::Path;
use std::sync::Arc;
use tilewright_core::measurement::FailureKind;
use tilewright_core::space::Config;
use tilewright_datasets::{Dataset, DatasetError, ExportOf, Format, Place, RecordedKernel, Summary};
use tilewright_testkit::mutants;

const KTT: &str = include_str!("data/ktt.json");
const TUNER: &str = include_str!("data/clblast_xaxpy_32.json");
const DATABASE: &str = include_str!("data/clblast_database.json");

fn parse(text: &str) -> Result<Dataset, DatasetError> {
    Dataset::from_recording(text.as_bytes(), Path::new("recording.json"))
}

fn config(text: &str) -> Config {
    Config::parse(text).unwrap()
}

#[test]
fn results_of_ktt_are_read_with_their_unit_failures_and_clock() {
    let dataset = parse(KTT).unwrap();
    assert_eq!(dataset.describe(), Summary { rows: 5, devices: 1, inputs: 1, configs: 4, failures: 2 });
    assert_eq!((dataset.device(0).as_str(), dataset.variant(0)), ("Made-up GPU", None));
    assert_eq!(dataset.config(0), config("block=32,scale=0.5"));
    assert_eq!(dataset.time_s(0), Some(9e-5), "microseconds");
    assert!((dataset.clock_s(0) - 0.01).abs() < 1e-15);
    let kinds: Vec<_> = [1, 2].map(|row| dataset.outcome(row).unwrap_err().kind).into();
    assert_eq!(kinds, [FailureKind::Compile, FailureKind::Wrong]);
    assert!((dataset.clock_s(1) - 0.001).abs() < 1e-15, "a duration that was never measured counts nothing");
    // One configuration was run twice: the faster run is what a search finds.
    let problem = RecordedKernel::new(Arc::new(dataset)).unwrap().problems().unwrap().remove(0);
    let (best, seconds) = problem.optimum().unwrap();
    assert_eq!((problem.recorded().count(), seconds), (4, 4.7e-5));
    let chosen = tilewright_core::problem::Problem::space(&problem).config(&best);
    assert_eq!(chosen, config("block=128,scale=0.5"));
}

#[test]
fn kernels_of_ktt_are_variants_where_there_are_several() {
    let two = KTT.replacen("\"KernelName\": \"addition\"", "\"KernelName\": \"other\"", 1);
    let dataset = parse(&two).unwrap();
    assert_eq!((dataset.variant(0), dataset.variant(1)), (Some("other".into()), Some("addition".into())));
}

#[test]
fn every_unit_of_ktt_is_known() {
    for (unit, seconds) in [("Nanoseconds", 9e-8), ("Milliseconds", 0.09), ("Seconds", 90.0)] {
        let text = KTT.replace("\"Microseconds\"", &format!("{unit:?}"));
        assert_eq!(parse(&text).unwrap().time_s(0), Some(seconds), "{unit}");
    }
}

#[test]
fn a_file_of_a_clblast_tuner_is_read() {
    let dataset = parse(TUNER).unwrap();
    assert_eq!(dataset.describe(), Summary { rows: 3, devices: 1, inputs: 1, configs: 3, failures: 0 });
    assert_eq!(dataset.input(0), config("alpha=2,n=4194304,precision=32"));
    let fastest = dataset.fastest().unwrap();
    assert_eq!((fastest.time_s, fastest.config), (1.23e-4, config("VW=4,WGS=128")), "as best_parameters say");
    assert_eq!((fastest.device.as_str(), fastest.variant), ("Made-up GPU", None));
}

#[test]
fn the_database_of_clblast_is_read_without_scores() {
    let dataset = parse(DATABASE).unwrap();
    assert_eq!(dataset.describe(), Summary { rows: 6, devices: 2, inputs: 3, configs: 6, failures: 1 });
    let variants: Vec<_> = (0..6).filter_map(|row| dataset.variant(row)).collect();
    assert_eq!(variants, ["Xaxpy", "Xaxpy", "Xaxpy", "Xgemm", "Xgemm", "Xgemm"]);
    assert_eq!(dataset.config(4), config("GEMMK=0,KWG=32,MWG=64"));
    assert_eq!(dataset.input(4), config("k=512,m=1024,n=1024,precision=32"));
    assert_eq!(dataset.outcome(5).unwrap_err().kind, FailureKind::Launch);
    assert_eq!(RecordedKernel::new(Arc::new(dataset)).unwrap().problems().unwrap().len(), 3);
    let unpacked = DATABASE.replace(r#"["2,64", 0.11]"#, r#"{"time": 0.11, "parameters": {"VW": 2, "WGS": 64}}"#);
    assert_ne!(unpacked, DATABASE);
    assert_eq!(parse(&unpacked).unwrap().columns(), parse(DATABASE).unwrap().columns());
}

/// The entry and the field that an error names.
fn place(text: &str) -> String {
    match parse(text).unwrap_err() {
        DatasetError::Invalid { place: Place::Entry { entry, field }, .. } => format!("{entry}: {field}"),
        other => other.to_string(),
    }
}

#[test]
fn faults_are_named() {
    for (text, from, to, expected) in [
        (KTT, "\"TimeUnit\": \"Microseconds\",", "", "Metadata: TimeUnit"),
        (KTT, "Microseconds", "Fortnights", "Metadata: TimeUnit"),
        (KTT, "\"Ok\"", "\"Fine\"", "result 0: Status"),
        (KTT, "\"Status\": \"Ok\",", "", "result 0: Status"),
        (KTT, "90.0", "0.0", "result 0: TotalDuration"),
        (KTT, "90.0", "\"long\"", "result 0: TotalDuration"),
        (KTT, "\"Name\": \"scale\"", "\"Name\": \"block\"", "result 0: block"),
        (KTT, "\"Name\": \"scale\"", "\"Name\": \"other\"", "result 1: other"),
        (KTT, "\"Name\": \"scale\", \"Value\": 0.5", "\"Name\": \"scale\"", "result 0: scale"),
        (TUNER, "\"time\": 0.210,", "", "result 0: time"),
        (TUNER, "\"VW\": 1", "\"VX\": 1", "result 1: VW"),
        (TUNER, "\"VW\": 1", "\"VW\": []", "result 0: VW"),
        (TUNER, "\"Xaxpy\",\n      \"time\": 0.123", "\"Xdot\",\n      \"time\": 0.123", "result 1: kernel"),
        (DATABASE, "\"4,128\"", "\"4,128,1\"", "section 0, result 1: results"),
        (DATABASE, "\"4,128\"", "4", "section 0, result 1: results"),
        (DATABASE, "[\"VW\", \"WGS\"]", "[\"VW\", 1]", "section 0: parameter_names"),
        (DATABASE, "\"1,64\", 0.21", "\"1,64\", \"0.21\"", "section 0, result 0: time"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{from}");
        assert_eq!(place(&changed), expected, "{from} -> {to}");
    }
    let scores = TUNER.replace("xaxpy_1", "gemm_routine");
    assert!(parse(&scores).unwrap_err().to_string().contains("scores"));
    assert!(parse("{}").unwrap_err().to_string().contains("no recording"));
    let column = TUNER.replace("\"arg_n\"", "\"arg_VW\"");
    assert!(matches!(parse(&column), Err(DatasetError::Record { field, .. }) if field == "VW"));
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_with_its_place() {
    for text in [KTT, TUNER, DATABASE] {
        for end in 1..text.trim_end().len() {
            let error = parse(&text[..end]).unwrap_err();
            assert!(matches!(error, DatasetError::Invalid { place: Place::Json { .. }, .. }), "{end}: {error}");
        }
    }
}

/// `TILEWRIGHT_MUTANTS` sets how many there are of each text.
#[test]
fn mutants_of_recordings_are_read_or_refused() {
    let words = ["\"Ok\"", "\"Value\"", "\"VW\"", "\"parameters\"", "\"1,64\"", "\"results\"", "1e20"];
    mutants(&[KTT, TUNER, DATABASE], &words, 2_000, &|bytes| {
        let path = Path::new("mutant.json");
        let read = [Dataset::from_recording, Dataset::from_ktt, Dataset::from_clblast].map(|read| read(bytes, path));
        for dataset in read.into_iter().flatten() {
            let (csv, sidecar) = (dataset.to_csv().unwrap(), dataset.to_sidecar().unwrap());
            if let Ok(again) = Dataset::parse(&csv, &sidecar, Path::new("mutant.csv")) {
                assert_eq!(again.len(), dataset.len());
            }
            if let Ok(export) = dataset.export(&ExportOf::default()) {
                for format in [Format::KernelTuner, Format::T4] {
                    let Ok(text) = export.to_text(format) else { continue };
                    serde_json::from_str::<serde_json::Value>(&text).unwrap();
                }
            }
            let Ok(kernel) = RecordedKernel::new(Arc::new(dataset)) else { continue };
            for problem in kernel.problems().unwrap() {
                assert!(problem.recorded().all(|(point, _)| problem.look_up(point).is_some()));
            }
        }
    });
}
