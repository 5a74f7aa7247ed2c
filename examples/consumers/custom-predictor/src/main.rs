//! A predictor that Tilewright does not know, plugged into its planner: nearest neighbours over measured rows.
//!
//! The kernel is the toy of the testkit, timed by formula, so that the answer can be compared with the known optimum.

use std::error::Error;
use std::time::Duration;
use tilewright_core::feature::{FeatureKind, FeatureSchema};
use tilewright_core::predictor::{BindError, Predictor, RowPredictor, Scorer, bind_rows};
use tilewright_core::problem::{AnyKernel, Erased, Problem};
use tilewright_core::space::Config;
use tilewright_core::training::TrainingSet;
use tilewright_runtime::plan::{PlanSettings, Planner};
use tilewright_sampler::Uniform;
use tilewright_testkit::toy::{self, AnalyticMeasure, ScaleKernel};

/// How many of the nearest rows are averaged.
const NEIGHBOURS: usize = 5;

/// Log-cost as the mean over the nearest measured rows, weighted by nearness.
struct Nearest {
    schema: FeatureSchema,
    /// Encoded rows and their log-costs.
    rows: Vec<(Vec<f32>, f32)>,
}

impl Nearest {
    fn new(data: &TrainingSet) -> Self {
        let schema = data.schema.clone();
        let row = |i: usize| (encode(&schema, data.row(i)), data.costs[i].ln() as f32);
        Self { rows: (0..data.len()).map(row).collect(), schema }
    }

    fn at(&self, row: &[f32]) -> f32 {
        let distance = |other: &[f32]| row.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
        let mut near: Vec<(f32, f32)> = self.rows.iter().map(|(r, cost)| (distance(r), *cost)).collect();
        let count = NEIGHBOURS.min(near.len());
        near.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0));
        // Sorted, so that the sum does not depend on the order of selection.
        near[..count].sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let weighted = near[..count].iter().map(|(d, cost)| (1.0 / (d + 1e-3), cost));
        let (sum, weight) = weighted.fold((0.0, 0.0), |(s, w), (near, cost)| (s + near * cost, w + near));
        sum / weight
    }
}

/// Sizes on a logarithmic scale, where neighbours are a factor apart.
fn encode(schema: &FeatureSchema, row: &[f32]) -> Vec<f32> {
    let one = |(f, &x): (&tilewright_core::feature::Feature, &f32)| match f.kind {
        FeatureKind::Size => x.max(0.5).log2(),
        FeatureKind::Flag => 4.0 * x,
    };
    schema.iter().zip(row).map(one).collect()
}

impl RowPredictor for Nearest {
    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }

    fn predict(&self, rows: &[f32], out: &mut Vec<f32>) {
        out.extend(rows.chunks(self.schema.width()).map(|row| self.at(&encode(&self.schema, row))));
    }
}

impl Predictor for Nearest {
    fn bind<'a>(&'a self, problem: &'a dyn Problem) -> Result<Box<dyn Scorer + 'a>, BindError> {
        bind_rows(self, problem)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let measured = toy::training_set(&[300, 1000, 5000, 30_000, 200_000], 200, 1);
    let model = Nearest::new(&measured);
    // The suite that Tilewright's own models pass.
    tilewright_testkit::row_predictor(&model, &toy::problem(9999))?;
    let (kernel, device) = (Erased::new(ScaleKernel::new()), toy::device());
    println!("{} rows measured; the predictor is this program's own", measured.len());

    let mut worst = 1f64;
    for n in [700, 9999, 70_000] {
        let input = Config::parse(&format!("n={n}"))?;
        let planned = Planner {
            kernel: &kernel,
            device: &device,
            measure: Some(&mut AnalyticMeasure::new(device.clone()).checked_on(toy::host_device())),
            predictor: Some(&model),
            sampler: &mut Uniform::default(),
            cache: None,
            settings: PlanSettings { refine: Duration::ZERO, ..PlanSettings::default() },
        }
        .plan(&input)?;
        let problem = kernel.problem(&device, &input)?;
        let (_, best) = toy::optimum(&*problem).ok_or("nothing is legal")?;
        let fraction = best / toy::cost_s(&*problem, &planned.point);
        worst = worst.min(fraction);
        println!("n = {n}: {} ({:.3} of the optimum)", planned.config, fraction);
        println!("    {}", planned.reason);
        if !planned.verified {
            return Err(format!("n = {n}: the result was not verified").into());
        }
    }
    if worst < 0.8 {
        return Err(format!("the worst choice reaches {worst:.2} of the optimum").into());
    }
    Ok(())
}
