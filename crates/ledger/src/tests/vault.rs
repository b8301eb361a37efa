//! The coordinator as a plain table in memory: what `storage/postgres` does in PostgreSQL. Its clock shows what a test
//! sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::{Amounts, DispatchEntry, JournalEntry, JournalError, ResolutionEntry, ResolutionKind};
use crate::{
    ChangeNotice, DecideFn, ExchangeResult, LeaseAdjustment, LeaseRenewal, QuotaBalance, QuotaWindow,
    WindowOpening,
};
use stint_types::units::{Facet, RequestId, Timestamp, Unit};

/// The coordinator of all replicas.
#[derive(Clone)]
pub(super) struct Vault {
    pub(super) state: Arc<Mutex<VaultState>>,
    pub(super) notices: broadcast::Sender<ChangeNotice>,
}

pub(super) struct VaultState {
    pub(super) now: Timestamp,
    pub(super) lasts: Duration,
    /// How long it takes to open a window.
    pub(super) opens_in: Duration,
    /// How often it was asked for leases.
    pub(super) exchanges: usize,
    pub(super) lives: BTreeMap<i64, Life>,
    pub(super) windows: BTreeMap<QuotaWindow, VaultWindow>,
    pub(super) rows: BTreeMap<RequestId, VaultRow>,
    /// Counts changes: which came first.
    turn: u64,
}

pub(super) struct Life {
    pub(super) expires: Timestamp,
    pub(super) is_over: bool,
    pub(super) heard: u64,
}

#[derive(Debug, Default)]
pub(super) struct VaultWindow {
    pub(super) granted: u64,
    recalled: u64,
    changed: u64,
    pub(super) leases: BTreeMap<i64, VaultLease>,
}

#[derive(Debug, Default)]
pub(super) struct VaultLease {
    pub(super) amount: u64,
    trimmed: u64,
    is_final: bool,
}

/// One request, as the journal has it.
pub(super) struct VaultRow {
    pub(super) epoch: i64,
    pub(super) sent: DispatchEntry,
    pub(super) ended: Option<ResolutionEntry>,
}

impl VaultRow {
    /// What it counts for.
    pub(super) fn used(&self, unit: Unit) -> u64 {
        let amounts = self.ended.as_ref().map_or(self.sent.held, |ended| ended.spent);
        if unit == Unit::Concurrency && self.ended.is_some() { 0 } else { amounts.of(unit).size() }
    }

    /// What it counts for under a limit that it is of.
    pub(super) fn under(&self, window: &QuotaWindow) -> u64 {
        let Facet::Tool(_, tool) = &window.facet else { return self.used(window.unit) };
        let tools = self.ended.as_ref().map_or(&self.sent.tools, |ended| &ended.detail.tools);
        tools.of(tool).0
    }

    pub(super) fn is_of(&self, window: &QuotaWindow) -> bool {
        let DispatchEntry { account, about, admitted, .. } = &self.sent;
        let is_in = match &window.facet {
            Facet::Whole => true,
            Facet::Model(name) => about.model.as_ref() == Some(name),
            Facet::User(name) => about.user.as_deref().unwrap_or("") == &**name,
            Facet::Tag(name) => about.tag.as_ref() == Some(name),
            Facet::Episode(episode) | Facet::Tool(episode, _) => about.episode.as_ref() == Some(episode),
        };
        is_in
            && window.account.contains(account)
            && window.begins <= *admitted
            && window.ends.is_none_or(|end| *admitted < end)
    }
}

impl Vault {
    pub(super) fn new(now: Timestamp, lasts: Duration) -> Vault {
        let state = VaultState {
            now,
            lasts,
            opens_in: Duration::ZERO,
            exchanges: 0,
            lives: BTreeMap::new(),
            windows: BTreeMap::new(),
            rows: BTreeMap::new(),
            turn: 0,
        };
        Vault { state: Arc::new(Mutex::new(state)), notices: broadcast::channel(64).0 }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, VaultState> {
        self.state.lock().unwrap()
    }
}

impl VaultState {
    fn turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn is_alive(&self, epoch: i64) -> bool {
        self.lives.get(&epoch).is_some_and(|life| !life.is_over)
    }

