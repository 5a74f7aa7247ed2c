//! Kernel Tuner's formats written: a cache as its release 1.5 does, and T4 results by version 1.0.0 of their schema.
//!
//! A dataset knows what an evaluation took in all, and not its parts: the whole stands as the time of the benchmark, so that a simulated
//! search takes as long, and the other parts are 0. It does not know when something was measured either: there are no timestamps.

use crate::error::DatasetError;
use crate::export::{Entry, Export};
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;
use std::fmt::Write as _;
use tilewright_core::expr::Value;
use tilewright_core::measurement::FailureKind;

/// The fields of a cache's entry beside its parameters.
const FIELDS: [&str; 9] = [
    "time",
    "times",
    "compile_time",
    "verification_time",
    "benchmark_time",
    "strategy_time",
    "framework_time",
    "timestamp",
    "__error__",
];

impl Export {
    /// A cache file. It is laid out as Kernel Tuner does it, a line an entry, which is how it tells whether a file was closed.
    pub(crate) fn to_kernel_tuner(&self) -> Result<String, DatasetError> {
        if let Some(param) = self.params.iter().find(|p| FIELDS.contains(&p.name.as_str())) {
            return Err(cannot(0, &param.name, "the format has a field of this name"));
        }
        let names: Vec<&String> = self.params.iter().map(|p| &p.name).collect();
        let values = self.params.iter().map(|p| (p.name.as_str(), text(&p.values)));
        let mut out = String::from("{\n");
        for (field, value) in [
            ("device_name", text(&self.device)),
            ("kernel_name", text(&self.kernel)),
            ("problem_size", text(&self.problem_size)),
            ("tune_params_keys", text(&names)),
            // In the order of the keys, which Kernel Tuner compares.
            ("tune_params", object(values)),
            ("objective", text("time")),
        ] {
            let _ = writeln!(out, "{}: {value},", text(field));
        }
        out.push_str("\"cache\": {");
        let mut seen = HashSet::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let key = entry.config.iter().map(python).collect::<Vec<_>>().join(",");
            if seen.contains(&key) {
                return Err(cannot(at, "configuration", &format!("the key {key:?} is that of another configuration")));
            }
            let separator = if at == 0 { "\n" } else { ",\n" };
            let _ = write!(out, "{separator}{}: {}", text(&key), self.cache_entry(at, entry)?);
            seen.insert(key);
        }
        out.push_str("}\n}");
        Ok(out)
    }

    fn cache_entry(&self, at: usize, entry: &Entry) -> Result<String, DatasetError> {
        let mut fields = self.config(entry);
        match &entry.outcome {
            Ok(measured) => {
                let time_ms = milliseconds(measured.time_s, at)?;
                fields.push(("time", text(&time_ms)));
                fields.push(("times", text(&[time_ms])));
            }
            Err(failure) => fields.push(("__error__", text(error_config(failure.kind)))),
        }
        let none = || text(&0);
        fields.extend([("compile_time", none()), ("verification_time", none())]);
        fields.push(("benchmark_time", text(&milliseconds(entry.clock_s, at)?)));
        fields.extend([("strategy_time", none()), ("framework_time", none())]);
        Ok(object(fields))
    }

    /// T4 results. The schema leaves the metadata open: the device stands there by the name that KTT gives it.
    pub(crate) fn to_t4(&self) -> Result<String, DatasetError> {
        let metadata = json!({"timeunit": "milliseconds", "device": self.device, "kernel": self.kernel});
        let mut out = format!("{{\"schema_version\": \"1.0.0\",\n\"metadata\": {},\n\"results\": [", text(&metadata));
        for (at, entry) in self.entries.iter().enumerate() {
            let separator = if at == 0 { "\n" } else { ",\n" };
            let _ = write!(out, "{separator}{}", self.t4_result(at, entry)?);
        }
        out.push_str("\n]}\n");
        Ok(out)
    }

    fn t4_result(&self, at: usize, entry: &Entry) -> Result<String, DatasetError> {
        let (verdict, time_ms) = match &entry.outcome {
            Ok(measured) => ("correct", Some(milliseconds(measured.time_s, at)?)),
            Err(failure) => (invalidity(failure.kind), None),
        };
        let runtimes: Vec<f64> = time_ms.into_iter().collect();
        let measurements: Vec<_> =
            runtimes.iter().map(|ms| json!({"name": "time", "value": ms, "unit": "ms"})).collect();
        let times = json!({
            "compilation": 0, "benchmark": milliseconds(entry.clock_s, at)?, "framework": 0, "search_algorithm": 0,
            "validation": 0, "runtimes": runtimes,
        });
        Ok(object([
            ("configuration", object(self.config(entry))),
            ("times", text(&times)),
            ("invalidity", text(verdict)),
            ("correctness", text(&i32::from(entry.outcome.is_ok()))),
            ("measurements", text(&measurements)),
            ("objectives", text(&["time"])),
        ]))
    }

    fn config(&self, entry: &Entry) -> Vec<(&str, String)> {
        self.params.iter().zip(&entry.config).map(|(p, value)| (p.name.as_str(), text(value))).collect()
    }
}

fn cannot(record: usize, field: &str, message: &str) -> DatasetError {
    DatasetError::Record { record, field: field.into(), message: message.into() }
}

/// JSON of what always has some.
fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// An object with its fields in this order.
fn object<'f>(fields: impl IntoIterator<Item = (&'f str, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("{}: {value}", text(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// Milliseconds that read back as the same seconds, where there are any.
fn milliseconds(seconds: f64, at: usize) -> Result<f64, DatasetError> {
    let near = seconds * 1e3;
    if near >= super::NEVER_MS {
        return Err(cannot(at, "time", &format!("{seconds:e} s: times from 1e16 s on mark failures")));
    }
    let same = [near, near.next_down(), near.next_up()].into_iter().find(|ms| ms / 1e3 == seconds && *ms >= 0.0);
    Ok(same.unwrap_or(near))
}

/// What Kernel Tuner calls a failure. It knows three kinds: what ran and did not end well is one of them.
fn error_config(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Illegal => "InvalidConfig",
        FailureKind::Compile => "CompilationFailedConfig",
        FailureKind::Launch | FailureKind::Timeout | FailureKind::CutOff | FailureKind::Wrong => "RuntimeFailedConfig",
    }
}

/// What T4 calls a failure.
fn invalidity(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Illegal => "constraints",
        FailureKind::Compile => "compile",
        FailureKind::Launch => "runtime",
        FailureKind::Timeout | FailureKind::CutOff => "timeout",
        FailureKind::Wrong => "correctness",
    }
}

/// A value as Python's `str` writes it, which keys are made of.
fn python(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Float(f) => python_float(*f),
        other => other.to_string(),
    }
}

/// The fewest digits that read back, as a fraction from 1e-4 to below 1e16, else with an exponent of two digits or more.
fn python_float(f: f64) -> String {
    let scientific = format!("{f:e}");
    match scientific.split_once('e').map(|(digits, power)| (digits, power.parse::<i32>().unwrap_or_default())) {
        Some((digits, power)) if f != 0.0 && !(-4..16).contains(&power) => {
            format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
        }
        _ => format!("{f:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        for (number, text) in [
            (0.5, "0.5"),
            (2.0, "2.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-1.5e300, "-1.5e+300"),
            (0.0, "0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(python_float(number), text);
        }
    }
}
