//! The pictures of a report.

use super::chart::{Chart, ChartSeries, LineStyle};
use super::policy::SimulationPolicy;
use super::report::{PolicyResult, SimulationReport};

/// The names of files and what is drawn in them.
pub fn plots(report: &SimulationReport) -> Vec<(&'static str, Chart)> {
    let mut plots = vec![
        ("regret.svg", regret(report)),
        ("pace.svg", pace(report)),
        ("queue.svg", queue(report)),
        ("quality.svg", quality(report)),
    ];
    if let Some(result) = report.policies.first() {
        plots.push(("shares.svg", shares(report, result)));
    }
    plots
}

/// Regret against the oracle, added up.
fn regret(report: &SimulationReport) -> Chart {
    let lines = report.policies.iter().filter(|result| result.policy != SimulationPolicy::Oracle);
    let line = |result: &PolicyResult| line(report, result.policy.as_str(), &result.course.regret);
    chart("Regret against the oracle", "dollars", lines.map(line).collect())
}

/// What the tenants with a limit spent, and what their limits allow.
fn pace(report: &SimulationReport) -> Chart {
    let limited = || report.paces.iter().enumerate().filter_map(|(tenant, pace)| Some((tenant, (*pace)?)));
    let mut lines = Vec::new();
    for result in &report.policies {
        let slices = result.course.spent.first().map_or(0, Vec::len);
        let sum = |slice: usize| limited().map(|(tenant, _)| result.course.spent[tenant][slice]).sum();
        let spent: Vec<f64> = (0..slices).map(sum).collect();
        lines.push(line(report, result.policy.as_str(), &spent));
    }
    let allowed: f64 = limited().map(|(_, pace)| pace * report.seconds).sum();
    if allowed > 0.0 {
        let points = vec![(0.0, 0.0), (hours(report), allowed)];
        lines.push(ChartSeries { name: "allowed".into(), points, style: LineStyle::Dashed });
    }
    chart("Spent by tenants with a limit", "dollars", lines)
}

fn queue(report: &SimulationReport) -> Chart {
    let line = |result: &PolicyResult| line(report, result.policy.as_str(), &result.course.queue);
    chart("Delay in queues", "seconds", report.policies.iter().map(line).collect())
}

/// Which model served how much, under one policy.
fn shares(report: &SimulationReport, result: &PolicyResult) -> Chart {
    let layer = |(name, shares): (&std::sync::Arc<str>, &Vec<f64>)| {
        let smooth: Vec<f64> = (0..shares.len()).map(|at| smoothed(shares, at)).collect();
        ChartSeries { style: LineStyle::Layer, ..line(report, name, &smooth) }
    };
    let layers = report.models.iter().zip(&result.course.shares).map(layer).collect();
    chart(&format!("Share of each model under {}", result.policy), "of the answers", layers)
}

/// What each policy's answers were like, and what they cost.
fn quality(report: &SimulationReport) -> Chart {
    let dot = |result: &PolicyResult| ChartSeries {
        name: result.policy.as_str().into(),
        points: vec![(result.cost_usd, result.quality)],
        style: LineStyle::Dot,
    };
    Chart {
        title: "Quality and cost".into(),
        x_label: "dollars".into(),
        y_label: "chance of a right answer".into(),
        series: report.policies.iter().map(dot).collect(),
    }
}

fn chart(title: &str, upwards: &str, lines: Vec<ChartSeries>) -> Chart {
    Chart { title: title.into(), x_label: "hours".into(), y_label: upwards.into(), series: lines }
}

/// The ends of even slices of the run.
fn line(report: &SimulationReport, name: &str, numbers: &[f64]) -> ChartSeries {
    let slice = hours(report) / stint_types::units::Tokens(numbers.len() as u64).as_f64().max(1.0);
    let mut at = 0.0;
    let point = |&number: &f64| {
        at += slice;
        (at, number)
    };
    ChartSeries { name: name.into(), points: numbers.iter().map(point).collect(), style: LineStyle::Line }
}

/// The mean of a number and its neighbours.
fn smoothed(numbers: &[f64], at: usize) -> f64 {
    let near = &numbers[at.saturating_sub(1)..(at + 2).min(numbers.len())];
    near.iter().sum::<f64>() / stint_types::units::Tokens(near.len() as u64).as_f64().max(1.0)
}

fn hours(report: &SimulationReport) -> f64 {
    report.seconds / 3600.0
}