    fn alive(&self) -> u64 {
        self.lives.values().filter(|life| !life.is_over).count() as u64
    }

    fn go_on(&mut self, epoch: i64) -> Result<(), JournalError> {
        if self.is_alive(epoch) { Ok(()) } else { Err(JournalError::lease_lost()) }
    }

    pub(super) fn renew(&mut self, epoch: i64) -> Result<LeaseRenewal, JournalError> {
        self.go_on(epoch)?;
        let (now, expires, turn) = (self.now, self.now + self.lasts, self.turn());
        let life = self.lives.get_mut(&epoch).unwrap();
        life.expires = expires;
        let heard = std::mem::replace(&mut life.heard, turn);
        let windows = self
            .windows
            .iter()
            .filter(|(window, handed)| handed.changed > heard && window.ends.is_none_or(|end| end > now));
        let windows = windows.map(|(window, handed)| {
            let lease = handed.leases.get(&epoch).map_or(0, |cut| cut.amount);
            (window.clone(), QuotaBalance { granted: handed.granted, own: lease, ..QuotaBalance::default() })
        });
        Ok(LeaseRenewal { now, replicas: self.alive(), balances: windows.collect() })
    }

    fn balance(&self, epoch: i64, window: &QuotaWindow) -> QuotaBalance {
        let handed = &self.windows[window];
        let lease = handed.leases.get(&epoch).map_or(0, |cut| cut.amount);
        let others = handed.leases.iter().filter(|(other, _)| **other != epoch);
        let is_awaited = others.clone().any(|(other, cut)| {
            cut.amount > 0
                && !cut.is_final
                && cut.trimmed < handed.recalled
                && self.lives[other].expires > self.now
        });
        let is_final = others.clone().all(|(_, cut)| cut.amount == 0 || cut.is_final);
        let others = others.map(|(_, cut)| cut.amount).sum();
        QuotaBalance {
            granted: handed.granted,
            own: lease,
            others,
            is_recall_pending: is_awaited,
            is_final,
            replicas: self.alive(),
        }
    }

    pub(super) fn exchange(
        &mut self,
        epoch: i64,
        windows: &[QuotaWindow],
        decide: DecideFn<'_>,
    ) -> Result<(ExchangeResult, Vec<QuotaWindow>), JournalError> {
        self.exchanges += 1;
        self.go_on(epoch)?;
        let missing = (0..windows.len()).filter(|at| !self.windows.contains_key(&windows[*at]));
        let missing: Vec<usize> = missing.collect();
        if !missing.is_empty() {
            return Ok((ExchangeResult::Missing(missing), Vec::new()));
        }
        let before: Vec<QuotaBalance> = windows.iter().map(|window| self.balance(epoch, window)).collect();
        let orders = decide(&before);
        let (turn, mut recalled, mut after) = (self.turn(), Vec::new(), Vec::new());
        for (
            (window, balance),
            LeaseAdjustment { amount: lease, is_tight, is_final, is_recalling: recalls },
        ) in windows.iter().zip(before).zip(orders)
        {
            let handed = self.windows.get_mut(window).unwrap();
            handed.granted = handed.granted.saturating_sub(balance.own) + lease;
            handed.changed = turn;
            let cut = handed.leases.entry(epoch).or_default();
            (cut.amount, cut.trimmed) = (lease, if is_tight { turn } else { cut.trimmed });
            cut.is_final = is_final;
            if recalls {
                handed.recalled = turn;
                recalled.push(window.clone());
            }
            after.push(QuotaBalance { granted: handed.granted, own: lease, ..balance });
        }
        Ok((ExchangeResult::Balances(after), recalled))
    }

