//! What a described kernel computes: its inputs, data and reference.

use crate::arguments::{Fill, Held};
use crate::data::{filled, nudged};
use crate::formula::Formula;
use crate::inputs::Given;
use crate::kernel::{Inner, UserKernel};
use tilewright_core::buffer::{BufferSpec, Buffers, Expected, Filling, Role, Workload, Written};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work};
use tilewright_core::expr::Val;
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarSpec};
use tilewright_core::space::{Config, Param};

/// The most bytes of one buffer.
const MOST_BYTES: u64 = 1 << 46;

/// Combinations of parameters that decide about the size of a buffer, at most.
pub(crate) const MOST_SIZES: usize = 1 << 16;

/// The number that a formula gives.
pub(crate) fn value_of<'v>(formula: &Formula, value: &dyn Fn(&str) -> Option<Val<'v>>) -> Option<f64> {
    formula.eval(value).ok()?.as_f64()
}

impl Inner {
    /// The elements of a buffer: where parameters decide too, the most that any of their values needs.
    fn elements(&self, held: &Held, input: &Given) -> Result<u64, String> {
        let formula = &held.size.0;
        let used: Vec<&Param> = self.space.params().iter().filter(|p| formula.names().contains(&p.name)).collect();
        let combinations = used.iter().map(|p| p.values.len()).product::<usize>();
        let mut most = Err("it has no size".to_owned());
        for mut at in 0..combinations {
            let mut values = Vec::new();
            for param in &used {
                values.push((param.name.as_str(), &param.values[at % param.values.len()]));
                at /= param.values.len();
            }
            let param = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, v)| v.as_val());
            let size = formula.size(&|name| self.given(input, name).or_else(|| param(name)));
            most = match (most, size) {
                (Ok(most), Ok(size)) => Ok(size.max(most)),
                (Ok(most), Err(_)) => Ok(most),
                (Err(_), size) => size,
            };
        }
        most
    }

    /// The buffers of an input.
    fn specs(&self, input: &Given) -> Vec<BufferSpec> {
        let spec = |held: &Held| {
            let len = self.elements(held, input).unwrap_or(0).saturating_mul(held.element.lanes as u64);
            BufferSpec {
                name: held.name,
                dtype: held.element.dtype,
                len: usize::try_from(len).unwrap_or(0),
                role: held.role,
            }
        };
        self.buffers.iter().map(spec).collect()
    }

    /// Refuses an input whose buffers or scalars are none.
    pub(crate) fn check(&self, input: &Given) -> Result<(), InputError> {
        for held in &self.buffers {
            let refuse = |message: String| Err(InputError::new(held.name, message));
            match self.elements(held, input) {
                Err(message) => return refuse(format!("its size: {message}")),
                Ok(size) if size.saturating_mul((held.element.bytes * held.element.lanes) as u64) > MOST_BYTES => {
                    return refuse(format!("{size} elements of {} are more than {MOST_BYTES} bytes", held.element.c));
                }
                Ok(_) => {}
            }
        }
        for argument in &self.arguments {
            let crate::arguments::What::Scalar(formula) = &argument.what else { continue };
            // What parameters decide is known with a configuration.
            if self.space.params().iter().any(|p| formula.names().contains(&p.name)) {
                continue;
            }
            let value = value_of(formula, &|name| self.given(input, name));
            let refuse = |message: String| Err(InputError::new(argument.name, message));
            match value {
                None => return refuse(format!("{} has no value", formula.text)),
                Some(value) if !argument.holds(value) => {
                    return refuse(format!("{value} does not fit into {}", argument.element.c));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn known(&self, fields: &Config) -> Result<(), InputError> {
        let unknown = fields.0.iter().find(|(name, _)| self.inputs.iter().all(|i| i.name != *name));
        unknown.map_or(Ok(()), |(name, _)| {
            let known = self.inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(" ");
            let has = if known.is_empty() { "no inputs".to_owned() } else { known };
            Err(InputError::new(name, format!("unknown key: {} has {has}", self.id)))
        })
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
        awkward: bool,
    ) -> Result<Given, InputError> {
        self.known(fixed)?;
        let is_fixed = |name: &str| fixed.get(name).is_some();
        let mut input = Given::new();
        for of in &self.inputs {
            let drawn = if awkward { of.awkward(uniform) } else { of.drawn(uniform) };
            input.push(if is_fixed(&of.name) { of.parse(fixed)? } else { drawn });
        }
        // The largest sizes become smaller until the input keeps the limits.
        loop {
            let work = self.work(&input);
            if self.check(&input).is_ok() && work.flops <= limits.max_flops && work.bytes <= limits.max_bytes {
                return Ok(input);
            }
            let free = self.inputs.iter().enumerate().filter(|(_, of)| !is_fixed(&of.name));
            let smaller = free.filter_map(|(i, of)| Some((i, input[i].as_int()?, of.smaller(&input[i])?)));
            let Some((i, _, next)) = smaller.max_by_key(|(_, size, _)| *size) else { break };
            input[i] = next;
        }
        self.check(&input)?;
        Ok(input)
    }

    fn work(&self, input: &Given) -> Work {
        let value = |name: &str| self.given(input, name);
        let moved = self.specs(input).into_iter().map(|spec| {
            let times = if spec.role == Role::InOut { 2.0 } else { 1.0 };
            times * spec.bytes() as f64
        });
        let number =
            |formula: &Option<Formula>| formula.as_ref().and_then(|f| value_of(f, &value)).filter(|x| *x >= 0.0);
        Work { flops: number(&self.flops).unwrap_or(0.0), bytes: number(&self.bytes).unwrap_or_else(|| moved.sum()) }
    }
}

impl Computation for UserKernel {
    type Input = InputOfUser;

    fn id(&self) -> ComputationId {
        self.0.id.clone().into()
    }

    fn parse(&self, fields: &Config) -> Result<InputOfUser, InputError> {
        self.0.known(fields)?;
        let input = self.0.inputs.iter().map(|of| of.parse(fields)).collect::<Result<Given, _>>()?;
        self.0.check(&input)?;
        Ok(InputOfUser(input))
    }

    fn fields(&self, input: &InputOfUser) -> Config {
        Config(self.0.inputs.iter().zip(&input.0).map(|(of, value)| (of.name.clone(), value.clone())).collect())
    }

    fn work(&self, input: &InputOfUser) -> Work {
        self.0.work(&input.0)
    }

    fn workload(&self, input: &InputOfUser, filling: Filling, seed: u64) -> Workload {
        let specs = self.0.specs(&input.0);
        let constant = |held: &Held| match &held.fill {
            Fill::Constant(formula) => value_of(formula, &|name| self.0.given(&input.0, name)),
            _ => None,
        };
        let fill =
            |(held, spec): ((usize, &Held), &BufferSpec)| filled(held, spec.len, constant(held.1), filling, seed);
        let buffers = self.0.buffers.iter().enumerate().zip(&specs).map(fill).collect();
        Workload { specs, buffers, scalars: Vec::new() }
    }

    fn buffers(&self, input: &InputOfUser) -> Vec<BufferSpec> {
        self.0.specs(&input.0)
    }

    fn scalars(&self, _: &InputOfUser) -> Vec<ScalarSpec> {
        Vec::new()
    }

    fn reference(&self, input: &InputOfUser, before: &Buffers, _: &[f64]) -> Result<Expected, DeviceError> {
        self.0.expected(&input.0, before)
    }

    fn reference_near(
        &self,
        input: &InputOfUser,
        before: &Buffers,
        _: &[f64],
        written: &Written<'_>,
    ) -> Result<Expected, DeviceError> {
        self.0.expected_near(&input.0, before, written)
    }

    fn nudged(&self, _: &InputOfUser, before: &Buffers, seed: u64) -> Option<Buffers> {
        nudged(&self.0.buffers, before, seed)
    }

    fn feature_names(&self) -> Vec<Feature> {
        let feature =
            |of: &crate::inputs::Input| if of.has_words() { Feature::flag(&of.name) } else { Feature::size(&of.name) };
        self.0.inputs.iter().map(feature).collect()
    }

    fn features(&self, input: &InputOfUser, out: &mut Vec<f32>) {
        let number = |(at, value): (usize, &_)| {
            tilewright_core::expr::Value::as_f64(value).unwrap_or_else(|| self.0.word_number(at, value)) as f32
        };
        out.extend(input.0.iter().enumerate().map(number));
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<InputOfUser, InputError> {
        self.0.draw(fixed, limits, uniform, false).map(InputOfUser)
    }

    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<InputOfUser, InputError> {
        self.0.draw(fixed, limits, uniform, true).map(InputOfUser)
    }
}

/// The inputs of a described kernel, in the order of the description.
#[derive(Clone, Debug, PartialEq)]
pub struct InputOfUser(pub(crate) Given);

/// Inputs are integers and words: no value is unequal to itself.
impl Eq for InputOfUser {}

impl std::hash::Hash for InputOfUser {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|value| value.to_string().hash(state));
    }
}
