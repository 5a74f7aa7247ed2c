//! What checking bounds costs: on sizes that tiles divide, a kernel with predicates executes at most 2% more instructions than
//! the one without (ISAAC, section 8.3), as the emulator counts them.

use crate::stand::{device, input, plan, run};
use tilewright_core::buffer::Filling;
use tilewright_core::computation::Computation;
use tilewright_emulator::Tally;
use tilewright_ops::gemm::Gemm;

/// All instructions of a plan.
fn executed(words: &str, config: &str) -> Tally {
    let input = input(words);
    let mut device = device("sm_80");
    let program = plan("sm_80", &input, config).program([0; 3]);
    run(&mut device, &program, &Gemm.workload(&input, Filling::Exact, 1), config);
    let mut sum = Tally::default();
    for report in device.log().take() {
        let total = report.counts.total();
        sum.issued += total.issued;
        sum.threads += total.threads + total.predicated_off;
    }
    sum
}

#[test]
fn bounds_are_checked_for_two_percent() {
    let large = "m_s=8,n_s=8,m_l=128,n_l=64,u=8,k_l=1,k_s=1,k_g=1,vec_a=4,vec_b=4,vec_c=4";
    let double = "m_s=4,n_s=4,m_l=64,n_l=32,u=8,k_l=1,k_s=1,k_g=1,vec_a=2,vec_b=2,vec_c=2";
    let cases = [
        ("layout=nt", large, "stages=2,load=nc"),
        ("layout=nn", large, "stages=2,load=nc"),
        ("layout=tn", large, "stages=1,load=global"),
        ("layout=nt", large, "stages=3,load=async"),
        ("layout=nt,dtype=f64", double, "stages=2,load=nc"),
        ("layout=tt,dtype=f64,beta=other", double, "stages=2,load=nc"),
    ];
    for (words, tile, load) in cases {
        let words = format!("m=128,n=64,k=1024,{words}");
        let of = |bounds: &str| executed(&words, &format!("{tile},{load},bounds={bounds}"));
        let (checked, whole) = (of("checked"), of("whole"));
        for (what, checked, whole) in
            [("warps", checked.issued, whole.issued), ("threads", checked.threads, whole.threads)]
        {
            let cost = checked as f64 / whole as f64 - 1.0;
            println!(
                "{words} {load}: {what} execute {checked} instructions checked, {whole} without: {:.2}%",
                100.0 * cost
            );
            assert!(checked > whole, "{words} {load}: nothing is checked");
            assert!(cost <= 0.02, "{words} {load}: {:.2}% more", 100.0 * cost);
        }
    }
}
