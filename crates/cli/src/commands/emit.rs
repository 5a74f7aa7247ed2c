//! `tilewright emit`: the generated code of a GPU kernel, and what the assembler says of it.

use crate::args::EmitArgs;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::Output;
use crate::wiring::{Wiring, home};
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::Arc;
use tilewright::planning::problem;
use tilewright_core::device::DeviceKind;
use tilewright_core::objective::Objective;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::program::{Arg, Code, Step};
use tilewright_core::space::{Config, Point};
use tilewright_core::text::counted;
use tilewright_ptxgen::target::{Target, UnknownTarget};
use tilewright_runtime::RuntimeError;
use tilewright_runtime::plan_cache::{Lookup, PlanCache, PlanHeader};
use tilewright_runtime::ptxas::Ptxas;

#[derive(Serialize)]
struct Answer {
    kernel: String,
    input: Config,
    target: String,
    config: Config,
    origin: Origin,
    /// The launch with the most code; absent where an empty result needs none.
    #[serde(flatten)]
    main: Option<Emitted>,
    /// Every launch, in order.
    steps: Vec<Emitted>,
    workspace_bytes: u64,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// The command line, over the kernel's default.
    Given,
    /// The plan that was measured best on this device.
    Planned(String),
    /// The kernel's default.
    Default,
}

/// What code is generated from.
pub(super) struct Choice {
    /// For a typical device of the target, or for the device that a plan was made on.
    pub(super) problem: Box<dyn Problem>,
    pub(super) point: Point,
    pub(super) origin: Origin,
}

/// What the assembler says of one kernel.
#[derive(Clone, Serialize)]
struct Assembled {
    /// Registers of a thread.
    registers: u32,
    /// Bytes of shared memory of a block.
    shared_bytes: u32,
    /// Bytes of spill stores and loads of a thread.
    spills: u32,
    /// What it warns of; absent where there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// One launch.
#[derive(Clone, Serialize)]
struct Emitted {
    text: String,
    entry: String,
    launch: Launch,
    #[serde(flatten)]
    assembled: Option<Assembled>,
}

#[derive(Clone, Serialize)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<[u32; 3]>,
    /// Beyond what the code declares.
    dynamic_shared_bytes: u32,
    args: Vec<String>,
}

pub(crate) fn run(args: &EmitArgs, wiring: &Wiring, output: Output) -> Result<(), Failure> {
    let target: Target = args.target.parse().map_err(|e: UnknownTarget| Failure::new(Kind::Usage, "target", e))?;
    let input = fields::parse(&args.input)?;
    let kernel = wanted(wiring, (&args.kernel, args.variant.as_deref()), args.config.as_deref(), target, &input)?;
    let Choice { problem, point, origin } = choose(args.config.as_deref(), kernel, target, &input)?;
    let legal = problem.space().check(&point).map_err(|e| Failure::new(Kind::Input, "config", e))?;
    let program = problem.program(&legal);
    let steps: Vec<Emitted> = program.steps.iter().filter_map(|step| emitted(step, target)).collect();
    let answer = Answer {
        kernel: problem.kernel().to_string(),
        input: problem.input(),
        target: target.to_string(),
        config: problem.space().config(&point),
        origin,
        main: steps.iter().max_by_key(|s| s.text.len()).cloned(),
        steps,
        workspace_bytes: program.workspace,
    };
    output.answer(&answer, || text(&answer))
}

/// The variant that is named. Else of those that take the input the one that suits it best on the target, among equals the first; one for
/// which the given configuration or, without one, every configuration is illegal only where no other is better off.
///
/// # Errors
/// No kernel has the name, or none has code for GPUs. An input that no kernel takes is refused where it is used, by the first one.
pub(super) fn wanted<'w>(
    wiring: &'w Wiring,
    (name, variant): (&str, Option<&str>),
    config: Option<&str>,
    target: Target,
    input: &Config,
) -> Result<&'w dyn AnyKernel, Failure> {
    let kernels = &wiring.kernels;
    if variant.is_some() {
        return Ok(&**kernels.variant(name, variant, DeviceKind::Cuda)?);
    }
    let (all, spec) = (kernels.variants(name, DeviceKind::Cuda)?, Arc::new(target.spec()));
    // What the text of a configuration lacks is said where it is used.
    let is_legal = |problem: &dyn Problem| match (config, problem.default_point()) {
        (None, default) => default.is_some(),
        (Some(text), default) => {
            given(text, problem, default.as_deref()).is_ok_and(|point| problem.space().check(&point).is_ok())
        }
    };
    let has_names = |problem: &dyn Problem| {
        let given = config.and_then(|text| Config::parse(text).ok()).unwrap_or_default();
        given.0.iter().all(|(name, _)| problem.space().params().iter().any(|param| param.name == *name))
    };
    let accepted = all.iter().filter_map(|kernel| Some((&***kernel, problem(&***kernel, &spec, input).ok()?)));
    let mut accepted: Vec<(&dyn AnyKernel, Box<dyn Problem>)> = accepted.collect();
    accepted.sort_by(|(_, a), (_, b)| b.suits().total_cmp(&a.suits()));
    let first = |fits: &dyn Fn(&dyn Problem) -> bool| accepted.iter().find(|(_, problem)| fits(&**problem));
    let chosen = first(&is_legal).or_else(|| first(&has_names)).or(accepted.first());
    Ok(chosen.map_or(&**all[0], |(kernel, _)| *kernel))
}

