//! Micro kernels are sound for every target, and say truly what they do. The emulator runs them in the campaign's tests.

use tilewright_core::program::{Code, Launch, Step};
use tilewright_ptxgen::ir::Type;
use tilewright_ptxgen::micro::{self, Micro, Traffic};
use tilewright_ptxgen::target::Target;
use tilewright_ptxgen::verify::verify;

fn all(target: Target) -> Vec<Micro> {
    let memory = [Traffic::Read, Traffic::Write, Traffic::Copy].map(|t| micro::memory(target, t, 3, 100_000, 2));
    let mut all = vec![
        micro::empty(target),
        micro::fma(target, Type::F32, 2, 5),
        micro::fma(target, Type::F64, 2, 5),
        micro::shared(target, 2, 3),
    ];
    all.extend(memory);
    all
}

#[test]
fn every_target_has_sound_ones() {
    for target in Target::all() {
        for micro in all(target) {
            assert_eq!(verify(&micro.module), [], "{} for {target}", micro.name);
        }
    }
}

#[test]
fn amounts_are_those_of_the_text() {
    let micros = all("sm_80".parse().unwrap());
    let of = |name: &str| micros.iter().find(|m| m.name == name).unwrap();
    // 2 blocks of 256 threads, 5 iterations of 128 fused multiply-adds of two operations.
    assert_eq!(of("fma_f32").amount, 2.0 * 256.0 * 5.0 * 128.0 * 2.0);
    let Step::Launch(Launch { code: Code::Ptx { text, .. }, .. }) = &of("fma_f32").program.steps[0] else {
        panic!("no launch")
    };
    assert_eq!(text.matches("fma.rn.f32").count(), 128);
    // 3 blocks sweep 49,152 bytes at once; two sweeps fit into 100,000; two passes.
    assert_eq!(of("memory_read").amount, 2.0 * 98_304.0);
    assert_eq!(of("memory_copy").amount, 4.0 * 98_304.0);
    assert_eq!(of("memory_copy").buffers[1].len * 4, 98_304);
    assert_eq!(of("launch").amount, 1.0);
}
