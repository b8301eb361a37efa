//! Gauges that are computed on demand, before `/metrics` is rendered.

use tokio::runtime::Handle;

use stint_ledger::{AccountId, Ledger, LimitStatus, RequestScope};
use stint_types::metrics::{Metrics, ServerMetrics};

use super::log;
use super::model_registry::ModelRegistry;

/// Sets all of them.
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, accounts: &[AccountId], registry: &ModelRegistry) {
    let stats = ledger.stats();
    metrics.ledger.stalled.set(i64::from(stats.stalled));
    metrics.ledger.pending.set(i64::try_from(stats.pending).unwrap_or(i64::MAX));
    metrics.ledger.stranded.set(ledger.stranded().as_dollars());
    metrics.money.reserved.set(ledger.reserved().money.as_dollars());
    let now = ledger.now();
    for account in accounts {
        let (gauge, labels) = (&metrics.money.left, &[account.as_str()]);
        match smallest_share_left(&ledger.statement(account, &RequestScope::default(), now)) {
            Some(left) => gauge.with_label_values(labels).set(left),
            None => drop(gauge.remove_label_values(labels)),
        }
    }
    let lost = &metrics.server.log_lines_dropped;
    lost.inc_by(log::dropped().saturating_sub(lost.get()));
    refresh_runtime(&metrics.server);
    registry.engines().for_each(|engine| engine.refresh(metrics));
}

/// What is left of the budget that is nearest its end. A rate is used up again and again, and a limit of nothing pauses its holder:
/// neither is a budget.
fn smallest_share_left(statement: &[LimitStatus]) -> Option<f64> {
    let budgets = statement.iter().filter(|line| !line.limit.is_rate() && line.max.size() > 0);
    budgets.map(|line| line.left.share_of(line.max)).min_by(f64::total_cmp)
}

/// How the runtime stands, where this is asked from one.
fn refresh_runtime(server: &ServerMetrics) {
    let Ok(handle) = Handle::try_current() else { return };
    let runtime = handle.metrics();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    server.workers.set(count(runtime.num_workers()));
    server.alive_tasks.set(count(runtime.num_alive_tasks()));
    server.global_queue_depth.set(count(runtime.global_queue_depth()));
    let busy: f64 = (0..runtime.num_workers())
        .map(|worker| runtime.worker_total_busy_duration(worker).as_secs_f64())
        .sum();
    server.busy.inc_by((busy - server.busy.get()).max(0.0));
}

/// Shows what was built.
pub(super) fn show_build(metrics: &Metrics) {
    let features = [("local", cfg!(feature = "local")), ("postgres", cfg!(feature = "postgres"))];
    let on: Vec<&str> = features.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    // Whoever builds it may say from which commit.
    let commit = option_env!("STINT_COMMIT").unwrap_or_default();
    let labels = &[env!("CARGO_PKG_VERSION"), commit, &*on.join(",")];
    metrics.server.build.with_label_values(labels).set(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::{Amount, Limit, Unit, Window};

    fn line(unit: Unit, window: Window, max: u64, left: u64) -> LimitStatus {
        let amount = |size: u64| Amount::new(unit, size);
        LimitStatus {
            limit: Limit::of_key(unit, window),
            max: amount(max),
            spent: amount(max - left),
            reserved: amount(0),
            left: amount(left),
            resets_at: None,
        }
    }

    #[test]
    fn rates_and_pauses_are_no_budget_that_is_nearly_spent() {
        let budget = line(Unit::Requests, Window::Day, 10, 5);
        let rates =
            [line(Unit::Requests, Window::Minute, 10, 0), line(Unit::Concurrency, Window::Total, 2, 0)];
        let paused = line(Unit::Requests, Window::Total, 0, 0);
        assert_eq!(smallest_share_left(&[rates.to_vec(), vec![paused.clone(), budget]].concat()), Some(0.5));
        assert_eq!(smallest_share_left(&[paused]), None);
    }
}
