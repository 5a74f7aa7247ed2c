//! Any bytes as a campaign log, and any lines as records with sound lengths and checksums.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_runtime::log::CampaignLog;

fuzz_target!(|text: &str| {
    let _ = CampaignLog::from_bytes(text.as_bytes());
    let mut sealed = String::from("tilewright log 1\n");
    for json in text.lines() {
        let sum = blake3::hash(json.as_bytes()).to_hex();
        sealed.push_str(&format!("{:08x} {} {json}\n", json.len(), &sum[..16]));
    }
    let Ok((_, samples)) = CampaignLog::from_bytes(sealed.as_bytes()) else { return };
    for sample in &samples {
        assert!(
            sample.spent_s >= 0.0 && sample.outcome.as_ref().is_ok_and(|m| m.time_s > 0.0) == sample.outcome.is_ok()
        );
    }
    // Without its last byte the last record is torn, and all before it are whole.
    match CampaignLog::from_bytes(&sealed.as_bytes()[..sealed.len() - 1]) {
        Ok((_, fewer)) => assert!(samples.starts_with(&fewer)),
        Err(_) => assert!(samples.is_empty(), "only a torn header makes the rest unreadable"),
    }
});
