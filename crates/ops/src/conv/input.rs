//! What a caller of a convolution has.

use super::epilogue::Epilogue;
use super::tensor::Tensors;
use crate::types;
use tilewright_core::computation::{InputError, size_field};
use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::expr::Value;
use tilewright_core::space::{Config, Symbols};

/// Which tensor is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Outputs from images and filters.
    Forward,
    /// The gradient of the images from that of the outputs, and filters.
    Data,
    /// The gradient of the filters from images, and that of the outputs.
    Filter,
}

impl Direction {
    /// Every direction.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Data, Self::Filter];

    /// As in inputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Data => "data",
            Self::Filter => "filter",
        }
    }
}

/// The order of dimensions in memory, the last one contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Images `n c h w`, filters `k c r s`.
    Nchw,
    /// Images `n h w c`, filters `k r s c`.
    Nhwc,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 2] = [Self::Nchw, Self::Nhwc];

    /// As in inputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nchw => "nchw",
            Self::Nhwc => "nhwc",
        }
    }
}

/// One convolution. Pairs are rows first, columns second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvInput {
    /// What is computed.
    pub direction: Direction,
    /// Images.
    pub n: usize,
    /// Channels of an image.
    pub c: usize,
    /// Rows of an image.
    pub h: usize,
    /// Columns of an image.
    pub w: usize,
    /// Output channels.
    pub k: usize,
    /// Rows of a filter.
    pub r: usize,
    /// Columns of a filter.
    pub s: usize,
    /// Zeros on each side of an image.
    pub pad: [usize; 2],
    /// Places of the image from one output to the next.
    pub stride: [usize; 2],
    /// Places of the image from one tap to the next.
    pub dilation: [usize; 2],
    /// Groups that channels and output channels are divided into.
    pub groups: usize,
    /// How tensors lie in memory.
    pub layout: Layout,
    /// Types of what is read, of sums, and of what is written.
    pub types: ElementTypes,
    /// What is done to outputs.
    pub epilogue: Epilogue,
    /// All base addresses are multiples of this many bytes.
    pub align: usize,
}

/// Largest size of a dimension.
const MAX_SIZE: u64 = 1 << 30;
/// Most elements of a tensor: offsets within one are 31-bit numbers.
const MAX_ELEMENTS: u128 = 1 << 31;
const SIZES: [&str; 7] = ["n", "c", "h", "w", "k", "r", "s"];
const PAIRS: [(&str, [&str; 2]); 3] =
    [("pad", ["pad_h", "pad_w"]), ("stride", ["stride_h", "stride_w"]), ("dilation", ["dilation_h", "dilation_w"])];
const OTHERS: [&str; 10] =
    ["groups", "dtype", "acc", "out", "layout", "direction", "bias", "residual", "activation", "align"];

impl ConvInput {
    /// Reads the fields: `n c h w k r s`, where `w` and `s` are `h` and `r` unless they are given, and optional ones. `pad`,
    /// `stride` and `dilation` stand for both of their directions.
    pub(super) fn parse(fields: &Config) -> Result<Self, InputError> {
        let known = || SIZES.into_iter().chain(PAIRS.iter().flat_map(|(both, [h, w])| [*both, *h, *w])).chain(OTHERS);
        if let Some((name, _)) = fields.0.iter().find(|(n, _)| known().all(|k| k != n)) {
            let known = known().collect::<Vec<_>>().join(" ");
            return Err(InputError::new(name, format!("unknown key: a convolution has {known}")));
        }
        let size = |name, least, default: Option<usize>| {
            size_field(fields, name, least, MAX_SIZE, default.map(|x| x as u64)).map(|x| x as usize)
        };
        let (h, r) = (size("h", 1, None)?, size("r", 1, None)?);
        let types = element_types(fields)?;
        let [pad, stride, dilation] = pairs(fields)?;
        let input = Self {
            direction: word(fields, "direction", Direction::ALL.map(|d| (d.name(), d)))?,
            n: size("n", 0, None)?,
            c: size("c", 0, None)?,
            h,
            w: size("w", 1, Some(h))?,
            k: size("k", 0, None)?,
            r,
            s: size("s", 1, Some(r))?,
            pad,
            stride,
            dilation,
            groups: size("groups", 1, Some(1))?,
            layout: word(fields, "layout", Layout::ALL.map(|l| (l.name(), l)))?,
            types,
            epilogue: Epilogue::parse(fields)?,
            align: types::align(fields, types)?,
        };
        input.check()?;
        Ok(input)
    }

