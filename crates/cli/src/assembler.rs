//! NVIDIA's assembler, where there is one: what it says of generated code.

use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright_ptxgen::target::Target;

/// What the assembler says of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Assembled {
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Bytes of shared memory of a block that the code declares.
    pub(crate) shared_bytes: u32,
    /// Bytes of spill stores and loads of a thread.
    pub(crate) spills: u32,
}

/// The release before CUDA 13, which dropped these targets.
const FIRST_OF_13: u32 = 75;
/// Where `scripts/ptxas.sh` puts the two, under the folder of its choice.
const OF_12: &str = "cu12/nvidia/cuda_nvcc/bin/ptxas";
const OF_13: &str = "cu13/nvidia/cu13/bin/ptxas";

/// The assembler for a target: of `TILEWRIGHT_PTXAS` (the program, or a folder as `scripts/ptxas.sh` makes it), else under
/// `build/ptxas`, else of an installed toolkit.
pub(crate) fn find(target: Target) -> Option<PathBuf> {
    let packaged = if target.sm() < FIRST_OF_13 { OF_12 } else { OF_13 };
    let named = std::env::var_os("TILEWRIGHT_PTXAS").map(PathBuf::from);
    let under = |folder: &Path| [packaged, "ptxas", "bin/ptxas"].map(|tool| folder.join(tool));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = named.iter().cloned().chain(["build/ptxas".into()]).chain(toolkits);
    let folders: Vec<PathBuf> = folders.chain(["/usr/local/cuda".into()]).chain(std::env::split_paths(&path)).collect();
    named.into_iter().chain(folders.iter().flat_map(|f| under(f))).find(|tool| tool.is_file())
}

/// Assembles a module of one kernel.
///
/// # Errors
/// What the assembler says, or why it did not run.
pub(crate) fn assemble(tool: &Path, target: Target, text: &str) -> Result<Assembled, String> {
    let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (source, cubin) = (scratch.path().join("kernel.ptx"), scratch.path().join("kernel.cubin"));
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let mut command = Command::new(tool);
    command.args(["-v", &format!("-arch={target}")]).arg(&source).arg("-o").arg(&cubin);
    let output = command.output().map_err(|e| format!("{}: {e}", tool.display()))?;
    let says = [&output.stdout, &output.stderr].map(|s| String::from_utf8_lossy(s).into_owned()).concat();
    if !output.status.success() {
        return Err(says);
    }
    let registers = before(&says, " registers").ok_or_else(|| format!("no count of registers in {says:?}"))?;
    let spilled = |what: &str| before(&says, &format!(" bytes spill {what}")).unwrap_or(0);
    Ok(Assembled {
        registers,
        shared_bytes: before(&says, " bytes smem").unwrap_or(0),
        spills: spilled("stores") + spilled("loads"),
    })
}

/// The number that stands before a unit.
fn before(text: &str, unit: &str) -> Option<u32> {
    let head = &text[..text.find(unit)?];
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    head[head.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_units() {
        let says = "ptxas info    : Function properties for gemm\n    0 bytes stack frame, 12 bytes spill stores, 8 bytes \
                    spill loads\nptxas info    : Used 40 registers, used 1 barriers, 8448 bytes smem, 400 bytes cmem[0]";
        let number = |unit| before(says, unit);
        assert_eq!((number(" registers"), number(" bytes smem")), (Some(40), Some(8448)));
        assert_eq!((number(" bytes spill stores"), number(" bytes spill loads")), (Some(12), Some(8)));
        assert_eq!((number(" bytes lmem"), before("some registers", " registers")), (None, None));
    }
}
