//! Inputs for checking results: every edge of the input type, and names for what an input is an example of.

use super::accuracy::Accuracy;
use super::batch::{Batch, STRIDES};
use super::draw::{of_integers, pick, suited, with_fixed, within};
use super::epilogue::Bias;
use super::input::{GemmInput, ScalarClass};
use super::layout::Layout;
use crate::activation::Activation;
use crate::types;
use tilewright_core::computation::{InputError, InputLimits};
use tilewright_core::dtype::DType;
use tilewright_core::element::ElementTypes;
use tilewright_core::space::Config;

const SCALARS: [ScalarClass; 3] = [ScalarClass::Zero, ScalarClass::One, ScalarClass::Other];
/// Share of deep reductions, and of sizes that tiles divide.
const DEEP: f64 = 0.15;
const EVEN: f64 = 0.2;
/// Share of f32, and of f64, of inputs of free types.
const PLAIN: f64 = 0.25;
/// Shares of inputs of f32 whose operands may be rounded, or of complex types that may be made of three products, and of inputs that may have
/// an epilogue.
const ROUNDED: f64 = 0.4;
const FINISHED: f64 = 0.4;
/// Longest reduction.
const DEEPEST: f64 = 20_000.0;
/// A length that even the largest numbers of slices divide into whole stages.
const PARTS: usize = 1536;
/// Elements between columns or products: some keep vectors aligned, some do not.
const GAPS: [usize; 6] = [1, 2, 3, 4, 8, 16];

pub(super) fn draw(
    fixed: &Config,
    limits: &InputLimits,
    uniform: &mut dyn FnMut() -> f64,
) -> Result<GemmInput, InputError> {
    within(limits, uniform, |largest, uniform| candidate(fixed, largest, uniform))
}

fn candidate(fixed: &Config, largest: f64, uniform: &mut dyn FnMut() -> f64) -> Result<GemmInput, InputError> {
    let kind = uniform();
    let mut sizes = [(); 3].map(|()| size(largest, uniform));
    if kind < DEEP {
        // As deep as thin sides allow: where reductions are split most.
        (sizes[0], sizes[1]) = (size(largest.min(24.0), uniform), size(largest.min(24.0), uniform));
        let area = (sizes[0] * sizes[1]).max(1) as f64;
        sizes[2] = (0.5 * largest * largest / area).clamp(1.0, DEEPEST) as usize;
        if sizes[2] > PARTS && uniform() < 0.5 {
            sizes[2] -= sizes[2] % PARTS;
        }
    } else if kind < DEEP + EVEN {
        // What many tiles divide.
        sizes = sizes.map(|size| size.next_multiple_of(16));
    }
    let mut input = GemmInput::new(sizes[0], sizes[1], sizes[2], DType::F32, Layout::ALL[pick(4, uniform)]);
    input.beta = SCALARS[pick(3, uniform)];
    // Nothing is multiplied where alpha = 0: seldom.
    let least = usize::from(uniform() >= 0.06);
    input.alpha = SCALARS[least + pick(3 - least, uniform)];
    if uniform() < 0.2 {
        input.batch = Batch::tight(2 + pick(3, uniform) as u32, &input);
    }
    let derived = &["ld", "stride_"];
    let plain = suited(input, fixed, uniform)?;
    // Of what is fixed some goes with few types: then with that of most inputs.
    let input = with_fixed(varied(plain.clone(), fixed, uniform), fixed, derived);
    let mut input = input.or_else(|_| with_fixed(plain, fixed, derived))?;
    let is_free = |name: &str| fixed.get(name).is_none();
    if uniform() < 0.3 && is_free("align") {
        input.align = (types::least_align(input.types) << pick(4, uniform)).min(64);
    }
    for (name, ld) in [("lda", &mut input.lda), ("ldb", &mut input.ldb), ("ldc", &mut input.ldc)] {
        let gap = if uniform() < 0.2 { GAPS[pick(GAPS.len(), uniform)] } else { 0 };
        *ld += if is_free(name) { gap } else { 0 };
    }
    let (given, tight) = (input.batch.strides, Batch::tight(input.batch.count, &input));
    input.batch = tight;
    for (operand, name) in STRIDES.into_iter().enumerate().filter(|_| tight.count > 1) {
        let gap = if uniform() < 0.5 { GAPS[pick(GAPS.len(), uniform)] as u64 } else { 0 };
        let shared = operand < 2 && uniform() < 0.15;
        let drawn = if shared { 0 } else { tight.strides[operand] + gap };
        input.batch.strides[operand] = if is_free(name) { drawn } else { given[operand] };
    }
    Ok(input)
}

