//! Panels of marks, coloured and shaped by series.

use crate::{Canvas, ChartError, Drawn, NAMED, colour, draw};
use plotters::prelude::{ChartBuilder, Circle, Color, Cross, SeriesLabelPosition, TriangleMarker, WHITE};

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    name: String,
    log: bool,
    /// Of the logarithms where it is logarithmic.
    range: (f64, f64),
}

impl Axis {
    /// An axis over the finite ones of these values: logarithmic where they are positive and far apart.
    pub fn over(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let finite = values.filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let log = low > 0.0 && high > 20.0 * low;
        let range = match (log, low < high) {
            (true, _) => (low.ln(), high.ln()),
            (false, true) => (low, high),
            // One value, or none, stands in the middle.
            (false, false) => (low.min(1.0) - 1.0, high.max(0.0) + 1.0),
        };
        Self { name: name.to_owned(), log, range }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }

    fn label(&self, place: f64) -> String {
        let value = if self.log { place.exp() } else { place };
        match value.abs() {
            v if v >= 1e6 => format!("{:.1}M", value / 1e6),
            v if v >= 1e4 => format!("{:.0}k", value / 1e3),
            v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        }
    }
}

/// One mark of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Value along the horizontal axis.
    pub x: f64,
    /// Value along the vertical axis.
    pub y: f64,
    /// Which series; those from [`NAMED`] on share a colour.
    pub series: usize,
}

/// One panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// Its marks; those that are not finite are left out.
    pub marks: Vec<Mark>,
}

/// Draws panels side by side over the same axes; the last one has a legend with the names of the series.
///
/// # Errors
/// Numbers that cannot be placed.
pub fn scatter(panels: &[Panel], (x, y): (&Axis, &Axis), series: &[String]) -> Result<String, ChartError> {
    let count = panels.len().max(1);
    draw((400 * count as u32 + 40, 430), |canvas| {
        let areas = canvas.split_evenly((1, count));
        let last = panels.len().saturating_sub(1);
        let named = |i: usize| if i == last { series } else { &[] };
        areas.iter().zip(panels).enumerate().try_for_each(|(i, (area, panel))| on(area, panel, (x, y), named(i)))
    })
}

fn on(area: &Canvas<'_>, panel: &Panel, (x, y): (&Axis, &Axis), series: &[String]) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 13))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(58)
        .build_cartesian_2d(x.range.0..x.range.1, y.range.0..y.range.1)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(&x.name).y_desc(&y.name).x_labels(6).y_labels(6).disable_mesh();
    mesh.x_label_formatter(&|v| x.label(*v)).y_label_formatter(&|v| y.label(*v)).draw()?;
    for at in 0..=NAMED {
        let own = panel.marks.iter().filter(|m| m.series.min(NAMED) == at).map(|m| (x.place(m.x), y.place(m.y)));
        let places = own.filter(|(x, y)| x.is_finite() && y.is_finite());
        let colour = colour(at);
        // Each series has a shape as well, for those who see no colours.
        let drawn = match at % 3 {
            0 => chart.draw_series(places.map(|p| Circle::new(p, 3, colour.stroke_width(1))))?,
            1 => chart.draw_series(places.map(|p| Cross::new(p, 3, colour.stroke_width(1))))?,
            _ => chart.draw_series(places.map(|p| TriangleMarker::new(p, 4, colour.stroke_width(1))))?,
        };
        if let Some(name) = series.get(at) {
            drawn.label(name).legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
        }
    }
    if series.is_empty() {
        return Ok(());
    }
    let labels = SeriesLabelPosition::UpperLeft;
    chart.configure_series_labels().position(labels).background_style(WHITE.mix(0.8)).draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_share_axes_and_the_last_one_names_the_series() {
        let x = Axis::over("m", [1.0, 10.0, 1000.0].into_iter());
        let y = Axis::over("n", [1.0, 2.0, f64::NAN].into_iter());
        assert!(x.log && !y.log);
        let mark = |series| Mark { x: 10.0, y: 1.5, series };
        let lost = Mark { x: f64::NAN, y: 1.0, series: 0 };
        let panel = |title: &str| Panel { title: title.into(), marks: vec![mark(0), mark(1), mark(12), lost] };
        let svg = scatter(&[panel("fastest"), panel("chosen")], (&x, &y), &["csr".into(), "e<l".into()]).unwrap();
        assert_eq!(svg.matches("e&lt;l").count(), 1, "{svg}");
        assert!(svg.contains("fastest") && svg.contains("chosen"));
        // One circle a panel, and one a name of the legend.
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn an_axis_of_one_value_or_none_has_a_width() {
        for values in [vec![5.0], vec![], vec![0.0], vec![-3.0]] {
            let axis = Axis::over("x", values.iter().copied());
            assert!(axis.range.0 < axis.range.1 && axis.range.0.is_finite(), "{values:?} {axis:?}");
        }
    }
}
