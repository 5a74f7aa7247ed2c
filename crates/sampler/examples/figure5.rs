//! How many combinations each GEMM has on the paper's device with the guidelines of Table 1, as Figure 5 of "Autotuning GEMMs
//! for Fermi" draws it: the 16 versions of the figure, and the operations that conjugate. The numbers are this crate's.
//!
//! ```text
//! cargo run --release -p tilewright-sampler --example figure5
//! ```
//!
//! CGEMM stands there twice: Table 1 asks it for a reuse that its own winners do not have (see `bacugen`), and 4.0 is theirs.

use std::error::Error;
use tilewright_core::dtype::DType;
use tilewright_sampler::LegalSet;
use tilewright_sampler::bacugen::paper::{LAYOUTS, TYPES, WINNERS, operations, table1};
use tilewright_sampler::bacugen::{DeviceConstants, Guidelines, Layout, Reading, space};

fn main() -> Result<(), Box<dyn Error>> {
    let fermi = DeviceConstants::known("fermi-s2050").ok_or("no such device")?;
    println!("| GEMM | operation | of Figure 5 | min. reuse | scaled | printed | Table 2's winner |");
    println!("|---|---|---|---|---|---|---|");
    for element in TYPES {
        let asked = table1(element).ok_or("a type of the paper")?;
        let lower = Guidelines { min_regs_reuse: 4.0, ..asked };
        for guidelines in [Some(asked), (element == DType::C32).then_some(lower)].into_iter().flatten() {
            for operation in operations(element) {
                println!("{}", line(element, operation, &guidelines, &fermi)?);
            }
        }
    }
    Ok(())
}

fn line(
    element: DType,
    operation: &str,
    guidelines: &Guidelines,
    device: &DeviceConstants,
) -> Result<String, Box<dyn Error>> {
    let layout = Layout::parse(operation).ok_or("no operation")?;
    let bound = |reading| space(element, layout, device, guidelines, reading);
    let count = |reading| Ok::<u64, Box<dyn Error>>(LegalSet::of(&bound(reading)?)?.count());
    let winner = match WINNERS.iter().find(|w| w.element == element && w.layout == operation) {
        None => "",
        Some(winner) => {
            let bound = bound(Reading::Scaled)?;
            let point = winner.config().to_point(bound.params(), None)?;
            if bound.check(&point).is_ok() { "in" } else { "out" }
        }
    };
    let name = match element {
        DType::F32 => "SGEMM",
        DType::C32 => "CGEMM",
        DType::F64 => "DGEMM",
        _ => "ZGEMM",
    };
    let figure = if LAYOUTS.contains(&operation) { "yes" } else { "conjugated" };
    let (scaled, printed) = (count(Reading::Scaled)?, count(Reading::Printed)?);
    let reuse = guidelines.min_regs_reuse;
    Ok(format!("| {name} | {operation} | {figure} | {reuse:.1} | {scaled} | {printed} | {winner} |"))
}
