//! What names data: a file by its contents, a generator with its numbers, or data that the caller holds.

use std::fmt;
use tilewright_core::computation::InputError;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// Why a file holds no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Fault {
    /// From 1; in the pixels of a binary image, the line after the header.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// A number of a generator: whole millionths, so that inputs compare and hash as they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number(i64);

const MILLIONTHS: f64 = 1e6;

impl Number {
    fn of(x: f64) -> Self {
        Self((x * MILLIONTHS).round() as i64)
    }

    fn get(self) -> f64 {
        self.0 as f64 / MILLIONTHS
    }

    fn value(self) -> Value {
        let whole = MILLIONTHS as i64;
        if self.0 % whole == 0 { Value::Int(self.0 / whole) } else { Value::Float(self.get()) }
    }
}

/// A number that a generator takes.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// What it is where it is not given.
    pub default: Option<f64>,
    /// Whether it is an integer.
    pub whole: bool,
    /// The only values, where there are few.
    pub among: &'static [f64],
}

impl Field {
    /// An integer that must be given.
    pub const fn whole(name: &'static str, least: u64, most: u64) -> Self {
        Self { name, least: least as f64, most: most as f64, default: None, whole: true, among: &[] }
    }

    /// A number with at most six decimals that must be given.
    pub const fn real(name: &'static str, least: f64, most: f64) -> Self {
        Self { name, least, most, default: None, whole: false, among: &[] }
    }

    /// One of these integers, in ascending order; the first where it is not given.
    pub const fn one_of(name: &'static str, among: &'static [f64]) -> Self {
        Self { name, least: among[0], most: among[among.len() - 1], default: Some(among[0]), whole: true, among }
    }

    /// The seed, 1 where it is not given.
    pub const fn seed() -> Self {
        Self::whole("seed", 0, 1_000_000_000).or(1.0)
    }

    /// What it is where it is not given.
    #[must_use]
    pub const fn or(self, default: f64) -> Self {
        Self { default: Some(default), ..self }
    }

    fn read(&self, given: Option<&Value>) -> Result<Number, InputError> {
        let range = format!("within {}..={}", self.least, self.most);
        let kind = if self.whole { "an integer" } else { "a number" };
        let refused = |why: String| Err(InputError::new(self.name, why));
        let Some(value) = given else {
            let missing = || InputError::new(self.name, format!("missing: write {}=NUMBER, {kind} {range}", self.name));
            return self.default.map(Number::of).ok_or_else(missing);
        };
        let number = match value {
            Value::Int(_) | Value::Float(_) => value.as_f64(),
            _ => None,
        };
        match number {
            Some(x) if !(self.least..=self.most).contains(&x) => refused(format!("{value} is not {range}")),
            Some(x) if !self.among.is_empty() && !self.among.contains(&x) => {
                refused(format!("{value} is none of {:?}", self.among))
            }
            Some(x) if self.whole && x.fract() != 0.0 => refused(format!("{value} is not an integer {range}")),
            Some(x) if (Number::of(x).get() - x).abs() > 1e-12 * x.abs().max(1.0) => {
                refused(format!("{value} has more than six decimals"))
            }
            Some(x) => Ok(Number::of(x)),
            None => Err(InputError::not(self.name, value, &format!("{kind} {range}"))),
        }
    }
}

/// The numbers of a generator by name.
pub struct Numbers<'a> {
    fields: &'a [Field],
    values: &'a [Number],
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(fields: &'a [Field], values: &'a [Number]) -> Self {
        Self { fields, values }
    }

    /// A number; 0 under a name that is no field.
    pub fn real(&self, name: &str) -> f64 {
        self.fields.iter().position(|f| f.name == name).and_then(|i| self.values.get(i)).map_or(0.0, |n| n.get())
    }

    /// A number as a size.
    pub fn whole(&self, name: &str) -> usize {
        self.real(name) as usize
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.real("seed") as u64
    }
}

/// Makes data from numbers.
pub struct Generator<D> {
    /// The name, which stands where a file's could.
    pub name: &'static str,
    /// What it takes.
    pub fields: &'static [Field],
    /// About how many rows, or vertices, it makes: they take memory also where they have no element; 0 where elements are all there is.
    pub rows: fn(&Numbers<'_>) -> f64,
    /// About how many elements it makes: what no memory holds is refused before it is made.
    pub elements: fn(&Numbers<'_>) -> f64,
    /// Makes the data.
    pub make: fn(&Numbers<'_>) -> D,
    /// Draws numbers, in the order of the fields, for about so many elements.
    pub draw: fn(&mut Dice<'_>, f64) -> Vec<f64>,
}

/// The most elements that a generator makes.
pub const MOST_ELEMENTS: f64 = 2e8;

/// Draws from uniform numbers in [0, 1).
pub struct Dice<'a>(pub &'a mut dyn FnMut() -> f64);

impl Dice<'_> {
    /// A number within these limits whose logarithm is uniform.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        from * (to.max(from) / from).powf((self.0)())
    }

    /// The same, rounded to an integer.
    pub fn count(&mut self, from: f64, to: f64) -> f64 {
        self.log(from, to).round()
    }

    /// A number whose logarithm is uniform, with three decimals.
    pub fn decimal(&mut self, from: f64, to: f64) -> f64 {
        (self.log(from, to) * 1000.0).round() / 1000.0
    }

    /// A uniform number.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.0)()
    }

