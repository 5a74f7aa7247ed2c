//! CUDA C++ by NVRTC, NVIDIA's compiler as a library, which needs neither a driver nor a device.
//!
//! It is opened by the file that was found. The prototypes are those of `nvrtc.h`, unchanged from release 11 to 13.

use crate::compilers::CompileError;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null;
use tilewright_core::program::Source;

/// Names a file, or a folder in which one lies.
const PATH_VARIABLE: &str = "TILEWRIGHT_NVRTC";

/// Options that mean something to nvcc's driver only; code does not depend on them.
const FOR_NVCC: [&str; 9] = [
    "-O",
    "-Xptxas",
    "--ptxas-options",
    "-Xcompiler",
    "--compiler-options",
    "-gencode",
    "-arch",
    "-Wno-deprecated-gpu-targets",
    "-lineinfo",
];

/// Headers of the host that sources include out of habit, and what kernels need of them.
const HEADERS: [(&CStr, &CStr); 9] = [
    (c"stdio.h", c""),
    (c"stdlib.h", c""),
    (c"math.h", c""),
    (c"string.h", c""),
    (c"cuda.h", c""),
    (c"cuda_runtime.h", c""),
    (c"device_launch_parameters.h", c""),
    (c"stdint.h", STDINT),
    (c"cstdint", STDINT),
];

const STDINT: &CStr = c"#pragma once\ntypedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;\ntypedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;\n";

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type OnHandle = unsafe extern "C" fn(*mut Handle) -> c_int;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
type AddName = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type LoweredName = unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> c_int;

/// The library, opened for the life of the process.
pub(crate) struct Nvrtc {
    name: String,
    archs: Vec<u32>,
    include: Vec<PathBuf>,
    create: Create,
    destroy: OnHandle,
    compile: Compile,
    log_size: Size,
    log: Text,
    ptx_size: Size,
    ptx: Text,
    add_name: AddName,
    lowered: LoweredName,
}

/// A program of the library, destroyed when it goes.
struct Program<'n>(&'n Nvrtc, Handle);

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle was made by this library and is not used afterwards.
        unsafe { (self.0.destroy)(&mut self.1) };
    }
}

/// Folders in which the library may lie, with those of its headers.
fn folders(first: Option<&Path>) -> Vec<PathBuf> {
    let named = first.map(Path::to_owned).into_iter().chain(std::env::var_os(PATH_VARIABLE).map(PathBuf::from));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let home = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let pythons = home.into_iter().chain(["/usr/local".into(), "/usr".into()]).flat_map(|prefix| {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
        versions.filter(|path| path.to_string_lossy().contains("python")).collect::<Vec<_>>()
    });
    let packages = pythons.flat_map(|python| [python.join("site-packages"), python.join("dist-packages")]);
    let roots = named.chain(["build/nvrtc".into()]).chain(toolkits).chain(["/usr/local/cuda".into()]);
    roots.chain(packages).collect()
}

/// Where under such a folder: a toolkit's places, and those of NVIDIA's packages of release 12 and 13.
const UNDER: [&str; 5] = ["", "lib64", "lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"];

/// The files of the library in a folder, the newest name first.
fn files(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libnvrtc.so")
    };
    let mut found: Vec<PathBuf> = entries.filter(is_library).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

