//! Plots as SVG: lines and points, in the colors of the page's style.

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::escaped;

/// The size of a plot, in pixels of the page at its full width.
const SIZE: (u32, u32) = (760, 340);
/// The colors of the page's style.
const COLORS: usize = 6;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero, evenly.
    Linear,
    /// By powers of ten. Points that are not above zero are left out.
    Logarithmic,
    /// Percentiles, such as 99: evenly by the power of ten of what remains above them.
    Percentiles,
}

/// Points of one color.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the key.
    pub name: String,
    /// The points, in any order.
    pub points: Vec<(f64, f64)>,
    /// Joins the points, by x, with a line.
    pub is_line: bool,
}

impl Series {
    /// Points that a line joins.
    #[must_use]
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, is_line: true }
    }

    /// Points without a line.
    #[must_use]
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { is_line: false, ..Self::line(name, points) }
    }
}

/// A plot of some series.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// The quantity on the horizontal axis, and the one on the vertical axis.
    pub axes: [String; 2],
    /// The scales of the axes.
    pub scales: [Scale; 2],
    /// The series. Series without points are left out.
    pub series: Vec<Series>,
}

impl Plot {
    /// A plot with linear axes.
    #[must_use]
    pub fn new(title: &str, x: &str, y: &str) -> Self {
        let axes = [x.to_owned(), y.to_owned()];
        Self { title: title.into(), axes, scales: [Scale::Linear; 2], series: Vec::new() }
    }

    /// The plot with its title and its key; nothing if it has no points.
    pub(super) fn html(&self) -> String {
        let series: Vec<Series> = self.series.iter().map(|of| self.shown(of)).collect();
        let series: Vec<Series> = series.into_iter().filter(|of| !of.points.is_empty()).collect();
        if series.is_empty() {
            return String::new();
        }
        let keys: String = series
            .iter()
            .enumerate()
            .map(|(at, of)| {
                let color = at % COLORS;
                format!("<span class=\"key k{color}\"></span>{}", escaped(&of.name))
            })
            .collect();
        let title = escaped(&self.title);
        let svg = self.svg(&series).unwrap_or_else(|error| format!("<p>{}</p>", escaped(&error)));
        format!("<figure>\n<figcaption><b>{title}</b>{keys}</figcaption>\n{svg}\n</figure>\n")
    }

    /// A series as it is drawn: sorted, without points that a scale has no place for.
    fn shown(&self, series: &Series) -> Series {
        let [x_scale, y_scale] = self.scales;
        let has_place = |scale: Scale, value: f64| match scale {
            Scale::Linear => value.is_finite(),
            Scale::Logarithmic => value.is_finite() && value > 0.0,
            Scale::Percentiles => (0.0..100.0).contains(&value),
        };
        let is_shown = |(x, y): &(f64, f64)| has_place(x_scale, *x) && has_place(y_scale, *y);
        let points = series.points.iter().copied().filter(is_shown);
        let mut points: Vec<_> =
            points.map(|(x, y)| (x_scale.position(x), y_scale.position(y))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series { points, ..series.clone() }
    }

    fn svg(&self, series: &[Series]) -> Result<String, String> {
        let all = || series.iter().flat_map(|of| of.points.iter().copied());
        let range = |scale: Scale, of: fn((f64, f64)) -> f64| {
            let least = all().map(of).fold(f64::INFINITY, f64::min);
            let most = all().map(of).fold(f64::NEG_INFINITY, f64::max);
            match scale {
                Scale::Linear => least.min(0.0)..if most > 0.0 { most * 1.05 } else { 1.0 },
                Scale::Logarithmic | Scale::Percentiles => least / 1.3..most * 1.3,
            }
        };
        let (x, y) = (range(self.scales[0], |(x, _)| x), range(self.scales[1], |(_, y)| y));
        let log = |range: std::ops::Range<f64>| LogCoord::from(range.log_scale());
        let [x_linear, y_linear] = self.scales.map(|scale| scale == Scale::Linear);
        match (x_linear, y_linear) {
            (true, true) => self.draw(series, x, y),
            (false, true) => self.draw(series, log(x), y),
            (true, false) => self.draw(series, x, log(y)),
            (false, false) => self.draw(series, log(x), log(y)),
        }
    }

    fn draw<X, Y>(&self, series: &[Series], x: X, y: Y) -> Result<String, String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin(12)
                .x_label_area_size(44)
                .y_label_area_size(76)
                .build_cartesian_2d(x, y)
                .map_err(|error| error.to_string())?;
            let font = |size: i32| ("sans-serif", size).into_font();
            let [x_scale, y_scale] = self.scales;
            chart
                .configure_mesh()
                .x_desc(&self.axes[0])
                .y_desc(&self.axes[1])
                .axis_desc_style(font(14))
                .label_style(font(13))
                .bold_line_style(BLACK.mix(0.2))
                .light_line_style(TRANSPARENT)
                .x_label_formatter(&|at| x_scale.label(*at))
                .y_label_formatter(&|at| y_scale.label(*at))
                .draw()
                .map_err(|error| error.to_string())?;
            for (at, of) in series.iter().enumerate() {
                let color = mark(at);
                if of.is_line {
                    let line = LineSeries::new(of.points.iter().copied(), color.stroke_width(2));
                    chart.draw_series(line).map_err(|error| error.to_string())?;
                }
                let circles = of.points.iter().map(|at| Circle::new(*at, 3, color.filled()));
                chart.draw_series(circles).map_err(|error| error.to_string())?;
            }
            area.present().map_err(|error| error.to_string())?;
        }
        Ok(themed(svg))
    }
}

impl Scale {
    /// The place of a value on the axis.
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Percentiles => 100.0 / (100.0 - value),
            Self::Linear | Self::Logarithmic => value,
        }
    }

    /// The label at a place on the axis.
    fn label(self, position: f64) -> String {
        let value = match self {
            // Others would overlap: 98, 98.333, 98.571, …
            Self::Percentiles if !is_power_of_ten(position) => return String::new(),
            Self::Percentiles => 100.0 - 100.0 / position,
            Self::Linear | Self::Logarithmic => position,
        };
        match value.abs() {
            large if large >= 1e6 => format!("{} M", rounded(value / 1e6)),
            large if large >= 1e4 => format!("{} k", rounded(value / 1e3)),
            _ => rounded(value),
        }
    }
}

fn is_power_of_ten(value: f64) -> bool {
    let exponent = value.log10();
    (exponent - exponent.round()).abs() < 1e-9
}

/// At most three decimals, without zeros at the end.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A placeholder for the color of a series, which the style replaces.
fn mark(series: usize) -> RGBColor {
    RGBColor(1, 2, (series % COLORS) as u8)
}

/// Takes the colors from the page: those of series by classes, black from its text.
fn themed(svg: String) -> String {
    let mut svg = svg
        .replace(" xmlns=\"http://www.w3.org/2000/svg\"", "")
        .replace("\"#000000\"", "\"currentColor\"");
    for color in 0..COLORS {
        for (attribute, class) in [("stroke", 's'), ("fill", 'f')] {
            let from = format!("{attribute}=\"#0102{color:02X}\"");
            svg = svg.replace(&from, &format!("class=\"{class}{color}\""));
        }
    }
    svg
}
