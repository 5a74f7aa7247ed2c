//! Cache files: an object of configurations by key.

use super::{Reader, record};
use crate::error::DatasetError;
use crate::record::Record;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use tilewright_core::expr::Value;

impl Reader<'_> {
    pub(super) fn cache(&self, map: &Map<String, Json>) -> Result<Vec<(String, Record)>, DatasetError> {
        let device = map.get("device_name").and_then(Json::as_str).unwrap_or_default();
        let names = self.names(map)?;
        let allowed = self.allowed(map, &names)?;
        let entries = map.get("cache").and_then(Json::as_object);
        let entries = entries.ok_or_else(|| self.fault("the file", "cache", "not an object"))?;
        let mut out = Vec::with_capacity(entries.len());
        for (key, entry) in entries {
            let fields = self.object(entry, key)?;
            let mut config = Vec::with_capacity(names.len());
            for (name, allowed) in names.iter().zip(&allowed) {
                let value = self.value(fields.get(*name), name, key)?;
                if !allowed.is_empty() && !allowed.contains(&value) {
                    return Err(self.fault(key, name, format!("{value} is none of the parameter's values")));
                }
                config.push(((*name).to_owned(), value));
            }
            let time = fields.get("__error__").filter(|e| !e.is_null()).or(fields.get("time"));
            let time = time.ok_or_else(|| self.fault(key, "time", "missing"))?;
            let outcome = self.outcome(time, 1e-3, key)?;
            let parts = ["compile_time", "verification_time", "benchmark_time", "framework_time"];
            let mut clock = 0.0;
            for part in parts {
                clock += self.milliseconds(fields, part, key)?;
            }
            // Old files have times of runs and nothing else.
            let clock = if clock > 0.0 { clock } else { outcome.as_ref().map_or(0.0, |m| m.time_s) };
            out.push((key.clone(), record(device, config, outcome, clock)));
        }
        Ok(out)
    }

    /// The names of the parameters.
    fn names<'j>(&self, map: &'j Map<String, Json>) -> Result<Vec<&'j str>, DatasetError> {
        let field = "tune_params_keys";
        let list = map.get(field).and_then(Json::as_array);
        let list = list.ok_or_else(|| self.fault("the file", field, "not a list of names"))?;
        let mut seen = BTreeSet::new();
        let name = |json: &'j Json| {
            let name = json.as_str().ok_or_else(|| self.fault("the file", field, format!("{json} is no name")))?;
            match seen.insert(name) {
                true => Ok(name),
                false => Err(self.fault("the file", field, format!("{name:?} stands twice"))),
            }
        };
        list.iter().map(name).collect()
    }

    /// The values of the parameters where the file lists them; empty lists where it does not.
    fn allowed(&self, map: &Map<String, Json>, names: &[&str]) -> Result<Vec<Vec<Value>>, DatasetError> {
        let values = |name: &&str| {
            let list = map.get("tune_params").and_then(|p| p.get(*name));
            match list {
                None => Ok(Vec::new()),
                Some(Json::Array(list)) => {
                    list.iter().map(|v| self.value(Some(v), name, "tune_params")).collect::<Result<Vec<_>, _>>()
                }
                Some(other) => Err(self.fault("tune_params", name, format!("{other} is no list of values"))),
            }
        };
        names.iter().map(values).collect()
    }
}

/// Refuses a cache in which a key stands twice: a map would keep the last and say nothing.
pub(super) fn twice(text: &[u8], path: &Path) -> Result<(), DatasetError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let found = json.deserialize_map(Root).map_err(|e| DatasetError::Json {
        path: path.into(),
        line: e.line(),
        column: e.column(),
        message: e.to_string(),
    })?;
    match found {
        None => Ok(()),
        Some(key) => Err(Reader { path }.fault(&key, "cache", "the key stands twice")),
    }
}

/// The first key that stands twice under `cache`.
struct Root;

impl<'de> Visitor<'de> for Root {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "cache" {
                found = found.or(map.next_value::<Keys>()?.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Keys(Option<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of configurations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut seen = BTreeSet::new();
                let mut twice = None;
                while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
                    if !seen.insert(key.clone()) {
                        twice = twice.or(Some(key));
                    }
                }
                Ok(Keys(twice))
            }
        }
        from.deserialize_map(Seen)
    }
}
