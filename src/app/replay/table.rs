//! The reports of `stint replay`, as a table or as JSON.

use serde_json::json;

use crate::app::output::align_columns;
use stint_lab::replay::{Interval, ReplayReport};

/// One line for each policy under the numbers of the logged one.
pub(super) fn text(reports: &[(String, ReplayReport)], unread: usize) -> String {
    let mut lines = Vec::new();
    if let Some((_, first)) = reports.first() {
        lines.push(format!(
            "{} requests, {} of them judged; what was chosen reached {} right, at ${} and {} s a request",
            first.requests,
            first.judged,
            reached(first.judged, first.success.logged),
            dollars(first.cost.logged.mean),
            seconds(first.seconds.logged.mean),
        ));
    }
    if unread > 0 {
        lines.push(format!("{unread} lines were not understood and are left out"));
    }
    lines.push(String::new());
    let head =
        ["policy", "right", "USD each", "s each", "gain USD", "agrees", "conclusion"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(reports.iter().map(row)).collect();
    lines.push(align_columns(&rows, 7));
    lines.join("\n")
}

fn row((name, report): &(String, ReplayReport)) -> [String; 7] {
    let words = report.conclusion.description().to_owned();
    let agrees = format!("{:.0}", report.value.effective);
    if !report.conclusion.is_conclusive() {
        let dash = || "-".to_owned();
        return [name.clone(), dash(), dash(), dash(), dash(), agrees, words];
    }
    let gain = report.value.gain;
    [
        name.clone(),
        percent(report.success.robust),
        dollars(report.cost.robust.mean),
        seconds(report.seconds.robust.mean),
        if gain.low.is_finite() && gain.high.is_finite() {
            format!("{} ({} to {})", dollars(gain.mean), dollars(gain.low), dollars(gain.high))
        } else {
            format!("{} (interval unknown)", dollars(gain.mean))
        },
        agrees,
        words,
    ]
}

/// The same as one JSON object.
pub(super) fn json(reports: &[(String, ReplayReport)], unread: usize) -> String {
    let reports: Vec<_> =
        reports.iter().map(|(name, report)| json!({ "policy": name, "report": report })).collect();
    json!({ "unread_lines": unread, "policies": reports }).to_string()
}

/// How often an answer was right, of so many that were judged.
fn reached(judged: usize, share: Interval) -> String {
    if judged == 0 { "an unknown share".to_owned() } else { percent(share) }
}

/// An interval that nothing bounds, as of too few requests, is none. No share is below nothing or above all, as an interval by few
/// requests may be.
fn percent(interval: Interval) -> String {
    let share = |part: f64| part.clamp(0.0, 1.0) * 1e2;
    if !(interval.low.is_finite() && interval.high.is_finite()) {
        return format!("{:.1} % (interval unknown)", share(interval.mean));
    }
    format!("{:.1} % ({:.1} to {:.1})", share(interval.mean), share(interval.low), share(interval.high))
}

fn dollars(amount: f64) -> String {
    format!("{amount:.6}")
}

fn seconds(amount: f64) -> String {
    format!("{amount:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_nothing_bounds_is_told_as_unknown() {
        let check = |low, high, words: &str| assert_eq!(percent(Interval { mean: 0.98, low, high }), words);
        check(0.97, 0.99, "98.0 % (97.0 to 99.0)");
        check(f64::NEG_INFINITY, f64::INFINITY, "98.0 % (interval unknown)");
        check(f64::NAN, f64::NAN, "98.0 % (interval unknown)");
        check(-0.295, 1.2, "98.0 % (0.0 to 100.0)");
        let none = Interval { mean: 0.0, low: f64::NAN, high: f64::NAN };
        assert_eq!(reached(0, none), "an unknown share");
        assert_eq!(reached(1, none), "0.0 % (interval unknown)");
    }
}