    fn check(&self) -> Result<(), InputError> {
        for (d, name) in ["pad_h", "pad_w"].into_iter().enumerate() {
            let (extent, image) = (self.extent()[d], [self.h, self.w][d]);
            if self.pad[d] >= extent {
                let message = format!(
                    "{} is not below {extent}, what a filter spans: the outermost outputs would see nothing but zeros",
                    self.pad[d]
                );
                return Err(InputError::new(name, message));
            }
            if image + 2 * self.pad[d] < extent {
                let message = format!(
                    "{image} and {} of padding on each side are fewer than {extent}, what a filter spans: there is no output",
                    self.pad[d]
                );
                return Err(InputError::new(["h", "w"][d], message));
            }
        }
        for (name, channels) in [("c", self.c), ("k", self.k)] {
            if !channels.is_multiple_of(self.groups) {
                let message = format!("{} does not divide {name}={channels}", self.groups);
                return Err(InputError::new("groups", message));
            }
        }
        self.check_elements()?;
        match self.epilogue.asked().filter(|_| self.direction != Direction::Forward) {
            Some(name) => Err(InputError::new(name, "only outputs of the forward direction are added to or changed")),
            None => Ok(()),
        }
    }

    /// Before anything multiplies sizes in machine words.
    fn check_elements(&self) -> Result<(), InputError> {
        let [p, q] = self.output();
        let product = |sizes: [usize; 4]| sizes.iter().fold(1u128, |all, &size| all.saturating_mul(size as u128));
        let tensors = [
            ("h", "images", [self.n, self.c, self.h, self.w]),
            ("k", "filters", [self.k, self.c / self.groups, self.r, self.s]),
            ("k", "outputs", [self.n, self.k, p, q]),
        ];
        for (field, name, sizes) in tensors {
            let elements = product(sizes);
            if elements >= MAX_ELEMENTS {
                let message = format!("the {name} would have {elements} elements; the limit is {}", MAX_ELEMENTS - 1);
                return Err(InputError::new(field, message));
            }
        }
        Ok(())
    }

