//! All compilers of this machine, and what they built.

use crate::cache::{Cache, key};
use crate::host::HostCompiler;
use crate::nvcc::Nvcc;
use crate::nvrtc::Nvrtc;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tilewright_core::program::{DeviceError, Language, Source};

/// What a source became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// PTX text, with the name that the entry has in it.
    Ptx {
        /// The module.
        text: String,
        /// Its kernel.
        entry: String,
    },
    /// A library of the host.
    Library {
        /// The file.
        path: PathBuf,
        /// The function that takes the addresses of the arguments.
        entry: String,
    },
}

/// Why a source became nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// No compiler of the language was found.
    #[error("no compiler of {} was found; tried: {tried}", language.name())]
    NoCompiler {
        /// The language.
        language: Language,
        /// What was looked for.
        tried: String,
    },
    /// The compiler refuses the text.
    #[error("{compiler}: {message}{}", with_macros(macros))]
    Refused {
        /// Which compiler.
        compiler: String,
        /// What it says, with file and line.
        message: String,
        /// The macros of the configuration.
        macros: Vec<(String, String)>,
    },
    /// It did not run, or left no file.
    #[error("{compiler}: {message}")]
    Failed {
        /// Which compiler.
        compiler: String,
        /// What the system says.
        message: String,
    },
}

fn with_macros(macros: &[(String, String)]) -> String {
    let all: Vec<String> = macros.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if all.is_empty() { String::new() } else { format!("\nwith the macros {}", all.join(" ")) }
}

impl From<CompileError> for DeviceError {
    fn from(error: CompileError) -> Self {
        Self::Load(error.to_string())
    }
}

type Slot = Arc<OnceLock<Result<Arc<Built>, CompileError>>>;

/// The compilers of this machine, found when they are first needed, and what they built.
pub struct Compilers {
    cache: Cache,
    nvrtc: OnceLock<Result<Nvrtc, String>>,
    nvrtc_at: Option<PathBuf>,
    nvcc: OnceLock<Option<Nvcc>>,
    host: Mutex<HashMap<Language, Result<HostCompiler, String>>>,
    known: Mutex<HashMap<String, Slot>>,
}

impl Compilers {
    /// With a folder for what is built; it is made when something is.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            cache: Cache::at(folder.into()),
            nvrtc: OnceLock::new(),
            nvrtc_at: None,
            nvcc: OnceLock::new(),
            host: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// With a place where NVRTC is looked for first: a file or a folder.
    #[must_use]
    pub fn with_nvrtc(mut self, place: impl Into<PathBuf>) -> Self {
        self.nvrtc_at = Some(place.into());
        self
    }

    /// The name and the version of what compiles a language.
    ///
    /// # Errors
    /// [`CompileError::NoCompiler`], with what was tried.
    pub fn compiler(&self, language: Language) -> Result<String, CompileError> {
        match language {
            Language::Cuda => match (self.nvrtc(), self.nvcc()) {
                (Ok(nvrtc), _) => Ok(nvrtc.name().to_owned()),
                (Err(_), Some(nvcc)) => Ok(nvcc.name().to_owned()),
                (Err(tried), None) => {
                    let tried = format!("{tried}; nvcc in CUDA_HOME, CUDA_PATH, /usr/local/cuda and PATH");
                    Err(CompileError::NoCompiler { language, tried })
                }
            },
            Language::C | Language::Cpp => Ok(self.host_compiler(language)?.name().to_owned()),
        }
    }

    /// Builds a source, or finds what was built of it. `capability` is that of the GPU, 80 for `sm_80`; the host has none.
    ///
    /// # Errors
    /// No compiler, what it says of the text, or why it did not run.
    pub fn build(&self, source: &Source, capability: u32) -> Result<Arc<Built>, CompileError> {
        let compiler = self.compiler(source.language)?;
        let target = if source.language == Language::Cuda { format!("compute_{capability}") } else { String::new() };
        let key = key(source, &compiler, &target);
        let slot = self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default().clone();
        slot.get_or_init(|| self.made(source, &key, capability).map(Arc::new)).clone()
    }

    fn made(&self, source: &Source, key: &str, capability: u32) -> Result<Built, CompileError> {
        if source.language != Language::Cuda {
            let path = self.cache.path(key, "so");
            let entry = crate::host::ENTRY.to_owned();
            if !path.is_file() {
                self.host_compiler(source.language)?.build(source, &path)?;
            }
            return Ok(Built::Library { path, entry });
        }
        let path = self.cache.path(key, "ptx");
        if let Ok(bytes) = std::fs::read(&path)
            && let Some(built) = from_file(&String::from_utf8_lossy(&bytes))
        {
            return Ok(built);
        }
        let (text, entry) = match (self.nvrtc(), self.nvcc()) {
            (Ok(nvrtc), _) => nvrtc.compile(source, capability)?,
            (Err(_), Some(nvcc)) => nvcc.compile(source, capability)?,
            (Err(tried), None) => {
                return Err(CompileError::NoCompiler { language: source.language, tried: tried.clone() });
            }
        };
        // What cannot be kept is made again.
        let _ = Cache::put(&path, format!("{MARK}{entry}\n{text}").as_bytes());
        Ok(Built::Ptx { text, entry })
    }

    fn nvrtc(&self) -> &Result<Nvrtc, String> {
        self.nvrtc.get_or_init(|| Nvrtc::find(self.nvrtc_at.as_deref()))
    }

    fn nvcc(&self) -> &Option<Nvcc> {
        self.nvcc.get_or_init(Nvcc::find)
    }

    fn host_compiler(&self, language: Language) -> Result<HostCompiler, CompileError> {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let found = host.entry(language).or_insert_with(|| HostCompiler::find(language));
        found.clone().map_err(|tried| CompileError::NoCompiler { language, tried })
    }
}

/// The first line of a kept PTX text: a comment with the entry's name.
const MARK: &str = "// tilewright entry ";

fn from_file(text: &str) -> Option<Built> {
    let (entry, text) = text.strip_prefix(MARK)?.split_once('\n')?;
    Some(Built::Ptx { text: text.to_owned(), entry: entry.to_owned() })
}
