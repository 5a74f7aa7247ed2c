//! Deciding among several kernels of one computation: a selector ranks them, the best few are searched, their winners are timed
//! against each other.

mod suited;
mod winners;

use super::answer::{PlanStats, Planned};
use super::asked::Asked;
use super::decide::{LISTED, sentence};
use super::settings::PlanSettings;
use super::{Planner, Ranking, Recalled, from_cache, look, recall, to_cache, unstored, warn_unstored};
use crate::error::RuntimeError;
use crate::nothing_legal::nothing_legal;
use crate::plan_cache::{Lookup, PlanCache};
use crate::selection::{RankedVariants, Ranker};
use crate::verify::Verifier;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilewright_core::decision::{Alternative, Selection, Tie, Variant};
use tilewright_core::device::DeviceSpec;
use tilewright_core::id::KernelId;
use tilewright_core::predictor::Predictor;
use tilewright_core::problem::{AnyKernel, Measure, Problem};
use tilewright_core::program::DeviceError;
use tilewright_core::text::counted;
use tilewright_sampler::Sampler;
use tilewright_search::Experience;

/// A kernel that competes for an input, with what is known of it.
pub struct Entrant<'a> {
    /// The kernel.
    pub kernel: &'a dyn AnyKernel,
    /// The kernel, with device and input.
    pub problem: &'a dyn Problem,
    /// The model; without it this very input is tuned within the kernel's share of the budget.
    pub predictor: Option<&'a dyn Predictor>,
    /// What the model is asked about.
    pub ranking: Ranking,
    /// What the model came from, see [`PlanSettings::knowledge`].
    pub knowledge: Option<&'static str>,
    /// The same as part of a sentence, see [`PlanSettings::known`].
    pub known: String,
    /// What strategies begin from; asked for only where something is searched.
    pub warm: Box<dyn Fn() -> Arc<Experience> + 'a>,
    /// Checksum of the file that the model was read from.
    pub origin: Option<String>,
    /// Draws configurations.
    pub sampler: Box<dyn Sampler>,
}

/// Hears of a kernel that is searched, with its model and its settings.
pub type Searching<'a> = dyn FnMut(&dyn AnyKernel, Option<&dyn Predictor>, &PlanSettings) + 'a;

/// What a decision among kernels works with. Whatever is missing is done without, and the answer says so. Of a single kernel, it
/// decides as a [`Planner`] does.
pub struct VariantPlanner<'a> {
    /// Those that compete, all of one computation, for one input on one device; the first is the default. Those that count as equal
    /// follow [`super::KERNEL_TIE_ORDER`].
    pub entrants: Vec<Entrant<'a>>,
    /// Kernels that the caller left out, and why.
    pub left_out: Vec<(KernelId, String)>,
    /// What the reason begins with: why there is no ranker, say.
    pub notes: Vec<String>,
    /// What ranks them; without it all are searched.
    pub ranker: Option<Ranker<'a>>,
    /// The kernels searched of those that are ranked. Kernels that the ranker does not know are searched besides.
    pub most: usize,
    /// The device.
    pub device: &'a Arc<DeviceSpec>,
    /// See [`Planner::measure`].
    pub measure: Option<&'a mut dyn Measure>,
    /// Remembers which kernel won, and the decision of each.
    pub cache: Option<&'a PlanCache>,
    /// What the answer answers, in the cache: which kernels were asked for, not which were found.
    pub question: String,
    /// How to decide. Times are those of all kernels together.
    pub settings: PlanSettings,
    /// Hears which kernel is about to be searched, and with which settings.
    pub searching: &'a mut Searching<'a>,
}

/// The kernels that are recommended to be searched where a selector ranks them.
pub const SEARCHED: usize = 3;

/// A choice that is expected to lose more than this share of the best performance is a guess that is worth timing.
const UNSURE: f64 = 0.02;

/// The share of the time within which kernels of few configurations are timed wherever the selector ranks them: there is little to search
/// in them, so that finding out costs less than a wrong guess.
const GLANCED: f64 = 0.25;

/// What counts as few.
const FEW: u64 = 8;

/// The points of a space, legal or not, up to which its legal ones are counted.
const COUNTED: u128 = 10_000;

/// How long each winner is timed for, where its calls are short enough.
const ENOUGH: Duration = Duration::from_millis(200);

