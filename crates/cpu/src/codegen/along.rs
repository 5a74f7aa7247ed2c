//! Stores a tile whose vectors lie along contiguous C.

use super::abi::at;
use super::emitter::{Emitter, mem};
use super::tile::{ARGS, C, Tile};
use tilewright_ops::gemm::ScalarClass;

pub(super) fn emit_store(tile: &Tile, e: &mut Emitter, s_stride: i32) {
    let (factor, mask) = (tile.free(0), tile.free(1));
    tile.emit_finished(e, [factor, mask]);
    if tile.beta != ScalarClass::Zero {
        emit_old(tile, e, s_stride);
    }
    for j in 0..tile.outs() {
        for i in 0..tile.vecs {
            let (acc, disp) = (tile.out(j, i), disp(tile, s_stride, j, i));
            if tile.is_tail(i) {
                e.store_lanes(mem(C, disp), acc, tile.tail, mask);
            } else if tile.stream {
                e.op2_store(tile.vector.store_stream(), mem(C, disp), acc);
            } else {
                e.op2_store(tile.vector.store(), mem(C, disp), acc);
            }
        }
    }
}

/// Adds what C held to all of the tile before any of it is written: part of a vector that is loaded behind the store of the column
/// before, in whose vector it lies, waits until that has left for the cache.
fn emit_old(tile: &Tile, e: &mut Emitter, s_stride: i32) {
    let (factor, mask, loaded) = (tile.free(0), tile.free(1), tile.free(2));
    if tile.beta == ScalarClass::Other {
        e.broadcast(factor, mem(ARGS, at::BETA));
    }
    for j in 0..tile.outs() {
        for i in 0..tile.vecs {
            let (acc, at) = (tile.out(j, i), mem(C, disp(tile, s_stride, j, i)));
            match tile.beta {
                ScalarClass::One if !tile.is_tail(i) => e.op3_load(tile.add(tile.vector), acc, acc, at),
                ScalarClass::Other if !tile.is_tail(i) => e.op3_load(tile.vector.fma(), acc, factor, at),
                beta => {
                    e.load_masked(loaded, at, mask);
                    if beta == ScalarClass::One {
                        e.op3(tile.add(tile.vector), acc, acc, loaded);
                    } else {
                        e.fma(acc, factor, loaded);
                    }
                }
            }
        }
    }
}

/// Where vector `i` of column `j` lies, from the tile's first.
fn disp(tile: &Tile, s_stride: i32, j: usize, i: usize) -> i64 {
    j as i64 * i64::from(s_stride) + (i * tile.vector.width.bytes()) as i64
}
