//! Rows of a kernel's configurations, measured on several devices, for a model of another one.

use crate::error::MtlError;
use crate::leave_one_out::shared;
use crate::near::shares;
use crate::sources::{Source, Sources};
use crate::view::View;
use std::collections::BTreeSet;
use tilewright_core::choice::ChoiceSet;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;
use tilewright_core::training::TrainingSet;

/// What a device measured of a kernel's configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledDevice {
    /// The device.
    pub device: String,
    /// Its features.
    pub features: Config,
    /// A row for each configuration; one group an input. Not empty.
    pub rows: TrainingSet,
}

/// Rows of several devices under one schema.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledRows {
    /// The rows; what a model sees of devices stands behind the features of the input.
    pub set: TrainingSet,
    /// The target's values of those columns.
    pub target: Vec<f32>,
    /// The features of devices that they are about.
    pub features: Vec<String>,
    /// Distinct inputs, those of different devices counted apart.
    pub inputs: usize,
}

/// Puts rows of devices together for a model of the target, at most about `most` of them: whole inputs, all of the devices that are
/// nearest to the target and fewer of those that are further. The model sees the features that every device and the target have and
/// in which the devices differ; a word only where one of the devices shares it with the target.
///
/// # Errors
/// No devices, one that stands twice, rows of different schemas.
pub fn pool(devices: &[SampledDevice], target: (&str, &Config), most: usize) -> Result<PooledRows, MtlError> {
    let source = |d: &SampledDevice| Source {
        device: d.device.clone(),
        features: d.features.clone(),
        cases: ChoiceSet::new(d.rows.schema.clone()),
    };
    let sources = Sources::overlapping(devices.iter().map(source).collect())?;
    let names: Vec<String> = shared(&sources, target.1).into_iter().filter(|n| tells(&sources, target.1, n)).collect();
    let view = View::concatenated(&sources, &names)?;
    let mut set = TrainingSet::new(view.schema(sources.all()[0].cases.schema()));
    let (near, mut inputs) = (shares(&sources.devices(), target.1), 0);
    let wanted: f64 = devices.iter().zip(&near).map(|(d, share)| d.rows.len() as f64 * share).sum();
    let fits = (most as f64 / wanted.max(1.0)).min(1.0);
    for (device, near) in devices.iter().zip(near) {
        let mut columns = Vec::new();
        view.values(&device.device, &device.features)?.append(&mut columns);
        let groups: BTreeSet<u32> = device.rows.groups.iter().copied().collect();
        // Evenly spread over the inputs, and one at least.
        let kept = |i: usize| i == 0 || ((i + 1) as f64 * near * fits).floor() > (i as f64 * near * fits).floor();
        let groups: Vec<u32> = groups.into_iter().enumerate().filter(|(i, _)| kept(*i)).map(|(_, g)| g).collect();
        let split = device.rows.schema.input.len();
        for i in 0..device.rows.len() {
            let Ok(group) = groups.binary_search(&device.rows.groups[i]) else { continue };
            let (input, config) = device.rows.row(i).split_at(split);
            let row = [input, &columns, config].concat();
            let pushed = set.push(&row, device.rows.costs[i], (inputs + group) as u32);
            pushed.map_err(|e| MtlError::Rows { device: device.device.clone(), message: e.to_string() })?;
        }
        inputs += groups.len();
    }
    let mut columns = Vec::new();
    view.values(target.0, target.1)?.append(&mut columns);
    Ok(PooledRows { set, target: columns, features: names, inputs })
}

/// Whether a feature tells the sources apart, and says something of the target.
fn tells(sources: &Sources, target: &Config, name: &str) -> bool {
    let values: BTreeSet<String> =
        sources.all().iter().filter_map(|s| s.features.get(name)).map(Value::to_string).collect();
    let own = target.get(name).filter(|v| v.as_str().is_none() || values.contains(&v.to_string()));
    own.is_some() && values.len() > 1
}