impl VariantPlanner<'_> {
    /// Decides kernel and configuration; the number of the chosen one of [`VariantPlanner::entrants`], and the answer.
    ///
    /// # Errors
    /// What keeps the first kernel from a plan where none has one; and what ends any plan: a device that fails, a setting, a file.
    pub fn plan(&mut self) -> Result<(usize, Planned), RuntimeError> {
        let answer = self.planned()?;
        warn_unstored(&answer.1);
        Ok(answer)
    }

    fn planned(&mut self) -> Result<(usize, Planned), RuntimeError> {
        let clock = Instant::now();
        let mut verifier = Verifier::new(self.settings.verify.clone());
        if self.entrants.len() == 1 && self.left_out.is_empty() {
            return Ok((0, self.one(0, 1.0, &mut verifier)?));
        }
        let asked = Asked { profile: self.origins(), ..self.settings.asked.clone() };
        let (found, at) = match self.cache.filter(|_| !self.settings.ignore_cached) {
            Some(cache) => {
                let problems: Vec<&dyn Problem> = self.entrants.iter().map(|e| e.problem).collect();
                cache.get_among(&self.question, &problems, &self.settings.objective)?
            }
            None => (Lookup::Miss, 0),
        };
        let (again, is_legal, mut looks) = match self.newcomer(recall(found, &asked)) {
            Recalled::Enough(plan, point) => {
                return Ok((at, from_cache(self.entrants[at].problem, *plan, point, &clock)));
            }
            Recalled::Not { why, point, looks } => (why, point.is_some(), looks),
        };
        let remembered = is_legal.then_some(at);
        let (at, planned) = Deciding::new(self, &clock, verifier, (&again, remembered)).decide()?;
        let mut planned = Planned { looked_again: again, ..planned };
        let settings = PlanSettings { asked, ..self.settings.clone() };
        let is_modelled = self.entrants[at].predictor.is_some();
        look(&settings, (is_modelled, self.is_timed()), &planned).note(&mut looks);
        let cache = self.cache.filter(|_| settings.remember);
        if let (Some(cache), Some(plan)) = (cache, to_cache(&planned, looks)) {
            let put = cache.put_among(&self.question, self.entrants[at].problem, &settings.objective, &plan);
            planned.unstored = unstored(put).or(planned.unstored);
        }
        Ok((at, planned))
    }

    fn is_timed(&self) -> bool {
        self.measure.is_some() && self.settings.top > 0
    }

    /// An answer is not enough where a kernel competes that it knew nothing of.
    fn newcomer(&self, found: Recalled) -> Recalled {
        match found {
            Recalled::Enough(plan, point) => {
                let knew = |id: &KernelId| plan.decision.variants.iter().any(|known| known.name == *id);
                match self.entrants.iter().map(|e| e.problem.kernel()).find(|id| !knew(id)) {
                    None => Recalled::Enough(plan, point),
                    Some(new) => {
                        let why = Some(format!("the cached plan was looked for again: it was decided without {new}"));
                        Recalled::Not { why, point: Some(point), looks: plan.looks }
                    }
                }
            }
            not => not,
        }
    }

    /// One checksum of all files that have a say; None where there is none.
    fn origins(&self) -> Option<String> {
        let own = self.entrants.iter().filter_map(|e| Some((e.problem.kernel().to_string(), e.origin.clone()?)));
        let mut all: Vec<(String, String)> = own.collect();
        if let Some(Ranker::Stored(_, origin)) = &self.ranker {
            all.push(("selector".into(), origin.clone()));
        }
        let text = all.iter().map(|(name, sum)| format!("{name}={sum}\n")).collect::<String>();
        (!all.is_empty()).then(|| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned())
    }

    /// The decision of one kernel, with a share of the time.
    fn one(&mut self, at: usize, share: f64, verifier: &mut Verifier) -> Result<Planned, RuntimeError> {
        let (entrant, all) = (&mut self.entrants[at], &self.settings);
        let settings = PlanSettings {
            ranking: entrant.ranking.clone(),
            knowledge: entrant.knowledge,
            known: entrant.known.clone(),
            warm: (entrant.warm)(),
            refine: all.refine.mul_f64(share),
            budget: all.budget.mul_f64(share),
            asked: Asked {
                budget: all.asked.budget.map(|budget| budget.mul_f64(share)),
                model: all.asked.model.clone().filter(|_| entrant.predictor.is_some()),
                profile: entrant.origin.clone(),
                ..all.asked.clone()
            },
            ..all.clone()
        };
        let (kernel, predictor, searching) = (entrant.kernel, entrant.predictor, &mut self.searching);
        let mut planner = Planner {
            kernel,
            device: self.device,
            measure: match &mut self.measure {
                Some(measure) => Some(&mut **measure),
                None => None,
            },
            predictor,
            sampler: &mut *entrant.sampler,
            cache: self.cache,
            settings,
        };
        planner.plan_checked(entrant.problem, verifier, &mut |settings| searching(kernel, predictor, settings))
    }
}

