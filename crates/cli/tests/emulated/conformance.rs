//! The suites of the testkit, on a kernel of the generator and a device of the emulator.

use crate::stand::{device, input};
use std::sync::Arc;
use tilewright_core::device::Device;
use tilewright_core::problem::Bound;
use tilewright_ptxgen::bacugen::BacugenGemm;
use tilewright_ptxgen::gemm::SimtGemm;
use tilewright_ptxgen::mma::MmaGemm;
use tilewright_testkit::{Effort, kernel};

#[test]
fn the_kernel_keeps_its_contract() {
    let inputs = [
        "m=33,n=17,k=29,beta=other",
        "m=20,n=40,k=64,dtype=f64,layout=nt,alpha=other",
        "m=24,n=9,k=100,layout=tn,lda=104,beta=1,batch=2,stride_b=0",
        "m=1,n=65,k=7,dtype=f64,layout=tt,align=8",
        "m=5,n=3,k=0,beta=other",
        "m=0,n=3,k=8",
        "m=40,n=9,k=33,dtype=f16,acc=f32,beta=1,bias=row,activation=relu",
        "m=16,n=24,k=70,dtype=bf16,acc=f32,out=f32,layout=tn,bias=column",
        "m=17,n=8,k=30,dtype=c32,layout=cn,alpha=other,beta=other",
        "m=12,n=7,k=40,dtype=c64,layout=tc,batch=2,bias=row",
        "m=12,n=7,k=0,dtype=c32,beta=1,bias=column",
    ];
    for target in ["sm_50", "sm_90"] {
        // Slices that are added by atomics come in any order.
        let effort = Effort { probes: 300, runs: 4, repeatable: false, seed: 3 };
        kernel(&Arc::new(SimtGemm::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}

#[test]
fn the_kernel_of_matrix_instructions_keeps_its_contract() {
    let inputs = [
        "m=33,n=17,k=29,dtype=f16,acc=f32,beta=other",
        "m=20,n=40,k=64,dtype=f64,layout=nt,alpha=other",
        "m=24,n=9,k=100,dtype=bf16,acc=f32,out=f32,layout=tn,lda=104,beta=1,batch=2,stride_b=0",
        "m=1,n=65,k=7,dtype=tf32,acc=f32,out=f32,layout=tt,align=4",
        "m=64,n=48,k=96,dtype=i8,layout=tn,beta=1",
        "m=40,n=33,k=70,dtype=i8,layout=nt,bias=row,activation=relu",
        "m=33,n=40,k=50,accuracy=tf32,layout=nt,bias=column,beta=other",
        "m=20,n=31,k=80,accuracy=3xtf32,layout=tn,alpha=other,activation=relu",
        "m=5,n=3,k=0,dtype=f16,acc=f32,beta=other",
        "m=0,n=3,k=8,dtype=f64",
    ];
    for target in ["sm_80", "sm_90"] {
        let effort = Effort { probes: 300, runs: 4, repeatable: false, seed: 3 };
        kernel(&Arc::new(MmaGemm::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}

#[test]
fn the_kernel_of_bacugen_keeps_its_contract() {
    let inputs = [
        "m=33,n=17,k=29,beta=other",
        "m=20,n=40,k=64,dtype=f64,layout=nt,alpha=other",
        "m=24,n=9,k=100,layout=tn,lda=104,beta=1,batch=2,stride_b=0",
        "m=1,n=65,k=7,dtype=f64,layout=tt,align=8",
        "m=5,n=3,k=0,beta=other",
        "m=0,n=3,k=8",
        "m=17,n=8,k=30,dtype=c32,layout=cn,alpha=other,beta=other",
        "m=12,n=7,k=40,dtype=c64,layout=tc,batch=2,bias=row",
    ];
    for target in ["sm_50", "sm_90"] {
        let effort = Effort { probes: 300, runs: 4, repeatable: true, seed: 3 };
        kernel(&Arc::new(BacugenGemm::new()), &mut device(target), &inputs.map(input), &effort).unwrap();
    }
}

#[test]
fn the_device_keeps_its_contract() {
    for words in ["m=33,n=17,k=29,beta=1", "m=20,n=40,k=64,dtype=f64,layout=nt"] {
        let mut device = device("sm_80");
        let problem = Bound::new(Arc::new(SimtGemm::new()), device.spec().clone(), input(words)).unwrap();
        tilewright_testkit::device(&mut device, &problem).unwrap();
    }
}
