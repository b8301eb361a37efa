//! Gauges that are computed on demand, before `/metrics` is rendered.

use tokio::runtime::Handle;

use stint_ledger::{AccountId, Ledger, RequestScope};
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
        let statement = ledger.statement(account, &RequestScope::default(), now);
        if let Some(left) = statement.iter().map(|line| line.left.share_of(line.max)).min_by(f64::total_cmp) {
            metrics.money.left.with_label_values(&[account.as_str()]).set(left);
        }
    }
    let lost = &metrics.server.log_lines_dropped;
    lost.inc_by(log::dropped().saturating_sub(lost.get()));
    refresh_runtime(&metrics.server);
    registry.engines().for_each(|engine| engine.refresh(metrics));
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
