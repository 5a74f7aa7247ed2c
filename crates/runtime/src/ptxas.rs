//! NVIDIA's assembler, where it is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Names one to use: the program, or a folder as `scripts/ptxas.sh` makes it.
const PATH_VARIABLE: &str = "TILEWRIGHT_PTXAS";

/// The oldest target of CUDA 13.
const FIRST_OF_13: u32 = 75;
/// Where `scripts/ptxas.sh` puts the two, under the folder of its choice.
const OF_12: &str = "cu12/nvidia/cuda_nvcc/bin/ptxas";
const OF_13: &str = "cu13/nvidia/cu13/bin/ptxas";

/// An assembler that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    path: PathBuf,
    /// Major and minor release.
    release: (u32, u32),
}

/// Why there is no machine code.
#[derive(Debug, thiserror::Error)]
pub enum PtxasError {
    /// It did not run, or left no file.
    #[error("{path}: {error}")]
    Io {
        /// The program.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// It refuses the text.
    #[error("ptxas: {0}")]
    Refused(String),
}

/// A module in machine code, and what the assembler says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The cubin.
    pub image: Vec<u8>,
    /// What each kernel of the module uses, in the order of the assembler.
    pub entries: Vec<EntryUse>,
    /// What the assembler warns of, line by line.
    pub warnings: Vec<String>,
}

/// What one kernel uses, with the functions that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryUse {
    /// The kernel.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block that the code declares.
    pub shared_bytes: u32,
    /// Bytes of local memory of a thread.
    pub stack_bytes: u32,
    /// Bytes of spill stores of a thread.
    pub spill_stores: u32,
    /// Bytes of spill loads of a thread.
    pub spill_loads: u32,
}

impl EntryUse {
    /// Bytes of spill stores and loads of a thread.
    pub fn spills(&self) -> u32 {
        self.spill_stores + self.spill_loads
    }
}

impl Assembled {
    /// What a kernel of the module uses.
    pub fn entry(&self, name: &str) -> Option<&EntryUse> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl Ptxas {
    /// Those that run, for compute capability `sm`, the preferred one first: what `TILEWRIGHT_PTXAS` names, what
    /// `scripts/ptxas.sh` left under `build/ptxas`, an installed toolkit's, those of the path.
    pub fn candidates(sm: u32) -> impl Iterator<Item = Self> {
        let packaged = if sm < FIRST_OF_13 { OF_12 } else { OF_13 };
        let named = std::env::var_os(PATH_VARIABLE).map(PathBuf::from);
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = named.iter().cloned().chain(["build/ptxas".into()]).chain(toolkits);
        let folders = folders.chain(["/usr/local/cuda".into(), "/opt/cuda".into()]).chain(std::env::split_paths(&path));
        let under = folders.flat_map(|folder| [packaged, "ptxas", "bin/ptxas"].map(|tool| folder.join(tool)));
        let files: Vec<PathBuf> = named.clone().into_iter().chain(under).filter(|tool| tool.is_file()).collect();
        files.into_iter().filter_map(|path| Self::at(&path))
    }

    /// The preferred one.
    pub fn find(sm: u32) -> Option<Self> {
        Self::candidates(sm).next()
    }

    /// The assembler of this file, if it is one.
    pub fn at(path: &Path) -> Option<Self> {
        let answer = Command::new(path).arg("--version").output().ok().filter(|o| o.status.success())?;
        let release = release(&String::from_utf8_lossy(&answer.stdout))?;
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

    /// The release and the file, for people: `ptxas 13.0 (/usr/local/cuda/bin/ptxas)`.
    pub fn described(&self) -> String {
        let (major, minor) = self.release;
        format!("ptxas {major}.{minor} ({})", self.path.display())
    }

    /// Assembles a module for compute capability `sm`, or for the very architecture whose features it uses.
    ///
    /// # Errors
    /// What the assembler says, or why it did not run.
    pub fn assemble(&self, text: &str, sm: u32) -> Result<Assembled, PtxasError> {
        let io = |error| PtxasError::Io { path: self.path.clone(), error };
        let scratch = tempfile::tempdir().map_err(io)?;
        let (source, image) = (scratch.path().join("kernel.ptx"), scratch.path().join("kernel.cubin"));
        std::fs::write(&source, text).map_err(io)?;
        let mut command = Command::new(&self.path);
        command.args(["-v", &format!("-arch={}", architecture(text, sm))]).arg(&source).arg("-o").arg(&image);
        let output = command.output().map_err(io)?;
        let says = said(&output);
        if !output.status.success() {
            return Err(PtxasError::Refused(says.trim().to_owned()));
        }
        Ok(Assembled {
            image: std::fs::read(&image).map_err(io)?,
            entries: entries(&says),
            warnings: says.lines().filter(|line| line.contains("warning")).map(str::to_owned).collect(),
        })
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|s| String::from_utf8_lossy(s).into_owned()).concat()
}

/// What `ptxas -v` says of each kernel. Functions that are no kernels follow the one that calls them.
fn entries(says: &str) -> Vec<EntryUse> {
    let mut out: Vec<EntryUse> = Vec::new();
    for line in says.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            out.push(EntryUse { name, ..EntryUse::default() });
        }
        let Some(entry) = out.last_mut() else { continue };
        let number = |unit| before(line, unit).unwrap_or(0);
        entry.registers += number(" registers");
        entry.shared_bytes += number(" bytes smem");
        entry.stack_bytes += number(" bytes stack frame");
        entry.spill_stores += number(" bytes spill stores");
        entry.spill_loads += number(" bytes spill loads");
    }
    out
}

/// The number that stands before a unit.
fn before(text: &str, unit: &str) -> Option<u32> {
    let head = &text[..text.find(unit)?];
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    head[head.len() - digits..].parse().ok()
}

/// `13.0` of "Cuda compilation tools, release 13.0, V13.0.88".
fn release(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What code is assembled for: plain code for the device, code with the features of one architecture or family for that.
fn architecture(text: &str, sm: u32) -> String {
    let target = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
    let name = target.and_then(|rest| rest.split([',', ';']).next()).map(str::trim).unwrap_or_default();
    if name.starts_with("sm_") && name.ends_with(['a', 'f']) { name.to_owned() } else { format!("sm_{sm}") }
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

    /// As ptxas 12.9 says it of two kernels under a limit that is too low.
    const SAYS: &str = "\
ptxas warning : For profile sm_80 adjusting per thread register count of 16 to lower bound of 24
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm_sum' for 'sm_80'
ptxas info    : Function properties for gemm_sum
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 6.192 ms
ptxas info    : Compiling entry function 'gemm_f32_nn' for 'sm_80'
ptxas info    : Function properties for gemm_f32_nn
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 8448 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 1.445 ms
";

    #[test]
    fn numbers_are_those_of_each_kernel() {
        let found = entries(SAYS);
        let sum = EntryUse { name: "gemm_sum".into(), registers: 4, ..EntryUse::default() };
        let product = EntryUse {
            name: "gemm_f32_nn".into(),
            registers: 24,
            shared_bytes: 8448,
            stack_bytes: 16,
            spill_stores: 12,
            spill_loads: 8,
        };
        assert_eq!(found, [sum, product]);
        assert_eq!(found[1].spills(), 20);
        assert_eq!(entries("ptxas info    : 0 bytes gmem"), []);
    }

    #[test]
    fn numbers_are_read_by_their_units() {
        assert_eq!(before("    0 bytes stack frame, 12 bytes spill stores", " bytes spill stores"), Some(12));
        assert_eq!((before("12 bytes", " bytes lmem"), before("some registers", " registers")), (None, None));
    }
}
