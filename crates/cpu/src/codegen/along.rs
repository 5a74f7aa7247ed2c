//! Stores a tile whose vectors lie along contiguous C.

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, C, Tile};
use tilewright_ops::gemm::ScalarClass;

pub(super) fn emit_store(tile: &Tile, e: &mut Emitter, s_stride: i32) {
    let (factor, mask, loaded) = (tile.free(0), tile.free(1), tile.free(2));
    tile.emit_finished(e, [factor, mask]);
    if tile.beta == ScalarClass::Other {
        e.broadcast(factor, mem(ARGS, at::BETA));
    }
    for j in 0..tile.outs() {
        for i in 0..tile.vecs {
            let acc = tile.out(j, i);
            let disp = j as i64 * i64::from(s_stride) + (i * tile.vector.width.bytes()) as i64;
            let masked = tile.is_tail(i);
            match tile.beta {
                ScalarClass::Zero => {}
                ScalarClass::One if !masked => e.op3_load(tile.add(tile.vector), acc, acc, mem(C, disp)),
                ScalarClass::Other if !masked => e.op3_load(tile.vector.fma(), acc, factor, mem(C, disp)),
                beta => {
                    e.load_masked(loaded, mem(C, disp), mask);
                    if beta == ScalarClass::One {
                        e.op3(tile.add(tile.vector), acc, acc, loaded);
                    } else {
                        e.fma(acc, factor, loaded);
                    }
                }
            }
            if masked {
                e.store_masked(mem(C, disp), acc, mask);
            } else if tile.stream {
                e.op2_store(tile.vector.store_stream(), mem(C, disp), acc);
            } else {
                e.op2_store(tile.vector.store(), mem(C, disp), acc);
            }
        }
    }
}
