//! Convergence as an SVG: the best so far as a fraction of the optimum, over evaluations on a log scale.

use super::space::Recording;
use std::fmt::Write as _;
use tilewright_search::run::Trace;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 170.0;
const BOTTOM: f64 = 50.0;
/// Points of a curve.
const STEPS: u32 = 120;
/// Colours that are told apart with most kinds of colour blindness (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

/// One curve a strategy: the mean of its repeats, with the band from the 10th to the 90th percentile.
pub(super) fn convergence(recording: &Recording, curves: &[(String, Vec<Trace>)]) -> String {
    let longest = curves.iter().flat_map(|(_, ts)| ts.iter().map(|t| t.evaluations)).max().unwrap_or(1).max(2);
    let x = |n: f64| LEFT + (WIDTH - LEFT - RIGHT) * n.ln() / (longest as f64).ln();
    let y = |f: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - f);
    let mut svg = frame(recording, longest, &x, &y);
    for (i, (name, traces)) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let (mut line, mut upper, mut lower) = (String::new(), String::new(), Vec::new());
        let mut last = 0;
        for step in 0..=STEPS {
            let n = (longest as f64).powf(f64::from(step) / f64::from(STEPS)).round() as u64;
            if n == last {
                continue;
            }
            last = n;
            let fraction = |t: &Trace| t.best_after(n).map_or(0.0, |c| recording.optimum_s / c);
            let mut all: Vec<f64> = traces.iter().map(fraction).collect();
            all.sort_by(f64::total_cmp);
            let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let _ = write!(line, "{:.1},{:.1} ", x(n as f64), y(mean));
            let _ = write!(upper, "{:.1},{:.1} ", x(n as f64), y(at(0.9)));
            lower.push(format!("{:.1},{:.1} ", x(n as f64), y(at(0.1))));
        }
        let band: String = upper + &lower.into_iter().rev().collect::<String>();
        let row = TOP + 20.0 * i as f64 + 10.0;
        let legend = WIDTH - RIGHT + 15.0;
        let _ = writeln!(svg, r#"<polygon points="{band}" fill="{colour}" fill-opacity="0.12"/>"#);
        let _ = writeln!(svg, r#"<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>"#);
        let _ = writeln!(
            svg,
            r#"<line x1="{legend}" y1="{row}" x2="{}" y2="{row}" stroke="{colour}" stroke-width="2"/><text x="{}" y="{}">{}</text>"#,
            legend + 18.0,
            legend + 24.0,
            row + 4.0,
            escape(name)
        );
    }
    svg + "</svg>\n"
}

/// Axes, grid and title.
fn frame(recording: &Recording, longest: u64, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<text x="{LEFT}" y="22" font-size="14">{}: {} points</text>
"#,
        escape(&recording.device),
        recording.listing.len()
    );
    for tenth in 0..=10 {
        let f = f64::from(tenth) / 10.0;
        let _ = writeln!(
            svg,
            r##"<line x1="{LEFT}" y1="{0:.1}" x2="{1}" y2="{0:.1}" stroke="#ddd"/><text x="{2}" y="{3:.1}" text-anchor="end">{f:.1}</text>"##,
            y(f),
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(f) + 4.0
        );
    }
    let mut tick = 1;
    while tick <= longest {
        for n in [tick, 2 * tick, 5 * tick].into_iter().filter(|n| *n <= longest) {
            let _ = writeln!(
                svg,
                r##"<line x1="{0:.1}" y1="{1:.1}" x2="{0:.1}" y2="{2:.1}" stroke="#ddd"/><text x="{0:.1}" y="{3:.1}" text-anchor="middle">{n}</text>"##,
                x(n as f64),
                y(1.0),
                y(0.0),
                y(0.0) + 18.0
            );
        }
        tick *= 10;
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">evaluations</text>"#,
        x((longest as f64).sqrt()),
        HEIGHT - 12.0
    );
    let middle = y(0.5);
    let _ = writeln!(
        svg,
        r#"<text x="16" y="{middle:.1}" text-anchor="middle" transform="rotate(-90 16 {middle:.1})">fraction of the optimum</text>"#
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
