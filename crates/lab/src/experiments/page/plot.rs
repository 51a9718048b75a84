//! Plots as SVG, drawn by `plotters`: bars with their range, and rates over time.

use super::super::findings::OverTime;
use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, DrawingArea, IntoDrawingArea, IntoSegmentedCoord, LineSeries, PathElement,
    RGBColor, Rectangle, SVGBackend, SegmentValue,
};
use plotters::style::{BLACK, Color, WHITE};

const WIDTH: u32 = 620;
const HEIGHT: u32 = 340;
/// Room for a bar's name below the axis.
const NAMES: u32 = 110;

/// Told apart also by those who see few colours (Okabe and Ito's).
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(230, 159, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// Bars that stand together.
pub struct Group {
    /// What stands below them.
    pub name: String,
    /// Equal positions have equal colours in all groups.
    pub bars: Vec<Bar>,
}

/// One bar; a value that is not a number leaves its place empty.
pub struct Bar {
    /// What the legend calls it.
    pub series: &'static str,
    /// Its height.
    pub value: f64,
    /// Smallest and largest.
    pub range: Option<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Groups of bars.
///
/// # Errors
/// The plot cannot be drawn.
pub fn bars(title: &str, groups: &[Group]) -> Result<String> {
    drawn(|area| draw_bars(area, title, groups))
}

/// Rates over time, a line for each contender.
///
/// # Errors
/// The plot cannot be drawn.
pub fn lines(title: &str, over_time: &[&OverTime]) -> Result<String> {
    drawn(|area| draw_lines(area, title, over_time))
}

fn drawn(draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        draw(&area).context("a plot of the report")?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

fn failed<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("drawing failed: {error}")
}

fn draw_bars(area: &Area<'_>, title: &str, groups: &[Group]) -> Result<()> {
    let values = groups.iter().flat_map(|group| &group.bars);
    let heights = values.map(|bar| bar.range.map_or(bar.value, |(_, max)| max));
    let top = heights.filter(|height| height.is_finite()).fold(0.0, f64::max).max(1e-9) * 1.1;
    let count = groups.len() as i32;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(NAMES)
        .y_label_area_size(56)
        .build_cartesian_2d((0..count).into_segmented(), 0.0..top)
        .map_err(failed)?;
    let name = |at: &SegmentValue<i32>| match at {
        SegmentValue::CenterOf(at) => {
            groups.get(*at as usize).map_or(String::new(), |group| group.name.clone())
        }
        _ => String::new(),
    };
    let style = plotters::style::TextStyle::from(("sans-serif", 10))
        .transform(plotters::style::FontTransform::Rotate90);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(groups.len())
        .x_label_formatter(&name)
        .x_label_style(style)
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    for (at, group) in (0..).zip(groups) {
        for (position, bar) in group.bars.iter().enumerate() {
            draw_bar(&mut chart, at, position, group.bars.len(), bar)?;
        }
    }
    let series = groups.first().map_or(&[][..], |group| &group.bars);
    legend(area, &series.iter().map(|bar| bar.series).collect::<Vec<_>>())
}

type Chart<'a, 'b> = plotters::chart::ChartContext<
    'a,
    SVGBackend<'b>,
    plotters::coord::cartesian::Cartesian2d<
        plotters::coord::ranged1d::SegmentedCoord<plotters::coord::types::RangedCoordi32>,
        plotters::coord::types::RangedCoordf64,
    >,
>;

fn draw_bar(
    chart: &mut Chart<'_, '_>,
    at: i32,
    position: usize,
    count: usize,
    bar: &Bar,
) -> Result<()> {
    if !bar.value.is_finite() {
        return Ok(());
    }
    let colour = COLOURS[position % COLOURS.len()];
    // In pixels, for a segmented axis has no fractions.
    let plane = chart.plotting_area();
    let left = plane.map_coordinate(&(SegmentValue::Exact(at), 0.0));
    let right = plane.map_coordinate(&(SegmentValue::Exact(at + 1), 0.0));
    let slot = f64::from(right.0 - left.0) * 0.8 / count as f64;
    let begin = f64::from(left.0) + f64::from(right.0 - left.0) * 0.1 + slot * position as f64;
    let height = |value: f64| plane.map_coordinate(&(SegmentValue::Exact(at), value)).1;
    let area = plane.strip_coord_spec();
    let (x, y) = area.get_base_pixel();
    let place = |across: f64, value: f64| ((begin + across * slot) as i32 - x, height(value) - y);
    let body = Rectangle::new([place(0.05, bar.value), place(0.95, 0.0)], colour.filled());
    area.draw(&body).map_err(failed)?;
    if let Some((min, max)) = bar.range {
        area.draw(&PathElement::new(vec![place(0.5, min), place(0.5, max)], BLACK))
            .map_err(failed)?;
    }
    Ok(())
}

fn draw_lines(area: &Area<'_>, title: &str, over_time: &[&OverTime]) -> Result<()> {
    let points = || over_time.iter().flat_map(|line| &line.points);
    let end = points().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
    let top = points().map(|point| point.1).fold(0.0, f64::max).max(1e-9) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(failed)?;
    chart.configure_mesh().x_desc("s").light_line_style(WHITE).draw().map_err(failed)?;
    for (line, colour) in over_time.iter().zip(COLOURS.iter().cycle()) {
        chart.draw_series(LineSeries::new(line.points.iter().copied(), colour)).map_err(failed)?;
    }
    legend(area, &over_time.iter().map(|line| line.steering.as_str()).collect::<Vec<_>>())
}

/// Names in their colours, at the top right.
fn legend(area: &Area<'_>, names: &[&str]) -> Result<()> {
    for ((row, name), colour) in (0..).zip(names).zip(COLOURS.iter().cycle()) {
        let (x, y) = (WIDTH as i32 - 130, 34 + 15 * row);
        area.draw(&Rectangle::new([(x, y), (x + 10, y + 10)], colour.filled())).map_err(failed)?;
        let text =
            plotters::element::Text::new((*name).to_owned(), (x + 15, y), ("sans-serif", 12));
        area.draw(&text).map_err(failed)?;
    }
    Ok(())
}
