//! Series that are read when somebody looks, and the ledger's own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::{About, AccountId, Closed, Entry, Ledger, Observer, Warning};
use crate::metrics::{Metrics, OTHER};
use crate::tenant::{Scope, TenantLimit, Terms};
use crate::units::{Facet, Holder, Limit, Money};

use super::alerts::Alerts;
use super::models::Watched;

/// Passes on what the ledger does, whoever asked it to: to Prometheus its commits, the money that it posts and the
/// limits that are nearly used up; to the operator's webhook what somebody should look at.
pub(super) struct Watcher {
    pub(super) metrics: Arc<Metrics>,
    pub(super) alerts: Alerts,
    /// Accounts that the configuration names; series have no others.
    pub(super) declared: HashSet<AccountId>,
}

impl Observer for Watcher {
    fn resolved(&self, closed: &Closed) {
        let Some(Entry::Resolved(resolved)) = closed.entries.last() else { return };
        let model = resolved.about.model.as_deref().unwrap_or("none");
        let is_declared = self.declared.contains(&resolved.account);
        let account = if is_declared { resolved.account.as_str() } else { OTHER };
        let money = &self.metrics.money;
        money.spent.with_label_values(&[model, account]).inc_by(closed.spent.money.as_dollars());
        if closed.overrun.money > Money::ZERO {
            money.overrun.with_label_values(&[model]).inc_by(closed.overrun.money.as_dollars());
            self.alerts.overrun(resolved.account.as_str(), closed);
        }
    }

    fn warned(&self, warning: &Warning) {
        self.metrics.money.warnings.with_label_values(&[&warning.line.limit.kind()]).inc();
        self.alerts.warned(warning);
    }

    fn committed(&self, _: usize, took: Duration) {
        self.metrics.ledger.commit_seconds.observe(took.as_secs_f64());
    }
}

/// Begins the counts of warnings for every kind of limit that there is: a limit is a key's where the key's own account has
/// it, and an account's for all below.
pub(super) fn begin(metrics: &Metrics, terms: &[Terms]) {
    for TenantLimit { window, max, scope } in terms.iter().flat_map(|terms| &terms.limits) {
        let facet = match scope {
            Scope::All => Facet::Whole,
            Scope::Model(model) => Facet::Model(model.clone()),
            Scope::EachUser => Facet::User("".into()),
            Scope::Tag(tag) => Facet::Tag(tag.clone()),
        };
        let limit = Limit { holder: Holder::Key, facet, unit: max.unit(), window: *window };
        let of_account = Limit { holder: Holder::Account(AccountId::new("any")), ..limit.clone() };
        for limit in [limit, of_account] {
            metrics.money.warnings.with_label_values(&[&limit.kind()]);
        }
    }
}

/// Brings all of them up to date.
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, accounts: &[AccountId], engines: &[Watched]) {
    let stats = ledger.stats();
    metrics.ledger.pending.set(i64::try_from(stats.pending).unwrap_or(i64::MAX));
    metrics.ledger.stranded.set(ledger.stranded().as_dollars());
    metrics.money.reserved.set(ledger.reserved().money.as_dollars());
    let now = ledger.now();
    for account in accounts {
        let statement = ledger.statement(account, &About::default(), now);
        if let Some(left) = statement.iter().map(|line| line.left.share_of(line.max)).min_by(f64::total_cmp) {
            metrics.money.left.with_label_values(&[account.as_str()]).set(left);
        }
    }
    for engine in engines {
        engine.refresh(metrics);
    }
}
