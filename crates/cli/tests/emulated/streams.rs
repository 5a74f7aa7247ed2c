//! Blocks that share the stages of all tiles: right however the stages are divided, the same bytes every time, and nothing of what makes
//! it so can be left out unnoticed.

use crate::matrices::{text, with_text};
use crate::stand::{any_plan, check, input, plan, rng};
use crate::tickets::twice;
use rayon::prelude::*;
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_ops::gemm::{C, Gemm};

const SMALL: &str = "m_l=16,n_l=16,u=8,k_s=1,k_g=1,vec_a=1,vec_b=1,bounds=checked,split=stream";

const PLAIN: &str = "m_s=2,n_s=2,k_l=1,vec_c=2,stages=1,load=global,raster=m,occupancy=1";

/// On the 108 multiprocessors of sm_80 a block has a part of one tile of the first, and whole tiles of the others beside parts.
const INPUTS: [&str; 4] = [
    "m=38,n=27,k=201,layout=nt",
    "m=202,n=155,k=37,layout=tn,beta=1",
    "m=150,n=202,k=64,layout=tt,alpha=other,beta=other,bias=row,activation=relu",
    "m=322,n=322,k=33,layout=nn,bias=column",
];

#[test]
fn all_stages_are_shared() {
    let loads = [
        PLAIN,
        "m_s=2,n_s=2,k_l=2,vec_c=2,stages=2,load=nc,raster=n,occupancy=1",
        "m_s=2,n_s=2,k_l=1,vec_c=2,stages=3,load=async,raster=m,occupancy=1",
        "m_s=4,n_s=4,k_l=2,vec_c=2,stages=2,load=async,raster=n,occupancy=1",
        "m_s=1,n_s=4,k_l=2,vec_c=1,stages=2,load=straight,raster=m,occupancy=1",
    ];
    let cases: Vec<_> = INPUTS.into_iter().flat_map(|words| loads.map(|load| (words, load))).collect();
    cases.into_par_iter().for_each(|(words, load)| {
        let input = input(words);
        // Few threads share rows that go straight to them, of few columns.
        if load.contains("straight") && input.n > 64 {
            return;
        }
        let plan = plan("sm_80", &input, &format!("{SMALL},{load}"));
        assert!(plan.sharing().is_some() && plan.count().is_err());
        [Filling::Exact, Filling::Real].into_iter().for_each(|filling| check("sm_80", &input, &plan, filling, 3));
    });
}

#[test]
fn any_way_of_sharing_is_right() {
    let words = [
        "m=75,n=90,k=260,layout=nt",
        "m=200,n=33,k=120,layout=tn,dtype=f64,beta=1",
        "m=60,n=140,k=180,layout=nn,dtype=f16,acc=f32",
        "m=64,n=96,k=128,layout=tt,dtype=f16,acc=f16",
        "m=45,n=50,k=99,layout=ct,dtype=c32,beta=other",
        "m=128,n=128,k=128,layout=nn",
    ];
    let cases: Vec<_> = (0..60u64).map(|seed| (seed, words[seed as usize % words.len()])).collect();
    let drawn: usize = cases
        .into_par_iter()
        .map(|(seed, words)| {
            let target = ["sm_60", "sm_80", "sm_90"][seed as usize % 3];
            let input = input(words);
            let Some(plan) = any_plan(target, &input, "split=stream,k_g=1", &mut rng(seed)) else { return 0 };
            check(target, &input, &plan, Filling::Exact, seed);
            1
        })
        .sum();
    assert!(drawn >= 50, "{drawn}");
}

#[test]
fn what_sharing_needs_cannot_be_left_out() {
    let input = input("m=202,n=155,k=37,layout=nt");
    let work = Gemm.workload(&input, Filling::Exact, 7);
    let program = plan("sm_80", &input, &format!("{SMALL},{PLAIN}")).program([0; 3]);
    let expected = Gemm.reference(&input, &work.buffers, &work.scalars).unwrap();
    let whole = text(&program);
    let runs = |text: String| twice("sm_80", &with_text(&program, text), &work);
    let is_right =
        |text: String| runs(text).is_some_and(|runs| runs.iter().all(|after| expected.compare(after).is_right()));
    assert!(is_right(whole.clone()));
    let [first, second] = runs(whole.clone()).unwrap();
    assert!(first[C].bytes() == second[C].bytes());
    // The barriers behind the store of partial sums and behind the ticket, and the one between segments; fences; tickets given back.
    let lines: Vec<&str> = whole.lines().collect();
    let begins = lines.iter().position(|line| line.trim() == "// ticket").unwrap();
    let of =
        |name: &str| -> Vec<usize> { (begins..lines.len()).filter(|i| lines[*i].trim().starts_with(name)).collect() };
    let (barriers, fences, returned) = (of("bar.sync"), of("fence.acq_rel.gpu"), of("red."));
    assert_eq!([barriers.len(), fences.len(), of("atom.").len(), returned.len()], [3, 2, 1, 1]);
    let without = |left_out: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| *line);
        kept.collect::<Vec<_>>().join("\n")
    };
    // The emulator does not ask for the fence behind the ticket: see its module of fences.
    for left_out in [barriers[0], barriers[1], barriers[2], fences[0], returned[0]] {
        assert!(!is_right(without(left_out)), "{} was not missed", lines[left_out].trim());
    }
}