impl Nvrtc {
    /// The first that opens, or what was tried.
    pub(crate) fn find(first: Option<&Path>) -> Result<Self, String> {
        let folders = folders(first);
        let candidates = folders.iter().flat_map(|root| UNDER.iter().flat_map(|under| files(&root.join(under))));
        let plain = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from);
        let mut tried = Vec::new();
        for file in candidates.chain(plain) {
            match Self::open(&file, &folders) {
                Ok(found) => return Ok(found),
                Err(error) => tried.push(format!("{}: {error}", file.display())),
            }
        }
        Err(format!("NVRTC ({}); scripts/nvrtc.sh installs it", tried.join("; ")))
    }

    fn open(file: &Path, roots: &[PathBuf]) -> Result<Self, String> {
        let failed = |e: libloading::Error| e.to_string();
        // SAFETY: the constructors of this library have no preconditions.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
        fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the types of the callers are the prototypes of the header; the library is never closed.
            unsafe { library.get::<T>(name.as_bytes()).map(|s| *s).map_err(|e| e.to_string()) }
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = symbol(&library, "nvrtcVersion")?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are places for a number.
        if unsafe { version(&mut major, &mut minor) } != 0 {
            return Err("it does not say its version".into());
        }
        let headers = ["include", "nvidia/cuda_runtime/include", "nvidia/cu13/include"];
        let include = roots.iter().flat_map(|root| headers.map(|under| root.join(under)));
        let found = Self {
            name: format!("NVRTC {major}.{minor}"),
            archs: archs(&library),
            include: include.filter(|folder| folder.join("cuda_fp16.h").is_file()).take(1).collect(),
            create: symbol(&library, "nvrtcCreateProgram")?,
            destroy: symbol(&library, "nvrtcDestroyProgram")?,
            compile: symbol(&library, "nvrtcCompileProgram")?,
            log_size: symbol(&library, "nvrtcGetProgramLogSize")?,
            log: symbol(&library, "nvrtcGetProgramLog")?,
            ptx_size: symbol(&library, "nvrtcGetPTXSize")?,
            ptx: symbol(&library, "nvrtcGetPTX")?,
            add_name: symbol(&library, "nvrtcAddNameExpression")?,
            lowered: symbol(&library, "nvrtcGetLoweredName")?,
        };
        std::mem::forget(library);
        Ok(found)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// PTX, and the name of the entry in it.
    pub(crate) fn compile(&self, source: &Source, capability: u32) -> Result<(String, String), CompileError> {
        let failed = |message: String| CompileError::Failed { compiler: self.name.clone(), message };
        let options = self.options(source, capability)?;
        let text = |text: &str| CString::new(text).map_err(|_| failed("the source holds a zero byte".into()));
        let (code, path, entry) = (text(&source.text)?, text(&source.path.to_string_lossy())?, text(&source.entry)?);
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (names, contents) = (HEADERS.map(|(name, _)| name.as_ptr()), HEADERS.map(|(_, text)| text.as_ptr()));
        let mut handle: Handle = std::ptr::null_mut();
        let count = HEADERS.len() as c_int;
        // SAFETY: all texts end with a zero and live through the call; the arrays have as many members as is said.
        let made = unsafe {
            (self.create)(&mut handle, code.as_ptr(), path.as_ptr(), count, contents.as_ptr(), names.as_ptr())
        };
        if made != 0 {
            return Err(failed(format!("no program could be made, status {made}")));
        }
        let program = Program(self, handle);
        // SAFETY: the handle is that of a program that was not compiled yet; the texts live through the calls.
        let status = unsafe {
            (self.add_name)(program.1, entry.as_ptr());
            (self.compile)(program.1, options.len() as c_int, options.as_ptr())
        };
        let refused =
            |message| CompileError::Refused { compiler: self.name.clone(), message, macros: source.macros.clone() };
        if status != 0 {
            return Err(refused(hinted(self.text(&program, self.log_size, self.log).trim())));
        }
        let ptx = self.text(&program, self.ptx_size, self.ptx);
        let mut lowered: *const c_char = null();
        // SAFETY: the program was compiled with this name expression; the name that comes back lives as long as the program.
        let name = unsafe {
            match (self.lowered)(program.1, entry.as_ptr(), &mut lowered) {
                0 if !lowered.is_null() => Some(CStr::from_ptr(lowered).to_string_lossy().into_owned()),
                _ => None,
            }
        };
        let name = name.ok_or_else(|| refused(crate::nvcc::no_entry(&ptx, &source.entry)))?;
        Ok((ptx, name))
    }

    fn options(&self, source: &Source, capability: u32) -> Result<Vec<String>, CompileError> {
        let arch = self.archs.iter().copied().filter(|arch| *arch <= capability).max();
        let arch =
            arch.or_else(|| self.archs.is_empty().then_some(capability)).ok_or_else(|| CompileError::Failed {
                compiler: self.name.clone(),
                message: format!(
                    "it has no code for compute capability {capability}; the oldest is {:?}",
                    self.archs.first()
                ),
            })?;
        let mut out = vec![format!("--gpu-architecture=compute_{arch}"), "-lineinfo".to_owned()];
        let beside = source.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        out.extend(
            std::iter::once(beside)
                .chain(self.include.iter().map(PathBuf::as_path))
                .map(|f| format!("-I{}", f.display())),
        );
        out.extend(source.macros.iter().map(|(name, value)| format!("-D{name}={value}")));
        let for_nvcc = |option: &String| FOR_NVCC.iter().any(|known| option.starts_with(known));
        out.extend(source.options.iter().filter(|option| !for_nvcc(option)).cloned());
        Ok(out)
    }

    fn text(&self, program: &Program<'_>, size: Size, text: Text) -> String {
        let mut bytes = 0usize;
        // SAFETY: the program lives; the buffer is as long as the library asks for.
        let buffer = unsafe {
            if size(program.1, &mut bytes) != 0 {
                return String::new();
            }
            let mut buffer = vec![0u8; bytes.max(1)];
            if text(program.1, buffer.as_mut_ptr().cast()) != 0 {
                return String::new();
            }
            buffer
        };
        String::from_utf8_lossy(&buffer).trim_end_matches('\0').to_owned()
    }
}

/// A macro may be a word of the compiler's own header, whose errors say nothing to a user.
fn hinted(log: &str) -> String {
    let own = log.lines().next().is_some_and(|first| first.contains("__nv_nvrtc_builtin_header"));
    let hint = "a parameter has the name of something in the compiler's own header: rename it\n";
    format!("{}{log}", if own { hint } else { "" })
}

/// The compute capabilities that a release has code for, ascending; nothing where it does not say.
fn archs(library: &Library) -> Vec<u32> {
    type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
    type List = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: the types are the prototypes of the header; the list has as many places as the count says.
    unsafe {
        let count = library.get::<Count>(b"nvrtcGetNumSupportedArchs");
        let (Ok(count), Ok(list)) = (count, library.get::<List>(b"nvrtcGetSupportedArchs")) else { return Vec::new() };
        let mut number = 0;
        if count(&mut number) != 0 {
            return Vec::new();
        }
        let mut archs = vec![0; usize::try_from(number).unwrap_or(0)];
        if archs.is_empty() || list(archs.as_mut_ptr()) != 0 {
            return Vec::new();
        }
        archs.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect()
    }
}
