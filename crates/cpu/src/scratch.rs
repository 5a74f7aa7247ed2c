//! scratch
#![allow(missing_docs)]
use crate::*;
pub struct Prepared(exec::driver::Compiled, Vec<[u64; 8]>);
#[derive(Clone, Copy, Debug)]
pub struct Shape { pub f: Float, pub m: usize, pub n: usize, pub k: usize, pub ta: bool, pub tb: bool, pub lda: usize, pub ldb: usize, pub ldc: usize }
impl Prepared {
    pub fn new(s: Shape, alpha: f64, beta: f64, config: &GemmConfig) -> Self {
        let g = geometry::Geometry { float: s.f, m: s.m, n: s.n, k: s.k, transpose_a: s.ta, transpose_b: s.tb, lda: s.lda, ldb: s.ldb, ldc: s.ldc,
            alpha: Factor::of(alpha), beta: Factor::of(beta) };
        let b = blueprint::Blueprint::new(g, config);
        let w = b.workspace();
        Self(exec::driver::Compiled::new(b).unwrap(), vec![[0; 8]; w.div_ceil(64) + 1])
    }
    pub fn run(&mut self, a: *const u8, b: *const u8, c: *mut u8, alpha: f64, beta: f64) {
        let ws = self.1.as_mut_ptr().cast::<u8>();
        let ws = ws.wrapping_add(ws.align_offset(64));
        unsafe { self.0.run_part(0, &exec::driver::Call { a, b, c, workspace: ws, alpha, beta }) };
    }
}
