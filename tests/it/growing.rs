//! Answers that grow beyond what was set aside for them at first, and money that others merely hold.

mod beside;
mod further;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::cluster::cluster;
use crate::harness::patience::until;
use crate::harness::{Answer, Caller, Served, Stored, World, model, tenant};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_ledger::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, Journal, JournalEntry, JournalError, MemoryJournal,
};
use stint_types::catalog::{Capability, EnforcementClass, Model, Prices, Tariff};
use stint_types::units::{EpisodeId, Money, Price, Timestamp, Tokens};

/// A journal in memory that counts extensions, and holds them back while it is shut.
struct Counting {
    rows: MemoryJournal,
    extensions: AtomicUsize,
    arrived: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Counting {
    fn new() -> Arc<Counting> {
        let (arrived, open) = (watch::Sender::new(0), watch::Sender::new(true));
        Arc::new(Counting { rows: MemoryJournal::default(), extensions: AtomicUsize::new(0), arrived, open })
    }

    fn extensions(&self) -> usize {
        self.extensions.load(Ordering::SeqCst)
    }

    /// Waits until an extension is on its way.
    async fn extending(&self) {
        self.arrived.subscribe().wait_for(|count| *count > 0).await.unwrap();
    }
}

impl Journal for Counting {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            let more = entries.iter().filter(|entry| matches!(entry, JournalEntry::Extended(_))).count();
            if more > 0 {
                self.arrived.send_modify(|count| *count += more);
                self.open.subscribe().wait_for(|open| *open).await.unwrap();
                self.extensions.fetch_add(more, Ordering::SeqCst);
            }
            self.rows.append(entries).await
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.rows.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.rows.spend_since(since)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.rows.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.rows.balances()
    }
}

/// One nano-dollar a token, read or written; nobody limits its answers.
fn unlimited(name: &str) -> Model {
    let price = Price { per_million_tokens: Money(1_000_000) };
    Model {
        tariff: Some(Tariff::plain(Prices { input: price, output: price })),
        context: Tokens(100_000),
        solution_max: None,
        ..model(name, EnforcementClass::Inline)
    }
}

/// An answer of so many tokens.
fn words(count: usize) -> String {
    (1..=count).map(|number| format!("w{number} ")).collect()
}

fn script(count: usize) -> Arc<ScriptedBackend> {
    Arc::new(
        ScriptedBackend::always(ScriptedReply::new().thinks(3).answers(&words(count))).reading(Tokens(75)),
    )
}

fn question(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream,
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 10 },
    })
}

/// What an answer says of its budget, streamed or not.
fn budget(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let lines = answer.text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let objects = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.map(|object| object["budget"].clone()).find(Value::is_object).expect("a budget")
}

async fn world(journal: &Arc<Counting>, script: &Arc<ScriptedBackend>, callers: Vec<Caller>) -> World {
    let mut stored = Stored::alone(journal.clone());
    stored.pace.dispatch_max = Duration::from_millis(200);
    let served = Served::by(unlimited("m"), vec![script.clone()]);
    World::agents(vec![served], callers, Vec::new(), stored).await
}

/// Everything is settled, nothing was billed beyond what was set aside, and the journal says the same.
async fn exact(world: &World, journal: &dyn Journal, name: &str) -> Money {
    world.settled().await;
    let account = world.account(name);
    assert_eq!((account.reserved.money, account.overrun), (Money::ZERO, Money::ZERO), "{account:?}");
    until("all is written down", async || journal.unresolved().await.unwrap().is_empty()).await;
    let balances = journal.balances().await.unwrap();
    assert_eq!(balances.iter().map(|one| one.spent.money).sum::<Money>(), account.spent.money);
    account.spent.money
}

#[tokio::test]
async fn an_answer_grows_as_far_as_the_model_takes_it_where_there_is_money() {
    for stream in [false, true] {
        let (journal, script) = (Counting::new(), script(6_000));
        let world = world(&journal, &script, vec![tenant("rich", 1_000_000)]).await;
        let budget = budget(&world.ask("sk-rich", &question(stream)).await);
        assert_eq!(budget["solution"]["ended"], "stop", "{budget}");
        assert_eq!(budget["solution"]["used"], 6_000);
        assert!((1..=8).contains(&journal.extensions()), "{} extensions", journal.extensions());
        let spent = exact(&world, &*journal, "rich").await;
        assert_eq!(budget["cost_usd"], spent.to_string());
    }
}

