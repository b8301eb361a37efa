//! The handle that requests use for stored responses. One writer stores them, so that an answer waits a bounded time; each account
//! has its turn and its rate, so that nobody's responses keep others' waiting, nor the settlements beside them. Small ones that wait
//! share a commit.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::agent::WriteLimiter;
use crate::store_writer::{self, Retention, StoreWriter, gather};
use stint_types::tasks::Tasks;
use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::{ResponseChain, ResponseStore, ResponsesError, Settings, StoredResponse};

/// As large may a response be, in bytes, whose turn ends before it is written. All such that wait fit into one write, so nobody waits
/// longer behind them than behind a large one.
const SHARED_MAX: usize = 64 << 10;

/// What became of a response that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseStoreResult {
    /// It can be had again.
    Stored,
    /// It is larger than is kept.
    TooLarge,
    /// The store did not take it, or not in time.
    Failed,
}

impl ResponseStoreResult {
    /// The word for it in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ResponseStoreResult::Stored => "kept",
            ResponseStoreResult::TooLarge => "too_large",
            ResponseStoreResult::Failed => "failed",
        }
    }
}

/// The way to the responses that were kept. Clones share it.
#[derive(Clone)]
pub struct ResponseService {
    settings: Settings,
    store: Arc<dyn ResponseStore>,
    jobs: mpsc::Sender<StoredResponseJob>,
    writes: WriteLimiter,
}

struct StoredResponseJob {
    response: StoredResponse,
    reply: oneshot::Sender<Result<(), ResponsesError>>,
}

impl ResponseService {
    /// Starts the writer, which runs until shutdown.
    pub fn open(tasks: &Tasks, store: Arc<dyn ResponseStore>, settings: Settings) -> ResponseService {
        let (jobs, arrived) = mpsc::channel(settings.waiting_max.max(1));
        let account_max = u64::try_from(settings.account_max).unwrap_or(u64::MAX);
        let writer = StoredResponseWriter { store: store.clone(), account_max };
        let retention = Retention { keep: settings.keep, sweep: settings.sweep };
        tasks.spawn(store_writer::run(writer, arrived, retention, tasks.clone()));
        let writes = WriteLimiter::new(settings.write_rate);
        ResponseService { settings, store, jobs, writes }
    }

    /// What holds of responses.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why a response of at least so many bytes would not be kept now; nothing where it would. Nothing is counted. Who asks first
    /// need not write out a large response that is refused then.
    pub fn refusal(&self, id: RequestId, account: &AccountId, bytes: usize) -> Option<ResponseStoreResult> {
        if bytes > self.settings.response_max {
            tracing::warn!(request = %id, bytes, "a response is too large to be stored");
            return Some(ResponseStoreResult::TooLarge);
        }
        let until = Instant::now() + self.settings.patience;
        let may = self.writes.may_begin_before(until, account, bytes);
        (!may).then(|| writes_too_much(id, account))
    }

    /// Keeps a response, and waits a bounded time until it is kept: for the rate of its account, its turn, and the store.
    pub async fn keep(&self, response: StoredResponse) -> ResponseStoreResult {
        let (id, bytes) = (response.id, response.size());
        let until = Instant::now() + self.settings.patience;
        if let Some(refusal) = self.refusal(id, &response.account, bytes) {
            return refusal;
        }
        let Some(turn) = self.writes.begin_before(until, &response.account, bytes).await else {
            return writes_too_much(id, &response.account);
        };
        let (reply, answer) = oneshot::channel();
        let queued = self.jobs.send(StoredResponseJob { response, reply });
        if !matches!(timeout_at(until, queued).await, Ok(Ok(()))) {
            tracing::error!(request = %id, "a response is not stored: too much waits for the store");
            return ResponseStoreResult::Failed;
        }
        // The next one may come into the same write as a small one.
        let _turn = (bytes > SHARED_MAX).then_some(turn);
        match timeout_at(until, answer).await {
            Ok(Ok(Ok(()))) => ResponseStoreResult::Stored,
            Ok(_) => ResponseStoreResult::Failed,
            Err(_) => {
                tracing::error!(request = %id, "a response was not stored in time");
                ResponseStoreResult::Failed
            }
        }
    }

