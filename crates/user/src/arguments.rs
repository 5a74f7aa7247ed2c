//! What a kernel is given: buffers and scalars, their types and what fills them.

use crate::document;
use crate::error::Fault;
use crate::formula::{Formula, Names};
use crate::npy;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tilewright_core::buffer::Role;
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, Language};

/// What elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Signed,
    Unsigned,
}

/// An element type by its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// In C.
    pub(crate) c: &'static str,
    /// Of a component, as buffers hold it: what core has no type for is held by its bits.
    pub(crate) dtype: DType,
    /// Components as buffers count them.
    pub(crate) lanes: usize,
    pub(crate) kind: Kind,
    /// Bytes of one number.
    pub(crate) bytes: usize,
}

/// Names of scalar types: those of T1, of C, and of Kernel Tuner's users.
const TYPES: [(&[&str], Element); 12] = [
    (&["float", "float32"], Element { c: "float", dtype: DType::F32, lanes: 1, kind: Kind::Float, bytes: 4 }),
    (&["double", "float64"], Element { c: "double", dtype: DType::F64, lanes: 1, kind: Kind::Float, bytes: 8 }),
    (&["half", "float16"], Element { c: "half", dtype: DType::F16, lanes: 1, kind: Kind::Float, bytes: 2 }),
    (&["bool"], Element { c: "bool", dtype: DType::I8, lanes: 1, kind: Kind::Unsigned, bytes: 1 }),
    (&["int8", "char", "signed char"], Element { c: "char", dtype: DType::I8, lanes: 1, kind: Kind::Signed, bytes: 1 }),
    (
        &["uint8", "uchar", "unsigned char"],
        Element { c: "unsigned char", dtype: DType::I8, lanes: 1, kind: Kind::Unsigned, bytes: 1 },
    ),
    (&["int16", "short"], Element { c: "short", dtype: DType::I8, lanes: 2, kind: Kind::Signed, bytes: 2 }),
    (
        &["uint16", "ushort", "unsigned short"],
        Element { c: "unsigned short", dtype: DType::I8, lanes: 2, kind: Kind::Unsigned, bytes: 2 },
    ),
    (&["int32", "int"], Element { c: "int", dtype: DType::I32, lanes: 1, kind: Kind::Signed, bytes: 4 }),
    (
        &["uint32", "uint", "unsigned int", "unsigned"],
        Element { c: "unsigned int", dtype: DType::I32, lanes: 1, kind: Kind::Unsigned, bytes: 4 },
    ),
    (
        &["int64", "long", "long long"],
        Element { c: "long long", dtype: DType::I32, lanes: 2, kind: Kind::Signed, bytes: 8 },
    ),
    (
        &["uint64", "ulong", "unsigned long", "size_t"],
        Element { c: "unsigned long long", dtype: DType::I32, lanes: 2, kind: Kind::Unsigned, bytes: 8 },
    ),
];

/// Vector types of CUDA: so many of a scalar.
const WIDTHS: [usize; 5] = [2, 3, 4, 8, 16];

impl Element {
    /// The type of a name; `float2` is two floats.
    fn named(name: &str) -> Option<(Self, Option<usize>)> {
        let plain = name.trim().trim_end_matches('*').trim().trim_start_matches("const ").trim_end_matches("_t");
        let scalar = |name: &str| TYPES.iter().find(|(names, _)| names.contains(&name)).map(|(_, of)| *of);
        if let Some(found) = scalar(plain).or_else(|| scalar(&format!("{plain}_t"))) {
            return Some((found, None));
        }
        let width = WIDTHS.into_iter().rev().find(|width| plain.ends_with(&width.to_string()))?;
        let of = scalar(plain.trim_end_matches(&width.to_string()))?;
        Some((Self { lanes: of.lanes * width, ..of }, Some(width)))
    }

    /// A number as an argument by value.
    fn arg(&self, value: f64) -> Arg {
        match (self.kind, self.bytes) {
            (Kind::Float, 8) => Arg::F64(value),
            (Kind::Float, 2) => Arg::F16(half(value)),
            (Kind::Float, _) => Arg::F32(value as f32),
            (Kind::Signed, 1) => Arg::I8(value as i8),
            (Kind::Signed, 2) => Arg::I16(value as i16),
            (Kind::Signed, 4) => Arg::I32(value as i32),
            (Kind::Signed, _) => Arg::I64(value as i64),
            (Kind::Unsigned, 1) => Arg::U8(value as u8),
            (Kind::Unsigned, 2) => Arg::U16(value as u16),
            (Kind::Unsigned, 4) => Arg::U32(value as u32),
            (Kind::Unsigned, _) => Arg::U64(value as u64),
        }
    }

    /// Whether a number fits.
    fn holds(&self, value: f64) -> bool {
        let bits = 8 * self.bytes as i32;
        match self.kind {
            Kind::Float => true,
            Kind::Signed => value.fract() == 0.0 && value.abs() < 2f64.powi(bits - 1),
            Kind::Unsigned => value.fract() == 0.0 && (0.0..2f64.powi(bits)).contains(&value),
        }
    }

