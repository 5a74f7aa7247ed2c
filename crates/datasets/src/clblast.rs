//! Results of CLBlast's tuners (versions 1.6 and 1.7): the file of one tuner on one device, and the database that they are merged into.
//!
//! A tuner's file has its kernel family, the element type and the sizes (`arg_m` and so on), the device, and a list of results. The
//! database is a list of such *sections*, whose results are packed: the names of the parameters stand in the section, a result is
//! `["16,2,8", 0.123]`. Times are milliseconds with three decimals. Configurations that failed are not there, except those of
//! tuners of whole routines, which have -1; a time of 0 is below what the file can say and counts as a failure too.
//!
//! The tuner of the switching point between two kernels (`gemm_routine`) gives scores and no times: a file of it is refused, and its
//! sections in a database are left out.

use crate::dataset::{Dataset, OK_STATUS};
use crate::error::{DatasetError, Place};
use crate::foreign::Reader;
use crate::schema::{Columns, Status, Time, TimeUnit};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tilewright_core::expr::Value;

/// The element type among the parameters of a tuner's file: it belongs to the input.
const PRECISION: &str = "PRECISION";

/// The database.
#[derive(serde::Deserialize)]
struct Database {
    sections: Vec<Map<String, Json>>,
}

/// The results of one kernel for one input on one device.
struct Section {
    device: String,
    kernel: String,
    input: BTreeMap<String, Value>,
    /// Names of the parameters that a result has, in the order of its values.
    names: Vec<String>,
    /// Values, and milliseconds.
    results: Vec<(Vec<Value>, f64)>,
}

impl Dataset {
    /// Results of CLBlast's tuners from memory, one tuner's or the merged database; `path` is their name in messages.
    ///
    /// The device is `clblast_device_name`. The input is `precision` (16, 32, 64, 3232 or 6464) and the arguments without their
    /// prefix (`m`, `n`, `k`, `alpha` and so on); the kernel is the variant where there are several; the parameters of kernels
    /// that a row does not belong to are missing cells.
    ///
    /// # Errors
    /// Text that is no JSON (line and column); a file of scores; a result without parameters or without a time; a packed result
    /// with another number of values than the section has parameters.
    pub fn from_clblast(text: &[u8], path: &Path) -> Result<Self, DatasetError> {
        let reader = Reader { path };
        let json = |e: serde_json::Error| reader.json(&e);
        let sections = if reader.keys(text)?.contains_key("sections") {
            let file: Database = serde_json::from_slice(text).map_err(json)?;
            let timed = file.sections.iter().enumerate().filter(|(_, section)| !is_scores(section));
            timed.map(|(at, s)| reader.section(s, &format!("section {at}"))).collect::<Result<Vec<_>, _>>()?
        } else {
            let file: Map<String, Json> = serde_json::from_slice(text).map_err(json)?;
            if is_scores(&file) {
                let message = "scores of a switching point between kernels, and no times";
                return Err(DatasetError::at(path, Place::File, message));
            }
            vec![reader.section(&file, "the file")?]
        };
        let mut dataset = table(&sections)?;
        dataset.path = path.into();
        Ok(dataset)
    }
}

/// Whether the results are those of the tuner of a switching point.
fn is_scores(section: &Map<String, Json>) -> bool {
    section.contains_key("arg_from") || section.get("kernel_family").and_then(Json::as_str) == Some("gemm_routine")
}