    /// A response of that key, unless it is too old.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn find(
        &self,
        tenant: &Tenant,
        id: RequestId,
        now: Timestamp,
    ) -> Result<Option<StoredResponse>, ResponsesError> {
        let found = self.store.find(&tenant.account, id, now.before(self.settings.keep)).await?;
        Ok(found.filter(|response| is_own(tenant, response)))
    }

    /// A response of that key with all that it continued, as far as that is there, the key's, and not too large.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn chain(
        &self,
        tenant: &Tenant,
        id: RequestId,
        now: Timestamp,
    ) -> Result<Option<ResponseChain>, ResponsesError> {
        let most = u64::try_from(self.settings.history_max).unwrap_or(u64::MAX);
        let since = now.before(self.settings.keep);
        let Some(chain) = self.store.chain(&tenant.account, id, since, most).await? else { return Ok(None) };
        let own = chain.responses.into_iter().take_while(|response| is_own(tenant, response));
        let responses: Vec<StoredResponse> = own.collect();
        Ok((!responses.is_empty()).then_some(ResponseChain { responses }))
    }

    /// Deletes a response of that key; false if there is none.
    ///
    /// # Errors
    /// When the store does not work.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        id: RequestId,
        now: Timestamp,
    ) -> Result<bool, ResponsesError> {
        match self.find(tenant, id, now).await? {
            Some(response) => self.store.delete(&response.account, id).await,
            None => Ok(false),
        }
    }
}

impl fmt::Debug for ResponseService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The responses of one commit, and who waits for each.
struct StoredResponseBatch {
    responses: Vec<StoredResponse>,
    replies: Vec<oneshot::Sender<Result<(), ResponsesError>>>,
}

struct StoredResponseWriter {
    store: Arc<dyn ResponseStore>,
    account_max: u64,
}

impl StoreWriter for StoredResponseWriter {
    type Job = StoredResponseJob;
    type Batch = StoredResponseBatch;
    type Written = ();
    type Error = ResponsesError;

    const FAILURE: &'static str = "the store of responses failed";

    /// Accounts come in the order of their bytes everywhere: each row locks its account's sum, and two replicas never wait for each
    /// other.
    fn batch(
        first: StoredResponseJob,
        arrived: &mut mpsc::Receiver<StoredResponseJob>,
    ) -> StoredResponseBatch {
        let mut batch = gather(first, arrived, |job| job.response.size());
        batch.sort_by(|one, other| one.response.account.cmp(&other.response.account));
        let (responses, replies) = batch.into_iter().map(|job| (job.response, job.reply)).unzip();
        StoredResponseBatch { responses, replies }
    }

    fn write<'a>(&'a self, batch: &'a StoredResponseBatch) -> BoxFuture<'a, Result<(), ResponsesError>> {
        self.store.keep(&batch.responses, self.account_max)
    }

    fn reply(batch: StoredResponseBatch, written: Result<(), ResponsesError>) {
        for reply in batch.replies {
            let _ = reply.send(written.clone());
        }
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        self.store.purge(before, most)
    }
}

fn is_own(tenant: &Tenant, response: &StoredResponse) -> bool {
    tenant.owns(&response.account, response.key)
}

