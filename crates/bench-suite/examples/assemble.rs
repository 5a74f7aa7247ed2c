//! What NVIDIA's assembler says of random legal plans of the GEMM kernels for GPUs, by types and targets:
//! `cargo run --release -p tilewright-bench-suite --example assemble -- [PLANS] [VARIANTS] [TARGETS] [SEED]`
//!
//! So many plans of every variant (`gemm.simt,gemm.mma`, all unless named) are drawn for each target (`sm_80,sm_90,sm_120` unless named),
//! in turn for every type and layout that the variant has code for. The table says how many are accepted, how many spill, of how many of these
//! that was not foreseen, how many bytes at most, how many are warned of, and the most registers; what is refused, spills or is warned of is
//! then listed. A spill is foreseen where a thread has all registers that the hardware, or the blocks that the plan wants on a multiprocessor,
//! leave it. Ends with an error where anything was refused or spills unforeseen. ptxas is found as `emit` finds it (`TILEWRIGHT_PTXAS`, `build/ptxas`, a toolkit, the path).

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use tilewright::kernels::Kernels;
use tilewright_bench_suite::assembly::{Assembly, LIMITS, Tally, gemm_classes};
use tilewright_bench_suite::cases::Cases;
use tilewright_core::device::DeviceKind;
use tilewright_core::problem::AnyKernel;
use tilewright_core::space::Config;
use tilewright_ptxgen::target::Target;
use tilewright_runtime::ptxas::Ptxas;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let (plans, seed): (usize, u64) = (argument(0, "300").parse()?, argument(3, "1").parse()?);
    let kernels = Kernels::default();
    let (named, mut refused, mut unforeseen) = (argument(1, ""), 0, 0);
    let mut complaints = Vec::new();
    println!(
        "{:10} {:7} {:14} plans accepted spill unforeseen most_bytes warned registers",
        "variant", "target", "types"
    );
    for kernel in kernels.variants("gemm", DeviceKind::Cuda)? {
        let family = kernel.id().to_string();
        let family = family.rsplit_once('.').map_or(family.as_str(), |(family, _)| family).to_owned();
        if !named.is_empty() && named.split(',').all(|name| name != family) {
            continue;
        }
        for target in argument(2, "sm_80,sm_90,sm_120").split(',') {
            let found = assembled(&**kernel, target.parse()?, plans, seed)?;
            let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
            for plan in &found {
                tallies.entry(types(&plan.input)).or_default().add(plan);
                tallies.entry("all".into()).or_default().add(plan);
                complaints.extend(complaint(plan).map(|text| format!("{family} {target}: {text}")));
            }
            for (types, t) in &tallies {
                let (accepted, most) = (t.accepted(), t.most_spilled);
                println!(
                    "{family:10} {target:7} {types:14} {:5} {accepted:8} {:5} {:10} {most:10} {:6} {:9}",
                    t.plans, t.spilled, t.unforeseen, t.warned, t.registers
                );
            }
            refused += tallies["all"].refused;
            unforeseen += tallies["all"].unforeseen;
        }
    }
    complaints.iter().for_each(|line| println!("{line}"));
    match (refused, unforeseen) {
        (0, 0) => Ok(()),
        _ => Err(format!("{refused} plans were refused, {unforeseen} spill unforeseen").into()),
    }
}

/// So many plans, in turn of every class of types and layouts.
fn assembled(kernel: &dyn AnyKernel, target: Target, plans: usize, seed: u64) -> Result<Vec<Assembly>, Failure> {
    let (spec, sm) = (Arc::new(target.spec()), target.sm());
    let tool = Ptxas::find(sm).ok_or("ptxas is not found: scripts/ptxas.sh installs it")?;
    let classes = gemm_classes(kernel, &spec);
    let one = |number: usize| -> Result<Option<Assembly>, Failure> {
        let fixed: Config = classes[number % classes.len()].clone();
        let cases = Cases { kernel, spec: spec.clone(), fixed, limits: LIMITS, seed };
        let Some(case) = cases.draw(number as u64)? else { return Ok(None) };
        Ok(Some(Assembly::of(&case, &tool, sm)?))
    };
    let found: Result<Vec<_>, Failure> =
        (0..plans).into_par_iter().filter_map(|number| one(number).transpose()).collect();
    let found = found?;
    if found.len() < plans {
        Err(format!("only {} of {plans} cases have a legal plan", found.len()).into())
    } else {
        Ok(found)
    }
}

/// Operands, and sums and results where they are named.
fn types(input: &Config) -> String {
    let words = ["dtype", "acc", "out"].into_iter().filter_map(|name| input.get(name));
    words.map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// What is worth a line.
fn complaint(plan: &Assembly) -> Option<String> {
    let mut what: Vec<String> = plan.refusals().map(|why| format!("refused: {why}")).collect();
    if plan.spills() > 0 {
        let foreseen = if plan.spills_unforeseen() { "unforeseen" } else { "as foreseen" };
        what.push(format!("spills {} bytes {foreseen}", plan.spills()));
    }
    what.extend(plan.warnings().map(str::to_owned));
    (!what.is_empty()).then(|| format!("{} for {} with {}", what.join("; "), plan.input, plan.config))
}
