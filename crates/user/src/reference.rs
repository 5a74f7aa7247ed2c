//! What is right: another configuration or kernel, a function of the host, arrays, or a closure.

use crate::arguments::{Argument, Held, Kind, What};
use crate::inputs::Given;
use crate::kernel::{Inner, Text};
use crate::launches::Grid;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_core::buffer::{
    Buffer, BufferSpec, Buffers, Expected, ExpectedBuffer, Role, Workload, Written, changed,
};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceSpec, GridPart};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::program::{DeviceError, Program, Step};
use tilewright_core::space::{Config, Symbols};

/// Runs the programs of references.
pub trait Referee: Send + Sync {
    /// The facts of what they run on.
    ///
    /// # Errors
    /// There is no such device.
    fn spec(&self) -> Result<Arc<DeviceSpec>, DeviceError>;

    /// What a program leaves of data: all of it, or at least the blocks in parts of the grid and next to them
    /// ([`Device::run_near`]), with a margin. Also whether blocks were left out.
    ///
    /// # Errors
    /// What the device reports.
    fn run(
        &self,
        program: &Program,
        data: Arc<Workload>,
        near: Option<(&[GridPart], f64)>,
    ) -> Result<(Buffers, bool), DeviceError>;
}

type Open = dyn Fn() -> Result<Box<dyn Device>, DeviceError> + Send + Sync;

/// Devices of their own for references, opened when they are needed: one for each reference that is made at the same time.
pub struct OnDevice {
    open: Box<Open>,
    idle: Mutex<Vec<Box<dyn Device>>>,
}

impl OnDevice {
    /// By what opens the device; it must take source text in the kernel's language.
    pub fn new(open: impl Fn() -> Result<Box<dyn Device>, DeviceError> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), idle: Mutex::default() }
    }

    fn with<R>(&self, act: impl FnOnce(&mut dyn Device) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let there = idle().pop();
        let mut device = match there {
            Some(device) => device,
            None => (self.open)()?,
        };
        let done = act(&mut *device);
        idle().push(device);
        done
    }
}

impl Referee for OnDevice {
    fn spec(&self) -> Result<Arc<DeviceSpec>, DeviceError> {
        self.with(|device| Ok(device.spec().clone()))
    }

    fn run(
        &self,
        program: &Program,
        data: Arc<Workload>,
        near: Option<(&[GridPart], f64)>,
    ) -> Result<(Buffers, bool), DeviceError> {
        self.with(|device| {
            device.upload(&Data::Given(data))?;
            match near {
                Some((parts, margin)) => device.run_near(program, parts, margin)?,
                None => device.run(program)?,
            }
            Ok((device.read()?, device.parts().is_some()))
        })
    }
}

/// Right values of the outputs, in the order of the buffers, from an input and the data before.
pub(crate) type Closure = dyn Fn(&Config, &Buffers) -> Vec<Vec<f64>> + Send + Sync;

/// What results are compared with.
pub(crate) enum Reference {
    /// The kernel in this configuration, or in its default one.
    Configuration(Option<Config>),
    /// Another function, with the parameters of the default configuration.
    Function { text: Text, entry: String, grid: Option<Box<Grid>> },
    /// Arrays for outputs, by the number of their buffer.
    Arrays(Vec<(usize, Vec<f64>)>),
    /// The caller's own.
    Closure(Box<Closure>),
}

/// How far around the parts that ran the reference runs, in sizes of those parts: tiles that do not divide the output shift the others.
const MARGINS: [f64; 3] = [0.0, 1.0, 4.0];

/// Bytes of references that are kept.
const KEPT: usize = 1 << 30;

type Key = [u8; 32];
type Outputs = Arc<Vec<(usize, Vec<f64>)>>;

/// Who computes references, and what was computed.
pub(crate) struct Referred {
    pub(crate) referee: Box<dyn Referee>,
    known: Mutex<Vec<(Key, Outputs)>>,
}