/// What was asked for, over the kernel's own default; else the best that is known; else the default.
pub(super) fn choose(
    config: Option<&str>,
    kernel: &dyn AnyKernel,
    target: Target,
    input: &Config,
) -> Result<Choice, Failure> {
    let problem = problem(kernel, &Arc::new(target.spec()), input)?;
    if let Some(text) = config {
        let point = given(text, &*problem, problem.default_point().as_deref())?;
        return Ok(Choice { problem, point, origin: Origin::Given });
    }
    if let Some(choice) = known(kernel, target, &problem.input())? {
        return Ok(choice);
    }
    let point = problem.default_point().ok_or_else(|| Failure::nothing_legal(problem.space()))?;
    Ok(Choice { problem, point, origin: Origin::Default })
}

/// A configuration's text, over another configuration.
pub(super) fn given(text: &str, problem: &dyn Problem, over: Option<&[u16]>) -> Result<Point, Failure> {
    let bad = |e: &dyn std::error::Error| Failure::new(Kind::Input, "config", e.to_string());
    let config = Config::parse(text).map_err(|e| bad(&e))?;
    config.to_point(problem.space().params(), over).map_err(|e| bad(&e))
}

/// The plan that was last made for this input on a GPU of the target, as it was legal there.
fn known(kernel: &dyn AnyKernel, target: Target, input: &Config) -> Result<Option<Choice>, Failure> {
    let (cache, objective) = (PlanCache::new(home()?.plans()), Objective::default());
    let mut headers = headers(&cache)?;
    headers.retain(|h| {
        let sm = h.device.facts.get("sm").and_then(|sm| Target::of_sm(*sm));
        let same = h.kernel == kernel.id() && h.input == *input && h.objective == objective;
        same && h.device.kind == DeviceKind::Cuda && sm == Some(target)
    });
    headers.sort_by_key(|h| Reverse(h.created));
    for header in headers {
        // What is legal depends on the device, and the typical one of the target may have less.
        let problem = problem(kernel, &Arc::new(header.device.spec()), input)?;
        match cache.get(&*problem, &objective).map_err(RuntimeError::from)? {
            Lookup::Hit(_, point) => {
                let origin = Origin::Planned(header.device.name);
                return Ok(Some(Choice { problem, point, origin }));
            }
            Lookup::Stale(why) => tracing::info!("not taken for {}: {why}", header.device.name),
            Lookup::Miss => {}
        }
    }
    Ok(None)
}

/// What the entries of a cache answer. One that cannot be read is no reason to emit nothing: `doctor` names it too.
fn headers(cache: &PlanCache) -> Result<Vec<PlanHeader>, Failure> {
    let entries = cache.entries().map_err(RuntimeError::from)?.into_iter();
    let readable = entries.filter_map(|(_, contents)| match contents {
        Ok((header, _)) => Some(header),
        Err(e) => {
            tracing::warn!("{e}");
            None
        }
    });
    Ok(readable.collect())
}

fn emitted(step: &Step, target: Target) -> Option<Emitted> {
    let Step::Launch(launch) = step else { return None };
    let Code::Ptx { text, entry } = &launch.code else { return None };
    let tool = Ptxas::find(target.sm());
    let assembled = tool.and_then(|tool| match tool.assemble(text, target.sm()) {
        Ok(code) => code.entry(entry).map(|used| Assembled {
            registers: used.registers,
            shared_bytes: used.shared_bytes + launch.shared_bytes,
            spills: used.spills(),
            warnings: code.warnings.clone(),
        }),
        // An old toolkit may not know the target; the code is right without it.
        Err(error) => {
            tracing::warn!("{} on {entry} for {target}: {error}", tool.path().display());
            None
        }
    });
    let launch = Launch {
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared_bytes: launch.shared_bytes,
        args: launch.args.iter().map(argument).collect(),
    };
    Some(Emitted { text: text.clone(), entry: entry.clone(), launch, assembled })
}

fn argument(arg: &Arg) -> String {
    match arg {
        Arg::Buffer(i, offset) => format!("buffer {i} + {offset}"),
        Arg::Workspace(offset) => format!("workspace + {offset}"),
        Arg::Scalar(i) => format!("scalar {i}"),
        Arg::U32(x) => format!("u32 {x}"),
        Arg::U64(x) => format!("u64 {x}"),
        other => format!("{other:?}"),
    }
}

/// A text that an assembler takes where there is one launch: what is no code is a comment.
fn text(answer: &Answer) -> String {
    let mut out = format!("// {} for {} on {}\n// {}\n", answer.kernel, answer.input, answer.target, answer.config);
    let _ = match &answer.origin {
        Origin::Given => Ok(()),
        Origin::Planned(device) => writeln!(out, "// as planned on {device}"),
        Origin::Default => writeln!(out, "// by default: no plan is known for this input and target"),
    };
    if answer.workspace_bytes > 0 {
        let _ = writeln!(out, "// workspace: {}", counted(answer.workspace_bytes, "byte"));
    }
    for step in &answer.steps {
        let l = &step.launch;
        let shared = counted(l.dynamic_shared_bytes, "byte");
        let _ = writeln!(
            out,
            "// {}: grid {:?}, block {:?}, {shared} of dynamic shared memory",
            step.entry, l.grid, l.block
        );
        let _ = writeln!(out, "// arguments: {}", l.args.join(", "));
        if let Some(a) = &step.assembled {
            let _ = writeln!(
                out,
                "// ptxas: {}, {} of shared memory, {} spilled",
                counted(a.registers, "register"),
                counted(a.shared_bytes, "byte"),
                counted(a.spills, "byte")
            );
            for warning in &a.warnings {
                let _ = writeln!(out, "// {warning}");
            }
        }
        let _ = writeln!(out, "{}", step.text);
    }
    out
}
