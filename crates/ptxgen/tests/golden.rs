//! Programs as text, compared byte by byte. `BLESS=1 cargo test -p tilewright-ptxgen --test golden` writes them anew.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use tilewright_core::computation::Computation;
use tilewright_core::kernel::Kernel;
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{Code, Launch, Program, Step};
use tilewright_core::space::Config;
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::conv::{DirectConv, SimtConv, WinogradConv};
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::mma::MmaGemm;
use tilewright_ptxgen::target::Target;

const SMALL: &str = "m_s=2,n_s=2,m_l=16,n_l=16,k_l=1,u=4,vec_a=1,vec_b=1,stages=1,load=global,k_s=1,k_g=1,split=ordered,\
                     vec_c=1,raster=m,bounds=checked,occupancy=1";

/// Name, target, input, what differs from [`SMALL`].
const CASES: [(&str, &str, &str, &str); 15] = [
    ("nn_f32", "sm_50", "m=31,n=20,k=50", ""),
    ("nt_f32_whole", "sm_80", "m=32,n=32,k=64,layout=nt", "m_s=4,n_s=1,bounds=whole,load=nc,stages=2,vec_a=2,vec_c=4"),
    ("tn_f64_groups", "sm_60", "m=31,n=30,k=50,dtype=f64,layout=tn,beta=1", "k_l=2,u=8,k_s=2"),
    ("tt_f32_atomic", "sm_70", "m=31,n=20,k=100,layout=tt,alpha=other,beta=other", "k_g=3,split=atomic,raster=n"),
    ("nn_f32_ordered", "sm_70", "m=32,n=20,k=100,beta=other,ldc=40", "k_g=4,vec_c=2,vec_a=4,load=nc,stages=2"),
    ("nn_f32_stream", "sm_70", "m=40,n=20,k=100,beta=other,ldc=40", "vec_c=2,split=stream"),
    ("nn_f32_ticket", "sm_70", "m=32,n=20,k=100,beta=other,ldc=40", "k_g=4,vec_c=2,split=ticket"),
    (
        "tn_f32_straight",
        "sm_70",
        "m=62,n=7,k=100,layout=tn",
        "load=straight,m_s=4,n_s=4,m_l=64,n_l=8,k_l=2,u=16,vec_a=2,vec_b=1,vec_c=2,stages=2",
    ),
    ("nt_f32_async", "sm_80", "m=32,n=32,k=100,layout=nt", "load=async,stages=3,vec_a=2,vec_b=4,vec_c=2,u=8"),
    ("nt_f64_batch", "sm_90", "m=31,n=20,k=50,dtype=f64,layout=nt,batch=3", "load=async,stages=2"),
    ("nn_f32_wide", "sm_80", "m=31,n=20,k=50,lda=100000000", ""),
    (
        "nt_f16_epilogue",
        "sm_50",
        "m=64,n=20,k=50,dtype=f16,acc=f32,layout=nt,beta=other,bias=row,activation=relu",
        "m_s=8,m_l=64,vec_a=8,vec_b=4,vec_c=8,load=nc,stages=2",
    ),
    (
        "nn_f16_pairs",
        "sm_60",
        "m=62,n=20,k=50,dtype=f16,acc=f16,alpha=other,bias=column",
        "m_s=4,n_s=2,m_l=32,k_l=2,u=8,k_s=2,vec_a=2,vec_b=2,vec_c=2,load=nc,stages=2",
    ),
    ("ct_c32_async", "sm_80", "m=32,n=20,k=50,dtype=c32,layout=ct", "load=async,stages=2,vec_b=2,vec_c=2"),
    ("nc_c64_ordered", "sm_70", "m=31,n=20,k=100,dtype=c64,layout=nc,alpha=other,bias=column", "k_g=2"),
];

const SMALL_MMA: &str = "m_w=16,n_w=16,m_l=16,n_l=16,u=16,vec_a=8,vec_b=8,stages=2,load=async,k_g=1,split=ordered,vec_c=2,\
                         raster=m,bounds=checked";

/// The same by matrix instructions, by what differs from [`SMALL_MMA`].
const MATRICES: [(&str, &str, &str, &str); 6] = [
    ("mma_f16_tn", "sm_80", "m=32,n=24,k=64,layout=tn,dtype=f16,acc=f32", "u=32,stages=3"),
    ("mma_bf16_nt_ordered", "sm_90", "m=32,n=40,k=320,layout=nt,dtype=bf16,acc=f32,beta=other", "k_g=2,m_l=32,n_l=32"),
    (
        "mma_tf32_nn",
        "sm_80",
        "m=31,n=24,k=20,dtype=tf32,acc=f32,out=f32,alpha=other",
        "vec_a=1,vec_b=4,load=nc,vec_c=1",
    ),
    (
        "mma_i8_nt_bias",
        "sm_80",
        "m=32,n=32,k=96,layout=nt,dtype=i8,bias=row,activation=relu",
        "m_w=32,n_w=32,m_l=32,n_l=32,u=32,vec_a=16,vec_b=16",
    ),
    ("mma_f32_3xtf32_tn", "sm_80", "m=32,n=24,k=64,layout=tn,accuracy=3xtf32", "u=8,vec_a=4,vec_b=4"),
    ("mma_f64_tt_atomic", "sm_90", "m=32,n=32,k=128,layout=tt,dtype=f64", "vec_a=2,vec_b=2,k_g=2,split=atomic,vec_c=1"),
];

const SMALL_BACUGEN: &str = "m_dim=8,n_dim=4,k_blk=4,n_blk=8,m_blk=16,m_dim_a=16,n_dim_a=2,m_dim_b=4,n_dim_b=8,load=nc";

