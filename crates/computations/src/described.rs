//! A description as core's computation: inputs that name data, data that are made when they are needed.

use crate::description::{Description, workload};
use crate::source::{Content, Dice, Fault, Generator, HELD, Numbers, Source, expect_only, fields, generator, numbers};
use crate::store::{Facts, Kept, lock};
use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use tilewright_core::buffer::{BufferSpec, Buffers, Expected, Filling, Role, Workload};
use tilewright_core::computation::{Computation, InputError, InputLimits, Work};
use tilewright_core::expr::Value;
use tilewright_core::feature::Feature;
use tilewright_core::id::ComputationId;
use tilewright_core::program::{DeviceError, ScalarSpec};
use tilewright_core::space::Config;
use tilewright_files::{MOST, read_file};

/// How often a drawn input is made smaller until it is within the limits.
const HALVINGS: usize = 40;

/// Data are kept up to this many bytes together, the latest ones in any case.
const MOST_BYTES: u64 = 1 << 30;
/// Inputs whose facts are kept.
const MOST_FACTS: u64 = 1 << 16;

/// Size, time of the last change and content of a file that was read.
type Seen = (u64, Option<SystemTime>, Content);

/// Data by name, with their content.
type Held<T> = HashMap<String, (Content, Arc<T>)>;

/// A computation on named data.
pub struct Described<D: Description> {
    data: Mutex<Kept<Source, Arc<D::Data>>>,
    facts: Mutex<Kept<Source, Arc<Facts>>>,
    files: Mutex<HashMap<String, Seen>>,
    /// What the caller holds, by name.
    held: Mutex<Held<D::Data>>,
}

impl<D: Description> Default for Described<D> {
    fn default() -> Self {
        let (data, facts) = (Mutex::new(Kept::up_to(MOST_BYTES)), Mutex::new(Kept::up_to(MOST_FACTS)));
        Self { data, facts, files: Mutex::default(), held: Mutex::default() }
    }
}

impl<D: Description> Described<D> {
    /// Gives data a name, `held:NAME` as an input field, until they are released or the name is given again.
    pub fn hold(&self, name: &str, data: D::Data) -> Source {
        let content = content::<D>(&data);
        lock(&self.held).insert(name.to_owned(), (content.clone(), Arc::new(data)));
        Source::Held { name: name.to_owned(), content }
    }

    /// Forgets data that were held.
    pub fn release(&self, name: &str) {
        lock(&self.held).remove(name);
    }

    /// The data of an input: made or read at most once while they are in use.
    ///
    /// # Errors
    /// A file that is gone or changed since it was named, data that are held no more.
    pub fn data(&self, source: &Source) -> Result<Arc<D::Data>, InputError> {
        if let Some(data) = lock(&self.data).get(source) {
            return Ok(data);
        }
        let data = match source {
            Source::Made { generator: name, numbers } => {
                let made = generator(D::GENERATORS, name).map(|g| (g.make)(&Numbers::new(g.fields, numbers)));
                Arc::new(made.unwrap_or_default())
            }
            Source::File { path, content } => {
                let (found, data) = self.read(path)?;
                expect_content(content, &found)?;
                Arc::new(data)
            }
            Source::Held { name, content } => {
                let (found, data) = self.held(name)?;
                expect_content(content, &found)?;
                return Ok(data);
            }
        };
        self.keep(source, &data);
        Ok(data)
    }

    fn held(&self, name: &str) -> Result<(Content, Arc<D::Data>), InputError> {
        let missing = || InputError::new(D::FIELD, format!("{HELD}{name}: no data of this name are held"));
        lock(&self.held).get(name).cloned().ok_or_else(missing)
    }

    /// Remembers data and, the first time, what is known of them.
    fn keep(&self, source: &Source, data: &Arc<D::Data>) -> Arc<Facts> {
        let bytes = D::specs(data).iter().map(|s| (s.len * s.dtype.size()) as u64).sum();
        lock(&self.data).put(source, data.clone(), bytes);
        let known = lock(&self.facts).get(source);
        known.unwrap_or_else(|| {
            let facts = facts_of::<D>(data);
            lock(&self.facts).put(source, facts.clone(), 1);
            facts
        })
    }

    /// What is known of an input.
    pub(crate) fn facts(&self, source: &Source) -> Arc<Facts> {
        let known = lock(&self.facts).get(source);
        known.unwrap_or_else(|| match self.data(source) {
            Ok(data) => self.keep(source, &data),
            // Not kept: the data may come back.
            Err(_) => facts_of::<D>(&D::Data::default()),
        })
    }

    /// Where a contract leaves no room for an error: a program of the same input tells it.
    fn data_or_nothing(&self, source: &Source) -> Arc<D::Data> {
        self.data(source).unwrap_or_default()
    }