/// One decision among several kernels.
struct Deciding<'d, 'a> {
    planner: &'d mut VariantPlanner<'a>,
    clock: &'d Instant,
    verifier: Verifier,
    /// The kernel of a cached answer that was not enough.
    remembered: Option<usize>,
    /// Those that are timed although the selector ranks them low.
    glanced: Vec<usize>,
    /// Kernels without a part in the answer, and why.
    left_out: Vec<(KernelId, String)>,
    /// What kept the first of them from a plan.
    error: Option<RuntimeError>,
    /// Sentences of the reason.
    reasons: Vec<String>,
    /// The kernels with a plan, in the order of preference.
    found: Vec<(usize, Planned)>,
    selection: Option<Selection>,
    /// The kernels that count as equal to the best.
    tie: Option<Tie>,
    /// The share of the time that is spent.
    used: f64,
}

impl<'d, 'a> Deciding<'d, 'a> {
    fn new(
        planner: &'d mut VariantPlanner<'a>,
        clock: &'d Instant,
        verifier: Verifier,
        (again, remembered): (&Option<String>, Option<usize>),
    ) -> Self {
        let reasons = again.iter().chain(&planner.notes).cloned().collect();
        let left_out = planner.left_out.clone();
        let (error, glanced, found, selection, tie, used) = (None, Vec::new(), Vec::new(), None, None, 0.0);
        Self { planner, clock, verifier, remembered, glanced, left_out, error, reasons, found, selection, tie, used }
    }

    fn decide(mut self) -> Result<(usize, Planned), RuntimeError> {
        let legal = self.legal();
        let (first, later) = self.ranked(legal);
        let is_predicted = first.iter().all(|at| self.planner.entrants[*at].predictor.is_some());
        // Untimed, one is enough, unless predictions say which.
        let is_preferred = self.selection.is_some() || self.remembered.is_some();
        let one_by_one = !self.planner.is_timed() && (is_preferred || !is_predicted);
        let size = if one_by_one { 1 } else { first.len().max(1) };
        let groups = first.chunks(size).chain(later.chunks(1));
        for group in groups.collect::<Vec<_>>() {
            if self.found.is_empty() {
                self.search(group)?;
            } else {
                let why = "those ahead of it were enough";
                let behind: Vec<_> = group.iter().map(|at| (self.id(*at), why.to_owned())).collect();
                self.left_out.extend(behind);
            }
        }
        if self.found.is_empty() {
            let nothing = || RuntimeError::Setting { field: "kernel", message: "there is none to plan with".into() };
            return Err(self.error.unwrap_or_else(nothing));
        }
        if self.planner.is_timed() {
            self.contest()?;
        } else {
            let expected = |p: &Planned| p.predicted_s.unwrap_or(f64::INFINITY);
            self.found.sort_by(|a, b| expected(&a.1).total_cmp(&expected(&b.1)));
        }
        Ok(self.answer())
    }

    fn id(&self, at: usize) -> KernelId {
        self.planner.entrants[at].problem.kernel()
    }

    fn leave(&mut self, at: usize, error: RuntimeError) {
        self.left_out.push((self.id(at), error.to_string()));
        self.error.get_or_insert(error);
    }

    /// The kernels with a legal configuration.
    fn legal(&mut self) -> Vec<usize> {
        let mut out = Vec::new();
        for at in 0..self.planner.entrants.len() {
            let problem = self.planner.entrants[at].problem;
            match problem.space().first_legal() {
                Some(_) => out.push(at),
                None => self.leave(at, nothing_legal(problem)),
            }
        }
        out
    }

