//! Prints the program of a GEMM.
//!
//! ```text
//! cargo run -p tilewright-ptxgen --example show -- sm_80 m=2560,n=16,k=2560,layout=tn [k_g=4,split=atomic]
//! ```
//!
//! The third argument changes parameters of the default configuration.

use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, Launch, Step};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let target: Target = args.next().as_deref().unwrap_or("sm_80").parse()?;
    let input = Gemm.parse(&Config::parse(args.next().as_deref().unwrap_or("m=512,n=512,k=512"))?)?;
    let problem = Bound::new(Arc::new(SimtGemm::new()), Arc::new(target.spec()), input)?;
    let default = problem.default_point().ok_or("nothing is legal for this input")?;
    let changes = Config::parse(args.next().as_deref().unwrap_or_default())?;
    let point = changes.to_point(problem.space().params(), Some(&default))?;
    let plan = problem.plan(&problem.space().check(&point)?);
    println!("// {:?}", plan.blueprint().config);
    for step in plan.program([0; 3]).steps {
        if let Step::Launch(Launch { code: Code::Ptx { text, entry }, grid, block, shared_bytes, args, .. }) = step {
            println!("// {entry}: grid {grid:?}, block {block:?}, {shared_bytes} bytes of dynamic shared memory");
            println!("// arguments: {args:?}\n{text}");
        }
    }
    Ok(())
}
