//! Whether a request can be refused before it is read: where its account has nothing left, whatever it asks.

use stint_ledger::{LimitStatus, ReserveError, Shortfall};
use stint_types::tenant::Tenant;
use stint_types::units::{Amount, Unit};

use super::RequestRefusal;
use super::handle::Gateway;

impl Gateway {
    /// Why no request of a tenant can be served now, if its account or one above it has used up a limit on requests, or all money and
    /// no model that it may use is free. What is merely held by requests that run is not used up. The model need not be known.
    pub async fn spent(&self, tenant: &Tenant) -> Option<RequestRefusal> {
        let is_spent = |lines: &[LimitStatus]| lines.iter().any(|line| least(line).is_some());
        // What other replicas hold counts as spent here, until they hand it back.
        if !is_spent(&self.account_statement(&tenant.account)) {
            return None;
        }
        let lines = self.statement(tenant).await;
        let pays = self
            .catalog_of(tenant)
            .models
            .values()
            .all(|model| model.tariff.is_some_and(|tariff| !tariff.has_free_input()));
        let line = lines.iter().find(|line| match line.limit.unit {
            Unit::Money => pays && least(line).is_some(),
            Unit::Requests | Unit::Thinking | Unit::Concurrency | Unit::ToolCalls => least(line).is_some(),
        })?;
        let LimitStatus { limit, left, resets_at, .. } = line.clone();
        let shortfall = Shortfall { limit, needed: least(line)?, left, resets_at };
        Some(RequestRefusal::LimitExceeded(ReserveError::Shortfall(shortfall)))
    }
}

/// The least that any request takes of a limit that is used up; `None` if it is not, or does not count what every request takes.
fn least(line: &LimitStatus) -> Option<Amount> {
    let counts_every_request = match line.limit.unit {
        Unit::Money | Unit::Requests => true,
        Unit::Thinking | Unit::ToolCalls | Unit::Concurrency => false,
    };
    (counts_every_request && line.spent.size() >= line.max.size()).then(|| Amount::new(line.limit.unit, 1))
}
