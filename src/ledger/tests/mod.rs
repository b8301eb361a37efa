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
pub(crate) mod model;
mod scripted;
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

use crate::catalog::WorstCase;
use crate::tasks::Tasks;
use crate::tenant::{AccountTerms, TenantLimit};
use crate::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::{
    AbandonPolicy, AccountId, Journal, Ledger, MemoryJournal, RequestScope, ReservationRequest, Settings,
    SettlementDetail,
};

/// 2026-11-20T20:36:40Z.
const NOW: Timestamp = Timestamp(1_795_207_000_000);

fn money(window: Window, nanos: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Money(Money(nanos)))
}

fn thinking(window: Window, tokens: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Thinking(Tokens(tokens)))
}

fn terms(name: &str, limits: &[TenantLimit]) -> AccountTerms {
    AccountTerms { limits: limits.to_vec(), ..AccountTerms::unlimited(AccountId::new(name)) }
}

fn worst(nanos: u64, tokens: u64) -> WorstCase {
    WorstCase { money: Money(nanos), thinking: Tokens(tokens) }
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

fn detail() -> SettlementDetail {
    SettlementDetail { outcome: "stop".into(), ..SettlementDetail::default() }
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
