//! NVIDIA's assembler, where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names one to use.
const PATH_VARIABLE: &str = "TILEWRIGHT_PTXAS_BIN";

/// An assembler that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    path: PathBuf,
    /// Major and minor release.
    release: (u32, u32),
}

impl Ptxas {
    /// The first that runs: the one that `TILEWRIGHT_PTXAS_BIN` names, that of the path, those of the usual folders.
    pub fn find() -> Option<Self> {
        let named = std::env::var_os(PATH_VARIABLE).map(PathBuf::from);
        let of_path = std::env::var_os("PATH").unwrap_or_default();
        let of_path = std::env::split_paths(&of_path).map(|folder| folder.join("ptxas"));
        let usual = ["/usr/local/cuda/bin/ptxas", "/opt/cuda/bin/ptxas"].map(PathBuf::from);
        let mut candidates = named.into_iter().chain(of_path).chain(usual);
        candidates.find_map(|path| Self::at(&path))
    }

    /// The assembler of this file, if it is one.
    pub fn at(path: &Path) -> Option<Self> {
        let said = Command::new(path).arg("--version").output().ok().filter(|o| o.status.success())?;
        let release = release(&String::from_utf8_lossy(&said.stdout))?;
        Some(Self { path: path.to_owned(), release })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major and minor release of the toolkit.
    pub fn release(&self) -> (u32, u32) {
        self.release
    }

    /// Machine code for compute capability `sm`.
    ///
    /// # Errors
    /// What the assembler says.
    pub fn assemble(&self, text: &str, sm: i64) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (source, image) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
        std::fs::write(&source, text).map_err(|e| e.to_string())?;
        let output = Command::new(&self.path)
            .arg(format!("-arch=sm_{sm}"))
            .arg(&source)
            .arg("-o")
            .arg(&image)
            .output()
            .map_err(|e| format!("{}: {e}", self.path.display()))?;
        if !output.status.success() {
            let said = [&output.stdout, &output.stderr].map(|s| String::from_utf8_lossy(s).into_owned()).concat();
            return Err(format!("ptxas: {}", said.trim()));
        }
        std::fs::read(&image).map_err(|e| e.to_string())
    }
}

/// `13.0` of "Cuda compilation tools, release 13.0, V13.0.88".
fn release(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(release("Cuda compilation tools, release 13.0, V13.0.88\nBuild"), Some((13, 0)));
        assert_eq!(release("ptxas"), None);
        assert_eq!(Ptxas::at(Path::new("/nowhere/ptxas")), None);
    }
}