fn writes_too_much(id: RequestId, account: &AccountId) -> ResponseStoreResult {
    tracing::warn!(request = %id, %account, "a response is not stored: its account writes too much");
    ResponseStoreResult::Failed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;

    use stint_types::tenant::{KeyId, hash_key};

    use super::super::MemoryResponses;
    use super::*;

    fn response(account: &str, bytes: usize) -> StoredResponse {
        StoredResponse {
            id: RequestId::new(),
            account: AccountId::new(account),
            key: None,
            at: Timestamp::now(),
            previous: None,
            episode: None,
            input: "x".repeat(bytes).into(),
            output: "[]".into(),
            body: "{}".into(),
        }
    }

    #[tokio::test]
    async fn a_response_is_its_own_keys_and_not_that_of_a_later_key_of_the_same_name() {
        let tasks = Tasks::default();
        let service =
            ResponseService::open(&tasks, Arc::new(MemoryResponses::default()), Settings::default());
        let old = Tenant::new(AccountId::new("a"), hash_key("sk-old"));
        let new = Tenant { id: KeyId::generate().unwrap(), ..old.clone() };
        let first = StoredResponse { key: Some(old.id), ..response("a", 1) };
        let second = StoredResponse { key: Some(old.id), previous: Some(first.id), ..response("a", 1) };
        let stolen = StoredResponse { key: Some(new.id), previous: Some(second.id), ..response("a", 1) };
        let of_earlier_version = response("a", 1);
        for one in [&first, &second, &stolen, &of_earlier_version] {
            assert_eq!(service.keep(one.clone()).await, ResponseStoreResult::Stored);
        }
        let now = Timestamp::now();
        assert_eq!(service.find(&new, first.id, now).await.unwrap(), None);
        assert_eq!(service.chain(&new, second.id, now).await.unwrap(), None);
        assert!(!service.delete(&new, first.id, now).await.unwrap());
        let broken = service.chain(&new, stolen.id, now).await.unwrap().unwrap();
        assert_eq!((broken.first(), &broken.responses), (None, &vec![stolen]));
        assert_eq!(service.find(&new, of_earlier_version.id, now).await.unwrap(), Some(of_earlier_version));
        assert_eq!(service.chain(&old, second.id, now).await.unwrap().unwrap().first(), Some(&first));
        assert!(service.delete(&old, first.id, now).await.unwrap());
        assert_eq!(service.find(&old, first.id, now).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn small_responses_that_wait_share_a_write_and_large_ones_have_their_own() {
        let check = async |bytes: usize, expected: &[usize]| {
            let (tasks, store) = (Tasks::default(), Arc::new(MemoryResponses::default()));
            let service = ResponseService::open(&tasks, store.clone(), Settings::default());
            let accounts = ["a", "b", "a", "c", "a", "b"];
            let results = join_all(accounts.map(|account| service.keep(response(account, bytes)))).await;
            assert!(results.iter().all(|result| *result == ResponseStoreResult::Stored), "{results:?}");
            assert_eq!(*store.writes.lock().unwrap(), expected, "{bytes}");
        };
        check(1_000, &[6]).await;
        check(2 * SHARED_MAX, &[1; 6]).await;
    }

    /// As many as wait at most, and more.
    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_small_responses_waits_for_room_and_is_stored() {
        let tasks = Tasks::default();
        let service =
            ResponseService::open(&tasks, Arc::new(MemoryResponses::default()), Settings::default());
        let results = join_all((0..200).map(|_| service.keep(response("a", 1)))).await;
        assert!(results.iter().all(|result| *result == ResponseStoreResult::Stored), "{results:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_that_writes_too_much_has_responses_not_kept_and_keeps_nobody_waiting() {
        let tasks = Tasks::default();
        let service =
            ResponseService::open(&tasks, Arc::new(MemoryResponses::default()), Settings::default());
        let greedy = join_all((0..40).map(|_| service.keep(response("a", 3_000_000))));
        let (results, other) = tokio::join!(greedy, async {
            let began = Instant::now();
            (service.keep(response("b", 3_000_000)).await, began.elapsed())
        });
        assert_eq!(other, (ResponseStoreResult::Stored, Duration::ZERO));
        let stored = results.iter().filter(|result| **result == ResponseStoreResult::Stored).count();
        assert_eq!(stored, 6, "sixteen seconds' worth at once, and that of two seconds more");
        let refusal =
            |account: &str, bytes| service.refusal(RequestId::new(), &AccountId::new(account), bytes);
        assert_eq!(
            refusal("a", 3_000_000),
            Some(ResponseStoreResult::Failed),
            "known before it is written out"
        );
        assert_eq!(refusal("b", 3_000_000), None);
        assert_eq!(refusal("b", usize::MAX), Some(ResponseStoreResult::TooLarge));
    }
}