    /// Those to search, and those to fall back on, each the best first.
    fn ranked(&mut self, legal: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let (mut first, mut later) = self.by_ranker(&legal).unwrap_or_else(|| (self.by_defaults(&legal), Vec::new()));
        // First of all, so that ties go to it.
        if let Some(at) = self.remembered.filter(|at| legal.contains(at)) {
            first.retain(|other| *other != at);
            later.retain(|other| *other != at);
            first.insert(0, at);
        }
        (first, later)
    }

    /// All of them, in the order of how well their defaults suit the input; else as they were named.
    fn by_defaults(&self, legal: &[usize]) -> Vec<usize> {
        let suits = |at: &usize| self.planner.entrants[*at].problem.suits();
        let mut order = legal.to_vec();
        order.sort_by(|a, b| suits(b).total_cmp(&suits(a)));
        order
    }

    /// The same by the ranker; None where it has no say.
    fn by_ranker(&mut self, legal: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        let ids: Vec<KernelId> = legal.iter().map(|at| self.id(*at)).collect();
        if legal.len() < 2 {
            return None;
        }
        let Some(ranker) = &self.planner.ranker else {
            self.reasons.push(format!("no selector ranks the {}", counted(legal.len(), "kernel")));
            return None;
        };
        let mut features = Vec::new();
        self.planner.entrants[legal[0]].problem.input_features(&mut features);
        let RankedVariants { order, faults, expected_loss } = match ranker.rank(&features, &ids) {
            Ok(ranked) => ranked,
            Err(fault) => RankedVariants { faults: vec![fault], ..RankedVariants::default() },
        };
        self.reasons.extend(faults.iter().map(ToString::to_string));
        if order.is_empty() {
            return None;
        }
        let (is_own, led_worth) = (matches!(ranker, Ranker::Own(_)), ranker.led_worth());
        let said = ranker.said(order.iter().map(|at| ids[*at].clone()).collect(), expected_loss);
        self.reasons.push(sentence_of(&said));
        let advice = advice(&said, self.planner.is_timed());
        let incumbent = ranker.incumbent(&said.ranked).filter(|_| !self.planner.is_timed()).map(ToString::to_string);
        self.selection = Some(said);
        // Where nothing is timed an earlier answer would push the incumbent aside.
        self.remembered = self.remembered.filter(|_| incumbent.is_none());
        let first = order[0];
        let is_settled = is_own || incumbent.is_some() || self.planner.is_timed();
        self.reasons.extend(incumbent);
        let order = if is_settled { order } else { self.led_by_suited(legal, led_worth, order) };
        // What the selector expects of its first choice says nothing of another.
        self.reasons.extend(advice.filter(|_| order[0] == first));
        let rest: Vec<usize> = (0..legal.len()).filter(|at| !order.contains(at)).collect();
        let (best, behind) = order.split_at(order.len().min(self.planner.most.max(1)));
        // A learned selector says nothing of kernels that it has never seen; one's own left them out.
        let (new, shunned) = if is_own { (vec![], rest) } else { (rest, vec![]) };
        let is_glanced = |at: &usize| self.planner.is_timed() && self.has_few(legal[*at]);
        let (glanced, behind): (Vec<usize>, Vec<usize>) = behind.iter().partition(|at| is_glanced(at));
        self.glanced = glanced.iter().map(|at| legal[*at]).collect();
        let kernels = |all: [&[usize]; 3]| all.concat().into_iter().map(|at| legal[at]).collect();
        Some((kernels([best, &new, &glanced]), kernels([&behind, &shunned, &[]])))
    }

    /// Whether a kernel has few configurations.
    fn has_few(&self, at: usize) -> bool {
        let space = self.planner.entrants[at].problem.space();
        space.cartesian() <= COUNTED && space.count_legal() <= FEW
    }

    /// Plans each kernel of a group; small spaces first, since what time they leave is the others'.
    fn search(&mut self, group: &[usize]) -> Result<(), RuntimeError> {
        let mut order = group.to_vec();
        order.sort_by_key(|at| (!self.glanced.contains(at), self.planner.entrants[*at].problem.space().cartesian()));
        for (i, &at) in order.iter().enumerate() {
            if self.used > GLANCED && self.glanced.contains(&at) {
                self.left_out.push((self.id(at), "the selector ranks it low, and the time was short".into()));
                continue;
            }
            let share = (1.0 - self.used).max(0.0) / (order.len() - i) as f64;
            let began = self.clock.elapsed();
            match self.planner.one(at, share, &mut self.verifier) {
                Ok(planned) => self.found.push((at, planned)),
                Err(error) if is_of_kernel(&error) => self.leave(at, error),
                Err(error) => return Err(error),
            }
            let settings = &self.planner.settings;
            let is_modelled = self.planner.entrants[at].predictor.is_some();
            let whole = if is_modelled { settings.refine } else { settings.budget }.as_secs_f64();
            let spent = (self.clock.elapsed() - began).as_secs_f64() / whole.max(f64::MIN_POSITIVE);
            self.used += spent.min(share);
        }
        self.found.sort_by_key(|(at, _)| group.iter().position(|other| other == at));
        Ok(())
    }

