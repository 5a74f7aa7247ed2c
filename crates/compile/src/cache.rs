//! What was built, by the hash of what it was built of.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tilewright_core::program::Source;

/// A folder of built things. Several processes may use one.
pub(crate) struct Cache(PathBuf);

impl Cache {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(crate) fn path(&self, key: &str, extension: &str) -> PathBuf {
        self.0.join(&key[..2]).join(format!("{key}.{extension}"))
    }

    /// Puts contents in place, whole or not at all.
    pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
        tilewright_files::replace(path, &mut |to: &mut dyn Write| to.write_all(bytes))
    }
}

/// The hash of everything that decides what a compiler makes of a source.
pub(crate) fn key(source: &Source, compiler: &str, target: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for text in [compiler, target, source.language.name(), &source.text, &source.entry] {
        add(text.as_bytes());
    }
    // Places decide what is included, and stand in messages and in line tables.
    add(source.path.to_string_lossy().as_bytes());
    for (name, value) in &source.macros {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for text in source.options.iter().chain(&source.types) {
        add(text.as_bytes());
    }
    for (path, bytes) in super::includes::beside(&source.path, &source.text) {
        add(path.to_string_lossy().as_bytes());
        add(&bytes);
    }
    hasher.finalize().to_hex()[..40].to_owned()
}
