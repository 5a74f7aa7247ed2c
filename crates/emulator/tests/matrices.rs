//! `mma` in all its shapes and `ldmatrix`/`stmatrix`, against products of whole matrices. Where the elements of a fragment lie
//! is written here as the instruction set's manual has it, element by element.

mod fixture;

use fixture::launch;
use tilewright_emulator::{Argument, Memory, Module};

/// Row and column of element `i` of a lane's fragment, by `g = lane / 4` and `t = lane % 4`.
type Place = fn(g: usize, t: usize, i: usize) -> (usize, usize);

struct Shape {
    op: &'static str,
    size: [usize; 3],
    /// Bits of an element of A and B, and of C.
    bits: [usize; 2],
    /// Elements of a lane in A, B and C.
    counts: [usize; 3],
    a: Place,
    b: Place,
    c: Place,
    /// An integer as an element.
    encode: fn(i64) -> u64,
    encode_sum: fn(i64) -> u64,
}

fn half(x: i64) -> u64 {
    // Small integers: the bits of binary32 hold them with room to spare.
    let bits = (x as f32).to_bits();
    if x == 0 { 0 } else { u64::from(bits >> 16 & 0x8000 | ((bits >> 23 & 255) - 112) << 10 | bits >> 13 & 0x3ff) }
}

fn brain(x: i64) -> u64 {
    u64::from((x as f32).to_bits() >> 16)
}

fn single(x: i64) -> u64 {
    u64::from((x as f32).to_bits())
}

/// Bits that tf32 does not have must not matter.
fn dirty_single(x: i64) -> u64 {
    single(x) | 0x155
}

fn double(x: i64) -> u64 {
    (x as f64).to_bits()
}

fn byte(x: i64) -> u64 {
    u64::from(x as u8)
}

fn word(x: i64) -> u64 {
    u64::from(x as u32)
}

