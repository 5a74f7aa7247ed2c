//! x
use tilewright_ops::gemm::ScalarClass;
use tilewright_ptxgen::gemm::*;
fn main() {
    let config = GemmConfig { m_s: 8, n_s: 8, m_l: 128, n_l: 128, u: 8, k_s: 1, k_l: 1, k_g: 1, vec_a: 4, vec_b: 4, vec_c: 4, stages: 2, load: Load::Nc, split: Split::Ordered, raster: Raster::M, bounds: Bounds::Checked };
    let bp = Blueprint { target: "sm_80".parse().unwrap(), arithmetic: &F32, config, a_transposed: false, b_transposed: false, alpha: ScalarClass::Other, beta: ScalarClass::Other, wide: false, batched: false };
    print!("{}", tilewright_ptxgen::print::print(&module(&bp)));
}
