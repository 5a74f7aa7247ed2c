//! The legal set of a real kernel's space holds exactly the points that the kernel's rules accept.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_core::problem::{AnyKernel, Erased};
use tilewright_core::space::{BoundSpace, Config};
use tilewright_cpu::{CpuDevice, CpuGemm};
use tilewright_sampler::{Exact, LegalSet, Sampler};

fn agrees(space: &BoundSpace) {
    let set = LegalSet::of(space).unwrap();
    assert_eq!(set.count(), space.count_legal());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut exact = Exact::new();
    for _ in 0..500 {
        let drawn = set.sample(&mut rng).unwrap();
        assert!(space.is_legal(&drawn), "{drawn:?}");
        let legal = exact.draw(space, &mut rng).unwrap().point;
        assert!(set.contains(&legal), "{legal:?}");
        // One step away, legal or not.
        let mut near = legal.0;
        let at = rng.random_range(0..near.len());
        near[at] = rng.random_range(0..space.params()[at].values.len() as u16);
        assert_eq!(set.contains(&near), space.is_legal(&near), "{near:?}");
    }
}

#[test]
fn the_host_s_gemm() {
    let kernel = Erased::new(CpuGemm::new());
    let device = CpuDevice::new(1).unwrap();
    for words in ["m=512,n=512,k=512,layout=nt", "m=33,n=7,k=1000,dtype=f64", "m=1,n=1,k=1"] {
        let problem = kernel.problem(device.spec(), &Config::parse(words).unwrap()).unwrap();
        agrees(problem.space());
    }
}
