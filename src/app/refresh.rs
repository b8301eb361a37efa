//! Series that are read when somebody looks, and the ledger's own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::ledger::{About, AccountId, Closed, Entry, Ledger, Observer, Warning};
use crate::metrics::{Metrics, OTHER};
use crate::tenant::{Book, Directory, Scope, Tenant, TenantLimit, Terms};
use crate::units::{Facet, Holder, Limit, Money};

use super::alerts::Alerts;
use super::models::Served;

/// What stands for the model where none was chosen.
const NO_MODEL: &str = "none";

/// Passes on what the ledger does, whoever asked it to: to Prometheus its commits, the money that it posts and the
/// limits that are nearly used up; to the operator's webhook what somebody should look at.
pub(super) struct Watcher {
    metrics: Arc<Metrics>,
    told: ArcSwap<Told>,
}

/// Who is told, and of whom.
struct Told {
    alerts: Alerts,
    /// Accounts that the configuration names; series have no others.
    declared: HashSet<AccountId>,
}

impl Watcher {
    pub(super) fn new(metrics: Arc<Metrics>, alerts: Alerts, keys: &Directory) -> Watcher {
        let told = Told { alerts, declared: declared(&keys.book()).into_iter().collect() };
        Watcher { metrics, told: ArcSwap::from_pointee(told) }
    }

    /// From now on these are told, and of these. Series of accounts that are no longer declared are taken away where they
    /// say how it is now.
    pub(super) fn tell(&self, alerts: Alerts, book: &Book) {
        let declared: HashSet<AccountId> = declared(book).into_iter().collect();
        let before = self.told.swap(Arc::new(Told { alerts, declared: declared.clone() }));
        let (money, rollout) = (&self.metrics.money, &self.metrics.rollout);
        for account in before.declared.difference(&declared) {
            for series in [&money.left, &rollout.shadow_price, &rollout.rate, &rollout.target] {
                // What was never shown need not be taken away.
                let _ = series.remove_label_values(&[account.as_str()]);
            }
        }
    }

    /// Where alerts go now.
    pub(super) fn alerts(&self) -> Alerts {
        self.told.load().alerts.clone()
    }
}

/// The accounts that metrics name: they are few, and the operator wrote them down.
pub(super) fn declared(book: &Book) -> Vec<AccountId> {
    let declared = book.declared();
    let keys = declared.tenants.iter().map(|tenant| &tenant.account);
    let anonymous = book.is_open().then(|| Tenant::anonymous().account);
    keys.cloned().chain(anonymous).collect()
}

impl Observer for Watcher {
    fn resolved(&self, closed: &Closed) {
        let Some(Entry::Resolved(resolved)) = closed.entries.last() else { return };
        let told = self.told.load();
        let is_declared = told.declared.contains(&resolved.account);
        let account = if is_declared { resolved.account.as_str() } else { OTHER };
        let money = &self.metrics.money;
        for (model, share) in resolved.shares() {
            let labels = &[model.map_or(NO_MODEL, |model| &**model), account];
            money.spent.with_label_values(labels).inc_by(share.spent.money.as_dollars());
        }
        if closed.overrun.money > Money::ZERO {
            let model = resolved.about.model.as_deref().unwrap_or(NO_MODEL);
            money.overrun.with_label_values(&[model]).inc_by(closed.overrun.money.as_dollars());
            told.alerts.overrun(resolved.account.as_str(), closed);
        }
    }

    fn warned(&self, warning: &Warning) {
        self.metrics.money.warnings.with_label_values(&[&warning.line.limit.kind()]).inc();
        self.told.load().alerts.warned(warning);
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
pub(super) fn refresh(metrics: &Metrics, ledger: &Ledger, accounts: &[AccountId], served: &Served) {
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
    served.engines().for_each(|engine| engine.refresh(metrics));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::conformance::{amounts, dispatched, resolved};
    use crate::ledger::{Amounts, How, Part};
    use crate::tasks::Tasks;
    use crate::tenant::{Declared, MemoryKeyStore};

    #[tokio::test]
    async fn money_is_counted_under_the_model_that_took_it() {
        let (metrics, store) = (Arc::new(Metrics::new().unwrap()), Arc::new(MemoryKeyStore::default()));
        let keys = Directory::open(store, Declared::default(), false).await.unwrap();
        let alerts = Alerts::new(&Tasks::default(), None).unwrap();
        let watcher = Watcher::new(metrics.clone(), alerts, &keys);
        let row = dispatched("key", 1, amounts(100, 0));
        let mut end = resolved(&row, How::Settled, amounts(90, 0));
        end.detail.parts.add(&"judge".into(), Part { money: Money(30), ..Part::default() });
        watcher.resolved(&Closed {
            id: row.id,
            account: row.account.clone(),
            about: row.about,
            how: end.how,
            spent: end.spent,
            tools: row.tools,
            overrun: Amounts::ZERO,
            entries: vec![Entry::Resolved(end)],
            warnings: Vec::new(),
        });
        let spent = |model| metrics.money.spent.with_label_values(&[model, OTHER]).get();
        let (own, judge) = (Money(60).as_dollars(), Money(30).as_dollars());
        assert_eq!([spent("reasoner"), spent("judge")].map(f64::to_bits), [own, judge].map(f64::to_bits));
    }
}
