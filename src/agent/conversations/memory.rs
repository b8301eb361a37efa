//! Conversations that are gone when the process ends: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;

use crate::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    Answer, Bounds, Change, Claimed, Conversations, Lengthening, Page, Placed, StoredConversation, StoredItem,
};

/// Conversations in memory.
#[derive(Debug, Default)]
pub struct MemoryConversations {
    records: Mutex<Records>,
}

type Records = BTreeMap<(AccountId, ConversationId), Record>;

#[derive(Debug)]
struct Record {
    conversation: StoredConversation,
    items: BTreeMap<u64, StoredItem>,
    touched: Timestamp,
    /// Who has a claim on it, and until when.
    claim: Option<(RequestId, Timestamp)>,
    /// The place of the next item.
    next: u64,
}

impl Record {
    fn new(conversation: &StoredConversation) -> Record {
        let touched = conversation.at;
        Record { conversation: conversation.clone(), items: BTreeMap::new(), touched, claim: None, next: 1 }
    }

    fn size(&self) -> u64 {
        let items: usize = self.items.values().map(StoredItem::size).sum();
        u64::try_from(self.conversation.size() + items).unwrap_or(u64::MAX)
    }

    fn extend(&mut self, items: &[StoredItem]) {
        for item in items {
            self.items.insert(self.next, item.clone());
            self.next += 1;
        }
    }

    /// Whether somebody else has a claim on it now.
    fn is_busy(&self, claimant: Option<RequestId>, now: Timestamp) -> bool {
        self.claim.is_some_and(|(holder, until)| Some(holder) != claimant && until > now)
    }

    /// Whether it may be lengthened: by whoever has its claim, or by anybody else while nobody has.
    fn may_grow(&self, claimant: Option<RequestId>, now: Timestamp) -> bool {
        match claimant {
            Some(claimant) => self.claim.is_some_and(|(holder, _)| holder == claimant),
            None => !self.is_busy(None, now),
        }
    }

    fn find(&self, item: &str) -> Option<Placed> {
        let found = self.items.iter().find(|(_, there)| *there.id == *item);
        found.map(|(&at, item)| Placed { at, item: item.clone() })
    }

    fn page(&self, page: Page) -> Vec<Placed> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let placed = |(&at, item): (&u64, &StoredItem)| Placed { at, item: item.clone() };
        match page.newest_first {
            true => {
                let end = page.after.unwrap_or(u64::MAX);
                self.items.range(..end).rev().take(limit).map(placed).collect()
            }
            false => {
                let begin = page.after.map_or(0, |after| after.saturating_add(1));
                self.items.range(begin..).take(limit).map(placed).collect()
            }
        }
    }
}

impl MemoryConversations {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a conversation that is there.
    fn with<T>(
        &self,
        account: &AccountId,
        id: ConversationId,
        since: Timestamp,
        work: impl FnOnce(&mut Record) -> T,
    ) -> Option<T> {
        let mut records = self.records();
        records.get_mut(&(account.clone(), id)).filter(|record| record.touched >= since).map(work)
    }
}

/// Those of the account that were not touched for longest go until it keeps to its bound.
fn make_room(records: &mut Records, account: &AccountId, kept: ConversationId, most: u64) {
    let own = records.iter().filter(|((owner, _), _)| owner == account);
    let mut own: Vec<_> = own.map(|((_, id), record)| (record.touched, *id, record.size())).collect();
    own.sort_unstable();
    let mut all: u64 = own.iter().map(|(.., size)| size).sum();
    for (_, id, size) in own.into_iter().filter(|(_, id, _)| *id != kept) {
        if all <= most {
            return;
        }
        records.remove(&(account.clone(), id));
        all -= size;
    }
}

