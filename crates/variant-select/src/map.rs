//! Where which variant is fastest, and where it is chosen: maps as in Vuduc's Figures 5 and 6, as SVG.

use crate::metrics::Table1;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilewright_core::choice::{ChoiceSet, SelectError};
use tilewright_core::feature::FeatureKind;
use tilewright_core::selector::{Candidate, Selector, VariantOrder};

const SIDE: f64 = 320.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 46.0;
const GAP: f64 = 74.0;
const BELOW: f64 = 56.0;
const LEGEND: f64 = 210.0;
/// Colours that are told apart with most kinds of colour blindness (Okabe and Ito).
const COLOURS: [&str; 8] = ["#d55e00", "#009e73", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];
/// Variants with a colour of their own; the others share the last one.
const NAMED: usize = 7;

/// Two features of the input to draw over: the first two sizes, unless they are named.
///
/// # Errors
/// A name that is no feature of the input, or fewer than two sizes.
pub fn axes(data: &ChoiceSet, names: Option<(&str, &str)>) -> Result<(usize, usize), SelectError> {
    let input = &data.schema().input;
    let find = |name: &str| {
        input.iter().position(|f| f.name == name).ok_or_else(|| SelectError::UnknownFeature {
            field: "axes",
            name: name.to_owned(),
            known: input.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(" "),
        })
    };
    if let Some((x, y)) = names {
        return Ok((find(x)?, find(y)?));
    }
    let sizes: Vec<usize> = (0..input.len()).filter(|&i| input[i].kind == FeatureKind::Size).collect();
    match sizes[..] {
        [x, y, ..] => Ok((x, y)),
        _ => Err(SelectError::TooFew { what: "sizes of the input", found: sizes.len(), needed: 2 }),
    }
}

/// One panel: its title, and what stands at each case.
struct Panel {
    title: String,
    variants: Vec<Option<String>>,
}

/// The truth map of the cases and one prediction map a selector, side by side: one mark a case, coloured by variant.
pub fn maps(data: &ChoiceSet, axes: (usize, usize), selectors: &[(String, &dyn Selector)]) -> String {
    let mut panels = vec![Panel { title: "fastest".into(), variants: data.cases().iter().map(fastest).collect() }];
    for (name, selector) in selectors {
        let missed = Table1::of(*selector, data).map_or(0.0, |s| s.delta_miss);
        let title = format!("chosen by {name}: {:.1}% missed", 100.0 * missed);
        panels.push(Panel { title, variants: chosen(*selector, data) });
    }
    draw(data, axes, &panels)
}

fn fastest(case: &tilewright_core::choice::Case) -> Option<String> {
    let ran = case.trials.iter().filter_map(|t| Some((t.cost?, &t.candidate.variant)));
    ran.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, v)| v.clone())
}

fn chosen(selector: &dyn Selector, data: &ChoiceSet) -> Vec<Option<String>> {
    let mut order = VariantOrder::new();
    let of = |case: &tilewright_core::choice::Case| {
        let candidates: Vec<Candidate> = case.trials.iter().map(|t| t.candidate.clone()).collect();
        selector.rank(&case.features, &candidates, &mut order);
        case.best().and(order.first()).map(|&i| candidates[i].variant.clone())
    };
    data.cases().iter().map(of).collect()
}

/// The variants that stand most often in the first panel, most often first.
fn colours(panels: &[Panel]) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for (weight, panel) in panels.iter().enumerate().map(|(i, p)| (if i == 0 { 1000 } else { 1 }, p)) {
        panel.variants.iter().flatten().for_each(|v| *counts.entry(v).or_default() += weight);
    }
    let mut order: Vec<(&String, usize)> = counts.into_iter().collect();
    order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    order.into_iter().take(NAMED).map(|(v, _)| v.clone()).collect()
}

/// Logarithmic where the values are positive and far apart.
struct Scale {
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn of(data: &ChoiceSet, feature: usize) -> Self {
        let values = data.cases().iter().map(|c| f64::from(c.features[feature])).filter(|v| v.is_finite());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let log = low > 0.0 && high > 20.0 * low;
        let (from, to) = if log { (low.ln(), high.ln()) } else { (low, high) };
        if from < to { Self { log, from, to } } else { Self { log: false, from: low - 1.0, to: low + 1.0 } }
    }

