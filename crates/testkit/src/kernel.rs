//! Conformance of a [`Kernel`]: legality, features, generation, and right results on a device.

use crate::points::{any_points, legal_points};
use crate::results::{run, same_bytes};
use crate::violation::{Conformity, Violation, ensure};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tilewright_core::buffer::Filling;
use tilewright_core::device::Device;
use tilewright_core::expr::Expr;
use tilewright_core::kernel::{InputOf, Kernel};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, Launch, Program, Step};
use tilewright_core::space::Point;

const SUITE: &str = "kernel";

/// How much of a kernel is tried.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Points, legal or not, whose legality is compared with the plan's, for each input.
    pub probes: usize,
    /// Legal points that are run, for each input; the default point is run besides.
    pub runs: usize,
    /// Whether two runs must leave the same bytes; false for kernels that add in the order of arrival.
    pub repeatable: bool,
    /// Where drawing starts.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { probes: 2_000, runs: 16, repeatable: true, seed: 1 }
    }
}

/// Holds a kernel to its contract on a device, for the given inputs (small ones, odd ones among them).
///
/// Checked: what the kernel says of the names in its rules is so; plans exist for exactly the points that the rules accept, and a refusal names a rule that is broken; feature
/// rows are as wide as their names and finite; generation gives the same program twice; the default point is legal;
/// results are right on real, exact and special data with poisoned outputs; read-only buffers stay as they were.
///
/// # Errors
/// The first broken promise.
pub fn kernel<K: Kernel>(
    kernel: &Arc<K>,
    device: &mut dyn Device,
    inputs: &[InputOf<K>],
    effort: &Effort,
) -> Conformity {
    for input in inputs {
        let problem = Bound::new(kernel.clone(), device.spec().clone(), input.clone());
        ensure!(
            problem.is_ok(),
            "symbols-cover-rules",
            "a rule names what neither device nor input has: {:?}",
            problem.as_ref().err()
        );
        let Ok(problem) = problem else { continue };
        derivations(&problem)?;
        legality(&problem, effort)?;
        features(&problem, effort)?;
        default_point(&problem)?;
        generation(&problem, effort)?;
        results(&problem, device, effort)?;
    }
    Ok(())
}

/// What a kernel says of its names must be so, where it says anything.
fn derivations<K: Kernel>(problem: &Bound<K>) -> Conformity {
    let (input, mut known) = (problem.input(), BTreeSet::new());
    for (name, text) in problem.kernel_ref().derivations() {
        let parsed = text.parse::<Expr>();
        ensure!(parsed.is_ok(), "derivations-are-expressions", "{name} = {text}: {parsed:?}");
        let value = parsed.ok().and_then(|expr| expr.eval_with(&|field| input.get(field).cloned()).ok());
        let Some(value) = value.filter(|_| !known.contains(name)) else { continue };
        known.insert(name);
        let symbol = problem.space().symbols().get(name);
        let is_same = symbol.is_some_and(|symbol| symbol.as_val().order(value.as_val()) == Some(Ordering::Equal));
        ensure!(is_same, "derivations-hold", "{name} = {text} is {value} for {input}, and the rules see {symbol:?}");
    }
    Ok(())
}

fn legality<K: Kernel>(problem: &Bound<K>, effort: &Effort) -> Conformity {
    let space = problem.space();
    let mut probes = any_points(space, effort.probes, effort.seed);
    probes.extend(legal_points(space, effort.runs, effort.seed));
    for point in probes {
        let config = space.config(&point);
        let Ok(legal) = space.check(&point) else { continue };
        for (name, text) in problem.kernel_ref().space().names() {
            ensure!(legal.get(name).is_some(), "names-have-values", "{name} = {text} has no value for {config}");
        }
        // A plan cannot refuse: one that has none for a legal point panics.
        let planned = std::panic::catch_unwind(AssertUnwindSafe(|| drop(problem.plan(&legal))));
        ensure!(planned.is_ok(), "plan-matches-rules", "no plan for {config}, legal for {:?}", problem.input_ref());
    }
    Ok(())
}