fn sum16(g: usize, t: usize, i: usize) -> (usize, usize) {
    (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
}

fn sum8(g: usize, t: usize, i: usize) -> (usize, usize) {
    (g, t * 2 + (i & 1))
}

/// A and B of 16-bit elements.
fn a16(g: usize, t: usize, i: usize) -> (usize, usize) {
    let row = if i < 2 || (4..6).contains(&i) { g } else { g + 8 };
    (row, t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
}

fn b16(g: usize, t: usize, i: usize) -> (usize, usize) {
    (t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, g)
}

/// A and B of one element a register, 16 rows.
fn a_one(g: usize, t: usize, i: usize) -> (usize, usize) {
    (if i.is_multiple_of(2) { g } else { g + 8 }, t + 4 * (i / 2))
}

fn b_one(g: usize, t: usize, i: usize) -> (usize, usize) {
    (t + 4 * i, g)
}

fn a8(g: usize, t: usize, i: usize) -> (usize, usize) {
    let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
    (row, t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 })
}

fn b8(g: usize, t: usize, i: usize) -> (usize, usize) {
    (t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, g)
}

#[rustfmt::skip]
const SHAPES: [Shape; 16] = [
    Shape { op: "m16n8k16.row.col.f32.f16.f16.f32", size: [16, 8, 16], bits: [16, 32], counts: [8, 4, 4], a: a16, b: b16, c: sum16, encode: half, encode_sum: single },
    Shape { op: "m16n8k16.row.col.f16.f16.f16.f16", size: [16, 8, 16], bits: [16, 16], counts: [8, 4, 4], a: a16, b: b16, c: sum16, encode: half, encode_sum: half },
    Shape { op: "m16n8k8.row.col.f32.f16.f16.f32", size: [16, 8, 8], bits: [16, 32], counts: [4, 2, 4], a: a16, b: b16, c: sum16, encode: half, encode_sum: single },
    Shape { op: "m16n8k8.row.col.f16.f16.f16.f16", size: [16, 8, 8], bits: [16, 16], counts: [4, 2, 4], a: a16, b: b16, c: sum16, encode: half, encode_sum: half },
    Shape { op: "m16n8k16.row.col.f32.bf16.bf16.f32", size: [16, 8, 16], bits: [16, 32], counts: [8, 4, 4], a: a16, b: b16, c: sum16, encode: brain, encode_sum: single },
    Shape { op: "m16n8k8.row.col.f32.bf16.bf16.f32", size: [16, 8, 8], bits: [16, 32], counts: [4, 2, 4], a: a16, b: b16, c: sum16, encode: brain, encode_sum: single },
    Shape { op: "m16n8k4.row.col.f32.tf32.tf32.f32", size: [16, 8, 4], bits: [32, 32], counts: [2, 1, 4], a: a_one, b: b_one, c: sum16, encode: dirty_single, encode_sum: single },
    Shape { op: "m16n8k8.row.col.f32.tf32.tf32.f32", size: [16, 8, 8], bits: [32, 32], counts: [4, 2, 4], a: a_one, b: b_one, c: sum16, encode: dirty_single, encode_sum: single },
    Shape { op: "m8n8k4.row.col.f64.f64.f64.f64", size: [8, 8, 4], bits: [64, 64], counts: [1, 1, 2], a: |g, t, _| (g, t), b: |g, t, _| (t, g), c: sum8, encode: double, encode_sum: double },
    Shape { op: "m16n8k4.row.col.f64.f64.f64.f64", size: [16, 8, 4], bits: [64, 64], counts: [2, 1, 4], a: a_one, b: b_one, c: sum16, encode: double, encode_sum: double },
    Shape { op: "m16n8k8.row.col.f64.f64.f64.f64", size: [16, 8, 8], bits: [64, 64], counts: [4, 2, 4], a: a_one, b: b_one, c: sum16, encode: double, encode_sum: double },
    Shape { op: "m16n8k16.row.col.f64.f64.f64.f64", size: [16, 8, 16], bits: [64, 64], counts: [8, 4, 4], a: a_one, b: b_one, c: sum16, encode: double, encode_sum: double },
    Shape { op: "m16n8k32.row.col.s32.s8.s8.s32", size: [16, 8, 32], bits: [8, 32], counts: [16, 8, 4], a: a8, b: b8, c: sum16, encode: byte, encode_sum: word },
    Shape { op: "m16n8k16.row.col.s32.s8.s8.s32", size: [16, 8, 16], bits: [8, 32], counts: [8, 4, 4], a: a8, b: b8, c: sum16, encode: byte, encode_sum: word },
    Shape { op: "m8n8k16.row.col.s32.s8.s8.s32", size: [8, 8, 16], bits: [8, 32], counts: [4, 4, 2], a: |g, t, i| (g, t * 4 + i), b: |g, t, i| (t * 4 + i, g), c: sum8, encode: byte, encode_sum: word },
    Shape { op: "m16n8k32.row.col.satfinite.s32.s8.s8.s32", size: [16, 8, 32], bits: [8, 32], counts: [16, 8, 4], a: a8, b: b8, c: sum16, encode: byte, encode_sum: word },
];

/// Elements of a fragment as registers, the first in the lowest bits.
fn registers(elements: &[u64], bits: usize) -> Vec<u64> {
    let per = (32 / bits).max(1);
    elements.chunks(per).map(|c| c.iter().enumerate().fold(0, |r, (j, e)| r | e << (j * bits))).collect()
}

/// Runs the instruction on a warp; registers of A, B and C, and then D, of each lane.
fn multiply(op: &str, wide: [bool; 2], lanes: &[[Vec<u64>; 3]]) -> Vec<Vec<u64>> {
    let names = |letter: char, count: usize| (0..count).map(|i| format!("%{letter}{i}")).collect::<Vec<_>>();
    let [a, b, c] = [0, 1, 2].map(|k| names(['a', 'b', 'c'][k], lanes[0][k].len()));
    let (factor, sum) = (if wide[0] { "b64" } else { "b32" }, if wide[1] { "b64" } else { "b32" });
    let (factor_type, sum_type) = (if wide[0] { "f64" } else { "b32" }, if wide[1] { "f64" } else { "b32" });
    let mut body = format!(".reg .{factor_type} %a<9>, %b<9>; .reg .{sum_type} %c<9>;\n");
    for (k, names) in [&a, &b, &c].into_iter().enumerate() {
        let ty = if k == 2 { sum } else { factor };
        for (i, name) in names.iter().enumerate() {
            body += &format!("ld.global.{ty} {name}, [%rd3+{}];\n", 128 * k + 8 * i);
        }
    }
    let list = |names: &[String]| names.join(", ");
    body += &format!("mma.sync.aligned.{op} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n", list(&c), list(&a), list(&b), list(&c));
    for (i, name) in c.iter().enumerate() {
        body += &format!("st.global.{sum} [%rd3+{}], {name};\n", 384 + 8 * i);
    }
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) {{ .reg .b32 %r1; .reg .b64 %rd<4>;
          ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 512; add.u64 %rd3, %rd1, %rd2; {body} ret; }}"
    );
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut bytes = vec![0u8; 32 * 512];
    for (lane, fragments) in lanes.iter().enumerate() {
        for (k, fragment) in fragments.iter().enumerate() {
            for (i, register) in fragment.iter().enumerate() {
                let at = 512 * lane + 128 * k + 8 * i;
                bytes[at..at + 8].copy_from_slice(&register.to_le_bytes());
            }
        }
    }
    let mut memory = Memory::new();
    let id = memory.add("fragments", &bytes).unwrap();
    let report = launch(&module, "k", [1; 3], [32, 1, 1], &[Argument::buffer(id)], &mut memory);
    assert_eq!(report.findings, [], "{op}");
    let after = memory.read(id);
    let read = |at: usize| u64::from_le_bytes(after[at..at + 8].try_into().unwrap());
    (0..32).map(|lane| (0..c.len()).map(|i| read(512 * lane + 384 + 8 * i)).collect()).collect()
}

