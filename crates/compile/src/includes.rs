//! What a source includes from beside it: a change there is a change of the kernel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files of a source's own tree at most; whoever has more has a library, which goes by its place.
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 16 << 20;

/// The files that a text includes by quotes, directly or not, found beside the file that names them; in the order of their paths.
pub fn beside(path: &Path, text: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let mut open = named(path, text);
    while let Some(file) = open.pop() {
        if found.len() >= MOST_FILES || !seen.insert(file.clone()) {
            continue;
        }
        let Ok(bytes) = tilewright_files::read_file(&file, MOST_BYTES) else { continue };
        open.extend(named(&file, &String::from_utf8_lossy(&bytes)));
        found.push((file, bytes));
    }
    found.sort();
    found
}

fn named(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let quoted = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
        Some(folder.join(name))
    };
    text.lines().filter_map(quoted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found_through_each_other_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.h"), "# include \"b.h\"\n#include <stdio.h>\n").unwrap();
        std::fs::write(at("b.h"), "#include \"a.h\"\n#include \"none.h\"\n").unwrap();
        let found = beside(&at("k.c"), "int x;\n  #include \"a.h\" // why\n");
        let names: Vec<_> = found.iter().map(|(path, _)| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["a.h", "b.h"]);
    }
}
