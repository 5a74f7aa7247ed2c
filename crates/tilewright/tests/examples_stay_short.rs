//! The consumers that show the front door stay as short as the documentation says.

use std::collections::BTreeSet;
use std::path::Path;

fn source(consumer: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/consumers").join(consumer).join("src/main.rs");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Lines that are neither empty nor comments.
fn lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//")).count()
}

/// Names that `use` brings in, and paths into the package that are written out.
fn names(text: &str) -> BTreeSet<&str> {
    let imports = text.lines().filter_map(|l| l.trim().strip_prefix("use ")).map(|l| l.trim_end_matches(';'));
    let mut out = BTreeSet::new();
    for import in imports {
        let (_, last) = import.rsplit_once("::{").or_else(|| import.rsplit_once("::")).unwrap_or(("", import));
        out.extend(last.trim_end_matches('}').split(',').map(str::trim));
    }
    let written = text
        .lines()
        .filter(|l| !l.trim().starts_with("use "))
        .flat_map(|l| l.match_indices("tilewright::").map(move |(at, _)| &l[at..]));
    out.extend(
        written.map(|path| path.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).next().unwrap_or(path)),
    );
    out
}

#[test]
fn a_product_by_slices_is_ten_lines() {
    let text = source("gemm-by-slices");
    assert!(lines(&text) <= 10, "{} lines", lines(&text));
}

#[test]
fn a_kernel_from_closures_is_sixty_lines_and_twelve_names() {
    let text = source("own-kernel");
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    assert!(names(&text).len() <= 12, "{:?}", names(&text));
}

#[test]
fn the_first_example_of_the_documentation_is_the_consumer() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(
        readme.contains(&source("gemm-by-slices")),
        "README.md shows another program than examples/consumers/gemm-by-slices"
    );
}
