//! CUDA C++ by nvcc, where there is no NVRTC.

use crate::compilers::CompileError;
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright_core::program::Source;

/// A compiler that runs.
pub(crate) struct Nvcc {
    program: PathBuf,
    name: String,
}

impl Nvcc {
    pub(crate) fn find() -> Option<Self> {
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = toolkits.chain(["/usr/local/cuda".into()]).map(|folder| folder.join("bin"));
        let mut files = folders.chain(std::env::split_paths(&path)).map(|folder| folder.join("nvcc"));
        files.find_map(|program| {
            let answer = Command::new(&program).arg("--version").output().ok().filter(|o| o.status.success())?;
            let said = String::from_utf8_lossy(&answer.stdout);
            let name = said.lines().find(|line| line.contains("release"))?.trim();
            Some(Self { name: format!("nvcc: {name}"), program })
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// PTX, and the name of the entry in it.
    pub(crate) fn compile(&self, source: &Source, capability: u32) -> Result<(String, String), CompileError> {
        let failed = |e: std::io::Error| CompileError::Failed { compiler: self.name.clone(), message: e.to_string() };
        let unique = format!("tilewright-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = std::env::temp_dir().join(unique.replace(['(', ')'], ""));
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let made = self.in_folder(source, capability, &folder).map_err(failed);
        let _ = std::fs::remove_dir_all(&folder);
        let refused =
            |message| CompileError::Refused { compiler: self.name.clone(), message, macros: source.macros.clone() };
        let text = made?.map_err(refused)?;
        let entry = entry(&text, &source.entry).ok_or_else(|| refused(no_entry(&text, &source.entry)))?;
        Ok((text, entry))
    }

    fn in_folder(&self, source: &Source, capability: u32, folder: &Path) -> std::io::Result<Result<String, String>> {
        let (text, made) = (folder.join("kernel.cu"), folder.join("kernel.ptx"));
        std::fs::write(&text, format!("#line 1 \"{}\"\n{}", source.path.display(), source.text))?;
        let mut command = Command::new(&self.program);
        command.args(["-ptx", "-lineinfo", &format!("-arch=compute_{capability}")]);
        if let Some(beside) = source.path.parent() {
            command.arg("-I").arg(if beside.as_os_str().is_empty() { Path::new(".") } else { beside });
        }
        command.args(source.macros.iter().map(|(name, value)| format!("-D{name}={value}")));
        let output = command.args(&source.options).arg("-o").arg(&made).arg(&text).output()?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        std::fs::read_to_string(&made).map(Ok)
    }
}

/// The kernels of a module.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(".entry ").skip(1).filter_map(|rest| rest.split(['(', ' ', '\n', '{']).next())
}

/// The kernel that a plain name means: as it is, or mangled by the Itanium rules.
fn entry(text: &str, name: &str) -> Option<String> {
    let mangled = format!("_Z{}{name}", name.len());
    let found = entries(text).find(|entry| *entry == name).or_else(|| entries(text).find(|e| e.starts_with(&mangled)));
    found.map(str::to_owned)
}

pub(crate) fn no_entry(text: &str, name: &str) -> String {
    let there: Vec<&str> = entries(text).collect();
    format!("there is no kernel {name:?} in it; there are: {}", there.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_entries_are_found() {
        let text = ".visible .entry _Z3addPfi(\n.param .u64 a)\n{}\n.visible .entry scale(\n)";
        assert_eq!(entry(text, "add").as_deref(), Some("_Z3addPfi"));
        assert_eq!(entry(text, "scale").as_deref(), Some("scale"));
        assert_eq!(entry(text, "ad"), None);
    }
}
