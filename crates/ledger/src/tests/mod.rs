//! Tests of what the ledger promises, through its public handle.

mod accounts;
mod concurrency;
mod episodes;
mod faults;
mod guards;
#[cfg(not(feature = "shuttle"))]
mod leases;
#[cfg(not(feature = "shuttle"))]
mod linked_coordinator;
pub(crate) mod scripted;
mod shared;
#[cfg(feature = "shuttle")]
mod shuttle;
#[cfg(not(feature = "shuttle"))]
mod storms;
mod tree;
#[cfg(not(feature = "shuttle"))]
mod vault;
mod warnings;
#[cfg(not(feature = "shuttle"))]
mod world;

use std::sync::Arc;

use crate::conformance::{NOW, detail, money, thinking, worst};
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, TenantLimit};
use stint_types::units::{RequestId, Timestamp, Window};

use super::{
    AbandonPolicy, AccountId, Journal, Ledger, MemoryJournal, RequestScope, ReservationRequest, Settings,
};

fn terms(name: &str, limits: &[TenantLimit]) -> AccountTerms {
    AccountTerms { limits: limits.to_vec(), ..AccountTerms::unlimited(AccountId::new(name)) }
}

fn claim(nanos: u64, tokens: u64) -> ReservationRequest {
    claim_of("key", nanos, tokens, NOW)
}

fn claim_of(account: &str, nanos: u64, tokens: u64, now: Timestamp) -> ReservationRequest {
    let (account, id, worst) = (AccountId::new(account), RequestId::new(), worst(nanos, tokens));
    let (about, if_abandoned) = (RequestScope::default(), AbandonPolicy::PostWhole);
    let expires = Timestamp(now.0 + 60_000);
    ReservationRequest {
        account,
        id,
        about,
        worst,
        step: None,
        prices: None,
        if_abandoned,
        rate: None,
        now,
        expires,
    }
}

/// A ledger over this journal, in which `key` may spend so much in all.
async fn open(tasks: &Tasks, journal: Arc<dyn Journal>, nanos: u64) -> Ledger {
    let terms = [terms("key", &[money(Window::Total, nanos)])];
    Ledger::open(tasks, journal, Arc::new(()), Settings::default(), &terms, NOW).await.unwrap()
}

/// What `key` has spent and reserved, in nano-dollars.
fn balance(ledger: &Ledger) -> (u64, u64) {
    let totals = ledger.totals();
    let key = totals.iter().find(|totals| totals.account.as_str() == "key").unwrap();
    (key.spent.money.0, key.reserved.money.0)
}

#[tokio::test]
async fn the_journal_in_memory_conforms() {
    super::conformance::conforms(&MemoryJournal::default()).await;
}
