//! Runs ptxas and nvdisasm, and reads what comes of it.

// Each user uses its part.
#![allow(dead_code)]

pub(crate) mod sass;

pub(crate) use sass::name;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use tilewright_ptxgen::target::Target;

/// The assemblers: 12.9 for targets before sm_75, 13 for the others.
pub(crate) struct Assembler {
    root: PathBuf,
}

/// What the assembler says of an entry.
pub(crate) struct Assembled {
    pub(crate) registers: u32,
    pub(crate) shared: u32,
    /// Bytes of spill stores and loads.
    pub(crate) spilled: u32,
    /// What it warns of, line by line.
    pub(crate) warnings: Vec<String>,
    pub(crate) cubin: Vec<u8>,
}

const OLD: &str = "cu12/nvidia/cuda_nvcc/bin/ptxas";
const NEW: &str = "cu13/nvidia/cu13/bin/ptxas";
const DISASSEMBLER: &str = "cu13/nvidia/cu13/bin/nvdisasm";

impl Assembler {
    /// `None`, with a message, where they are not installed.
    pub(crate) fn find() -> Option<Self> {
        let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/ptxas");
        let root = std::env::var_os("TILEWRIGHT_PTXAS").map_or(default, PathBuf::from);
        if [OLD, NEW, DISASSEMBLER].iter().all(|tool| root.join(tool).exists()) {
            return Some(Self { root });
        }
        tilewright_testkit::skip("ptxas", format!("it is not under {}; scripts/ptxas.sh installs it", root.display()));
        None
    }

    /// Assembles a module of one entry.
    pub(crate) fn assemble(&self, target: Target, text: &str) -> Result<Assembled, String> {
        let scratch = Scratch::new();
        let (source, cubin) = (scratch.0.join("kernel.ptx"), scratch.0.join("kernel.cubin"));
        std::fs::write(&source, text).unwrap();
        let tool = self.root.join(if target.sm() < 75 { OLD } else { NEW });
        let arch = format!("-arch={target}");
        let output = Command::new(tool).args(["-v", &arch]).arg(&source).arg("-o").arg(&cubin).output().unwrap();
        let says = said(&output);
        if !output.status.success() {
            return Err(says);
        }
        let number = |before: &str, after: &str| {
            let found = says.split(after).next().filter(|head| head.len() < says.len());
            let digits = found.and_then(|head| head.rsplit(before).next()).unwrap_or("0");
            digits.trim().parse::<u32>().unwrap_or(0)
        };
        Ok(Assembled {
            registers: number("Used", " registers"),
            shared: number(",", " bytes smem"),
            warnings: says.lines().filter(|line| line.contains("warning")).map(str::to_owned).collect(),
            spilled: number(",", " bytes spill stores") + number(",", " bytes spill loads"),
            cubin: std::fs::read(&cubin).unwrap(),
        })
    }

    /// Labels and instructions of a cubin: the label where one stands before the instruction, and the instruction.
    pub(crate) fn disassemble(&self, cubin: &[u8]) -> Result<Vec<(Option<String>, String)>, String> {
        let scratch = Scratch::new();
        let file = scratch.0.join("kernel.cubin");
        std::fs::write(&file, cubin).unwrap();
        let output = Command::new(self.root.join(DISASSEMBLER)).arg(&file).output().unwrap();
        if !output.status.success() {
            return Err(said(&output));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (mut code, mut label) = (Vec::new(), None);
        for line in text.lines().map(str::trim) {
            if line.starts_with(".L_") && line.ends_with(':') {
                label = Some(line.trim_end_matches(':').to_owned());
            } else if let Some((_, op)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
                // Lines of encoding have no instruction.
                if op.trim_end().ends_with(';') || op.contains(';') {
                    code.push((label.take(), op.trim().to_owned()));
                }
            }
        }
        Ok(code)
    }
}

/// Names of the instructions of the loop that has most of a kind. Predicates are left out.
pub(crate) fn main_loop(code: &[(Option<String>, String)], most: &str) -> Vec<String> {
    sass::loop_of(code, most).iter().map(|op| name(op).to_owned()).collect()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|s| String::from_utf8_lossy(s).into_owned()).concat()
}

/// A folder that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tilewright-ptxas-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
