//! A conversation store in memory that is lost when the process ends: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    ClaimResult, ConversationAppend, ConversationFuture, ConversationLimits, ConversationStore,
    ConversationWriteResult, ItemPage, PositionedItem, StoredConversation, StoredItem,
};

/// Conversations in memory.
#[derive(Debug, Default)]
pub struct MemoryConversations {
    records: Mutex<ConversationTable>,
}

type ConversationTable = BTreeMap<(AccountId, ConversationId), ConversationRecord>;

#[derive(Debug)]
struct ConversationRecord {
    conversation: StoredConversation,
    items: BTreeMap<u64, StoredItem>,
    touched: Timestamp,
    /// Who has a claim on it, and until when.
    claim: Option<(RequestId, Timestamp)>,
    /// The place of the next item.
    next: u64,
}

impl ConversationRecord {
    fn new(conversation: &StoredConversation) -> ConversationRecord {
        let touched = conversation.at;
        ConversationRecord {
            conversation: conversation.clone(),
            items: BTreeMap::new(),
            touched,
            claim: None,
            next: 1,
        }
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

    /// Whether items may be appended: by the request that holds its claim, or by any request while it is not claimed.
    fn may_append(&self, claimant: Option<RequestId>, now: Timestamp) -> bool {
        match claimant {
            Some(claimant) => self.claim.is_some_and(|(holder, _)| holder == claimant),
            None => !self.is_busy(None, now),
        }
    }

    fn find(&self, item: &str) -> Option<PositionedItem> {
        let found = self.items.iter().find(|(_, there)| *there.id == *item);
        found.map(|(&at, item)| PositionedItem { position: at, item: item.clone() })
    }

    fn page(&self, page: ItemPage) -> Vec<PositionedItem> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let placed = |(&at, item): (&u64, &StoredItem)| PositionedItem { position: at, item: item.clone() };
        if page.newest_first {
            let end = page.after.unwrap_or(u64::MAX);
            return self.items.range(..end).rev().take(limit).map(placed).collect();
        }
        let begin = page.after.map_or(0, |after| after.saturating_add(1));
        self.items.range(begin..).take(limit).map(placed).collect()
    }
}

impl MemoryConversations {
    fn records(&self) -> MutexGuard<'_, ConversationTable> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a conversation that is there.
    fn with<T>(
        &self,
        account: &AccountId,
        id: ConversationId,
        since: Timestamp,
        work: impl FnOnce(&mut ConversationRecord) -> T,
    ) -> Option<T> {
        let mut records = self.records();
        records.get_mut(&(account.clone(), id)).filter(|record| record.touched >= since).map(work)
    }
}

/// Those of the account that were not touched for longest go until it keeps to its bound.
fn make_room(records: &mut ConversationTable, account: &AccountId, kept: ConversationId, most: u64) {
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

impl ConversationStore for MemoryConversations {
    fn create<'a>(
        &'a self,
        conversation: &'a StoredConversation,
        items: &'a [StoredItem],
        bounds: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        async move {
            let mut record = ConversationRecord::new(conversation);
            record.extend(items);
            if record.size() > bounds.conversation {
                return Ok(ConversationWriteResult::Full);
            }
            let mut records = self.records();
            records.entry((conversation.account.clone(), conversation.id)).or_insert(record);
            make_room(&mut records, &conversation.account, conversation.id, bounds.account);
            Ok(ConversationWriteResult::Done)
        }
        .boxed()
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>> {
        async move { Ok(self.with(account, id, since, |record| record.conversation.clone())) }.boxed()
    }

    fn set_metadata<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        metadata: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>> {
        async move {
            Ok(self.with(account, id, since, |record| {
                record.touched = record.touched.max(now);
                record.conversation.metadata = metadata.into();
                record.conversation.clone()
            }))
        }
        .boxed()
    }

    fn delete<'a>(&'a self, account: &'a AccountId, id: ConversationId) -> ConversationFuture<'a, bool> {
        async move { Ok(self.records().remove(&(account.clone(), id)).is_some()) }.boxed()
    }

    fn delete_of<'a>(&'a self, account: &'a AccountId, key: Option<KeyId>) -> ConversationFuture<'a, u64> {
        async move {
            let mut records = self.records();
            let before = records.len();
            records.retain(|(owner, _), record| {
                owner != account || (key.is_some() && record.conversation.key != key)
            });
            Ok(u64::try_from(before - records.len()).unwrap_or(u64::MAX))
        }
        .boxed()
    }

    fn items<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        page: ItemPage,
        since: Timestamp,
    ) -> ConversationFuture<'a, Vec<PositionedItem>> {
        async move { Ok(self.with(account, id, since, |record| record.page(page)).unwrap_or_default()) }
            .boxed()
    }

    fn item<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<PositionedItem>> {
        async move { Ok(self.with(account, id, since, |record| record.find(item)).flatten()) }.boxed()
    }

    fn remove<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        async move {
            let removed = self.with(account, id, since, |record| {
                let Some(found) = record.find(item) else { return ConversationWriteResult::Unknown };
                if record.is_busy(None, now) {
                    return ConversationWriteResult::Busy;
                }
                record.touched = record.touched.max(now);
                record.items.remove(&found.position);
                ConversationWriteResult::Done
            });
            Ok(removed.unwrap_or(ConversationWriteResult::Unknown))
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
    ) -> ConversationFuture<'a, ClaimResult> {
        async move {
            let claimed = self.with(account, id, since, |record| {
                if record.is_busy(Some(claimant), now) {
                    return ClaimResult::Busy;
                }
                record.claim = Some((claimant, until));
                record.touched = record.touched.max(now);
                ClaimResult::Granted(record.conversation.clone())
            });
            Ok(claimed.unwrap_or(ClaimResult::Unknown))
        }
        .boxed()
    }

    fn renew<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        until: Timestamp,
    ) -> ConversationFuture<'a, bool> {
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
    ) -> ConversationFuture<'a, ()> {
        async move {
            self.with(account, id, Timestamp(i64::MIN), |record| {
                record.claim.take_if(|(holder, _)| *holder == claimant);
            });
            Ok(())
        }
        .boxed()
    }

    fn append<'a>(
        &'a self,
        append: &'a ConversationAppend,
        since: Timestamp,
        bounds: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        async move {
            let ConversationAppend { account, id, claimant, items, episode, at } = append;
            let more = u64::try_from(append.size()).unwrap_or(u64::MAX);
            let change = self.with(account, *id, since, |record| {
                if !record.may_append(*claimant, *at) {
                    return ConversationWriteResult::Busy;
                }
                if record.size().saturating_add(more) > bounds.conversation {
                    return ConversationWriteResult::Full;
                }
                record.extend(items);
                record.claim = None;
                record.touched = record.touched.max(*at);
                if episode.is_some() {
                    record.conversation.episode.clone_from(episode);
                }
                ConversationWriteResult::Done
            });
            if change == Some(ConversationWriteResult::Done) {
                make_room(&mut self.records(), account, *id, bounds.account);
            }
            Ok(change.unwrap_or(ConversationWriteResult::Unknown))
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> ConversationFuture<'_, u64> {
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
