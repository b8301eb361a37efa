//! Series that are read when somebody looks, and the ledger's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::Engine;
use crate::ledger::{AccountId, Ledger, Line, Observer};
use crate::metrics::Metrics;
use crate::tenant::{Amount, Tenant};
use crate::units::{Money, Timestamp};

/// Passes the ledger's commits on to Prometheus.
pub(super) struct Commits(pub(super) Arc<Metrics>);

impl Observer for Commits {
    fn committed(&self, _: usize, took: Duration) {
        self.0.ledger_commit_seconds.observe(took.as_secs_f64());
    }
}

/// A local engine whose token counts are shown.
pub(super) struct Watched {
    pub(super) model: Arc<str>,
    pub(super) engine: Engine,
    prefilled: AtomicU64,
    decoded: AtomicU64,
}

impl Watched {
    pub(super) fn new(model: Arc<str>, engine: Engine) -> Watched {
        Watched { model, engine, prefilled: AtomicU64::new(0), decoded: AtomicU64::new(0) }
    }

    /// Adds what the engine did since the last look.
    fn refresh(&self, metrics: &Metrics) {
        let load = self.engine.load();
        for (phase, seen, now) in
            [("prefill", &self.prefilled, load.prefilled), ("decode", &self.decoded, load.decoded)]
        {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            metrics.engine_tokens.with_label_values(&[&*self.model, phase]).inc_by(now.saturating_sub(before));
        }
    }
}

/// Brings all of them up to date.
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, tenants: &[Arc<Tenant>], engines: &[Watched]) {
    let stats = ledger.stats();
    metrics.ledger_pending.set(i64::try_from(stats.pending).unwrap_or(i64::MAX));
    let reserved: Money = ledger.totals().iter().map(|account| account.reserved.money).sum();
    metrics.money_reserved.set(reserved.as_dollars());
    let now = Timestamp::now();
    for tenant in tenants {
        let statement = ledger.statement(&AccountId::new(tenant.name.clone()), now);
        if let Some(left) = statement.iter().map(left).min_by(f64::total_cmp) {
            metrics.budget_left.with_label_values(&[&*tenant.name]).set(left);
        }
    }
    for engine in engines {
        engine.refresh(metrics);
    }
}

/// The share of a limit that is left.
fn left(line: &Line) -> f64 {
    let number = |amount| match amount {
        Amount::Money(money) => money.as_dollars(),
        Amount::Thinking(tokens) => tokens.as_f64(),
    };
    let max = number(line.max);
    if max > 0.0 { number(line.left) / max } else { 0.0 }
}

