//! The account machine: who spent and reserved what, under which limits.
//!
//! Pure: no I/O, no clock, no randomness. Changes go in; what has to be journalled comes out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::rows::{
    AccountSpend, Amounts, DispatchEntry, EpisodeBalance, JournalEntry, RequestScope, ResolutionKind,
    SettlementDetail, StepReservation,
};
use stint_types::catalog::{Allowance, WorstCase};
use stint_types::chat::EpisodeLimits;
use stint_types::tenant::AccountTerms;
use stint_types::units::{AccountId, EpisodeId, Limit, RequestId, Timestamp, Window};

use super::account::AccountState;
use super::demand::ExtraDemand;
use super::episode_account::StepAmounts;
use super::error::{LedgerError, ReserveError};
use super::open_reservation::{ClosedReservation, OpenReservation, ReservationStage};
use super::request::ReservationRequest;
use super::statement::{AccountTotals, LimitStatus, tightest};
use super::tree::{AccountIndex, AccountTree};
use super::warnings::LimitWarning;

/// The result of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionResult {
    /// What must be journalled before it is used; nothing, before the dispatch.
    pub entry: Option<JournalEntry>,
    /// The limits that are nearly used up since.
    pub warnings: Vec<LimitWarning>,
}

/// All accounts and all open reservations.
#[derive(Debug, Default)]
pub struct LedgerState {
    pub(super) tree: AccountTree,
    open: HashMap<RequestId, OpenReservation>,
    /// The latest time seen; a clock that is set back does not open old windows again.
    pub(super) latest: Timestamp,
    /// When episodes that are not in use were last evicted.
    pub(super) evicted_at: Timestamp,
    /// True once one was.
    pub(super) has_evicted: bool,
}