    /// Reads a file: its content and its data.
    fn read(&self, path: &str) -> Result<(Content, D::Data), InputError> {
        let fault = |e: &dyn std::fmt::Display| InputError::new(D::FIELD, format!("{path}: {e}"));
        let (size, changed) = stat(path).map_err(|e| fault(&e))?;
        let bytes = read_file(path.as_ref(), MOST).map_err(|e| fault(&e))?;
        let read: Result<D::Data, Fault> = D::read(&bytes).ok_or_else(|| fault(&"this computation reads no files"))?;
        let data = read.map_err(|e| fault(&e))?;
        let content = Content::of([bytes.as_slice()]);
        lock(&self.files).insert(path.to_owned(), (size, changed, content.clone()));
        Ok((content, data))
    }

    /// A file by its name. It is read unless it was read before and not written since.
    fn file(&self, path: &str) -> Result<Source, InputError> {
        let Ok((size, changed)) = stat(path) else {
            let message = format!("{path:?} is neither a file nor one of the generators {}", names::<D>());
            return Err(InputError::new(D::FIELD, message));
        };
        let seen = lock(&self.files).get(path).cloned();
        if let Some((.., content)) = seen.filter(|(s, c, _)| *s == size && *c == changed && c.is_some()) {
            return Ok(Source::File { path: path.to_owned(), content });
        }
        let (content, data) = self.read(path)?;
        let source = Source::File { path: path.to_owned(), content };
        self.keep(&source, &Arc::new(data));
        Ok(source)
    }

    /// The generators that take all fixed fields.
    fn suitable(&self, fixed: &Config) -> Result<Vec<&Generator<D::Data>>, InputError> {
        let named = fixed.get(D::FIELD).map(Value::to_string);
        let called = |g: &&Generator<D::Data>| named.as_ref().is_none_or(|n| n == g.name);
        let takes = |g: &Generator<D::Data>, name: &str| name == D::FIELD || g.fields.iter().any(|f| f.name == name);
        let candidates: Vec<_> = D::GENERATORS.iter().filter(called).collect();
        let fit: Vec<_> =
            candidates.iter().copied().filter(|g| fixed.0.iter().all(|(name, _)| takes(g, name))).collect();
        if !fit.is_empty() {
            return Ok(fit);
        }
        let unknown = fixed.0.iter().find(|(name, _)| !candidates.iter().any(|g| takes(g, name)));
        let name = unknown.or(fixed.0.first()).map_or(D::FIELD, |(name, _)| name.as_str());
        Err(InputError::new(name, "no generator takes this together with the others"))
    }

    /// A drawn source for about so many elements, with the fixed fields.
    fn candidate(
        &self,
        of: &Generator<D::Data>,
        fixed: &Config,
        elements: f64,
        dice: &mut Dice<'_>,
    ) -> Result<Source, InputError> {
        let drawn = (of.draw)(dice, elements);
        let mut all = vec![(D::FIELD.to_owned(), Value::from(of.name))];
        for (field, x) in of.fields.iter().zip(drawn) {
            let drawn = if field.whole { Value::Int(x as i64) } else { Value::Float(x) };
            all.push((field.name.to_owned(), fixed.get(field.name).cloned().unwrap_or(drawn)));
        }
        self.parse(&Config(all))
    }

    fn is_within(&self, source: &Source, limits: &InputLimits) -> bool {
        let Work { flops, bytes } = self.facts(source).work;
        flops <= limits.max_flops && bytes <= limits.max_bytes
    }
}

fn facts_of<D: Description>(data: &D::Data) -> Arc<Facts> {
    Arc::new(Facts { symbols: D::symbols(data), work: D::work(data), features: Default::default() })
}

/// The generators that there are.
fn names<D: Description>() -> String {
    D::GENERATORS.iter().map(|g| g.name).collect::<Vec<_>>().join(" ")
}

/// Size and last change.
fn stat(path: &str) -> std::io::Result<(u64, Option<SystemTime>)> {
    fs::metadata(path).map(|m| (m.len(), m.modified().ok()))
}

fn expect_content(wanted: &Content, found: &Content) -> Result<(), InputError> {
    let changed =
        || InputError::new("content", format!("the data are not those that were named: {found} instead of {wanted}"));
    if wanted == found { Ok(()) } else { Err(changed()) }
}

/// Size and hash of what a computation reads.
fn content<D: Description>(data: &D::Data) -> Content {
    let work = workload::<D>(data, Filling::Real, 0);
    let read = work.specs.iter().zip(&work.buffers).filter(|(s, _)| s.role != Role::Out);
    Content::of(read.map(|(_, b)| b.bytes()))
}

impl<D: Description> Computation for Described<D> {
    type Input = Source;

    fn id(&self) -> ComputationId {
        ComputationId::new(D::NAME)
    }

