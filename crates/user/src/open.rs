//! From a file to a kernel.

use crate::arguments::{self, Argument, Held, Tolerance, What};
use crate::computation::MOST_SIZES;
use crate::document::{self, Document};
use crate::error::{Fault, UserError};
use crate::formula::{Formula, Names};
use crate::inputs::Input;
use crate::kernel::{Inner, Text, UserKernel};
use crate::launches::{Grid, Launched};
use crate::locate::locate;
use crate::npy;
use crate::reference::{Closure, Referee, Reference, Referred, buffer_of, components, config_value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilewright_core::expr::{ParseError, Value};
use tilewright_core::program::Language;
use tilewright_core::space::{Config, Param, ParamSpace, Point, RuleGroup, written_values};

/// The longest description, and the longest source.
const MOST: u64 = 16 << 20;

/// Where the specification's fields stand.
const SPEC: &str = "KernelSpecification";

impl UserKernel {
    /// Reads a description (Kernel Tuner's T1, with the optional fields of Tilewright) and the source that it names, beside it. References
    /// that are programs are run by `referee`. Nothing is compiled yet, and nothing of the description is executed.
    ///
    /// # Errors
    /// A file that cannot be read, a field that is missing, unknown or wrong, with its line and column.
    pub fn open(path: &Path, referee: Box<dyn Referee>) -> Result<Self, UserError> {
        let text = text_of(path).map_err(|message| UserError::new(path, "", message))?;
        let document: Document = serde_json::from_str(&text)
            .map_err(|e| UserError { at: Some((e.line(), e.column())), ..UserError::new(path, "", e.to_string()) })?;
        let inner = inner(path, &text, &document, referee);
        let placed = |fault: Fault| UserError {
            at: locate(&text, &fault.field),
            ..UserError::new(path, &fault.field, fault.message)
        };
        Ok(Self(Arc::new(inner.map_err(placed)?)))
    }

    /// The same kernel, compared with what a closure says: right values of the outputs in their order, from the input's fields and the
    /// buffers before a run.
    ///
    /// # Panics
    /// If the kernel is in use already.
    #[must_use]
    pub fn compared_with(
        mut self,
        closure: impl Fn(&Config, &tilewright_core::buffer::Buffers) -> Vec<Vec<f64>> + Send + Sync + 'static,
    ) -> Self {
        let Some(inner) = Arc::get_mut(&mut self.0) else { panic!("the reference of a kernel that is in use") };
        let closure: Box<Closure> = Box::new(closure);
        inner.reference = Reference::Closure(closure);
        self
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let bytes = tilewright_files::read_file(path, MOST).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
    // Editors on Windows begin a file with the mark of its byte order, which JSON does not know.
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// One of two places of a field.
fn either<'d, T>(inside: &'d Option<T>, outside: &'d Option<T>, name: &str) -> Result<(Option<&'d T>, String), Fault> {
    match (inside, outside) {
        (Some(_), Some(_)) => Err(Fault::at(name, format!("it stands here and in {SPEC}: keep one"))),
        (Some(value), None) => Ok((Some(value), format!("{SPEC}.{name}"))),
        (None, value) => Ok((value.as_ref(), name.to_owned())),
    }
}

fn inner(path: &Path, written: &str, document: &Document, referee: Box<dyn Referee>) -> Result<Inner, Fault> {
    let spec = &document.kernel_specification;
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = source(spec, folder)?;
    let params = parameters(&document.configuration_space)?;
    let (inputs, _) = either(&spec.inputs, &document.inputs, "Inputs")?;
    let inputs = read_inputs(inputs.map_or(&[], Vec::as_slice), &params)?;
    let problem = spec.problem_size.as_ref().map_or(Vec::new(), document::OneOrMore::texts);
    let names = Names { inputs: inputs.iter().map(|i| i.name.clone()).collect(), params: &params, problem };
    let (tolerance, _) = either(&spec.tolerance, &document.tolerance, "Tolerance")?;
    let tolerance =
        tolerance.map_or_else(Tolerance::default, |t| Tolerance { absolute: t.absolute, relative: t.relative });
    let missing = || Fault::at(SPEC, "Arguments is missing: what the kernel is given");
    let list = spec.arguments.as_ref().ok_or_else(missing)?;
    let (arguments, buffers) = arguments::read(list, &names, folder, tolerance)?;
    check_sizes(&buffers, &params)?;
    let launches = launches(spec, &arguments, &names, text.is_host())?;
    let space = space(&document.configuration_space, &params, &launches)?;
    let start = start(&document.configuration_space, &space)?;
    let (work, at) = either(&spec.work, &document.work, "Work")?;
    let amount = |of: Option<&document::Formula>, part: &str| {
        let formula = of.map(|f| Formula::new(&f.text(), &names)).transpose();
        formula.map_err(|message| Fault::at(format!("{at}.{part}"), message))
    };
    let flops = amount(work.and_then(|w| w.flops.as_ref()), "Flops")?;
    let bytes = amount(work.and_then(|w| w.bytes.as_ref()), "Bytes")?;
    let (reference, at) = either(&spec.reference, &document.reference, "Reference")?;
    let reference =
        read_reference(reference, &at, &Beside { folder, spec, text: &text, names: &names }, (&arguments, &buffers))?;
    let id = identity(&spec.kernel_name, written, &text);
    let referred = Referred::by(referee);
    let options = spec.compiler_options.clone();
    Ok(Inner {
        file: path.to_owned(),
        id,
        text,
        options,
        space,
        start,
        inputs,
        arguments,
        buffers,
        launches,
        flops,
        bytes,
        reference,
        referred,
        counted: None,
    })
}

/// A name for files: what letters the kernel's has, and a hash of everything that it is made of.
fn identity(kernel: &str, description: &str, text: &Text) -> String {
    let name: String = kernel.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let mut hasher = blake3::Hasher::new();
    let included = tilewright_compile::beside(&text.path, &text.text);
    let parts = [description.as_bytes(), text.text.as_bytes()].into_iter();
    for part in parts.chain(included.iter().map(|(_, bytes)| bytes.as_slice())) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    format!("{}.{}", if name.is_empty() { "kernel" } else { &name }, &hasher.finalize().to_hex()[..8])
}

fn source(spec: &document::Kernel, folder: &Path) -> Result<Text, Fault> {
    let field = |name: &str| format!("{SPEC}.{name}");
    if spec.kernel_name.trim().is_empty() {
        return Err(Fault::at(field("KernelName"), "the name of the kernel in its source"));
    }
    read_source(&spec.language, &spec.kernel_file, folder, &field("Language"), &field("KernelFile"))
}

fn read_source(language: &str, file: &str, folder: &Path, of_language: &str, of_file: &str) -> Result<Text, Fault> {
    let language = match language.to_ascii_lowercase().as_str() {
        "cuda" | "cupy" | "nvcuda" => Some(Language::Cuda),
        "c" => Some(Language::C),
        "c++" | "cpp" | "cxx" => Some(Language::Cpp),
        "ptx" => None,
        _ => return Err(Fault::at(of_language, format!("{language:?} is not served: CUDA, C, C++ or PTX"))),
    };
    let path = find(folder, file)
        .ok_or_else(|| Fault::at(of_file, format!("there is no file {file:?} beside the description")))?;
    let text = text_of(&path).map_err(|message| Fault::at(of_file, format!("{}: {message}", path.display())))?;
    if text.trim().is_empty() {
        return Err(Fault::at(of_file, format!("{} is empty", path.display())));
    }
    Ok(Text { language, path, text })
}

/// As Kernel Tuner looks for it: beside the description, or in the folder above.
fn find(folder: &Path, file: &str) -> Option<PathBuf> {
    let above = folder.parent().map(|parent| parent.join(file));
    [Some(folder.join(file)), above].into_iter().flatten().find(|path| path.is_file())
}

fn parameters(space: &document::Space) -> Result<Vec<Param>, Fault> {
    let mut out = Vec::new();
    for (i, parameter) in space.tuning_parameters.iter().enumerate() {
        let field = format!("ConfigurationSpace.TuningParameters[{i}]");
        let values =
            written_values(&parameter.values).map_err(|message| Fault::at(format!("{field}.Values"), message))?;
        out.push(Param { name: parameter.name.clone(), values });
        Param::check(&out).map_err(|e| Fault::at(field, e.to_string()))?;
    }
    Ok(out)
}

fn read_inputs(written: &[document::Input], params: &[Param]) -> Result<Vec<Input>, Fault> {
    let mut out: Vec<Input> = Vec::new();
    for (i, input) in written.iter().enumerate() {
        let field = format!("Inputs[{i}]");
        let name = &input.name;
        let mut letters = name.chars();
        let is_word = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_');
        if !is_word {
            return Err(Fault::at(format!("{field}.Name"), format!("{name:?} is no name: letters, digits and _")));
        }
        if out.iter().any(|known| known.name == *name) || params.iter().any(|p| p.name == *name) {
            return Err(Fault::at(
                format!("{field}.Name"),
                format!("{name:?} stands there twice, or is a parameter too"),
            ));
        }
        out.push(Input::read(name, &input.values, &field)?);
    }
    Ok(out)
}

/// Refuses buffers whose size too many combinations of parameters decide.
fn check_sizes(buffers: &[Held], params: &[Param]) -> Result<(), Fault> {
    for held in buffers {
        let used = params.iter().filter(|p| held.size.0.names().contains(&p.name));
        let combinations = used.map(|p| p.values.len()).fold(1usize, usize::saturating_mul);
        if combinations > MOST_SIZES {
            let message = format!(
                "{combinations} combinations of parameters decide about the size of {:?}, at most {MOST_SIZES}",
                held.name
            );
            return Err(Fault::at(format!("{SPEC}.Arguments"), message));
        }
    }
    Ok(())
}

fn launches(
    spec: &document::Kernel,
    arguments: &[Argument],
    names: &Names<'_>,
    host: bool,
) -> Result<Vec<Launched>, Fault> {
    let all: Vec<usize> = (0..arguments.len()).collect();
    let main = spec.launch();
    let Some(steps) = &spec.steps else {
        let grid = if host { None } else { Some(Grid::read(main, None, names, SPEC)?) };
        return Ok(vec![Launched { entry: spec.kernel_name.clone(), args: all, grid }]);
    };
    let mut out = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let field = format!("{SPEC}.Steps[{i}]");
        let args = match &step.arguments {
            None => all.clone(),
            Some(wanted) => {
                let find = |name: &String| arguments.iter().position(|a| a.name == name);
                let unknown =
                    |name: &String| Fault::at(format!("{field}.Arguments"), format!("{name:?} is no argument"));
                wanted.iter().map(|name| find(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?
            }
        };
        let grid = if host { None } else { Some(Grid::read(step.launch(), Some(main), names, &field)?) };
        out.push(Launched { entry: step.kernel_name.clone(), args, grid });
    }
    if out.is_empty() {
        return Err(Fault::at(format!("{SPEC}.Steps"), "no step"));
    }
    Ok(out)
}

fn space(written: &document::Space, params: &[Param], launches: &[Launched]) -> Result<ParamSpace, Fault> {
    let mut builder = ParamSpace::builder().params(params.to_vec());
    for (i, condition) in written.conditions.iter().enumerate() {
        let text = &condition.expression;
        let parsed: Result<tilewright_core::expr::Expr, ParseError> = text.parse();
        parsed.map_err(|e| {
            Fault::at(format!("ConfigurationSpace.Conditions[{i}].Expression"), format!("{text:?}: {e}"))
        })?;
        builder = builder.rule(text, RuleGroup::User, text, "");
    }
    for (i, launched) in launches.iter().enumerate() {
        if let Some(grid) = &launched.grid {
            builder = grid.rules(builder, i);
        }
    }
    builder.build().map_err(|e| Fault::at("ConfigurationSpace", e.to_string()))
}

/// The default configuration, where every parameter says its own.
fn start(written: &document::Space, space: &ParamSpace) -> Result<Option<Point>, Fault> {
    let mut point = Vec::new();
    for (i, (parameter, param)) in written.tuning_parameters.iter().zip(space.params()).enumerate() {
        let Some(default) = &parameter.default else { return Ok(None) };
        let field = format!("ConfigurationSpace.TuningParameters[{i}].Default");
        let value = config_value(default).map(|value| match &value {
            Value::Str(text) if param.index_of(&value).is_none() => Value::parse(text),
            _ => value,
        });
        let index = value.as_ref().and_then(|value| param.index_of(value));
        point.push(
            index.ok_or_else(|| Fault::at(field, format!("{default} is none of the values of {:?}", param.name)))?,
        );
    }
    Ok(Some(Point(point)))
}

/// What a reference is read beside.
struct Beside<'d> {
    folder: &'d Path,
    spec: &'d document::Kernel,
    text: &'d Text,
    names: &'d Names<'d>,
}

fn read_reference(
    written: Option<&document::Reference>,
    at: &str,
    beside: &Beside<'_>,
    (arguments, buffers): (&[Argument], &[Held]),
) -> Result<Reference, Fault> {
    let Some(written) = written else { return Ok(Reference::Configuration(None)) };
    let part = |name: &str| format!("{at}.{name}");
    let kinds = [
        written.configuration.is_some(),
        written.file.is_some() || written.files.is_some(),
        written.kernel_name.is_some(),
    ];
    if kinds.iter().filter(|kind| **kind).count() != 1 {
        return Err(Fault::at(at, "one of KernelName (with KernelFile and Language), Configuration, File or Files"));
    }
    if let Some(config) = &written.configuration {
        let value = |(name, value): (&String, &serde_json::Value)| {
            let found = config_value(value)
                .ok_or_else(|| Fault::at(part(&format!("Configuration.{name}")), format!("{value} is no value")))?;
            let known = beside.names.params.iter().find(|p| p.name == *name);
            let param = known.ok_or_else(|| Fault::at(part("Configuration"), format!("{name:?} is no parameter")))?;
            match param.index_of(&found) {
                Some(_) => Ok((name.clone(), found)),
                None => Err(Fault::at(
                    part(&format!("Configuration.{name}")),
                    format!("{value} is none of the parameter's values"),
                )),
            }
        };
        return Ok(Reference::Configuration(Some(Config(config.iter().map(value).collect::<Result<_, _>>()?))));
    }
    if let Some(entry) = &written.kernel_name {
        let language = written.language.as_deref().unwrap_or(&beside.spec.language);
        let text = match &written.kernel_file {
            Some(file) => read_source(language, file, beside.folder, &part("Language"), &part("KernelFile"))?,
            None => beside.text.clone(),
        };
        let grid = if text.is_host() {
            None
        } else {
            Some(Box::new(Grid::read(written.launch(), Some(beside.spec.launch()), beside.names, at)?))
        };
        return Ok(Reference::Function { text, entry: entry.clone(), grid });
    }
    arrays(written, at, beside.folder, (arguments, buffers))
}

fn arrays(
    written: &document::Reference,
    at: &str,
    folder: &Path,
    (arguments, buffers): (&[Argument], &[Held]),
) -> Result<Reference, Fault> {
    let outputs: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].output).collect();
    let read = |field: String, index: usize, file: &str| {
        let array = npy::read(&folder.join(file)).and_then(|array| components(&array, &buffers[index]));
        array.map(|values| (index, values)).map_err(|message| Fault::at(field, message))
    };
    if let Some(file) = &written.file {
        let field = format!("{at}.File");
        let [only] = outputs.as_slice() else {
            return Err(Fault::at(
                field,
                format!("there are {} outputs: name a file for each in Files", outputs.len()),
            ));
        };
        return Ok(Reference::Arrays(vec![read(field, *only, file)?]));
    }
    let mut found = Vec::new();
    for (name, file) in written.files.iter().flatten() {
        let field = format!("{at}.Files.{name}");
        let index = buffer_of(arguments, name).filter(|i| outputs.contains(i));
        let index = index.ok_or_else(|| Fault::at(&*field, format!("{name:?} is no output")))?;
        let file = file.as_str().ok_or_else(|| Fault::at(&*field, "the name of a file"))?;
        found.push(read(field, index, file)?);
    }
    if found.len() == outputs.len() {
        return Ok(Reference::Arrays(found));
    }
    let without = outputs.iter().find(|i| !found.iter().any(|(known, _)| known == *i));
    let name = without.map_or("", |&i| match arguments.iter().find(|a| matches!(a.what, What::Buffer(b) if b == i)) {
        Some(argument) => argument.name,
        None => "",
    });
    Err(Fault::at(format!("{at}.Files"), format!("output {name:?} has no file")))
}