    /// The type of the address of such elements, in C.
    pub(crate) fn pointer(&self, vector: Option<usize>, language: Language) -> String {
        match (language, self.bytes, vector) {
            // `long` and `long long` are two types of one size: the call must fit either.
            (Language::C, 8, None) if self.kind != Kind::Float => "void *".into(),
            (Language::Cpp, 8, None) if self.kind != Kind::Float => "tilewright_any".into(),
            (Language::C, 1, None) if self.c == "bool" => "_Bool *".into(),
            (_, _, Some(width)) => format!("{}{width} *", self.c),
            _ => format!("{} *", self.c),
        }
    }
}

/// The bits of a binary16, by core's rounding.
fn half(value: f64) -> u16 {
    let mut one = tilewright_core::buffer::Buffer::zeroed(DType::F16, 1);
    one.set_f64(0, value);
    one.as_slice::<u16>()[0]
}

/// What stands in a buffer before a run.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// One number everywhere.
    Constant(Formula),
    /// Reals within plus and minus this, integers from 0 to it.
    Random(f64),
    /// The contents of a file.
    Contents(std::sync::Arc<Vec<u8>>),
}

/// How far results may be from the reference.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerance {
    pub(crate) absolute: Option<f64>,
    pub(crate) relative: Option<f64>,
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) element: Element,
    pub(crate) vector: Option<usize>,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// By value.
    Scalar(Formula),
    /// By address: the number of its buffer.
    Buffer(usize),
}

/// A buffer of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) name: &'static str,
    pub(crate) element: Element,
    /// Elements, over the inputs alone.
    pub(crate) size: Size,
    pub(crate) role: Role,
    pub(crate) fill: Fill,
    /// Whether it is compared.
    pub(crate) output: bool,
    /// Whether it fills a variable of the module.
    pub(crate) symbol: bool,
    pub(crate) tolerance: Tolerance,
    pub(crate) seed: u64,
}

/// A number of elements: over inputs, or the largest of several where parameters decide too.
#[derive(Clone, Debug)]
pub(crate) struct Size(pub(crate) Formula);

impl Argument {
    /// The argument by value or by address, for an input.
    pub(crate) fn arg(&self, value: &dyn Fn(&Formula) -> Option<f64>) -> Arg {
        match &self.what {
            What::Buffer(index) => Arg::Buffer(*index, 0),
            What::Scalar(formula) => self.element.arg(value(formula).unwrap_or(f64::NAN)),
        }
    }

    /// Its type in C.
    pub(crate) fn c_type(&self, language: Language) -> String {
        match self.what {
            What::Buffer(_) => self.element.pointer(self.vector, language),
            What::Scalar(_) if self.element.c == "bool" && language == Language::C => "_Bool".into(),
            What::Scalar(_) => self.element.c.to_owned(),
        }
    }

    /// Whether a value fits its type.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.element.holds(value)
    }
}

/// Reads the arguments.
pub(crate) fn read(
    written: &[document::Argument],
    names: &Names<'_>,
    folder: &Path,
    all: Tolerance,
) -> Result<(Vec<Argument>, Vec<Held>), Fault> {
    let says_output = written.iter().any(|a| a.output.is_some_and(document::Truth::holds));
    let (mut arguments, mut buffers) = (Vec::new(), Vec::<Held>::new());
    for (i, argument) in written.iter().enumerate() {
        let field = format!("KernelSpecification.Arguments[{i}]");
        let given = argument.name.clone().unwrap_or_else(|| format!("arg{i}"));
        if arguments.iter().any(|a: &Argument| a.name == given) {
            return Err(Fault::at(format!("{field}.Name"), format!("{given:?} stands there twice")));
        }
        let name = lasting(&given);
        let (element, vector) = Element::named(&argument.r#type).ok_or_else(|| {
            let known: Vec<&str> = TYPES.iter().flat_map(|(names, _)| names.iter().copied()).collect();
            let message =
                format!("{:?} is no known type: {}, and vectors such as float4", argument.r#type, known.join(" "));
            Fault::at(format!("{field}.Type"), message)
        })?;
        let what = match argument.memory_type.as_str() {
            "Scalar" => What::Scalar(scalar(argument, names, &field)?),
            "Vector" | "Symbol" => {
                buffers.push(held(argument, (name, element), names, folder, &field, says_output, all)?);
                What::Buffer(buffers.len() - 1)
            }
            other => {
                let message = format!("{other:?}: Vector, Scalar and Symbol are served");
                return Err(Fault::at(format!("{field}.MemoryType"), message));
            }
        };
        arguments.push(Argument { name, element, vector, what });
    }
    if !buffers.iter().any(|b| b.output) {
        let message = "no argument is an output: nothing would be compared; mark one with \"Output\": true";
        return Err(Fault::at("KernelSpecification.Arguments", message));
    }
    Ok((arguments, buffers))
}

