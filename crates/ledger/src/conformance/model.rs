//! Random operations on hundreds of accounts, against a model that keeps a plain list and adds it up again each time.

use std::time::Duration;

use proptest::prelude::*;

use crate::accounts::WINDOWS;
use crate::{
    AbandonPolicy, AccountId, Amounts, ExtensionResult, Journal, JournalEntry, Ledger, LedgerState,
    MemoryJournal, ModelSpend, RequestScope, ReservationRequest, RollupSpan, Settings, SettlementDetail,
};
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, LimitSelector, TenantLimit};
use stint_types::units::{
    AccountId as Path, Amount, Count, Facet, Money, RequestId, Timestamp, Tokens, Window, Zone,
};

use super::{NOW, amounts, answers_as, detail, money, thinking, worst};

/// Operations on a ledger, one after the other.
#[derive(Debug, Clone)]
pub struct LedgerOps(Vec<LedgerOp>);

#[derive(Debug, Clone)]
enum LedgerOp {
    Reserve { key: usize, about: usize, nanos: u64, tokens: u64 },
    Extend { which: usize, nanos: u64, tokens: u64, model: Option<usize> },
    Dispatch { which: usize },
    Meter { which: usize, nanos: u64 },
    Settle { which: usize, nanos: u64, tokens: u64 },
    Void { which: usize },
    Abandon { which: usize },
    Wait { seconds: u64 },
}

const MODELS: [&str; 2] = ["small", "large"];
const ZONES: [&str; 3] = ["UTC", "Asia/Kolkata", "America/New_York"];

/// Three organisations of five teams of twenty keys: 318 accounts, with limits of every kind.
pub(crate) fn terms() -> Vec<AccountTerms> {
    let mut all = Vec::new();
    for (org, zone) in ZONES.iter().enumerate() {
        let name = Path::new(format!("org{org}"));
        let zone: Zone = zone.parse().unwrap();
        let declare = |account: &Path, limits| AccountTerms {
            limits,
            zone: zone.clone(),
            ..AccountTerms::unlimited(account.clone())
        };
        all.push(declare(
            &name,
            vec![money(Window::Hour, 150), thinking(Window::Day, 400).with_selector(LimitSelector::EachUser)],
        ));
        for team in (0..5).map(|team| name.child(&format!("team{team}"))) {
            let calls = TenantLimit::new(Window::Minute, Amount::Requests(Count(3)));
            all.push(declare(
                &team,
                vec![calls, money(Window::Day, 90).with_selector(LimitSelector::Model("large".into()))],
            ));
            for key in 0..20 {
                let at_once = TenantLimit::new(Window::Total, Amount::Concurrency(Count(2)));
                let limits = vec![money(Window::Total, 70), thinking(Window::Minute, 80), at_once];
                all.push(declare(&team.child(&format!("key{key}")), limits));
            }
        }
    }
    all
}

/// Few enough that limits are met.
pub(crate) fn key(number: usize) -> AccountId {
    AccountId::new(format!("org{}/team{}/key{}", number % 3, number % 2, number % 5))
}

