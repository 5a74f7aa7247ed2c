//! The code of one block: coordinates, and what the loop over the reduction is given.

use super::blueprint::Blueprint;
use super::fragments::Fragments;
use super::variants::Multiplied;
use super::{load, store};
use crate::gemm::frame::{Block, Params};
use crate::ir::{Builder, Entry, Module, Operand, Reg, Type};
use crate::simt::Reduction;

/// Where a thread stands.
pub(super) struct Position {
    pub(super) block: Block,
    /// Index within the warp.
    pub(super) lane: Reg,
    /// Which row and column of warps; `None` where there is one.
    pub(super) warp: [Option<Reg>; 2],
}

/// The module of a blueprint.
pub fn module(bp: &Blueprint) -> Module {
    let mut b = Builder::new();
    let (a_letter, b_letter) =
        (if bp.frame.a_transposed { 't' } else { 'n' }, if bp.frame.b_transposed { 't' } else { 'n' });
    let numbers = match bp.multiplied {
        Multiplied::Whole => bp.frame.arithmetic.dtype.name(),
        Multiplied::Rounded => "f32_as_tf32",
        Multiplied::Split => "f32_as_3xtf32",
    };
    let name = format!("gemm_mma_{numbers}_{a_letter}{b_letter}");
    let frame = bp.frame;
    let mut params = b.block("parameters", |b| frame.params(b));
    let at = b.block("position", |b| {
        let corner = frame.corner(b);
        let (lane, warp) = warp(b, bp, corner[0]);
        Position { block: frame.block(b, &mut params, corner), lane, warp }
    });
    let acc = product(&mut b, bp, &params, &at);
    frame.release(&mut b);
    b.block("store", |b| store::store(b, bp, &params, &at, &acc));
    let entry = Entry {
        max_registers: Some(bp.registers_allowed()),
        shared_bytes: bp.frame.shared_bytes,
        dynamic_shared: frame.dynamic_shared(),
        ..b.finish(&name, bp.threads)
    };
    Module { target: bp.frame.target, entry }
}

/// The lane, and which row and column of warps.
fn warp(b: &mut Builder, bp: &Blueprint, tid: Reg) -> (Reg, [Option<Reg>; 2]) {
    let [along_m, along_n] = bp.warps();
    if bp.threads == 32 {
        return (tid, [None; 2]);
    }
    let lane = b.rem(tid, 32).unwrap_or(tid);
    let warp = b.div(tid, 32);
    let row = if along_n == 1 { Some(warp) } else { b.rem(warp, along_m) };
    (lane, [row.filter(|_| along_m > 1), (along_n > 1).then(|| b.div(warp, along_m))])
}

/// The sums of a thread over the block's slice, fragment after fragment.
fn product(b: &mut Builder, bp: &Blueprint, params: &Params, at: &Position) -> Vec<Reg> {
    let config = &bp.config;
    let shared = b.mov(Type::U32, Operand::Shared);
    let sides = b.block("addresses", |b| [true, false].map(|is_a| load::side(b, bp, at, params, is_a, shared)));
    let mut read = b.block("fragments", |b| Fragments::new(b, bp, at, shared));
    let reduction = Reduction {
        arithmetic: bp.frame.arithmetic,
        load: config.load,
        stages: config.stages,
        step: bp.stage_bytes,
        trips: at.block.trips,
        tile: (config.m_w * config.n_w / 32) as usize,
        sets: 1,
        group: bp.threads,
        groups: 1,
        in_group: at.block.tid,
        my_group: None,
        shared,
    };
    reduction.sums(b, sides, &mut read)
}
