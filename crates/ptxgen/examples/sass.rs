//! States what the main loop of a GEMM in f32, or with sums of f16, costs on a target, as NVIDIA's assembler makes it (`scripts/ptxas.sh`).
//!
//! ```text
//! cargo run -p tilewright-ptxgen --example sass -- sm_80 m=4096,n=4096,k=4096,layout=nt [u=8 u=16,stages=3,load=async]
//! ```
//!
//! One line for the default configuration, or one for each that differs from it as the further arguments say. Bank conflicts are
//! multiply-adds whose operands lie in one bank of registers; issue slots are instructions and conflicts; passes over shared memory are a
//! warp's, of all loads of the loop. What a multiprocessor holds is a mean over the device, and follows from the plan.

#[path = "../tests/assembler/mod.rs"]
mod assembler;

use assembler::Assembler;
use assembler::sass::MainLoop;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let target: Target = args.next().as_deref().unwrap_or("sm_80").parse()?;
    let input = Gemm.parse(&Config::parse(args.next().as_deref().unwrap_or("m=4096,n=4096,k=4096,layout=nt"))?)?;
    let assembler =
        Assembler::find().ok_or("no ptxas: scripts/ptxas.sh installs it, TILEWRIGHT_PTXAS names its folder")?;
    let problem = Bound::new(Arc::new(SimtGemm::new()), Arc::new(target.spec()), input)?;
    let default = problem.default_point().ok_or("nothing is legal for this input")?;
    let mut changes: Vec<String> = args.collect();
    if changes.is_empty() {
        changes.push(String::new());
    }
    for changes in changes {
        let point = Config::parse(&changes)?.to_point(problem.space().params(), Some(&default))?;
        let plan = problem.plan(&problem.space().check(&point)?);
        let product = plan.modules().into_iter().find(|module| module.entry.max_registers.is_some());
        let module = product.ok_or("nothing is multiplied")?;
        let of = MainLoop::of(&assembler, &module)?;
        let holds = plan.residence(problem.device());
        println!("{target} {}", problem.space().config(&point));
        println!(
            "  {:?} blocks of {} threads, of which a multiprocessor holds {:.1} ({:.0} threads) with {:.1} KB in flight",
            plan.grid(),
            plan.blueprint().threads,
            holds.blocks,
            holds.threads,
            holds.bytes / 1024.0
        );
        println!(
            "  {} registers, {} bytes spilled; {} {} of {} instructions ({:.4}), {} bank conflicts ({:.4} of an issue slot); \
             {} shared loads in {} passes, {} stores in {}",
            of.registers,
            of.spilled,
            of.multiplies,
            of.op,
            of.instructions,
            of.share(),
            of.conflicts,
            of.per_slot(),
            of.loads,
            of.passes,
            of.stores,
            of.store_passes,
        );
    }
    Ok(())
}
