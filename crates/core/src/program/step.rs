//! What programs do, one thing after the other.

use super::{Arg, DeviceError, HostCode};
use crate::space::Config;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// One step of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Sets bytes of the workspace.
    Fill {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// The value.
        value: u8,
    },
    /// Runs a kernel.
    Launch(Launch),
    /// Runs code of the host on all buffers and scalars. It is a part of its process, and cannot be written.
    #[serde(skip)]
    Host(Arc<dyn HostCode>),
    /// Runs a routine of a library on the buffers and scalars of the workload in their order.
    Library(LibraryCall),
}

impl fmt::Debug for dyn HostCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("code")
    }
}

impl Step {
    /// What it is, for devices that refuse it.
    pub fn kind(&self) -> String {
        match self {
            Self::Fill { .. } => "fills".to_owned(),
            Self::Launch(launch) => format!("the kernel {:?}", launch.code),
            Self::Host(_) => "code of the host".to_owned(),
            Self::Library(call) => format!("option {} of the library {}", call.option, call.library),
        }
    }
}

/// A call of a routine that the device's maker provides, for comparison or as one implementation among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryCall {
    /// Which library: `cublas`.
    pub library: String,
    /// Which of its implementations for this input, from zero; see the device's own documentation.
    pub option: u32,
    /// The fields of the input.
    pub input: Config,
}

/// Code of a kernel.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    /// PTX text and its entry.
    Ptx {
        /// The module.
        text: String,
        /// Name of the kernel in it.
        entry: String,
    },
    /// Source text, which a device that has a compiler makes one of the others of.
    Source(Box<Source>),
    /// A function of a library that was compiled for the host. It takes an array of the addresses of its arguments.
    Library {
        /// The file.
        path: PathBuf,
        /// Name of the function in it.
        entry: String,
    },
}

/// What source text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    /// CUDA C++, for GPUs.
    #[serde(rename = "CUDA")]
    Cuda,
    /// C, for the host.
    C,
    /// C++, for the host.
    #[serde(rename = "C++")]
    Cpp,
}

impl Language {
    /// As descriptions of kernels name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::C => "C",
            Self::Cpp => "C++",
        }
    }
}

/// A kernel as source text, with everything that a compiler needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    /// What the text is written in.
    pub language: Language,
    /// Where the text came from, for messages, and for what it includes.
    pub path: PathBuf,
    /// The text.
    pub text: String,
    /// Name of the kernel in it; of a template with its arguments: `scale<float, 4>`.
    pub entry: String,
    /// Types of its arguments in C, as `const float *` or `int`; the call of host code is made of them.
    pub types: Vec<String>,
    /// Macros, in order.
    pub macros: Vec<(String, String)>,
    /// Options of the compiler.
    pub options: Vec<String>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx { entry, .. } => write!(f, "Ptx({entry})"),
            Self::Source(source) => write!(f, "{}({})", source.language.name(), source.entry),
            Self::Library { entry, .. } => write!(f, "Library({entry})"),
        }
    }
}

/// What a kernel is allowed beyond the common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Dynamic shared memory in bytes that any launch of the kernel may ask for, where that is more than this one asks for.
    pub max_shared_bytes: Option<u32>,
    /// The share of the memory that caches and shared memory divide, in percent, that shared memory is to have. A wish.
    pub shared_carveout: Option<u8>,
    /// Whether clusters may have more than the eight blocks that every device with clusters runs.
    pub large_clusters: bool,
    /// Whether blocks may begin before the launch before this one is over, on devices that can: the code waits for it itself.
    #[serde(default)]
    pub overlaps: bool,
}

/// Blocks of a cluster that every device with clusters runs.
const CLUSTER_BLOCKS: u64 = 8;

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// What to run.
    pub code: Code,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks that run at once and see each other's shared memory; they divide the grid. None where blocks run alone.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// What the kernel is allowed.
    pub attributes: Attributes,
    /// Arguments in order.
    pub args: Vec<Arg>,
    /// Variables of the module that hold a buffer of the workload, by its number, when the kernel starts: constant memory, mostly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<(String, usize)>,
}

impl Launch {
    /// A launch of blocks that run alone.
    pub fn new(code: Code, grid: [u32; 3], block: [u32; 3], args: Vec<Arg>) -> Self {
        Self {
            code,
            grid,
            block,
            cluster: None,
            shared_bytes: 0,
            attributes: Attributes::default(),
            args,
            symbols: Vec::new(),
        }
    }

    /// The same with so many bytes of dynamic shared memory.
    #[must_use]
    pub fn sharing(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// The same in clusters of so many blocks.
    #[must_use]
    pub fn clustered(mut self, blocks: [u32; 3]) -> Self {
        self.cluster = Some(blocks);
        self
    }

    /// Whether blocks do see each other.
    pub fn is_clustered(&self) -> bool {
        self.cluster.is_some_and(|blocks| blocks != [1; 3])
    }

    /// Refuses what no device runs.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] with the field and its limit.
    pub fn check(&self) -> Result<(), DeviceError> {
        let refuse = |name: &str, message| Err(DeviceError::Argument { name: name.to_owned(), message });
        if let Some(cluster) = self.cluster {
            let divides = |(grid, blocks): (&u32, &u32)| *blocks > 0 && grid.is_multiple_of(*blocks);
            if !self.grid.iter().zip(&cluster).all(divides) {
                return refuse("cluster", format!("{cluster:?} does not divide the grid {:?}", self.grid));
            }
            let blocks: u64 = cluster.iter().map(|b| u64::from(*b)).product();
            if blocks > CLUSTER_BLOCKS && !self.attributes.large_clusters {
                let message = format!("{blocks} blocks: above {CLUSTER_BLOCKS} the attribute large_clusters is needed");
                return refuse("cluster", message);
            }
        }
        match self.attributes {
            Attributes { max_shared_bytes: Some(most), .. } if most < self.shared_bytes => {
                refuse("max_shared_bytes", format!("{most} is less than the {} of this launch", self.shared_bytes))
            }
            Attributes { shared_carveout: Some(percent), .. } if percent > 100 => {
                refuse("shared_carveout", format!("{percent} percent"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_that_no_device_runs_are_refused_by_field() {
        let code = Code::Ptx { text: String::new(), entry: "k".into() };
        let launch = Launch::new(code, [32, 2, 1], [32, 1, 1], Vec::new()).sharing(100);
        let named = |launch: Launch| match launch.check() {
            Err(DeviceError::Argument { name, .. }) => name,
            other => format!("{other:?}"),
        };
        assert_eq!(launch.check(), Ok(()));
        assert_eq!(launch.clone().clustered([4, 2, 1]).check(), Ok(()));
        assert!(!launch.clone().clustered([1; 3]).is_clustered());
        for cluster in [[3, 1, 1], [0, 1, 1], [16, 1, 1]] {
            assert_eq!(named(launch.clone().clustered(cluster)), "cluster", "{cluster:?}");
        }
        let with = |attributes| Launch { attributes, ..launch.clone() };
        let large =
            Launch { cluster: Some([16, 1, 1]), ..with(Attributes { large_clusters: true, ..Attributes::default() }) };
        assert_eq!(large.check(), Ok(()));
        let less = Attributes { max_shared_bytes: Some(99), ..Attributes::default() };
        assert_eq!(named(with(less)), "max_shared_bytes");
        let more = Attributes { shared_carveout: Some(101), ..Attributes::default() };
        assert_eq!(named(with(more)), "shared_carveout");
    }
}
