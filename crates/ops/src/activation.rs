//! Functions of outputs.

use tilewright_core::computation::InputError;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// A function of each output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// The larger of the number and 0; of NaN it is 0, as processors' maximum has it.
    Relu,
}

impl Activation {
    /// Applies it.
    pub fn of(self, x: f64) -> f64 {
        match self {
            Self::None => x,
            Self::Relu => x.max(0.0),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
        }
    }

    /// The field `activation`.
    pub(crate) fn parse(fields: &Config) -> Result<Self, InputError> {
        match fields.get("activation").map(Value::to_string).as_deref() {
            None | Some("none") => Ok(Self::None),
            Some("relu") => Ok(Self::Relu),
            Some(other) => Err(InputError::not("activation", &other.into(), "none or relu")),
        }
    }
}
