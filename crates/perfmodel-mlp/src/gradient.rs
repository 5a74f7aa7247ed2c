//! Loss and gradient of a mini-batch, computed by shards in parallel.
//!
//! A batch is cut into shards of a fixed number of rows, whatever the number of threads, and their gradients are added
//! in order: the same seed gives the same bytes on one thread and on many.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, Zip, s};
use rayon::prelude::*;

use crate::network::{Dense, Network};

/// Rows of a shard.
const SHARD_ROWS: usize = 128;

/// Buffers of one shard.
#[derive(Debug)]
struct Shard {
    input: Array2<f32>,
    target: Array1<f32>,
    /// Outputs of each layer, after the rectifier.
    outputs: Vec<Array2<f32>>,
    /// Derivatives of the loss by the outputs before the rectifier.
    deltas: Vec<Array2<f32>>,
    gradient: Network,
    squared_error: f64,
}

impl Shard {
    fn new(network: &Network, rows: usize) -> Self {
        let per_layer = || network.layers.iter().map(|layer| Array2::zeros((rows, layer.bias.len()))).collect();
        Self {
            input: Array2::zeros((rows, network.layers[0].weights.nrows())),
            target: Array1::zeros(rows),
            outputs: per_layer(),
            deltas: per_layer(),
            gradient: zeros_like(network),
            squared_error: 0.0,
        }
    }

    /// Gradient of the mean squared error of a batch of `batch` rows, of which this shard takes `rows`.
    fn run(&mut self, network: &Network, x: ArrayView2<'_, f32>, y: &[f32], rows: &[usize], batch: usize) {
        for (at, &row) in rows.iter().enumerate() {
            self.input.row_mut(at).assign(&x.row(row));
            self.target[at] = y[row];
        }
        self.forward(network, rows.len());
        self.backward(network, rows.len(), batch);
    }

    fn forward(&mut self, network: &Network, rows: usize) {
        let last = network.layers.len() - 1;
        for (index, layer) in network.layers.iter().enumerate() {
            let (before, after) = self.outputs.split_at_mut(index);
            let input = before.last().unwrap_or(&self.input).slice(s![..rows, ..]);
            let mut output = after[0].slice_mut(s![..rows, ..]);
            general_mat_mul(1.0, &input, &layer.weights, 0.0, &mut output);
            for mut row in output.rows_mut() {
                Zip::from(&mut row).and(&layer.bias).for_each(|value, &bias| {
                    let sum = *value + bias;
                    *value = if index < last && sum < 0.0 { 0.0 } else { sum };
                });
            }
        }
    }

    fn backward(&mut self, network: &Network, rows: usize, batch: usize) {
        let last = network.layers.len() - 1;
        self.squared_error = 0.0;
        for row in 0..rows {
            let error = self.outputs[last][[row, 0]] - self.target[row];
            self.squared_error += f64::from(error).powi(2);
            self.deltas[last][[row, 0]] = 2.0 * error / batch as f32;
        }
        for index in (0..=last).rev() {
            let (before, after) = self.deltas.split_at_mut(index);
            let delta = after[0].slice(s![..rows, ..]);
            let input = if index == 0 { &self.input } else { &self.outputs[index - 1] }.slice(s![..rows, ..]);
            let gradient = &mut self.gradient.layers[index];
            general_mat_mul(1.0, &input.t(), &delta, 0.0, &mut gradient.weights);
            gradient.bias.assign(&delta.sum_axis(Axis(0)));
            if let Some(previous) = before.last_mut() {
                let mut previous = previous.slice_mut(s![..rows, ..]);
                general_mat_mul(1.0, &delta, &network.layers[index].weights.t(), 0.0, &mut previous);
                Zip::from(&mut previous).and(&input).for_each(|delta, &output| {
                    *delta = if output > 0.0 { *delta } else { 0.0 };
                });
            }
        }
    }
}

fn zeros_like(network: &Network) -> Network {
    let layers = network
        .layers
        .iter()
        .map(|layer| Dense { weights: Array2::zeros(layer.weights.raw_dim()), bias: Array1::zeros(layer.bias.len()) });
    Network { layers: layers.collect() }
}

