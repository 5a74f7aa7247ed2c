//! Costs as stacked bars.

use crate::model::Share;
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const ROW: f64 = 26.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 110.0;
/// Colours that are told apart with most kinds of colour blindness (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#999999"];

/// One bar a kernel: the share of the predicted time that each property costs. Properties beyond the seven that cost most over all
/// bars are one share. Negative costs (weights of either sign) are left out of the picture.
pub fn stacked_bars(title: &str, bars: &[(String, Vec<Share>)]) -> String {
    let mut totals: Vec<(&str, f64)> = Vec::new();
    for (_, shares) in bars {
        let whole: f64 = shares.iter().map(|s| s.seconds.max(0.0)).sum::<f64>().max(f64::MIN_POSITIVE);
        for share in shares {
            let part = share.seconds.max(0.0) / whole;
            match totals.iter_mut().find(|(name, _)| *name == share.property) {
                Some((_, sum)) => *sum += part,
                None => totals.push((&share.property, part)),
            }
        }
    }
    totals.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names: Vec<&str> = totals.iter().take(COLOURS.len() - 1).map(|(name, _)| *name).collect();
    let legend = names.len() + usize::from(totals.len() > names.len());
    let height = TOP + ROW * bars.len() as f64 + 30.0 + 18.0 * (legend as f64 / 3.0).ceil();
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{height}" fill="white"/>
<text x="10" y="22" font-size="14">{}</text>
"#,
        escape(title)
    );
    for (i, (name, shares)) in bars.iter().enumerate() {
        bar(&mut svg, TOP + ROW * i as f64, name, shares, &names);
    }
    let below = TOP + ROW * bars.len() as f64 + 20.0;
    let others = (totals.len() > names.len()).then_some("all others");
    for (i, name) in names.iter().copied().chain(others).enumerate() {
        let (x, y) = (10.0 + 250.0 * (i % 3) as f64, below + 18.0 * (i / 3) as f64);
        let colour = COLOURS[i.min(COLOURS.len() - 1)];
        let _ = writeln!(
            svg,
            r#"<rect x="{x}" y="{:.1}" width="11" height="11" fill="{colour}"/><text x="{}" y="{y:.1}">{}</text>"#,
            y - 10.0,
            x + 16.0,
            escape(name)
        );
    }
    svg + "</svg>\n"
}

fn bar(svg: &mut String, y: f64, name: &str, shares: &[Share], names: &[&str]) {
    let whole: f64 = shares.iter().map(|s| s.seconds.max(0.0)).sum::<f64>().max(f64::MIN_POSITIVE);
    let place = |s: &Share| names.iter().position(|n| *n == s.property).unwrap_or(COLOURS.len() - 1);
    let mut sorted: Vec<&Share> = shares.iter().filter(|s| s.seconds > 0.0).collect();
    sorted.sort_by_key(|s| place(s));
    let _ = writeln!(svg, r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#, LEFT - 8.0, y + 14.0, escape(name));
    let mut x = LEFT;
    for share in sorted {
        let width = (WIDTH - LEFT - RIGHT) * share.seconds / whole;
        let percent = 100.0 * share.seconds / whole;
        let _ = writeln!(
            svg,
            r#"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="18" fill="{}"><title>{}: {percent:.1}%</title></rect>"#,
            COLOURS[place(share)],
            escape(&share.property)
        );
        x += width;
    }
    let _ = writeln!(svg, r#"<text x="{}" y="{:.1}">{:.3e} s</text>"#, WIDTH - RIGHT + 8.0, y + 14.0, whole);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_rectangle_for_each_share_and_escaped_names() {
        let share = |property: &str, seconds: f64| Share { property: property.into(), count: 1.0, seconds };
        let bars = [("a < b".to_owned(), vec![share("fma", 3e-6), share("loads & more", 1e-6), share("less", -1e-7)])];
        let svg = stacked_bars("costs", &bars);
        assert_eq!(svg.matches("<title>").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.contains("loads &amp; more") && svg.contains("75.0%"));
    }
}