#[test]
fn products_of_all_shapes() {
    for shape in &SHAPES {
        let [m, n, k] = shape.size;
        let small = |i: usize, seed: usize| ((i * 37 + seed * 11) % 13) as i64 - 6;
        let a: Vec<i64> = (0..m * k).map(|i| small(i, 1)).collect();
        let b: Vec<i64> = (0..k * n).map(|i| small(i * i, 2)).collect();
        let c: Vec<i64> = (0..m * n).map(|i| small(i, 3)).collect();
        let lanes: Vec<[Vec<u64>; 3]> = (0..32)
            .map(|lane| {
                let (g, t) = (lane / 4, lane % 4);
                let fragment = |count: usize, place: Place, from: &[i64], width: usize, encode: fn(i64) -> u64| {
                    let at = |i: usize| place(g, t, i);
                    (0..count).map(|i| encode(from[at(i).0 * width + at(i).1])).collect::<Vec<u64>>()
                };
                let [count_a, count_b, count_c] = shape.counts;
                [
                    registers(&fragment(count_a, shape.a, &a, k, shape.encode), shape.bits[0]),
                    registers(&fragment(count_b, shape.b, &b, n, shape.encode), shape.bits[0]),
                    registers(&fragment(count_c, shape.c, &c, n, shape.encode_sum), shape.bits[1]),
                ]
            })
            .collect();
        let found = multiply(shape.op, shape.bits.map(|b| b == 64), &lanes);
        for (lane, found) in found.into_iter().enumerate() {
            let expected: Vec<u64> = (0..shape.counts[2])
                .map(|i| {
                    let (row, column) = (shape.c)(lane / 4, lane % 4, i);
                    let sum: i64 = (0..k).map(|x| a[row * k + x] * b[x * n + column]).sum();
                    (shape.encode_sum)(sum + c[row * n + column])
                })
                .collect();
            assert_eq!(found, registers(&expected, shape.bits[1]), "{}, lane {lane}", shape.op);
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
