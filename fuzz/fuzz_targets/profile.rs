//! Any bytes as a profile, and any header and body in a sound envelope: refused, or what is read is what stands there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tilewright_perfmodel_mlp::Mlp;
use tilewright_runtime::store::Profile;
use tilewright_runtime::store::envelope::{Format, encode};

fuzz_target!(|bytes: &[u8]| {
    let _ = Profile::from_bytes(bytes);
    let (header, body) = bytes.split_at(bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len()));
    let (Ok(header), Ok(body)) = (serde_json::from_slice::<Value>(header), serde_json::from_slice::<Value>(body))
    else {
        return;
    };
    let sealed = encode(Format { name: "profile", version: 1 }, &header, &body).expect("JSON");
    let Ok(profile) = Profile::from_bytes(&sealed) else { return };
    assert_eq!(profile.model, body);
    let again = encode(Format { name: "profile", version: 1 }, &profile.header, &profile.model).expect("JSON");
    assert_eq!(Profile::from_bytes(&again).expect("it was just written"), profile);
    let _ = Mlp::from_value(profile.model);
});
