//! Feature columns of a dataset, and training sets of them.

use crate::column::Column;
use crate::dataset::Dataset;
use crate::error::{DatasetError, Place};
use std::collections::BTreeSet;
use tilewright_core::expr::{EvalError, Expr, Val, Value, brief};
use tilewright_core::feature::{Feature, FeatureKind, FeatureSchema};
use tilewright_core::space::Config;
use tilewright_core::training::TrainingSet;

/// The features of every row of a dataset, column by column; NaN where a cell is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    schema: FeatureSchema,
    columns: Vec<Vec<f32>>,
}

impl FeatureTable {
    /// What the columns are.
    pub fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    /// Appends the input's features of a row.
    ///
    /// # Panics
    /// Beyond the last row.
    pub fn input(&self, row: usize, out: &mut Vec<f32>) {
        out.extend(self.columns[..self.schema.input.len()].iter().map(|c| c[row]));
    }

    /// Appends the configuration's features of a row.
    ///
    /// # Panics
    /// Beyond the last row.
    pub fn config(&self, row: usize, out: &mut Vec<f32>) {
        out.extend(self.columns[self.schema.input.len()..].iter().map(|c| c[row]));
    }
}

impl Dataset {
    /// The features of every row: the device (if there are several), the input's words and what is derived from them
    /// alone as features of the input; the variant, the parameters and everything else derived as features of the
    /// configuration.
    ///
    /// Columns of numbers stay numbers; a column with words becomes one flag a word, named `column=word`, and so do devices and
    /// variants, whatever their names look like. Features are
    /// [`FeatureKind::Size`] unless they are negative somewhere or only 0 and 1. The schema depends on the whole dataset,
    /// so that every part of it has the same. A missing cell is NaN, and so is what is derived from it; infinite numbers count as
    /// missing.
    ///
    /// # Errors
    /// A derived feature without a value in a row without missing cells; a column with more than 500 distinct words.
    pub fn features(&self) -> Result<FeatureTable, DatasetError> {
        self.features_with(true)
    }

    /// [`Dataset::features`] without the device: what is known of an input on any of them.
    ///
    /// # Errors
    /// As [`Dataset::features`].
    pub fn features_on_any_device(&self) -> Result<FeatureTable, DatasetError> {
        self.features_with(false)
    }

    /// Says what is known of the devices, for the derived features that name it (`device_features` of the sidecar); nothing
    /// for a device that `of` does not know. What follows from what is not known is missing.
    pub fn know_devices(&mut self, of: impl Fn(&str) -> Option<Config>) {
        let Some(column) = self.roles.device else { return };
        let known = |device: &Value| of(&device.to_string()).unwrap_or_default();
        self.devices = self.columns[column].levels().iter().map(known).collect();
    }

    /// A feature of the device of a row; none where it is not known.
    fn of_device(&self, row: usize, name: &str) -> Option<&Value> {
        let level = self.columns[self.roles.device?].code(row)?;
        self.devices.get(level as usize)?.get(name)
    }

    fn features_with(&self, device: bool) -> Result<FeatureTable, DatasetError> {
        let mut input = Vec::new();
        let mut config = Vec::new();
        let of = |roles: &[usize], out: &mut Vec<_>| {
            roles.iter().try_for_each(|&c| self.columns_of(c, is_numeric(&self.columns[c]), out))
        };
        // A name is a name, also where it is written in digits: there is nothing between variants 1 and 2.
        let named =
            |role: Option<usize>, out: &mut Vec<_>| role.into_iter().try_for_each(|c| self.columns_of(c, false, out));
        let several = |&c: &usize| device && self.columns[c].levels().len() > 1;
        named(self.roles.device.filter(several), &mut input)?;
        of(&self.roles.input, &mut input)?;
        named(self.roles.variant.filter(|&c| self.columns[c].levels().len() > 1), &mut config)?;
        of(&self.roles.config, &mut config)?;
        for (name, expr) in &self.derived {
            let used = self.used(expr);
            let of_input = used.iter().all(|c| self.roles.input.contains(c));
            let values = self.derive(name, expr, &used)?;
            let feature = Feature { name: name.clone(), kind: kind(values.iter().copied()) };
            if of_input { &mut input } else { &mut config }.push((feature, values));
        }
        let names = |columns: &[(Feature, Vec<f32>)]| columns.iter().map(|(f, _)| f.clone()).collect();
        let schema = FeatureSchema { input: names(&input), config: names(&config) };
        let columns = input.into_iter().chain(config).map(|(_, values)| values).collect();
        Ok(FeatureTable { schema, columns })
    }

    /// The rows that have a time, to fit a predictor on: costs in seconds, one group for each device and input.
    ///
    /// # Errors
    /// As [`Dataset::features`].
    pub fn training_set(&self) -> Result<TrainingSet, DatasetError> {
        let rows: Vec<usize> = (0..self.len()).collect();
        self.training_set_of(&rows)
    }

