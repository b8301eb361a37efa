//! What stands in the cells of the tables, for the screen and for plain text alike.

use crate::app::plan_cli::short_dollars;

use super::rates::CounterRates;
use super::snapshot::{Share, Snapshot, TopLimit, TopRequest, TopTarget};

/// The heads of the three tables.
pub(super) const REQUESTS: [&str; 6] = ["account", "route", "model", "time", "thought", "answer"];
pub(super) const TARGETS: [&str; 6] = ["model", "target", "state", "calls", "queue", "failures"];
pub(super) const LIMITS: [&str; 5] = ["account", "limit", "spent", "of", "spent in"];

/// The line about everything.
pub(super) fn summary(snapshot: &Snapshot, rates: Option<CounterRates>) -> Vec<String> {
    let Snapshot { version, not_ready, counters, .. } = snapshot;
    let state = not_ready.as_ref().map_or_else(|| "ready".to_owned(), |why| format!("NOT READY: {why}"));
    let came = match rates {
        Some(rates) => format!(
            "{}/s requests  {}/s refused  {}/s thought  {}/s answer  ${}/h",
            few(rates.requests),
            few(rates.refused),
            few(rates.thinking),
            few(rates.solution),
            short_dollars(rates.usd)
        ),
        None => format!(
            "{} requests  {} refused  {} thought  {} answer  ${} since the start",
            counters.requests,
            counters.refused,
            counters.thinking,
            counters.solution,
            short_dollars(counters.usd)
        ),
    };
    let now = format!(
        "{} at work  {} queued  {} connections  ${} reserved",
        snapshot.in_flight,
        snapshot.queued,
        snapshot.connections,
        short_dollars(snapshot.reserved_usd)
    );
    vec![format!("stint {version}  {state}"), came, now]
}

/// The cells of a request.
pub(super) fn request(request: &TopRequest) -> [String; 6] {
    let TopRequest { account, route, model, answers, .. } = request;
    let several = if *answers > 1 { format!(" ×{answers}") } else { String::new() };
    let model = model.as_ref().map_or_else(|| "waits".to_owned(), |model| format!("{model}{several}"));
    [
        account.clone(),
        route.clone(),
        model,
        seconds(request.seconds),
        tokens(request.thinking),
        tokens(request.solution),
    ]
}

/// The cells of a target.
pub(super) fn target(target: &TopTarget) -> [String; 6] {
    let state = match (&target.why, target.is_available) {
        (Some(why), _) => why.clone(),
        (None, true) if !target.is_loaded => "not loaded".to_owned(),
        (None, true) => "up".to_owned(),
        (None, false) => "left alone".to_owned(),
    };
    let calls = match target.limit {
        Some(limit) => format!("{}/{limit}", target.in_flight),
        None => target.in_flight.to_string(),
    };
    [
        target.model.clone(),
        target.name.clone(),
        state,
        calls,
        target.queue.to_string(),
        target.failures.to_string(),
    ]
}

/// The cells of a limit.
pub(super) fn limit(limit: &TopLimit) -> [String; 5] {
    let amount = |amount: f64| {
        if limit.is_money { format!("${}", short_dollars(amount)) } else { format!("{amount:.0}") }
    };
    [
        limit.account.clone(),
        limit.about.clone(),
        amount(limit.spent.used + limit.reserved),
        amount(limit.spent.whole),
        limit.runs_out_in.map(seconds).unwrap_or_default(),
    ]
}

/// A bar of so many cells, as full as the share says.
pub(super) fn bar(share: Share, cells: usize) -> String {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "few"
    )]
    let full = ((share.ratio() * cells as f64).round() as usize).min(cells);
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

fn tokens(share: Share) -> String {
    // What is beyond a million stands for no limit at all.
    if share.whole >= 1e6 {
        format!("{:.0}", share.used)
    } else {
        format!("{:.0}/{:.0}", share.used, share.whole)
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 100.0 => format!("{short:.1}s"),
        minutes if minutes < 6000.0 => format!("{:.0}m", minutes / 60.0),
        hours if hours < 360_000.0 => format!("{:.0}h", hours / 3600.0),
        days => format!("{:.0}d", days / 86_400.0),
    }
}

fn few(number: f64) -> String {
    if number >= 100.0 || number == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_thought() {
        let shown = [(0.0, 8.0), (3.0, 8.0), (9.0, 8.0), (1.0, 0.0)]
            .map(|(used, whole)| bar(Share { used, whole }, 8));
        assert_eq!(shown, ["░░░░░░░░", "███░░░░░", "████████", "░░░░░░░░"]);
    }

    #[test]
    fn times_are_shown_in_one_unit() {
        assert_eq!(
            [0.04, 12.34, 600.0, 7200.0, 864_000.0].map(seconds),
            ["0.0s", "12.3s", "10m", "2h", "10d"]
        );
    }
}
