//! Curves with bands over a logarithmic axis.

use crate::{Canvas, ChartError, Drawn, colour, draw};
use plotters::prelude::{
    ChartBuilder, Color, IntoLogRange, LineSeries, PathElement, Polygon, SeriesLabelPosition, WHITE,
};

/// One place of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Where it stands on the logarithmic axis, at least 1.
    pub x: f64,
    /// The line, from 0 to 1.
    pub mean: f64,
    /// The lower edge of the band.
    pub low: f64,
    /// The upper edge of the band.
    pub high: f64,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Its places, ascending.
    pub samples: Vec<Sample>,
}

/// Draws one line and one band for each curve. The vertical axis goes from 0 to 1, the horizontal one is logarithmic from 1.
///
/// # Errors
/// Numbers that cannot be placed.
pub fn curves(title: &str, (x, y): (&str, &str), curves: &[Curve]) -> Result<String, ChartError> {
    draw((760, 460), |canvas| on(canvas, title, (x, y), curves))
}

fn on(canvas: &Canvas<'_>, title: &str, (x, y): (&str, &str), curves: &[Curve]) -> Drawn {
    let last = curves.iter().filter_map(|c| c.samples.last()).map(|s| s.x).fold(2.0, f64::max);
    let mut chart = ChartBuilder::on(canvas)
        .caption(title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d((1.0..last).log_scale(), 0.0..1.0)?;
    chart.configure_mesh().x_desc(x).y_desc(y).light_line_style(WHITE).draw()?;
    for (i, curve) in curves.iter().enumerate() {
        let colour = colour(i);
        let upper = curve.samples.iter().map(|s| (s.x, s.high));
        let lower = curve.samples.iter().rev().map(|s| (s.x, s.low));
        chart.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), colour.mix(0.12))])?;
        let line = curve.samples.iter().map(|s| (s.x, s.mean));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8)).draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_has_a_line_a_band_and_an_escaped_name() {
        let sample = |x: f64| Sample { x, mean: 0.5, low: 0.4, high: 0.6 };
        let curve = |name: &str| Curve { name: name.into(), samples: vec![sample(1.0), sample(10.0), sample(100.0)] };
        let svg = curves("a < b", ("evaluations", "fraction"), &[curve("x & y"), curve("other")]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<polygon").count(), 2);
        assert!(svg.contains("x &amp; y") && svg.contains("a &lt; b") && svg.contains("evaluations"), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_an_empty_frame() {
        assert!(curves("none", ("x", "y"), &[]).unwrap().contains("none"));
    }
}