impl LedgerState {
    /// Puts these terms in force, and only these. Accounts without terms may finish what they began and no more.
    ///
    /// Where replicas share the accounts, the coordinator is asked before anything more is taken of a lease, since the limit may
    /// have been lowered.
    pub fn declare<'a>(&mut self, terms: impl IntoIterator<Item = &'a AccountTerms>) {
        self.tree.withdraw();
        self.tree.accounts_mut().for_each(AccountState::mark_stale);
        if self.tree.is_shared {
            // What is resolved from here on is distinguished from what was resolved before.
            self.latest = self.latest + Duration::from_millis(1);
        }
        for terms in terms {
            self.declare_account(terms);
        }
        self.tree.sweep();
    }

    /// Puts the terms of one account in force. Those of all others stay.
    pub fn declare_one(&mut self, terms: &AccountTerms) {
        if self.tree.is_shared {
            self.latest = self.latest + Duration::from_millis(1);
        }
        self.declare_account(terms);
        if let Some(account) = self.tree.find_account_mut(&terms.account) {
            account.mark_stale();
        }
    }

    /// Takes one account the right to reserve, and forgets its limits; the account too, if it never spent.
    pub fn withdraw(&mut self, id: &AccountId) {
        if let Some(account) = self.tree.find_account_mut(id) {
            account.withdraw();
            account.sweep();
        }
        // Of one that replicas share, the coordinator may be about to answer.
        if !self.tree.is_shared {
            self.tree.forget_unused(id);
        }
    }

    fn declare_account(&mut self, terms: &AccountTerms) {
        let (account, scopes) = self.tree.declare(terms, self.latest);
        if scopes.is_empty() {
            return;
        }
        for open in self.open.values().filter(|open| terms.account.contains(&open.row.account)) {
            account.adopt(&scopes, &open.row.about, open.held, open.row.admitted);
        }
    }

    /// Accounts under these terms that are shared with other replicas: only what quota leases cover may be reserved.
    pub(crate) fn shared(terms: &[AccountTerms], now: Timestamp) -> LedgerState {
        let mut accounts = LedgerState::default();
        accounts.share();
        accounts.advance_clock(now);
        accounts.declare(terms);
        accounts
    }

    /// From now on limits are shared with other replicas: only what quota leases cover may be reserved.
    pub fn share(&mut self) {
        self.tree.is_shared = true;
    }

    /// Takes over what was spent according to the journal, in these windows that contain `now`.
    pub fn recover(&mut self, spent: &[AccountSpend], windows: &[Window], now: Timestamp) {
        let now = self.advance_clock(now);
        for one in spent {
            let place = self.tree.find_or_insert(&one.account);
            self.tree.for_lineage(place, |_, account| account.recover(one, windows, now));
        }
    }

    /// Counts what is reserved by the journal, whatever the limits say.
    pub(crate) fn adopt(&mut self, row: &DispatchEntry, now: Timestamp) {
        let (now, place) = (self.advance_clock(now), self.tree.find_or_insert(&row.account));
        let DispatchEntry { account: own, about, held: more, admitted, tools, tools_cost, .. } = row;
        let step =
            StepReservation { tools: tools.clone(), tools_cost: *tools_cost, ..StepReservation::default() };
        let demand = ExtraDemand {
            account: own,
            previous: None,
            about,
            more: *more,
            step: Some(&step),
            admitted: *admitted,
        };
        self.tree.for_lineage(place, |_, account| account.roll(now));
        self.tree.reserve(place, &demand, now);
    }

    /// Reserves the worst case under every limit of the account and its ancestors, or under none. Returns which
    /// limits are nearly used up since.
    pub fn reserve(&mut self, request: ReservationRequest) -> Result<Vec<LimitWarning>, ReserveError> {
        let now = self.advance_clock(request.now);
        let tool_calls = request.step.as_ref().map(|step| step.tools.all).unwrap_or_default();
        let held = bounded(Amounts { tool_calls, ..Amounts::of_request(request.worst) })?;
        if self.open.contains_key(&request.id) {
            return Err(ReserveError::Duplicate(request.id));
        }
        let place = self.declared(&request.account)?;
        let about = &request.about;
        let step = request.step.as_ref();
        let demand =
            ExtraDemand { account: &request.account, previous: None, about, more: held, step, admitted: now };
        let warnings = self.tree.grant(place, &demand, now)?;
        self.open
            .insert(request.id, OpenReservation::new(ReservationRequest { now, ..request }, place, held));
        Ok(warnings)
    }

    /// Reserves more, in the windows of the admission; for another model, if one is named. What comes out must be
    /// journalled before it is used.
    pub fn extend(
        &mut self,
        id: RequestId,
        more: WorstCase,
        model: Option<&Arc<str>>,
    ) -> Result<ExtensionResult, LedgerError> {
        let more = bounded(Amounts::from(more))?;
        let open = self.open.get_mut(&id).ok_or(ReserveError::Expired(id))?;
        if open.stage == ReservationStage::Dispatching {
            return Err(LedgerError::NotDispatched(id));
        }
        if (open.held + more) != (open.held + more).clamped() {
            return Err(ReserveError::TooLarge.into());
        }
        if !self.tree.is_declared(open.place) {
            return Err(ReserveError::NoAccount(open.row.account.clone()).into());
        }
        let before = &open.row.about;
        let about = RequestScope { model: model.or(before.model.as_ref()).cloned(), ..before.clone() };
        let (own, before, admitted) = (&open.row.account, Some((before, open.held)), open.row.admitted);
        let demand =
            ExtraDemand { account: own, previous: before, about: &about, more, step: None, admitted };
        let warnings = self.tree.grant(open.place, &demand, self.latest)?;
        Ok(ExtensionResult { entry: open.extend(more, about), warnings })
    }

    fn declared(&self, account: &AccountId) -> Result<AccountIndex, ReserveError> {
        let place = self.tree.find(account).filter(|place| self.tree.is_declared(*place));
        place.ok_or_else(|| ReserveError::NoAccount(account.clone()))
    }

    /// Puts off the expiry.
    pub fn renew(&mut self, id: RequestId, expires: Timestamp) -> Result<(), ReserveError> {
        let open = self.open.get_mut(&id).ok_or(ReserveError::Expired(id))?;
        open.expires = expires;
        Ok(())
    }

    /// Something is about to be sent. What comes out must be journalled first.
    pub fn dispatch(&mut self, id: RequestId) -> Result<JournalEntry, ReserveError> {
        let open = self.open.get_mut(&id).ok_or(ReserveError::Expired(id))?;
        Ok(open.dispatch())
    }

    /// The dispatch is journalled: from now on something may have been sent.
    pub fn confirm_dispatch(&mut self, id: RequestId) -> Result<(), ReserveError> {
        let open = self.open.get_mut(&id).ok_or(ReserveError::Expired(id))?;
        open.stage = ReservationStage::Dispatched;
        Ok(())
    }

    /// Notes what was metered so far of a dispatched reservation; what comes out is worth journalling.
    pub fn meter(&mut self, id: RequestId, spent: Amounts, at: Timestamp) -> Option<JournalEntry> {
        self.open.get_mut(&id).and_then(|open| open.meter(spent.clamped(), at))
    }

    /// Charges what was used. Nothing, for a reservation that is resolved already: the first result stands.
    pub fn settle(
        &mut self,
        id: RequestId,
        spent: Amounts,
        detail: SettlementDetail,
        at: Timestamp,
    ) -> Option<ClosedReservation> {
        let at = self.resolution_time(at);
        self.resolve(id, |open| open.close(ResolutionKind::Settled, spent.clamped(), detail.clamped(), at))
    }

    /// Gives everything back.
    pub fn void(&mut self, id: RequestId, at: Timestamp) -> Option<ClosedReservation> {
        let at = self.resolution_time(at);
        self.resolve(id, |open| open.void(at))
    }

    /// Resolves a reservation that nobody settled: posted if something may have been sent, else voided.
    pub fn abandon(&mut self, id: RequestId, at: Timestamp) -> Option<ClosedReservation> {
        let at = self.resolution_time(at);
        self.resolve(id, |open| open.abandon(at))
    }

    /// Resolves all reservations whose time is over.
    pub fn expire(&mut self, now: Timestamp) -> Vec<ClosedReservation> {
        let over = self.open.iter().filter(|(_, open)| open.expires <= now);
        let over: Vec<RequestId> = over.map(|(id, _)| *id).collect();
        over.into_iter().filter_map(|id| self.abandon(id, now)).collect()
    }

    /// When something is resolved. Where replicas share the accounts, this separates what was counted from what was not.
    fn resolution_time(&mut self, at: Timestamp) -> Timestamp {
        if self.tree.is_shared { self.advance_clock(at) } else { at }
    }

    fn resolve(
        &mut self,
        id: RequestId,
        close: impl FnOnce(OpenReservation) -> ClosedReservation,
    ) -> Option<ClosedReservation> {
        let open = self.open.remove(&id)?;
        let (place, admitted, held) = (open.place, open.row.admitted, open.held);
        let held_tools = open.row.tools.clone();
        let closed = close(open);
        let (about, account) = (&closed.about, &closed.account);
        self.tree.for_lineage(place, |_, account| {
            account.resolve(about, admitted, held, closed.spent, closed.how);
        });
        let held = StepAmounts { all: held, tools: &held_tools };
        let spent = StepAmounts { all: closed.spent, tools: &closed.tools };
        self.tree.account_at(place).episodes.resolve(about, held, spent, self.latest);
        let more = Amounts::ZERO;
        let demand = ExtraDemand { account, previous: None, about, more, step: None, admitted };
        let warnings = self.tree.warn(place, &demand, self.latest);
        Some(ClosedReservation { warnings, ..closed })
    }

    /// What is left under the tightest limit of each unit, for requests about this.
    pub fn allowance(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Allowance {
        self.allowance_within(account, about, &EpisodeLimits::default(), now)
    }

    /// The same, also under these limits of their episode.
    pub fn allowance_within(
        &self,
        account: &AccountId,
        about: &RequestScope,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Allowance {
        tightest(self.all_limit_statuses(account, about, limits, now), about)
    }

    /// How every limit on such requests stands: those of the account and its ancestors, and those of their episode, these
    /// included.
    pub(crate) fn all_limit_statuses(
        &self,
        account: &AccountId,
        about: &RequestScope,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Vec<LimitStatus> {
        let mut statuses = self.statement(account, about, now);
        if let Some(episode) = &about.episode {
            statuses.extend(self.tree.episode_limit_statuses(account, episode, limits));
        }
        statuses
    }

    /// How an episode stands.
    pub fn episode(&self, account: &AccountId, episode: &EpisodeId) -> EpisodeBalance {
        let account = self.tree.find_account(account);
        account.map(|account| account.episodes.balance(episode)).unwrap_or_default()
    }

    /// How every limit of the account and its ancestors stands, the root's first; those on each user, for the user
    /// that requests are about.
    pub fn statement(&self, account: &AccountId, about: &RequestScope, now: Timestamp) -> Vec<LimitStatus> {
        self.tree.limit_statuses(account, about, now.max(self.latest))
    }

    /// Every account over all time, limited or not, by name. What an account spent, its ancestors spent too.
    pub fn totals(&self) -> Vec<AccountTotals> {
        self.tree.totals(self.latest)
    }

    /// All that is reserved for an open reservation.
    pub fn held(&self, id: RequestId) -> Option<Amounts> {
        self.open.get(&id).map(|open| open.held)
    }

    /// How many reservations are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// All that is reserved for open reservations.
    pub fn reserved(&self) -> Amounts {
        self.open.values().fold(Amounts::ZERO, |sum, open| sum + open.held)
    }

    /// A limit refused a request of this account: the warning about it.
    pub fn record_refusal(&mut self, account: &AccountId, limit: &Limit) -> Option<LimitWarning> {
        self.tree.record_refusal(account, limit, self.latest)
    }

    /// How many accounts there is memory for.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.tree.places()
    }

    /// How many models, users and tags are counted.
    #[cfg(test)]
    pub(crate) fn facets(&self) -> usize {
        self.tree.facets()
    }

    /// Brings the clock forward, which never goes back; returns its time.
    pub(crate) fn advance_clock(&mut self, now: Timestamp) -> Timestamp {
        self.latest = self.latest.max(now);
        self.latest
    }
}

fn bounded(amounts: Amounts) -> Result<Amounts, ReserveError> {
    if amounts == amounts.clamped() { Ok(amounts) } else { Err(ReserveError::TooLarge) }
}
