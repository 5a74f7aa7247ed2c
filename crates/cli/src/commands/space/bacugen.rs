//! `tilewright space bacugen`: the pruned space of a GEMM stencil on any NVIDIA device.

use super::counted::{Answer, list, refused, rejected_in_order, samplers};
use crate::args::SpaceArgs;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, read_text};
use std::path::Path;
use std::time::Instant;
use tilewright_core::dtype::DType;
use tilewright_core::space::{Config, RuleGroup};
use tilewright_sampler::bacugen::{
    DeviceConstants, Guidelines, Layout, Reading, element, known_devices, param_space, space,
};
use tilewright_sampler::{Conflict, Constraint, Description, LegalSet};

/// The paper's device.
const DEVICE: &str = "fermi-s2050";

struct Asked {
    element: DType,
    layout: Layout,
    reading: Reading,
}

pub(super) fn run(args: &SpaceArgs, seed: u64, output: Output) -> Result<(), Failure> {
    let input = fields::parse(&args.input)?;
    let asked = asked(&input)?;
    let device = device(args.device_spec.as_deref().unwrap_or(DEVICE))?;
    let text = args.guidelines.as_deref().unwrap_or_default();
    let config = Config::parse(text).map_err(|e| Failure::new(Kind::Usage, "guidelines", e))?;
    let guidelines = Guidelines::from_config(&config).map_err(|e| Failure::new(Kind::Usage, "guidelines", e))?;
    let other = |e: tilewright_core::space::SpaceError| Failure::new(Kind::Other, "bacugen", e);
    let start = Instant::now();
    let bound = space(asked.element, asked.layout, &device, &guidelines, asked.reading).map_err(other)?;
    let set = LegalSet::of(&bound).map_err(|e| refused(&e, "bacugen"))?;
    let took = start.elapsed().as_secs_f64();
    if set.is_empty() {
        let guideline = |c: &Constraint| c.group == RuleGroup::Guideline;
        let conflict = Conflict::find_among(&Description::from(&bound), guideline).ok().flatten();
        let why = conflict.map_or_else(String::new, |c| format!(": on {} {c}", device.name));
        return Err(Failure::new(Kind::Nothing, "guidelines", format!("no configuration is legal{why}")));
    }
    let mut answer = Answer::new("bacugen", input, &set, took);
    if args.why {
        answer.rejected_by = Some(rejected_in_order(&bound));
    }
    if let Some(count) = args.sample {
        let params = param_space(asked.layout).map_err(other)?;
        answer.sampled(samplers((&params, &bound), &set, count, super::LEARN, seed)?);
    }
    if let Some(to) = &args.list {
        list(&set, to)?;
    }
    answer.print(output)
}

fn asked(input: &Config) -> Result<Asked, Failure> {
    let mut asked = Asked {
        element: DType::F32,
        layout: Layout { a_transposed: false, b_transposed: false },
        reading: Reading::default(),
    };
    for (name, value) in &input.0 {
        let text = value.to_string();
        let bad = |expected: &str| Failure::new(Kind::Input, name, format!("{text:?} is none of {expected}"));
        match name.as_str() {
            "type" => asked.element = element(&text).ok_or_else(|| bad("sgemm, dgemm, cgemm, zgemm"))?,
            "layout" => asked.layout = Layout::parse(&text).ok_or_else(|| bad("nn, nt, tn, tt (c for conjugate)"))?,
            "reading" => {
                asked.reading = match text.as_str() {
                    "scaled" => Reading::Scaled,
                    "printed" => Reading::Printed,
                    _ => return Err(bad("scaled, printed")),
                };
            }
            _ => return Err(Failure::new(Kind::Input, name, "unknown field: type, layout, reading")),
        }
    }
    Ok(asked)
}

/// A known device by name, or the constants in a file.
fn device(name: &str) -> Result<DeviceConstants, Failure> {
    if let Some(device) = DeviceConstants::known(name) {
        return Ok(device);
    }
    let path = Path::new(name);
    if !path.exists() {
        let known: Vec<String> = known_devices().into_iter().map(|d| d.name).collect();
        let text = format!("{name:?} is neither a file nor one of {}", known.join(" "));
        return Err(Failure::new(Kind::Usage, "device-spec", text));
    }
    let text = read_text(path)?;
    DeviceConstants::from_json(&text).map_err(|e| Failure::new(Kind::Input, name, e))
}