    /// One of these.
    pub fn pick<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }

    /// An integer below this one, which is above 0.
    pub fn below(&mut self, count: usize) -> usize {
        (((self.0)() * count as f64) as usize).min(count - 1)
    }

    /// True with this probability.
    pub fn chance(&mut self, share: f64) -> bool {
        (self.0)() < share
    }

    /// A seed.
    pub fn seed(&mut self) -> f64 {
        self.below(1_000_000) as f64
    }
}

/// At least this much, as an integer.
pub(crate) fn at_least(x: f64, least: f64) -> f64 {
    x.round().max(least)
}

/// What names data. Two sources are the same if they make the same data: a file goes by its contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A generator with its numbers.
    Made {
        /// Which of the computation's.
        generator: &'static str,
        /// One per field.
        numbers: Vec<Number>,
    },
    /// A file.
    File {
        /// As it was named.
        path: String,
        /// Size and hash of what it held.
        content: Content,
    },
    /// Data that the caller gave to [`crate::described::Described::hold`].
    Held {
        /// As they were named.
        name: String,
        /// Size and hash.
        content: Content,
    },
}

/// What stands before the name of data that the caller holds.
pub(crate) const HELD: &str = "held:";

/// Size and hash of data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    bytes: u64,
    hash: [u8; 8],
}

impl Content {
    /// Of bytes in several parts.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut bytes, mut hasher) = (0, blake3::Hasher::new());
        for part in parts {
            bytes += part.len() as u64;
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut hash = [0; 8];
        hasher.finalize_xof().fill(&mut hash);
        Self { bytes, hash }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.bytes, u64::from_be_bytes(self.hash))
    }
}

/// The generator of this name.
pub(crate) fn generator<'g, D>(all: &'g [Generator<D>], name: &str) -> Option<&'g Generator<D>> {
    all.iter().find(|g| g.name == name)
}

/// The numbers of a generator from input fields.
pub(crate) fn numbers<D>(of: &Generator<D>, fields: &Config) -> Result<Vec<Number>, InputError> {
    let values: Vec<Number> = of.fields.iter().map(|f| f.read(fields.get(f.name))).collect::<Result<_, _>>()?;
    let elements = (of.elements)(&Numbers::new(of.fields, &values));
    if elements > MOST_ELEMENTS { Err(too_many(of, &values, elements)) } else { Ok(values) }
}

/// Names the fields of which one alone, made smaller, would keep a generator within the limit, and how small each has to be.
fn too_many<D>(of: &Generator<D>, values: &[Number], elements: f64) -> InputError {
    let is_within = |at: usize, x: f64| {
        let mut other = values.to_vec();
        other[at] = Number::of(x);
        (of.elements)(&Numbers::new(of.fields, &other)) <= MOST_ELEMENTS
    };
    let sizes = of.fields.iter().enumerate().filter(|(_, f)| f.whole && f.among.is_empty());
    let mut most: Vec<(&str, u64)> = Vec::new();
    for (at, field) in sizes.filter(|(at, f)| is_within(*at, f.least)) {
        let (mut within, mut beyond) = (field.least as u64, values[at].get() as u64);
        while beyond - within > 1 {
            let middle = u64::midpoint(within, beyond);
            *if is_within(at, middle as f64) { &mut within } else { &mut beyond } = middle;
        }
        most.push((field.name, within));
    }
    let names: Vec<&str> = if most.is_empty() {
        of.fields.iter().filter(|f| f.name != "seed").map(|f| f.name).collect()
    } else {
        most.iter().map(|(name, _)| *name).collect()
    };
    let bounds: Vec<String> = most.iter().map(|(name, most)| format!("{name} to at most {most}")).collect();
    let way = if bounds.is_empty() { String::new() } else { format!("; keep {}", bounds.join(", or ")) };
    let message = format!("{} would make {elements:.0} elements, at most {MOST_ELEMENTS:.0} are made{way}", of.name);
    InputError::new(&names.join(" "), message)
}

/// Refuses the first field that is none of these.
pub(crate) fn expect_only(fields: &Config, known: &[&str]) -> Result<(), InputError> {
    match fields.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(InputError::new(name, format!("unknown: expected {}", known.join(" ")))),
        None => Ok(()),
    }
}

/// The fields of a source, complete and in a fixed order.
pub(crate) fn fields<D>(field: &str, source: &Source, all: &[Generator<D>]) -> Config {
    let named = |name: &str, value: Value| (name.to_owned(), value);
    let text = |text: String| Value::Str(text);
    Config(match source {
        Source::Made { generator: name, numbers } => {
            let own = generator(all, name).map_or(&[][..], |g| g.fields);
            let numbers = own.iter().zip(numbers).map(|(f, n)| named(f.name, n.value()));
            std::iter::once(named(field, text((*name).to_owned()))).chain(numbers).collect()
        }
        Source::File { path, content } => {
            vec![named(field, Value::parse(path)), named("content", text(content.to_string()))]
        }
        Source::Held { name, content } => {
            vec![named(field, text(format!("{HELD}{name}"))), named("content", text(content.to_string()))]
        }
    })
}
