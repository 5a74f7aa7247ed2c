//! Adam with decoupled weight decay (Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2).

use pulp::Arch;

use crate::network::Network;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// First and second moments of a run of parameters.
#[derive(Debug)]
struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
    decays: bool,
}

impl Moments {
    fn new(len: usize, decays: bool) -> Self {
        Self { first: vec![0.0; len], second: vec![0.0; len], decays }
    }

    #[inline(always)]
    fn update(&mut self, step: Step, parameters: &mut [f32], gradient: &[f32]) {
        let decay = if self.decays { step.decay } else { 0.0 };
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, &slope), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *first += (1.0 - BETA_1) * (slope - *first);
            *second += (1.0 - BETA_2) * (slope * slope - *second);
            let direction = *first * step.first_scale / ((*second * step.second_scale).sqrt() + EPSILON);
            *parameter -= step.rate * (direction + decay * *parameter);
        }
    }
}

/// The scalars of one step.
#[derive(Debug, Clone, Copy)]
struct Step {
    rate: f32,
    decay: f32,
    /// Bias corrections of the moments.
    first_scale: f32,
    second_scale: f32,
}

/// The optimiser's state. Weights decay, biases do not.
#[derive(Debug)]
pub(crate) struct Adam {
    moments: Vec<Moments>,
    decay: f32,
    steps: i32,
}

impl Adam {
    pub(crate) fn new(network: &Network, decay: f32) -> Self {
        let moments = network
            .layers
            .iter()
            .flat_map(|layer| [Moments::new(layer.weights.len(), true), Moments::new(layer.bias.len(), false)]);
        Self { moments: moments.collect(), decay, steps: 0 }
    }

    /// One step against the gradient.
    pub(crate) fn step(&mut self, network: &mut Network, gradient: &Network, rate: f32) {
        self.steps = self.steps.saturating_add(1);
        let step = Step {
            rate,
            decay: self.decay,
            first_scale: 1.0 / (1.0 - BETA_1.powi(self.steps)),
            second_scale: 1.0 / (1.0 - BETA_2.powi(self.steps)),
        };
        let parts = network.layers.iter_mut().zip(&gradient.layers).zip(self.moments.chunks_exact_mut(2));
        for ((layer, gradient), moments) in parts {
            let [weights, bias] = moments else { unreachable!("two sets of moments a layer") };
            Arch::new().dispatch(|| {
                weights.update(step, flat(&mut layer.weights), flat_ref(&gradient.weights));
                bias.update(step, flat(&mut layer.bias), flat_ref(&gradient.bias));
            });
        }
    }
}

fn flat<D: ndarray::Dimension>(array: &mut ndarray::Array<f32, D>) -> &mut [f32] {
    array.as_slice_mut().expect("parameters are in standard order")
}

fn flat_ref<D: ndarray::Dimension>(array: &ndarray::Array<f32, D>) -> &[f32] {
    array.as_slice().expect("gradients are in standard order")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::layout::Layout;

    #[test]
    fn the_first_step_moves_every_parameter_by_the_rate_against_its_slope() {
        let layout = Layout::new(vec![3]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let start = Network::random(&layout, 2, &mut rng);
        let gradient = Network::random(&layout, 2, &mut rng);
        let mut network = start.clone();
        Adam::new(&network, 0.0).step(&mut network, &gradient, 0.01);
        for (layer, (before, slope)) in network.layers.iter().zip(start.layers.iter().zip(&gradient.layers)) {
            for ((after, before), slope) in layer.weights.iter().zip(&before.weights).zip(&slope.weights) {
                assert!((after - (before - 0.01 * slope.signum())).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn decay_pulls_weights_and_not_biases() {
        let layout = Layout::new(vec![3]).unwrap();
        let mut network = Network::random(&layout, 2, &mut ChaCha8Rng::seed_from_u64(1));
        network.layers[0].bias.fill(1.0);
        let mut zero = network.clone();
        zero.layers.iter_mut().for_each(|layer| {
            layer.weights.fill(0.0);
            layer.bias.fill(0.0);
        });
        let before = network.clone();
        Adam::new(&network, 0.5).step(&mut network, &zero, 0.1);
        let ratio = network.layers[0].weights[[0, 0]] / before.layers[0].weights[[0, 0]];
        assert!((ratio - 0.95).abs() < 1e-5);
        assert_eq!(network.layers[0].bias, before.layers[0].bias);
    }
}
