//! Grouped bars as SVG.

use std::fmt::Write;

/// One diagram: groups of bars with a name each, a bar a method, in percent.
pub(crate) struct Panel {
    /// What stands above it.
    pub title: String,
    /// Name and values.
    pub groups: Vec<(String, Vec<f64>)>,
}

const COLOURS: [&str; 8] = ["#444444", "#9ecae1", "#4292c6", "#d94801", "#fdae6b", "#74c476", "#c7c7c7", "#dadaeb"];
const BAR: f64 = 7.0;
const HEIGHT: f64 = 130.0;
const GAP: f64 = 14.0;
const LEFT: f64 = 44.0;
/// From one row of panels to the next.
const ROW: f64 = HEIGHT + 70.0;

/// All panels, so many in a row; a bar a method.
pub(crate) fn bars(panels: &[Panel], methods: &[&str], columns: usize) -> String {
    let of_panel = |p: &Panel| p.groups.len() as f64 * (methods.len() as f64 * BAR + GAP) + GAP;
    let widest = panels.iter().map(of_panel).fold(0.0, f64::max) + LEFT;
    let rows = panels.len().div_ceil(columns.max(1));
    let (width, height) = (widest * columns.min(panels.len()) as f64 + GAP, ROW * rows as f64 + 40.0);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10">
<rect width="{width}" height="{height}" fill="white"/>
"#
    );
    for (i, method) in methods.iter().enumerate() {
        let x = LEFT + 95.0 * i as f64;
        let colour = COLOURS[i % COLOURS.len()];
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            r#"<rect x="{x}" y="10" width="10" height="10" fill="{colour}"/><text x="{}" y="19">{method}</text>"#,
            x + 14.0
        );
    }
    for (i, panel) in panels.iter().enumerate() {
        let left = LEFT + widest * (i % columns.max(1)) as f64;
        let bottom = 30.0 + ROW * (i / columns.max(1)) as f64 + HEIGHT + 24.0;
        draw(&mut svg, panel, methods.len(), left, bottom, of_panel(panel));
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, panel: &Panel, methods: usize, left: f64, bottom: f64, width: f64) {
    let _ = writeln!(svg, r#"<text x="{left}" y="{}" font-size="12">{}</text>"#, bottom - HEIGHT - 8.0, panel.title);
    for percent in [0, 25, 50, 75, 100] {
        let y = bottom - HEIGHT * f64::from(percent) / 100.0;
        let _ = writeln!(
            svg,
            r##"<path d="M{left} {y}h{width}" stroke="#ddd"/><text x="{}" y="{}" text-anchor="end">{percent}</text>"##,
            left - 4.0,
            y + 3.0
        );
    }
    for (g, (name, values)) in panel.groups.iter().enumerate() {
        let x = left + GAP + g as f64 * (methods as f64 * BAR + GAP);
        for (i, value) in values.iter().enumerate() {
            let height = HEIGHT * value.clamp(0.0, 100.0) / 100.0;
            let _ = writeln!(
                svg,
                r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{height:.1}" fill="{}"/>"#,
                x + BAR * i as f64,
                bottom - height,
                BAR - 1.0,
                COLOURS[i % COLOURS.len()]
            );
        }
        let middle = x + BAR * values.len() as f64 / 2.0;
        let _ = writeln!(svg, r#"<text x="{middle:.1}" y="{}" text-anchor="middle">{name}</text>"#, bottom + 14.0);
    }
}