impl Referred {
    pub(crate) fn by(referee: Box<dyn Referee>) -> Self {
        Self { referee, known: Mutex::default() }
    }
}

impl Inner {
    /// The right values with their bounds.
    pub(crate) fn expected(&self, input: &Given, before: &Buffers) -> Result<Expected, DeviceError> {
        Ok(self.bounded(&self.outputs(input, before)?))
    }

    fn bounded(&self, outputs: &[(usize, Vec<f64>)]) -> Expected {
        let buffer = |(index, values): &(usize, Vec<f64>)| {
            let bounds = bounds(&self.buffers[*index], values);
            ExpectedBuffer { index: *index, values: values.clone(), bounds }
        };
        Expected { buffers: outputs.iter().map(buffer).collect() }
    }

    /// The right values where a part of a program wrote. A reference that is a program runs in part too: first the blocks at the same
    /// place of its grid, and more of them until they wrote all that is to be compared.
    pub(crate) fn expected_near(
        &self,
        input: &Given,
        before: &Buffers,
        written: &Written<'_>,
    ) -> Result<Expected, DeviceError> {
        // A function of the host runs whole, once for the same data.
        let on_host = match &self.reference {
            Reference::Function { text, .. } => text.is_host(),
            _ => self.text.is_host(),
        };
        if let (false, Some(program)) = (on_host, self.program_of_reference(input)?) {
            for margin in MARGINS {
                let (after, in_part) = self.refer(&program, before, Some((written.parts, margin)))?;
                if !in_part {
                    return Ok(self.bounded(&self.read(before, &after)?));
                }
                if let Some(expected) = self.where_written(before, &after, written.after) {
                    return Ok(expected);
                }
            }
        }
        self.expected(input, before)
    }

    /// What a run of a part of the reference says of all that another run changed; `None` if it did not come everywhere.
    fn where_written(&self, before: &[Buffer], reference: &[Buffer], after: &[Buffer]) -> Option<Expected> {
        let mut buffers = Vec::new();
        for (index, held) in self.buffers.iter().enumerate().filter(|(_, held)| held.output) {
            let (before, reference, after) = (&before[index], &reference[index], &after[index]);
            // Zeros that are never touched take no memory.
            let (mut values, mut limits) = (vec![0.0; after.components()], vec![0.0f32; after.components()]);
            let mut right = Vec::new();
            for range in changed(before, after) {
                let is_same = |i: usize| before.component(i).to_bits() == reference.component(i).to_bits();
                if range.clone().any(is_same) {
                    return None;
                }
                range.clone().for_each(|i| values[i] = reference.component(i));
                right.extend_from_slice(&values[range]);
            }
            let of_right = bounds(held, &right);
            let mut next = of_right.iter();
            for range in changed(before, after) {
                limits[range].iter_mut().zip(&mut next).for_each(|(limit, of)| *limit = *of);
            }
            buffers.push(ExpectedBuffer { index, values, bounds: limits });
        }
        Some(Expected { buffers })
    }

