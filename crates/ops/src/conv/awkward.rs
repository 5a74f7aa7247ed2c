//! Inputs for checking results: every edge of the input type, and names for what an input is an example of.

use super::draw::{Fields, Uniform, pick, within};
use super::input::{ConvInput, Direction, Layout};
use crate::activation::Activation;
use tilewright_core::computation::{InputError, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

pub(super) fn draw(fixed: &Config, limits: &InputLimits, uniform: Uniform<'_>) -> Result<ConvInput, InputError> {
    let dtype = fixed.get("dtype").map(Value::to_string);
    within(fixed, limits, uniform, &|largest, uniform| candidate(largest, dtype.as_deref(), uniform))
}

/// Of the given element type, if there is one.
fn candidate(largest: f64, dtype: Option<&str>, uniform: Uniform<'_>) -> Fields {
    let mut filters = [0; 2].map(|_| [1, 1, 2, 3, 3, 4, 5, 7][pick(8, uniform)]);
    let dilation = [0; 2].map(|_| if uniform() < 0.15 { 2 + pick(2, uniform) } else { 1 });
    let mut stride = [1; 2];
    if uniform() < 0.4 {
        // Sometimes above the filter: then some of the image is seen by nobody.
        stride = stride.map(|_| 1 + pick(4, uniform));
    }
    let side = largest.min(40.0);
    let mut image = [0; 2].map(|_| size(side, uniform));
    let mut pad = [0; 2];
    for d in 0..2 {
        let extent = dilation[d] * (filters[d] - 1) + 1;
        if uniform() < 0.5 {
            pad[d] = pick(extent, uniform);
        }
        image[d] = image[d].max(extent.saturating_sub(2 * pad[d])).max(1);
        if uniform() < 0.08 {
            // A filter as large as the padded image: one output.
            (filters[d], stride[d]) = ((image[d] + 2 * pad[d] - 1) / dilation[d] + 1, 1 + pick(2, uniform));
        }
    }
    let channels = largest.min(48.0) * 1.5;
    let (mut c, mut k, n) = (size(channels, uniform), size(channels, uniform), size(largest.min(6.0), uniform));
    let mut groups = 1;
    let kind = uniform();
    if kind < 0.08 {
        (k, groups) = (c * (1 + pick(2, uniform)), c);
    } else if kind < 0.2 {
        groups = 2 + pick(3, uniform);
        (c, k) = (c.next_multiple_of(groups), k.next_multiple_of(groups));
    }
    let empty = uniform();
    let is = |at: f64| empty < at && empty >= at - 0.01;
    let (n, c, k) = (if is(0.01) { 0 } else { n }, if is(0.02) { 0 } else { c }, if is(0.03) { 0 } else { k });
    let direction = Direction::ALL[pick(3, uniform)];
    let sizes = [("n", n), ("c", c), ("h", image[0]), ("w", image[1]), ("k", k), ("r", filters[0]), ("s", filters[1])];
    let pairs = [
        ("pad_h", pad[0]),
        ("pad_w", pad[1]),
        ("stride_h", stride[0]),
        ("stride_w", stride[1]),
        ("dilation_h", dilation[0]),
        ("dilation_w", dilation[1]),
        ("groups", groups.max(1)),
    ];
    let types = types(dtype, uniform);
    let forward = direction == Direction::Forward;
    let mut flag = |share: f64| usize::from(forward && uniform() < share);
    let flags = [("bias", flag(0.4)), ("residual", flag(0.25))];
    let activation = if flag(0.4) == 1 { "relu" } else { "none" };
    let words = [("layout", Layout::ALL[pick(2, uniform)].name()), ("direction", direction.name())];
    let numbers = sizes.into_iter().chain(pairs).chain(flags);
    let words = words.into_iter().chain([("activation", activation)]);
    let numbers = numbers.map(|(name, size)| (name, Value::from(size)));
    numbers.chain(words.map(|(name, word)| (name, Value::from(word)))).chain(types).collect()
}

/// Element types, of operands the given one, if there is one, and sometimes a weak alignment.
fn types(dtype: Option<&str>, uniform: Uniform<'_>) -> [(&'static str, Value); 3] {
    let drawn = ["f32", "f32", "f64", "f16", "bf16"][pick(5, uniform)];
    let dtype = dtype.unwrap_or(drawn);
    let out = if matches!(dtype, "f16" | "bf16") && uniform() < 0.5 { "f32" } else { dtype };
    let least = out.parse::<DType>().map_or(1, DType::size);
    let align = if uniform() < 0.2 { least << pick(4, uniform) } else { 64 };
    [("dtype", dtype.into()), ("out", out.into()), ("align", align.into())]
}

/// One, prime, whole tiles, and as it falls, on a logarithmic scale.
fn size(largest: f64, uniform: Uniform<'_>) -> usize {
    let x = (uniform() * largest.max(1.0).ln()).exp();
    let kind = uniform();
    let rounded = match kind {
        k if k < 0.08 => 1.0,
        k if k < 0.25 => [2.0, 3.0, 7.0, 13.0, 17.0, 31.0][pick(6, uniform)],
        k if k < 0.5 => (x / 8.0).ceil() * 8.0,
        _ => x.round(),
    };
    rounded.clamp(1.0, largest.max(1.0)) as usize
}

/// What an input is an example of.
pub(super) fn aspects(input: &ConvInput) -> Vec<String> {
    let types = input.types;
    let mut out = vec![
        format!("dtype:{}", types.operand),
        format!("layout:{}", input.layout.name()),
        format!("direction:{}", input.direction.name()),
        format!("align:{}", input.align),
    ];
    if types.output != types.operand {
        out.push(format!("out:{}", types.output));
    }
    let [p, q] = input.output();
    let named = [
        (input.pad != [0, 0], "padded"),
        (input.stride != [1, 1], "strided"),
        (input.stride[0] > input.r || input.stride[1] > input.s, "stride above the filter"),
        (input.dilation != [1, 1], "dilated"),
        (input.groups > 1, "groups"),
        (input.is_depthwise(), "depthwise"),
        (input.is_pointwise(), "pointwise"),
        (p * q == 1 && input.r * input.s > 1, "filter as large as the padded image"),
        (input.epilogue.bias, "bias"),
        (input.epilogue.residual, "residual"),
        (input.epilogue.activation == Activation::Relu, "relu"),
        ((input.n, input.c, input.k) == (1, 1, 1), "n = c = k = 1"),
    ];
    out.extend(named.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()));
    for (name, size) in [("n", input.n), ("c", input.c), ("k", input.k), ("p", p), ("q", q)] {
        match size {
            0 => out.push(format!("empty {name}")),
            1 => out.push(format!("{name}:1")),
            odd if odd % 2 == 1 => out.push(format!("odd {name}")),
            _ => {}
        }
    }
    out
}
