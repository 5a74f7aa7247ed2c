//! Which libraries have cores to choose among, and which cores a host can run.

use std::collections::BTreeSet;

/// A library that holds code for several processors and reads a variable that says which to run.
#[derive(Debug)]
pub(crate) struct Family {
    /// Short name: `openblas`.
    pub(crate) name: &'static str,
    /// How its files begin.
    pub(crate) stems: &'static [&'static str],
    /// What it reads when it is opened or called first.
    pub(crate) variable: &'static str,
    /// Whether it says by name which core it took.
    pub(crate) says_core: bool,
    /// Whether the variable takes the number of a core in the library's own list, and not its name.
    pub(crate) is_numbered: bool,
    /// Its cores, and the instructions that they need.
    cores: &'static [(&'static str, &'static [&'static str])],
}

const AVX512: &[&str] = &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"];
const BF16: &[&str] = &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"];
const VNNI: &[&str] = &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"];
const AVX2: &[&str] = &["avx2", "fma"];

/// Of cores that differ in instructions that a product never uses, only the instructions that it may use are asked for: the probe tells
/// whether the rest is missed.
pub(crate) static OPENBLAS: Family = Family {
    name: "openblas",
    stems: &["libscipy_openblas.so", "libopenblas.so"],
    variable: "OPENBLAS_CORETYPE",
    says_core: true,
    is_numbered: false,
    cores: &[
        ("SapphireRapids", BF16),
        ("Cooperlake", BF16),
        ("SkylakeX", AVX512),
        ("Zen", AVX2),
        ("Haswell", AVX2),
        ("Sandybridge", &["avx"]),
        ("Nehalem", &["sse4.2"]),
        ("Prescott", &["sse3"]),
        ("NEOVERSEV1", &["sve"]),
        ("NEOVERSEN2", &["sve"]),
        ("ARMV8SVE", &["sve"]),
        ("NEOVERSEN1", &["neon"]),
        ("CORTEXA57", &["neon"]),
        ("THUNDERX2T99", &["neon"]),
        ("ARMV8", &["neon"]),
    ],
};

pub(crate) static BLIS: Family = Family {
    name: "blis",
    stems: &["libblis.so"],
    variable: "BLIS_ARCH_TYPE",
    says_core: true,
    is_numbered: true,
    cores: &[
        ("skx", AVX512),
        ("knl", &["avx512f", "avx512er"]),
        ("zen4", AVX512),
        ("zen3", AVX2),
        ("zen2", AVX2),
        ("zen", AVX2),
        ("haswell", AVX2),
        ("sandybridge", &["avx"]),
        ("penryn", &["sse3"]),
        ("armsve", &["sve"]),
        ("firestorm", &["neon"]),
        ("thunderx2", &["neon"]),
        ("cortexa57", &["neon"]),
        ("generic", &[]),
    ],
};

/// It changes nothing on processors of other makers.
pub(crate) static MKL: Family = Family {
    name: "mkl",
    stems: &["libmkl_rt.so"],
    variable: "MKL_ENABLE_INSTRUCTIONS",
    says_core: false,
    is_numbered: false,
    cores: &[
        ("AVX512_E3", BF16),
        ("AVX512_E1", VNNI),
        ("AVX512", AVX512),
        ("AVX2", AVX2),
        ("AVX", &["avx"]),
        ("SSE4_2", &["sse4.2"]),
    ],
};

pub(crate) static LIBXSMM: Family = Family {
    name: "libxsmm",
    stems: &["libxsmm.so"],
    variable: "LIBXSMM_TARGET",
    says_core: true,
    is_numbered: false,
    cores: &[("cpx", BF16), ("clx", VNNI), ("skx", AVX512), ("hsw", AVX2), ("snb", &["avx"])],
};

/// All of them.
pub(crate) fn families() -> [&'static Family; 4] {
    [&OPENBLAS, &BLIS, &MKL, &LIBXSMM]
}

impl Family {
    /// The cores that a host with these instructions can run, the widest first.
    pub(crate) fn cores_for(&self, host: &Features) -> Vec<&'static str> {
        let can = |(_, needs): &&(&str, &[&str])| needs.iter().all(|need| host.0.contains(need));
        self.cores.iter().filter(can).map(|(core, _)| *core).collect()
    }
}

/// Instructions that a host has, of those that cores need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Features(BTreeSet<&'static str>);

macro_rules! detected {
    ($detect:ident: $($name:tt),*) => {
        [$(($name, std::arch::$detect!($name))),*].into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
    };
}

impl Features {
    pub(crate) fn of_host() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self(detected!(is_x86_feature_detected:
            "sse3", "sse4.2", "avx", "avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl",
            "avx512vnni", "avx512bf16"));
        #[cfg(target_arch = "aarch64")]
        return Self(detected!(is_aarch64_feature_detected: "neon", "sve"));
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return Self(BTreeSet::new());
    }

    /// What tells this host from another: its processor as the system names it, and these instructions.
    pub(crate) fn fingerprint(&self) -> String {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let first = text.split("\n\n").next().unwrap_or_default();
        let of = ["vendor_id", "cpu family", "model", "model name", "stepping", "CPU implementer", "CPU part"];
        let lines = first.lines().filter_map(|line| line.split_once(':'));
        let named = lines.filter(|(name, _)| of.contains(&name.trim())).map(|(_, value)| value.trim().to_owned());
        named
            .chain([std::env::consts::ARCH.to_owned()])
            .chain(self.0.iter().map(|f| (*f).to_owned()))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_those_that_the_host_has_instructions_for() {
        let old = Features(["sse3", "sse4.2", "avx", "avx2", "fma"].into());
        assert_eq!(OPENBLAS.cores_for(&old), ["Zen", "Haswell", "Sandybridge", "Nehalem", "Prescott"]);
        assert_eq!(MKL.cores_for(&old), ["AVX2", "AVX", "SSE4_2"]);
        assert_eq!(LIBXSMM.cores_for(&old), ["hsw", "snb"]);
        // knl has instructions of its own, that no other processor has.
        let wide = Features(old.0.iter().chain(AVX512).copied().collect());
        assert_eq!(OPENBLAS.cores_for(&wide)[..2], ["SkylakeX", "Zen"]);
        assert_eq!(BLIS.cores_for(&wide)[..3], ["skx", "zen4", "zen3"]);
        let arm = Features(["neon"].into());
        assert_eq!(OPENBLAS.cores_for(&arm)[0], "NEOVERSEN1");
        assert_eq!(MKL.cores_for(&arm), [""; 0]);
        let none = Features(BTreeSet::new());
        assert_eq!(BLIS.cores_for(&none), ["generic"]);
    }

    #[test]
    fn a_host_is_told_by_its_instructions_too() {
        let (one, other) = (Features(["avx"].into()), Features(["avx", "avx2"].into()));
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.fingerprint(), one.fingerprint());
    }
}
