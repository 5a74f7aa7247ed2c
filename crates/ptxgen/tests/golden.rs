//! Programs as text, compared byte by byte. `BLESS=1 cargo test -p tilewright-ptxgen --test golden` writes them anew.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, Launch, Program, Step};
use tilewright_core::space::Config;
use tilewright_ops::gemm::Gemm;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::target::Target;

const SMALL: &str = "m_s=2,n_s=2,m_l=16,n_l=16,k_l=1,u=4,vec_a=1,vec_b=1,stages=1,load=global,k_s=1,k_g=1,split=ordered,\
                     vec_c=1,raster=m,bounds=checked";

/// Name, target, input, what differs from [`SMALL`].
const CASES: [(&str, &str, &str, &str); 8] = [
    ("nn_f32", "sm_50", "m=31,n=20,k=50", ""),
    ("nt_f32_whole", "sm_80", "m=32,n=32,k=64,layout=nt", "m_s=4,n_s=1,bounds=whole,load=nc,stages=2,vec_a=2,vec_c=4"),
    ("tn_f64_groups", "sm_60", "m=31,n=30,k=50,dtype=f64,layout=tn,beta=1", "k_l=2,u=8,k_s=2"),
    ("tt_f32_atomic", "sm_70", "m=31,n=20,k=100,layout=tt,alpha=other,beta=other", "k_g=3,split=atomic,raster=n"),
    ("nn_f32_ordered", "sm_70", "m=32,n=20,k=100,beta=other,ldc=40", "k_g=4,vec_c=2,vec_a=4,load=nc,stages=2"),
    ("nt_f32_async", "sm_80", "m=32,n=32,k=100,layout=nt", "load=async,stages=3,vec_a=2,vec_b=4,vec_c=2,u=8"),
    ("nt_f64_batch", "sm_90", "m=31,n=20,k=50,dtype=f64,layout=nt,batch=3", "load=async,stages=2"),
    ("nn_f32_wide", "sm_80", "m=31,n=20,k=50,lda=100000000", ""),
];

fn program(target: &str, input: &str, config: &str) -> Program {
    let kernel = SimtGemm::new();
    let spec = target.parse::<Target>().unwrap().spec();
    let input = Gemm.parse(&Config::parse(input).unwrap()).unwrap();
    let base = Config::parse(SMALL).unwrap().to_point(kernel.space().params(), None).unwrap();
    let point = Config::parse(config).unwrap().to_point(kernel.space().params(), Some(&base)).unwrap();
    let problem = Bound::new(Arc::new(kernel), Arc::new(spec), input).unwrap();
    let legal = problem.space().check(&point).unwrap_or_else(|e| panic!("{:?} {config}: {e}", problem.input_ref()));
    problem.plan(&legal).program([0; 3])
}

fn show(program: &Program) -> String {
    let mut out = format!("// workspace: {} bytes\n", program.workspace);
    for step in &program.steps {
        let Step::Launch(Launch { code: Code::Ptx { text, entry }, grid, block, shared_bytes, args, .. }) = step else {
            panic!("{step:?}");
        };
        writeln!(
            out,
            "// launch {entry}: grid {grid:?}, block {block:?}, {shared_bytes} bytes of dynamic shared memory"
        )
        .unwrap();
        writeln!(out, "// {args:?}\n{text}").unwrap();
    }
    out
}

#[test]
fn programs_are_as_blessed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("BLESS").is_some();
    for (name, target, input, config) in CASES {
        let text = show(&program(target, input, config));
        assert_eq!(text, show(&program(target, input, config)), "{name} differs from itself");
        let file = folder.join(format!("{name}.ptx"));
        if bless {
            std::fs::write(&file, &text).unwrap();
        }
        let blessed = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text.lines().zip(blessed.lines()).position(|(a, b)| a != b);
        assert!(text == blessed, "{name} differs from {}, first in line {line:?}", file.display());
    }
}
