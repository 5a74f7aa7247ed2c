//! The libraries that come with the build.

use crate::call::{BatchCall, GemmCall};
use crate::foreign::rust;
use crate::inventory::Identity;
use crate::kernel::{ComplexRoutine, Routine};
use crate::small::{Maker, SmallRoutine};

/// The crate `gemm`: packed, runtime-dispatched SIMD, threads by rayon. The crate `matrixmultiply`: its own threading reads its
/// thread count from an environment variable once per process, so it is built without and C is divided by columns over rayon
/// instead, one single-threaded call per thread.
pub(crate) fn routines() -> [Routine; 2] {
    [
        Routine {
            identity: Identity::built_in("gemm", "0.19"),
            sgemm: Box::new(rust::gemm_crate),
            dgemm: Box::new(rust::gemm_crate),
            sbatch: Box::new(|batch, threads| by_products(batch, threads, rust::gemm_crate)),
            dbatch: Box::new(|batch, threads| by_products(batch, threads, rust::gemm_crate)),
            halves: None,
            complex: Some(ComplexRoutine {
                cgemm: Box::new(|batch, threads| by_products(batch, threads, rust::gemm_crate_c32)),
                zgemm: Box::new(|batch, threads| by_products(batch, threads, rust::gemm_crate_c64)),
            }),
            three_m: None,
        },
        Routine {
            identity: Identity::built_in("matrixmultiply", "0.3"),
            sgemm: Box::new(|call, threads| by_columns(call, threads, rust::matrixmultiply_f32)),
            dgemm: Box::new(|call, threads| by_columns(call, threads, rust::matrixmultiply_f64)),
            sbatch: Box::new(|batch, threads| {
                by_products(batch, threads, |call, threads| by_columns(call, threads, rust::matrixmultiply_f32));
            }),
            dbatch: Box::new(|batch, threads| {
                by_products(batch, threads, |call, threads| by_columns(call, threads, rust::matrixmultiply_f64));
            }),
            halves: None,
            complex: None,
            three_m: None,
        },
    ]
}

/// The crate `nano-gemm`, which has no threads.
pub(crate) fn small() -> SmallRoutine {
    SmallRoutine { identity: Identity::built_in("nano-gemm", "0.2"), maker: Maker::NanoGemm }
}

/// Multiplications below which handing work to another thread costs more than it saves (some 20 us of one core).
const WORTH_DIVIDING: usize = 1 << 20;

/// Divides a batch by its products, each of which one thread computes; a batch of fewer products than threads divides every product
/// instead.
pub(crate) fn by_products<T: Copy + Send + Sync>(
    batch: &mut BatchCall<'_, T>,
    threads: usize,
    gemm: impl Fn(&mut GemmCall<'_, T>, usize) + Sync,
) {
    if batch.count < threads {
        return batch.each(|call| gemm(call, threads));
    }
    in_parts(batch, threads, |part| part.each(|call| gemm(call, 1)));
}

/// Does parts of a batch on as many threads as are worth it.
pub(crate) fn in_parts<T: Copy + Send + Sync>(
    batch: &mut BatchCall<'_, T>,
    threads: usize,
    run: impl Fn(&mut BatchCall<'_, T>) + Sync,
) {
    let GemmCall { m, n, k, .. } = batch.whole;
    let multiplications = m.saturating_mul(n).saturating_mul(k).saturating_mul(batch.count);
    if threads <= 1 || multiplications < WORTH_DIVIDING {
        return run(batch);
    }
    let run = &run;
    rayon::scope(|scope| {
        for mut part in batch.parts(threads) {
            scope.spawn(move |_| run(&mut part));
        }
    });
}

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
        let [gemm, matrixmultiply] = routines().map(|routine| routine.identity);
        for Identity { name, version, .. } in [gemm, matrixmultiply, small().identity] {
            let entry = format!("name = \"{name}\"\nversion = \"{version}.");
            assert!(lock.contains(&entry), "{name} {version}");
        }
    }
}
