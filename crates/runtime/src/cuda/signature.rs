//! The parameters of an entry, read from its PTX: the driver takes what it is given, so lengths are compared here.

use tilewright_core::program::DeviceError;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) bytes: u32,
    /// What it is aligned to, in bytes.
    pub(super) align: u32,
}

/// The parameters of an entry, in order.
///
/// # Errors
/// There is no such entry, or its parameters are neither of plain types nor arrays of bytes.
pub(super) fn parameters(text: &str, entry: &str) -> Result<Vec<Parameter>, DeviceError> {
    let missing = || DeviceError::Load(format!("no kernel {entry:?} in the module"));
    let starts = text.match_indices(".entry").map(|(at, word)| text[at + word.len()..].trim_start());
    let named = |rest: &&str| {
        rest.strip_prefix(entry).is_some_and(|r| r.starts_with(|c: char| c == '(' || c == '{' || c.is_whitespace()))
    };
    let rest = starts.into_iter().find(named).ok_or_else(missing)?[entry.len()..].trim_start();
    let Some(list) = rest.strip_prefix('(') else { return Ok(Vec::new()) };
    let list = list.split(')').next().unwrap_or_default();
    list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(parameter).collect()
}

fn parameter(text: &str) -> Result<Parameter, DeviceError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = words.iter().find_map(|word| match *word {
        ".u8" | ".s8" | ".b8" => Some(1u32),
        ".u16" | ".s16" | ".b16" | ".f16" => Some(2),
        ".u32" | ".s32" | ".b32" | ".f32" => Some(4),
        ".u64" | ".s64" | ".b64" | ".f64" => Some(8),
        _ => None,
    });
    let elements = match text.split_once('[') {
        None => Some(1),
        Some((_, rest)) => rest.split_once(']').and_then(|(n, _)| n.trim().parse::<u32>().ok()),
    };
    // The alignment behind `.ptr` is that of what a pointer points to.
    let own = words.iter().take_while(|w| **w != ".ptr");
    let align = own.clone().zip(words.iter().skip(1)).find(|(word, _)| **word == ".align");
    let align = align.map_or(plain, |(_, value)| value.parse().ok());
    match (plain.zip(elements).and_then(|(bytes, n)| bytes.checked_mul(n)), align) {
        (Some(bytes), Some(align)) => Ok(Parameter { bytes, align }),
        _ => Err(DeviceError::Load(format!("parameter {text:?} is neither of a plain type nor an array of one"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_named_entry() {
        let text = ".version 7.0\n.visible .entry gemm2(.param .u64 a)\n{ret;}\n.visible .entry gemm(\n    .param .u64 .ptr .global .align 4 a,\n\
                    .param .u32 n,\n .param .f32 alpha\n)\n.maxntid 1, 1, 1\n{ ret; }\n.entry none { ret; }";
        let plain = |bytes: &[u32]| Ok(bytes.iter().map(|b| Parameter { bytes: *b, align: *b }).collect());
        assert_eq!(parameters(text, "gemm"), plain(&[8, 4, 4]));
        assert_eq!(parameters(text, "gemm2"), plain(&[8]));
        assert_eq!(parameters(text, "none"), Ok(vec![]));
        assert!(matches!(parameters(text, "gem"), Err(DeviceError::Load(m)) if m.contains("gem")));
        let structures = ".entry k(.param .align 8 .b8 s[16], .param .align 64 .b8 map[128], .param .b32 pair[2])";
        let of = |bytes, align| Parameter { bytes, align };
        assert_eq!(parameters(structures, "k"), Ok(vec![of(16, 8), of(128, 64), of(8, 4)]));
        for text in
            [".entry k(.param .align 8 .b8 s[n])", ".entry k(.param .align x .b8 s[4])", ".entry k(.param .v4 s)"]
        {
            assert!(parameters(text, "k").is_err(), "{text}");
        }
    }
}
