//! Any bytes as a table of device features, and any text as a device of BACUGen's spaces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_mtl::device::DeviceTable;
use tilewright_sampler::bacugen::DeviceConstants;

fuzz_target!(|bytes: &[u8]| {
    let table = DeviceTable::parse(bytes);
    // A table of no device has no features to write.
    if let Some(table) = table.ok().filter(|table| table.to_csv().lines().count() > 1) {
        let again = DeviceTable::parse(table.to_csv().as_bytes());
        assert_eq!(again.map_err(|e| e.to_string()).map(|t| t.to_csv()), Ok(table.to_csv()));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = DeviceConstants::from_json(text);
    }
});