fn scalar(argument: &document::Argument, names: &Names<'_>, field: &str) -> Result<Formula, Fault> {
    let field = format!("{field}.FillValue");
    let value = argument.fill_value.as_ref().ok_or_else(|| Fault::at(&*field, "missing: the value of a scalar"))?;
    Formula::new(&value.text(), names).map_err(|message| Fault::at(&*field, message))
}

fn held(
    argument: &document::Argument,
    (name, element): (&'static str, Element),
    names: &Names<'_>,
    folder: &Path,
    field: &str,
    says_output: bool,
    all: Tolerance,
) -> Result<Held, Fault> {
    let symbol = argument.memory_type == "Symbol" || argument.mem_type.as_deref() == Some("Constant");
    let role = match argument.access_type.as_deref() {
        Some("WriteOnly") => Role::Out,
        Some("ReadWrite") => Role::InOut,
        Some("ReadOnly") => Role::In,
        None if argument.output.is_some_and(document::Truth::holds) => Role::InOut,
        None => Role::In,
        Some(other) => {
            let message = format!("{other:?}: ReadOnly, WriteOnly or ReadWrite");
            return Err(Fault::at(format!("{field}.AccessType"), message));
        }
    };
    let output = argument.output.map_or(!says_output && role != Role::In, document::Truth::holds);
    if output && role == Role::In {
        return Err(Fault::at(format!("{field}.Output"), "it is read only, so nothing writes it"));
    }
    let size =
        argument.size.as_ref().ok_or_else(|| Fault::at(format!("{field}.Size"), "missing: the number of elements"))?;
    let size = Formula::new(&size.text(), names).map_err(|message| Fault::at(format!("{field}.Size"), message))?;
    let own = argument.tolerance.as_ref();
    let tolerance = own.map_or(all, |t| Tolerance { absolute: t.absolute, relative: t.relative });
    let fill = fill(argument, element, names, folder, field)?;
    let seed = argument.random_seed.unwrap_or(0);
    Ok(Held { name, element, size: Size(size), role, fill, output, symbol, tolerance, seed })
}

fn fill(
    argument: &document::Argument,
    element: Element,
    names: &Names<'_>,
    folder: &Path,
    field: &str,
) -> Result<Fill, Fault> {
    let value = argument.fill_value.as_ref().map(document::Formula::text);
    let formula =
        |text: &str| Formula::new(text, names).map_err(|message| Fault::at(format!("{field}.FillValue"), message));
    match argument.fill_type.as_deref() {
        Some("Constant") => Ok(Fill::Constant(formula(value.as_deref().unwrap_or("0"))?)),
        None if argument.data_source.is_none() => {
            value.map_or(Ok(Fill::Random(1.0)), |text| Ok(Fill::Constant(formula(&text)?)))
        }
        Some("Random") => {
            let usual = if element.kind == Kind::Float { 1.0 } else { 100.0 };
            let most = value.and_then(|text| text.parse::<f64>().ok()).filter(|x| x.is_finite() && x.abs() >= 1.0);
            Ok(Fill::Random(most.map_or(usual, f64::abs)))
        }
        None | Some("BinaryRaw" | "File") => {
            let source = format!("{field}.DataSource");
            let name = argument.data_source.as_ref().ok_or_else(|| Fault::at(&*source, "missing: the file"))?;
            let path = folder.join(name);
            let bytes = if name.ends_with(".npy") {
                npy::read(&path).map(|array| array.bytes)
            } else {
                tilewright_files::read_file(&path, 4 << 30).map_err(|e| format!("{}: {e}", path.display()))
            };
            Ok(Fill::Contents(std::sync::Arc::new(bytes.map_err(|message| Fault::at(&*source, message))?)))
        }
        Some(other) => {
            let message = format!("{other:?}: Constant, Random, and BinaryRaw with a DataSource are served");
            Err(Fault::at(format!("{field}.FillType"), message))
        }
    }
}

/// A name that lives as long as the process. Descriptions have a handful of names; each is kept once.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_name() {
        let lanes = |name: &str| Element::named(name).map(|(e, _)| (e.dtype, e.lanes, e.bytes));
        assert_eq!(lanes("float"), Some((DType::F32, 1, 4)));
        assert_eq!(lanes("float2"), Some((DType::F32, 2, 4)));
        assert_eq!(lanes("int32"), Some((DType::I32, 1, 4)));
        assert_eq!(lanes("uint64"), Some((DType::I32, 2, 8)));
        assert_eq!(lanes("size_t"), Some((DType::I32, 2, 8)));
        assert_eq!(lanes("int64_t"), Some((DType::I32, 2, 8)));
        assert_eq!(lanes("custom"), None);
        assert!(Element::named("int32").unwrap().0.holds(-5.0));
        assert!(!Element::named("uint8").unwrap().0.holds(256.0));
    }
}
