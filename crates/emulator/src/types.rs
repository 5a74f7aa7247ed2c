//! Types and spaces of PTX.

pub use tilewright_core::counts::Space;

/// A fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
}

impl Ty {
    const NAMES: [(&'static str, Self); 21] = [
        ("pred", Self::Pred),
        ("b8", Self::B8),
        ("b16", Self::B16),
        ("b32", Self::B32),
        ("b64", Self::B64),
        ("b128", Self::B128),
        ("u8", Self::U8),
        ("u16", Self::U16),
        ("u32", Self::U32),
        ("u64", Self::U64),
        ("s8", Self::S8),
        ("s16", Self::S16),
        ("s32", Self::S32),
        ("s64", Self::S64),
        ("f16", Self::F16),
        ("f16x2", Self::F16x2),
        ("bf16", Self::Bf16),
        ("bf16x2", Self::Bf16x2),
        ("tf32", Self::Tf32),
        ("f32", Self::F32),
        ("f64", Self::F64),
    ];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == word).map(|(_, t)| *t)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, t)| *t == self).map_or("", |(n, _)| n)
    }

    /// Bytes in memory; a predicate has none there and counts as one.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F16x2 | Self::Bf16x2 | Self::Tf32 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::Tf32 | Self::F32 | Self::F64)
    }
}

/// Reads the first part of a word as a space: `shared::cta` is shared.
pub(crate) fn space(word: &str) -> Option<Space> {
    match word.split("::").next().unwrap_or_default() {
        "global" => Some(Space::Global),
        "shared" => Some(Space::Shared),
        "local" => Some(Space::Local),
        "const" => Some(Space::Const),
        "param" => Some(Space::Param),
        _ => None,
    }
}
