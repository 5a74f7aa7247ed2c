//! Sizes of the host's data caches.

use std::path::Path;

/// Bytes of data that each level holds, as one core sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caches {
    pub(super) l1d: usize,
    pub(super) l2: usize,
    pub(super) l3: usize,
}

/// What is assumed where the system does not tell.
const TYPICAL: Caches = Caches { l1d: 32 << 10, l2: 512 << 10, l3: 8 << 20 };

impl Caches {
    pub(super) fn of_host() -> Self {
        let found = Self::from_sysfs(Path::new("/sys/devices/system/cpu/cpu0/cache"));
        let l2 = found[2].unwrap_or(TYPICAL.l2);
        // Without a third level the second is the last.
        let l3 = found[3].unwrap_or(if found[2].is_some() { l2 } else { TYPICAL.l3 });
        Self { l1d: found[1].unwrap_or(TYPICAL.l1d), l2, l3 }
    }

    /// Sizes by level.
    fn from_sysfs(directory: &Path) -> [Option<usize>; 4] {
        let mut sizes = [None; 4];
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
            let kind = read("type").unwrap_or_default();
            let level = read("level").and_then(|l| l.trim().parse::<usize>().ok());
            if let (Some(level @ 1..=3), false) = (level, kind.trim() == "Instruction") {
                sizes[level] = read("size").and_then(|s| parse_size(s.trim()));
            }
        }
        sizes
    }
}

/// `32K`, `32M` or plain bytes.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, scale) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok().filter(|&n| n > 0)?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("32K"), Some(32 << 10));
        assert_eq!(parse_size("36M"), Some(36 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size("0K"), None);
    }

    #[test]
    fn a_tree_of_files_is_read() {
        let dir = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in
            [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (2, 2, "Unified", "2048K")]
        {
            let at = dir.path().join(format!("index{index}"));
            std::fs::create_dir(&at).unwrap();
            for (name, text) in [("level", level.to_string()), ("type", kind.to_owned()), ("size", size.to_owned())] {
                std::fs::write(at.join(name), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(Caches::from_sysfs(dir.path()), [None, Some(48 << 10), Some(2 << 20), None]);
    }
}