/// The same in any types, layout, accuracy and with any epilogue, as far as none of it is fixed.
fn varied(mut input: GemmInput, fixed: &Config, uniform: &mut dyn FnMut() -> f64) -> GemmInput {
    let is_free = |name: &str| fixed.get(name).is_none();
    if ["dtype", "acc", "out", "accuracy"].into_iter().all(is_free) {
        input.types = any_types(uniform);
        if input.dtype().is_integer() {
            (input.alpha, input.beta) = [input.alpha, input.beta].map(of_integers).into();
        }
        let layouts = Layout::every(input.dtype());
        input.layout = layouts[pick(layouts.len(), uniform)];
    } else if ["acc", "out"].into_iter().all(is_free) {
        // Operands of one type may be summed, and written, in several.
        let same: Vec<ElementTypes> =
            rarer_types().into_iter().filter(|types| types.operand == input.dtype()).collect();
        if same.len() > 1 {
            input.types = same[pick(same.len(), uniform)];
        }
    }
    let ElementTypes { operand, accumulator, output } = input.types;
    if (operand, accumulator) == (DType::F32, DType::F32) && uniform() < ROUNDED {
        input.accuracy = [Accuracy::Tf32, Accuracy::ThreeTf32][pick(2, uniform)];
    } else if operand.is_complex() && uniform() < ROUNDED {
        input.accuracy = Accuracy::ThreeM;
    }
    if uniform() < FINISHED {
        input.epilogue.bias = Bias::ALL[pick(3, uniform)];
        if !output.is_complex() && uniform() < 0.5 {
            input.epilogue.activation = Activation::Relu;
        }
    }
    input
}

/// Types that kernels and libraries have code for, the plain ones more often than the others.
fn any_types(uniform: &mut dyn FnMut() -> f64) -> ElementTypes {
    let kind = uniform();
    if kind < 2.0 * PLAIN {
        return if kind < PLAIN { DType::F32 } else { DType::F64 }.into();
    }
    let all = rarer_types();
    all[pick(all.len(), uniform)]
}

/// All types but the plain ones.
fn rarer_types() -> Vec<ElementTypes> {
    use DType::{Bf16, C32, C64, F16, F32, I8, Tf32};
    let narrow = [F16, Bf16].into_iter().flat_map(|operand| {
        let sums = |accumulator, output| ElementTypes { operand, accumulator, output };
        [operand.into(), sums(F32, F32), sums(operand, operand)]
    });
    narrow.chain([Tf32, C32, C64, I8].map(ElementTypes::of)).collect()
}

/// Empty, one, whole tiles, and as it falls, on a logarithmic scale.
fn size(largest: f64, uniform: &mut dyn FnMut() -> f64) -> usize {
    let x = (uniform() * largest.ln()).exp();
    let kind = uniform();
    let rounded = match kind {
        k if k < 0.015 => return 0,
        k if k < 0.06 => 1.0,
        k if k < 0.30 => {
            let step = [8.0, 16.0, 32.0, 48.0][pick(4, uniform)];
            (x / step).ceil() * step
        }
        k if k < 0.40 => x.log2().round().exp2(),
        k if k < 0.50 => x.log2().round().exp2() - 1.0,
        _ => x.round(),
    };
    rounded.clamp(1.0, largest.max(1.0)) as usize
}

/// What an input is an example of.
pub(super) fn aspects(input: &GemmInput) -> Vec<String> {
    let class = |class| match class {
        ScalarClass::Zero => "0",
        ScalarClass::One => "1",
        ScalarClass::Other => "other",
    };
    let words = input.type_words().chain(input.more_words()).map(|(name, word)| format!("{name}:{word}"));
    let others = [
        format!("layout:{}", input.layout),
        format!("alpha:{}", class(input.alpha)),
        format!("beta:{}", class(input.beta)),
        format!("align:{}", input.align),
    ];
    let mut out: Vec<String> = words.chain(others).collect();
    for (name, size) in [("m", input.m), ("n", input.n), ("k", input.k)] {
        match size {
            0 => out.push(format!("empty {name}")),
            1 => out.push(format!("{name}:1")),
            odd if odd % 2 == 1 => out.push(format!("odd {name}")),
            _ => {}
        }
    }
    let rows = [input.a_stored().0, input.b_stored().0, input.m];
    for ((name, ld), rows) in [("lda", input.lda), ("ldb", input.ldb), ("ldc", input.ldc)].into_iter().zip(rows) {
        out.extend((ld > rows.max(1)).then(|| format!("padded {name}")));
    }
    if input.batch.count > 1 {
        out.push("batch>1".to_owned());
        out.extend(input.batch.strides[..2].contains(&0).then(|| "batch shares an operand".to_owned()));
    }
    out
}