    fn answer(mut self) -> (usize, Planned) {
        if !self.left_out.is_empty() {
            let all: Vec<String> = self.left_out.iter().map(|(kernel, why)| format!("{kernel} ({why})")).collect();
            self.reasons.push(format!("left out: {}", all.join(", ")));
        }
        let stats = self.found.iter().fold(PlanStats::default(), |all, (_, p)| all.with(&p.stats));
        let count: u64 = self.found.iter().map(|(_, p)| p.considered).sum();
        let mut considered: Vec<Alternative> =
            self.found.iter().flat_map(|(_, p)| p.decision.considered.clone()).collect();
        let row = |name, predicted_s, measured_s, reason| Variant { name, predicted_s, measured_s, reason };
        let of = self.found.iter().map(|(_, p)| row(p.kernel.clone(), p.predicted_s, p.measured_s, None));
        let out = self.left_out.iter().map(|(kernel, why)| row(kernel.clone(), None, None, Some(why.clone())));
        let variants = of.chain(out).collect();
        let (at, mut planned) = self.found.swap_remove(0);
        let decision = &mut planned.decision;
        decision.chosen.measured_s = planned.measured_s;
        considered.retain(|a| (&a.kernel, &a.config) != (&planned.kernel, &planned.config));
        let cost = |a: &Alternative| a.measured_s.unwrap_or(f64::INFINITY);
        considered.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        considered.insert(0, decision.chosen.clone());
        considered.truncate(LISTED);
        (decision.considered, decision.considered_count, planned.considered) = (considered, count, count);
        (decision.variants, decision.selection, decision.kernel_tie) = (variants, self.selection, self.tie);
        planned.reason = format!("{} Of {}: {}", sentence(&self.reasons.join("; ")), planned.kernel, planned.reason);
        decision.reason.clone_from(&planned.reason);
        (planned.cached, planned.stats) = (false, PlanStats { seconds: self.clock.elapsed().as_secs_f64(), ..stats });
        (at, planned)
    }
}

/// What a selector is, and how it ranks.
fn sentence_of(said: &Selection) -> String {
    let Selection { method, inputs, fraction_of_oracle, ranked, .. } = said;
    let names: Vec<&str> = ranked.iter().map(KernelId::as_str).collect();
    let names = names.join(", ");
    let share = fraction_of_oracle.map_or(String::new(), |f| format!(", {:.0}% of the best on unseen ones", 100.0 * f));
    match method.as_str() {
        "own" => format!("the caller's selector ranks {names}"),
        _ => format!("the selector ({method}, learned on {}{share}) ranks {names}", counted(inputs, "input")),
    }
}

/// What the first choice may lose; where nothing is timed, which kernels are worth timing.
fn advice(said: &Selection, is_timed: bool) -> Option<String> {
    let loss = said.expected_loss?;
    let percent = 100.0 * loss;
    let first: Vec<&str> = said.ranked.iter().take(SEARCHED).map(KernelId::as_str).collect();
    Some(match loss > UNSURE && !is_timed {
        true => format!("its first choice is expected to lose {percent:.1}%: time these: {}", first.join(", ")),
        false => format!("its first choice is expected to lose {percent:.1}%"),
    })
}

/// Whether an error says something of one kernel only, so that others may still have a plan.
fn is_of_kernel(error: &RuntimeError) -> bool {
    matches!(
        error,
        RuntimeError::NothingLegal { .. }
            | RuntimeError::NothingRuns { .. }
            | RuntimeError::NothingRight { .. }
            | RuntimeError::Problem(_)
            | RuntimeError::Bind(_)
            | RuntimeError::Strategy { .. }
            | RuntimeError::Setting { .. }
            | RuntimeError::Device(DeviceError::Unsupported { .. })
    )
}
