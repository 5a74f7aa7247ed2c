//! `tilewright space --t1 FILE`: the space of a Kernel Tuner description.

use super::counted::{Answer, empty, list, refused, rejected_by, samplers};
use crate::args::SpaceArgs;
use crate::failure::{Failure, Kind};
use crate::output::{Output, read_text};
use std::path::Path;
use std::time::Instant;
use tilewright_core::space::Config;
use tilewright_sampler::{Description, LegalSet};

pub(super) fn run(args: &SpaceArgs, path: &Path, seed: u64, output: Output) -> Result<(), Failure> {
    if let Some(word) = args.kernel.as_ref().or(args.input.first()) {
        return Err(Failure::new(
            Kind::Usage,
            "t1",
            format!("a file and a kernel ({word:?}) are two spaces: name one"),
        ));
    }
    let field = path.display().to_string();
    let text = read_text(path)?;
    let start = Instant::now();
    let description = Description::from_t1(&text).map_err(|e| Failure::new(Kind::Input, &field, e))?;
    let set = LegalSet::new(&description).map_err(|e| refused(&e, &field))?;
    let took = start.elapsed().as_secs_f64();
    if set.is_empty() {
        return Err(empty(&description, &field));
    }
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut answer = Answer::new(&name, Config::default(), &set, took);
    let core = || description.to_core().map_err(|e| refused(&e, &field));
    if args.why {
        answer.rejected_by = Some(rejected_by(&description, &core()?.1).map_err(|e| refused(&e, &field))?);
    }
    if let Some(count) = args.sample {
        let (space, bound) = core()?;
        answer.sampled(samplers((&space, &bound), &set, count, super::LEARN, seed)?);
    }
    if let Some(to) = &args.list {
        list(&set, to)?;
    }
    answer.print(output)
}
