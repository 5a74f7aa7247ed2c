//! What a caller allows to be done to operands before they are multiplied.

use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// How accurate products must be. It is a permission: what is more accurate is right too. Products of f32 that are summed in f32 have
/// classes of their own beside [`Accuracy::Full`], and so have complex ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Accuracy {
    /// Operands as they are, in the arithmetic of the accumulator's type.
    #[default]
    Full,
    /// Each operand may be rounded to the nearest tf32.
    Tf32,
    /// Each operand may be split in two parts of tf32, the number rounded and what that left rounded; the product of the second
    /// parts may be left out. What becomes of infinities is not said: what is left of one is NaN.
    ThreeTf32,
    /// Complex products may be made of three real ones, as `gemm3m` of BLAS libraries makes them: with `t = (ar + ai) (br + bi)` the
    /// imaginary part is `t - ar br - ai bi`. A component may be off by what the largest of these products rounds, however small it is
    /// itself (Higham, *Stability of a method for multiplying complex matrices with three real matrix multiplications*, 1992). What
    /// becomes of infinities is not said, nor of parts whose sum or difference is beyond the type's range: differences of infinities are NaN.
    ThreeM,
}

impl Accuracy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Full, Self::Tf32, Self::ThreeTf32, Self::ThreeM];

    /// As in inputs: `full tf32 3xtf32 3m`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Tf32 => "tf32",
            Self::ThreeTf32 => "3xtf32",
            Self::ThreeM => "3m",
        }
    }

    /// Whether infinite operands make what the definition makes of them.
    pub(super) const fn keeps_infinities(self) -> bool {
        matches!(self, Self::Full | Self::Tf32)
    }

    /// The length of the longest sum that a component of an element is made of, for a reduction of `k` elements of so many components.
    /// Of three products that is `k`, and four roundings more: of both operands' sums, and of two differences.
    pub(super) const fn length(self, components: usize, k: usize) -> usize {
        match self {
            Self::Full | Self::Tf32 => components * k,
            Self::ThreeTf32 => 3 * components * k,
            Self::ThreeM => k + 4,
        }
    }

    /// What is summed for a component, at most, as a multiple of the norms of the row and column.
    ///
    /// Of three products `|ar br| + |ai bi|` come to at most the norms, and `(|ar| + |ai|) (|br| + |bi|)` to twice as much, as
    /// `(|ar| + |ai|)^2 <= 2 |a|^2`.
    pub(super) const fn growth(self) -> f64 {
        if matches!(self, Self::ThreeM) { 3.0 } else { 1.0 }
    }

    /// How far what is summed for a product `a b` may be from it, as a fraction of `|a b|`.
    ///
    /// With `u` of tf32, `fl(a) = a (1 + d)` where `|d| <= u`: two such make `2 u + u^2`. Of `a = a1 + a2 + e`, `|a2| <= u (1 + u) |a|`
    /// and `|e| <= u^2 |a|`: two such errors make `2 u^2 + u^4`, the product of the second parts is at most `u^2 (1 + u)^2`, together
    /// less than `3 u^2 (1 + u)`.
    pub(super) fn rounding(self) -> f64 {
        let u = DType::Tf32.unit_roundoff();
        match self {
            Self::Full | Self::ThreeM => 0.0,
            Self::Tf32 => 2.0 * u + u * u,
            Self::ThreeTf32 => 3.0 * u * u * (1.0 + u),
        }
    }

    /// The largest integer that operands keep, whatever is done to them.
    pub(super) fn exact(self) -> f64 {
        if matches!(self, Self::Full | Self::ThreeM) { f64::INFINITY } else { DType::Tf32.unit_roundoff().recip() }
    }

    /// Types of operands that alone have this class; none of the full one, which all have.
    pub(super) const fn own_types(self) -> &'static [DType] {
        match self {
            Self::Full => &[],
            Self::Tf32 | Self::ThreeTf32 => &[DType::F32],
            Self::ThreeM => &[DType::C32, DType::C64],
        }
    }

    /// The class that is fixed among some fields; the full one where none is, or none of this name is known.
    pub(super) fn fixed(fields: &Config) -> Self {
        let named = |value: &Value| Self::ALL.into_iter().find(|a| a.name() == value.to_string());
        fields.get("accuracy").and_then(named).unwrap_or_default()
    }

    /// The field `accuracy` of an input of these types.
    pub(super) fn parse(fields: &Config, types: ElementTypes) -> Result<Self, InputError> {
        let Some(value) = fields.get("accuracy") else {
            return Ok(Self::Full);
        };
        let text = value.to_string();
        let known = Self::ALL.into_iter().find(|a| a.name() == text);
        let accuracy = known.ok_or_else(|| InputError::not("accuracy", value, "one of full, tf32, 3xtf32 and 3m"))?;
        let ElementTypes { operand, accumulator, .. } = types;
        let of = match accuracy {
            Self::Tf32 | Self::ThreeTf32 if (operand, accumulator) != (DType::F32, DType::F32) => {
                "operands and sums of f32"
            }
            Self::ThreeM if !operand.is_complex() => "complex operands",
            _ => return Ok(accuracy),
        };
        let message = format!("{text} is of {of}, not of {operand} and {accumulator}: write full");
        Err(InputError::new("accuracy", message))
    }

    /// The field, where it says something.
    pub(super) fn field(self) -> Option<(&'static str, Value)> {
        (self != Self::Full).then(|| ("accuracy", self.name().into()))
    }
}
