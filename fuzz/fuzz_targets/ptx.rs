//! Any text: reading it as PTX, and launching what reads, do not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_emulator::{Argument, Launch, Limits, Memory, Module};

fuzz_target!(|text: &str| {
    let Ok(module) = Module::parse(text) else { return };
    let entries: Vec<String> = module.entries().map(str::to_owned).collect();
    for entry in &entries {
        let Some(parameters) = module.parameters(entry) else { continue };
        let mut memory = Memory::new();
        let Ok(buffer) = memory.add("buffer", &[0; 4096]) else { return };
        let args: Vec<Argument> = parameters
            .iter()
            .map(|(_, bytes)| if *bytes == 8 { Argument::buffer(buffer) } else { Argument::Bytes(vec![1; *bytes]) })
            .collect();
        let limits = Limits { block_instructions: 1000, ..Limits::default() };
        let launch = Launch { limits, shared_bytes: 64, ..Launch::new(entry, [1; 3], [33, 1, 1], &args) };
        let _ = module.launch(&launch, &mut memory);
    }
});
