//! Artefacts from the first drawn input to compiled code that answers as plans by the artefact do.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tilewright::Error;
use tilewright::exporting::{ExportError, ExportSettings, Exported, Exporting};
use tilewright::kernels::Kernels;
use tilewright::planning::{Planning, problem};
use tilewright_core::computation::InputLimits;
use tilewright_core::device::DeviceSpec;
use tilewright_core::measurement::{Measurement, Timing};
use tilewright_core::problem::{AnyKernel, Erased, Measure, MeasureError, Problem};
use tilewright_core::space::{Config, Point};
use tilewright_export::{Artefact, Contents, Target, emit, name};
use tilewright_runtime::plan::PlanSettings;
use tilewright_runtime::store::Home;
use tilewright_testkit::toy;

/// Times by a formula, of kernels that need not run: what is best changes with the sizes.
struct Formula(Arc<DeviceSpec>);

impl Measure for Formula {
    fn spec(&self) -> &Arc<DeviceSpec> {
        &self.0
    }

    fn measure(&mut self, problem: &dyn Problem, at: &Point, _: &Timing) -> Result<Measurement, MeasureError> {
        problem.space().check(at)?;
        let (input, config) = (problem.input(), problem.space().config(at));
        let of = |from: &Config, name: &str| from.get(name).and_then(|v| v.as_int()).unwrap_or(1) as f64;
        let size = (of(&input, "m") + 1.0).log2() - (of(&input, "n") + 1.0).log2();
        let tile = of(&config, "m_s").log2() - of(&config, "n_s").log2();
        Ok(Measurement::recorded(1e-4 * (1.0 + (size - tile).abs() + 0.01 * of(&config, "u").log2())))
    }
}

struct Stand {
    home: tempfile::TempDir,
    kernel: Arc<dyn AnyKernel>,
    device: Arc<DeviceSpec>,
    fixed: Config,
    settings: ExportSettings,
}

impl Stand {
    fn new(kernel: Arc<dyn AnyKernel>, device: Arc<DeviceSpec>, fixed: &str) -> Self {
        let limits = InputLimits { max_flops: 1e6, max_bytes: 1e7 };
        let budget = Duration::from_millis(1500);
        let settings = ExportSettings { inputs: 40, held_out: 8, budget, limits, ..ExportSettings::default() };
        Self { home: tempfile::tempdir().unwrap(), kernel, device, fixed: Config::parse(fixed).unwrap(), settings }
    }

    fn toy(fixed: &str) -> Self {
        Self::new(Arc::new(Erased::new(toy::ScaleKernel::new())), toy::device(), fixed)
    }

    fn gemm(fixed: &str) -> Self {
        let device = tilewright::device::host(Some(1)).unwrap().spec().clone();
        let kernel = Kernels::default().competing("gemm.cpu", &device, false).unwrap().remove(0);
        Self::new(kernel, device, fixed)
    }

    fn export(&self, measure: &mut dyn Measure) -> Result<Exported, Error> {
        let exporting = Exporting {
            home: &Home::at(self.home.path()),
            kernel: &self.kernel,
            device: &self.device,
            fixed: &self.fixed,
            model: (None, None),
            settings: self.settings.clone(),
            told: &mut |_, _, _| {},
        };
        exporting.run(measure)
    }

    /// Writes the artefact as a file that plans read.
    fn written(&self, artefact: &Artefact) -> std::path::PathBuf {
        let path = self.home.path().join("artefact.json");
        std::fs::write(&path, emit(artefact, Target::Json).unwrap()).unwrap();
        path
    }

    /// What a plan by an artefact chooses without timing anything, and what it says that it knew.
    fn planned(&self, path: &Path, input: &Config) -> Result<(Config, String), Error> {
        let settings = PlanSettings { top: 0, remember: false, ..PlanSettings::default() };
        let (home, kernels) = (Home::at(self.home.path()), std::slice::from_ref(&self.kernel));
        let planning =
            Planning { model: (None, Some(path)), ..Planning::new(&home, kernels, &self.device, None, settings) };
        planning.decide(input).map(|(_, planned)| (planned.config, planned.decision.knowledge))
    }