    pub(super) fn open(&mut self, epoch: i64, openings: &[WindowOpening]) -> Result<Vec<u64>, JournalError> {
        for WindowOpening { window, .. } in openings {
            if self.windows.contains_key(window) {
                continue;
            }
            let mut handed = VaultWindow { changed: self.turn(), ..VaultWindow::default() };
            for row in self.rows.values().filter(|row| row.is_of(window)) {
                handed.granted += row.under(window);
                if self.is_alive(row.epoch) {
                    handed.leases.entry(row.epoch).or_default().amount += row.under(window);
                }
            }
            self.windows.insert(window.clone(), handed);
        }
        self.go_on(epoch)?;
        let before = |WindowOpening { window, counted_since }: &WindowOpening| {
            let theirs = self.rows.values().filter(|row| row.epoch == epoch && row.is_of(window));
            let resolved = theirs.filter(|row| {
                row.ended.as_ref().zip(*counted_since).is_some_and(|(ended, since)| ended.at < since)
            });
            resolved.map(|row| row.under(window)).sum()
        };
        Ok(openings.iter().map(before).collect())
    }

    pub(super) fn append(&mut self, epoch: i64, entries: &[JournalEntry]) -> Result<(), JournalError> {
        self.go_on(epoch)?;
        for entry in entries {
            match entry {
                JournalEntry::Dispatched(sent) => {
                    let row = VaultRow { epoch, sent: sent.clone(), ended: None };
                    self.rows.entry(sent.id).or_insert(row);
                }
                JournalEntry::Extended(more) => self.rows.get_mut(&more.id).unwrap().sent.held += more.more,
                JournalEntry::Metered(_) => {}
                JournalEntry::Resolved(ended) => {
                    let row = self.rows.get_mut(&ended.id).expect("it was dispatched");
                    row.ended.get_or_insert_with(|| ended.clone());
                }
            }
        }
        Ok(())
    }

    /// How many there were, and what they left open as it is posted.
    pub(super) fn reclaim_expired(&mut self) -> (usize, Vec<JournalEntry>) {
        let dead = self.lives.iter().filter(|(_, life)| !life.is_over && life.expires < self.now);
        let dead: Vec<i64> = dead.map(|(epoch, _)| *epoch).collect();
        let posted = dead.iter().flat_map(|epoch| self.end(*epoch)).collect();
        (dead.len(), posted)
    }

    pub(super) fn end(&mut self, epoch: i64) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        if !self.is_alive(epoch) {
            return entries;
        }
        self.lives.get_mut(&epoch).unwrap().is_over = true;
        let (now, turn) = (self.now, self.turn());
        for row in self.rows.values_mut().filter(|row| row.epoch == epoch && row.ended.is_none()) {
            let entry = JournalEntry::posted(row.sent.clone(), now);
            let JournalEntry::Resolved(posted) = &entry else { unreachable!() };
            row.ended = Some(posted.clone());
            entries.push(entry);
        }
        for (window, handed) in &mut self.windows {
            let Some(cut) = handed.leases.remove(&epoch) else { continue };
            let theirs = self.rows.values().filter(|row| row.epoch == epoch && row.is_of(window));
            let used: u64 = theirs.map(|row| row.under(window)).sum();
            handed.granted = (handed.granted + used).saturating_sub(cut.amount);
            handed.changed = turn;
        }
        entries
    }
}

/// All that was used of a window.
pub(super) fn used(state: &VaultState, window: &QuotaWindow) -> u64 {
    state.rows.values().filter(|row| row.is_of(window)).map(|row| row.under(window)).sum()
}

/// What was charged in all, and how many requests are open.
pub(super) fn books(state: &VaultState) -> (u64, usize) {
    let ended = state.rows.values().filter_map(|row| row.ended.as_ref());
    let spent = ended.filter(|ended| ended.how != ResolutionKind::Voided).map(|ended| ended.spent);
    let spent = spent.fold(Amounts::ZERO, |sum, one| sum + one).money.0;
    (spent, state.rows.values().filter(|row| row.ended.is_none()).count())
}
