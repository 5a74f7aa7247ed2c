//! What is done to an output before it is written.

use crate::activation::Activation;
use tilewright_core::computation::InputError;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

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
        Ok(Self { bias: flag("bias")?, residual: flag("residual")?, activation: Activation::parse(fields)? })
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