    /// [`Dataset::training_set`] of some rows (those of one side of a split), under the schema of the whole dataset.
    /// Failed rows are left out.
    ///
    /// # Errors
    /// As [`Dataset::features`].
    ///
    /// # Panics
    /// On a number beyond the last row.
    pub fn training_set_of(&self, rows: &[usize]) -> Result<TrainingSet, DatasetError> {
        let features = self.features()?;
        let (groups, _) = self.problems();
        let mut set = TrainingSet::new(features.schema.clone());
        let mut values = Vec::with_capacity(features.schema.width());
        for &row in rows {
            if let Some(seconds) = self.time_s(row) {
                values.clear();
                values.extend(features.columns.iter().map(|c| c[row]));
                set.push(&values, seconds, groups[row])?;
            }
        }
        Ok(set)
    }

    /// The features of one column: as numbers, or one flag a distinct value.
    fn columns_of(&self, c: usize, numeric: bool, out: &mut Vec<(Feature, Vec<f32>)>) -> Result<(), DatasetError> {
        let of = &self.columns[c];
        if numeric {
            out.push(numbers(of));
            return Ok(());
        }
        let words = of.levels().len();
        if words > MOST_WORDS {
            let example = of.levels().iter().find(|v| !is_number(v)).or(of.levels().first());
            let example = example.map_or_else(String::new, |v| brief(&v.to_string()));
            let message = format!(
                "column {:?} has {words} distinct words, such as {example:?}; at most {MOST_WORDS} become features: leave the \
                 column out, or correct what should be a number",
                of.name()
            );
            return Err(DatasetError::at(&self.path, Place::File, message));
        }
        flags(of, out);
        Ok(())
    }

    /// Positions of the columns that an expression names.
    fn used(&self, expr: &Expr) -> Vec<usize> {
        let names: BTreeSet<String> = expr.names();
        (0..self.columns.len()).filter(|&c| names.contains(self.columns[c].name())).collect()
    }

    fn derive(&self, name: &str, expr: &Expr, used: &[usize]) -> Result<Vec<f32>, DatasetError> {
        let names = expr.names();
        let of_devices: Vec<&str> =
            self.schema.device_features.iter().map(String::as_str).filter(|n| names.contains(*n)).collect();
        let slots: Vec<&str> = used.iter().map(|&c| self.columns[c].name()).chain(of_devices.iter().copied()).collect();
        let fault = |row, error| DatasetError::Derived { name: name.to_owned(), row, error };
        let compiled = expr.compile(&slots).map_err(|e| fault(0, EvalError::UnknownName(e.0)))?;
        let mut values: Vec<Val<'_>> = Vec::with_capacity(slots.len());
        let mut out = Vec::with_capacity(self.len());
        for row in 0..self.len() {
            values.clear();
            values.extend(used.iter().map_while(|&c| self.columns[c].get(row).map(Value::as_val)));
            values.extend(of_devices.iter().map_while(|n| self.of_device(row, n).map(Value::as_val)));
            if values.len() < slots.len() {
                out.push(f32::NAN);
                continue;
            }
            let value = compiled.eval(&values).map_err(|e| fault(row, e))?;
            let number = value.as_f64().ok_or_else(|| fault(row, EvalError::NotANumber("a feature")))?;
            out.push(finite(number));
        }
        Ok(out)
    }
}

/// Beyond single precision counts as missing.
fn finite(x: f64) -> f32 {
    let x = x as f32;
    if x.is_finite() { x } else { f32::NAN }
}

/// Most distinct words of a column that become flags: beyond, they are names of inputs, or numbers with a slip of the pen.
const MOST_WORDS: usize = 500;

/// Whether a value counts as a number: infinite ones are, and are missing.
fn is_number(value: &Value) -> bool {
    value.as_f64().is_some() || value.as_str().is_some_and(|s| s.parse::<f64>().is_ok())
}

fn is_numeric(column: &Column) -> bool {
    column.levels().iter().all(is_number)
}

/// The cells of a column by a number for each distinct value.
fn by_level(column: &Column, of: impl Fn(&Value) -> f32) -> Vec<f32> {
    let by_level: Vec<f32> = column.levels().iter().map(of).collect();
    (0..column.len()).map(|row| column.code(row).map_or(f32::NAN, |c| by_level[c as usize])).collect()
}

fn numbers(column: &Column) -> (Feature, Vec<f32>) {
    let numbers = by_level(column, |v| v.as_f64().map_or(f32::NAN, finite));
    let kind = kind(numbers.iter().copied());
    (Feature { name: column.name().to_owned(), kind }, numbers)
}

fn flags(column: &Column, out: &mut Vec<(Feature, Vec<f32>)>) {
    // Sorted, so that the order of rows does not change the schema.
    let mut words: Vec<(String, &Value)> = column.levels().iter().map(|v| (v.to_string(), v)).collect();
    words.sort_by(|a, b| a.0.cmp(&b.0));
    for (word, level) in words {
        let flag = by_level(column, |v| f32::from(u8::from(v == level)));
        out.push((Feature::flag(&format!("{}={word}", column.name())), flag));
    }
}

fn kind(values: impl Iterator<Item = f32> + Clone) -> FeatureKind {
    let mut present = values.filter(|v| !v.is_nan());
    let binary = present.clone().all(|v| v == 0.0 || v == 1.0);
    if binary || present.any(|v| v < 0.0) { FeatureKind::Flag } else { FeatureKind::Size }
}
