//! The ledger's disk is full for a while, as callers see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Folder, World, model, tenant};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, BackendCall, Failure, Generation};
use stint_ledger::{
    AccountId, AccountSpend, DatabaseFault, DispatchEntry, EpisodeUsage, Journal, JournalEntry, JournalError,
    MemoryJournal,
};
use stint_types::catalog::{EnforcementClass, ModelConditions};
use stint_types::chat::Request;
use stint_types::units::{EpisodeId, Timestamp, Tokens};

/// A journal on a disk that may be full.
#[derive(Default)]
struct Disk {
    journal: MemoryJournal,
    is_full: AtomicBool,
}

impl Journal for Disk {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        match self.is_full.load(Ordering::SeqCst) {
            true => async {
                let error = JournalError::new("/srv/secret.db: database or disk is full");
                Err(error.with_fault(DatabaseFault::DiskFull))
            }
            .boxed(),
            false => self.journal.append(entries),
        }
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.journal.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_since(since)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.journal.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.balances()
    }
}

fn question(stream: bool) -> Value {
    json!({
        "model": "m",
        "stream": stream,
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 10, "solution_tokens": 10 },
    })
}

#[tokio::test]
async fn while_the_disk_is_full_streams_end_whole_and_new_requests_are_refused() {
    let (gate, disk) = (PieceGate::shut(), Arc::new(Disk::default()));
    let play = ScriptedReply::new().thinks(3).answers("3").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let models = vec![(model("m", EnforcementClass::Inline), script.clone() as _)];
    let world = World::on(disk.clone(), models, vec![tenant("key", 1_000_000)], |_| ()).await;
    let world = Arc::new(world);
    let running = tokio::spawn({
        let world = world.clone();
        async move { world.ask("sk-key", &question(true)).await }
    });
    script.until(|records| records.len() == 1).await;
    disk.is_full.store(true, Ordering::SeqCst);
    gate.open();
    let stream = running.await.unwrap().chunks();
    assert!(stream.done, "the last chunk came");
    assert_eq!(stream.joined(0, "content"), "3");
    let budget = stream.all.iter().find_map(|chunk| chunk.get("budget")).expect("a budget at the end");
    assert_eq!(budget["cost_usd"], Value::Null, "the books do not have it yet: {budget}");
    let refused = world.ask("sk-key", &question(false)).await;
    assert_eq!((refused.status, &refused.error()["code"]), (503, &json!("overloaded")));
    assert!(refused.headers.contains_key("retry-after"));
    assert!(refused.text.contains("cannot record new requests"), "{}", refused.text);
    let ready = world.get("", "/readyz").await;
    assert!(ready.status == 503 && ready.text.contains("the disk is full"), "{}", ready.text);
    assert!(!ready.text.contains("secret.db"), "anybody may read it: {}", ready.text);
    assert_eq!(script.records().len(), 1, "nothing else reached the model");
    assert!(disk.balances().await.unwrap().is_empty());
    disk.is_full.store(false, Ordering::SeqCst);
    until("it recovers by itself", async || !world.ledger.stats().stalled).await;
    world.ask("sk-key", &question(false)).await.good();
    world.settled().await;
    let (kept, account) = (disk.balances().await.unwrap(), world.account("key"));
    assert_eq!((kept[0].settled, kept[0].spent.money), (2, account.spent.money), "nothing is lost");
}

/// A journal that panics at so many settlements.
#[derive(Default)]
struct Clumsy {
    journal: MemoryJournal,
    panics: AtomicU64,
}

impl Journal for Clumsy {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        let settles = entries.iter().any(|entry| matches!(entry, JournalEntry::Resolved(_)));
        let left = |left: u64| left.checked_sub(1);
        if settles && self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return async { panic!("a mistake") }.boxed();
        }
        self.journal.append(entries)
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.journal.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_since(since)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.journal.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.balances()
    }
}

/// A model whose description panics in any code that reads it, after a certain question.
#[derive(Debug)]
struct Touchy(Arc<ScriptedBackend>);

impl Backend for Touchy {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.0.generate(call)
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        assert_ne!(request.sampling.seed, Some(13), "thirteen");
        self.0.prompt_tokens(request)
    }

    fn conditions(&self) -> ModelConditions {
        self.0.conditions()
    }
}

/// CR-12: a panic in a handler fails that request alone, in the API's form; one in the settlement fails none, and it is
/// settled all the same.
#[tokio::test]
async fn a_panic_fails_one_request_at_most() {
    let (gate, journal) = (PieceGate::shut(), Arc::new(Clumsy::default()));
    let play = ScriptedReply::new().thinks(3).answers("3").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let models = vec![(model("m", EnforcementClass::Inline), Arc::new(Touchy(script.clone())) as _)];
    let world = World::on(journal.clone(), models, vec![tenant("key", 1_000_000)], |_| ()).await;
    let world = Arc::new(world);
    let running = tokio::spawn({
        let world = world.clone();
        async move { world.ask("sk-key", &question(true)).await }
    });
    script.until(|records| records.len() == 1).await;
    let mut unlucky = question(false);
    unlucky["seed"] = json!(13);
    for stream in [false, true] {
        unlucky["stream"] = json!(stream);
        let failed = world.ask("sk-key", &unlucky).await;
        assert_eq!((failed.status, &failed.error()["code"]), (500, &json!("internal_error")));
        assert!(failed.headers.contains_key("x-request-id") && !failed.text.contains("thirteen"));
    }
    assert_eq!(world.ledger.open_reservations(), 1, "the other one goes on");
    journal.panics.store(3, Ordering::SeqCst);
    gate.open();
    assert!(running.await.unwrap().chunks().done);
    world.ask("sk-key", &question(false)).await.good();
    world.settled().await;
    assert!(world.stop().await, "all is written");
    assert_eq!(journal.panics.load(Ordering::SeqCst), 0, "it panicked");
    let (kept, account) = (journal.balances().await.unwrap(), world.account("key"));
    assert_eq!((kept[0].settled, kept[0].spent.money), (2, account.spent.money));
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

#[tokio::test]
async fn a_disk_that_fails_for_a_while_stops_new_requests_and_no_longer() {
    let folder = Folder::new("");
    let mut process = folder.serve_through_errors();
    let body = json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
                       "budget": { "thinking_tokens": 8, "solution_tokens": 12 } });
    process.ask("", &body).await.good();
    process.limit_files("0");
    for _ in 0..3 {
        let refused = process.ask("", &body).await;
        assert_eq!((refused.status, &refused.error()["code"]), (503, &json!("overloaded")));
    }
    process.limit_files("unlimited");
    let mut served = 0;
    until("it recovers by itself", async || {
        served += u32::from(process.ask("", &body).await.status == 200);
        served == 3
    })
    .await;
    process.signal("TERM");
    assert!(process.ended().success());
    let verified = folder.stint("ledger").arg("verify").output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success() && said.contains("the books are right"), "{said}");
}
