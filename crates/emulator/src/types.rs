//! Types and spaces of PTX.

pub use tilewright_core::counts::Space;

/// The names of types and their bytes in memory.
macro_rules! types {
    ($($name:ident = $word:literal, $bytes:literal;)*) => {
        /// A fundamental type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Ty {
            $($name,)*
        }

        impl Ty {
            pub(crate) fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// Bytes in memory; a predicate has none there and counts as one.
            #[inline]
            pub(crate) fn bytes(self) -> u64 {
                match self {
                    $(Self::$name => $bytes,)*
                }
            }
        }
    };
}

types! {
    Pred = "pred", 1;
    B8 = "b8", 1;
    B16 = "b16", 2;
    B32 = "b32", 4;
    B64 = "b64", 8;
    B128 = "b128", 16;
    U8 = "u8", 1;
    U16 = "u16", 2;
    U32 = "u32", 4;
    U64 = "u64", 8;
    S8 = "s8", 1;
    S16 = "s16", 2;
    S32 = "s32", 4;
    S64 = "s64", 8;
    F16 = "f16", 2;
    F16x2 = "f16x2", 4;
    Bf16 = "bf16", 2;
    Bf16x2 = "bf16x2", 4;
    Tf32 = "tf32", 4;
    F32 = "f32", 4;
    F64 = "f64", 8;
}

impl Ty {
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
