#![doc = include_str!("../README.md")]

mod bars;
mod curves;
mod scatter;

pub use bars::{Bar, stacked_bars};
pub use curves::{Curve, Sample, curves};
pub use scatter::{Axis, Mark, Panel, scatter};

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, WHITE};

/// A picture that could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chart could not be drawn: {0}")]
pub struct ChartError(String);

/// Colours that most people with colour blindness tell apart (Okabe and Ito). The last one stands for all further series.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(153, 153, 153),
];

/// Series that have a colour of their own.
pub const NAMED: usize = COLOURS.len() - 1;

fn colour(series: usize) -> RGBColor {
    COLOURS[series.min(NAMED)]
}

/// The area that the drawing functions work on.
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws on a white canvas of so many pixels.
fn draw<E: std::fmt::Display>(
    size: (u32, u32),
    on: impl FnOnce(&Canvas<'_>) -> Result<(), E>,
) -> Result<String, ChartError> {
    let fault = |e: &dyn std::fmt::Display| ChartError(e.to_string());
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        canvas.fill(&WHITE).map_err(|e| fault(&e))?;
        on(&canvas).map_err(|e| fault(&e))?;
        canvas.present().map_err(|e| fault(&e))?;
    }
    Ok(svg)
}

/// What a drawing function of plotters reports.
type Drawn = Result<(), plotters::drawing::DrawingAreaErrorKind<std::io::Error>>;
