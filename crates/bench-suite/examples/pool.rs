//! What a selector among the generated kernels and the vendor's routines comes to on the rows of a campaign that is over:
//!
//! ```text
//! pool crates/bench-suite/records/h200/2026-11-27-campaign-fourth.json [--json]
//! ```
//!
//! The file is a campaign's `tables.json`, or a record that was made of one. It needs no GPU: the times are in the file. Rows of versions
//! before the campaign's stage `pool` name the best of the generated kernels only, which then stands for all of them.

use std::error::Error;
use std::process::ExitCode;
use tilewright::device::emulator;
use tilewright::kernels::Kernels;
use tilewright_bench_suite::campaign::TaskRow;
use tilewright_bench_suite::campaign::pool::judge;
use tilewright_core::device::Device;
use tilewright_emulator::Behaviour;

#[derive(serde::Deserialize)]
struct Tables {
    rows: Vec<TaskRow>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (options, files): (Vec<&str>, Vec<&str>) = words.iter().map(String::as_str).partition(|w| w.starts_with("--"));
    let ([file], [] | ["--json"]) = (&files[..], &options[..]) else {
        eprintln!("usage: pool FILE.json [--json]");
        return ExitCode::from(2);
    };
    match run(file, !options.is_empty()) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, as_json: bool) -> Result<String, Box<dyn Error>> {
    let Tables { rows } = serde_json::from_slice(&std::fs::read(file)?)?;
    // Features of an input do not depend on the device.
    let device = emulator("sm_90".parse()?, Behaviour::default())?.spec().clone();
    // Versions that knew one kernel did not name it.
    let computation =
        rows.iter().find_map(|row| row.kernel.split_once('.')).map_or("gemm", |(computation, _)| computation);
    let kernels = Kernels::default().competing(computation, &device, false)?;
    let kernels: Vec<_> = kernels.iter().map(|kernel| &**kernel).collect();
    let report = judge(&rows, &kernels, &device, 0, &|| false)?;
    Ok(if as_json { serde_json::to_string_pretty(&report)? } else { report.text() })
}
