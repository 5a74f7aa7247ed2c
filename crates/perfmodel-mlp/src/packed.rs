//! Weights laid out for inference, and the blocked forward pass over them.
//!
//! Rows travel through the network in *panels*: a panel holds [`PANEL_VECTORS`] SIMD vectors of rows, stored feature by
//! feature, so that every vector lane is one row and no horizontal sums are needed. A block of panels passes through
//! one layer after the other while its activations and the layer's weights stay in the second-level cache.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// SIMD vectors of rows in a panel.
const PANEL_VECTORS: usize = 2;

/// Outputs computed together; the packed weights interleave this many columns of the weight matrix. Four by
/// [`PANEL_VECTORS`] makes eight accumulators, just enough to cover a latency of four cycles on two multiply-add pipes,
/// and four divides every width of the paper's networks. Six by two and five by two were measured slower, and four by
/// three spills with AVX2's 16 registers.
const OUTPUT_GROUP: usize = 4;

/// Rows of a block: its activations (256 wide at most in the paper's networks) and the largest layer's weights share
/// half a megabyte of second-level cache.
const BLOCK_ROWS: usize = 96;

/// One dense layer, its weights interleaved by groups of [`OUTPUT_GROUP`] outputs.
#[derive(Debug, Clone)]
struct PackedLayer {
    inputs: usize,
    outputs: usize,
    /// `[group][input][output within the group]`, zero beyond the last output.
    weights: Vec<f32>,
    /// One per output, zero beyond the last.
    bias: Vec<f32>,
}

/// A dense layer as a row-major matrix `[input][output]` and a bias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerView<'a> {
    pub(crate) inputs: usize,
    pub(crate) weights: &'a [f32],
    pub(crate) bias: &'a [f32],
}

impl PackedLayer {
    fn new(layer: LayerView<'_>) -> Self {
        let outputs = layer.bias.len();
        // Without inputs (every column fixed) the kernel still needs one to run over; its weights are zero.
        let inputs = layer.inputs.max(1);
        let groups = outputs.div_ceil(OUTPUT_GROUP);
        let mut weights = Vec::with_capacity(groups * inputs * OUTPUT_GROUP);
        for group in 0..groups {
            for input in 0..inputs {
                for output in group * OUTPUT_GROUP..(group + 1) * OUTPUT_GROUP {
                    let at = input * outputs + output;
                    let exists = input < layer.inputs && output < outputs;
                    weights.push(if exists { layer.weights[at] } else { 0.0 });
                }
            }
        }
        let mut bias = layer.bias.to_vec();
        bias.resize(groups * OUTPUT_GROUP, 0.0);
        Self { inputs, outputs, weights, bias }
    }

    /// Outputs rounded up to whole groups: what the kernel writes.
    fn padded_outputs(&self) -> usize {
        self.bias.len()
    }
}

/// A network ready for inference: rectified linear hidden layers and one linear output.
#[derive(Debug, Clone)]
pub(crate) struct PackedNetwork {
    layers: Vec<PackedLayer>,
}

/// Where the rows of a forward pass come from.
pub(crate) trait PanelSource {
    /// Writes rows `first..first + rows` as the first activations of a panel, `[input][width]` with `rows <= width`.
    /// Lanes beyond `rows` may hold any finite value.
    fn fill(&mut self, first: usize, rows: usize, width: usize, panel: &mut [f32]);
}

impl PackedNetwork {
    pub(crate) fn new<'a>(layers: impl IntoIterator<Item = LayerView<'a>>) -> Self {
        Self { layers: layers.into_iter().map(PackedLayer::new).collect() }
    }

    /// Floating-point operations of one row: a multiplication and an addition for each weight.
    pub(crate) fn flops_per_row(&self) -> u64 {
        self.layers.iter().map(|layer| 2 * (layer.inputs * layer.outputs) as u64).sum()
    }

    /// The widest activation, in floats a row.
    fn widest(&self) -> usize {
        self.layers.iter().map(|layer| layer.inputs.max(layer.padded_outputs())).max().unwrap_or(0)
    }

    /// Writes the network's output for `out.len()` rows of sources, `task` at a time on all threads.
    pub(crate) fn forward_all<P: PanelSource>(&self, task: usize, source: impl Fn() -> P + Sync, out: &mut [f32]) {
        let chunks = out.par_chunks_mut(task).enumerate();
        chunks.for_each(|(at, out)| self.forward(&mut source(), at * task, out));
    }

    /// Writes the network's output for `out.len()` rows from row `first` of the source.
    fn forward(&self, source: &mut impl PanelSource, first: usize, out: &mut [f32]) {
        Arch::new().dispatch(Forward { network: self, source, first, out });
    }
}

