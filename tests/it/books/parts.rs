//! Requests that several models took part in: each is booked what its own upstream would bill, and all of them come to what the
//! caller was told; in a file and over a restart, in PostgreSQL and on two gateways, sealed or not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::cluster::cluster;
use crate::harness::patience::until;
use crate::harness::{Served, Stored, World, auto, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, Failure, Fault};
use stint_storage::{
    Archive, Database, DatabaseUrl, PostgresSettings, Settings, SqliteSettings, Synchronous,
};
use stint_types::catalog::{
    AnswerComparison, DifficultyProbe, EnforcementClass, Model, Prices, Route, Tariff, Vote, VoteAssumptions,
    VotePolicy,
};
use stint_types::units::{Chance, Money, Price, Timestamp, Tokens};

use super::money;

/// A model at a price of its own, and what its upstream's log says.
#[derive(Clone)]
struct Upstream {
    model: Model,
    /// In nano-dollars a token, read or written.
    price: u64,
    /// What each call reads.
    read: u64,
    /// What each call writes before it ends or breaks.
    written: u64,
    script: Arc<ScriptedBackend>,
}

impl Upstream {
    fn new(name: &str, price: u64, written: u64, script: ScriptedBackend) -> Upstream {
        let each = Price { per_million_tokens: Money(price * 1_000_000) };
        let tariff = Some(Tariff::plain(Prices { input: each, output: each }));
        let model = Model { tariff, ..model(name, EnforcementClass::Inline) };
        let read = 75;
        Upstream { model, price, read, written, script: Arc::new(script.reading(Tokens(read))) }
    }

    fn calls(&self) -> u64 {
        u64::try_from(self.script.records().len()).unwrap()
    }

    /// Money, tokens read, tokens written.
    fn bill(&self) -> (u64, u64, u64) {
        let (read, written) = (self.calls() * self.read, self.calls() * self.written);
        (self.price * (read + written), read, written)
    }
}

/// What is asked of whom, and whose requests they are in the end.
struct Case {
    upstreams: Vec<Upstream>,
    route: Route,
    answers: &'static str,
}

/// Answers by turn, again and again: three tokens of thought, a tag, a word, the end of the text.
fn says(answers: &'static [&'static str]) -> ScriptedBackend {
    ScriptedBackend::each(move |_, turn| {
        ScriptedReply::new().thinks(3).answers(answers[turn % answers.len()])
    })
}

const WHOLE: u64 = 3 + 1 + 1 + 1;

/// A route on which an answer is worth so much that as many are made as it takes.
fn route(compare: AnswerComparison, models: &[&str]) -> Route {
    let scatter = VoteAssumptions { correlation: Chance::new(0.0), ..compare.default_assumptions() };
    let poll = VotePolicy { stop_probability: Chance::new(0.0), ..VotePolicy::default() };
    Route {
        models: models.iter().map(|name| (*name).into()).collect(),
        worth: Money(1_000_000_000),
        cost_per_second: Money(0),
        vote: Some(Vote::new(5, compare, scatter).with_policy(poll)),
        ..Route::with_defaults("v")
    }
}

fn cascade(second: Upstream, answers: &'static str) -> Case {
    let mut first = Upstream::new("m", 1, WHOLE, says(&["41", "40"]));
    first.model.thinking_max = Tokens(16);
    let scatter =
        VoteAssumptions { correlation: Chance::new(0.0), ..AnswerComparison::Number.default_assumptions() };
    let vote = Some(Vote::new(2, AnswerComparison::Number, scatter));
    let route = Route { cascade: true, vote, ..route(AnswerComparison::Number, &["m", "n"]) };
    Case { upstreams: vec![first, second], route, answers }
}

fn going_on() -> Case {
    cascade(Upstream::new("n", 100, WHOLE, says(&["42"])), "n")
}

/// The second step fails, and the first one's answer is delivered after all.
fn going_back() -> Case {
    let broken = Failure::new(Fault::Backend, "gone");
    let play = ScriptedReply::new().thinks(3).answers("42").breaks_after(2, broken);
    cascade(Upstream::new("n", 100, 2, ScriptedBackend::always(play)), "m")
}

fn judged() -> Case {
    let answers = Upstream::new("m", 1, WHOLE, says(&["red", "green", "blue", "grey", "pink"]));
    let judge = Upstream::new("j", 7, 3 + 1 + 1, ScriptedBackend::always(ScriptedReply::new().answers("2")));
    let route = Route { judge: Some("j".into()), ..route(AnswerComparison::Exact, &["m"]) };
    Case { upstreams: vec![answers, judge], route, answers: "m" }
}

fn probed() -> Case {
    let answers = Upstream::new("m", 100, WHOLE, says(&["42"]));
    let drafts =
        Upstream::new("p", 1, 3 + 1 + 1, ScriptedBackend::always(ScriptedReply::new().answers("42")));
    let probe =
        Some(DifficultyProbe { model: "p".into(), drafts: 3, thinking: Tokens::ZERO, tokens: Tokens(16) });
    // So much is a right answer worth that whether to think at all is open.
    let route = Route { probe, worth: Money(640_000), vote: None, ..route(AnswerComparison::Number, &["m"]) };
    Case { upstreams: vec![answers, drafts], route, answers: "m" }
}

/// The cheaper model fails after it has read the prompt, and the other one takes over.
fn failed() -> Case {
    let broken = Failure::new(Fault::Backend, "gone");
    let cheap = Upstream::new(
        "m",
        1,
        0,
        ScriptedBackend::always(ScriptedReply::new().thinks(3).breaks_after(0, broken)),
    );
    let dear = Upstream::new("n", 2, WHOLE, says(&["42"]));
    Case { upstreams: vec![cheap, dear], route: Route { name: "v".into(), ..auto() }, answers: "n" }
}

