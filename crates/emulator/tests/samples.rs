//! Hand-written kernels: the results are right and nothing is found.

mod fixture;

use fixture::{assert_close, f32_buffer, launch, module, numbers, product, read_f32};
use tilewright_emulator::{Argument, Memory};

const ADD: &str = "
.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}";

#[test]
fn a_vector_sum() {
    let module = tilewright_emulator::Module::parse(ADD).unwrap();
    let mut memory = Memory::new();
    let (a, b) = (numbers(1000, 1), numbers(1000, 2));
    let ids = [&a, &b, &vec![0.0; 1000]].map(|v| f32_buffer(&mut memory, "x", v));
    let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
    args.push(Argument::U32(1000));
    let report = launch(&module, "add", [4, 1, 1], [256, 1, 1], &args, &mut memory);
    assert_eq!(report.findings, []);
    let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(read_f32(&memory, ids[2]), sums);
    let loads = report.counts.by_class()[&tilewright_emulator::Class::Load(tilewright_emulator::Space::Global, 32)];
    assert_eq!((loads.issued, loads.threads), (64, 2000));
}

#[test]
fn a_tiled_product() {
    let module = module("sgemm16.ptx");
    for [m, n, k] in [[16, 16, 16], [50, 33, 17], [64, 48, 80]] {
        let mut memory = Memory::new();
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let ids =
            [("a", &a), ("b", &b), ("c", &vec![f32::NAN; m * n])].map(|(name, v)| f32_buffer(&mut memory, name, v));
        let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
        args.extend([m, n, k].map(|x| Argument::U32(x as u32)));
        args.push(Argument::F32(2.0));
        let grid = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        let report = launch(&module, "sgemm16", grid, [16, 16, 1], &args, &mut memory);
        assert_eq!(report.findings, []);
        let expected: Vec<f64> = product(&a, &b, [m, n, k]).into_iter().map(|x| 2.0 * x).collect();
        assert_close(&read_f32(&memory, ids[2]), &expected, 1e-4);
    }
}

#[test]
fn a_product_on_tensor_cores() {
    // Multiples of 1/8 in binary16: sign, exponent and fraction put together.
    let half = |x: i32| -> u16 {
        let top = x.unsigned_abs().max(1).ilog2();
        let bits = ((top + 15 - 3) << 10) as u16 | ((x.unsigned_abs() << (10 - top)) as u16 & 0x3ff);
        if x == 0 { 0 } else { bits | if x < 0 { 0x8000 } else { 0 } }
    };
    let k = 64;
    let value = |i: usize, seed: usize| ((i * 31 + seed * 17) % 41) as i32 - 20;
    let (a, b): (Vec<i32>, Vec<i32>) =
        ((0..16 * k).map(|i| value(i, 1)).collect(), (0..8 * k).map(|i| value(i * i, 2)).collect());
    let mut memory = Memory::new();
    let bits = |v: &[i32]| v.iter().flat_map(|x| half(*x).to_le_bytes()).collect::<Vec<u8>>();
    let ids = [
        memory.add("a", &bits(&a)).unwrap(),
        memory.add("b", &bits(&b)).unwrap(),
        f32_buffer(&mut memory, "c", &[f32::NAN; 128]),
    ];
    let mut args: Vec<Argument> = ids.into_iter().map(Argument::buffer).collect();
    args.push(Argument::U32(k as u32));
    let report = launch(&module("mma80.ptx"), "mma80", [1; 3], [32, 1, 1], &args, &mut memory);
    assert_eq!(report.findings, []);
    let dot = |i: usize, j: usize| (0..k).map(|x| f64::from(a[i * k + x] * b[j * k + x]) / 64.0).sum();
    let expected: Vec<f64> = (0..128).map(|x| dot(x / 8, x % 8)).collect();
    assert_close(&read_f32(&memory, ids[2]), &expected, 0.0);
}
