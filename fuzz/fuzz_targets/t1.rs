//! Any bytes as a T1 description: reading does not panic, and a small space that is read can be built and asked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_core::expr::List;
use tilewright_sampler::{Description, LegalSet};

fuzz_target!(|text: &str| {
    // The text alone is a list too, without the JSON around it.
    if let Ok(list) = text.parse::<List>() {
        let _ = list.values(1_000);
    }
    let wrapped = serde_json::json!({ "ConfigurationSpace": {
        "TuningParameters": [{ "Name": "x", "Values": [1, 2, 4] }, { "Name": "y", "Values": "[i for i in range(5)]" }],
        "Conditions": [{ "Expression": text }],
    }});
    for text in [text, &wrapped.to_string()] {
        let Ok(description) = Description::from_t1(text) else { continue };
        let cartesian: f64 = description.params().iter().map(|p| p.values.len() as f64).product();
        if cartesian > 1e4 {
            continue;
        }
        let Ok(set) = LegalSet::new(&description) else { continue };
        for (number, point) in set.walk().enumerate() {
            assert_eq!(set.index_of(&point), Some(number as u64));
        }
    }
});