impl Conversations for MemoryConversations {
    fn create<'a>(
        &'a self,
        conversation: &'a StoredConversation,
        items: &'a [StoredItem],
        bounds: Bounds,
    ) -> Answer<'a, Change> {
        async move {
            let mut record = Record::new(conversation);
            record.extend(items);
            if record.size() > bounds.conversation {
                return Ok(Change::Full);
            }
            let mut records = self.records();
            records.entry((conversation.account.clone(), conversation.id)).or_insert(record);
            make_room(&mut records, &conversation.account, conversation.id, bounds.account);
            Ok(Change::Done)
        }
        .boxed()
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        since: Timestamp,
    ) -> Answer<'a, Option<StoredConversation>> {
        async move { Ok(self.with(account, id, since, |record| record.conversation.clone())) }.boxed()
    }

    fn describe<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        metadata: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> Answer<'a, Option<StoredConversation>> {
        async move {
            Ok(self.with(account, id, since, |record| {
                record.touched = record.touched.max(now);
                record.conversation.metadata = metadata.into();
                record.conversation.clone()
            }))
        }
        .boxed()
    }

    fn delete<'a>(&'a self, account: &'a AccountId, id: ConversationId) -> Answer<'a, bool> {
        async move { Ok(self.records().remove(&(account.clone(), id)).is_some()) }.boxed()
    }

    fn items<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        page: Page,
        since: Timestamp,
    ) -> Answer<'a, Vec<Placed>> {
        async move { Ok(self.with(account, id, since, |record| record.page(page)).unwrap_or_default()) }
            .boxed()
    }

    fn item<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
    ) -> Answer<'a, Option<Placed>> {
        async move { Ok(self.with(account, id, since, |record| record.find(item)).flatten()) }.boxed()
    }

    fn remove<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> Answer<'a, Change> {
        async move {
            let removed = self.with(account, id, since, |record| {
                let Some(found) = record.find(item) else { return Change::Unknown };
                if record.is_busy(None, now) {
                    return Change::Busy;
                }
                record.touched = record.touched.max(now);
                record.items.remove(&found.at);
                Change::Done
            });
            Ok(removed.unwrap_or(Change::Unknown))
        }
        .boxed()
    }

    fn claim<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        since: Timestamp,
        now: Timestamp,
        until: Timestamp,
    ) -> Answer<'a, Claimed> {
        async move {
            let claimed = self.with(account, id, since, |record| {
                if record.is_busy(Some(claimant), now) {
                    return Claimed::Busy;
                }
                record.claim = Some((claimant, until));
                record.touched = record.touched.max(now);
                Claimed::Claimed(record.conversation.clone())
            });
            Ok(claimed.unwrap_or(Claimed::Unknown))
        }
        .boxed()
    }

    fn prolong<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        until: Timestamp,
    ) -> Answer<'a, bool> {
        async move {
            let prolonged = self.with(account, id, Timestamp(i64::MIN), |record| {
                let own = record.claim.as_mut().filter(|(holder, _)| *holder == claimant);
                own.map(|claim| claim.1 = until).is_some()
            });
            Ok(prolonged.unwrap_or(false))
        }
        .boxed()
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
    ) -> Answer<'a, ()> {
        async move {
            self.with(account, id, Timestamp(i64::MIN), |record| {
                record.claim.take_if(|(holder, _)| *holder == claimant);
            });
            Ok(())
        }
        .boxed()
    }

    fn lengthen<'a>(
        &'a self,
        lengthening: &'a Lengthening,
        since: Timestamp,
        bounds: Bounds,
    ) -> Answer<'a, Change> {
        async move {
            let Lengthening { account, id, claimant, items, episode, at } = lengthening;
            let more = u64::try_from(lengthening.size()).unwrap_or(u64::MAX);
            let change = self.with(account, *id, since, |record| {
                if !record.may_grow(*claimant, *at) {
                    return Change::Busy;
                }
                if record.size().saturating_add(more) > bounds.conversation {
                    return Change::Full;
                }
                record.extend(items);
                record.claim = None;
                record.touched = record.touched.max(*at);
                if episode.is_some() {
                    record.conversation.episode.clone_from(episode);
                }
                Change::Done
            });
            if change == Some(Change::Done) {
                make_room(&mut self.records(), account, *id, bounds.account);
            }
            Ok(change.unwrap_or(Change::Unknown))
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> Answer<'_, u64> {
        async move {
            let mut records = self.records();
            let old = records.iter().filter(|(_, record)| record.touched < before);
            let mut old: Vec<_> = old.map(|(key, record)| (record.touched, key.clone())).collect();
            old.sort();
            old.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            old.iter().for_each(|(_, key)| drop(records.remove(key)));
            Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }
}
