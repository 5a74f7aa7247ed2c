//! Packed and rarer instructions against computations of their own: dot products, fields, narrow floats, approximations,
//! address spaces, atomics.

mod fixture;
#[path = "fixture/single.rs"]
mod single;

use fixture::launch;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Half};
use single::{check32, check64, run};
use tilewright_emulator::{Argument, Memory, Module};

#[test]
fn dot_products_of_bytes() {
    let product = |a: [i64; 4], b: [i64; 4]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>() as u32;
    let unsigned = |x: u32| [0, 8, 16, 24].map(|s| i64::from(x >> s & 255));
    let signed = |x: u32| unsigned(x).map(|b| if b > 127 { b - 256 } else { b });
    check32("dp4a.u32.u32 %r6, %r4, %r5, 9;", |a, b| product(unsigned(a), unsigned(b)).wrapping_add(9));
    check32("dp4a.s32.u32 %r6, %r4, %r5, %r4;", |a, b| product(signed(a), unsigned(b)).wrapping_add(a));
    check32("dp4a.u32.s32 %r6, %r4, %r5, 0;", |a, b| product(unsigned(a), signed(b)));
    check32("dp4a.s32.s32 %r6, %r4, %r5, -3;", |a, b| product(signed(a), signed(b)).wrapping_sub(3));
    let words = |x: u32| [i64::from(x as i16), i64::from((x >> 16) as i16)];
    check32("dp2a.lo.s32.u32 %r6, %r4, %r5, 5;", |a, b| {
        ((words(a)[0] * i64::from(b & 255) + words(a)[1] * i64::from(b >> 8 & 255)) as u32).wrapping_add(5)
    });
    check32("dp2a.hi.u32.s32 %r6, %r4, %r5, 5;", |a, b| {
        let [low, high] = [i64::from(a & 0xffff), i64::from(a >> 16)];
        ((low * i64::from((b >> 16) as i8) + high * i64::from((b >> 24) as i8)) as u32).wrapping_add(5)
    });
}

#[test]
fn bits_and_bytes() {
    // As the instruction set's manual has it.
    let find = |mask: u32, base: u32, offset: i32| {
        let (mut at, mut count, step) = (base as i32, offset.abs() - 1, if offset > 0 { 1 } else { -1 });
        if offset == 0 {
            return if mask >> base & 1 == 1 { base } else { u32::MAX };
        }
        while (0..32).contains(&at) {
            if mask >> at & 1 == 1 {
                if count == 0 {
                    return at as u32;
                }
                count -= 1;
            }
            at += step;
        }
        u32::MAX
    };
    for offset in [-7, -2, -1, 0, 1, 2, 5, 31] {
        check32(&format!("and.b32 %r7, %r5, 31; fns.b32 %r6, %r4, %r7, {offset};"), |a, b| find(a, b & 31, offset));
    }
    check32("mul24.hi.u32 %r6, %r4, %r5;", |a, b| {
        (((u64::from(a) & 0xff_ffff) * (u64::from(b) & 0xff_ffff)) >> 16) as u32
    });
    check32("mul24.lo.s32 %r6, %r4, %r5;", |a, b| ((a << 8) as i32 >> 8).wrapping_mul((b << 8) as i32 >> 8) as u32);
    check32("sad.u32 %r6, %r4, %r5, %r4;", |a, b| a.max(b).wrapping_sub(a.min(b)).wrapping_add(a));
    let bytes = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
    check32("prmt.b32.f4e %r6, %r4, %r5, 3;", |a, b| u32::from_le_bytes(bytes(a, b)[3..7].try_into().unwrap()));
    check32("prmt.b32.b4e %r6, %r4, %r5, 2;", |a, b| {
        let all = bytes(a, b);
        u32::from_le_bytes([all[2], all[1], all[0], all[7]])
    });
    check32("prmt.b32.rc16 %r6, %r4, %r5, 1;", |a, _| a >> 16 | a >> 16 << 16);
    check32("prmt.b32 %r6, %r4, %r5, 0xba98;", |a, _| {
        u32::from_le_bytes(a.to_le_bytes().map(|b| if b > 127 { 255 } else { 0 }))
    });
    check32("bfind.shiftamt.u32 %r6, %r4;", |a, _| if a == 0 { u32::MAX } else { a.leading_zeros() });
    check32("bfind.s32 %r6, %r4;", |a, _| {
        let a = if (a as i32) < 0 { !a } else { a };
        a.checked_ilog2().unwrap_or(u32::MAX)
    });
    check64("bfe.s64 %rd6, %rd4, 13, 40;", |a, _| ((a << 11) as i64 >> 24) as u64);
    check64("bfi.b64 %rd6, %rd4, %rd5, 60, 9;", |a, b| b << 4 >> 4 | a << 60);
    check64("brev.b64 %rd6, %rd4;", |a, _| a.reverse_bits());
    check64("clz.b64 %r6, %rd4; cvt.u64.u32 %rd6, %r6;", |a, _| u64::from(a.leading_zeros()));
    check32("lop3.b32 %r6, %r4, %r5, 0x0ff0, 0xe8;", |a, b| a & b | a & 0x0ff0 | b & 0x0ff0);
    check32("shf.r.wrap.b32 %r6, %r4, %r5, 35;", |a, b| a >> 3 | b << 29);
}

