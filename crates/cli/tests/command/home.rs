//! A directory of its own for every test, and the binary run in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.args(args).env("TILEWRIGHT_HOME", self.path());
        // Every home is new, and each would have the cores of all libraries tried.
        command.env("TILEWRIGHT_BASELINE_CORES", "as-found");
        // The machine may ask for cores too.
        for variable in ["OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "LIBXSMM_TARGET"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs with the fake CUDA driver in the place of a real one, and nothing else that a path could lead to.
    #[cfg(target_os = "linux")]
    pub(crate) fn cuda(&self, args: &[&str]) -> Output {
        self.cuda_with(args, &[])
    }

    /// The same with more variables.
    pub(crate) fn cuda_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(args);
        self.with_driver(&mut command).envs(variables.iter().copied()).arg("--json").output().unwrap()
    }

    /// Has a program find the fake driver, and nothing else.
    pub(crate) fn with_driver<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let folder = self.path().join("driver");
        if !folder.exists() {
            let built = Path::new(env!("CARGO_BIN_EXE_tilewright")).with_file_name("deps/libtilewright_fake_cuda.so");
            std::fs::create_dir(&folder).unwrap();
            std::os::unix::fs::symlink(built, folder.join("libcuda.so")).unwrap();
        }
        // No ptxas either: its machine code is not for this driver.
        command.env("LD_LIBRARY_PATH", &folder).env("PATH", &folder).env_remove("TILEWRIGHT_PTXAS").current_dir(&folder)
    }

    /// The same with cuBLAS and cuBLASLt beside the driver, which compute and check their arguments.
    pub(crate) fn cublas(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let place = self.libraries().display().to_string();
        self.cuda_with(args, &[&[("TILEWRIGHT_BLAS_PATH", place.as_str())], variables].concat())
    }

    /// Where cuBLAS and cuBLASLt are found.
    pub(crate) fn libraries(&self) -> PathBuf {
        let folder = self.path().join("libraries");
        if !folder.exists() {
            let built = Path::new(env!("CARGO_BIN_EXE_tilewright")).with_file_name("deps/libtilewright_fake_cublas.so");
            std::fs::create_dir(&folder).unwrap();
            for name in ["libcublas.so.12", "libcublasLt.so.12"] {
                std::os::unix::fs::symlink(&built, folder.join(name)).unwrap();
            }
        }
        folder
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts with `--json` and does not wait.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs with `--json` where no file may grow beyond some KiB: a full disk, as far as a process can tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn json_within(&self, kib: u64, args: &[&str]) -> (i32, Value) {
        // The signal that goes with the limit is ignored, as it is on a disk that is really full.
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_tilewright")]).args(args).arg("--json");
        command.env("TILEWRIGHT_BASELINE_CORES", "as-found");
        document(args, &command.env("TILEWRIGHT_HOME", self.path()).output().unwrap())
    }

    /// Runs with `--json` with its files in another place.
    pub(crate) fn json_in(&self, home: &Path, args: &[&str]) -> (i32, Value) {
        document(args, &self.command(args).arg("--json").env("TILEWRIGHT_HOME", home).output().unwrap())
    }

    /// Runs with `--json`: the exit code, and the one document on standard output.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        document(args, &self.run(&[args, &["--json"]].concat()))
    }

    /// Runs with `--json` and these variables.
    pub(crate) fn json_with(&self, args: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
        document(args, &self.command(args).arg("--json").envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs what must succeed, with these variables.
    pub(crate) fn answer_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Value {
        let (code, value) = self.json_with(args, variables);
        assert_eq!(code, 0, "{args:?}: {value}");
        value
    }

    /// Runs what must succeed.
    pub(crate) fn answer(&self, args: &[&str]) -> Value {
        let (code, value) = self.json(args);
        assert_eq!(code, 0, "{args:?}: {value}");
        value
    }

    /// Runs what must fail with this exit code, on account of this field.
    pub(crate) fn error(&self, args: &[&str], code: i32, field: &str) -> Fault {
        fault(&self.json(args), code, field)
    }

    /// The only file in a directory below.
    pub(crate) fn only_file(&self, directory: &str) -> PathBuf {
        let mut files = self.files(directory);
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// All files below a directory, at any depth.
    pub(crate) fn files(&self, directory: &str) -> Vec<PathBuf> {
        let mut out = Vec::new();
        let mut open = vec![self.path().join(directory)];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { &mut open } else { &mut out }.push(path);
            }
        }
        out
    }
}

/// An error's kind and message.
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) message: String,
}

pub(crate) fn fault((found, value): &(i32, Value), code: i32, field: &str) -> Fault {
    let error = &value["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned();
    assert_eq!((*found, text("field").as_str()), (code, field), "{value}");
    Fault { kind: text("kind"), message: text("message") }
}

/// The exit code and the one document on standard output.
pub(crate) fn document(args: &[&str], out: &Output) -> (i32, Value) {
    let text = String::from_utf8_lossy(&out.stdout);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {text:?}; {}", String::from_utf8_lossy(&out.stderr)));
    (out.status.code().unwrap(), value)
}

pub(crate) fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field} in {value:#}");
    }
}