/// Computes gradients of mini-batches, reusing its buffers.
#[derive(Debug)]
pub(crate) struct Gradients {
    shards: Vec<Shard>,
    sum: Network,
}

impl Gradients {
    /// Buffers for batches of at most `batch` rows.
    pub(crate) fn new(network: &Network, batch: usize) -> Self {
        let shards = batch.div_ceil(SHARD_ROWS);
        let rows = SHARD_ROWS.min(batch);
        Self { shards: (0..shards).map(|_| Shard::new(network, rows)).collect(), sum: zeros_like(network) }
    }

    /// The sum of squared errors of the batch `rows`, and the gradient of their mean.
    pub(crate) fn of_batch(
        &mut self,
        network: &Network,
        x: ArrayView2<'_, f32>,
        y: &[f32],
        rows: &[usize],
    ) -> (f64, &Network) {
        let used = rows.len().div_ceil(SHARD_ROWS);
        let shards = &mut self.shards[..used];
        shards
            .par_iter_mut()
            .zip(rows.par_chunks(SHARD_ROWS))
            .for_each(|(shard, part)| shard.run(network, x, y, part, rows.len()));
        for (index, sum) in self.sum.layers.iter_mut().enumerate() {
            sum.weights.assign(&shards[0].gradient.layers[index].weights);
            sum.bias.assign(&shards[0].gradient.layers[index].bias);
            for shard in &shards[1..] {
                sum.weights += &shard.gradient.layers[index].weights;
                sum.bias += &shard.gradient.layers[index].bias;
            }
        }
        (shards.iter().map(|shard| shard.squared_error).sum(), &self.sum)
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::layout::Layout;

    fn mse(network: &Network, x: &Array2<f32>, y: &[f32]) -> f64 {
        let errors = x.rows().into_iter().zip(y).map(|(row, &y)| network.forward_f64(&row.to_vec()) - f64::from(y));
        errors.map(|error| error * error).sum::<f64>() / y.len() as f64
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let layout = Layout::new(vec![9, 7]).unwrap();
        let mut network = Network::random(&layout, 4, &mut rng);
        // More rows than two shards, the last one ragged.
        let x = Array2::from_shape_simple_fn((2 * SHARD_ROWS + 3, 4), || rng.random_range(-1.0f32..1.0));
        let y: Vec<f32> = (0..x.nrows()).map(|_| rng.random_range(-1.0..1.0)).collect();
        let rows: Vec<usize> = (0..x.nrows()).rev().collect();
        let mut gradients = Gradients::new(&network, rows.len());
        let (squared_error, gradient) = gradients.of_batch(&network, x.view(), &y, &rows);
        let gradient = gradient.clone();
        let exact = mse(&network, &x, &y);
        assert!((squared_error / y.len() as f64 - exact).abs() < 1e-5 * exact);
        let step = 1e-3f32;
        for layer in 0..3 {
            for (input, output) in [(0, 0), (3, 0)] {
                let weight = network.layers[layer].weights[[input, output]];
                network.layers[layer].weights[[input, output]] = weight + step;
                let above = mse(&network, &x, &y);
                network.layers[layer].weights[[input, output]] = weight - step;
                let below = mse(&network, &x, &y);
                network.layers[layer].weights[[input, output]] = weight;
                let numeric = (above - below) / (2.0 * f64::from(step));
                let ours = f64::from(gradient.layers[layer].weights[[input, output]]);
                assert!((ours - numeric).abs() < 2e-3 * (1.0 + numeric.abs()), "{layer} {input}: {ours} {numeric}");
            }
            let bias = network.layers[layer].bias[0];
            network.layers[layer].bias[0] = bias + step;
            let above = mse(&network, &x, &y);
            network.layers[layer].bias[0] = bias - step;
            let below = mse(&network, &x, &y);
            network.layers[layer].bias[0] = bias;
            let numeric = (above - below) / (2.0 * f64::from(step));
            assert!((f64::from(gradient.layers[layer].bias[0]) - numeric).abs() < 2e-3 * (1.0 + numeric.abs()));
        }
    }
}