/// The same of BACUGen's stencil, by what differs from [`SMALL_BACUGEN`].
const STENCILS: [(&str, &str, &str, &str); 2] = [
    ("bacugen_s_nn", "sm_50", "m=31,n=20,k=50,beta=other", ""),
    (
        "bacugen_z_ct",
        "sm_90",
        "m=31,n=20,k=50,dtype=c64,layout=ct,alpha=other",
        "m_dim_a=4,n_dim_a=8,m_dim_b=8,n_dim_b=4,load=global",
    ),
];

const SMALL_CONV: &str = "k_s=2,k_l=8,q_s=1,q_l=8,p_s=1,p_l=2,n_s=1,n_l=1,c_l=1,u=4,scan=places,vec_f=1,vec_g=1,stages=1,\
                          load=global,c_s=1,c_g=1";

/// The same of convolutions, by what differs from [`SMALL_CONV`].
const CONVOLUTIONS: [(&str, &str, &str, &str); 5] = [
    ("conv_f32", "sm_50", "n=1,c=3,h=8,k=8,r=3,pad=1,bias=1,residual=1,activation=relu", ""),
    (
        "conv_f64_data",
        "sm_80",
        "n=1,c=16,h=8,k=16,r=1,s=3,stride_w=2,groups=2,layout=nhwc,direction=data,dtype=f64",
        "scan=steps,vec_f=2,load=async,stages=2",
    ),
    (
        "conv_f32_filter",
        "sm_70",
        "n=4,c=8,h=8,k=8,r=3,layout=nhwc,direction=filter",
        "n_s=2,n_l=8,q_l=4,p_l=1,c_l=2,u=8,c_g=3,vec_g=2,load=nc,stages=2,c_s=2",
    ),
    (
        "conv_f16",
        "sm_50",
        "n=2,c=16,h=8,k=16,r=3,pad=1,bias=1,residual=1,activation=relu,layout=nhwc,dtype=f16",
        "scan=steps,u=8,vec_f=2,vec_g=8,load=nc,stages=2",
    ),
    (
        "conv_bf16_data",
        "sm_80",
        "n=2,c=16,h=8,k=32,r=1,direction=data,dtype=bf16",
        "u=8,c_g=2,vec_f=4,vec_g=8,load=async,stages=2",
    ),
];

const SMALL_WINOGRAD: &str = "side=2,m_s=2,n_s=2,m_l=16,n_l=8,k_l=1,u=4,vec_a=1,vec_b=1,stages=1,load=global,k_s=1,vec_c=2,raster=m,\
                              bounds=checked";
const WINOGRADS: [(&str, &str, &str, &str); 1] =
    [("conv_winograd_f32", "sm_70", "n=1,c=3,h=8,k=6,r=3,pad=1,bias=1,residual=1,activation=relu", "")];

const SMALL_DIRECT: &str = "k_s=2,q_s=2,threads=64,scan=strips,filters=shared,taps=loop";
const DIRECT: [(&str, &str, &str, &str); 2] = [
    ("conv_direct_f32", "sm_50", "n=1,c=3,h=8,k=6,r=3,pad=1,bias=1,residual=1,activation=relu", ""),
    (
        "conv_direct_f64_data",
        "sm_80",
        "n=1,c=6,h=8,k=6,r=1,s=3,stride_w=2,groups=6,layout=nhwc,direction=data,dtype=f64",
        "k_s=1,scan=groups,filters=global",
    ),
];

fn program<K: Kernel>(kernel: K, base: &str, target: &str, input: &str, config: &str) -> Program {
    let spec = target.parse::<Target>().unwrap().spec();
    let input = kernel.computation().parse(&Config::parse(input).unwrap()).unwrap();
    let base = Config::parse(base).unwrap().to_point(kernel.space().params(), None).unwrap();
    let point = Config::parse(config).unwrap().to_point(kernel.space().params(), Some(&base)).unwrap();
    let problem = Bound::new(Arc::new(kernel), Arc::new(spec), input).unwrap();
    let legal = problem.space().check(&point).unwrap_or_else(|e| panic!("{:?} {config}: {e}", problem.input_ref()));
    problem.program(&legal)
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
    let gemm = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(SimtGemm::new(), SMALL, target, input, config))))
    };
    let conv = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(SimtConv::new(), SMALL_CONV, target, input, config))))
    };
    let winograd = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(WinogradConv::new(), SMALL_WINOGRAD, target, input, config))))
    };
    let direct = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(DirectConv::new(), SMALL_DIRECT, target, input, config))))
    };
    let mma = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(MmaGemm::new(), SMALL_MMA, target, input, config))))
    };
    let bacugen = |(name, target, input, config)| {
        (name, [0; 2].map(|_| show(&program(BacugenGemm::new(), SMALL_BACUGEN, target, input, config))))
    };
    let products = CASES.map(gemm).into_iter().chain(MATRICES.map(mma)).chain(STENCILS.map(bacugen));
    let products = products.chain(CONVOLUTIONS.map(conv));
    let more = WINOGRADS.map(winograd).into_iter().chain(DIRECT.map(direct));
    for (name, [text, again]) in products.chain(more) {
        assert_eq!(text, again, "{name} differs from itself");
        let file = folder.join(format!("{name}.ptx"));
        if bless {
            std::fs::write(&file, &text).unwrap();
        }
        let blessed = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text.lines().zip(blessed.lines()).position(|(a, b)| a != b);
        assert!(text == blessed, "{name} differs from {}, first in line {line:?}", file.display());
    }
}
