use super::*;
use crate::cores::candidates::{Features, OPENBLAS};
use crate::cores::choice::tried;
use std::path::Path;
use tilewright_testkit as testkit;

fn said(text: &str) -> Option<Result<Rates, Failure>> {
    parse(text)
}

#[test]
fn the_answer_is_found_among_what_libraries_print() {
    let rates = Rates { version: "1".into(), core: None, f32_gflops: 2.0, f64_gflops: 1.0, numbered: Vec::new() };
    let line = format!("{MARK}{}", serde_json::to_string(&Reply::Rates(rates.clone())).unwrap());
    assert_eq!(said(&format!("hello\n{line}\nbye\n")), Some(Ok(rates)));
    assert_eq!(said(&format!("no newline{line}")).unwrap().unwrap().version, "1");
    assert_eq!(said(&format!("{MARK}{{\"refused\":\"why\"}}")), Some(Err(Failure::Refused("why".into()))));
    let endless = line.replace("2.0", "1e999");
    for nothing in ["", "hello", MARK, &line[..line.len() - 1], &endless] {
        assert_eq!(said(nothing), None, "{nothing}");
    }
    let still = line.replace("2.0", "0.0");
    assert!(matches!(said(&still), Some(Err(Failure::Refused(_)))));
}

#[test]
fn a_request_for_what_is_no_library_is_answered() {
    let ask = |request: &str| {
        let mut out = Vec::new();
        answer(request.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
    };
    let refused = |library: &str| {
        let text = ask(&format!(r#"{{"library":"{library}","file":"/nowhere/libx.so"}}"#)).unwrap();
        match said(&text) {
            Some(Err(Failure::Refused(why))) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused("openblas").contains("/nowhere/libx.so"));
    assert!(refused("atlas").contains("no library `atlas` has cores"));
    assert!(ask("{").is_err());
}

/// Not a test of its own: the process that the tests below start, which is this program again.
#[test]
fn probe_child() {
    if std::env::var_os(CHILD).is_some() {
        answer(io::stdin().lock(), io::stdout().lock()).unwrap();
    }
}

const CHILD: &str = "TILEWRIGHT_TEST_PROBE_CHILD";

fn command(patience: Duration) -> ProbeCommand {
    let args = ["--exact", "cores::probe::tests::probe_child", "--nocapture"].map(str::to_owned).into();
    ProbeCommand { patience, ..ProbeCommand::new(std::env::current_exe().unwrap(), args) }
}

/// A library with the symbols of OpenBLAS that does as its variable says.
const FAKE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *core;
__attribute__((constructor)) static void begin(void) {
    core = getenv("OPENBLAS_CORETYPE");
    if (!core) core = "Own";
    printf("what a library prints without a newline");
    fflush(stdout);
    if (!strcmp(core, "Crash")) { fprintf(stderr, "no such core\n"); abort(); }
    if (!strcmp(core, "Hang")) for (;;) pause();
    if (!strcmp(core, "Unknown")) core = "Own";
}
const char *openblas_get_config(void) { return "OpenBLAS 9.9.9 FAKE"; }
const char *openblas_get_corename(void) { return core; }
void openblas_set_num_threads(int n) { (void)n; }
static void work(void) { if (strcmp(core, "Quick")) usleep(3000); }
void cblas_sgemm(void) { work(); }
void cblas_dgemm(void) { work(); }
"#;

fn fake(folder: &Path) -> Option<PathBuf> {
    let (source, file) = (folder.join("fake.c"), folder.join("libopenblas.so.0"));
    std::fs::write(&source, FAKE).unwrap();
    let done = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&file, &source]).status();
    match done {
        Ok(status) if status.success() => Some(file),
        other => {
            testkit::skip("cc", format!("{other:?}"));
            None
        }
    }
}

#[test]
#[cfg(unix)]
fn a_core_that_crashes_hangs_or_is_not_heeded_ends_its_probe_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = fake(folder.path()) else { return };
    let request = Request { library: "openblas".to_owned(), file: file.clone() };
    let command = command(Duration::from_secs(3));
    let ask = |core: Option<&str>| ask(&command, &request, &[(CHILD, Some("1")), (OPENBLAS.variable, core)]);
    let found = ask(None).unwrap();
    assert_eq!((found.version.as_str(), found.core.as_deref()), ("9.9.9 FAKE", Some("Own")));
    match ask(Some("Crash")) {
        Err(Failure::Died(how)) => assert!(how.contains("signal") && how.contains("no such core"), "{how}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(ask(Some("Hang")), Err(Failure::Silent(3)));
    assert_eq!(ask(Some("Unknown")).unwrap().core.as_deref(), Some("Own"));
    assert!(ask(Some("Quick")).unwrap().score() > 2.0 * found.score());
}

#[test]
#[cfg(unix)]
fn cores_of_a_file_are_tried_in_processes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = fake(folder.path()) else { return };
    let (command, host) = (command(Duration::from_secs(20)), Features::of_host());
    let done = tried(&OPENBLAS, &[file], &host, None, |file, setting| {
        let request = Request { library: "openblas".to_owned(), file: file.to_owned() };
        // The fake's own names stand in the places of the first cores.
        let fakes = ["Crash", "Unknown", "Quick"];
        let at = setting.and_then(|s| OPENBLAS.cores_for(&host).iter().position(|core| *core == s.core));
        let value = at.map(|at| fakes[at % fakes.len()]);
        let told = ask(&command, &request, &[(CHILD, Some("1")), (OPENBLAS.variable, value)]);
        told.map(|rates| match (&rates.core, setting) {
            (Some(core), Some(setting)) if core == "Quick" => Rates { core: Some(setting.core.clone()), ..rates },
            _ => rates,
        })
    });
    let cores = OPENBLAS.cores_for(&host).len();
    if cores >= 3 {
        let used = &done.best().unwrap().setting.as_ref().unwrap().core;
        let at = OPENBLAS.cores_for(&host).iter().position(|core| core == used);
        assert_eq!(at.map(|at| at % 3), Some(2), "{used}");
        assert_eq!(done.warnings().len(), 1, "{:?}", done.warnings());
    }
}

#[test]
fn a_program_that_is_not_there_is_no_probe() {
    let command = ProbeCommand::new("/nowhere/tilewright".into(), Vec::new());
    let request = Request { library: "openblas".to_owned(), file: "libopenblas.so".into() };
    assert!(matches!(ask(&command, &request, &[]), Err(Failure::Refused(_))));
}