struct Forward<'a, P> {
    network: &'a PackedNetwork,
    source: &'a mut P,
    first: usize,
    out: &'a mut [f32],
}

impl<P: PanelSource> WithSimd for Forward<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = PANEL_VECTORS * S::F32_LANES;
        let panels = BLOCK_ROWS.div_ceil(width);
        // Vectors of a panel.
        let stride = self.network.widest() * PANEL_VECTORS;
        let mut front = vec![simd.splat_f32s(0.0); panels * stride];
        let mut back = front.clone();
        let mut first = self.first;
        for block in self.out.chunks_mut(panels * width) {
            let inputs = self.network.layers[0].inputs;
            for (rows, panel) in block.chunks(width).zip(front.chunks_exact_mut(stride)) {
                self.source.fill(first, rows.len(), width, cast_slice_mut(&mut panel[..inputs * PANEL_VECTORS]));
                first += rows.len();
            }
            let used = block.len().div_ceil(width);
            let (last, hidden) = self.network.layers.split_last().expect("a network has an output layer");
            for layer in hidden {
                run_layer::<S, true>(simd, layer, &front, &mut back, used, stride);
                std::mem::swap(&mut front, &mut back);
            }
            run_layer::<S, false>(simd, last, &front, &mut back, used, stride);
            for (rows, panel) in block.chunks_mut(width).zip(back.chunks_exact(stride)) {
                rows.copy_from_slice(&cast_slice::<_, f32>(panel)[..rows.len()]);
            }
        }
    }
}

/// One layer over every panel of a block. The panel stays in the first-level cache while the weights stream past it.
#[inline(always)]
fn run_layer<S: Simd, const RELU: bool>(
    simd: S,
    layer: &PackedLayer,
    from: &[S::f32s],
    to: &mut [S::f32s],
    panels: usize,
    stride: usize,
) {
    for (x, y) in from.chunks_exact(stride).zip(to.chunks_exact_mut(stride)).take(panels) {
        let x = &x[..layer.inputs * PANEL_VECTORS];
        let y = &mut y[..layer.padded_outputs() * PANEL_VECTORS];
        panel_product::<S, RELU>(simd, layer, x, y);
    }
}

/// `y = max(0, W x + b)` for one panel (`W x + b` when `RELU` is false).
#[inline(always)]
fn panel_product<S: Simd, const RELU: bool>(simd: S, layer: &PackedLayer, x: &[S::f32s], y: &mut [S::f32s]) {
    let zero = simd.splat_f32s(0.0);
    let (x, _) = x.as_chunks::<PANEL_VECTORS>();
    let (bias, _) = layer.bias.as_chunks::<OUTPUT_GROUP>();
    let groups = layer.weights.chunks_exact(layer.inputs * OUTPUT_GROUP);
    let targets = y.as_chunks_mut::<PANEL_VECTORS>().0.as_chunks_mut::<OUTPUT_GROUP>().0;
    for ((weights, bias), target) in groups.zip(bias).zip(targets) {
        let mut sums = [[zero; PANEL_VECTORS]; OUTPUT_GROUP];
        for (sum, &bias) in sums.iter_mut().zip(bias) {
            *sum = [simd.splat_f32s(bias); PANEL_VECTORS];
        }
        for (row, weight) in x.iter().zip(weights.as_chunks::<OUTPUT_GROUP>().0) {
            for (sum, &weight) in sums.iter_mut().zip(weight) {
                let weight = simd.splat_f32s(weight);
                for (sum, &value) in sum.iter_mut().zip(row) {
                    *sum = simd.mul_add_f32s(weight, value, *sum);
                }
            }
        }
        for (sum, target) in sums.iter().zip(target) {
            for (&sum, target) in sum.iter().zip(target) {
                // The order keeps a NaN: the second operand is returned when one is not a number.
                *target = if RELU { simd.max_f32s(zero, sum) } else { sum };
            }
        }
    }
}
