//! The part *money*: what accounts have spent of each limit and against its pace, what is reserved, and what runs out when.

use std::cmp::{Ordering, Reverse};
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, PaceStatus};
use crate::http::pages;
use stint_ledger::{AccountTotals, LimitStatus};
use stint_types::tenant::{AccountTerms, Directory};
use stint_types::units::{Amount, Facet, Holder, Timestamp, Unit, Window};

use super::series;
use super::state::PageState;

/// How many accounts are listed by what they spent, and how many models.
const SPENDERS_MAX: usize = 12;

/// Less of a window than that says nothing of how fast it is spent.
const ELAPSED_MIN: f64 = 60.0;

/// All of it, with the limits of so many accounts at most: those that run out first.
pub(super) fn part(page: &PageState, gateway: &Gateway, directory: &Directory, most: usize) -> Value {
    let now = gateway.now();
    let limited = directory.snapshot().terms();
    let limited = limited.iter().filter(|terms| !terms.limits.is_empty());
    let mut accounts: Vec<AccountRow<'_>> =
        limited.map(|terms| AccountRow::of(gateway, terms, now)).collect();
    accounts.sort_by(AccountRow::urgency);
    let (reserved, open) = gateway.reserved();
    let metrics = &page.metrics.money;
    let mut models: Vec<(String, f64)> = series::by_label(&metrics.spent, "model").into_iter().collect();
    models.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let model = |(model, usd): &(String, f64)| json!({ "model": model, "usd": usd });
    json!({
        "now": now,
        "reserved_usd": reserved.as_dollars(),
        "open_reservations": open,
        "overrun_usd": series::sum(&metrics.overrun),
        "accounts": accounts.iter().take(most).map(AccountRow::page).collect::<Vec<_>>(),
        "accounts_count": accounts.len(),
        "spenders": spenders(gateway),
        "models": models.iter().take(SPENDERS_MAX).map(model).collect::<Vec<_>>(),
    })
}

/// The accounts that spent most over all time.
fn spenders(gateway: &Gateway) -> Vec<Value> {
    let mut totals = gateway.account_totals();
    totals.sort_by_key(|totals| (Reverse(totals.spent.money), Reverse(totals.settled)));
    let page = |totals: &AccountTotals| {
        json!({
            "account": totals.account.as_str(),
            "spent_usd": totals.spent.money.as_dollars(),
            "reserved_usd": totals.reserved.money.as_dollars(),
            "overrun_usd": totals.overrun.as_dollars(),
            "requests": totals.settled,
        })
    };
    totals.iter().take(SPENDERS_MAX).map(page).collect()
}

/// An account with limits of its own.
struct AccountRow<'t> {
    terms: &'t AccountTerms,
    limits: Vec<LimitRow>,
}

/// How one of them stands.
struct LimitRow {
    status: LimitStatus,
    starts_at: Option<Timestamp>,
    pace: Option<PaceStatus>,
    /// When it is spent at the present rate, where that is before it resets.
    runs_out_at: Option<Timestamp>,
}

impl AccountRow<'_> {
    fn of<'t>(gateway: &Gateway, terms: &'t AccountTerms, now: Timestamp) -> AccountRow<'t> {
        // Seen from itself the account's own limits are the key's; those of accounts above it have rows of their own.
        let own = gateway.account_statement(&terms.account).into_iter();
        let own = own.filter(|line| line.limit.holder == Holder::Key || is_of(line, terms));
        let row = |status: LimitStatus| {
            let pace = gateway.pace_status(&terms.account, &status);
            let starts_at = status.resets_at.map(|_| status.limit.window.start(now, &terms.zone));
            let runs_out_at = runs_out_at(&status, pace, starts_at, now);
            LimitRow { status, starts_at, pace, runs_out_at }
        };
        AccountRow { terms, limits: own.map(row).collect() }
    }

    /// What runs out first comes first, then what is spent most.
    fn urgency(&self, other: &AccountRow<'_>) -> Ordering {
        let first = |row: &AccountRow<'_>| {
            let ends = row.limits.iter().filter_map(|limit| limit.runs_out_at);
            ends.min().unwrap_or(Timestamp(i64::MAX))
        };
        let spent = |row: &AccountRow<'_>| {
            row.limits
                .iter()
                .map(|limit| 1.0 - limit.status.left.share_of(limit.status.max))
                .fold(0.0, f64::max)
        };
        first(self).cmp(&first(other)).then_with(|| spent(other).total_cmp(&spent(self)))
    }

    fn page(&self) -> Value {
        json!({
            "account": self.terms.account.as_str(),
            "limits": self.limits.iter().map(LimitRow::page).collect::<Vec<_>>(),
        })
    }
}

fn is_of(line: &LimitStatus, terms: &AccountTerms) -> bool {
    matches!(&line.limit.holder, Holder::Account(account) if *account == terms.account)
}

impl LimitRow {
    fn page(&self) -> Value {
        let LimitStatus { limit, max, spent, reserved, left, resets_at } = &self.status;
        let about = match &limit.facet {
            Facet::Model(name) => Some(format!("model {name}")),
            Facet::User(_) => Some("each user".to_owned()),
            Facet::Tag(tag) => Some(format!("tag {tag}")),
            Facet::Whole | Facet::Episode(_) | Facet::Tool(..) => None,
        };
        json!({
            "unit": limit.unit.as_str(),
            "window": (limit.unit != Unit::Concurrency).then(|| limit.window.to_string()),
            "about": about,
            "max": number(*max),
            "spent": number(*spent),
            "reserved": number(*reserved),
            "left": number(*left),
            "starts_at": self.starts_at,
            "resets_at": resets_at,
            "pace": self.pace.map(pages::pace),
            "runs_out_at": self.runs_out_at,
        })
    }
}

/// Money in dollars, all else as it is counted.
fn number(amount: Amount) -> Value {
    match amount {
        Amount::Money(money) => money.as_dollars().into(),
        other => other.size().into(),
    }
}

/// When what is left is spent, at the rate of the pace, else at that of the window until now.
fn runs_out_at(
    status: &LimitStatus,
    pace: Option<PaceStatus>,
    starts_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let as_number = |amount| number(amount).as_f64();
    let left = as_number(status.left)?;
    let of_window = || {
        let elapsed = seconds(starts_at?, now);
        (elapsed >= ELAPSED_MIN).then_some(as_number(status.spent)? / elapsed)
    };
    let is_counted = status.limit.unit != Unit::Concurrency && status.limit.window != Window::Minute;
    let rate = pace.map(|pace| pace.rate).filter(|rate| *rate > 0.0).or_else(of_window);
    let rate = rate.filter(|rate| is_counted && *rate > 0.0)?;
    let end = now + Duration::try_from_secs_f64(left / rate).ok()?;
    status.resets_at.is_none_or(|resets_at| end < resets_at).then_some(end)
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    let length = u64::try_from(to.0.saturating_sub(from.0)).unwrap_or_default();
    Duration::from_millis(length).as_secs_f64()
}
