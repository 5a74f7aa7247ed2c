//! C and C++ for the host, by the system's compiler.

use crate::compilers::CompileError;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use tilewright_core::program::{Language, Source};

/// The function that a library is called by: it takes an array of the addresses of the arguments.
pub(crate) const ENTRY: &str = "tilewright_call";

/// The name that messages give the call that is made of a description's arguments.
const CALL: &str = "the arguments of the description";

/// The address of what has several names in C++.
const ANY: &str = "tilewright_any";

/// What every library is built with, before the options of its description.
const OPTIONS: [&str; 4] = ["-O3", "-march=native", "-shared", "-fPIC"];

/// What would otherwise be a warning, and a crash later: a call that does not fit the function.
const STRICT_C: [&str; 3] =
    ["-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"];

/// A compiler that runs.
#[derive(Clone, Debug)]
pub(crate) struct HostCompiler {
    program: String,
    name: String,
}

impl HostCompiler {
    /// The first that says its version, or what was tried.
    pub(crate) fn find(language: Language) -> Result<Self, String> {
        let (variable, usual) = match language {
            Language::Cpp => ("CXX", ["c++", "g++", "clang++"]),
            _ => ("CC", ["cc", "gcc", "clang"]),
        };
        let named = std::env::var(variable).ok().filter(|name| !name.is_empty());
        let candidates: Vec<String> = named.into_iter().chain(usual.map(str::to_owned)).collect();
        let runs = |program: &String| {
            let answer = Command::new(program).arg("--version").output().ok().filter(|o| o.status.success())?;
            let name = String::from_utf8_lossy(&answer.stdout).lines().next()?.to_owned();
            Some(Self { program: program.clone(), name })
        };
        candidates.iter().find_map(runs).ok_or_else(|| format!("{variable}, {}", usual.join(", ")))
    }

    /// The first line of what it says of itself.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Builds a library into a file.
    pub(crate) fn build(&self, source: &Source, to: &Path) -> Result<(), CompileError> {
        let failed = |e: std::io::Error| CompileError::Failed { compiler: self.name.clone(), message: e.to_string() };
        let folder = to.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        // Several threads and processes may build the same thing.
        let unique = format!("{}.{}.{:?}", to.display(), std::process::id(), std::thread::current().id());
        let unique = unique.replace(['(', ')'], "");
        let extension = if source.language == Language::Cpp { "cpp" } else { "c" };
        let (text, made) = (format!("{unique}.{extension}"), format!("{unique}.so"));
        std::fs::write(&text, whole(source)).map_err(failed)?;
        let output = self.command(source, &text, &made).output();
        let _ = std::fs::remove_file(&text);
        let output = output.map_err(failed)?;
        if !output.status.success() {
            let _ = std::fs::remove_file(&made);
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(CompileError::Refused { compiler: self.name.clone(), message, macros: source.macros.clone() });
        }
        std::fs::rename(&made, to).map_err(failed)
    }

    fn command(&self, source: &Source, text: &str, made: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(OPTIONS);
        if source.language == Language::C {
            command.args(STRICT_C);
        }
        if source.text.contains("#pragma omp") || source.text.contains("omp.h") {
            command.arg("-fopenmp");
        }
        if let Some(folder) = source.path.parent() {
            command.arg("-I").arg(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        }
        command.args(source.macros.iter().map(|(name, value)| format!("-D{name}={value}")));
        command.args(&source.options).arg("-o").arg(made).arg(text).arg("-lm");
        command
    }
}

/// The user's text, and behind it the function that calls the entry.
fn whole(source: &Source) -> String {
    let quoted = source.path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!("#line 1 \"{quoted}\"\n{}\n#line 1 \"{CALL}\"\n", source.text);
    if source.types.iter().any(|of| of == ANY) {
        // Converts to the address of whatever the function takes.
        let _ = writeln!(
            out,
            "struct {ANY} {{ void *at; template <class T> operator T *() const {{ return (T *)at; }} }};"
        );
    }
    let linkage = if source.language == Language::Cpp { "extern \"C\" " } else { "" };
    let args: Vec<String> =
        source.types.iter().enumerate().map(|(i, of)| format!("*({of} *)tilewright_args[{i}]")).collect();
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "{linkage}void {ENTRY}(void **tilewright_args) {{ (void)tilewright_args; {}({}); }}",
        source.entry,
        args.join(", ")
    );
    out
}
