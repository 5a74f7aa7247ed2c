//! Wholes as stacked bars of their parts.

use crate::{Canvas, ChartError, Drawn, NAMED, colour, draw};
use plotters::prelude::{Color, IntoFont, IntoTextStyle, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: i32 = 760;
const LEFT: i32 = 190;
const RIGHT: i32 = 110;
const TOP: i32 = 40;
const ROW: i32 = 26;

/// One whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What stands before it.
    pub name: String,
    /// What stands behind it: the whole with its unit.
    pub whole: String,
    /// Its parts by name; those that are not positive are left out.
    pub parts: Vec<(String, f64)>,
}

/// Draws one bar of equal length for each whole. Parts beyond the [`NAMED`] largest over all bars share a colour.
///
/// # Errors
/// Numbers that cannot be placed.
pub fn stacked_bars(title: &str, bars: &[Bar]) -> Result<String, ChartError> {
    let (names, others) = names(bars);
    let legend = (names.len() + usize::from(others)).div_ceil(3);
    let height = TOP + ROW * bars.len() as i32 + 30 + 18 * legend as i32;
    draw((WIDTH as u32, height as u32), |canvas| {
        canvas.draw(&Text::new(title.to_owned(), (10, 10), ("sans-serif", 15).into_font()))?;
        for (i, one) in bars.iter().enumerate() {
            bar(canvas, TOP + ROW * i as i32, one, &names)?;
        }
        let shown = names.iter().map(String::as_str).chain(others.then_some("all others"));
        let below = TOP + ROW * bars.len() as i32 + 10;
        shown.enumerate().try_for_each(|(i, name)| {
            let (x, y) = (10 + 250 * (i % 3) as i32, below + 18 * (i / 3) as i32);
            canvas.draw(&Rectangle::new([(x, y), (x + 11, y + 11)], colour(i).filled()))?;
            canvas.draw(&Text::new(name.to_owned(), (x + 16, y), ("sans-serif", 12).into_font()))
        })
    })
}

/// The parts that have a colour of their own, largest first, and whether there are more.
fn names(bars: &[Bar]) -> (Vec<String>, bool) {
    let mut totals: Vec<(&str, f64)> = Vec::new();
    for bar in bars {
        let whole = whole(bar);
        for (name, part) in &bar.parts {
            let share = part.max(0.0) / whole;
            match totals.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += share,
                None => totals.push((name, share)),
            }
        }
    }
    totals.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = totals.iter().take(NAMED).map(|(name, _)| (*name).to_owned()).collect();
    (named, totals.len() > NAMED)
}

fn whole(bar: &Bar) -> f64 {
    bar.parts.iter().map(|(_, part)| part.max(0.0)).sum::<f64>().max(f64::MIN_POSITIVE)
}

fn bar(canvas: &Canvas<'_>, y: i32, bar: &Bar, names: &[String]) -> Drawn {
    let font = |to: HPos| ("sans-serif", 12).into_font().into_text_style(canvas).pos(Pos::new(to, VPos::Top));
    canvas.draw(&Text::new(bar.name.clone(), (LEFT - 8, y + 3), font(HPos::Right)))?;
    canvas.draw(&Text::new(bar.whole.clone(), (WIDTH - RIGHT + 8, y + 3), font(HPos::Left)))?;
    let place = |name: &String| names.iter().position(|known| known == name).unwrap_or(NAMED);
    let mut parts: Vec<(usize, f64)> = bar.parts.iter().map(|(name, part)| (place(name), *part)).collect();
    parts.retain(|(_, part)| *part > 0.0);
    parts.sort_by_key(|(place, _)| *place);
    let (length, whole) = (f64::from(WIDTH - LEFT - RIGHT), whole(bar));
    let mut before = 0.0;
    parts.into_iter().try_for_each(|(place, part)| {
        let at = |sum: f64| LEFT + (length * sum / whole).round() as i32;
        let corners = [(at(before), y), (at(before + part), y + 18)];
        before += part;
        canvas.draw(&Rectangle::new(corners, colour(place).filled()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_rectangle_for_each_positive_part_and_escaped_names() {
        let part = |name: &str, size: f64| (name.to_owned(), size);
        let parts = vec![part("fma", 3e-6), part("loads & more", 1e-6), part("less", -1e-7)];
        let svg = stacked_bars("costs", &[Bar { name: "a < b".into(), whole: "4 us".into(), parts }]).unwrap();
        // The background, two parts, three names of the legend.
        assert_eq!(svg.matches("<rect").count(), 6, "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("loads &amp; more") && svg.contains("4 us"));
    }

    #[test]
    fn parts_beyond_the_colours_are_one_of_the_legend() {
        let parts = (0..12).map(|i| (format!("p{i}"), 1.0 + f64::from(i))).collect();
        let svg = stacked_bars("many", &[Bar { name: "k".into(), whole: String::new(), parts }]).unwrap();
        assert!(svg.contains("all others") && svg.contains("p11") && !svg.contains("p0"));
    }
}
