//! Machine code of the register tiles.

pub(crate) mod abi;
pub(crate) mod across;
mod along;
pub(crate) mod complex;
pub(crate) mod emitter;
pub(crate) mod peak;
pub(crate) mod prefetch;
mod rounded;
mod three_m;
pub(crate) mod tile;
pub(crate) mod vector;
mod widened;

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// Machine code as assembly text, one instruction a line behind its offset.
pub(crate) fn listing(code: &[u8]) -> String {
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        text.push_str(&format!("{:06x}  ", instruction.ip()));
        formatter.format(&instruction, &mut text);
        text.push('\n');
    }
    text
}