    fn parse(&self, given: &Config) -> Result<Source, InputError> {
        let name = match (given.get(D::FIELD), D::GENERATORS) {
            (Some(value), _) => value.to_string(),
            (None, [only]) => only.name.to_owned(),
            (None, _) => {
                let known = format!("{}=FILE, or a generator with its numbers: {}", D::FIELD, names::<D>());
                return Err(InputError::new(D::FIELD, format!("missing: write {known}")));
            }
        };
        if name.is_empty() {
            let expected = format!("a file or one of the generators {}", names::<D>());
            return Err(InputError::not(D::FIELD, &Value::from(""), &expected));
        }
        if let Some(of) = generator(D::GENERATORS, &name) {
            let known: Vec<&str> = std::iter::once(D::FIELD).chain(of.fields.iter().map(|f| f.name)).collect();
            expect_only(given, &known)?;
            return Ok(Source::Made { generator: of.name, numbers: numbers(of, given)? });
        }
        let source = match name.strip_prefix(HELD) {
            Some(name) => {
                let (content, _) = self.held(name)?;
                Source::Held { name: name.to_owned(), content }
            }
            None => self.file(&name)?,
        };
        // After the name: the numbers of a generator whose name is mistyped are not at fault.
        expect_only(given, &[D::FIELD, "content"])?;
        if let (Some(wanted), Source::File { content, .. } | Source::Held { content, .. }) =
            (given.get("content"), &source)
            && wanted.to_string() != content.to_string()
        {
            let message = format!("the data are not those that were named: they are {content} instead of {wanted}");
            return Err(InputError::new("content", message));
        }
        Ok(source)
    }

    fn fields(&self, input: &Source) -> Config {
        fields(D::FIELD, input, D::GENERATORS)
    }

    fn work(&self, input: &Source) -> Work {
        self.facts(input).work
    }

    fn workload(&self, input: &Source, filling: Filling, seed: u64) -> Workload {
        workload::<D>(&self.data_or_nothing(input), filling, seed)
    }

    fn buffers(&self, input: &Source) -> Vec<BufferSpec> {
        D::specs(&self.data_or_nothing(input))
    }

    /// What a generator will make is counted by its numbers.
    fn footprint(&self, input: &Source) -> u64 {
        let of = match input {
            Source::Made { generator: name, numbers } => generator(D::GENERATORS, name).zip(Some(numbers)),
            Source::File { .. } | Source::Held { .. } => None,
        };
        let Some((of, numbers)) = of else {
            return self.buffers(input).iter().map(BufferSpec::bytes).fold(0, u64::saturating_add);
        };
        let (numbers, (row, element)) = (Numbers::new(of.fields, numbers), D::BUFFERS);
        ((of.rows)(&numbers) * row + (of.elements)(&numbers) * element) as u64
    }

    fn scalars(&self, _: &Source) -> Vec<ScalarSpec> {
        Vec::new()
    }

    fn reference(&self, input: &Source, before: &Buffers, _: &[f64]) -> Result<Expected, DeviceError> {
        Ok(Expected { buffers: vec![D::reference(&self.data_or_nothing(input), before)] })
    }

    fn feature_names(&self) -> Vec<Feature> {
        let named = |name: &str, flag| if flag { Feature::flag(name) } else { Feature::size(name) };
        D::FEATURES.iter().map(|f| named(f.name, f.flag)).collect()
    }

    fn features(&self, input: &Source, out: &mut Vec<f32>) {
        let facts = self.facts(input);
        let found = || {
            let data = self.data_or_nothing(input);
            let began = Instant::now();
            let values = D::FEATURES.iter().map(|f| (f.of)(&data) as f32).collect();
            (values, began.elapsed().as_secs_f64())
        };
        out.extend(&facts.features.get_or_init(found).0);
    }

    fn features_seconds(&self, input: &Source) -> Option<f64> {
        self.facts(input).features.get().map(|(_, seconds)| *seconds)
    }

    fn draw(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Source, InputError> {
        let is_made = |name: &Value| generator(D::GENERATORS, &name.to_string()).is_some();
        if fixed.get(D::FIELD).is_some_and(|name| !is_made(name)) {
            return self.parse(fixed);
        }
        let suitable = self.suitable(fixed)?;
        let mut dice = Dice(uniform);
        let of = suitable[dice.below(suitable.len())];
        let (least, most) = D::DRAWN;
        let mut elements = dice.log(least, most.min(limits.max_bytes / D::ELEMENT_BYTES).max(least));
        let mut source = self.candidate(of, fixed, elements, &mut dice)?;
        for _ in 0..HALVINGS {
            if self.is_within(&source, limits) {
                break;
            }
            elements /= 2.0;
            source = self.candidate(of, fixed, elements, &mut dice)?;
        }
        Ok(source)
    }

    /// Half of them are the description's own; those that do not agree with what is fixed are left out.
    fn draw_awkward(
        &self,
        fixed: &Config,
        limits: &InputLimits,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Source, InputError> {
        let agrees = |c: &Config| fixed.0.iter().all(|(name, value)| c.get(name) == Some(value));
        let own: Vec<Config> = D::AWKWARD.iter().filter_map(|t| Config::parse(t).ok()).filter(agrees).collect();
        if own.is_empty() || uniform() < 0.5 {
            return self.draw(fixed, limits, uniform);
        }
        self.parse(&own[Dice(uniform).below(own.len())])
    }
}
