//! Slices of a reduction that the last block of a tile sums: the bytes of the sum by a kernel of its own, in one launch, however often it
//! runs; and nothing of what makes it so can be left out unnoticed.

use crate::matrices::{text, with_text};
use crate::stand::{device, input, plan};
use std::sync::Arc;
use tilewright_core::buffer::{Buffers, Filling, Workload};
use tilewright_core::computation::Computation;
use tilewright_core::data::Data;
use tilewright_core::device::Device;
use tilewright_core::program::{Program, Step};
use tilewright_ops::gemm::{C, Gemm, GemmInput};

/// What C holds after each of two runs on the same data; `None` where the emulator objects. C is not read.
pub(crate) fn twice(target: &str, program: &Program, work: &Workload) -> Option<[Buffers; 2]> {
    let mut device = device(target);
    device.upload(&Data::Given(Arc::new(work.clone()))).unwrap();
    let mut run = || {
        device.run(program).ok()?;
        device.read().ok()
    };
    Some([run()?, run()?])
}

/// A product in slices, summed as is said: all else is alike.
fn program(target: &str, input: &GemmInput, split: &str) -> Program {
    let config = "m_s=2,n_s=2,m_l=16,n_l=16,k_l=2,u=8,k_s=1,k_g=3,vec_a=1,vec_b=1,vec_c=2,stages=1,load=global,raster=m,bounds=checked,\
                  occupancy=1";
    plan(target, input, &format!("{config},split={split}")).program([0; 3])
}

#[test]
fn the_last_block_leaves_the_bytes_of_a_second_launch_again_and_again() {
    let input = input("m=38,n=27,k=200,layout=nt");
    let work = Gemm.workload(&input, Filling::Real, 7);
    let (ordered, ticket) = (program("sm_80", &input, "ordered"), program("sm_80", &input, "ticket"));
    let launches = |of: &Program| of.steps.iter().filter(|step| matches!(step, Step::Launch(_))).count();
    assert_eq!((launches(&ordered), launches(&ticket)), (2, 1));
    let [expected, _] = twice("sm_80", &ordered, &work).unwrap();
    assert!(Gemm.reference(&input, &work.buffers, &work.scalars).unwrap().compare(&expected).is_right());
    for after in twice("sm_80", &ticket, &work).unwrap() {
        assert!(after[C].bytes() == expected[C].bytes());
    }
}

#[test]
fn what_a_ticket_needs_cannot_be_left_out() {
    // Before sm_70 every thread has a fence of its own besides.
    for (target, fence, count) in [("sm_60", "membar.gl", 3), ("sm_80", "fence.acq_rel.gpu", 2)] {
        let input = input("m=38,n=27,k=200,layout=nt");
        let work = Gemm.workload(&input, Filling::Exact, 7);
        let program = program(target, &input, "ticket");
        let whole = text(&program);
        let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
        let is_right = |text: String| {
            let after = twice(target, &with_text(&program, text), &work);
            after.is_some_and(|runs| runs.iter().all(|after| expected.compare(after).is_right()))
        };
        assert!(is_right(whole.clone()));
        let lines: Vec<&str> = whole.lines().collect();
        let begins = lines.iter().position(|line| line.trim() == "// ticket").unwrap();
        let of = |name: &str| -> Vec<usize> {
            (begins..lines.len()).filter(|i| lines[*i].trim().starts_with(name)).collect()
        };
        let (barriers, fences, returned) = (of("bar.sync"), of(fence), of("red."));
        assert_eq!([barriers.len(), fences.len(), of("atom.").len(), returned.len()], [2, count, 1, 1], "{target}");
        let without = |left_out: &[usize]| {
            let kept = lines.iter().enumerate().filter(|(at, _)| !left_out.contains(at)).map(|(_, line)| *line);
            kept.collect::<Vec<_>>().join("\n")
        };
        // The emulator does not ask for the fence behind the ticket: see its module of fences.
        let before = &fences[..count - 1];
        for left_out in [&barriers[..1], &barriers[1..], before, &returned] {
            assert!(!is_right(without(left_out)), "{target}: {} was not missed", lines[left_out[0]].trim());
        }
        // Another tile's ticket, and one ticket too few that is given back.
        let (product, ticket) = whole.split_once("// ticket").unwrap();
        assert!(!is_right(format!("{product}// ticket{}", ticket.replace("%ctaid.y", "%ctaid.x"))));
        assert!(!is_right(whole.replace(", -3;", ", -2;")));
    }
}