fn features<K: Kernel>(problem: &Bound<K>, effort: &Effort) -> Conformity {
    let schema = problem.schema();
    let distinct: BTreeSet<&str> = schema.iter().map(|f| f.name.as_str()).collect();
    ensure!(distinct.len() == schema.width(), "features-match-schema", "a feature is named twice: {schema:?}");
    let mut row = vec![-1.0];
    problem.input_features(&mut row);
    let inputs = row.len() - 1;
    ensure!(
        inputs == schema.input.len(),
        "features-match-schema",
        "{inputs} input features under {} names",
        schema.input.len()
    );
    for point in legal_points(problem.space(), effort.runs, effort.seed) {
        row.truncate(1 + inputs);
        problem.config_features(&point, &mut row);
        let found = row.len() - 1 - inputs;
        let config = problem.space().config(&point);
        ensure!(
            found == schema.config.len(),
            "features-match-schema",
            "{found} features under {} names for {config}",
            schema.config.len()
        );
        ensure!(row[0] == -1.0, "features-append", "features overwrite what stood in the row");
        ensure!(row.iter().all(|x| x.is_finite()), "features-are-finite", "{row:?} for {config}");
    }
    Ok(())
}

fn default_point<K: Kernel>(problem: &Bound<K>) -> Conformity {
    let space = problem.space();
    match problem.default_point() {
        Some(point) => {
            ensure!(space.is_legal(&point), "default-point-is-legal", "{point:?} for {:?}", problem.input_ref());
        }
        None => {
            ensure!(
                space.first_legal().is_none(),
                "default-point-is-legal",
                "none for {:?}, which has legal points",
                problem.input_ref()
            );
        }
    }
    Ok(())
}

fn generation<K: Kernel>(problem: &Bound<K>, effort: &Effort) -> Conformity {
    for point in legal_points(problem.space(), effort.runs, effort.seed) {
        let legal = problem.space().check(&point).map_err(|e| violation("draws-legal-points", e))?;
        let texts = [problem.program(&legal), problem.program(&legal)].map(|p| text(&p));
        ensure!(
            texts[0] == texts[1],
            "generation-repeats",
            "two programs of {} differ",
            problem.space().config(&point)
        );
    }
    Ok(())
}

fn violation(check: &'static str, message: impl ToString) -> Violation {
    Violation { suite: SUITE, check, message: message.to_string() }
}

/// Everything of a program that can be compared.
fn text(program: &Program) -> String {
    let code = |step: &Step| match step {
        Step::Host(code) => code.listing(),
        Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }) => Some(text.clone()),
        Step::Launch(Launch { code: Code::Source(source), .. }) => Some(format!("{source:?}")),
        Step::Launch(Launch { code: Code::Library { path, .. }, .. }) => Some(path.display().to_string()),
        Step::Library(_) | Step::Fill { .. } => None,
    };
    format!("{program:?} {:?}", program.steps.iter().map(code).collect::<Vec<_>>())
}

fn results<K: Kernel>(problem: &Bound<K>, device: &mut dyn Device, effort: &Effort) -> Conformity {
    let mut points = legal_points(problem.space(), effort.runs, effort.seed);
    points.extend(problem.default_point());
    for (i, point) in points.iter().enumerate() {
        for filling in [Filling::Real, Filling::Exact, Filling::Special] {
            result(problem, device, point, filling, effort.seed + i as u64, effort.repeatable)?;
        }
    }
    Ok(())
}

fn result<K: Kernel>(
    problem: &Bound<K>,
    device: &mut dyn Device,
    point: &Point,
    filling: Filling,
    seed: u64,
    repeatable: bool,
) -> Conformity {
    let at =
        || format!("{} for {:?}, {filling:?} data of seed {seed}", problem.space().config(point), problem.input_ref());
    let program = problem.program(&problem.space().check(point).map_err(|e| violation("draws-legal-points", e))?);
    let workload = Arc::new(problem.workload(filling, seed));
    let mut once =
        || run(device, problem, &program, &workload).map_err(|e| violation("program-runs", format!("{}: {e}", at())));
    let outcome = once()?;
    ensure!(
        outcome.verdict.is_right(),
        "result-is-right",
        "{}: {} elements wrong, the first {:?}",
        at(),
        outcome.verdict.wrong,
        outcome.verdict.first
    );
    let written = outcome.written_input;
    ensure!(written.is_none(), "inputs-stay", "{}: the read-only buffer {written:?} was written", at());
    if repeatable {
        let again = once()?;
        ensure!(same_bytes(&outcome.after, &again.after), "result-repeats", "{}: two runs differ", at());
    }
    Ok(())
}