impl Case {
    async fn world(&self, database: &Database) -> World {
        let served = self.upstreams.iter().map(|upstream| {
            let target: Vec<Arc<dyn Backend>> = vec![upstream.script.clone()];
            Served::by(upstream.model.clone(), target)
        });
        let callers = vec![tenant("key", 1_000_000_000)];
        World::agents(served.collect(), callers, vec![self.route.clone()], Stored::of(database)).await
    }

    /// Asks, and says what the caller was told that it cost.
    async fn ask(&self, world: &World) -> u64 {
        let body = json!({ "model": "v", "messages": [{ "role": "user", "content": "What is 6*7?" }] });
        let answer = world.ask("sk-key", &body).await.good();
        assert_eq!(answer["model"], self.answers, "{answer}");
        world.settled().await;
        written(world).await;
        money(&answer["budget"]["cost_usd"])
    }

    /// Each model's line is its upstream's bill, and all of them are what callers were told.
    async fn is_booked(&self, world: &World, requests: u64, told: u64) {
        let lines = used(world, "&group_by=model").await;
        let should = self.upstreams.iter().map(|upstream| {
            let name = upstream.model.name.to_string();
            let answered = if name == self.answers { requests } else { 0 };
            (name, (answered, upstream.bill()))
        });
        assert_eq!(lines, should.collect::<BTreeMap<_, _>>());
        let whole = used(world, "").await;
        let sum =
            lines.values().fold((0, 0, 0), |sum, (_, line)| (sum.0 + line.0, sum.1 + line.1, sum.2 + line.2));
        assert_eq!(whole[""], (requests, sum));
        assert_eq!(sum.0, told);
        assert!(self.upstreams.iter().all(|upstream| upstream.calls() >= requests), "all took part");
    }
}

/// By model: requests, money, tokens read, tokens written.
async fn used(world: &World, query: &str) -> BTreeMap<String, (u64, (u64, u64, u64))> {
    // The database's clock may be ahead of this machine's, which bounds a query without an end.
    let page = world.get("sk-key", &format!("/v1/usage?from=2020-01-01&to=2100-01-01{query}")).await.good();
    let line = |line: &Value| {
        let count = |name: &str| line[name].as_u64().unwrap();
        let written =
            ["thinking", "solution", "overhead", "other"].map(|kind| count(&format!("{kind}_tokens")));
        let bill = (money(&line["spent_usd"]), count("prompt_tokens"), written.iter().sum());
        (line["model"].as_str().unwrap_or("").to_owned(), (count("requests"), bill))
    };
    page["data"].as_array().unwrap().iter().map(line).collect()
}

/// Waits until all is written down: a settlement that stalls is told before it is.
async fn written(world: &World) {
    until("the journal takes it", async || world.ledger.stats().pending == 0).await;
}

async fn open(settings: &Settings) -> Database {
    let mut opened = None;
    until("it is free", async || {
        opened = Database::open(settings).await.ok();
        opened.is_some()
    })
    .await;
    opened.unwrap()
}

async fn seal(database: &Database) {
    database.journal().seal(Timestamp::now()).await.unwrap().expect("something is not sealed");
}

async fn is_right(settings: &Settings) {
    let report = Archive::open(settings).await.unwrap().verify().await.unwrap();
    assert_eq!((report.differences, report.open), (Vec::new(), 0));
}

async fn in_a_file(case: Case) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let settings = Settings::Sqlite(SqliteSettings { path, synchronous: Synchronous::Normal });
    let mut told = 0;
    for start in 0..3 {
        let database = open(&settings).await;
        let world = case.world(&database).await;
        if start > 0 {
            case.is_booked(&world, start, told).await;
        }
        told += case.ask(&world).await;
        case.is_booked(&world, start + 1, told).await;
        if start == 1 {
            seal(&database).await;
            case.is_booked(&world, start + 1, told).await;
        }
        is_right(&settings).await;
        assert!(world.stop().await);
    }
}

async fn on_two_gateways(case: Case) {
    let (url, lease) = (DatabaseUrl::new(cluster().database()), Duration::from_secs(10));
    let settings = Settings::Postgres(PostgresSettings { url, lease });
    let databases = [open(&settings).await, open(&settings).await];
    let worlds = [case.world(&databases[0]).await, case.world(&databases[1]).await];
    let (mut told, mut requests) = (0, 0);
    for round in 0..2 {
        for world in &worlds {
            told += case.ask(world).await;
            requests += 1;
        }
        for world in &worlds {
            case.is_booked(world, requests, told).await;
        }
        if round == 0 {
            seal(&databases[1]).await;
            case.is_booked(&worlds[0], requests, told).await;
        }
        is_right(&settings).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_a_cascade_is_booked_under_its_model() {
    in_a_file(going_on()).await;
    on_two_gateways(going_on()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cascade_that_goes_back_is_the_first_models_request_and_both_are_paid() {
    in_a_file(going_back()).await;
    on_two_gateways(going_back()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_is_booked_under_its_model() {
    in_a_file(judged()).await;
    on_two_gateways(judged()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drafts_are_booked_under_their_model() {
    in_a_file(probed()).await;
    on_two_gateways(probed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_failed_is_booked_under_its_model() {
    in_a_file(failed()).await;
    on_two_gateways(failed()).await;
}
