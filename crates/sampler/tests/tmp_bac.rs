use tilewright_sampler::LegalSet;
use tilewright_sampler::bacugen::*;
use std::time::Instant;
#[test]
fn timing() {
    let fermi = DeviceConstants::known("fermi-s2050").unwrap();
    for g in [Guidelines { min_threads: 512, min_blocks: 2, min_regs_reuse: 3.0 }, Guidelines::default()] {
        let s = space(Element::S, Layout::parse("nn").unwrap(), &fermi, &g, Reading::Printed).unwrap();
        let t = Instant::now();
        let set = LegalSet::of(&s).unwrap();
        eprintln!("set {} {:?} nodes {} order {:?}", set.count(), t.elapsed(), set.nodes(), set.order());
        let t = Instant::now();
        eprintln!("walk {} {:?}", s.count_legal(), t.elapsed());
    }
}