#[tokio::test]
async fn a_key_without_limits_never_extends() {
    let (journal, script) = (Counting::new(), script(6_000));
    let world = world(&journal, &script, Vec::new()).await;
    let answer = world.ask("", &question(false)).await.good();
    assert_eq!((answer["budget"]["solution"]["used"].as_u64(), journal.extensions()), (Some(6_000), 0));
}

#[tokio::test]
async fn an_answer_ends_at_the_money_that_is_left_and_says_so() {
    let (journal, script) = (Counting::new(), script(6_000));
    let world = world(&journal, &script, vec![tenant("poor", 3_000)]).await;
    let answer = world.ask("sk-poor", &question(false)).await.good();
    let budget = &answer["budget"];
    assert_eq!(budget["solution"]["ended"], "money", "{budget}");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let spent = exact(&world, &*journal, "poor").await;
    assert!(spent > Money(2_900) && spent <= Money(3_000), "{spent} of 3,000");
    let refused = world.ask("sk-poor", &question(false)).await;
    assert_eq!(refused.error()["code"], "insufficient_quota", "it is spent");
}

#[tokio::test]
async fn a_ledger_that_is_silent_is_not_missing_money() {
    let (journal, script) = (Counting::new(), script(20_000));
    let world = world(&journal, &script, vec![tenant("key", 1_000_000)]).await;
    journal.open.send_replace(false);
    let answer = world.ask("sk-key", &question(false)).await.good();
    assert_eq!(answer["budget"]["solution"]["ended"], "ledger", "{}", answer["budget"]);
    journal.open.send_replace(true);
    exact(&world, &*journal, "key").await;
}

#[tokio::test]
async fn a_caller_may_leave_while_more_is_being_set_aside() {
    let (journal, script) = (Counting::new(), script(6_000));
    let world = world(&journal, &script, vec![tenant("key", 1_000_000)]).await;
    journal.open.send_replace(false);
    let request = world.client.post(format!("{}/v1/chat/completions", world.base));
    let request = request.header("authorization", "Bearer sk-key").header("content-type", "application/json");
    let mut answer = request.body(question(true).to_string()).send().await.unwrap();
    let reads = async { while answer.chunk().await.unwrap().is_some() {} };
    tokio::select! {
        () = journal.extending() => {}
        () = reads => panic!("it came to its end without more"),
    }
    drop(answer);
    world.settled().await;
    journal.open.send_replace(true);
    let spent = exact(&world, &*journal, "key").await;
    assert!(spent > Money(75), "{spent}");
}

#[tokio::test]
async fn several_choices_grow_together() {
    let (journal, script) = (Counting::new(), script(4_000));
    let world = world(&journal, &script, vec![tenant("rich", 1_000_000)]).await;
    let mut body = question(false);
    body["n"] = 3.into();
    let answer = world.ask("sk-rich", &body).await.good();
    for choice in answer["budget"]["choices"].as_array().unwrap() {
        assert_eq!(
            (&choice["solution"]["ended"], &choice["solution"]["used"]),
            (&json!("stop"), &json!(4_000))
        );
    }
    assert!((1..=8).contains(&journal.extensions()), "{} extensions", journal.extensions());
    exact(&world, &*journal, "rich").await;
}

#[tokio::test]
async fn three_replicas_grow_their_answers_from_one_limit() {
    let url = cluster().database();
    let settings = stint_storage::Settings::Postgres(stint_storage::PostgresSettings {
        url: stint_storage::DatabaseUrl::new(url),
        lease: Duration::from_secs(10),
    });
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let database = stint_storage::Database::open(&settings).await.unwrap();
        let served = Served::by(unlimited("m"), vec![script(6_000)]);
        let callers = vec![tenant("key", 100_000)];
        worlds.push(World::agents(vec![served], callers, Vec::new(), Stored::of(&database)).await);
    }
    let question = question(false);
    let asked =
        worlds.iter().flat_map(|world| [world.ask("sk-key", &question), world.ask("sk-key", &question)]);
    let answers = futures_util::future::join_all(asked).await;
    let mut cost = Money::ZERO;
    for answer in answers {
        let answer = answer.good();
        assert_eq!(answer["budget"]["solution"]["ended"], "stop", "{}", answer["budget"]);
        cost += answer["budget"]["cost_usd"].as_str().unwrap().parse().unwrap();
    }
    let mut spent = Money::ZERO;
    for world in &worlds {
        world.settled().await;
        let account = world.account("key");
        assert_eq!((account.reserved.money, account.overrun), (Money::ZERO, Money::ZERO));
        spent += account.spent.money;
    }
    assert_eq!(spent, cost);
}

