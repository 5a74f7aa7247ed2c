//! The numbers of "Autotuning GEMMs for Fermi".

use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;
use tilewright_sampler::LegalSet;
use tilewright_sampler::bacugen::{
    DeviceConstants, GuidelineError, Guidelines, Layout, Reading, Source, known_devices, param_space, source, space,
};

/// Guidelines of Table 1.
fn table1(element: DType) -> Guidelines {
    let min_regs_reuse = match element {
        DType::F32 => 3.0,
        DType::C32 => 5.0,
        _ => 2.0,
    };
    Guidelines { min_threads: 512, min_blocks: 2, min_regs_reuse }
}

fn set(element: DType, layout: &str, guidelines: &Guidelines, reading: Reading) -> LegalSet {
    let fermi = DeviceConstants::known("fermi-s2050").unwrap();
    LegalSet::of(&space(element, Layout::parse(layout).unwrap(), &fermi, guidelines, reading).unwrap()).unwrap()
}

#[test]
fn sgemm_without_guidelines_has_slightly_more_than_a_million() {
    assert_eq!(set(DType::F32, "nn", &Guidelines::default(), Reading::Printed).count(), 1_136_490);
}

#[test]
fn figure_5() {
    let count = |element, layout, reading| set(element, layout, &table1(element), reading).count();
    // Elements of one word are read alike; layouts differ by the names of what loads.
    let printed = [(DType::F32, "nn", 86), (DType::F64, "nt", 66), (DType::C64, "nn", 60)];
    let scaled = [(DType::F64, "tt", 192), (DType::C64, "tt", 118)];
    for (reading, counts) in [(Reading::Printed, &printed[..]), (Reading::Scaled, &scaled)] {
        for &(element, layout, expected) in counts {
            assert_eq!(count(element, layout, reading), expected, "{element:?} {layout} {reading:?}");
        }
    }
    // Does not follow from the formula: see the crate's words on it.
    assert_eq!(count(DType::C32, "nn", Reading::Scaled), 0);
}

/// Type, layout, tile, grid, load of A, load of B: the fastest kernels.
const TABLE2: [(DType, &str, [i64; 9]); 16] = [
    (DType::F32, "nn", [96, 96, 16, 16, 16, 32, 8, 8, 32]),
    (DType::F32, "nt", [96, 96, 16, 16, 16, 32, 8, 32, 8]),
    (DType::F32, "tt", [96, 96, 16, 16, 16, 16, 16, 32, 8]),
    (DType::F32, "tn", [96, 96, 16, 16, 16, 16, 16, 16, 16]),
    (DType::C32, "nn", [64, 64, 16, 16, 16, 32, 8, 16, 16]),
    (DType::C32, "nt", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::C32, "tt", [64, 64, 16, 16, 16, 16, 16, 32, 8]),
    (DType::C32, "tn", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::F64, "nn", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::F64, "nt", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::F64, "tt", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::F64, "tn", [64, 64, 16, 16, 16, 16, 16, 16, 16]),
    (DType::C64, "nn", [24, 16, 8, 8, 8, 8, 8, 8, 8]),
    (DType::C64, "nt", [16, 24, 8, 8, 8, 8, 8, 8, 8]),
    (DType::C64, "tt", [16, 24, 8, 8, 8, 4, 16, 8, 8]),
    (DType::C64, "tn", [24, 16, 8, 8, 8, 8, 8, 8, 8]),
];

#[test]
fn winners_of_table_2_are_in_their_sets() {
    for (element, layout, [m, n, k, m_dim, n_dim, m_dim_a, n_dim_a, m_dim_b, n_dim_b]) in TABLE2 {
        let mut guidelines = table1(element);
        let config = Config(
            [
                ("n_dim", n_dim),
                ("m_dim", m_dim),
                ("k_blk", k),
                ("n_blk", n),
                ("m_blk", m),
                ("m_dim_a", m_dim_a),
                ("n_dim_a", n_dim_a),
                ("m_dim_b", m_dim_b),
                ("n_dim_b", n_dim_b),
            ]
            .map(|(name, v)| (name.to_owned(), Value::Int(v)))
            .to_vec(),
        );
        let fermi = DeviceConstants::known("fermi-s2050").unwrap();
        let bound =
            |g: &Guidelines, reading| space(element, Layout::parse(layout).unwrap(), &fermi, g, reading).unwrap();
        if element == DType::C32 {
            let asked = bound(&guidelines, Reading::Scaled);
            let broken = asked.check(&config.to_point(asked.params(), None).unwrap()).unwrap_err();
            assert_eq!(broken.rule, "min_regs_reuse", "{layout}: a reuse of 5.0");
            guidelines.min_regs_reuse = 4.0;
        }
        for reading in [Reading::Scaled, Reading::Printed] {
            let bound = bound(&guidelines, reading);
            let point = config.to_point(bound.params(), None).unwrap();
            assert_eq!(bound.check(&point).map(drop), Ok(()), "{element:?} {layout} {reading:?}");
        }
    }
}

