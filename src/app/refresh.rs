//! Gauges that are computed on demand, before `/metrics` is rendered.

use stint_ledger::{AccountId, Ledger, RequestScope};
use stint_types::metrics::Metrics;

use super::model_registry::ModelRegistry;

/// Sets all of them.
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, accounts: &[AccountId], registry: &ModelRegistry) {
    let stats = ledger.stats();
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
    registry.engines().for_each(|engine| engine.refresh(metrics));
}
