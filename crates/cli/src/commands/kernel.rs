//! `tilewright kernel check`: what a description says, and what is wrong with it.

use crate::args::KernelCommand;
use crate::described::ready;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::wiring::open;
use serde::Serialize;
use tilewright::UserKernel;
use tilewright_core::problem::Measure as _;
use tilewright_core::space::Config;
use tilewright_core::text::counted;

#[derive(Serialize)]
struct Answer {
    kernel: String,
    language: &'static str,
    compiler: Option<String>,
    device: String,
    parameters: Vec<Parameter>,
    cartesian: String,
    /// For the example.
    legal: u64,
    example: Config,
    config: Option<Config>,
    buffers: Vec<Buffer>,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    values: usize,
}

#[derive(Serialize)]
struct Buffer {
    name: &'static str,
    dtype: String,
    len: usize,
    role: tilewright_core::buffer::Role,
}

pub(crate) fn run(
    command: &KernelCommand,
    described: Option<&(String, UserKernel)>,
    output: Output,
) -> Result<(), Failure> {
    let KernelCommand::Check { file, device } = command;
    let Some((name, kernel)) = described else {
        return Err(Failure::new(Kind::Usage, file, "a description ends in .json"));
    };
    let spec = open(device)?.spec().clone();
    let ready = ready(name, kernel, &spec)?;
    let space = ready.problem.space();
    let buffers = ready.problem.workload(tilewright_core::buffer::Filling::Real, 0).specs;
    let answer = Answer {
        kernel: ready.problem.kernel().to_string(),
        language: kernel.language().map_or("PTX", tilewright_core::program::Language::name),
        compiler: ready.compiler.clone(),
        device: spec.id.clone(),
        parameters: space.params().iter().map(|p| Parameter { name: p.name.clone(), values: p.values.len() }).collect(),
        cartesian: space.cartesian().to_string(),
        legal: tilewright_sampler::LegalSet::of(space).map_or_else(|_| space.count_legal(), |set| set.count()),
        example: ready.input.clone(),
        config: ready.problem.default_point().map(|point| space.config(&point)),
        buffers: buffers
            .into_iter()
            .map(|b| Buffer { name: b.name, dtype: b.dtype.to_string(), len: b.len, role: b.role })
            .collect(),
    };
    output.answer(&answer, || text(&answer))
}

fn text(answer: &Answer) -> String {
    let mut out = format!(
        "{}: {}{}; it compiles for {}\n{} of {} configurations are legal for {}\n",
        answer.kernel,
        answer.language,
        answer.compiler.as_ref().map_or(String::new(), |name| format!(" by {name}")),
        answer.device,
        answer.legal,
        answer.cartesian,
        if answer.example.0.is_empty() { "its one input".to_owned() } else { answer.example.to_string() },
    );
    let parameters: Vec<String> =
        answer.parameters.iter().map(|p| format!("{} ({})", p.name, counted(p.values, "value"))).collect();
    out.push_str(&format!("parameters: {}\n", parameters.join(", ")));
    if let Some(config) = &answer.config {
        out.push_str(&format!("default: {config}\n"));
    }
    for Buffer { name, dtype, len, role } in &answer.buffers {
        out.push_str(&format!("buffer {name}: {len} x {dtype}, {}\n", format!("{role:?}").to_lowercase()));
    }
    out
}