    /// The right values of outputs, made once for the same data.
    fn outputs(&self, input: &Given, before: &Buffers) -> Result<Outputs, DeviceError> {
        let mut hasher = blake3::Hasher::new();
        for value in input {
            hasher.update(format!("{value}\n").as_bytes());
        }
        for buffer in before {
            hasher.update(buffer.bytes());
        }
        let key: Key = *hasher.finalize().as_bytes();
        // Held while it is made: who needs the same waits instead of making it too.
        let mut known = self.referred.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, outputs)) = known.iter().find(|(of, _)| *of == key) {
            return Ok(outputs.clone());
        }
        let outputs = Arc::new(self.made(input, before)?);
        let bytes = |outputs: &Outputs| outputs.iter().map(|(_, values)| 8 * values.len()).sum::<usize>();
        known.push((key, outputs.clone()));
        while known.len() > 1 && known.iter().map(|(_, outputs)| bytes(outputs)).sum::<usize>() > KEPT {
            known.remove(0);
        }
        Ok(outputs)
    }

    fn made(&self, input: &Given, before: &Buffers) -> Result<Vec<(usize, Vec<f64>)>, DeviceError> {
        match &self.reference {
            Reference::Arrays(arrays) => return self.arrays(arrays, before),
            Reference::Closure(closure) => {
                let fields = self.inputs.iter().zip(input).map(|(of, value)| (of.name.clone(), value.clone()));
                let values = closure(&Config(fields.collect()), before);
                let written = (0..self.buffers.len()).filter(|&i| self.buffers[i].output);
                return Ok(written.zip(values).collect());
            }
            Reference::Configuration(_) | Reference::Function { .. } => {}
        }
        let program = self.program_of_reference(input)?;
        let program = program.ok_or_else(|| DeviceError::Run("the reference is no program".into()))?;
        let (after, _) = self.refer(&program, before, None)?;
        self.read(before, &after)
    }

    /// The program that a reference is, if it is one.
    fn program_of_reference(&self, input: &Given) -> Result<Option<Program>, DeviceError> {
        Ok(match &self.reference {
            Reference::Arrays(_) | Reference::Closure(_) => None,
            Reference::Configuration(config) => {
                let config = self.legal(input, config.as_ref())?;
                let value = |name: &str| config.get(name).map(Value::as_val);
                Some(self.program(input, &value, &config.0))
            }
            Reference::Function { text, entry, grid } => {
                let config = self.legal(input, None)?;
                let value = |name: &str| self.given(input, name).or_else(|| config.get(name).map(Value::as_val));
                let launch = self.launch(text, entry, grid.as_deref(), &self.arguments, &value, &config.0);
                Some(Program::new(vec![Step::Launch(launch)], 0))
            }
        })
    }

    fn refer(
        &self,
        program: &Program,
        before: &Buffers,
        near: Option<(&[GridPart], f64)>,
    ) -> Result<(Buffers, bool), DeviceError> {
        let failed = |error: DeviceError| match error {
            DeviceError::Load(message) => DeviceError::Load(format!("of the reference: {message}")),
            DeviceError::Fault(message) => DeviceError::Run(format!("the reference faulted: {message}")),
            other => DeviceError::Run(format!("the reference failed: {other}")),
        };
        let specs = self.specs_of(before);
        let work = Workload { specs: specs.clone(), buffers: copies(before)?, scalars: Vec::new() };
        self.referred.referee.run(&program.clone().on(specs), Arc::new(work), near).map_err(failed)
    }

    fn specs_of(&self, before: &Buffers) -> Vec<BufferSpec> {
        let spec = |(held, buffer): (&Held, &Buffer)| BufferSpec {
            name: held.name,
            dtype: buffer.dtype(),
            len: buffer.len(),
            role: held.role,
        };
        self.buffers.iter().zip(before).map(spec).collect()
    }

    /// The outputs after a run of the reference.
    fn read(&self, before: &Buffers, after: &Buffers) -> Result<Vec<(usize, Vec<f64>)>, DeviceError> {
        let mut out = Vec::new();
        for (i, held) in self.buffers.iter().enumerate().filter(|(_, held)| held.output) {
            let untouched = before[i].bytes() == after[i].bytes();
            if untouched && held.role == Role::Out && !before[i].is_empty() {
                let message = "it is an output, and the reference writes none of it".to_owned();
                return Err(DeviceError::Argument { name: held.name.to_owned(), message });
            }
            out.push((i, (0..after[i].components()).map(|at| after[i].component(at)).collect()));
        }
        Ok(out)
    }

    fn arrays(&self, arrays: &[(usize, Vec<f64>)], before: &Buffers) -> Result<Vec<(usize, Vec<f64>)>, DeviceError> {
        for (i, values) in arrays {
            if values.len() != before[*i].components() {
                let (name, needs) = (self.buffers[*i].name.to_owned(), before[*i].components());
                let message = format!("the reference's array has {} elements, this input needs {needs}", values.len());
                return Err(DeviceError::Argument { name, message });
            }
        }
        Ok(arrays.to_vec())
    }

    /// A configuration that is legal for the input on the device of references.
    fn legal(&self, input: &Given, wanted: Option<&Config>) -> Result<Config, DeviceError> {
        let run = |message: String| DeviceError::Run(format!("the reference: {message}"));
        let spec = self.referred.referee.spec()?;
        let mut symbols: Symbols = spec.symbols();
        for (of, value) in self.inputs.iter().zip(input) {
            symbols.set(&of.name, value.clone());
        }
        let space = self.space.bind(&symbols).map_err(|e| run(e.to_string()))?;
        let point = match wanted {
            Some(config) => {
                let start =
                    self.start.clone().unwrap_or_else(|| tilewright_core::space::Point(vec![0; space.params().len()]));
                let point = config.to_point(space.params(), Some(&start)).map_err(|e| run(e.to_string()))?;
                space.check(&point).map_err(|e| run(format!("its configuration: {e}")))?;
                point
            }
            None => {
                let start = self.start.clone().filter(|start| space.is_legal(start));
                start.or_else(|| space.first_legal()).ok_or_else(|| run("no configuration is legal".into()))?
            }
        };
        Ok(space.config(&point))
    }
}

