//! Any text as lines of a repository, and any lines of JSON with sound checksums: refused, or what training sets and samples are
//! made of.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_repository::{Key, Record, RecordId, Repository, RepositoryError, decode_line, sampled, training};

/// One key, and its records.
struct Lines(Key, Vec<Record>);

impl Repository for Lines {
    fn append(&mut self, _: &Key, _: &Record) -> Result<RecordId, RepositoryError> {
        unreachable!("reading appends nothing")
    }

    fn read(&mut self, _: &Key) -> Result<Vec<(RecordId, Record)>, RepositoryError> {
        let numbered = self.1.iter().zip(0..);
        Ok(numbered.map(|(record, number)| (RecordId("fuzz".into(), number), record.clone())).collect())
    }

    fn state(&mut self, _: &Key) -> Result<String, RepositoryError> {
        Ok(String::new())
    }

    fn keys(&mut self) -> Result<Vec<Key>, RepositoryError> {
        Ok(vec![self.0.clone()])
    }
}

fuzz_target!(|text: &str| {
    let sealed = |json: &str| {
        let json = format!("{{\"id\":[\"fuzz\",0],\"record\":{json}}}");
        format!("{} {json}", &blake3::hash(json.as_bytes()).to_hex()[..16])
    };
    let decoded = |line: &str| decode_line(line, "fuzz").or_else(|_| decode_line(&sealed(line), "fuzz"));
    let records: Vec<Record> = text.lines().filter_map(|line| Some(decoded(line).ok()?.1)).collect();
    let known = records.iter().find_map(|record| match record {
        Record::Samples(samples) => Some((samples.schema.clone(), samples.objective.clone())),
        _ => None,
    });
    let mut lines = Lines(Key::new("set", "device").expect("two names"), records);
    let _ = training(&mut lines, "set");
    if let Some((schema, objective)) = known {
        let _ = sampled(&mut lines, "set", (&schema, &objective));
    }
});