#[test]
fn comparisons_of_narrow_floats() {
    let value = |bits: u32| Half::from_bits(u128::from(bits & 0xffff));
    let mut pairs = narrow_pairs();
    pairs.iter_mut().for_each(|(a, b)| (*a, *b) = (*a | *b << 16, *b | (*a ^ 1) << 16));
    let less = |a: u64, b: u64| [0, 16].map(|s| value((a >> s) as u32) < value((b >> s) as u32));
    let found =
        run("set.lt.f16x2.f16x2 %r6, %r4, %r5; set.lt.u32.f16x2 %r7, %r4, %r5; mov.b64 %rd6, {%r6, %r7};", &pairs);
    let flags = run(
        "setp.lt.f16x2 %p1|%p2, %r4, %r5; selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 1, 0, %p2; mov.b64 %rd6, {%r6, %r7};",
        &pairs,
    );
    let single = run(
        "set.lt.f16.f16 %h6, %h4, %h5; set.lt.u16.f16 %h7, %h4, %h5; mov.b32 %r6, {%h6, %h7}; cvt.u64.u32 %rd6, %r6;",
        &pairs,
    );
    for (i, (a, b)) in pairs.iter().enumerate() {
        let [low, high] = less(*a, *b).map(u64::from);
        let (ones, all) = ((low * 0x3c00) | ((high * 0x3c00) << 16), (low * 0xffff) | ((high * 0xffff) << 16));
        assert_eq!(found[i], ones | all << 32, "{a:#x} and {b:#x}");
        assert_eq!(flags[i], low | high << 32);
        assert_eq!(single[i], (low * 0x3c00) | ((low * 0xffff) << 16));
    }
    let bytes = |a: u32, b: u32| [0, 8, 16, 24].map(|s| (a >> s & 255).abs_diff(b >> s & 255));
    check32("vabsdiff4.u32.u32.u32 %r6, %r4, %r5, 0;", |a, b| {
        bytes(a, b).iter().enumerate().fold(0, |x, (i, d)| x | d << (8 * i))
    });
    check32("vabsdiff4.u32.u32.u32.add %r6, %r4, %r5, %r4;", |a, b| {
        bytes(a, b).iter().fold(a, |x, d| x.wrapping_add(*d))
    });
}

#[test]
fn packing_with_saturation() {
    let clamp = |x: u32, low: i64, high: i64| i64::from(x as i32).clamp(low, high) as u32;
    check32("cvt.pack.sat.s16.s32 %r6, %r4, %r5;", |a, b| {
        clamp(a, -32768, 32767) << 16 | clamp(b, -32768, 32767) & 0xffff
    });
    check32("cvt.pack.sat.u16.s32 %r6, %r4, %r5;", |a, b| clamp(a, 0, 65535) << 16 | clamp(b, 0, 65535));
    check32("cvt.pack.sat.s8.s32.b32 %r6, %r4, %r5, %r4;", |a, b| {
        a << 16 | (clamp(a, -128, 127) & 255) << 8 | clamp(b, -128, 127) & 255
    });
    check32("cvt.pack.sat.u8.s32.b32 %r6, %r4, %r5, 77;", |a, b| 77 << 16 | clamp(a, 0, 255) << 8 | clamp(b, 0, 255));
}

/// Pairs of narrow floats of all kinds, in the low halves.
fn narrow_pairs() -> Vec<(u64, u64)> {
    let special = [0u64, 0x8000, 1, 0x83ff, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x3f80, 0xff80, 0x7f7f];
    let mut out: Vec<(u64, u64)> = special.iter().flat_map(|a| special.iter().map(|b| (*a, *b))).collect();
    out.extend((0..400u64).map(|i| (i * 40_503 % 65_536, (i * 30_011 + 7) % 65_536)));
    out
}

