//! Series that are read when somebody looks, and the ledger's own.

use std::sync::Arc;
use std::time::Duration;

use crate::ledger::{About, Closed, Entry, Ledger, Observer};
use crate::metrics::Metrics;
use crate::tenant::Tenant;
use crate::units::Money;

use super::models::Watched;

/// Passes on to Prometheus what the ledger does: its commits, and the money that it posts, whoever resolved it.
pub(super) struct Watcher(pub(super) Arc<Metrics>);

impl Observer for Watcher {
    fn resolved(&self, closed: &Closed) {
        let Some(Entry::Resolved(resolved)) = closed.entries.last() else { return };
        let model = resolved.about.model.as_deref().unwrap_or("none");
        let (money, account) = (&self.0.money, resolved.account.as_str());
        money.spent.with_label_values(&[model, account]).inc_by(closed.spent.money.as_dollars());
        if closed.overrun.money > Money::ZERO {
            money.overrun.with_label_values(&[model]).inc_by(closed.overrun.money.as_dollars());
        }
    }

    fn committed(&self, _: usize, took: Duration) {
        self.0.ledger.commit_seconds.observe(took.as_secs_f64());
    }
}

/// Brings all of them up to date.
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, tenants: &[Arc<Tenant>], engines: &[Watched]) {
    let stats = ledger.stats();
    metrics.ledger.pending.set(i64::try_from(stats.pending).unwrap_or(i64::MAX));
    metrics.ledger.stranded.set(ledger.stranded().as_dollars());
    metrics.money.reserved.set(ledger.reserved().money.as_dollars());
    let now = ledger.now();
    for tenant in tenants {
        let statement = ledger.statement(&tenant.account, &About::default(), now);
        if let Some(left) = statement.iter().map(|line| line.left.share_of(line.max)).min_by(f64::total_cmp) {
            metrics.money.left.with_label_values(&[tenant.account.as_str()]).set(left);
        }
    }
    for engine in engines {
        engine.refresh(metrics);
    }
}
