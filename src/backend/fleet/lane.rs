//! Those of one priority who wait for a place, in an order that is fair between parties: however many requests one sends,
//! the others take turns with it.
//!
//! Start-time fair queueing: a request begins, in virtual time, when the one before it of its party has ended, but not before
//! now; whoever begins first goes first, and now is when the last one that went began. A party that has asked for little
//! begins now, and so goes before what the others have lined up.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::Party;

/// So many parties with nobody in the line are remembered for each who may be in it.
const REMEMBERED: usize = 2;

/// Somebody who waits.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) party: Party,
    pub(super) until: Instant,
    pub(super) calls: u32,
    pub(super) item: T,
}

/// When somebody begins, and who came first of those who begin at once.
type Place = (u64, u64);

/// The line of one priority.
#[derive(Debug)]
pub(super) struct Lane<T> {
    line: BTreeMap<Place, Waiting<T>>,
    parties: HashMap<Party, Turn>,
    /// When the last one that went began.
    now: u64,
    arrivals: u64,
}

/// How far a party is.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// When its last request ends.
    ends: u64,
    /// How many of its requests wait.
    waiting: usize,
}

impl<T> Lane<T> {
    pub(super) fn new() -> Lane<T> {
        Lane { line: BTreeMap::new(), parties: HashMap::new(), now: 0, arrivals: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// How many parties are remembered.
    #[cfg(test)]
    pub(super) fn parties(&self) -> usize {
        self.parties.len()
    }

    /// How many calls wait.
    pub(super) fn calls(&self) -> u32 {
        self.line.values().map(|waiting| waiting.calls).sum()
    }

    /// How many calls go before one more of that party.
    pub(super) fn calls_before(&self, party: Party) -> u32 {
        let begins = self.begins(party);
        self.line.range(..=(begins, u64::MAX)).map(|(_, waiting)| waiting.calls).sum()
    }

    /// How many requests of that party wait.
    pub(super) fn waiting(&self, party: Party) -> usize {
        self.parties.get(&party).map_or(0, |turn| turn.waiting)
    }

    pub(super) fn push(&mut self, waiting: Waiting<T>) {
        let begins = self.went(waiting.party, waiting.calls);
        if let Some(turn) = self.parties.get_mut(&waiting.party) {
            turn.waiting += 1;
        }
        self.arrivals += 1;
        self.line.insert((begins, self.arrivals), waiting);
        self.forget();
    }

    /// Notes a turn of that party, which may be over already; says when it begins.
    pub(super) fn went(&mut self, party: Party, calls: u32) -> u64 {
        let begins = self.begins(party);
        self.parties.entry(party).or_default().ends = begins + u64::from(calls);
        begins
    }

    /// Who goes next.
    pub(super) fn first(&self) -> Option<&Waiting<T>> {
        self.line.first_key_value().map(|(_, waiting)| waiting)
    }

    /// Takes out who goes next.
    pub(super) fn pop(&mut self) -> Option<Waiting<T>> {
        let ((begins, _), waiting) = self.line.pop_first()?;
        self.now = self.now.max(begins);
        self.left(waiting.party);
        Some(waiting)
    }

    /// Takes out the youngest of the party that has most in the line, where that is more than so many.
    pub(super) fn evict(&mut self, more_than: usize) -> Option<Waiting<T>> {
        let most = self.parties.iter().max_by_key(|(party, turn)| (turn.waiting, **party))?;
        let party = *most.0;
        if most.1.waiting <= more_than {
            return None;
        }
        let place = *self.line.iter().rfind(|(_, waiting)| waiting.party == party)?.0;
        let youngest = self.line.remove(&place)?;
        // It has not had that turn.
        if let Some(turn) = self.parties.get_mut(&party) {
            turn.ends = place.0;
        }
        self.left(party);
        Some(youngest)
    }

    /// Takes out those for whom `keep` is false: they have left, and had no turn.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let before = self.line.len();
        self.line.retain(|_, waiting| keep(&waiting.item));
        if self.line.len() == before {
            return;
        }
        self.parties.values_mut().for_each(|turn| turn.waiting = 0);
        for waiting in self.line.values() {
            self.parties.entry(waiting.party).or_default().waiting += 1;
        }
        self.forget();
    }

    fn begins(&self, party: Party) -> u64 {
        self.parties.get(&party).map_or(self.now, |turn| turn.ends.max(self.now))
    }

    fn left(&mut self, party: Party) {
        if let Some(turn) = self.parties.get_mut(&party) {
            turn.waiting = turn.waiting.saturating_sub(1);
        }
        self.forget();
    }

    /// Who has nobody in the line and no turn beyond now is as any other. Where nobody waits, nobody is owed anything.
    fn forget(&mut self) {
        if self.line.is_empty() {
            self.parties.clear();
            return;
        }
        let (now, room) = (self.now, self.line.len() * REMEMBERED + 16);
        if self.parties.len() > room {
            self.parties.retain(|_, turn| turn.waiting > 0 || turn.ends > now);
        }
        if self.parties.len() > room {
            self.parties.retain(|_, turn| turn.waiting > 0);
        }
    }
}
