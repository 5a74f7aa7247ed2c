//! Facts of the host.

use super::caches::Caches;
use std::collections::BTreeMap;
use std::thread::available_parallelism;
use tilewright_core::device::{DeviceKind, DeviceSpec};

/// Widest vectors that the generator has an encoding for on this host, in bytes. 16 also stands for the portable path.
pub(crate) fn vec_max() -> i64 {
    #[cfg(target_arch = "x86_64")]
    {
        // Every processor with AVX2 converts binary16, too. A virtual machine that hides that takes the portable path for all types, so that one
        // fact decides for all.
        let has_vectors = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if has_vectors && is_x86_feature_detected!("f16c") {
            // Code for small products takes narrower vectors in the same encodings.
            let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
            return if has { 64 } else { 32 };
        }
    }
    16
}

/// Whether generated machine code runs here; otherwise plans run on the portable path.
pub(crate) fn generates() -> bool {
    vec_max() >= 32
}

/// What the widest vectors multiply of narrow numbers, adding up products: 8-bit integers, and bfloat16.
fn narrow_products() -> Vec<&'static str> {
    let mut all = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if vec_max() == 64 {
        all.extend(is_x86_feature_detected!("avx512vnni").then_some("avx512_vnni"));
        // Numbers of 16 bits are also loaded and stored by masks.
        let has_bf16 = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw");
        all.extend(has_bf16.then_some("avx512_bf16"));
    }
    all
}

pub(super) fn host(threads: usize) -> DeviceSpec {
    let caches = Caches::of_host();
    let cores = available_parallelism().map_or(1, usize::from);
    let isa = match vec_max() {
        64 => "x86-64 avx512f",
        32 => "x86-64 avx2+fma",
        _ => "portable",
    };
    let number = |x: usize| i64::try_from(x).unwrap_or(i64::MAX);
    let mut facts = BTreeMap::from([
        ("threads".to_owned(), number(threads)),
        ("cores".to_owned(), number(cores)),
        ("vec_max".to_owned(), vec_max()),
        ("l1d_bytes".to_owned(), number(caches.l1d)),
        ("l2_bytes".to_owned(), number(caches.l2)),
        ("l3_bytes".to_owned(), number(caches.l3)),
        ("memory_bytes".to_owned(), memory_bytes()),
    ]);
    if super::has_tiles() {
        facts.extend(["amx_bf16", "amx_int8"].map(|name| (name.to_owned(), 1)));
    }
    facts.extend(narrow_products().into_iter().map(|name| (name.to_owned(), 1)));
    DeviceSpec {
        id: "cpu".into(),
        name: brand(),
        kind: DeviceKind::Cpu,
        driver: isa.into(),
        facts,
        measured: BTreeMap::new(),
    }
}

/// The processor's own name.
fn brand() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let cpuid = raw_cpuid::CpuId::new();
        if let Some(brand) = cpuid.get_processor_brand_string() {
            let model = cpuid.get_feature_info();
            let model = model.map_or(String::new(), |f| format!(" family {} model {}", f.family_id(), f.model_id()));
            return format!("{}{model}", brand.as_str().trim());
        }
    }
    std::env::consts::ARCH.to_owned()
}

/// Physical memory rounded down to whole GiB, so that what the kernel reserves at boot does not change the fingerprint;
/// 4 GiB where the system does not tell.
fn memory_bytes() -> i64 {
    const GIB: i64 = 1 << 30;
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<i64>().ok());
    kib.map_or(4 * GIB, |k| (k * 1024 / GIB).max(1) * GIB)
}