/// Algorithms 2 and 3 as loops, on their own: every combination of five with its number of ways to load.
fn algorithms(element: DType, g: &Guidelines, mut each: impl FnMut([i64; 5], u64)) {
    let (warp, threads_max, regs, shmem, warps_max, blocks_max) = (32, 1024, 32_768, 49_152, 48, 8);
    let size = element.size() as i64;
    for n_dim in 1..=256 {
        for m_dim in (1..=256).filter(|m| m * n_dim <= threads_max && m * n_dim % warp == 0) {
            let threads: i64 = m_dim * n_dim;
            for k in 1..=64 {
                for n in (n_dim..=256).step_by(n_dim as usize).filter(|n| k * n % threads == 0) {
                    for m in (m_dim..=256).step_by(m_dim as usize).filter(|m| m * k % threads == 0) {
                        let (mt, nt) = (m / m_dim, n / n_dim);
                        let reuse = (mt * nt) as f64 / (mt + nt) as f64;
                        let reuse = if matches!(element, DType::C32 | DType::C64) { 2.0 * reuse } else { reuse };
                        if reuse < g.min_regs_reuse {
                            continue;
                        }
                        let fits = |available: i64, need: i64| {
                            let warps_of_block = threads / warp;
                            let blocks = (available / need).min(blocks_max);
                            let blocks = (blocks * warps_of_block).min(warps_max) / warps_of_block;
                            blocks >= g.min_blocks && threads * blocks >= g.min_threads
                        };
                        let need = ((mt * nt + mt + nt) * threads + m * k + k * n) * size / 4;
                        if fits(shmem, ((m + 1) * k + (k + 1) * n) * size) && fits(regs, need) {
                            let ways = |a: i64, b: i64| {
                                (1..=threads)
                                    .filter(|d| threads % d == 0 && a % d == 0 && b % (threads / d) == 0)
                                    .count()
                            };
                            each([n_dim, m_dim, k, n, m], (ways(m, k) * ways(k, n)) as u64);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_rules_are_the_algorithms() {
    for (element, min_regs_reuse) in [(DType::F64, 1.0), (DType::C64, 1.0)] {
        let guidelines = Guidelines { min_regs_reuse, ..table1(element) };
        let set = set(element, "nn", &guidelines, Reading::Printed);
        let five = set.project(&[0, 1, 2, 3, 4]).unwrap();
        let (mut combinations, mut tuples) = (0, 0);
        algorithms(element, &guidelines, |at, ways| {
            combinations += ways;
            tuples += u64::from(ways > 0);
            let point = at.map(|v| (v - 1) as u16);
            assert_eq!(five.contains(&point), ways > 0, "{element:?} {at:?}");
        });
        assert_eq!((set.count(), five.count()), (combinations, tuples), "{element:?}");
        assert!(tuples > 50, "{tuples}");
    }
}

#[test]
fn every_capability_has_a_space() {
    let devices = known_devices();
    let capability = |d: &DeviceConstants| d.compute_capability.parse::<f64>().unwrap();
    assert!(devices.iter().any(|d| capability(d) == 1.0) && devices.iter().any(|d| capability(d) == 12.1));
    assert_eq!(DeviceConstants::known("9.0"), DeviceConstants::known("sm_90"));
    assert_eq!(DeviceConstants::known("sm_00"), None);
    for device in &devices {
        assert!(device.max_shared_per_block <= device.shared_per_sm, "{}", device.name);
        assert!(device.max_registers_per_block <= device.registers_per_sm, "{}", device.name);
        assert_eq!(DeviceConstants::from_json(&serde_json::to_string(device).unwrap()).as_ref(), Ok(device));
    }
    let guidelines = Guidelines { min_regs_reuse: 2.5, min_blocks: 2, min_threads: 256 };
    for name in ["1.3", "9.0"] {
        let device = DeviceConstants::known(name).unwrap();
        let layout = Layout::parse("tn").unwrap();
        let space = space(DType::F32, layout, &device, &guidelines, Reading::Scaled).unwrap();
        assert!(space.first_legal().is_some(), "{name}");
    }
    assert!(DeviceConstants::from_json("{}").is_err());
}

#[test]
fn rules_have_a_source_and_guidelines_are_read() {
    let space = param_space(Layout::parse("nn").unwrap()).unwrap();
    let sources: Vec<Source> =
        space.rules().iter().map(|r| source(&r.name).unwrap_or_else(|| panic!("{}", r.name))).collect();
    for kind in
        [Source::QueryableHardware, Source::CapabilityHardware, Source::HardImplementation, Source::SoftImplementation]
    {
        assert!(sources.contains(&kind), "{kind:?}");
    }
    let read = |text: &str| Guidelines::from_config(&Config::parse(text).unwrap());
    assert_eq!(read("min_threads=512,min_blocks=2,min_regs_reuse=3").unwrap(), table1(DType::F32));
    assert_eq!(read("").unwrap(), Guidelines::default());
    assert_eq!(read("min_reuse=3").unwrap_err(), GuidelineError { name: "min_reuse".into(), value: "3".into() });
    assert!(read("min_blocks=-1").is_err() && read("min_threads=many").is_err() && read("min_regs_reuse=-2").is_err());
}
