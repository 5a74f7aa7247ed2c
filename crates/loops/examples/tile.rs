//! A matrix product, tiled step by step; every step is checked against the first.
//!
//! `cargo run -p tilewright-loops --example tile`

use tilewright_core::dtype::DType::F32;
use tilewright_loops::host::{Caches, operations};
use tilewright_loops::kernel::{Axis, declare, each, load, local, set, store};
use tilewright_loops::{Array, Instance, LoopKernel, Sizes, reference};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = Sizes::from([("n", 64)]);
    let product = LoopKernel::new("product")
        .domain("i", "n")
        .domain("j", "n")
        .domain("k", "n")
        .array(Array::input("a", F32, ["n", "n"]))
        .array(Array::input("b", F32, ["n", "n"]))
        .array(Array::output("c", F32, ["n", "n"]))
        .stmt(each(
            "i",
            [each(
                "j",
                [
                    declare("sum", F32, 0.0),
                    each("k", [set("sum", load("a", ["i", "k"]).fma(load("b", ["k", "j"]), local("sum")))]),
                    store("c", ["i", "j"], local("sum")),
                ],
            )],
        ));
    let mapped = product.clone().spread("j", 16, Axis::X, "jg", "jt")?.spread("i", 16, Axis::Y, "ig", "it")?;
    let tiled = mapped
        .clone()
        .split("k", 16, "ko", "ki")?
        .prefetch("a", "ta", Some("ko"), &["it", "ki"], 0)?
        .prefetch("b", "tb", Some("ko"), &["ki", "jt"], 0)?;
    let caches = Caches { l1: 32e3, l2: 512e3, l3: 8e6 };
    let first = Instance::new(product, &sizes)?;
    let before = first.workload(1).buffers;
    let expected = reference(&first, &before);
    for (name, kernel) in [("mapped", mapped), ("tiled", tiled)] {
        let instance = Instance::new(kernel, &sizes)?;
        let same = reference(&instance, &before).buffers[0].values == expected.buffers[0].values;
        println!("{name}: {} groups of {}, same results: {same}", instance.groups(), instance.threads());
        for (what, count) in operations(&instance, &caches) {
            println!("  {what:<14} {count:.0}");
        }
    }
    Ok(())
}