fn copies(buffers: &Buffers) -> Result<Buffers, DeviceError> {
    buffers.iter().map(Buffer::try_clone).collect()
}

/// How far each component may be off: as the description says, or by the type's precision relative to the largest.
fn bounds(held: &Held, values: &[f64]) -> Vec<f32> {
    let given = held.tolerance;
    if given.absolute.is_some() || given.relative.is_some() {
        let (absolute, relative) = (given.absolute.unwrap_or(0.0), given.relative.unwrap_or(0.0));
        return values
            .iter()
            .map(|v| if v.is_finite() { (absolute + relative * v.abs()) as f32 } else { 0.0 })
            .collect();
    }
    let usual = match (held.element.kind, held.element.dtype) {
        (Kind::Float, DType::F64) => 1e-12,
        (Kind::Float, DType::F16) => 4e-3,
        (Kind::Float, _) => 1e-5,
        _ => 0.0,
    };
    let largest = values.iter().copied().filter(|v| v.is_finite()).fold(0.0f64, |of, v| of.max(v.abs()));
    vec![(usual * largest) as f32; values.len()]
}

/// The values of an array in the words of a buffer's components.
pub(crate) fn components(array: &crate::npy::Array, held: &Held) -> Result<Vec<f64>, String> {
    let letter = match held.element.kind {
        Kind::Float => "f",
        Kind::Signed => "i",
        Kind::Unsigned => "u",
    };
    let wanted = format!("{letter}{}", held.element.bytes);
    if array.of != wanted && !(array.of == "b1" && held.element.c == "bool") {
        return Err(format!("its elements are {}, the argument's {wanted} ({})", array.of, held.element.c));
    }
    let size = held.element.dtype.size();
    let mut buffer = Buffer::zeroed(held.element.dtype, array.bytes.len() / size);
    buffer.bytes_mut().copy_from_slice(&array.bytes);
    Ok((0..buffer.components()).map(|i| buffer.component(i)).collect())
}

/// The buffer of an argument.
pub(crate) fn buffer_of(arguments: &[Argument], name: &str) -> Option<usize> {
    arguments.iter().find(|a| a.name == name).and_then(|a| if let What::Buffer(i) = a.what { Some(i) } else { None })
}

/// A value as JSON has it in a reference's configuration.
pub(crate) fn config_value(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(b) => Some(Value::Bool(*b)),
        serde_json::Value::String(s) => Some(Value::Str(s.clone())),
        serde_json::Value::Number(n) => n.as_i64().map(Value::Int).or_else(|| n.as_f64().map(Value::Float)),
        _ => None,
    }
}
