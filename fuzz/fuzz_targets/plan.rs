//! Any bytes as an entry of the plan cache, and any header and body in a sound envelope: refused, or what is read is
//! what stands there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tilewright_runtime::plan_cache::entry_from_bytes;
use tilewright_runtime::store::envelope::{Format, encode};

fuzz_target!(|bytes: &[u8]| {
    let _ = entry_from_bytes(bytes);
    let (header, body) = bytes.split_at(bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len()));
    let (Ok(header), Ok(body)) = (serde_json::from_slice::<Value>(header), serde_json::from_slice::<Value>(body))
    else {
        return;
    };
    let format = Format { name: "plan", version: 1 };
    let sealed = encode(format, &header, &body).expect("JSON");
    let Ok((header, plan)) = entry_from_bytes(&sealed) else { return };
    let again = encode(format, &header, &plan).expect("JSON");
    assert_eq!(entry_from_bytes(&again).expect("it was just written"), (header, plan));
});