/// One operation on binary16 and bfloat16, alone and in pairs, against soft floats.
fn check_narrow(op: &str, operands: &str, f: impl Fn(u128, u128, bool) -> u128) {
    let pairs = narrow_pairs();
    for (ty, is_half) in [("f16", true), ("bf16", false)] {
        let single = run(&format!("{op}.{ty} %h6, {operands}; cvt.u64.u16 %rd6, %h6;"), &pairs);
        let setup = "mov.b32 %r7, {%h4, %h5}; mov.b32 %r8, {%h5, %h4};";
        let operands = operands.replace("%h4", "%r7").replace("%h5", "%r8");
        let double = run(&format!("{setup} {op}.{ty}x2 %r6, {operands}; cvt.u64.u32 %rd6, %r6;"), &pairs);
        for (((a, b), single), double) in pairs.iter().zip(single).zip(double) {
            let expected = f(u128::from(*a), u128::from(*b), is_half) as u64;
            let swapped = f(u128::from(*b), u128::from(*a), is_half) as u64;
            assert_eq!(single, expected, "{op}.{ty} of {a:#x} and {b:#x}");
            assert_eq!(double, expected | swapped << 16, "{op}.{ty}x2 of {a:#x} and {b:#x}");
        }
    }
}

fn of_float<F: Float>(x: F) -> u128 {
    if x.is_nan() { 0x7fff } else { x.to_bits() }
}

#[test]
fn narrow_floats() {
    macro_rules! both {
        ($a:expr, $b:expr, $half:expr, |$x:ident, $y:ident| $e:expr) => {
            if $half {
                let ($x, $y) = (Half::from_bits($a), Half::from_bits($b));
                of_float($e)
            } else {
                let ($x, $y) = (BFloat::from_bits($a), BFloat::from_bits($b));
                of_float($e)
            }
        };
    }
    check_narrow("add.rn", "%h4, %h5", |a, b, half| both!(a, b, half, |x, y| (x + y).value));
    check_narrow("sub.rn", "%h4, %h5", |a, b, half| both!(a, b, half, |x, y| (x - y).value));
    check_narrow("mul.rn", "%h4, %h5", |a, b, half| both!(a, b, half, |x, y| (x * y).value));
    check_narrow("fma.rn", "%h4, %h5, %h4", |a, b, half| both!(a, b, half, |x, y| x.mul_add(y, x).value));
    check_narrow("min", "%h4, %h5", |a, b, half| {
        both!(a, b, half, |x, y| {
            let zeros = x.is_zero() && y.is_zero();
            if zeros { if x.is_negative() { x } else { y } } else { x.min(y) }
        })
    });
}

/// A function of binary32 within a relative error, on numbers from -8 to 8.
fn check_close(op: &str, within: f64, f: impl Fn(f64) -> f64) {
    let values: Vec<f32> = (-400..400).map(|i| i as f32 / 50.0 + 0.003).collect();
    let pairs: Vec<(u64, u64)> = values.iter().map(|x| (u64::from(x.to_bits()), 0)).collect();
    for (x, chunk) in values.chunks(100).zip(pairs.chunks(100)) {
        for (x, found) in x.iter().zip(run(&format!("{op} %f6, %f4; mov.b32 %r6, %f6; cvt.u64.u32 %rd6, %r6;"), chunk))
        {
            let (found, expected) = (f64::from(f32::from_bits(found as u32)), f(f64::from(*x)));
            let right =
                (found - expected).abs() <= within * expected.abs() + 1e-9 || (found.is_nan() && expected.is_nan());
            assert!(right, "{op} of {x}: {found}, expected {expected}");
        }
    }
}

#[test]
fn approximations() {
    check_close("ex2.approx.f32", 1e-6, f64::exp2);
    check_close("ex2.approx.ftz.f32", 1e-6, f64::exp2);
    check_close("lg2.approx.f32", 1e-6, f64::log2);
    check_close("sin.approx.f32", 1e-6, f64::sin);
    check_close("cos.approx.f32", 1e-6, f64::cos);
    check_close("tanh.approx.f32", 1e-6, f64::tanh);
    check_close("rsqrt.approx.f32", 1e-6, |x| 1.0 / x.sqrt());
    check_close("rcp.approx.ftz.f32", 1e-6, |x| 1.0 / x);
    check_close("sqrt.approx.f32", 1e-6, f64::sqrt);
}

#[test]
fn properties_and_signs() {
    let float = f32::from_bits;
    let flag = "selp.u32 %r6, 1, 0, %p1;";
    check32(&format!("testp.finite.f32 %p1, %f4; {flag}"), |a, _| u32::from(float(a).is_finite()));
    check32(&format!("testp.infinite.f32 %p1, %f4; {flag}"), |a, _| u32::from(float(a).is_infinite()));
    check32(&format!("testp.normal.f32 %p1, %f4; {flag}"), |a, _| u32::from(float(a).is_normal()));
    check32(&format!("testp.subnormal.f32 %p1, %f4; {flag}"), |a, _| u32::from(float(a).is_subnormal()));
    check32("copysign.f32 %f6, %f4, %f5; mov.b32 %r6, %f6;", |a, b| a & 1 << 31 | b & !(1 << 31));
    check64("copysign.f64 %d6, %d4, %d5; mov.b64 %rd6, %d6;", |a, b| a & 1 << 63 | b & !(1 << 63));
}