pub(crate) fn about(number: usize) -> RequestScope {
    let tag = number.is_multiple_of(3).then(|| "batch".into());
    RequestScope {
        model: Some(MODELS[number % 2].into()),
        user: (number > 3).then(|| format!("u{}", number % 4).into()),
        tag,
        ..RequestScope::default()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct LedgerModelRow {
    account: AccountId,
    about: RequestScope,
    pub(crate) id: RequestId,
    admitted: Timestamp,
    pub(crate) held: Amounts,
    metered: Option<Amounts>,
    pub(crate) spent: Option<Amounts>,
    is_dispatched: bool,
}

impl LedgerModelRow {
    pub(crate) fn new(
        account: AccountId,
        about: RequestScope,
        id: RequestId,
        admitted: Timestamp,
        held: Amounts,
    ) -> LedgerModelRow {
        LedgerModelRow {
            account,
            about,
            id,
            admitted,
            held,
            metered: None,
            spent: None,
            is_dispatched: false,
        }
    }

    fn counts(&self) -> Amounts {
        self.spent.unwrap_or(self.held)
    }
}

/// The model: what every limit has used is a sum over all rows.
#[derive(Debug, Default)]
pub(crate) struct LedgerModel(pub(crate) Vec<LedgerModelRow>);

impl LedgerModel {
    fn used(&self, of: &AccountTerms, limit: &TenantLimit, facet: &Facet, now: Timestamp) -> u64 {
        let start = limit.window.start(now, &of.zone);
        let unit = limit.max.unit();
        let rows = self.0.iter().filter(|row| {
            of.account.contains(&row.account)
                && limit.window.start(row.admitted, &of.zone) == start
                && row.about.facet(&limit.scope).as_ref() == Some(facet)
                && (row.spent.is_none() || !matches!(limit.max, Amount::Concurrency(_)))
        });
        rows.map(|row| row.counts().of(unit).size()).sum()
    }

    /// Whether so much more fits, for a row that is counted already or for one that is not.
    pub(crate) fn fits(
        &self,
        account: &AccountId,
        about: &RequestScope,
        more: Amounts,
        row: Option<&LedgerModelRow>,
        at: Timestamp,
    ) -> bool {
        terms().iter().filter(|terms| terms.account.contains(account)).all(|terms| {
            terms.limits.iter().all(|limit| {
                let Some(facet) = about.facet(&limit.scope) else { return true };
                let is_new_here =
                    row.is_some_and(|row| row.about.facet(&limit.scope).as_ref() != Some(&facet));
                let held = row.filter(|_| is_new_here).map_or(Amounts::ZERO, |row| row.held);
                let needed = (held + more).of(limit.max.unit()).size();
                needed == 0 || self.used(terms, limit, &facet, at) + needed <= limit.max.size()
            })
        })
    }
}

/// Some operations.
pub fn ops() -> impl Strategy<Value = LedgerOps> {
    prop::collection::vec(op(), 0..120).prop_map(LedgerOps)
}

fn op() -> impl Strategy<Value = LedgerOp> {
    let (which, nanos, tokens) = (0..12usize, 0..30u64, 0..60u64);
    prop_oneof![
        6 => (0..30usize, 0..12usize, nanos.clone(), tokens.clone())
            .prop_map(|(key, about, nanos, tokens)| LedgerOp::Reserve { key, about, nanos, tokens }),
        2 => (which.clone(), nanos.clone(), tokens.clone(), prop::option::of(0..2usize))
            .prop_map(|(which, nanos, tokens, model)| LedgerOp::Extend { which, nanos, tokens, model }),
        3 => which.clone().prop_map(|which| LedgerOp::Dispatch { which }),
        1 => (which.clone(), nanos.clone()).prop_map(|(which, nanos)| LedgerOp::Meter { which, nanos }),
        3 => (which.clone(), nanos, tokens).prop_map(|(which, nanos, tokens)| LedgerOp::Settle { which, nanos, tokens }),
        1 => which.clone().prop_map(|which| LedgerOp::Void { which }),
        1 => which.prop_map(|which| LedgerOp::Abandon { which }),
        1 => (0..2000u64).prop_map(|seconds| LedgerOp::Wait { seconds }),
    ]
}

/// Of some requests another model took a part, of some two.
fn shared(nanos: u64, tokens: u64) -> SettlementDetail {
    let mut detail = detail();
    let part = |money, thinking| ModelSpend {
        money: Money(money),
        thinking: Tokens(thinking),
        ..ModelSpend::default()
    };
    if nanos.is_multiple_of(2) {
        detail.parts.add(&MODELS[0].into(), part(nanos / 3, tokens / 2));
    }
    if nanos.is_multiple_of(3) {
        detail.parts.add(&"judge".into(), part(nanos, 1));
    }
    detail
}

/// Does it in both, and returns what has to be journalled.
fn apply(
    accounts: &mut LedgerState,
    model: &mut LedgerModel,
    op: &LedgerOp,
    now: &mut Timestamp,
) -> Vec<JournalEntry> {
    match *op {
        LedgerOp::Wait { seconds } => *now = *now + Duration::from_secs(seconds),
        LedgerOp::Reserve { key: number, about: other, nanos, tokens } => {
            let (account, about, id) = (key(number), about(other), RequestId::new());
            let held = Amounts { requests: Count::ONE, ..amounts(nanos, tokens) };
            let fits = model.fits(&account, &about, held, None, *now);
            let claim = ReservationRequest {
                account: account.clone(),
                about: about.clone(),
                worst: worst(nanos, tokens),
                id,
                step: None,
                prices: None,
                if_abandoned: if number.is_multiple_of(2) {
                    AbandonPolicy::PostWhole
                } else {
                    AbandonPolicy::PostMetered
                },
                rate: None,
                now: *now,
                expires: *now + Duration::from_secs(3600),
            };
            assert_eq!(accounts.reserve(claim).is_ok(), fits);
            let row = LedgerModelRow {
                metered: (number.is_multiple_of(2)).then_some(held),
                ..LedgerModelRow::new(account, about, id, *now, held)
            };
            model.0.extend(fits.then_some(row));
        }
        LedgerOp::Extend { which, .. }
        | LedgerOp::Dispatch { which }
        | LedgerOp::Meter { which, .. }
        | LedgerOp::Settle { which, .. }
        | LedgerOp::Void { which }
        | LedgerOp::Abandon { which } => {
            let open: Vec<usize> = (0..model.0.len()).filter(|at| model.0[*at].spent.is_none()).collect();
            if let Some(at) = open.get(which % open.len().max(1)) {
                return go_on(accounts, model, op, *at, *now);
            }
        }
    }
    Vec::new()
}

/// Goes on with an open reservation.
fn go_on(
    accounts: &mut LedgerState,
    model: &mut LedgerModel,
    op: &LedgerOp,
    at: usize,
    now: Timestamp,
) -> Vec<JournalEntry> {
    let mut row = model.0[at].clone();
    let id = row.id;
    let posts_whole = |row: &LedgerModelRow| row.metered == Some(row.held);
    let entries = match *op {
        LedgerOp::Extend { nanos, tokens, model: other, .. } => {
            let name = other.map(|number| MODELS[number].into());
            let about = RequestScope { model: name.clone().or(row.about.model.clone()), ..row.about.clone() };
            let fits = model.fits(&row.account, &about, amounts(nanos, tokens), Some(&row), row.admitted);
            let extended = accounts.extend(id, worst(nanos, tokens), name.as_ref());
            assert_eq!(extended.is_ok(), fits);
            if fits {
                let whole = posts_whole(&row);
                (row.held, row.about) = (row.held + amounts(nanos, tokens), about);
                row.metered = if whole { Some(row.held) } else { row.metered };
            }
            extended.ok().and_then(|ExtensionResult { entry, .. }| entry).into_iter().collect()
        }
        LedgerOp::Dispatch { .. } => {
            let entry = accounts.dispatch(id).unwrap();
            accounts.confirm_dispatch(id).unwrap();
            row.is_dispatched = true;
            vec![entry]
        }
        LedgerOp::Meter { nanos, .. } => {
            let entry = accounts.meter(id, amounts(nanos, 0), now);
            if row.is_dispatched && !posts_whole(&row) {
                row.metered = Some(amounts(nanos, 0));
            }
            entry.into_iter().collect()
        }
        LedgerOp::Settle { nanos, tokens, .. } => {
            let closed = accounts.settle(id, amounts(nanos, tokens), shared(nanos, tokens), now).unwrap();
            assert_eq!(closed.overrun.money.0, nanos.saturating_sub(row.held.money.0));
            row.spent = Some(Amounts { requests: Count::ONE, ..amounts(nanos, tokens) });
            closed.entries
        }
        LedgerOp::Void { .. } => {
            row.spent = Some(Amounts::ZERO);
            accounts.void(id, now).unwrap().entries
        }
        _ => {
            let spent = Amounts { requests: Count::ONE, ..row.metered.unwrap_or(row.held) };
            row.spent = Some(if row.is_dispatched { spent } else { Amounts::ZERO });
            accounts.abandon(id, now).unwrap().entries
        }
    };
    model.0[at] = row;
    entries
}

/// Every limit of every account has used what the list adds up to.
fn agree(accounts: &LedgerState, model: &LedgerModel, now: Timestamp) {
    let all = terms();
    for number in 0..30 {
        let (account, about) = (key(number), about(number % 12));
        for line in accounts.statement(&account, &about, now) {
            let holder = match &line.limit.holder {
                stint_types::units::Holder::Account(account) => account.clone(),
                _ => account.clone(),
            };
            let of = all.iter().find(|terms| terms.account == holder).unwrap();
            let limit = of
                .limits
                .iter()
                .find(|limit| (limit.max, limit.window) == (line.max, line.limit.window))
                .unwrap();
            let used = line.spent.size() + line.reserved.size();
            assert_eq!(used, model.used(of, limit, &line.limit.facet, now), "{account} {}", line.limit);
        }
    }
}

/// Runs the operations on a fresh machine and on the model; whatever came to be must be the same after a restart from
/// this journal.
pub async fn run(LedgerOps(ops): &LedgerOps, journal: std::sync::Arc<dyn Journal>) {
    let (mut accounts, mut model, mut now) = (LedgerState::default(), LedgerModel::default(), NOW);
    let terms = terms();
    accounts.declare(&terms);
    let mut entries = Vec::new();
    for op in ops {
        entries.extend(apply(&mut accounts, &mut model, op, &mut now));
        agree(&accounts, &model, now);
    }
    entries.extend(accounts.expire(now + Duration::from_secs(7200)).into_iter().flat_map(|one| one.entries));
    assert_eq!((accounts.open(), accounts.reserved()), (0, Amounts::ZERO));
    let plain = MemoryJournal::default();
    for (number, part) in entries.chunks(7).enumerate() {
        journal.append(part).await.unwrap();
        plain.append(part).await.unwrap();
        if (ops.len() + number).is_multiple_of(3) {
            journal.seal(now).await.unwrap();
        }
    }
    let moments = [0, 1, 700, 2_000, 30_000].map(|seconds| Timestamp(now.0 - seconds * 1000));
    let moments =
        [&moments[..], &[RollupSpan::Quarter.start(now), Timestamp(i64::MIN), Timestamp(i64::MAX)]].concat();
    answers_as(&*journal, &plain, &moments).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    let tasks = Tasks::default();
    let observer = std::sync::Arc::new(());
    let restarted = Ledger::open(&tasks, journal, observer, Settings::default(), &terms, now).await.unwrap();
    for number in 0..30 {
        let (account, about) = (key(number), about(number % 12));
        assert_eq!(restarted.statement(&account, &about, now), accounts.statement(&account, &about, now));
    }
    let spent = |totals: Vec<crate::AccountTotals>| -> Vec<_> {
        totals.into_iter().filter(|totals| totals.spent != Amounts::ZERO || totals.settled > 0).collect()
    };
    assert_eq!(spent(restarted.totals()), spent(accounts.totals()));
    assert_eq!(WINDOWS.len(), 6, "every window is recovered");
    tasks.stop();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn hundreds_of_accounts_agree_with_a_plain_list(ops in ops()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&ops, std::sync::Arc::new(MemoryJournal::default())));
    }
}