impl Reader<'_> {
    fn section(&self, fields: &Map<String, Json>, entry: &str) -> Result<Section, DatasetError> {
        let text = |field: &str| fields.get(field).and_then(Json::as_str);
        let mut section = Section {
            device: text("clblast_device_name").or(text("device")).unwrap_or_default().to_owned(),
            kernel: text("kernel").unwrap_or_default().to_owned(),
            input: BTreeMap::new(),
            names: Vec::new(),
            results: Vec::new(),
        };
        for (field, value) in fields {
            let name = field.strip_prefix("arg_").or(Some("precision").filter(|p| p == field));
            if let Some(name) = name {
                section.input.insert(name.to_owned(), self.value(Some(value), field, entry)?);
            }
        }
        let packed = fields.contains_key("parameter_names");
        if packed {
            let names = self.list(fields, "parameter_names", entry)?.iter().map(|name| name.as_str().map(String::from));
            let names: Option<Vec<String>> = names.collect();
            section.names = names.ok_or_else(|| self.fault(entry, "parameter_names", "not a list of names"))?;
        }
        for (at, result) in self.list(fields, "results", entry)?.iter().enumerate() {
            let place = if entry == "the file" { format!("result {at}") } else { format!("{entry}, result {at}") };
            match (packed, result) {
                (true, Json::Array(pair)) => self.packed(pair, &mut section, &place)?,
                _ => self.whole(self.object(result, &place)?, &mut section, &place)?,
            }
        }
        Ok(section)
    }

    /// `["16,2,8", 0.123]`.
    fn packed(&self, pair: &[Json], section: &mut Section, place: &str) -> Result<(), DatasetError> {
        let [Json::String(values), time] = pair else {
            return Err(self.fault(place, "results", "not a pair of a text of values and a time"));
        };
        let values: Vec<Value> = values.split(',').map(|v| Value::parse(v.trim())).collect();
        if values.len() != section.names.len() {
            let message = format!("{} values, the section has {} parameters", values.len(), section.names.len());
            return Err(self.fault(place, "results", message));
        }
        section.results.push((values, self.milliseconds(Some(time), place)?));
        Ok(())
    }

    /// `{"kernel": "Xaxpy", "time": 0.123, "parameters": {"WGS": 64}}`.
    fn whole(&self, result: &Map<String, Json>, section: &mut Section, place: &str) -> Result<(), DatasetError> {
        if let Some(kernel) = result.get("kernel") {
            let kernel = kernel.as_str().ok_or_else(|| self.fault(place, "kernel", "not a name"))?;
            if !section.results.is_empty() && kernel != section.kernel {
                let message = format!("{kernel:?} beside {:?}: a tuner has one kernel", section.kernel);
                return Err(self.fault(place, "kernel", message));
            }
            section.kernel = kernel.to_owned();
        }
        let parameters = result.get("parameters").and_then(Json::as_object);
        let parameters = parameters.ok_or_else(|| self.fault(place, "parameters", "not an object"))?;
        let of_config = || parameters.iter().filter(|(name, _)| *name != PRECISION);
        if section.results.is_empty() {
            section.names = of_config().map(|(name, _)| name.clone()).collect();
        }
        if let Some((name, _)) = of_config().find(|(name, _)| !section.names.contains(name)) {
            return Err(self.fault(place, name, "a parameter that the first result lacks"));
        }
        let value = |name: &String| self.value(parameters.get(name), name, place);
        let values = section.names.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        section.results.push((values, self.milliseconds(result.get("time"), place)?));
        Ok(())
    }

    fn milliseconds(&self, time: Option<&Json>, place: &str) -> Result<f64, DatasetError> {
        time.and_then(Json::as_f64).ok_or_else(|| self.fault(place, "time", "not a number"))
    }
}

/// All sections as one table: a row a result.
fn table(sections: &[Section]) -> Result<Dataset, DatasetError> {
    let all = |of: fn(&Section) -> Vec<&String>| sections.iter().flat_map(of).cloned().collect::<BTreeSet<_>>();
    let kernels = all(|s| vec![&s.kernel]);
    let columns = Columns {
        device: Some("device".into()),
        input: all(|s| s.input.keys().collect()).into_iter().collect(),
        config: all(|s| s.names.iter().collect()).into_iter().collect(),
        variant: (kernels.len() > 1).then(|| "variant".into()),
        time: Time { column: "time_s".into(), unit: TimeUnit::Seconds },
        status: Some(Status { column: "status".into(), ok: Value::from(OK_STATUS) }),
        group: None,
        clock: None,
    };
    let of_columns = columns.clone();
    let rows = sections.iter().flat_map(|section| {
        let columns = &of_columns;
        let places: Vec<_> = columns.config.iter().map(|c| section.names.iter().position(|n| n == c)).collect();
        section.results.iter().map(move |(values, time_ms)| {
            let mut row = vec![Some(Value::from(section.device.as_str()))];
            row.extend(columns.input.iter().map(|name| section.input.get(name).cloned()));
            row.extend(places.iter().map(|place| place.map(|at| values[at].clone())));
            row.extend(columns.variant.iter().map(|_| Some(Value::from(section.kernel.as_str()))));
            let seconds = Some(time_ms / TimeUnit::Milliseconds.per_second()).filter(|s| *s > 0.0);
            row.push(seconds.map(Value::Float));
            row.push(Some(Value::from(if seconds.is_some() { OK_STATUS } else { "launch" })));
            (row, seconds.unwrap_or(f64::NAN))
        })
    });
    Dataset::made(columns, rows)
}
