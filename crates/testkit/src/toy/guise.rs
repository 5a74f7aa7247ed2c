//! The toy problem behind another space and other features.

use super::{ScaleKernel, problem};
use std::fmt;
use tilewright_core::buffer::{Buffers, Expected, Filling, Workload};
use tilewright_core::computation::Work;
use tilewright_core::device::DeviceSpec;
use tilewright_core::feature::FeatureSchema;
use tilewright_core::id::{ComputationId, KernelId};
use tilewright_core::problem::{Bound, Problem};
use tilewright_core::program::{DeviceError, Program};
use tilewright_core::space::{BoundSpace, Config, Legal, Point};

/// What searches and models see (space, schema, features of a point) is the caller's; all else is the toy's. Features of
/// the input are ones. Points of the caller's space have no code of their own: every one runs the toy's first.
pub struct Guise {
    inner: Bound<ScaleKernel>,
    space: BoundSpace,
    schema: FeatureSchema,
    features: Box<Features>,
}

type Features = dyn Fn(&[u16], &mut Vec<f32>) + Send + Sync;

impl Guise {
    /// The features of a point are appended by `features`, one for each of the schema's config columns.
    pub fn new(
        space: BoundSpace,
        schema: FeatureSchema,
        features: impl Fn(&[u16], &mut Vec<f32>) + Send + Sync + 'static,
    ) -> Self {
        Self { inner: problem(1000), space, schema, features: Box::new(features) }
    }
}

impl fmt::Debug for Guise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guise").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Problem for Guise {
    fn kernel(&self) -> KernelId {
        KernelId::new("guise.toy")
    }
    fn computation(&self) -> ComputationId {
        self.inner.computation()
    }
    fn device(&self) -> &DeviceSpec {
        self.inner.device()
    }
    fn input(&self) -> Config {
        self.inner.input()
    }
    fn space(&self) -> &BoundSpace {
        &self.space
    }
    fn work(&self) -> Work {
        self.inner.work()
    }
    fn footprint(&self) -> u64 {
        self.inner.footprint()
    }

    fn schema(&self) -> &FeatureSchema {
        &self.schema
    }
    fn input_features(&self, out: &mut Vec<f32>) {
        out.resize(out.len() + self.schema.input.len(), 1.0);
    }
    fn config_features(&self, point: &[u16], out: &mut Vec<f32>) {
        (self.features)(point, out);
    }
    fn program(&self, _: &Legal<'_>) -> Program {
        let first = self.inner.space().check(&[0; 5]);
        self.inner.program(&first.expect("the toy's first point is legal"))
    }
    fn workload(&self, filling: Filling, seed: u64) -> Workload {
        self.inner.workload(filling, seed)
    }
    fn reference(&self, before: &Buffers, scalars: &[f64]) -> Result<Expected, DeviceError> {
        self.inner.reference(before, scalars)
    }
    fn default_point(&self) -> Option<Point> {
        self.space.first_legal()
    }
}
