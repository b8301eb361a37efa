//! Line plots as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;
/// Told apart also by people who do not see all colours (Okabe and Ito, 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00"];
/// A line needs no more points than this.
const POINTS_MAX: usize = 200;

/// One line for each name, over axes that hold all of them.
pub fn lines(title: &str, across: &str, up: &str, lines: &BTreeMap<String, Vec<(f64, f64)>>) -> String {
    let axes = Axes::of(lines);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, (LEFT, 20.0), title);
    text(&mut svg, (LEFT, HEIGHT - 10.0), across);
    text(&mut svg, (4.0, TOP - 4.0), up);
    axes.draw(&mut svg);
    for (place, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let thinned = points.iter().step_by(points.len().div_ceil(POINTS_MAX).max(1)).chain(points.last());
        let path: Vec<String> =
            thinned.map(|&point| axes.place(point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = path.join(" ");
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{points}\"/>"
        );
        let y = TOP + 16.0 * (place as f64 + 0.5);
        let x = WIDTH - RIGHT + 12.0;
        let _ = writeln!(svg, "<path d=\"M{x} {y}h16\" stroke=\"{colour}\" stroke-width=\"3\"/>");
        text(&mut svg, (x + 22.0, y + 4.0), name);
    }
    svg.push_str("</svg>\n");
    svg
}

struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    fn of(lines: &BTreeMap<String, Vec<(f64, f64)>>) -> Axes {
        let range = |pick: fn(&(f64, f64)) -> f64| {
            let values = lines.values().flatten().map(pick).filter(|value| value.is_finite());
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            if high > low { (low, high) } else { (0.0, 1.0) }
        };
        Axes { x: range(|point| point.0), y: range(|point| point.1) }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = (x - self.x.0) / (self.x.1 - self.x.0);
        let up = (y - self.y.0) / (self.y.1 - self.y.0);
        (LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))
    }

    fn draw(&self, svg: &mut String) {
        for step in 0..=5 {
            let share = f64::from(step) / 5.0;
            let (x, y) = (self.x.0 + share * (self.x.1 - self.x.0), self.y.0 + share * (self.y.1 - self.y.0));
            let (left, level) = self.place((self.x.0, y));
            let _ = writeln!(svg, "<path d=\"M{left:.1} {level:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - RIGHT);
            text(svg, (left - 44.0, level + 4.0), &number(y));
            let (across, bottom) = self.place((x, self.y.0));
            text(svg, (across - 8.0, bottom + 16.0), &number(x));
        }
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn text(svg: &mut String, (x, y): (f64, f64), words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_corner_to_corner_and_names_are_escaped() {
        let plot = lines("a < b", "x", "y", &[("one & two".into(), vec![(0.0, 0.0), (2.0, 4.0)])].into());
        assert!(plot.contains("points=\"60.0,392.0 430.0,36.0 430.0,36.0\""), "{plot}");
        assert!(plot.contains("a &lt; b") && plot.contains("one &amp; two"));
    }
}
