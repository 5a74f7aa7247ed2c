//! Single instructions against the host's arithmetic.

mod fixture;
#[path = "fixture/single.rs"]
mod single;

use fixture::launch;
use single::{check32, check64, run};
use tilewright_emulator::{Argument, Memory, Module};

#[test]
fn integers() {
    check32("add.s32 %r6, %r4, %r5;", u32::wrapping_add);
    check32("sub.u32 %r6, %r4, %r5;", u32::wrapping_sub);
    check32("add.sat.s32 %r6, %r4, %r5;", |a, b| (a as i32).saturating_add(b as i32) as u32);
    check32("mul.lo.s32 %r6, %r4, %r5;", u32::wrapping_mul);
    check32("mul.hi.u32 %r6, %r4, %r5;", |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    check32("mul.hi.s32 %r6, %r4, %r5;", |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    check32("mad.lo.u32 %r6, %r4, %r5, 7;", |a, b| a.wrapping_mul(b).wrapping_add(7));
    check32("min.s32 %r6, %r4, %r5;", |a, b| (a as i32).min(b as i32) as u32);
    check32("max.u32 %r6, %r4, %r5;", u32::max);
    check32("abs.s32 %r6, %r4;", |a, _| (a as i32).wrapping_abs() as u32);
    check32("neg.s32 %r6, %r4;", |a, _| a.wrapping_neg());
    check32("sad.s32 %r6, %r4, %r5, 1;", |a, b| (a as i32).abs_diff(b as i32).wrapping_add(1));
    check32("or.b32 %r5, %r5, 1; div.s32 %r6, %r4, %r5;", |a, b| (a as i32).wrapping_div((b | 1) as i32) as u32);
    check32("or.b32 %r5, %r5, 1; rem.u32 %r6, %r4, %r5;", |a, b| a % (b | 1));
    check64("mul.hi.u64 %rd6, %rd4, %rd5;", |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64);
    check64("mul.hi.s64 %rd6, %rd4, %rd5;", |a, b| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
    check64("mul.wide.s32 %rd6, %r4, %r5;", |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64);
    check64("mad.wide.u32 %rd6, %r4, %r5, %rd4;", |a, b| (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(a));
    check64("min.s64 %rd6, %rd4, %rd5;", |a, b| (a as i64).min(b as i64) as u64);
}

#[test]
fn short_integers_and_conversions() {
    check32("add.s16 %h6, %h4, %h5; cvt.s32.s16 %r6, %h6;", |a, b| i32::from((a as i16).wrapping_add(b as i16)) as u32);
    check32("mul.wide.s16 %r6, %h4, %h5;", |a, b| (i32::from(a as i16) * i32::from(b as i16)) as u32);
    check32("shr.s16 %h6, %h4, 3; cvt.u32.u16 %r6, %h6;", |a, _| u32::from((a as i16 >> 3) as u16));
    check32("cvt.s32.s8 %r6, %r4;", |a, _| i32::from(a as i8) as u32);
    check32("cvt.u32.u8 %r6, %r4;", |a, _| u32::from(a as u8));
    check32("cvt.sat.s8.s32 %r6, %r4;", |a, _| (a as i32).clamp(-128, 127) as u32);
    check32("cvt.sat.u16.s32 %h6, %r4; cvt.u32.u16 %r6, %h6;", |a, _| (a as i32).clamp(0, 65535) as u32);
    check64("cvt.s64.s16 %rd6, %h4;", |a, _| i64::from(a as i16) as u64);
    check64("cvt.rn.f32.u64 %f6, %rd4; mov.b32 %r6, %f6; cvt.u64.u32 %rd6, %r6;", |a, _| {
        u64::from((a as f32).to_bits())
    });
    check64("cvt.rz.f32.u64 %f6, %rd4; cvt.rzi.u64.f32 %rd6, %f6;", |a, _| {
        let cut = 40u32.saturating_sub(a.leading_zeros());
        a >> cut << cut
    });
}

#[test]
fn bits() {
    check32("shl.b32 %r6, %r4, %r5;", |a, b| a.checked_shl(b).unwrap_or(0));
    check32("shr.u32 %r6, %r4, %r5;", |a, b| a.checked_shr(b).unwrap_or(0));
    check32("shr.s32 %r6, %r4, %r5;", |a, b| ((a as i32) >> b.min(31)) as u32);
    check64("shl.b64 %rd6, %rd4, %r5;", |a, b| a.checked_shl(b as u32).unwrap_or(0));
    check64("popc.b64 %r6, %rd4; cvt.u64.u32 %rd6, %r6;", |a, _| u64::from(a.count_ones()));
    check32("clz.b32 %r6, %r4;", |a, _| a.leading_zeros());
    check32("brev.b32 %r6, %r4;", |a, _| a.reverse_bits());
    check32("bfind.u32 %r6, %r4;", |a, _| a.checked_ilog2().unwrap_or(u32::MAX));
    check32("not.b32 %r6, %r4;", |a, _| !a);
    check32("lop3.b32 %r6, %r4, %r5, %r4, 0x6a;", |a, b| (a & b) ^ a);
    check32("prmt.b32 %r6, %r4, %r5, 0x7520;", |a, b| {
        let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
        u32::from_le_bytes([bytes[0], bytes[2], bytes[5], bytes[7]])
    });
    check32("shf.l.wrap.b32 %r6, %r4, %r5, 7;", |a, b| b << 7 | a >> 25);
    check32("shf.r.clamp.b32 %r6, %r4, %r5, 40;", |_, b| b);
    check32("bfe.u32 %r6, %r4, 5, 9;", |a, _| a >> 5 & 0x1ff);
    check32("bfe.s32 %r6, %r4, 5, 9;", |a, _| ((a << 18) as i32 >> 23) as u32);
    check32("bfi.b32 %r6, %r4, %r5, 8, 12;", |a, b| b & !0xf_ff00 | (a & 0xfff) << 8);
}

#[test]
fn carries() {
    let wide = "mov.b64 {%r6, %r7}, %rd4; mov.b64 {%r8, %r9}, %rd5;";
    check64(
        &format!("{wide} add.cc.u32 %r10, %r6, %r8; addc.u32 %r11, %r7, %r9; mov.b64 %rd6, {{%r10, %r11}};"),
        u64::wrapping_add,
    );
    check64(
        &format!("{wide} sub.cc.u32 %r10, %r6, %r8; subc.u32 %r11, %r7, %r9; mov.b64 %rd6, {{%r10, %r11}};"),
        u64::wrapping_sub,
    );
    check64(
        &format!(
            "{wide} mad.lo.cc.u32 %r10, %r6, %r8, %r9; madc.hi.u32 %r11, %r6, %r8, 0; mov.b64 %rd6, {{%r10, %r11}};"
        ),
        |a, b| u64::from(a as u32) * u64::from(b as u32) + (b >> 32),
    );
}

#[test]
fn predicates_and_selection() {
    check32("setp.lt.s32 %p1, %r4, %r5; selp.b32 %r6, %r4, 5, %p1;", |a, b| if (a as i32) < b as i32 { a } else { 5 });
    check32("setp.lt.u32 %p1|%p2, %r4, %r5; selp.u32 %r6, 1, 0, %p2;", |a, b| u32::from(a >= b));
    check32("setp.ne.u32 %p1, %r5, 0; setp.gt.and.u32 %p2, %r4, 9, %p1; selp.u32 %r6, 1, 0, %p2;", |a, b| {
        u32::from(a > 9 && b != 0)
    });
    check32("setp.ne.u32 %p1, %r5, 0; setp.gt.or.u32 %p2, %r4, 9, !%p1; selp.u32 %r6, 1, 0, %p2;", |a, b| {
        u32::from(a > 9 || b == 0)
    });
    check32("setp.eq.u32 %p1, %r4, %r5; @!%p1 mov.u32 %r6, 3;", |a, b| if a == b { 0 } else { 3 });
    check32("set.lt.u32.s32 %r6, %r4, %r5;", |a, b| if (a as i32) < b as i32 { u32::MAX } else { 0 });
    check32("slct.u32.s32 %r6, %r4, 9, %r5;", |a, b| if b as i32 >= 0 { a } else { 9 });
    let unordered = |a: u32, b: u32| f32::from_bits(a).partial_cmp(&f32::from_bits(b)).is_none_or(|o| o.is_lt());
    check32("setp.ltu.f32 %p1, %f4, %f5; selp.u32 %r6, 1, 0, %p1;", |a, b| u32::from(unordered(a, b)));
    check32("testp.notanumber.f32 %p1, %f4; selp.u32 %r6, 1, 0, %p1;", |a, _| u32::from(f32::from_bits(a).is_nan()));
}

#[test]
fn floats() {
    // NaNs carry no payload worth comparing.
    let number = |x: f32| if x.is_nan() { 0x7fff_ffff } else { x.to_bits() };
    let canonical = "testp.notanumber.f32 %p7, %f6; mov.b32 %r6, %f6; @%p7 mov.u32 %r6, 0x7fffffff;";
    let check = |op: &str, f: &dyn Fn(f32, f32) -> f32| {
        check32(&format!("{op} {canonical}"), |a, b| number(f(f32::from_bits(a), f32::from_bits(b))));
    };
    check("add.f32 %f6, %f4, %f5;", &|a, b| a + b);
    check("mul.rn.f32 %f6, %f4, %f5;", &|a, b| a * b);
    check("fma.rn.f32 %f6, %f4, %f5, %f4;", &|a, b| a.mul_add(b, a));
    check("div.rn.f32 %f6, %f4, %f5;", &|a, b| a / b);
    check("sqrt.rn.f32 %f6, %f4;", &|a, _| a.sqrt());
    check("abs.f32 %f6, %f4;", &|a, _| a.abs());
    check("add.sat.f32 %f6, %f4, %f5;", &|a, b| if a + b > 0.0 { (a + b).min(1.0) } else { 0.0 });
    let flush = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
    check("mul.ftz.f32 %f6, %f4, %f5;", &|a, b| flush(flush(a) * flush(b)));
    check("max.f32 %f6, %f4, %f5;", &|a, b| a.max(b));
    check32("cvt.rzi.s32.f32 %r6, %f4;", |a, _| f32::from_bits(a) as i32 as u32);
    check32("cvt.rni.ftz.u32.f32 %r6, %f4;", |a, _| flush(f32::from_bits(a)).round_ties_even() as u32);
    check64("add.f64 %d6, %d4, %d4; mov.b64 %rd6, %d6;", |a, _| {
        let x = f64::from_bits(a);
        if x.is_nan() { a | 1 << 51 } else { (x + x).to_bits() }
    });
    check64("cvt.rn.f64.s64 %d6, %rd4; mov.b64 %rd6, %d6;", |a, _| (a as i64 as f64).to_bits());
}

#[test]
fn halves() {
    let pairs: Vec<(u64, u64)> = (0..64).map(|i| (i * 977 % 0x7c00, i * 1409 % 0x7c00)).collect();
    // Sums of two halves are exact in binary32, which converts with one rounding.
    let direct = run("add.rn.f16 %h6, %h4, %h5; cvt.u64.u16 %rd6, %h6;", &pairs);
    let by_single = "cvt.f32.f16 %f6, %h4; cvt.f32.f16 %f7, %h5; add.f32 %f6, %f6, %f7; cvt.rn.f16.f32 %h6, %f6;";
    assert_eq!(direct, run(&format!("{by_single} cvt.u64.u16 %rd6, %h6;"), &pairs));
    let packed = run("mov.b32 %r6, {%h4, %h5}; fma.rn.f16x2 %r6, %r6, %r6, %r6; cvt.u64.u32 %rd6, %r6;", &pairs);
    let single = run(
        "fma.rn.f16 %h6, %h4, %h4, %h4; fma.rn.f16 %h7, %h5, %h5, %h5; mov.b32 %r6, {%h6, %h7}; cvt.u64.u32 %rd6, %r6;",
        &pairs,
    );
    assert_eq!(packed, single);
    let pair = run(
        "cvt.f32.f16 %f6, %h4; cvt.f32.f16 %f7, %h5; cvt.rn.f16x2.f32 %r6, %f7, %f6; cvt.u64.u32 %rd6, %r6;",
        &pairs,
    );
    assert_eq!(pair, pairs.iter().map(|(a, b)| a | b << 16).collect::<Vec<_>>());
}

#[test]
fn exchanges() {
    let pairs: Vec<(u64, u64)> = (0..32).map(|i| (100 + i, i % 3)).collect();
    let lanes = |body: &str| run(&format!("{body} cvt.u64.u32 %rd6, %r6;"), &pairs);
    assert_eq!(lanes("shfl.sync.up.b32 %r6, %r4, 1, 0, -1;")[..3], [100, 100, 101]);
    assert_eq!(lanes("shfl.sync.down.b32 %r6|%p1, %r4, 2, 0x181f, -1;")[..8], [102, 103, 104, 105, 106, 107, 106, 107]);
    assert_eq!(lanes("shfl.sync.bfly.b32 %r6, %r4, 3, 31, -1;")[..4], [103, 102, 101, 100]);
    assert_eq!(lanes("shfl.sync.idx.b32 %r6, %r4, 5, 31, -1;"), [105; 32]);
    let even = 0x4924_9249u64;
    assert_eq!(lanes("setp.eq.u32 %p1, %r5, 0; vote.sync.ballot.b32 %r6, %p1, -1;"), [even; 32]);
    assert_eq!(lanes("setp.eq.u32 %p1, %r5, 0; @%p1 activemask.b32 %r6;")[..3], [even, 0, 0]);
    assert_eq!(lanes("match.any.sync.b32 %r6, %r5, -1;")[1], even << 1 & 0xffff_ffff);
    assert_eq!(lanes("redux.sync.add.u32 %r6, %r4, -1;"), [(100..132).sum::<u64>(); 32]);
    assert_eq!(lanes("bar.red.popc.u32 %r6, 0, %p0;"), [0; 32]);
}

#[test]
fn indexed_branches_and_loops_of_different_length() {
    let pairs: Vec<(u64, u64)> = (0..32).map(|i| (i % 5, i)).collect();
    let table = "brx.idx %r4, T; T: .branchtargets A, B, C, D, D;
        A: mov.u64 %rd6, 10; bra E; B: mov.u64 %rd6, 11; bra E; C: mov.u64 %rd6, 12; bra E; D: mov.u64 %rd6, 13; E:";
    assert_eq!(run(table, &pairs), (0..32).map(|i| 10 + (i % 5).min(3)).collect::<Vec<u64>>());
    let count = "L: setp.ge.u64 %p1, %rd6, %rd5; @%p1 bra M; add.u64 %rd6, %rd6, 1; bra L; M: activemask.b32 %r6;
        setp.ne.u32 %p2, %r6, -1; @%p2 mov.u64 %rd6, 99;";
    assert_eq!(run(count, &pairs), (0..32).collect::<Vec<u64>>());
}

#[test]
fn local_memory_belongs_to_a_thread() {
    let text = ".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) {
        .local .align 8 .b8 depot[64]; .reg .b32 %r<4>; .reg .b64 %rd<8>;
        mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.u32 %r1, %tid.x; ld.param.u64 %rd3, [p];
        st.u32 [%rd2+4], %r1; ld.local.u32 %r2, [%rd1+4]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4;
        st.u32 [%rd3], %r2; ret; }";
    let (module, mut memory) = (Module::parse(text).unwrap(), Memory::new());
    let id = fixture::u32_buffer(&mut memory, "out", &[0; 70]);
    let report = launch(&module, "k", [1; 3], [70, 1, 1], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, []);
    assert_eq!(fixture::read_u32(&memory, id), (0..70).collect::<Vec<u32>>());
}
