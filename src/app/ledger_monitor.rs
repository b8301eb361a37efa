//! Passes on what the ledger does: to Prometheus, and to the operator's webhook. The ledger calls it as its observer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use stint_ledger::{AccountId, ClosedReservation, JournalEntry, LimitWarning, Observer};
use stint_types::metrics::{Metrics, OTHER};
use stint_types::tenant::{AccountTerms, Directory, DirectorySnapshot, LimitSelector, Tenant, TenantLimit};
use stint_types::units::{Facet, Holder, Limit, Money};

use super::alerts::Alerts;

/// What stands for the model where none was chosen.
const NO_MODEL: &str = "none";

/// Passes on what the ledger does. Prometheus gets its commits, the money that it posts and the limits that are nearly used up;
/// the operator's webhook gets what somebody should look at.
pub(super) struct LedgerMonitor {
    metrics: Arc<Metrics>,
    config: ArcSwap<MonitorConfig>,
}

/// Where alerts go, and which accounts have series.
struct MonitorConfig {
    alerts: Alerts,
    /// Accounts of keys that the configuration names; series of what is spent have no others.
    declared: HashSet<AccountId>,
    /// These and the other accounts that it names, which have a series of what is left.
    limited: HashSet<AccountId>,
}

impl MonitorConfig {
    fn new(alerts: Alerts, directory: &DirectorySnapshot) -> MonitorConfig {
        let declared = declared_accounts(directory).into_iter().collect();
        MonitorConfig { alerts, declared, limited: limited_accounts(directory).into_iter().collect() }
    }
}

impl LedgerMonitor {
    pub(super) fn new(metrics: Arc<Metrics>, alerts: Alerts, keys: &Directory) -> LedgerMonitor {
        let config = MonitorConfig::new(alerts, &keys.snapshot());
        LedgerMonitor { metrics, config: ArcSwap::from_pointee(config) }
    }

    /// Takes another webhook and other accounts. Gauges of accounts that are no longer declared are removed.
    pub(super) fn reconfigure(&self, alerts: Alerts, directory: &DirectorySnapshot) {
        let now = Arc::new(MonitorConfig::new(alerts, directory));
        let before = self.config.swap(now.clone());
        let (money, rollout) = (&self.metrics.money, &self.metrics.rollout);
        for account in before.limited.difference(&now.limited) {
            for series in [&money.left, &rollout.shadow_price, &rollout.rate, &rollout.target] {
                // What was never shown need not be taken away.
                let _ = series.remove_label_values(&[account.as_str()]);
            }
        }
    }

    /// Where alerts go now.
    pub(super) fn alerts(&self) -> Alerts {
        self.config.load().alerts.clone()
    }
}

/// The accounts that metrics name: they are few, and the operator wrote them down.
pub(super) fn declared_accounts(directory: &DirectorySnapshot) -> Vec<AccountId> {
    let declared = directory.declared();
    let keys = declared.tenants.iter().map(|tenant| &tenant.account);
    let anonymous = directory.is_open().then(|| Tenant::anonymous().account);
    keys.cloned().chain(anonymous).collect()
}

/// The same with the accounts above keys, and those of keys in the database, that the configuration gives terms.
pub(super) fn limited_accounts(directory: &DirectorySnapshot) -> Vec<AccountId> {
    let terms = directory.declared().terms.iter().map(|terms| terms.account.clone());
    let all: HashSet<AccountId> = declared_accounts(directory).into_iter().chain(terms).collect();
    all.into_iter().collect()
}

impl Observer for LedgerMonitor {
    fn resolved(&self, closed: &ClosedReservation) {
        let Some(JournalEntry::Resolved(resolved)) = closed.entries.last() else { return };
        let config = self.config.load();
        let is_declared = config.declared.contains(&resolved.account);
        let account = if is_declared { resolved.account.as_str() } else { OTHER };
        let money = &self.metrics.money;
        for (model, share) in resolved.shares() {
            let labels = &[model.map_or(NO_MODEL, |model| &**model), account];
            money.spent.with_label_values(labels).inc_by(share.spent.money.as_dollars());
        }
        if closed.overrun.money > Money::ZERO {
            let model = resolved.about.model.as_deref().unwrap_or(NO_MODEL);
            money.overrun.with_label_values(&[model]).inc_by(closed.overrun.money.as_dollars());
            config.alerts.send_overrun(resolved.account.as_str(), closed);
        }
    }

    fn warned(&self, warning: &LimitWarning) {
        self.metrics.money.warnings.with_label_values(&[&warning.status.limit.kind()]).inc();
        self.config.load().alerts.send_warning(warning);
    }

    fn committed(&self, _: usize, took: Duration) {
        self.metrics.ledger.commit_seconds.observe(took.as_secs_f64());
    }
}

/// Begins the counts of warnings for every kind of limit that there is: a limit is a key's where the key's own account has
/// it, and an account's for all below.
pub(super) fn zero_warning_counters(metrics: &Metrics, terms: &[AccountTerms]) {
    for TenantLimit { window, max, scope } in terms.iter().flat_map(|terms| &terms.limits) {
        let facet = match scope {
            LimitSelector::All => Facet::Whole,
            LimitSelector::Model(model) => Facet::Model(model.clone()),
            LimitSelector::EachUser => Facet::User("".into()),
            LimitSelector::Tag(tag) => Facet::Tag(tag.clone()),
        };
        let limit = Limit { holder: Holder::Key, facet, unit: max.unit(), window: *window };
        let of_account = Limit { holder: Holder::Account(AccountId::new("any")), ..limit.clone() };
        for limit in [limit, of_account] {
            metrics.money.warnings.with_label_values(&[&limit.kind()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_ledger::conformance::{amounts, dispatched, resolved};
    use stint_ledger::{Amounts, ModelSpend, ResolutionKind};
    use stint_types::tasks::Tasks;
    use stint_types::tenant::{DeclaredTenants, MemoryKeyStore};

    #[tokio::test]
    async fn money_is_counted_under_the_model_that_took_it() {
        let (metrics, store) = (Arc::new(Metrics::new().unwrap()), Arc::new(MemoryKeyStore::default()));
        let keys = Directory::open(store, DeclaredTenants::default(), false).await.unwrap();
        let alerts = Alerts::new(&Tasks::default(), None).unwrap();
        let watcher = LedgerMonitor::new(metrics.clone(), alerts, &keys);
        let row = dispatched("key", 1, amounts(100, 0));
        let mut end = resolved(&row, ResolutionKind::Settled, amounts(90, 0));
        end.detail.parts.add(&"judge".into(), ModelSpend { money: Money(30), ..ModelSpend::default() });
        watcher.resolved(&ClosedReservation {
            id: row.id,
            account: row.account.clone(),
            about: row.about,
            how: end.how,
            spent: end.spent,
            tools: row.tools,
            overrun: Amounts::ZERO,
            entries: vec![JournalEntry::Resolved(end)],
            warnings: Vec::new(),
        });
        let spent = |model| metrics.money.spent.with_label_values(&[model, OTHER]).get();
        let (own, judge) = (Money(60).as_dollars(), Money(30).as_dollars());
        assert_eq!([spent("reasoner"), spent("judge")].map(f64::to_bits), [own, judge].map(f64::to_bits));
    }
}
