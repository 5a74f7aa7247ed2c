//! scratch
#![allow(missing_docs)]
use crate::*;
pub struct Prepared(exec::driver::Compiled, memmap2::MmapMut);
#[derive(Clone, Copy, Debug)]
pub struct Shape { pub f: Float, pub m: usize, pub n: usize, pub k: usize, pub ta: bool, pub tb: bool, pub lda: usize, pub ldb: usize, pub ldc: usize }
impl Prepared {
    pub fn new(s: Shape, alpha: f64, beta: f64, config: &GemmConfig) -> Self {
        let g = geometry::Geometry { float: s.f, m: s.m, n: s.n, k: s.k, transpose_a: s.ta, transpose_b: s.tb, lda: s.lda, ldb: s.ldb, ldc: s.ldc,
            alpha: Factor::of(alpha), beta: Factor::of(beta) };
        let b = blueprint::Blueprint::new(g, config);
        let w = b.workspace();
        let map = memmap2::MmapMut::map_anon(w.next_multiple_of(2 << 20) + (2 << 20)).unwrap();
        if std::env::var("NOTHP").is_err() { map.advise(memmap2::Advice::HugePage).unwrap(); }
        Self(exec::driver::Compiled::new(b).unwrap(), map)
    }
    pub fn run(&mut self, a: *const u8, b: *const u8, c: *mut u8, alpha: f64, beta: f64) {
        let ws = self.1.as_mut_ptr().cast::<u8>();
        let ws = ws.wrapping_add(ws.align_offset(2 << 20));
        unsafe { self.0.run(&exec::driver::Call { a, b, c, workspace: ws, alpha, beta }) };
    }
}
pub fn bench_tile(f: Float, vecs: usize, s: usize, k_s: usize, k: usize, tiles: usize, pack_s: bool, across: bool, c_pref: bool, pf: u32) -> f64 {
    use codegen::{abi::*, tile::*, vector::*};
    let vector = Vector { width: Width::Y, float: f };
    let es = f.bytes();
    let t = Tile { vector, vecs, tail: 0, s, k_s, k_l: 1, v_masked: false, copy_v: false, v_k: (vecs * 32) as i32, s_k: if pack_s { (s * es) as i32 } else { es as i32 }, s_s: if pack_s { es as i32 } else { (k * es) as i32 },
        store: if across { TileStore::Across { v_stride: 64 } } else { TileStore::Along { s_stride: 128 } }, alpha: Factor::One, beta: Factor::One, stream: false, prefetch: TilePrefetch { v_steps: pf, next: Next::None, s_bytes: 0, c: c_pref } };
    let code = t.assemble().unwrap();
    let buf = exec::memory::ExecBuffer::new(&code).unwrap();
    let fun: PanelFn = unsafe { std::mem::transmute(buf.at(0)) };
    let mut mem = vec![[0u64; 8]; 1 << 12];
    let p = mem.as_mut_ptr().cast::<u8>(); let p = p.wrapping_add(p.align_offset(4096));
    let mut args = PanelArgs { v: p, s: p.wrapping_add(vecs * 32 * k), c: p.wrapping_add(120 << 10), tiles, v_step: 0, s_step: 0, c_step: 0, k_main: k / k_s, k_tail: k % k_s, ahead: 0, next: p, next_last: p, packed: p, alpha: 0, beta: 0, v_mask: [0; 8], k_mask: [0; 8] };
    let mut best = 0f64;
    for _ in 0..20 { let t0 = std::time::Instant::now(); for _ in 0..10 { unsafe { fun(&mut args) } } let dt = t0.elapsed().as_secs_f64(); best = best.max((vecs * vector.lanes() * s * k * tiles * 2 * 10) as f64 / dt / 1e9); }
    best
}
