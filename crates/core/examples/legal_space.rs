//! Describes a small tuning space, fixes a device and an input, and says what is legal and why the rest is not.
//!
//! ```text
//! cargo run -p tilewright-core --example legal_space
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use tilewright_core::expr::Expr;
use tilewright_core::space::{Config, Param, ParamSpace, RuleGroup, Symbols};

fn main() -> Result<(), Box<dyn Error>> {
    let space = ParamSpace::builder()
        .param(Param::ints("m_s", [1, 2, 4, 8, 16]))
        .param(Param::ints("n_s", [1, 2, 4, 8, 16]))
        .param(Param::ints("k_l", [1, 2, 4]))
        .define("accumulators", "m_s * n_s * k_l")
        .rule("registers", RuleGroup::Hardware, "accumulators <= registers", "accumulators live in registers")
        .rule("split", RuleGroup::Implementation, "k % k_l == 0", "every slice of K is as long")
        .rule("reuse", RuleGroup::Guideline, "m_s + n_s >= 8", "less reuse is bound by loads")
        .build()?;
    let bound = space.bind(&Symbols::new().with("registers", 64).with("k", 30))?;
    println!("{} of {} points are legal", bound.count_legal(), bound.cartesian());

    let mut rejected: BTreeMap<&str, u32> = BTreeMap::new();
    for m in 0..5 {
        for n in 0..5 {
            for k in 0..3 {
                bound.broken(&[m, n, k]).into_iter().for_each(|rule| *rejected.entry(rule).or_default() += 1);
            }
        }
    }
    println!("points that break a rule: {rejected:?}");

    let point = Config::parse("m_s=16,n_s=8,k_l=1")?.to_point(bound.params(), None)?;
    if let Err(illegal) = bound.check(&point) {
        println!("{}: {illegal}", bound.config(&point));
    }

    let traffic: Expr = "m * k * ceil(n / n_l) + n * k * ceil(m / m_l)".parse()?;
    let sizes = Symbols::new().with("m", 100).with("n", 70).with("k", 30).with("m_l", 32).with("n_l", 64);
    println!("{traffic} = {}", traffic.eval_with(&|name| sizes.get(name).cloned())?);
    Ok(())
}
