//! What is done to an output before it is written.

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

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
        }
    }
}

/// `activation(sum + bias[k] + residual)`; of the forward direction only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// Whether a number per output channel is added.
    pub bias: bool,
    /// Whether a tensor of the output's shape is added.
    pub residual: bool,
    /// The function.
    pub activation: Activation,
}

impl Epilogue {
    pub(super) fn parse(fields: &Config) -> Result<Self, InputError> {
        let flag = |name: &str| match fields.get(name) {
            None | Some(Value::Int(0) | Value::Bool(false)) => Ok(false),
            Some(Value::Int(1) | Value::Bool(true)) => Ok(true),
            Some(other) => Err(InputError::not(name, other, "0 or 1")),
        };
        let activation = match fields.get("activation").map(Value::to_string).as_deref() {
            None | Some("none") => Activation::None,
            Some("relu") => Activation::Relu,
            Some(other) => return Err(InputError::not("activation", &other.into(), "none or relu")),
        };
        Ok(Self { bias: flag("bias")?, residual: flag("residual")?, activation })
    }

    pub(super) fn fields(self) -> [(&'static str, Value); 3] {
        let flag = |on: bool| Value::Int(i64::from(on));
        [("bias", flag(self.bias)), ("residual", flag(self.residual)), ("activation", self.activation.name().into())]
    }

    /// The first field that asks for something.
    pub(super) fn asked(self) -> Option<&'static str> {
        [(self.bias, "bias"), (self.residual, "residual"), (self.activation != Activation::None, "activation")]
            .into_iter()
            .find_map(|(on, name)| on.then_some(name))
    }
}
