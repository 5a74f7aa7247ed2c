//! Inputs of convolutions: drawn ones, their aspects, and their correlations.

use std::collections::BTreeSet;
use tilewright_core::computation::{Computation, InputLimits};
use tilewright_core::space::Config;
use tilewright_ops::conv::{Conv, Correlation};

fn noise() -> impl FnMut() -> f64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn drawn_inputs_keep_limits_and_fixed_words() {
    let (limits, mut uniform) = (InputLimits { max_flops: 1e8, max_bytes: 1e8 }, noise());
    for fixed in
        ["", "n=4", "dtype=f64,layout=nhwc", "r=3,s=3,stride=2", "direction=filter,c=16", "h=14,w=14,pad=1,r=3"]
    {
        let fixed = Config::parse(fixed).unwrap();
        for _ in 0..200 {
            let input = Conv.draw(&fixed, &limits, &mut uniform).unwrap();
            let (fields, work) = (Conv.fields(&input), Conv.work(&input));
            assert_eq!(Conv.parse(&fields), Ok(input));
            assert!(work.flops <= limits.max_flops && work.bytes <= limits.max_bytes);
            for (name, value) in &fixed.0 {
                let kept = fields.get(name).or_else(|| fields.get(&format!("{name}_h")));
                assert_eq!(kept, Some(value), "{name}");
            }
        }
    }
    let nothing = Conv.draw(&Config::parse("n=64,c=512,h=64,k=512,r=3").unwrap(), &limits, &mut uniform);
    assert!(nothing.unwrap_err().message.contains("limits"));
    let wrong = Conv.draw(&Config::parse("groups=3,c=4").unwrap(), &limits, &mut uniform);
    assert_eq!(wrong.unwrap_err().field, "groups");
}

#[test]
fn awkward_inputs_have_every_edge() {
    let (limits, mut uniform) = (InputLimits { max_flops: 1e6, max_bytes: 1e6 }, noise());
    let mut seen = BTreeSet::new();
    for _ in 0..3000 {
        let input = Conv.draw_awkward(&Config::default(), &limits, &mut uniform).unwrap();
        assert_eq!(Conv.parse(&Conv.fields(&input)), Ok(input.clone()));
        seen.extend(Conv.aspects(&input));
    }
    let directions = ["direction:forward", "direction:data", "direction:filter"];
    let words = [
        "dtype:f32",
        "dtype:f64",
        "dtype:f16",
        "dtype:bf16",
        "out:f32",
        "align:2",
        "layout:nchw",
        "layout:nhwc",
        "align:8",
        "align:64",
        "empty n",
        "empty c",
        "empty k",
    ];
    let kinds = [
        "padded",
        "strided",
        "stride above the filter",
        "dilated",
        "groups",
        "depthwise",
        "pointwise",
        "filter as large as the padded image",
        "bias",
        "residual",
        "relu",
        "n = c = k = 1",
        "odd p",
    ];
    for aspect in directions.into_iter().chain(words).chain(kinds) {
        assert!(seen.contains(aspect), "{aspect} was never drawn: {seen:?}");
    }
}

/// Whatever the direction, the correlations do the operations that the work says, less what no tap meets.
#[test]
fn correlations_do_the_work() {
    let (limits, mut uniform) = (InputLimits { max_flops: 1e6, max_bytes: 1e6 }, noise());
    for _ in 0..1000 {
        let input = Conv.draw_awkward(&Config::default(), &limits, &mut uniform).unwrap();
        let all = Correlation::all(&input);
        let [rows, columns, _] = input.as_product();
        let results: usize = all.iter().map(|of| of.images.count * of.positions() * of.outs.count).sum();
        assert_eq!(results, rows * columns, "{input:?}");
        if input.stride == [1, 1] && all.len() == 1 {
            let sums = all[0].images.count * all[0].positions() * all[0].outs.count * all[0].depth() * input.groups;
            let [rows, columns, depth] = input.as_product();
            assert_eq!(sums, rows * columns * depth * input.groups);
        }
    }
}

#[test]
fn representative_inputs_are_inputs() {
    for fixed in ["", "dtype=f64", "layout=nhwc,direction=data"] {
        let fixed = Config::parse(fixed).unwrap();
        for fields in Conv.representative(&fixed).unwrap() {
            let input = Conv.parse(&fields).unwrap();
            assert!(fixed.0.iter().all(|(name, value)| Conv.fields(&input).get(name) == Some(value)));
        }
    }
}