    /// Complete, in a fixed order.
    pub(super) fn fields(&self) -> Config {
        let sizes = [self.n, self.c, self.h, self.w, self.k, self.r, self.s];
        let sizes = SIZES.into_iter().zip(sizes);
        let pairs = PAIRS.iter().zip([self.pad, self.stride, self.dilation]);
        let pairs = pairs.flat_map(|((_, names), values)| names.iter().copied().zip(values));
        let sizes = sizes.chain(pairs).chain([("groups", self.groups)]).map(|(name, size)| (name, Value::from(size)));
        let ElementTypes { operand, accumulator, output } = self.types;
        let others = [("acc", accumulator, default_accumulator(operand)), ("out", output, operand)];
        let others = others.into_iter().filter(|(_, dtype, default)| dtype != default).map(|(name, d, _)| (name, d));
        let types = [("dtype", operand)].into_iter().chain(others).map(|(name, dtype)| (name, dtype.name().into()));
        let words = [("layout", self.layout.name().into()), ("direction", self.direction.name().into())];
        let align = [("align", Value::from(self.align))];
        let all = sizes.chain(types).chain(words).chain(self.epilogue.fields()).chain(align);
        Config(all.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Places that a filter spans: `dilation * (r - 1) + 1`.
    pub fn extent(&self) -> [usize; 2] {
        [self.dilation[0] * (self.r - 1) + 1, self.dilation[1] * (self.s - 1) + 1]
    }

    /// Rows and columns of an output.
    pub fn output(&self) -> [usize; 2] {
        let (extent, image) = (self.extent(), [self.h, self.w]);
        [0, 1].map(|d| (image[d] + 2 * self.pad[d] - extent[d]) / self.stride[d] + 1)
    }

    /// The type of what is read.
    pub fn dtype(&self) -> DType {
        self.types.operand
    }

    /// f32 and f64 throughout.
    pub const PLAIN: [ElementTypes; 2] = types::PLAIN;

    /// Refuses other element types than these, for kernels and libraries that have no code for them.
    ///
    /// # Errors
    /// The field, `dtype`, `acc` or `out`, and what may stand there.
    pub fn only(&self, known: &[ElementTypes]) -> Result<(), InputError> {
        types::only(self.types, known)
    }

    /// Whether outputs are products of matrices as they lie in memory: one tap, no padding, no stride, one group.
    pub fn is_pointwise(&self) -> bool {
        (self.r, self.s, self.groups) == (1, 1, 1) && self.stride == [1, 1]
    }

    /// Whether every output sees one channel.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.c
    }

    /// Where elements lie.
    pub fn tensors(&self) -> Tensors {
        Tensors::of(self)
    }

    /// The convolution as a product of matrices, per group: rows, columns, and the length of the reduction.
    ///
    /// Forward `n p q` by `k` over `c r s`; data `n h w` by `c` over `k r s`; filter `c r s` by `k` over `n p q`.
    pub fn as_product(&self) -> [usize; 3] {
        let [p, q] = self.output();
        let (taps, c, k) = (self.r * self.s, self.c / self.groups, self.k / self.groups);
        match self.direction {
            Direction::Forward => [self.n * p * q, k, c * taps],
            Direction::Data => [self.n * self.h * self.w, c, k * taps],
            Direction::Filter => [c * taps, k, self.n * p * q],
        }
    }

    /// How names of [`ConvInput::symbols`] follow from the fields, in the language of rules; of the product of matrices, those of the
    /// forward direction.
    pub fn derivations() -> Vec<(&'static str, String)> {
        let [p, q] = Self::output_texts();
        let mut out = vec![
            ("element", types::SIZES.to_owned()),
            ("nhwc", "layout == 'nhwc'".to_owned()),
            ("is_forward", "direction == 'forward'".to_owned()),
            ("is_data", "direction == 'data'".to_owned()),
            ("is_filter", "direction == 'filter'".to_owned()),
            ("rows", Self::forward_only(&format!("n * {p} * {q}"))),
            ("columns", Self::forward_only("k // groups")),
            ("depth", Self::forward_only("c // groups * (r * s)")),
        ];
        out.extend([("p", p), ("q", q)]);
        out
    }

    /// Rows and columns of an output, in the language of rules.
    pub fn output_texts() -> [String; 2] {
        [("h", "r"), ("w", "s")].map(|(image, filter)| {
            let extent = format!("(dilation_{image} * ({filter} - 1) + 1)");
            format!("(({image} + 2 * pad_{image} - {extent}) // stride_{image} + 1)")
        })
    }

    /// An expression that has no value for the other directions.
    pub fn forward_only(text: &str) -> String {
        format!("({text}) if direction == 'forward' else 1 // 0")
    }

    /// The facts of a device and this input by the names that rules of kernels use.
    pub fn symbols(&self, device: &DeviceSpec) -> Symbols {
        let mut s = device.symbols();
        let [p, q] = self.output();
        let sizes = [self.n, self.c, self.h, self.w, self.k, self.r, self.s];
        SIZES.into_iter().zip(sizes).for_each(|(name, size)| s.set(name, size));
        for ((_, names), values) in PAIRS.iter().zip([self.pad, self.stride, self.dilation]) {
            names.iter().zip(values).for_each(|(name, value)| s.set(name, value));
        }
        s.set("p", p);
        s.set("q", q);
        s.set("groups", self.groups);
        s.set("element", self.dtype().size());
        s.set("nhwc", self.layout == Layout::Nhwc);
        for direction in Direction::ALL {
            s.set(&format!("is_{}", direction.name()), self.direction == direction);
        }
        let [rows, columns, depth] = self.as_product();
        s.set("rows", rows);
        s.set("columns", columns);
        s.set("depth", depth);
        s.set("align", self.align);
        s
    }
}

/// What sums are kept in where nothing else is said: binary32 at least.
const fn default_accumulator(operand: DType) -> DType {
    match operand {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

fn element_types(fields: &Config) -> Result<ElementTypes, InputError> {
    let operand = types::real(fields, "dtype", DType::F32)?;
    let accumulator = types::real(fields, "acc", default_accumulator(operand))?;
    Ok(ElementTypes { operand, accumulator, output: types::real(fields, "out", operand)? })
}

/// Padding, stride and dilation.
fn pairs(fields: &Config) -> Result<[[usize; 2]; 3], InputError> {
    let mut out = [[0; 2], [1; 2], [1; 2]];
    for ((both, names), values) in PAIRS.into_iter().zip(&mut out) {
        let least = values[0] as u64;
        let default = size_field(fields, both, least, MAX_SIZE, Some(least))?;
        for (name, value) in names.into_iter().zip(values) {
            if fields.get(both).is_some() && fields.get(name).is_some() {
                return Err(InputError::new(
                    name,
                    format!("given twice: {both} stands for {} and {}", names[0], names[1]),
                ));
            }
            *value = size_field(fields, name, least, MAX_SIZE, Some(default))? as usize;
        }
    }
    Ok(out)
}

/// A word, the first one by default.
fn word<T: Copy, const N: usize>(fields: &Config, name: &str, known: [(&'static str, T); N]) -> Result<T, InputError> {
    let Some(value) = fields.get(name) else { return Ok(known[0].1) };
    let text = value.to_string();
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    let names = known.map(|(word, _)| word).join(" or ");
    found.ok_or_else(|| InputError::not(name, value, &names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConvInput, InputError> {
        ConvInput::parse(&Config::parse(text).unwrap())
    }

    #[test]
    fn fields_are_read_back() {
        for text in [
            "n=1,c=1,h=1,k=1,r=1",
            "n=2,c=6,h=9,w=7,k=4,r=3,s=2,pad_h=2,stride=2,groups=2,layout=nhwc,direction=data,dtype=f16",
            "n=2,c=6,h=9,w=7,k=4,r=3,s=2,dilation_w=3,bias=1,activation=relu,residual=1,dtype=bf16,out=f32,align=16",
        ] {
            let input = parse(text).unwrap();
            assert_eq!(ConvInput::parse(&input.fields()), Ok(input), "{text}");
        }
        assert_eq!(parse("n=16,c=1,h=161,w=700,k=32,r=5,s=20,stride=2").unwrap().output(), [79, 341]);
    }

    #[test]
    fn what_is_no_convolution_is_refused_by_its_field() {
        let of = "n=1,c=4,h=8,k=4,r=3";
        for (more, field, says) in [
            ("pad=3", "pad_h", "not below 3"),
            ("pad_w=5,dilation=2", "pad_w", "not below 5"),
            ("groups=3", "groups", "c=4"),
            ("dilation=4", "h", "there is no output"),
            ("stride=0", "stride", "1.."),
            ("pad=1,pad_h=1", "pad_h", "given twice"),
            ("layout=chwn", "layout", "nchw or nhwc"),
            ("direction=data,bias=1", "bias", "forward"),
            ("activation=gelu", "activation", "relu"),
            ("dtype=c32", "dtype", "bf16"),
            ("dtype=f16,out=f32,align=2", "align", "4.."),
            ("q=4", "q", "unknown"),
        ] {
            let error = parse(&format!("{of},{more}")).unwrap_err();
            assert_eq!(error.field, field, "{more}");
            assert!(error.message.contains(says), "{more}: {}", error.message);
        }
        for text in ["n=65536,c=1024,h=64,k=4,r=3", "n=65536,c=4,h=64,k=1024,r=3", "n=1,c=65536,h=64,k=65536,r=3"] {
            assert!(parse(text).unwrap_err().message.contains("limit"), "{text}");
        }
    }
}
