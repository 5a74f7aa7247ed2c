//! The sidecar: what the columns of a table mean.

use crate::error::{DatasetError, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tilewright_core::expr::{Expr, Value};
use tilewright_core::space::Config;

/// The `format` of a sidecar.
pub(crate) const FORMAT: &str = "tilewright-dataset";
/// The `version` that is read and written.
pub(crate) const VERSION: u64 = 1;

/// The sidecar of a table, `NAME.schema.json` beside `NAME.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetSchema {
    format: String,
    version: u64,
    /// What the columns are.
    pub columns: Columns,
    /// Where the measurements come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Under which licence they may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Names with fixed values for the derived features.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub constants: Config,
    /// Names that derived features may use for what is known of the device of a row ([`Dataset::know_devices`]).
    ///
    /// [`Dataset::know_devices`]: crate::Dataset::know_devices
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_features: Vec<String>,
    /// Derived features: expressions over columns, constants and features of devices, in the language of rules, by name.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub derived: Config,
}

fn is_empty(config: &Config) -> bool {
    config.0.is_empty()
}

/// Which column is what. Columns of the table that are not named stay extra: they can be split by and used in derived
/// features, and are otherwise ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The device that a row was measured on.
    #[serde(default)]
    pub device: Option<String>,
    /// The fields of the input.
    pub input: Vec<String>,
    /// The tuning parameters.
    pub config: Vec<String>,
    /// The variant of the computation.
    #[serde(default)]
    pub variant: Option<String>,
    /// The measured time.
    pub time: Time,
    /// What marks a failure; without it, a row without a time has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Rows with the same value here belong on one side of a split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What evaluating a row took in all, compilation and failures included: the clock of a replayed search. Without it,
    /// the clock counts the measured times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Time>,
}

/// The column of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// Its name.
    pub column: String,
    /// Its unit.
    pub unit: TimeUnit,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Seconds.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// 10^-3 s.
    #[serde(rename = "ms")]
    Milliseconds,
    /// 10^-6 s.
    #[serde(rename = "us")]
    Microseconds,
    /// 10^-9 s.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl TimeUnit {
    /// How many of it make a second. Dividing by this rounds once, multiplying by its inverse would round twice.
    pub fn per_second(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Milliseconds => 1e3,
            Self::Microseconds => 1e6,
            Self::Nanoseconds => 1e9,
        }
    }
}

/// The column that marks failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Its name.
    pub column: String,
    /// The value of a row that did not fail.
    pub ok: Value,
}

/// What is read before the version is known.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u64,
}

impl DatasetSchema {
    /// A schema of these columns, without derived features.
    pub fn new(columns: Columns) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            columns,
            source: None,
            license: None,
            note: None,
            constants: Config::default(),
            device_features: Vec::new(),
            derived: Config::default(),
        }
    }

    /// Where the sidecar of a table stands: `NAME.schema.json` for `NAME.csv`.
    pub fn path_for(table: &Path) -> PathBuf {
        table.with_extension("schema.json")
    }

    /// Reads a sidecar; `path` is for messages.
    ///
    /// # Errors
    /// No JSON, an unknown format or version, an unknown or missing key, a column with two roles, a derived feature that
    /// does not parse.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let json = |e| DatasetError::json(path, &e);
        // Editors on Windows begin a file with the mark of its byte order, which JSON does not know.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let header: Header = serde_json::from_slice(text).map_err(json)?;
        if header.format != FORMAT || header.version != VERSION {
            let Header { format, version } = header;
            let reads = format!("this program reads {FORMAT:?} version {VERSION}");
            return Err(DatasetError::at(path, Place::File, format!("format {format:?} version {version}; {reads}")));
        }
        let schema: Self = serde_json::from_slice(text).map_err(json)?;
        schema.check(path)?;
        Ok(schema)
    }

    /// The columns with a role, with the field that gives it.
    pub(crate) fn roles(&self) -> Vec<(&str, String)> {
        let c = &self.columns;
        let mut out: Vec<(&str, String)> = Vec::new();
        out.extend(c.device.iter().map(|n| (n.as_str(), "columns.device".to_owned())));
        out.extend(c.input.iter().enumerate().map(|(i, n)| (n.as_str(), format!("columns.input[{i}]"))));
        out.extend(c.config.iter().enumerate().map(|(i, n)| (n.as_str(), format!("columns.config[{i}]"))));
        out.extend(c.variant.iter().map(|n| (n.as_str(), "columns.variant".to_owned())));
        out.push((&c.time.column, "columns.time.column".to_owned()));
        out.extend(c.status.iter().map(|s| (s.column.as_str(), "columns.status.column".to_owned())));
        out.extend(c.clock.iter().map(|t| (t.column.as_str(), "columns.clock.column".to_owned())));
        out
    }

    /// The derived features, parsed, with the constants filled in.
    pub(crate) fn derived_features(&self, path: &Path) -> Result<Vec<(String, Expr)>, DatasetError> {
        let known = |name: &str| self.constants.get(name).cloned();
        let parse = |(name, text): &(String, Value)| {
            let fault = |message: String| DatasetError::at(path, Place::Field(format!("derived.{name}")), message);
            let text = text.as_str().ok_or_else(|| fault("not a text".into()))?;
            let expr: Expr = text.parse().map_err(|e: tilewright_core::expr::ParseError| fault(e.to_string()))?;
            Ok((name.clone(), expr.fold(&known)))
        };
        self.derived.0.iter().map(parse).collect()
    }

    fn check(&self, path: &Path) -> Result<(), DatasetError> {
        let mut seen = BTreeSet::new();
        for (column, field) in self.roles() {
            if !seen.insert(column) {
                let message = format!("column {column:?} has another role already");
                return Err(DatasetError::at(path, Place::Field(field), message));
            }
        }
        let names = |of: &'static str, names: &[String]| names.iter().map(|n| (of, n.clone())).collect::<Vec<_>>();
        let keys = |of: &Config| of.0.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        let mut all = names("constants", &keys(&self.constants));
        all.extend(names("device_features", &self.device_features));
        all.extend(names("derived", &keys(&self.derived)));
        for (what, name) in &all {
            if !seen.insert(name) {
                let message = "the name is that of a column, a constant or another feature";
                return Err(DatasetError::at(path, Place::Field(format!("{what}.{name}")), message));
            }
        }
        self.derived_features(path).map(|_| ())
    }
}
