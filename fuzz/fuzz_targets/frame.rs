//! Any bytes as messages between the program and its worker process: refused, or what writes back as it stood.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_runtime::worker::Frame;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    loop {
        let before = rest;
        let Ok(frame) = Frame::read(&mut rest) else { return };
        let mut again = Vec::new();
        frame.write(&mut again).expect("memory can be written");
        assert_eq!(again, before[..before.len() - rest.len()]);
    }
});
