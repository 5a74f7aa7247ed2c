//! The parameters of an entry, read from its PTX: the driver takes what it is given, so lengths are compared here.

use tilewright_core::program::DeviceError;

/// Bytes of each parameter of an entry, in order.
///
/// # Errors
/// There is no such entry, or its parameters are not of plain types.
pub(super) fn parameters(text: &str, entry: &str) -> Result<Vec<u32>, DeviceError> {
    let missing = || DeviceError::Load(format!("no kernel {entry:?} in the module"));
    let starts = text.match_indices(".entry").map(|(at, word)| text[at + word.len()..].trim_start());
    let named = |rest: &&str| {
        rest.strip_prefix(entry).is_some_and(|r| r.starts_with(|c: char| c == '(' || c == '{' || c.is_whitespace()))
    };
    let rest = starts.into_iter().find(named).ok_or_else(missing)?[entry.len()..].trim_start();
    let Some(list) = rest.strip_prefix('(') else { return Ok(Vec::new()) };
    let list = list.split(')').next().unwrap_or_default();
    list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(bytes).collect()
}

fn bytes(parameter: &str) -> Result<u32, DeviceError> {
    let words: Vec<&str> = parameter.split_whitespace().collect();
    let plain = words.iter().find_map(|word| match *word {
        ".u8" | ".s8" | ".b8" => Some(1),
        ".u16" | ".s16" | ".b16" | ".f16" => Some(2),
        ".u32" | ".s32" | ".b32" | ".f32" => Some(4),
        ".u64" | ".s64" | ".b64" | ".f64" => Some(8),
        _ => None,
    });
    match plain.filter(|_| !parameter.contains('[')) {
        Some(bytes) => Ok(bytes),
        None => Err(DeviceError::Load(format!("parameter {parameter:?} is not of a plain type"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_named_entry() {
        let text = ".version 7.0\n.visible .entry gemm2(.param .u64 a)\n{ret;}\n.visible .entry gemm(\n    .param .u64 .ptr .global .align 4 a,\n\
                    .param .u32 n,\n .param .f32 alpha\n)\n.maxntid 1, 1, 1\n{ ret; }\n.entry none { ret; }";
        assert_eq!(parameters(text, "gemm"), Ok(vec![8, 4, 4]));
        assert_eq!(parameters(text, "gemm2"), Ok(vec![8]));
        assert_eq!(parameters(text, "none"), Ok(vec![]));
        assert!(matches!(parameters(text, "gem"), Err(DeviceError::Load(m)) if m.contains("gem")));
        assert!(parameters(".entry k(.param .align 8 .b8 s[16])", "k").is_err());
    }
}
