//! Sources become programs, once for the same contents; what does not is told with file, line and macros.

use std::path::{Path, PathBuf};
use tilewright_compile::{Built, CompileError, Compilers};
use tilewright_core::program::{Language, Source};
use tilewright_testkit::nvrtc;

fn source(language: Language, folder: &Path, text: &str) -> Source {
    let name = if language == Language::Cuda { "k.cu" } else { "k.c" };
    Source {
        language,
        path: folder.join(name),
        text: text.to_owned(),
        entry: "f".into(),
        types: vec!["float *".into(), "int".into()],
        macros: vec![("STEP".into(), "4".into())],
        options: Vec::new(),
    }
}

fn library(built: &Built) -> PathBuf {
    let Built::Library { path, .. } = built else { panic!("{built:?}") };
    path.clone()
}

#[test]
fn what_was_built_is_found_again_until_something_changes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let one =
        source(Language::C, folder.path(), "#include \"part.h\"\nvoid f(float *y, int n) { y[0] = n * STEP * PART; }");
    std::fs::write(folder.path().join("part.h"), "#define PART 1\n").unwrap();
    let build = |source: &Source| library(&Compilers::new(&cache).build(source, 0).unwrap());
    let first = build(&one);
    let made = std::fs::metadata(&first).unwrap().modified().unwrap();
    assert_eq!(build(&one), first);
    assert_eq!(std::fs::metadata(&first).unwrap().modified().unwrap(), made, "it was not built again");
    let mut other = one.clone();
    other.macros[0].1 = "8".into();
    assert_ne!(build(&other), first);
    std::fs::write(folder.path().join("part.h"), "#define PART 2\n").unwrap();
    assert_ne!(build(&one), first, "an included file is a part of the source");
}

#[test]
fn many_threads_build_one_thing_once() {
    let folder = tempfile::tempdir().unwrap();
    let compilers = Compilers::new(folder.path().join("cache"));
    let one = source(
        Language::Cpp,
        folder.path(),
        "template <int N> void g(float *y) { y[0] = N; }\nvoid f(float *y, int) { g<STEP>(y); }",
    );
    let built: Vec<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| library(&compilers.build(&one, 0).unwrap()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(built.iter().all(|path| *path == built[0]));
    let left = std::fs::read_dir(built[0].parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "nothing else is left in the folder");
}

#[test]
fn a_text_that_does_not_compile_is_told_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let compilers = Compilers::new(folder.path().join("cache"));
    for (text, says) in [
        ("void f(float *y, int n) {\n  y[0] = m;\n}", "k.c:2:"),
        ("void g(float *y, int n) {}", "implicit declaration of function"),
        ("void f(double *y, int n) {}", "incompatible pointer type"),
        ("void f(float *y) {}", "too many arguments"),
        ("#error \"no\"\nvoid f(float *y, int n) {}", "k.c:1:"),
    ] {
        let error = compilers.build(&source(Language::C, folder.path(), text), 0).unwrap_err();
        assert!(matches!(error, CompileError::Refused { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(says) && message.contains("with the macros STEP=4"), "{text}: {message}");
    }
}

#[test]
fn cuda_becomes_ptx() {
    let Some(place) = nvrtc() else { return };
    let place = place.as_path();
    let folder = tempfile::tempdir().unwrap();
    let compilers = Compilers::new(folder.path().join("cache")).with_nvrtc(place);
    let text = "#include <cuda_fp16.h>\n#include <stdio.h>\ntemplate <class T, int N> __global__ void f(T *y, int n) {\n  y[0] = n * N;\n}";
    let mut one = source(Language::Cuda, folder.path(), text);
    one.entry = "f<float, STEP>".into();
    one.options = vec!["-std=c++11".into(), "-O3".into()];
    let built = compilers.build(&one, 80).unwrap();
    let Built::Ptx { text, entry } = &*built else { panic!() };
    assert!(text.contains(&format!(".entry {entry}(")) && text.contains(".target sm_80"), "{entry}");
    assert!(text.contains("k.cu"), "lines of the source are told");
    let again = Compilers::new(folder.path().join("cache")).with_nvrtc(place).build(&one, 80).unwrap();
    assert_eq!(again, built, "kept on disk as it was made");
    one.entry = "g".into();
    let error = compilers.build(&one, 80).unwrap_err().to_string();
    assert!(error.contains('g') && error.contains("STEP=4"), "{error}");
    let wrong = source(Language::Cuda, folder.path(), "__global__ void f(float *y, int n) {\n  y[0] = m;\n}");
    let error = compilers.build(&wrong, 80).unwrap_err().to_string();
    assert!(error.contains("k.cu(2)") && error.contains("\"m\""), "{error}");
}
