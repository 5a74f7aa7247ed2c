//! The two libraries that come with the build.

use crate::call::GemmCall;
use crate::foreign;
use crate::inventory::Identity;
use crate::kernel::Routine;

/// The crate `gemm`: packed, runtime-dispatched SIMD, threads by rayon. The crate `matrixmultiply`: its own threading reads its
/// thread count from an environment variable once per process, so it is built without and C is divided by columns over rayon
/// instead, one single-threaded call per thread.
pub(crate) fn routines() -> [Routine; 2] {
    let identity = |name, version: &str| Identity { name, version: version.to_owned(), path: None, max_threads: None };
    [
        Routine {
            identity: identity("gemm", "0.19"),
            sgemm: Box::new(foreign::gemm_crate),
            dgemm: Box::new(foreign::gemm_crate),
        },
        Routine {
            identity: identity("matrixmultiply", "0.3"),
            sgemm: Box::new(|call, threads| by_columns(call, threads, foreign::matrixmultiply_f32)),
            dgemm: Box::new(|call, threads| by_columns(call, threads, foreign::matrixmultiply_f64)),
        },
    ]
}

/// Multiplications below which handing work to another thread costs more than it saves (some 20 us of one core).
const WORTH_DIVIDING: usize = 1 << 20;

fn by_columns<T: Copy + Send + Sync>(
    call: &mut GemmCall<'_, T>,
    threads: usize,
    gemm: impl Fn(&mut GemmCall<'_, T>) + Sync,
) {
    let multiplications = call.m.saturating_mul(call.n).saturating_mul(call.k);
    if threads <= 1 || call.n <= 1 || multiplications < WORTH_DIVIDING {
        return gemm(call);
    }
    let panel = call.n.div_ceil(threads);
    let gemm = &gemm;
    rayon::scope(|scope| {
        for mut part in call.column_panels(panel) {
            scope.spawn(move |_| gemm(&mut part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let Ok(lock) = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")) else {
            eprintln!("skipped: outside the workspace");
            return;
        };
        for Routine { identity: Identity { name, version, .. }, .. } in &routines() {
            let entry = format!("name = \"{name}\"\nversion = \"{version}.");
            assert!(lock.contains(&entry), "{name} {version}");
        }
    }
}
