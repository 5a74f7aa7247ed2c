//! The records of a campaign log, one line each: length, checksum, JSON.

use serde::{Deserialize, Serialize};
use tilewright_core::id::KernelId;
use tilewright_core::measurement::Outcome;
use tilewright_core::space::Config;

/// What a log is for; its first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The kernel.
    pub kernel: KernelId,
    /// Fingerprint of the device.
    pub fingerprint: String,
    /// Name of the device, for people.
    pub device: String,
    /// Input fields that every drawn input shares.
    pub fixed: Config,
}

/// One measurement of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which drawn input of the campaign, from zero.
    pub draw: u64,
    /// Seed of the campaign.
    pub seed: u64,
    /// The input's fields.
    pub input: Config,
    /// The configuration.
    pub config: Config,
    /// What became of it.
    #[serde(with = "outcome")]
    pub outcome: Outcome,
    /// The cut-off that applied, in seconds: a configuration that was cut off took at least this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off_s: Option<f64>,
    /// Seconds that this sample took out of the campaign's budget.
    pub spent_s: f64,
}

impl Sample {
    /// Refuses numbers that JSON cannot hold, and times that are none.
    fn check(&self) -> Result<(), String> {
        let time = |field: &str, value: f64| match value {
            x if x.is_finite() && x >= 0.0 => Ok(()),
            x => Err(format!("{field} is {x}, expected a number of at least 0")),
        };
        time("spent_s", self.spent_s)?;
        self.cut_off_s.map_or(Ok(()), |x| time("cut_off_s", x))?;
        let Ok(measured) = &self.outcome else { return Ok(()) };
        time("relative_error", measured.relative_error)?;
        if !(measured.time_s.is_finite() && measured.time_s > 0.0) {
            return Err(format!("time_s is {}, expected a number above 0", measured.time_s));
        }
        match measured.metrics.iter().find(|(_, x)| !x.is_finite()) {
            Some((name, x)) => Err(format!("{name} is {x}, expected a number")),
            None => Ok(()),
        }
    }
}

impl Record {
    fn check(&self) -> Result<(), String> {
        if let Self::Sample(sample) = self { sample.check() } else { Ok(()) }
    }
}

/// What a line holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// What the log is for.
    Header(LogHeader),
    /// One measurement.
    Sample(Sample),
    /// Everything up to here is in a profile: the campaign ended.
    Finished {
        /// When, in seconds since 1970.
        at: u64,
    },
}

/// `Result` as an object with either `ok` or `failed`.
mod outcome {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tilewright_core::measurement::{Failure, Measurement, Outcome};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Became<M, F> {
        Ok(M),
        Failed(F),
    }

    pub(super) fn serialize<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
        outcome.as_ref().map_or_else(Became::Failed, Became::Ok).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
        Ok(match Became::<Measurement, Failure>::deserialize(from)? {
            Became::Ok(measurement) => Ok(measurement),
            Became::Failed(failure) => Err(failure),
        })
    }
}

/// Hexadecimal digits of a record's checksum.
const SUM_DIGITS: usize = 16;

/// The line of a record, newline included.
pub(super) fn to_line(record: &Record) -> Result<Vec<u8>, String> {
    record.check()?;
    let json = serde_json::to_string(record).map_err(|e| e.to_string())?;
    Ok(format!("{:08x} {} {json}\n", json.len(), checksum(json.as_bytes())).into_bytes())
}

fn checksum(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..SUM_DIGITS].to_owned()
}

/// The record of a line without its newline.
pub(super) fn from_line(line: &[u8]) -> Result<Record, String> {
    let text = std::str::from_utf8(line).map_err(|e| e.to_string())?;
    let mut parts = text.splitn(3, ' ');
    let (Some(length), Some(sum), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("not a length, a checksum and a record".into());
    };
    if length != format!("{:08x}", json.len()) {
        return Err(format!("{} bytes, said to be {length} (hexadecimal)", json.len()));
    }
    if sum != checksum(json.as_bytes()) {
        return Err("the checksum does not match".into());
    }
    let record: Record = serde_json::from_str(json).map_err(|e| e.to_string())?;
    record.check().map(|()| record)
}
