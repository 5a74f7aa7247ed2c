//! Conformance of a [`Computation`].

use crate::Violation;
use crate::results::same_bytes;
use crate::violation::{Conformity, ensure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tilewright_core::buffer::{Filling, Role, Workload};
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

const SUITE: &str = "computation";
const FILLINGS: [Filling; 3] = [Filling::Real, Filling::Exact, Filling::Special];

/// Holds a computation to its contract on the given inputs (small ones: every reference is computed).
///
/// # Errors
/// The first broken promise.
pub fn computation<C: Computation>(computation: &C, inputs: &[C::Input]) -> Conformity {
    for input in inputs {
        fields(computation, input)?;
        features(computation, input)?;
        let work = computation.work(input);
        ensure!(
            [work.flops, work.bytes].iter().all(|w| w.is_finite() && *w >= 0.0),
            "work-is-finite",
            "{work:?} for {input:?}"
        );
        for filling in FILLINGS {
            workload(computation, input, filling)?;
        }
    }
    drawing(computation)
}

fn fields<C: Computation>(computation: &C, input: &C::Input) -> Conformity {
    let fields = computation.fields(input);
    let back = computation.parse(&fields);
    ensure!(back.as_ref() == Ok(input), "fields-read-back", "{fields} reads back as {back:?}, not {input:?}");
    let names: BTreeSet<&str> = fields.0.iter().map(|(n, _)| n.as_str()).collect();
    ensure!(names.len() == fields.0.len(), "fields-read-back", "{fields} names a field twice");
    let mut unknown = fields.clone();
    unknown.0.push(("no_such_word".into(), Value::Int(1)));
    let field = computation.parse(&unknown).map_err(|e| e.field);
    ensure!(
        field == Err("no_such_word".to_owned()),
        "unknown-word-refused",
        "an unknown word gives {field:?}, not an error that names it"
    );
    Ok(())
}

fn features<C: Computation>(computation: &C, input: &C::Input) -> Conformity {
    let names = computation.feature_names();
    let mut out = vec![-1.0];
    computation.features(input, &mut out);
    ensure!(out.first() == Some(&-1.0), "features-append", "features overwrite what stood in the row");
    ensure!(
        out.len() == 1 + names.len(),
        "features-match-names",
        "{} features under {} names for {input:?}",
        out.len() - 1,
        names.len()
    );
    ensure!(out.iter().all(|x| x.is_finite()), "features-are-finite", "{out:?} for {input:?}");
    let distinct: BTreeSet<&str> = names.iter().map(|f| f.name.as_str()).collect();
    ensure!(distinct.len() == names.len(), "features-match-names", "a feature is named twice: {names:?}");
    Ok(())
}

fn workload<C: Computation>(computation: &C, input: &C::Input, filling: Filling) -> Conformity {
    let work = computation.workload(input, filling, 1);
    let again = computation.workload(input, filling, 1);
    ensure!(
        same_bytes(&work.buffers, &again.buffers) && work.scalars == again.scalars,
        "workload-repeats",
        "two workloads of seed 1 differ for {input:?}"
    );
    let other = computation.workload(input, filling, 2);
    let data: usize = work.specs.iter().filter(|s| s.role != Role::Out).map(|s| s.len).sum();
    ensure!(
        data < 64 || !same_bytes(&work.buffers, &other.buffers),
        "workload-follows-seed",
        "the workloads of seeds 1 and 2 are the same for {input:?}"
    );
    let shapes = work.specs.len() == work.buffers.len()
        && work.specs.iter().zip(&work.buffers).all(|(s, b)| s.dtype == b.dtype() && s.len == b.len());
    ensure!(shapes, "workload-matches-specs", "buffers {:?} do not match {:?}", work.buffers, work.specs);
    let buffers = computation.buffers(input);
    ensure!(work.specs == buffers, "workload-matches-buffers", "{:?} where {buffers:?} are taken", work.specs);
    let specs = computation.scalars(input);
    let fit = specs.len() == work.scalars.len() && specs.iter().zip(&work.scalars).all(|(s, x)| s.class.has(*x));
    ensure!(fit, "workload-fits-scalars", "{:?} where {specs:?} are taken", work.scalars);
    poisoned(&work)?;
    let expected = computation.reference(input, &work.buffers, &work.scalars);
    let expected =
        expected.map_err(|e| Violation { suite: SUITE, check: "reference-comes", message: e.to_string() })?;
    for e in &expected.buffers {
        let len = work.buffers.get(e.index).map(tilewright_core::buffer::Buffer::components);
        ensure!(
            len == Some(e.values.len()) && e.values.len() == e.bounds.len(),
            "reference-covers-buffers",
            "{} values and {} bounds for buffer {} of {len:?} elements",
            e.values.len(),
            e.bounds.len(),
            e.index
        );
        ensure!(
            e.bounds.iter().all(|b| *b >= 0.0),
            "reference-covers-buffers",
            "a bound of buffer {} is negative or not a number",
            e.index
        );
    }
    let written = (0..work.specs.len()).filter(|&i| work.specs[i].role != Role::In);
    for i in written {
        let checked = expected.buffers.iter().any(|e| e.index == i);
        ensure!(checked, "reference-covers-buffers", "buffer {:?} is written but not checked", work.specs[i].name);
    }
    Ok(())
}

/// Output-only floating-point buffers hold NaN, so that an element nobody wrote shows.
fn poisoned(work: &Workload) -> Conformity {
    let outputs = work.specs.iter().zip(&work.buffers).filter(|(s, _)| s.role == Role::Out);
    for (spec, buffer) in outputs {
        let nan = spec.dtype.is_integer() || (0..buffer.components()).all(|i| buffer.component(i).is_nan());
        ensure!(nan, "outputs-are-poisoned", "output {:?} is not filled with NaN", spec.name);
    }
    Ok(())
}

fn drawing<C: Computation>(computation: &C) -> Conformity {
    let limits = InputLimits { max_flops: 1e7, max_bytes: 1e6 };
    let series = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || rng.random::<f64>();
        let drawn = (0..64).map(|_| computation.draw(&Config::default(), &limits, &mut uniform));
        drawn.collect::<Result<Vec<_>, _>>()
    };
    let drawn = series(1);
    ensure!(drawn.is_ok(), "draw-succeeds", "{drawn:?}");
    ensure!(drawn == series(1), "draw-repeats", "the same uniform numbers give other inputs");
    for input in drawn.into_iter().flatten() {
        let work = computation.work(&input);
        ensure!(
            work.flops <= limits.max_flops && work.bytes <= limits.max_bytes,
            "draw-keeps-limits",
            "{input:?} needs {work:?}, the limits are {limits:?}"
        );
        let back = computation.parse(&computation.fields(&input));
        ensure!(back.as_ref() == Ok(&input), "fields-read-back", "drawn {input:?} reads back as {back:?}");
        let fixed = Config(computation.fields(&input).0.into_iter().take(1).collect());
        let kept = computation.draw(&fixed, &limits, &mut || 0.5).map(|i| computation.fields(&i));
        ensure!(
            kept.as_ref().is_ok_and(|w| w.get(&fixed.0[0].0) == Some(&fixed.0[0].1)),
            "draw-keeps-fixed-fields",
            "{fixed} drawn as {kept:?}"
        );
    }
    Ok(())
}
