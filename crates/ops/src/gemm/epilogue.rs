//! What is done to sums before they are written.

use crate::activation::Activation;
use tilewright_core::computation::InputError;
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// A vector that is added, of the output's type. All products of a batch share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bias {
    /// None.
    #[default]
    None,
    /// A number for each row of C: m of them.
    Row,
    /// A number for each column of C: n of them.
    Column,
}

impl Bias {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Row, Self::Column];

    /// As in inputs: `none row column`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Row => "row",
            Self::Column => "column",
        }
    }
}

/// `C = activation(alpha * op(A) * op(B) + beta * C + bias)`. What other libraries call a residual is `beta * C`, and converting
/// the result is the type of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// What is added.
    pub bias: Bias,
    /// The function of each sum.
    pub activation: Activation,
}

impl Epilogue {
    pub(super) fn parse(fields: &Config, output: DType) -> Result<Self, InputError> {
        let bias = match fields.get("bias") {
            None => Bias::None,
            Some(value) => {
                let text = value.to_string();
                let known = Bias::ALL.into_iter().find(|b| b.name() == text);
                known.ok_or_else(|| InputError::not("bias", value, "one of none, row and column"))?
            }
        };
        let activation = Activation::parse(fields)?;
        if activation != Activation::None && output.is_complex() {
            let message = format!("{} is a function of real numbers, not of {output}: write none", activation.name());
            return Err(InputError::new("activation", message));
        }
        Ok(Self { bias, activation })
    }

    /// The fields that say something.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'static str, Value)> {
        let bias = (self.bias != Bias::None).then(|| ("bias", self.bias.name().into()));
        let activation = self.activation != Activation::None;
        bias.into_iter().chain(activation.then(|| ("activation", self.activation.name().into())))
    }

    /// Whether sums are written as they are.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}
