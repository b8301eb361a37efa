//! Charts as SVG: lines, dots and layers on two axes, readable without any font of their own.

use std::fmt::Write;

/// The size of the picture.
const SIZE: (f64, f64) = (820.0, 440.0);
/// The corners of the plane in it.
const PLOT_AREA: (f64, f64, f64, f64) = (70.0, 40.0, 650.0, 390.0);
/// About so many marks are on an axis.
const TICKS: f64 = 8.0;
/// Told apart by those who see few colours too (Okabe and Ito, *Color universal design*, 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000", "#b0a000"];

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStyle {
    /// Joined by a line.
    Line,
    /// Joined by a broken one.
    Dashed,
    /// Each as a dot with the name beside it.
    Dot,
    /// As a layer upon the layers before it.
    Layer,
}

/// Points with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartSeries {
    /// What the legend says.
    pub name: String,
    /// From left to right; of layers, all at the same places.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub style: LineStyle,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What stands above it.
    pub title: String,
    /// What goes from left to right, with its unit.
    pub x_label: String,
    /// What goes from below to above.
    pub y_label: String,
    /// What is drawn.
    pub series: Vec<ChartSeries>,
}

/// What an axis reaches from and to, and how far its marks are apart.
#[derive(Debug, Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let lines = stack_layers(&self.series);
        let points = || lines.iter().flat_map(|line| line.points.iter()).filter(|(x, y)| (x + y).is_finite());
        let has_dots = self.series.iter().any(|line| line.style == LineStyle::Dot);
        let across = Axis::over(points().map(|point| point.0), has_dots);
        let has_layers = self.series.iter().any(|line| line.style == LineStyle::Layer);
        let upwards = Axis::over(points().map(|point| point.1).chain(has_layers.then_some(0.0)), true);
        let (width, height) = SIZE;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        self.frame(&mut svg, across, upwards);
        // The highest layer first: each lower one covers its foot.
        for (number, line) in lines.iter().enumerate().rev() {
            draw(&mut svg, line, COLOURS[number % COLOURS.len()], across, upwards);
        }
        legend(&mut svg, &self.series);
        svg.push_str("</svg>\n");
        svg
    }

    fn frame(&self, svg: &mut String, across: Axis, upwards: Axis) {
        let (left, top, right, bottom) = PLOT_AREA;
        let middle = f64::midpoint(left, right);
        text(
            svg,
            (middle, top - 16.0),
            "middle",
            &format!("<tspan font-size=\"15\">{}</tspan>", escaped(&self.title)),
        );
        text(svg, (middle, bottom + 38.0), "middle", &escaped(&self.x_label));
        text(svg, (left - 56.0, top - 16.0), "start", &escaped(&self.y_label));
        for mark in across.ticks() {
            let x = across.position(mark, left, right);
            grid_line(svg, (x, top), (x, bottom));
            text(svg, (x, bottom + 18.0), "middle", &across.label(mark));
        }
        for mark in upwards.ticks() {
            let y = upwards.position(mark, bottom, top);
            grid_line(svg, (left, y), (right, y));
            text(svg, (left - 8.0, y + 4.0), "end", &upwards.label(mark));
        }
    }
}

impl Axis {
    /// An axis that all these numbers are on, between even marks.
    fn over(numbers: impl Iterator<Item = f64>, has_margin: bool) -> Axis {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        numbers.for_each(|number| (from, to) = (from.min(number), to.max(number)));
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        if to - from < 1e-9 * to.abs().max(1e-9) {
            to = from + from.abs().max(1e-3);
        }
        let rough = (to - from) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        if has_margin {
            (from, to) = ((from / step).floor() * step, (to / step - 1e-9).ceil() * step);
        }
        Axis { from, to, step }
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        let first = (self.from / self.step).ceil();
        let count = ((self.to / self.step + 1e-9).floor() - first).clamp(0.0, 40.0);
        (0..=40).map(f64::from).take_while(move |number| *number <= count).map(move |number| {
            let mark = (first + number) * self.step;
            if mark.abs() < self.step / 2.0 { 0.0 } else { mark }
        })
    }

    fn position(self, number: f64, first: f64, last: f64) -> f64 {
        first + (number - self.from) / (self.to - self.from) * (last - first)
    }

    /// A mark with as many decimals as its neighbours need.
    fn label(self, mark: f64) -> String {
        let decimals = [(1.0, 0), (0.1, 1), (0.01, 2), (0.001, 3)].into_iter();
        let decimals =
            decimals.filter(|(least, _)| self.step >= least * 0.999).map(|(_, count)| count).next();
        format!("{mark:.*}", decimals.unwrap_or(5))
    }
}

/// Layers as their upper edges.
fn stack_layers(lines: &[ChartSeries]) -> Vec<ChartSeries> {
    let mut below: Vec<f64> = Vec::new();
    let raised = |line: &ChartSeries| {
        if line.style != LineStyle::Layer {
            return line.clone();
        }
        below.resize(line.points.len().max(below.len()), 0.0);
        let points = line.points.iter().zip(&mut below).map(|(&(x, y), sum)| {
            *sum += y;
            (x, *sum)
        });
        ChartSeries { points: points.collect(), ..line.clone() }
    };
    lines.iter().map(raised).collect()
}

fn draw(svg: &mut String, line: &ChartSeries, colour: &str, across: Axis, upwards: Axis) {
    let (left, top, right, bottom) = PLOT_AREA;
    let place = |&(x, y): &(f64, f64)| (across.position(x, left, right), upwards.position(y, bottom, top));
    let places: Vec<(f64, f64)> = line.points.iter().map(place).collect();
    let path: String = places.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    let path = path.trim_end();
    let _ = match (line.style, places.first(), places.last()) {
        (_, None, _) | (_, _, None) => Ok(()),
        (LineStyle::Dot, Some(_), Some(_)) => places.iter().try_for_each(|(x, y)| {
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>")
        }),
        (LineStyle::Layer, Some((first, _)), Some((last, _))) => writeln!(
            svg,
            "<polygon points=\"{first:.1},{bottom} {path} {last:.1},{bottom}\" fill=\"{colour}\" stroke=\"#fff\"/>"
        ),
        (manner, Some(_), Some(_)) => {
            let dashes = if manner == LineStyle::Dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            writeln!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>"
            )
        }
    };
}

fn legend(svg: &mut String, lines: &[ChartSeries]) {
    let (_, top, right, _) = PLOT_AREA;
    let mut y = top + 6.0;
    for (number, line) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let x = right + 14.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
            y - 6.0
        );
        text(svg, (x + 18.0, y + 4.0), "start", &escaped(&line.name));
        y += 20.0;
    }
}

fn grid_line(svg: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" stroke=\"#ddd\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: f64, to: f64, marks: &[&str]) {
        let axis = Axis::over([from, to].into_iter(), true);
        let words: Vec<String> = axis.ticks().map(|mark| axis.label(mark)).collect();
        assert_eq!(words, marks);
    }

    #[test]
    fn marks_are_round_and_embrace_the_numbers() {
        check(0.0, 1.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        check(-3.0, 101.0, &["-20", "0", "20", "40", "60", "80", "100", "120"]);
        check(0.0, 0.001, &["0.00000", "0.00020", "0.00040", "0.00060", "0.00080", "0.00100"]);
    }
}
