//! Cache files: an object of configurations by key.

use super::record;
use crate::error::DatasetError;
use crate::foreign::Reader;
use crate::record::Record;
use crate::schema::TimeUnit;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::collections::{HashMap, HashSet};
use std::fmt;
use tilewright_core::expr::Value;

/// What is read of a cache.
#[derive(serde::Deserialize)]
pub(super) struct Cache {
    #[serde(default)]
    device_name: String,
    /// The names of the parameters.
    tune_params_keys: Vec<String>,
    /// Their values, where the file lists them.
    #[serde(default)]
    tune_params: HashMap<String, Vec<Json>>,
    cache: Entries,
}

impl Reader<'_> {
    pub(super) fn cache(&self, cache: Cache) -> Result<Vec<(String, Record)>, DatasetError> {
        let names = &cache.tune_params_keys;
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(self.fault("the file", "tune_params_keys", format!("{twice:?} stands twice")));
        }
        if let Some(key) = &cache.cache.twice {
            return Err(self.fault(key, "cache", "the key stands twice"));
        }
        let listed = |name: &String| -> Result<Vec<Value>, DatasetError> {
            let list = cache.tune_params.get(name).into_iter().flatten();
            list.map(|v| self.value(Some(v), name, "tune_params")).collect()
        };
        let allowed = names.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
        let mut out = Vec::with_capacity(cache.cache.all.len());
        for (key, entry) in &cache.cache.all {
            let fields = self.object(entry, key)?;
            let mut config = Vec::with_capacity(names.len());
            for (name, allowed) in names.iter().zip(&allowed) {
                let value = self.value(fields.get(name), name, key)?;
                if !allowed.is_empty() && !allowed.contains(&value) {
                    return Err(self.fault(key, name, format!("{value} is none of the parameter's values")));
                }
                config.push((name.clone(), value));
            }
            let time = fields.get("__error__").filter(|e| !e.is_null()).or(fields.get("time"));
            let time = time.ok_or_else(|| self.fault(key, "time", "missing"))?;
            let outcome = self.outcome(time, TimeUnit::Milliseconds, key)?;
            let parts = ["compile_time", "verification_time", "benchmark_time", "framework_time"];
            let mut clock = 0.0;
            for part in parts {
                clock += self.duration(fields, part, TimeUnit::Milliseconds, key)?;
            }
            // Old files have times of runs and nothing else.
            let clock = if clock > 0.0 { clock } else { outcome.as_ref().map_or(0.0, |m| m.time_s) };
            out.push((key.clone(), record(&cache.device_name, config, outcome, clock)));
        }
        Ok(out)
    }
}

/// The configurations by key, and a key that stands twice: a map alone would keep the last and say nothing.
struct Entries {
    all: Map<String, Json>,
    twice: Option<String>,
}

impl<'de> serde::Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of configurations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Entries { all: Map::new(), twice: None };
                while let Some((key, entry)) = map.next_entry::<String, Json>()? {
                    if entries.all.insert(key.clone(), entry).is_some() {
                        entries.twice = entries.twice.or(Some(key));
                    }
                }
                Ok(entries)
            }
        }
        from.deserialize_map(Each)
    }
}