/// Three dollars for a million tokens read and fifteen for as many written. A caller that hangs up is billed for the rest.
fn dear() -> Model {
    let price = |dollars: u64| Price { per_million_tokens: Money(dollars * 1_000_000_000) };
    Model {
        tariff: Some(Tariff::plain(Prices { input: price(3), output: price(15) })),
        context: Tokens(200_000),
        thinking_max: Tokens(32_000),
        solution_max: None,
        output_max: Some(Tokens(64_000)),
        stops_billing: false,
        capabilities: vec![Capability::Tools],
        ..model("m", EnforcementClass::Inline)
    }
}

#[tokio::test]
async fn of_eight_agents_at_once_on_one_key_none_fails_because_others_hold_money() {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().thinks(30).answers(&words(300)).waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(20_000)));
    let world = World::new(vec![(dear(), script.clone())], vec![tenant("team", 5_000_000_000)]).await;
    let tool =
        json!({ "type": "function", "function": { "name": "search", "parameters": { "type": "object" } } });
    let bodies: Vec<Value> = (0..8)
        .map(|number| {
            let mut body = json!({
                "model": "m", "max_tokens": 64_000, "stream": number % 2 == 0,
                "messages": [{ "role": "user", "content": format!("You are agent {number}: look into it.") }],
                "budget": { "thinking_tokens": 8_000 },
            });
            if number % 4 < 2 {
                body["tools"] = json!([tool]);
            }
            body
        })
        .collect();
    let asked = futures_util::future::join_all(bodies.iter().map(|body| world.ask("sk-team", body)));
    let opened = async {
        script.until(|records| records.len() >= 2).await;
        gate.open();
    };
    let (answers, ()) = tokio::join!(asked, opened);
    let mut cost = Money::ZERO;
    for answer in answers {
        let budget = budget(&answer);
        assert_eq!(budget["solution"]["used"], 300, "{budget}");
        cost += budget["cost_usd"].as_str().unwrap().parse().unwrap();
    }
    world.settled().await;
    let account = world.account("team");
    assert_eq!(
        (account.spent.money, account.reserved.money, account.overrun),
        (cost, Money::ZERO, Money::ZERO)
    );
}

#[tokio::test]
async fn money_that_others_hold_for_too_long_is_no_spent_quota() {
    let gate = PieceGate::shut();
    let play = ScriptedReply::new().thinks(3).answers("3").waits_at(&gate);
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let stored =
        Stored { wait_max: Duration::from_millis(100), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    let served = Served::by(unlimited("m"), vec![script.clone()]);
    let world = World::agents(vec![served], vec![tenant("key", 150)], Vec::new(), stored).await;
    let mut body = question(false);
    body["budget"]["solution_tokens"] = 10.into();
    let first = world.ask("sk-key", &body);
    let second = async {
        script.until(|records| records.len() == 1).await;
        let answer = world.ask("sk-key", &body).await;
        gate.open();
        answer
    };
    let (first, second) = tokio::join!(first, second);
    first.good();
    assert_eq!(
        (second.status, &second.error()["code"]),
        (429, &json!("rate_limit_exceeded")),
        "{}",
        second.text
    );
    assert!(second.headers.contains_key("retry-after") && !second.headers.contains_key("x-should-retry"));
    let mut long = body.clone();
    long["budget"]["solution_tokens"] = 1_000.into();
    long["budget"]["thinking_tokens"] = 500.into();
    let refused = world.ask("sk-key", &long).await;
    assert_ne!(refused.status, 200, "its own worst case is above the limit: {}", refused.text);
}
