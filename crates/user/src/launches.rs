//! How kernels are launched: blocks, threads and shared memory as expressions, by Kernel Tuner's rules.

use crate::document;
use crate::error::Fault;
use crate::formula::{Formula, Names};
use tilewright_core::space::{RuleGroup, SpaceBuilder};

/// One call of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    /// The kernel's name in the source.
    pub(crate) entry: String,
    /// Which arguments it takes.
    pub(crate) args: Vec<usize>,
    /// How it is spread; functions of the host are called once.
    pub(crate) grid: Option<Grid>,
}

/// Blocks and threads of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) block: [Formula; 3],
    pub(crate) grid: [Formula; 3],
    pub(crate) shared: Formula,
}

const AXES: [&str; 3] = ["x", "y", "z"];

/// Threads of a block along x where nothing says how many: as in Kernel Tuner.
const USUAL_THREADS: &str = "256";

/// The most threads of a block along z, on every device (CUDA C++ Programming Guide, technical specifications).
const MOST_ALONG_Z: u32 = 64;

impl Grid {
    /// Reads how a kernel is launched; what is not said is as in `main`, where there is one.
    pub(crate) fn read(
        written: document::Launch<'_>,
        main: Option<document::Launch<'_>>,
        names: &Names<'_>,
        field: &str,
    ) -> Result<Self, Fault> {
        let own_grid =
            written.problem.is_some() || written.global.is_some() || written.divisors.iter().any(Option::is_some);
        let sizes = main.filter(|_| !own_grid).unwrap_or(written);
        let local = written.local.or(main.and_then(|m| m.local));
        let formula = |text: &str, part: &str| {
            Formula::new(text, names).map_err(|message| Fault::at(format!("{field}.{part}"), message))
        };
        let block = blocks(local, names);
        let mut made = Vec::new();
        for (axis, text) in block.iter().enumerate() {
            made.push(formula(text, &format!("LocalSize.{}", AXES[axis].to_uppercase()))?);
        }
        // A grid of its own kind is not mixed with that of the specification.
        let of_main = main.and_then(|m| m.problem).filter(|_| sizes.global.is_none());
        let problem = sizes.problem.or(of_main).map(document::OneOrMore::texts);
        for axis in 0..3 {
            let (text, part) = match (&problem, sizes.global) {
                (Some(problem), _) => (divided(axis, problem, sizes, names), "ProblemSize"),
                (None, Some(global)) => (global_blocks(axis, global, sizes.global_type, &block), "GlobalSize"),
                (None, None) => {
                    return Err(Fault::at(
                        format!("{field}.ProblemSize"),
                        "missing: it or GlobalSize says how many blocks there are",
                    ));
                }
            };
            made.push(formula(&text, part)?);
        }
        let shared = written.shared.or(main.and_then(|m| m.shared));
        let shared = formula(&shared.map_or_else(|| "0".to_owned(), document::Formula::text), "SharedMemory")?;
        let [bx, by, bz, gx, gy, gz] = <[Formula; 6]>::try_from(made).unwrap_or_else(|_| unreachable!("six were made"));
        Ok(Self { block: [bx, by, bz], grid: [gx, gy, gz], shared })
    }

    /// The limits of a device as rules of a space.
    pub(crate) fn rules(&self, mut space: SpaceBuilder, number: usize) -> SpaceBuilder {
        let name = |what: &str| if number == 0 { format!("launch_{what}") } else { format!("step{number}_{what}") };
        let hardware = RuleGroup::Hardware;
        for (axis, (block, grid)) in AXES.iter().zip(self.block.iter().zip(&self.grid)) {
            space = space.define(&name(&format!("threads_{axis}")), &block.text);
            space = space.define(&name(&format!("blocks_{axis}")), &grid.text);
            let (threads, blocks) = (name(&format!("threads_{axis}")), name(&format!("blocks_{axis}")));
            let some = format!("{threads} >= 1 and {blocks} >= 1 and {blocks} <= grid_{axis}");
            space = space.rule(
                &name(&format!("grid_{axis}")),
                hardware,
                &some,
                "a grid has a block at least, and a limit along each axis",
            );
        }
        let product = AXES.map(|axis| name(&format!("threads_{axis}"))).join(" * ");
        let threads = format!("{product} <= threads_per_block and {} <= {MOST_ALONG_Z}", name("threads_z"));
        space = space.rule(&name("threads"), hardware, &threads, "a block has so many threads at most");
        let shared = format!("{0} >= 0 and {0} <= shared_optin", name("shared"));
        space.define(&name("shared"), &self.shared.text).rule(
            &name("shared_memory"),
            hardware,
            &shared,
            "a block gets no more shared memory",
        )
    }
}

/// The threads along each axis.
fn blocks(local: Option<&document::Size3>, names: &Names<'_>) -> [String; 3] {
    let usual = [USUAL_THREADS, "1", "1"];
    [0, 1, 2].map(|axis| match local {
        Some(size) => size.texts()[axis].clone(),
        None => {
            let param = format!("block_size_{}", AXES[axis]);
            if names.params.iter().any(|p| p.name == param) { param } else { usual[axis].to_owned() }
        }
    })
}

/// Blocks along an axis: the problem's size over the product of the divisors, rounded up. Without divisors it is the parameter
/// `block_size_x`, where there is one.
fn divided(axis: usize, problem: &[String], sizes: document::Launch<'_>, names: &Names<'_>) -> String {
    let Some(size) = problem.get(axis) else { return "1".to_owned() };
    let written = sizes.divisors[axis].map(document::OneOrMore::texts).filter(|list| !list.is_empty());
    let usual = format!("block_size_{}", AXES[axis]);
    let divisors =
        written.unwrap_or_else(|| names.params.iter().any(|p| p.name == usual).then_some(usual).into_iter().collect());
    let product: Vec<String> = divisors.iter().map(|divisor| format!("({divisor})")).collect();
    if product.is_empty() { size.clone() } else { format!("-(-({size}) // ({}))", product.join(" * ")) }
}

/// Blocks along an axis by `GlobalSize`: threads of the whole grid in OpenCL's words, blocks in CUDA's.
fn global_blocks(axis: usize, global: &document::Size3, of: Option<&str>, block: &[String; 3]) -> String {
    let size = global.texts()[axis].clone();
    if of == Some("OpenCL") { format!("-(-({size}) // ({}))", block[axis]) } else { size }
}