    /// From 0 to 1; none where the value is missing.
    fn at(&self, value: f32) -> Option<f64> {
        let value = if self.log { f64::from(value).ln() } else { f64::from(value) };
        Some((value - self.from) / (self.to - self.from)).filter(|x| x.is_finite())
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let tick = |i: u32| {
            let share = f64::from(i) / 4.0;
            let value = self.from + share * (self.to - self.from);
            (share, number(if self.log { value.exp() } else { value }))
        };
        (0..=4).map(tick).collect()
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.1}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

fn draw(data: &ChoiceSet, axes: (usize, usize), panels: &[Panel]) -> String {
    let names = colours(panels);
    let width = LEFT + panels.len() as f64 * (SIDE + GAP) + LEGEND;
    let height = TOP + SIDE + BELOW;
    let (x, y) = (Scale::of(data, axes.0), Scale::of(data, axes.1));
    let input = &data.schema().input;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<rect width="{width}" height="{height}" fill="white"/>
"#
    );
    for (p, panel) in panels.iter().enumerate() {
        let left = LEFT + p as f64 * (SIDE + GAP);
        frame(&mut svg, left, panel, (&x, &input[axes.0].name), (&y, &input[axes.1].name));
        for (case, variant) in data.cases().iter().zip(&panel.variants) {
            let place = x.at(case.features[axes.0]).zip(y.at(case.features[axes.1]));
            if let (Some((cx, cy)), Some(variant)) = (place, variant) {
                let (cx, cy) = (left + SIDE * cx, TOP + SIDE * (1.0 - cy));
                let colour = names.iter().position(|n| n == variant).unwrap_or(NAMED);
                mark(&mut svg, cx, cy, colour);
            }
        }
    }
    for (i, name) in names.iter().enumerate() {
        let (cx, cy) = (width - LEGEND, TOP + 10.0 + 20.0 * i as f64);
        mark(&mut svg, cx, cy, i);
        let _ = writeln!(svg, r#"<text x="{}" y="{}">{}</text>"#, cx + 10.0, cy + 4.0, escape(name));
    }
    svg + "</svg>\n"
}

/// A different shape a variant, for those who see no colours.
fn mark(svg: &mut String, x: f64, y: f64, variant: usize) {
    let colour = COLOURS[variant];
    let _ = match variant % 3 {
        0 => writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="2.6" fill="none" stroke="{colour}"/>"#),
        1 => writeln!(svg, r#"<path d="M{:.1} {:.1}l5 5m0 -5l-5 5" stroke="{colour}" fill="none"/>"#, x - 2.5, y - 2.5),
        _ => writeln!(
            svg,
            r#"<rect x="{:.1}" y="{:.1}" width="4.4" height="4.4" fill="none" stroke="{colour}"/>"#,
            x - 2.2,
            y - 2.2
        ),
    };
}

fn frame(svg: &mut String, left: f64, panel: &Panel, x: (&Scale, &str), y: (&Scale, &str)) {
    let (bottom, middle) = (TOP + SIDE, TOP + SIDE / 2.0);
    let _ = writeln!(
        svg,
        r##"<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/><text x="{left}" y="{}" font-size="13">{}</text>"##,
        TOP - 10.0,
        escape(&panel.title)
    );
    for (share, text) in x.0.ticks() {
        let at = left + SIDE * share;
        let _ = writeln!(svg, r#"<text x="{at:.1}" y="{}" text-anchor="middle">{text}</text>"#, bottom + 16.0);
    }
    for (share, text) in y.0.ticks() {
        let at = bottom - SIDE * share + 4.0;
        let _ = writeln!(svg, r#"<text x="{}" y="{at:.1}" text-anchor="end">{text}</text>"#, left - 6.0);
    }
    let (cx, side) = (left + SIDE / 2.0, left - 44.0);
    let _ = writeln!(svg, r#"<text x="{cx}" y="{}" text-anchor="middle">{}</text>"#, bottom + 38.0, escape(x.1));
    let _ = writeln!(
        svg,
        r#"<text x="{side}" y="{middle}" text-anchor="middle" transform="rotate(-90 {side} {middle})">{}</text>"#,
        escape(y.1)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