#[test]
fn address_spaces() {
    let which = |body: &str| run(&format!("{body} selp.u64 %rd6, 1, 0, %p1;"), &[(0, 0)])[0];
    let shared = ".shared .b32 s[4]; mov.u64 %rd7, s; cvta.shared.u64 %rd8, %rd7;";
    let local = ".local .b32 l[4]; mov.u64 %rd7, l; cvta.local.u64 %rd8, %rd7;";
    assert_eq!(which("isspacep.global %p1, %rd3;"), 1);
    assert_eq!(which("isspacep.shared %p1, %rd3;"), 0);
    assert_eq!(which(&format!("{shared} isspacep.shared %p1, %rd8;")), 1);
    assert_eq!(which(&format!("{shared} isspacep.global %p1, %rd8;")), 0);
    assert_eq!(which(&format!("{local} isspacep.local %p1, %rd8;")), 1);
    assert_eq!(which(&format!("{local} isspacep.shared %p1, %rd8;")), 0);
    assert_eq!(which("mov.u64 %rd8, 0; isspacep.global %p1, %rd8;"), 1);
    // To and back.
    let there = "cvta.to.shared.u64 %rd9, %rd8; setp.eq.u64 %p1, %rd7, %rd9;";
    assert_eq!(which(&format!("{shared} {there}")), 1);
}

/// Atomics of 70 threads in two blocks on four words of 64 bits; what they leave.
fn atomics(body: &str, before: [u64; 4]) -> [u64; 4] {
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) {{
          .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %d<4>; .reg .f32 %f<4>;
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; {body} ret; }}"
    );
    let (module, mut memory) = (Module::parse(&text).unwrap(), Memory::new());
    let id = memory.add("words", &before.map(u64::to_le_bytes).concat()).unwrap();
    let report = launch(&module, "k", [2, 1, 1], [35, 1, 1], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, [], "{body}");
    let bytes = memory.read(id);
    std::array::from_fn(|i| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap()))
}

#[test]
fn atomics_of_all_blocks_add_up() {
    let float = "cvt.rn.f64.u32 %d1, %r1; atom.global.add.f64 %d2, [%rd1+8], %d1;";
    assert_eq!(atomics(float, [0, 0.5f64.to_bits(), 0, 0])[1], (2.0 * 595.0 + 0.5f64).to_bits());
    // A lock-free counter by compare and swap.
    let swap = "ld.volatile.global.u32 %r2, [%rd1]; L: mov.u32 %r3, %r2; add.u32 %r4, %r3, 2;
        atom.global.cas.b32 %r2, [%rd1], %r3, %r4; setp.ne.u32 %p1, %r2, %r3; @%p1 bra L;";
    assert_eq!(atomics(swap, [5, 0, 0, 0])[0], 145);
    let swap64 = "cvt.u64.u32 %rd2, %r1; atom.cas.b64 %rd3, [%rd1], 0, %rd2;";
    assert_eq!(atomics(swap64, [0, 0, 0, 0])[0], 1, "lane 1 of a block is the first with another number");
    let exchange = "add.u32 %r2, %r1, 1; atom.global.exch.b32 %r3, [%rd1], %r2; red.global.add.u32 [%rd1+8], %r3;";
    let after = atomics(exchange, [0, 0, 0, 0]);
    // What every thread put in came out once, but for what the last one left.
    assert_eq!(after[0] + after[1], 2 * 630);
    let pair = "mov.b32 %r2, 0x40003c00; red.global.add.noftz.f16x2 [%rd1+4], %r2;";
    assert_eq!(atomics(pair, [0, 0, 0, 0])[0] >> 32, 0x5860_5460, "70 times (1, 2) are (70, 140)");
    let wrap =
        "atom.global.inc.u32 %r2, [%rd1], 9; atom.global.dec.u32 %r2, [%rd1+4], 9; red.global.max.s64 [%rd1+8], -4;";
    assert_eq!(atomics(wrap, [0, (-9i64) as u64, 0, 0])[..2], [0, (-4i64) as u64]);
}

#[test]
fn orders_and_hints_change_nothing() {
    let body = "mov.u64 %rd2, 7; st.relaxed.gpu.global.u64 [%rd1], %rd2; fence.acq_rel.gpu; membar.gl;
        ld.acquire.sys.global.u64 %rd3, [%rd1]; ld.global.cv.u64 %rd4, [%rd1]; ld.global.L1::evict_last.L2::128B.u64 %rd5, [%rd1];
        st.release.cta.global.u64 [%rd1+8], %rd3; nanosleep.u32 20; st.volatile.global.u64 [%rd1+16], %rd4;
        st.global.wt.u64 [%rd1+24], %rd5;";
    assert_eq!(atomics(body, [0; 4]), [7; 4]);
}
