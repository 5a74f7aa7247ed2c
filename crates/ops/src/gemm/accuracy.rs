//! What a caller allows to be done to operands before they are multiplied.

use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// How accurate products must be. It is a permission: what is more accurate is right too. Only products of f32 that are summed in f32
/// have another than [`Accuracy::Full`].
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
}

impl Accuracy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Tf32, Self::ThreeTf32];

    /// As in inputs: `full tf32 3xtf32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Tf32 => "tf32",
            Self::ThreeTf32 => "3xtf32",
        }
    }

    /// Products that are summed for one of the definition.
    pub(super) const fn products(self) -> usize {
        if matches!(self, Self::ThreeTf32) { 3 } else { 1 }
    }

    /// How far what is summed for a product `a b` may be from it, as a fraction of `|a b|`.
    ///
    /// With `u` of tf32, `fl(a) = a (1 + d)` where `|d| <= u`: two such make `2 u + u^2`. Of `a = a1 + a2 + e`, `|a2| <= u (1 + u) |a|`
    /// and `|e| <= u^2 |a|`: two such errors make `2 u^2 + u^4`, the product of the second parts is at most `u^2 (1 + u)^2`, together
    /// less than `3 u^2 (1 + u)`.
    pub(super) fn rounding(self) -> f64 {
        let u = DType::Tf32.unit_roundoff();
        match self {
            Self::Full => 0.0,
            Self::Tf32 => 2.0 * u + u * u,
            Self::ThreeTf32 => 3.0 * u * u * (1.0 + u),
        }
    }

    /// The largest integer that operands keep, whatever is done to them.
    pub(super) fn exact(self) -> f64 {
        if self == Self::Full { f64::INFINITY } else { DType::Tf32.unit_roundoff().recip() }
    }

    /// The field `accuracy` of an input of these types.
    pub(super) fn parse(fields: &Config, types: ElementTypes) -> Result<Self, InputError> {
        let Some(value) = fields.get("accuracy") else {
            return Ok(Self::Full);
        };
        let text = value.to_string();
        let known = Self::ALL.into_iter().find(|a| a.name() == text);
        let accuracy = known.ok_or_else(|| InputError::not("accuracy", value, "one of full, tf32 and 3xtf32"))?;
        let ElementTypes { operand, accumulator, .. } = types;
        if accuracy != Self::Full && (operand, accumulator) != (DType::F32, DType::F32) {
            let message =
                format!("{text} is of operands and sums of f32, not of {operand} and {accumulator}: write full");
            return Err(InputError::new("accuracy", message));
        }
        Ok(accuracy)
    }

    /// The field, where it says something.
    pub(super) fn field(self) -> Option<(&'static str, Value)> {
        (self != Self::Full).then(|| ("accuracy", self.name().into()))
    }
}
