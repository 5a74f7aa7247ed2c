//! Any bytes as a stored selector, and any header and body in a sound envelope: refused, or cases that a selector can be fitted on or
//! is refused for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tilewright_runtime::selection::StoredSelector;
use tilewright_runtime::store::envelope::{Format, encode};

fuzz_target!(|bytes: &[u8]| {
    let _ = StoredSelector::from_bytes(bytes);
    let (header, body) = bytes.split_at(bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len()));
    let (Ok(header), Ok(body)) = (serde_json::from_slice::<Value>(header), serde_json::from_slice::<Value>(body))
    else {
        return;
    };
    let sealed = encode(Format { name: "selector", version: 1 }, &header, &body).expect("JSON");
    if let Ok(stored) = StoredSelector::from_bytes(&sealed) {
        let _ = stored.fit();
    }
});
