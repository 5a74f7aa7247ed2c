//! Splits of a dataset into rows to learn from and rows to judge on.

use crate::column::cell;
use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::open::MAX_BYTES;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tilewright_core::expr::Value;
use tilewright_core::text::counted;
use tilewright_files::read_file;

/// How to split, as the command line writes it.
///
/// A column may also be given by role: `device`, `variant` and `group` where the table has no column of that name, and
/// `input` for all words of the input together.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitSpec {
    /// `row:FRACTION`: single rows are held out.
    Rows(f64),
    /// `column:FRACTION`: all rows of a fraction of the distinct values of a column; `m+n+k:FRACTION`: of the distinct values of
    /// several columns together.
    Column(String, f64),
    /// `column=VALUE`: all rows with this value.
    Value(String, String),
    /// A file with the numbers of the rows that are held out, counted from 0 behind the header, separated by white space
    /// or commas.
    File(PathBuf),
}

/// A text that is no split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("split {0:?}: expected column:FRACTION, row:FRACTION with a fraction between 0 and 1, column=VALUE, or a file")]
pub struct SplitParseError(pub String);

impl FromStr for SplitSpec {
    type Err = SplitParseError;

    fn from_str(text: &str) -> Result<Self, SplitParseError> {
        let fault = || SplitParseError(text.to_owned());
        if let Some((column, value)) = text.split_once('=') {
            let column = column.trim().to_owned();
            return if column.is_empty() { Err(fault()) } else { Ok(Self::Value(column, value.trim().to_owned())) };
        }
        let fraction = text.rsplit_once(':').and_then(|(c, f)| Some((c.trim(), f.trim().parse::<f64>().ok()?)));
        match fraction {
            Some((column, f)) if column.is_empty() || !(f > 0.0 && f < 1.0) => Err(fault()),
            Some(("row", f)) => Ok(Self::Rows(f)),
            Some((column, f)) => Ok(Self::Column(column.to_owned(), f)),
            None if text.trim().is_empty() => Err(fault()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl SplitSpec {
    /// The share that is held out, where it is drawn; none where every seed holds out the same rows.
    pub fn drawn_share(&self) -> Option<f64> {
        match self {
            Self::Rows(share) | Self::Column(_, share) => Some(*share),
            Self::Value(..) | Self::File(_) => None,
        }
    }
}

impl fmt::Display for SplitSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(fraction) => write!(f, "row:{fraction}"),
            Self::Column(column, fraction) => write!(f, "{column}:{fraction}"),
            Self::Value(column, value) => write!(f, "{column}={value}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Numbers of rows, ascending, every row in one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// To learn from.
    pub train: Vec<usize>,
    /// To judge on.
    pub held_out: Vec<usize>,
}

/// One device's rows of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSplit {
    /// The device.
    pub device: String,
    /// The seed of the split.
    pub seed: u64,
    /// To learn from: the device's own rows, or those of all others where it keeps none.
    pub train: Vec<usize>,
    /// To judge on, at least one row.
    pub held_out: Vec<usize>,
}

impl Dataset {
    /// The devices, sorted.
    pub fn devices(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..self.len()).map(|row| self.device(row)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The rows among these that are of a device.
    pub fn rows_of(&self, device: &str, rows: &[usize]) -> Vec<usize> {
        rows.iter().copied().filter(|&row| self.device(row) == device).collect()
    }

    /// So many splits with consecutive seeds, divided by device. A device of which nothing is held out has no part in a split.
    ///
    /// # Errors
    /// As [`Dataset::split`].
    pub fn device_splits(&self, spec: &SplitSpec, repeats: u32, seed: u64) -> Result<Vec<DeviceSplit>, DatasetError> {
        let devices = self.devices();
        let mut out = Vec::new();
        for seed in (0..u64::from(repeats)).map(|repeat| seed.wrapping_add(repeat)) {
            let split = self.split(spec, seed)?;
            for device in &devices {
                let (own, held_out) = (self.rows_of(device, &split.train), self.rows_of(device, &split.held_out));
                if !held_out.is_empty() {
                    let train = if own.is_empty() { split.train.clone() } else { own };
                    out.push(DeviceSplit { device: device.clone(), seed, train, held_out });
                }
            }
        }
        Ok(out)
    }

    /// Splits the rows, failed ones included. The same seed gives the same split; a fraction of values is rounded to at
    /// least one value on either side.
    ///
    /// # Errors
    /// No such column or value, fewer than two values to divide, a file that cannot be read or numbers beyond the rows.
    pub fn split(&self, spec: &SplitSpec, seed: u64) -> Result<Split, DatasetError> {
        let held_out = match spec {
            SplitSpec::Rows(fraction) => {
                let chosen = self.choose((0..self.len()).collect(), *fraction, seed, spec)?;
                (0..self.len()).map(|row| chosen.contains(&row)).collect()
            }
            SplitSpec::Column(column, fraction) => {
                let (keys, values) = self.keys(column, spec)?;
                let chosen = self.choose(values, *fraction, seed, spec)?;
                keys.iter().map(|&key| chosen.contains(&(key as usize))).collect()
            }
            SplitSpec::Value(column, value) => self.with_value(column, value, spec)?,
            SplitSpec::File(path) => self.listed(path, spec)?,
        };
        let rows = |side: bool| (0..self.len()).filter(|&r| held_out[r] == side).collect();
        Ok(Split { train: rows(false), held_out: rows(true) })
    }

    fn fault(spec: &SplitSpec, message: String) -> DatasetError {
        DatasetError::Split { spec: spec.to_string(), message }
    }

    /// A fraction of the values, at least one and not all.
    fn choose(
        &self,
        mut values: Vec<usize>,
        fraction: f64,
        seed: u64,
        spec: &SplitSpec,
    ) -> Result<BTreeSet<usize>, DatasetError> {
        if values.len() < 2 {
            let message = format!("{}, at least 2 are needed", counted(values.len(), "distinct value"));
            return Err(Self::fault(spec, message));
        }
        let count = (values.len() as f64 * fraction).round() as usize;
        let count = count.clamp(1, values.len() - 1);
        values.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Ok(values.into_iter().take(count).collect())
    }

    /// Positions of the columns that a name or a role means.
    fn meant(&self, name: &str, spec: &SplitSpec) -> Result<Vec<usize>, DatasetError> {
        if let Some(c) = self.columns.iter().position(|c| c.name() == name) {
            return Ok(vec![c]);
        }
        let by_role = match name {
            "device" => self.roles.device.map(|c| vec![c]),
            "variant" => self.roles.variant.map(|c| vec![c]),
            "group" => self.roles.group.map(|c| vec![c]),
            "input" => Some(self.roles.input.clone()),
            _ => None,
        };
        let several = || -> Option<Result<Vec<usize>, DatasetError>> {
            name.contains('+').then(|| {
                let of_each =
                    name.split('+').map(|part| self.meant(part.trim(), spec)).collect::<Result<Vec<_>, _>>()?;
                Ok(of_each.concat())
            })
        };
        if let Some(columns) = by_role.is_none().then(several).flatten() {
            return columns;
        }
        by_role.ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name()).collect();
            Self::fault(spec, format!("no column {name:?}; there are {}", names.join(" ")))
        })
    }

    /// A key for every row, and all keys in an order that does not depend on that of the rows.
    fn keys(&self, name: &str, spec: &SplitSpec) -> Result<(Vec<u32>, Vec<usize>), DatasetError> {
        let columns = self.meant(name, spec)?;
        let (keys, count) = self.tuples(&columns);
        let mut texts: Vec<Option<Vec<String>>> = vec![None; count];
        for (row, &key) in keys.iter().enumerate() {
            texts[key as usize].get_or_insert_with(|| {
                let text = |&c: &usize| self.columns[c].get(row).map_or_else(String::new, Value::to_string);
                columns.iter().map(text).collect()
            });
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| texts[a].cmp(&texts[b]));
        Ok((keys, order))
    }

    fn with_value(&self, name: &str, value: &str, spec: &SplitSpec) -> Result<Vec<bool>, DatasetError> {
        let columns = self.meant(name, spec)?;
        let [c] = columns[..] else {
            return Err(Self::fault(spec, format!("{name:?} stands for {} columns, name one", columns.len())));
        };
        let column = &self.columns[c];
        let code = match cell(value) {
            Some(value) => Some(column.code_of(&value).ok_or_else(|| {
                let known: Vec<String> = column.levels().iter().take(20).map(Value::to_string).collect();
                Self::fault(spec, format!("no such value in column {name:?}; there are {}", known.join(" ")))
            })?),
            None => None,
        };
        Ok((0..self.len()).map(|row| column.code(row) == code).collect())
    }

    fn listed(&self, path: &Path, spec: &SplitSpec) -> Result<Vec<bool>, DatasetError> {
        let bytes = read_file(path, MAX_BYTES).map_err(DatasetError::io(path))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut held_out = vec![false; self.len()];
        for word in text.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()) {
            let row = word.parse::<usize>().ok().filter(|&r| r < self.len()).ok_or_else(|| {
                let last = self.len().saturating_sub(1);
                Self::fault(spec, format!("{word:?} is no row; the table has rows 0 to {last}"))
            })?;
            held_out[row] = true;
        }
        Ok(held_out)
    }
}
