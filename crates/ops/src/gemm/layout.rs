//! How operands are stored.

use std::fmt;
use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::space::Config;

/// Which operands are stored transposed, and which of those are conjugated: first letter A, second B. A conjugated operand is stored
/// as a transposed one is, and enters the product as its conjugate; only complex types have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// A is m x k, B is k x n.
    Nn,
    /// A is m x k, B is stored n x k.
    Nt,
    /// A is stored k x m, B is k x n.
    Tn,
    /// A is stored k x m, B is stored n x k.
    Tt,
    /// A is m x k, B is stored n x k and conjugated.
    Nc,
    /// A is stored k x m, B is stored n x k and conjugated.
    Tc,
    /// A is stored k x m and conjugated, B is k x n.
    Cn,
    /// A is stored k x m and conjugated, B is stored n x k.
    Ct,
    /// A is stored k x m, B is stored n x k, both are conjugated.
    Cc,
}

impl Layout {
    /// Every layout of real types.
    pub const ALL: [Self; 4] = [Self::Nn, Self::Nt, Self::Tn, Self::Tt];

    /// Every layout of complex types.
    pub const EVERY: [Self; 9] =
        [Self::Nn, Self::Nt, Self::Tn, Self::Tt, Self::Nc, Self::Tc, Self::Cn, Self::Ct, Self::Cc];

    /// Every layout of a type.
    pub const fn every(dtype: DType) -> &'static [Self] {
        if dtype.is_complex() { &Self::EVERY } else { &Self::ALL }
    }

    /// As in inputs: `nn nt nc tn tt tc cn ct cc`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nn => "nn",
            Self::Nt => "nt",
            Self::Tn => "tn",
            Self::Tt => "tt",
            Self::Nc => "nc",
            Self::Tc => "tc",
            Self::Cn => "cn",
            Self::Ct => "ct",
            Self::Cc => "cc",
        }
    }

    /// Whether A is stored k x m.
    pub const fn a_transposed(self) -> bool {
        !matches!(self, Self::Nn | Self::Nt | Self::Nc)
    }

    /// Whether B is stored n x k.
    pub const fn b_transposed(self) -> bool {
        !matches!(self, Self::Nn | Self::Tn | Self::Cn)
    }

    /// Whether A is conjugated.
    pub const fn a_conjugated(self) -> bool {
        matches!(self, Self::Cn | Self::Ct | Self::Cc)
    }

    /// Whether B is conjugated.
    pub const fn b_conjugated(self) -> bool {
        matches!(self, Self::Nc | Self::Tc | Self::Cc)
    }

    /// The field `layout` of an input with operands of a type.
    pub(super) fn parse(fields: &Config, operand: DType) -> Result<Self, InputError> {
        let Some(value) = fields.get("layout") else {
            return Ok(Self::Nn);
        };
        let text = value.to_string();
        if let Some(known) = Self::every(operand).iter().find(|l| l.name() == text) {
            return Ok(*known);
        }
        if Self::EVERY.iter().any(|l| l.name() == text) {
            let message = format!("{text} conjugates an operand: of {operand}, which is not complex, it is t");
            return Err(InputError::new("layout", message));
        }
        let names: Vec<&str> = Self::every(operand).iter().map(|l| l.name()).collect();
        let (last, others) = (names[names.len() - 1], names[..names.len() - 1].join(", "));
        Err(InputError::not("layout", value, &format!("one of {others} and {last}")))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
