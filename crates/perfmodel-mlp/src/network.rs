//! The network's weights.

use ndarray::{Array1, Array2};
use rand::Rng;
use rand::distr::Uniform;

use crate::layout::Layout;
use crate::packed::LayerView;

/// One dense layer: `y = x W + b`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dense {
    /// `[input][output]`, in standard (row-major) order.
    pub(crate) weights: Array2<f32>,
    pub(crate) bias: Array1<f32>,
}

/// Hidden layers with rectified linear units, and one linear output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network {
    pub(crate) layers: Vec<Dense>,
}

impl Network {
    /// Random weights, uniform with variance 2 / inputs (He et al. 2015, eq. 10), so that rectified layers keep the
    /// scale of what passes; biases are 0.
    pub(crate) fn random(layout: &Layout, inputs: usize, rng: &mut impl Rng) -> Self {
        let sizes = layout.sizes(inputs);
        let layers = sizes.windows(2).map(|pair| {
            let reach = (6.0 / pair[0] as f32).sqrt();
            let uniform = Uniform::new_inclusive(-reach, reach).expect("the range is finite and not empty");
            Dense {
                weights: Array2::from_shape_simple_fn((pair[0], pair[1]), || rng.sample(uniform)),
                bias: Array1::zeros(pair[1]),
            }
        });
        Self { layers: layers.collect() }
    }

    /// Widths of the hidden layers.
    pub(crate) fn layout(&self) -> Layout {
        let hidden = &self.layers[..self.layers.len() - 1];
        Layout::new(hidden.iter().map(|layer| layer.bias.len()).collect::<Vec<_>>())
            .expect("a network is made from a layout")
    }

    /// The layers as plain slices.
    pub(crate) fn views(&self) -> impl Iterator<Item = LayerView<'_>> {
        self.layers.iter().map(|layer| LayerView {
            inputs: layer.weights.nrows(),
            weights: layer.weights.as_slice().expect("weights are in standard order"),
            bias: layer.bias.as_slice().expect("a bias is contiguous"),
        })
    }

    /// The definition, in double precision and one row at a time: what the fast paths are tested against.
    #[cfg(test)]
    pub(crate) fn forward_f64(&self, row: &[f32]) -> f64 {
        let mut values: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        let last = self.layers.len() - 1;
        for (index, layer) in self.layers.iter().enumerate() {
            values = (0..layer.bias.len())
                .map(|output| {
                    let products = values.iter().zip(layer.weights.column(output)).map(|(x, &w)| x * f64::from(w));
                    let sum = f64::from(layer.bias[output]) + products.sum::<f64>();
                    if index == last { sum } else { sum.max(0.0) }
                })
                .collect();
        }
        values[0]
    }
}
