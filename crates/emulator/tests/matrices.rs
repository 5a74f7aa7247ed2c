//! `mma` in all its shapes and `ldmatrix`/`stmatrix`, against products of whole matrices.

mod fixture;
#[path = "fixture/fragments.rs"]
mod fragments;

use fixture::launch;
use fragments::{SHAPES, multiply};
use tilewright_emulator::{Argument, Behaviour, Memory, Module};

#[test]
fn products_of_all_shapes() {
    for shape in &SHAPES {
        let [m, n, k] = shape.size;
        let small = |i: usize, seed: usize| ((i * 37 + seed * 11) % 13) as i64 - 6;
        let a: Vec<i64> = (0..m * k).map(|i| small(i, 1)).collect();
        let b: Vec<i64> = (0..k * n).map(|i| small(i * i, 2)).collect();
        let c: Vec<i64> = (0..m * n).map(|i| small(i, 3)).collect();
        let encoded = |of: &[i64], encode: fn(i64) -> u64| of.iter().map(|x| encode(*x)).collect::<Vec<u64>>();
        let [a_bits, b_bits] = [&a, &b].map(|of| encoded(of, shape.encode));
        let found = shape.run(("sm_90", Behaviour::default()), [&a_bits, &b_bits, &encoded(&c, shape.encode_sum)]);
        for (at, found) in found.into_iter().enumerate() {
            let (row, column) = (at / n, at % n);
            let sum: i64 = (0..k).map(|x| a[row * k + x] * b[x * n + column]).sum();
            assert_eq!(found, (shape.encode_sum)(sum + c[at]), "{}, row {row}, column {column}", shape.op);
        }
    }
}

#[test]
fn bytes_without_sign_wrap_and_saturate() {
    // All elements 255 or -1, sums near the limit.
    let run = |types: &str, c: u32| {
        let lanes = vec![[vec![u64::from(u32::MAX); 4], vec![u64::from(u32::MAX); 2], vec![u64::from(c); 4]]; 32];
        multiply(&format!("m16n8k32.row.col.{types}"), [false; 2], &lanes)[9][2] as u32
    };
    assert_eq!(run("s32.u8.u8.s32", 5), 32 * 255 * 255 + 5);
    assert_eq!(run("s32.u8.s8.s32", 5) as i32, 32 * -255 + 5);
    assert_eq!(run("s32.s8.u8.s32", 5) as i32, 32 * -255 + 5);
    assert_eq!(run("s32.u8.u8.s32", i32::MAX as u32), (i32::MAX as u32).wrapping_add(32 * 255 * 255));
    assert_eq!(run("satfinite.s32.u8.u8.s32", i32::MAX as u32), i32::MAX as u32);
    assert_eq!(run("satfinite.s32.u8.s8.s32", i32::MIN as u32), i32::MIN as u32);
}

#[test]
fn shapes_that_do_not_exist_are_refused() {
    for op in
        ["m16n8k16.row.col.f32.tf32.tf32.f32", "m8n8k4.row.col.f32.f16.f16.f32", "m16n8k8.col.row.f32.f16.f16.f32"]
    {
        let text = format!(
            ".version 8.0 .target sm_90 .address_size 64 .visible .entry k() {{ .reg .b32 %r<9>; .reg .f32 %f<9>;
              mma.sync.aligned.{op} {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r1}}, {{%f1, %f2, %f3, %f4}}; ret; }}"
        );
        let module = Module::parse(&text).unwrap();
        assert_eq!(
            module.check("k").map(|e| (e.place.line, e.opcode.clone())),
            Some((2, format!("mma.sync.aligned.{op}")))
        );
    }
}

/// Every lane of a matrix instruction holds elements by its manual; `store` writes rows that plain loads read, and `load`
/// reads rows that plain stores wrote.
fn matrix_rows(count: usize, transposed: bool, is_store: bool) {
    let trans = if transposed { ".trans" } else { "" };
    let list = |letter: char| (0..count).map(|i| format!("%{letter}{i}")).collect::<Vec<_>>().join(", ");
    // Lane l gives the address of row l; element values are their numbers in memory: 64 matrix + 8 row + column.
    let row = "mov.u32 %q1, s; mad.lo.u32 %q2, %q0, 16, %q1;";
    let fill = "mad.lo.u32 %q3, %q0, 0x80008, 0x10000; st.shared.u32 [%q2], %q3; add.u32 %q3, %q3, 0x20002;
        st.shared.u32 [%q2+4], %q3; add.u32 %q3, %q3, 0x20002; st.shared.u32 [%q2+8], %q3; add.u32 %q3, %q3, 0x20002;
        st.shared.u32 [%q2+12], %q3; bar.sync 0;";
    let load = format!("{row} {fill} ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{}}}, [%q2];", list('r'));
    let fragments: Vec<String> = (0..count).map(|i| format!("ld.global.b32 %r{i}, [%d3+{}];", 4 * i)).collect();
    let store = format!(
        "{row} {} stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%q2], {{{}}}; bar.sync 0;
         mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
         setp.lt.u32 %p1, %q0, {}; @%p1 ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%q2];",
        fragments.join(" "),
        list('r'),
        8 * count
    );
    let out: Vec<String> =
        (0..if is_store { 4 } else { count }).map(|i| format!("st.global.b32 [%d3+{}], %r{i};", 4 * i)).collect();
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) {{ .reg .pred %p<2>;
          .reg .b32 %r<4>, %q<4>; .reg .b64 %d<4>; .shared .align 16 .b8 s[512];
          mov.u32 %q0, %tid.x; ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %q0, 16; add.u64 %d3, %d1, %d2;
          {} {} ret; }}",
        if is_store { &store } else { &load },
        out.join(" ")
    );
    // The number of element `j` of register `i` of a lane.
    let number = |lane: usize, i: usize, j: usize| {
        let (row, column) = (lane / 4, 2 * (lane % 4) + j);
        let (row, column) = if transposed { (column, row) } else { (row, column) };
        (64 * i + 8 * row + column) as u32
    };
    let pair = |lane: usize, i: usize| number(lane, i, 0) | number(lane, i, 1) << 16;
    let mut words = vec![0u32; 128];
    for (lane, i) in (0..32).flat_map(|lane| (0..count).map(move |i| (lane, i))) {
        words[4 * lane + i] = pair(lane, i);
    }
    let mut memory = Memory::new();
    let id = fixture::u32_buffer(&mut memory, "fragments", if is_store { &words } else { &[0; 128] });
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let report = launch(&module, "k", [1; 3], [32, 1, 1], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, [], "{text}");
    let found = fixture::read_u32(&memory, id);
    if is_store {
        let rows: Vec<u32> = (0..32 * count as u32).map(|w| (2 * w) | ((2 * w + 1) << 16)).collect();
        assert_eq!(found[..32 * count], rows, "x{count}{trans}");
    } else {
        assert_eq!(found, words, "x{count}{trans}");
    }
}

#[test]
fn matrices_of_shared_memory_come_and_go() {
    for count in [1, 2, 4] {
        for transposed in [false, true] {
            matrix_rows(count, transposed, false);
            matrix_rows(count, transposed, true);
        }
    }
}