    /// Inputs that the artefact speaks of, by another seed than its own.
    fn inputs(&self, artefact: &Artefact, count: usize) -> Vec<Config> {
        let mut rng = ChaCha8Rng::seed_from_u64(77);
        let mut out = Vec::new();
        while out.len() < count {
            let limits = &self.settings.limits;
            let drawn = self.kernel.draw(&self.fixed, limits, &mut || rng.random()).unwrap();
            let Ok(problem) = problem(&*self.kernel, &self.device, &drawn) else { continue };
            out.extend(Some(problem.input()).filter(|input| artefact.choose(input).is_ok()));
        }
        out
    }
}

fn run(program: &str, folder: &Path, args: &[&str]) -> String {
    let out = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The answers of C and of Rust, compiled alone, for the numbers of inputs.
fn compiled(artefact: &Artefact, inputs: &[Config]) -> [Vec<Option<usize>>; 2] {
    let (contents, folder) = (artefact.contents(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let numbers = |input: &Config| contents.domain.numbers(input).unwrap();
    let rows: Vec<String> = inputs.iter().map(|i| format!("{:?}", numbers(i)).replace(['[', ']'], "")).collect();
    let width = contents.domain.fields.len();
    std::fs::write(folder.join("tuned.h"), emit(artefact, Target::C).unwrap()).unwrap();
    std::fs::write(folder.join("tuned.rs"), emit(artefact, Target::Rust).unwrap()).unwrap();
    let name = name(contents);
    let arguments: Vec<String> = (0..width).map(|at| format!("n[{at}]")).collect();
    let c = format!(
        "#include <stdio.h>\n#include \"tuned.h\"\nstatic const int64_t inputs[][{width}] = {{ {{ {} }} }};\nint main(void) {{\n\
         for (unsigned i = 0; i < {}; i++) {{ const int64_t *n = inputs[i]; printf(\"%d\\n\", {name}_choose({}).index); }}\n\
         return 0; }}\n",
        rows.join(" }, { "),
        rows.len(),
        arguments.join(", ")
    );
    std::fs::write(folder.join("main.c"), c).unwrap();
    run("cc", folder, &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o", "c", "main.c"]);
    std::fs::write(folder.join("main.rs"), main_of_rust(contents, &rows)).unwrap();
    run("rustc", folder, &["--edition", "2024", "-D", "warnings", "-o", "r", "main.rs"]);
    ["./c", "./r"].map(|program| run(program, folder, &[]).lines().map(|at| at.parse::<usize>().ok()).collect())
}

fn main_of_rust(contents: &Contents, rows: &[String]) -> String {
    let member = |(at, field): (usize, &tilewright_export::Field)| {
        let (first, rest) = field.name.split_at(1);
        let words = format!("tuned::{}{rest}::ALL[n[{at}] as usize]", first.to_uppercase());
        format!("{}: {}", field.name, if field.is_integer() { format!("n[{at}]") } else { words })
    };
    let members: Vec<String> = contents.domain.fields.iter().enumerate().map(member).collect();
    format!(
        "#[allow(dead_code)]\nmod tuned;\nconst INPUTS: &[[i64; {}]] = &[[{}]];\nfn main() {{\n    for n in INPUTS {{\n        \
         let at = tuned::choose_index(&tuned::Input {{ {} }});\n        println!(\"{{}}\", at.map_or(-1, |at| at as i64));\n    }}\n}}\n",
        contents.domain.fields.len(),
        rows.join("], ["),
        members.join(", ")
    )
}

/// C, Rust, the crate and plans choose the same configuration for a thousand inputs.
fn agree(stand: &Stand, artefact: &Artefact) {
    let (path, inputs) = (stand.written(artefact), stand.inputs(artefact, 1000));
    let own: Vec<Option<usize>> = inputs.iter().map(|input| artefact.choose(input).unwrap()).collect();
    for answers in compiled(artefact, &inputs) {
        assert_eq!(answers, own);
    }
    let mut by_artefact = 0;
    for (input, at) in inputs.iter().zip(&own) {
        let (config, knowledge) = stand.planned(&path, input).unwrap();
        let at = at.unwrap_or_else(|| panic!("nothing is chosen for {input}"));
        // The last resort is not legal by all guidelines: plans take the kernel's default there.
        if knowledge == "artefact" {
            by_artefact += 1;
            assert_eq!(config, artefact.contents().choices[at].config, "{input}");
        }
    }
    assert!(by_artefact >= 998, "{by_artefact} of 1000 inputs have a choice that guidelines advise");
}

#[test]
fn a_toy_kernel_is_exported_with_little_regret() {
    let mut stand = Stand::toy("dtype=f32");
    // What is best changes eight times between the smallest and the largest length.
    let settings = ExportSettings { inputs: 120, held_out: 24, leaves: 16, ..stand.settings.clone() };
    stand.settings = ExportSettings { budget: Duration::from_secs(5), ..settings };
    let mut measure = toy::AnalyticMeasure::new(toy::device()).checked_on(toy::host_device());
    let Exported { artefact, held_out, uncovered, .. } = stand.export(&mut measure).unwrap();
    let regret = artefact.contents().regret.held_out.unwrap();
    assert!(regret.mean <= 0.03 && regret.inputs == held_out.len() && regret.inputs >= 4, "{regret:?}: {held_out:?}");
    assert!(artefact.is_guaranteed() && uncovered.0 == 0, "{uncovered:?}");
    agree(&stand, &artefact);
}

#[test]
fn a_product_is_exported_with_words_and_rules() {
    let stand = Stand::gemm("dtype=f32");
    let Exported { artefact, candidates, uncovered, notes, .. } =
        stand.export(&mut Formula(stand.device.clone())).unwrap();
    let contents = artefact.contents();
    assert!(artefact.is_guaranteed() && uncovered.0 * 50 <= uncovered.1, "{uncovered:?} {notes:?}");
    assert!(candidates > 4 && contents.domain.position("layout").is_some(), "{candidates} {:?}", contents.domain);
    agree(&stand, &artefact);
    // Guards are legality itself, where all rules are asked.
    for input in stand.inputs(&artefact, 50) {
        let problem = problem(&*stand.kernel, &stand.device, &input).unwrap();
        for at in artefact.ranked(&input).unwrap() {
            let point = contents.choices[at].config.to_point(problem.space().params(), None).unwrap();
            assert!(problem.space().is_legal(&point), "{} for {input}", contents.choices[at].config);
        }
    }
}

#[test]
fn a_single_input_is_one_leaf_without_questions() {
    let stand = Stand::toy("dtype=f32,n=5000");
    let exported = stand.export(&mut toy::AnalyticMeasure::new(toy::device())).unwrap();
    let contents = exported.artefact.contents();
    assert!(contents.domain.fields.is_empty() && contents.tree.leaves() == 1 && contents.regret.held_out.is_none());
    for target in Target::ALL {
        assert!(emit(&exported.artefact, target).is_ok());
    }
}

#[test]
fn another_device_another_input_and_nothing_timed_are_refused() {
    let stand = Stand::toy("dtype=f32");
    let artefact = stand.export(&mut toy::AnalyticMeasure::new(toy::device())).unwrap().artefact;
    let path = stand.written(&artefact);
    let input = |text: &str| Config::parse(text).unwrap();
    assert!(stand.planned(&path, &input("n=300,dtype=f32")).is_ok());
    let said = stand.planned(&path, &input("n=300,dtype=f64")).unwrap_err();
    assert!(matches!(&said, Error::Outside(_)) && said.field().unwrap() == "dtype", "{said}");
    let other = Stand { device: toy::device_with(16), ..Stand::toy("dtype=f32") };
    let said = other.planned(&path, &input("n=300,dtype=f32")).unwrap_err().to_string();
    assert!(said.matches("toy device").count() == 2 && said.matches("fingerprint").count() == 2, "{said}");
    let failing = stand.export(&mut toy::AnalyticMeasure::new(toy::device()).failing(|_| true));
    let Err(Error::Export(error)) = failing else { panic!("{failing:?}") };
    assert!(matches!(*error, ExportError::Fit(_)), "{error}");
}
