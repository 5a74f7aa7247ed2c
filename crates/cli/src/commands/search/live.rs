//! Strategies on a live device.

use super::above::above;
use super::space::{About, prior, warm};
use super::{Answer, Asked, rows, text};
use crate::args::SearchArgs;
use crate::failure::{Failure, Kind};
use crate::fields;
use crate::output::{Output, note, seconds};
use crate::wiring::{Wiring, measure};
use std::sync::Arc;
use tilewright::known::Known;
use tilewright::planning::problem;
use tilewright_core::problem::Measure;
use tilewright_core::text::counted;
use tilewright_runtime::plan::PlanSettings;
use tilewright_runtime::trial::Trial;
use tilewright_search::drive::Trace;
use tilewright_search::stop::Tail;

pub(super) fn run(
    args: &SearchArgs,
    asked: &Asked,
    (kernel, wiring): (&str, &Wiring),
    seed: u64,
    output: Output,
) -> Result<(), Failure> {
    if args.grid {
        let message = "a grid of tolerances takes a recording, as --device replay:FILE";
        return Err(Failure::new(Kind::Usage, "grid", message));
    }
    let kernel = wiring.kernel(kernel, &args.device)?;
    let mut device = measure(&args.device)?;
    let fields = fields::parse(&args.input)?;
    let problem = problem(kernel, device.spec(), &fields)?;
    let known = Known::find(&wiring.home()?, (None, args.profile.as_deref()), kernel, device.spec(), &problem.input())?;
    let mut settings = PlanSettings { seed, tolerance: Some(asked.tolerance), ..PlanSettings::default() };
    settings.ranking = known.ranking.clone();
    settings.warm = match args.warm_start.is_empty() {
        true => known.warm(&wiring.home()?, &*problem, true),
        false => Arc::new(warm(&args.warm_start, problem.space())?),
    };
    let tail = if args.prior.is_empty() { Tail::default() } else { prior(&args.prior, args.epsilon, seed)? };
    asked.warn_of(&tail);
    let id = device.spec().id.clone();
    let mut trial = Trial {
        problem: &*problem,
        measure: &mut device,
        predictor: known.predictor.as_deref(),
        sampler: &mut *known.sampler(),
        settings,
        tail: Arc::new(tail),
    };
    let strategies: Vec<_> = asked.strategies.iter().map(|(_, s)| ((*s).into(), asked.limit(*s))).collect();
    let mut progress = |name: &str, repeat: u32, trace: &Trace| {
        let best = trace.best().map_or("nothing".to_owned(), seconds);
        let (at, count, took) = (repeat + 1, trace.evaluations, seconds(trace.seconds));
        note(format_args!("{name} {at}/{}: {best} after {} in {took}", args.repeats, counted(count, "evaluation")));
    };
    let report = trial.run(&strategies, (args.repeats, asked.looked_at()), &mut progress)?;
    let about = About { device: id, points: problem.space().count_legal() as usize, optimum_s: report.best.1 };
    let tried: Vec<_> = report.tried.into_iter().map(|tried| (tried.traces, tried.seconds)).collect();
    let rows = rows(asked, &about, &tried, args)?;
    let answer = Answer {
        knowledge: Some(report.knowledge.map_or("default".to_owned(), |(kind, _)| kind)),
        config: Some(problem.space().config(&report.best.0)),
        ..Answer::new(&rows, above(asked, about.optimum_s, &tried))
    };
    output.answer(&answer, || text(&rows, &answer))
}
