//! What decisions leave behind, and what is learned from it, through the whole gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::harness::cluster::cluster;
use crate::harness::patience::{until, within};
use crate::harness::{Answer, Folder, World, auto, model, tenant};
use stint::gateway::LearnSettings;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_sessions::history::{
    DecisionLogLine, DecisionLogSettings, HistoryStore, HistoryStoreError, MemoryHistoryStore, ReplicaId,
    ReplicaState, RequestRecord, WritableRecord,
};
use stint_storage::{Database, DatabaseUrl, PostgresSettings, Settings};
use stint_types::catalog::{EnforcementClass, Model, Prices, Route, Tariff, Verdict};
use stint_types::chat::ToolCallDelta;
use stint_types::units::{Chance, Money, Price, RequestId, Timestamp};

/// A model twice as dear as usual.
fn dear(name: &str) -> Model {
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    Model {
        tariff: Some(Tariff::plain(Prices { input: price(2), output: price(8) })),
        ..model(name, EnforcementClass::Inline)
    }
}

/// A cheap model `m` that is always wrong, and a dear one, `n`, that is right.
async fn pair(stories: Arc<dyn HistoryStore>, settings: LearnSettings) -> World {
    pair_on(auto(), stories, settings).await
}

/// The same, chosen among by another route called `auto`.
async fn pair_on(route: Route, stories: Arc<dyn HistoryStore>, settings: LearnSettings) -> World {
    let script =
        |answer: &str| Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers(answer)));
    let models = vec![(model("m", EnforcementClass::Inline), script("4")), (dear("n"), script("3"))];
    let callers = ["acme/alice", "acme/bob", "acme"].map(|name| tenant(name, 1_000_000_000));
    World::learning(route, models, callers.into(), stories, settings).await
}

fn question(number: u32) -> Value {
    json!({ "model": "auto", "messages": [{ "role": "user", "content": format!("What is {number}+2?") }] })
}

/// Short prompts say little of how many tokens a text has.
fn long_question(number: u32) -> Value {
    let text = "The numbers stand in the table at the end of the report. ".repeat(20);
    json!({ "model": "auto", "messages": [{ "role": "user", "content": format!("{text}What is {number}+2?") }] })
}

const ALICE: &str = "sk-acme/alice";
const BOB: &str = "sk-acme/bob";
const ACME: &str = "sk-acme";

async fn say(world: &World, key: &str, body: &Value) -> Answer {
    world.post("/v1/feedback", key, body).await
}

async fn judge(world: &World, answer: &Value, correct: bool) {
    let said = say(world, ALICE, &json!({ "id": answer["id"], "correct": correct })).await;
    assert_eq!(said.status, 202, "{}", said.text);
}

/// Asks and says what is right until the right model answers; how often it was wrong.
async fn until_right(world: &World) -> u32 {
    for asked in 0..20 {
        let before = observed(world);
        let answer = world.ask(ALICE, &question(asked)).await.good();
        let is_right = answer["model"] == "n";
        judge(world, &answer, is_right).await;
        if is_right {
            return asked;
        }
        // Of the answer, and of what was said of it.
        until("it is learned", async || observed(world) >= before + 2).await;
    }
    panic!("the choice has not moved");
}

/// How much was learned of the two models.
fn observed(world: &World) -> i64 {
    let of = |model| world.metrics.learning.observations.with_label_values(&[model]).get();
    of("m") + of("n")
}

async fn request(world: &World, key: &str, id: &Value) -> Answer {
    world.get(key, &format!("/v1/requests/{}", id.as_str().unwrap())).await
}

/// What was said of a request, once something was said by that source.
async fn told(world: &World, id: &Value, source: &str) -> Value {
    let mut said = None;
    until(source, async || {
        let story = request(world, ALICE, id).await.good();
        said = story["feedback"].as_array().unwrap().iter().find(|said| said["source"] == source).cloned();
        said.is_some()
    })
    .await;
    said.unwrap()
}

#[tokio::test]
async fn feedback_moves_the_choice_and_a_restart_keeps_it() {
    let stories = Arc::new(MemoryHistoryStore::default());
    let world = pair(stories.clone(), LearnSettings::default()).await;
    let wrong = until_right(&world).await;
    assert!((1..=10).contains(&wrong), "the cheap one first, and not for long: {wrong}");
    assert_eq!(world.ask(BOB, &question(50)).await.good()["model"], "n", "for everybody");
    assert!(world.stop().await);
    let again = pair(stories, LearnSettings::default()).await;
    assert_eq!(again.ask(ALICE, &question(51)).await.good()["model"], "n");
    let metrics = again.metrics_page();
    assert!(metrics.contains("stint_regret_count{route=\"auto\"} 1"), "{metrics}");
}

#[tokio::test]
async fn how_many_tokens_prompts_have_is_known_after_a_restart() {
    let stories = Arc::new(MemoryHistoryStore::default());
    let expected = async |world: &World| {
        let plan = world.post("/v1/plan?explain=true", ALICE, &long_question(7)).await.good();
        plan["explanation"]["models"]["m"]["prompt_tokens"]["expected"].as_u64().unwrap()
    };
    let gateway = async || {
        let script = ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("4")).of_bytes(6);
        let models = vec![(model("m", EnforcementClass::Inline), Arc::new(script))];
        let callers = vec![tenant("acme/alice", 1_000_000_000)];
        World::learning(auto(), models, callers, stories.clone(), LearnSettings::default()).await
    };
    let world = gateway().await;
    let before = expected(&world).await;
    for number in 0..20 {
        world.ask(ALICE, &long_question(number)).await.good();
    }
    let learned = expected(&world).await;
    assert_ne!(learned, before, "twenty reports say nothing");
    assert!(world.stop().await);
    assert_eq!(expected(&gateway().await).await, learned);
}

/// The process was killed: what it saved last is there, and is taken over.
#[tokio::test]
async fn what_was_learned_survives_an_end_without_last_words() {
    let stories = Arc::new(MemoryHistoryStore::default());
    let settings = LearnSettings { save_every: Duration::from_millis(20), ..LearnSettings::default() };
    let world = pair(stories.clone(), settings.clone()).await;
    until_right(&world).await;
    let known = Timestamp::now();
    // Something else to be saved, and with it all that was learned before.
    let answer = world.ask(ALICE, &question(50)).await.good();
    judge(&world, &answer, true).await;
    let saved = async || stories.replica_states().await.unwrap().iter().any(|state| state.at > known);
    until("it is saved", saved).await;
    let again = pair(stories.clone(), settings).await;
    assert_eq!(again.ask(ALICE, &question(51)).await.good()["model"], "n");
    drop(world);
}

#[tokio::test]
async fn damaged_knowledge_is_left_out_and_begun_anew() {
    let stories = Arc::new(MemoryHistoryStore::default());
    for (name, state) in
        [("a", "{not json"), ("b", "{}"), ("c", r#"{"version":99,"features":1,"forget":0.5,"models":{}}"#)]
    {
        let replica = ReplicaId::named(name);
        let saved = ReplicaState { replica, at: Timestamp(0), is_final: true, state: state.into() };
        stories.save_state(&saved, &[]).await.unwrap();
    }
    let world = pair(stories.clone(), LearnSettings::default()).await;
    assert_eq!(stories.replica_states().await.unwrap().len(), 1, "only its own is left");
    assert_eq!(world.ask(ALICE, &question(1)).await.good()["model"], "m");
    until_right(&world).await;
}

/// After an upgrade the way back is open: to the old version, or to the old rate of forgetting.
#[tokio::test]
async fn what_another_version_learned_is_left_alone_for_a_month() {
    let stories = Arc::new(MemoryHistoryStore::default());
    let now = Timestamp::now();
    let states = [
        ("old", now, r#"{"version":1,"features":14,"forget":0.9998,"models":{"m":{"prior_weight":200.0}}}"#),
        ("slow", now, r#"{"version":2,"features":14,"forget":0.99999,"models":{}}"#),
        ("ancient", now.before(Duration::from_secs(31 * 24 * 3600)), r#"{"version":1,"models":{}}"#),
    ];
    let states = states.map(|(name, at, state)| ReplicaState {
        replica: ReplicaId::named(name),
        at,
        is_final: true,
        state: state.into(),
    });
    for saved in &states {
        stories.save_state(saved, &[]).await.unwrap();
    }
    let settings = LearnSettings { save_every: Duration::from_millis(10), ..LearnSettings::default() };
    let world = pair(stories.clone(), settings.clone()).await;
    assert_eq!(world.ask(ALICE, &question(1)).await.good()["model"], "m");
    until_right(&world).await;
    assert!(world.stop().await);
    let again = pair(stories.clone(), settings).await;
    assert_eq!(again.ask(ALICE, &question(51)).await.good()["model"], "n", "its own is saved beside theirs");
    let learned = stories.replica_states().await.unwrap();
    assert_eq!(learned.len(), 3, "its own and theirs: {learned:?}");
    assert!(states[..2].iter().all(|saved| learned.contains(saved)), "{learned:?}");
}

#[tokio::test]
async fn replicas_on_postgres_learn_from_one_another_and_take_feedback_on_one_anothers_answers() {
    let url = cluster().database();
    let open = async || {
        let settings = PostgresSettings { url: DatabaseUrl::new(&url), lease: Duration::from_secs(10) };
        let stories = Database::open(&Settings::Postgres(settings)).await.unwrap().history();
        let settings = LearnSettings { save_every: Duration::from_millis(100), ..LearnSettings::default() };
        pair(stories, settings).await
    };
    let (one, two) = (open().await, open().await);
    assert_eq!(two.ask(ALICE, &question(1)).await.good()["model"], "m");
    // Asked here, judged there.
    for number in 0..3 {
        let answer = one.ask(ALICE, &question(number)).await.good();
        let is_there = async || request(&two, ALICE, &answer["id"]).await.status != 404;
        until("the other replica gets it", is_there).await;
        judge(&two, &answer, answer["model"] == "n").await;
    }
    for world in [&one, &two] {
        until("both know in the end", async || world.ask(ALICE, &question(7)).await.good()["model"] == "n")
            .await;
    }
    // At once: who goes on takes over what the other has left.
    assert_eq!(tokio::join!(one.stop(), two.stop()), (true, true));
    assert_eq!(cluster().ask(&url, "SELECT count(*), sum(has_left) FROM learned"), "2|2");
    let three = open().await;
    assert_eq!(three.ask(ALICE, &question(8)).await.good()["model"], "n");
    assert_eq!(cluster().ask(&url, "SELECT count(*) FROM learned"), "1", "it has taken over what they left");
}

/// A store that stands still from some moment on.
struct Hung {
    stories: MemoryHistoryStore,
    hangs: AtomicBool,
}

impl Hung {
    async fn pass(&self) {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

impl HistoryStore for Hung {
    fn insert<'a>(
        &'a self,
        stories: &'a [Arc<WritableRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        self.pass().then(|()| self.stories.insert(stories)).boxed()
    }
    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>> {
        self.pass().then(move |()| self.stories.find(id, since)).boxed()
    }
    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>> {
        self.pass().then(|()| self.stories.set_verdict(verdict)).boxed()
    }
    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>> {
        self.pass().then(move |()| self.stories.retention_cutoff(most)).boxed()
    }
    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>> {
        self.pass().then(move |()| self.stories.purge(before, most)).boxed()
    }
    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>> {
        self.pass().then(|()| self.stories.replica_states()).boxed()
    }
    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        gone: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>> {
        self.pass().then(|()| self.stories.save_state(own, gone)).boxed()
    }
    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        self.pass().then(|()| self.stories.delete_state(replica)).boxed()
    }
}

/// Invariant 10.
#[tokio::test]
async fn a_store_that_stands_still_delays_no_answer() {
    let store = Arc::new(Hung { stories: MemoryHistoryStore::default(), hangs: AtomicBool::new(false) });
    let folder = tempfile::tempdir().unwrap();
    // A disk that takes nothing, besides: the log's file is a folder.
    std::fs::create_dir(folder.path().join("log.jsonl")).unwrap();
    let log = DecisionLogSettings { path: folder.path().join("log.jsonl"), size_max: 1 << 20, files_max: 1 };
    let settings = LearnSettings {
        save_every: Duration::from_millis(20),
        log: Some(log),
        asked_again: Duration::ZERO,
        ..LearnSettings::default()
    };
    let world = pair(store.clone(), settings).await;
    world.ask(ALICE, &question(0)).await.good();
    store.hangs.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let fifty = async {
        let mut last = Value::Null;
        for number in 0..50 {
            last = world.ask(ALICE, &question(number)).await.good();
        }
        last
    };
    let last = within(Duration::from_secs(4), fifty).await.expect("no answer is delayed");
    let story = request(&world, ALICE, &last["id"]).await.good();
    assert_eq!(story["outcome"]["ended"], "finished", "what was just done is known without the store");
    let said = say(&world, ALICE, &json!({ "id": last["id"], "correct": true })).await;
    assert_eq!((said.status, said.error()["code"].as_str()), (503, Some("overloaded")));
    let metrics = world.metrics_page();
    assert!(metrics.contains("stint_outcomes_dropped_total{at=\"log\"}"), "{metrics}");
}

#[tokio::test]
async fn a_request_is_known_to_its_own_key_and_the_account_above_and_to_nobody_else() {
    let world = pair(Arc::new(MemoryHistoryStore::default()), LearnSettings::default()).await;
    let answer = world.ask(ALICE, &question(1)).await.good();
    let id = answer["budget"]["id"].clone();
    let unknown = json!(format!("{}", RequestId::new()));
    for key in [ALICE, ACME] {
        let story = request(&world, key, &id).await.good();
        assert_eq!((&story["id"], &story["account"]), (&id, &json!("acme/alice")));
        assert_eq!(say(&world, key, &json!({ "id": id, "score": 0.5 })).await.status, 202);
    }
    let texts: Vec<String> = [
        request(&world, BOB, &id).await,
        request(&world, ALICE, &unknown).await,
        request(&world, ALICE, &json!("nothing")).await,
        say(&world, BOB, &json!({ "id": id, "correct": true })).await,
        say(&world, BOB, &json!({ "id": unknown, "correct": true })).await,
        say(&world, ALICE, &json!({ "preferred": id, "over": unknown })).await,
        say(&world, ALICE, &json!({ "preferred": unknown, "over": id })).await,
    ]
    .into_iter()
    .map(|answer| {
        assert_eq!(answer.status, 404, "{}", answer.text);
        answer.text
    })
    .collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "nobody can tell which it is: {texts:?}");
    let wrong = say(&world, ALICE, &json!({ "id": id, "score": 7 })).await;
    assert_eq!((wrong.status, &wrong.error()["param"]), (400, &json!("score")));
}

#[tokio::test]
async fn the_story_of_a_request_tells_what_was_planned_used_and_said() {
    let world = pair(Arc::new(MemoryHistoryStore::default()), LearnSettings::default()).await;
    let answer = world.ask(ALICE, &question(1)).await.good();
    judge(&world, &answer, true).await;
    judge(&world, &answer, false).await;
    let story = request(&world, ALICE, &answer["id"]).await.good();
    let (plan, outcome, budget) = (&story["plan"], &story["outcome"], &answer["budget"]);
    let offers = plan["offers"].as_array().unwrap();
    let chosen = &offers[usize::try_from(plan["chosen"].as_u64().unwrap()).unwrap()];
    assert_eq!((&chosen["model"], offers.len()), (&answer["model"], 2));
    let share: f64 = offers.iter().map(|offer| offer["propensity"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{offers:?}");
    assert_eq!(chosen["thinking_tokens"], budget["thinking"]["budget"]);
    assert_eq!(outcome["choices"][0]["thinking"], budget["thinking"]);
    assert_eq!(outcome["choices"][0]["solution"], budget["solution"]);
    assert_eq!(outcome["cost_usd"], budget["cost_usd"]);
    assert_eq!(outcome["reserved_usd"], budget["reserved_usd"]);
    assert_eq!(plan["why"], budget["why"]);
    let said = story["feedback"].as_array().unwrap();
    assert_eq!(said.len(), 1, "a later word replaces an earlier one: {said:?}");
    assert_eq!((&said[0]["source"], &said[0]["success"]), (&json!("feedback"), &json!(0.0)));
}

#[tokio::test]
async fn a_preference_says_something_of_both_answers() {
    let world = pair(Arc::new(MemoryHistoryStore::default()), LearnSettings::default()).await;
    let (one, two) =
        (world.ask(ALICE, &question(1)).await.good(), world.ask(ALICE, &question(2)).await.good());
    let said = say(&world, ALICE, &json!({ "preferred": two["id"], "over": one["id"] })).await;
    assert_eq!(said.status, 202, "{}", said.text);
    assert_eq!(told(&world, &two["id"], "preference").await["success"], 1.0);
    assert_eq!(told(&world, &one["id"], "preference").await["success"], 0.0);
}

#[tokio::test]
async fn what_is_older_than_is_kept_takes_no_feedback_and_has_no_story() {
    let settings = LearnSettings { keep: Duration::from_secs(3), ..LearnSettings::default() };
    let world = pair(Arc::new(MemoryHistoryStore::default()), settings).await;
    let answer = world.ask(ALICE, &question(1)).await.good();
    judge(&world, &answer, true).await;
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    assert_eq!(request(&world, ALICE, &answer["id"]).await.status, 404);
    let late = say(&world, ALICE, &json!({ "id": answer["id"], "correct": true })).await;
    assert_eq!(late.status, 404, "{}", late.text);
}

/// A model that takes tools and schemas, which does so.
async fn formed(class: EnforcementClass, play: ScriptedReply) -> World {
    let models = vec![(model("m", class), Arc::new(ScriptedBackend::always(play)))];
    let callers = vec![tenant("acme/alice", 1_000_000_000)];
    World::learning(
        auto(),
        models,
        callers,
        Arc::new(MemoryHistoryStore::default()),
        LearnSettings::default(),
    )
    .await
}

async fn check_form(play: ScriptedReply, more: &Value, source: &str, success: f64) {
    let world = formed(EnforcementClass::Effort, play).await;
    let mut body = question(1);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = world.ask(ALICE, &body).await.good();
    let said = told(&world, &answer["id"], source).await;
    assert_eq!(said["success"], success, "{said}");
    assert!(said["weight"].as_f64().unwrap() < 1.0, "less than a person's word: {said}");
}

#[tokio::test]
async fn the_form_of_an_answer_says_something_of_it() {
    let tools = json!({ "tools": [{ "type": "function", "function": { "name": "weather", "parameters": {
        "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } },
    } } }] });
    let calls = |name: &str, arguments: &str| {
        let (id, name) = (Some("call_1".into()), Some(name.into()));
        ScriptedReply::new().calls(ToolCallDelta { index: 0, id, name, arguments: arguments.into() })
    };
    check_form(calls("weather", r#"{"city":"Rome"}"#), &tools, "tool_arguments", 1.0).await;
    check_form(calls("weather", r#"{"town":"Rome"}"#), &tools, "tool_arguments", 0.0).await;
    check_form(calls("weather", r#"{"city":"#), &tools, "tool_arguments", 0.0).await;
    check_form(calls("whether", "{}"), &tools, "tool_arguments", 0.0).await;
    let schema = json!({ "response_format": { "type": "json_schema", "json_schema": {
        "name": "a", "schema": { "type": "object", "required": ["sum"] },
    } } });
    check_form(ScriptedReply::new().answers(r#"{"sum":3}"#), &schema, "form", 1.0).await;
    check_form(ScriptedReply::new().answers(r#"{"total":3}"#), &schema, "form", 0.0).await;
    let any = json!({ "response_format": { "type": "json_object" } });
    check_form(ScriptedReply::new().answers("three"), &any, "form", 0.0).await;
}

/// What three answers count of which none has the form that its caller asked for, and how much is learned with two words on
/// them, one of which is changed; where these have keys, and an account may move as much as one plain word does.
async fn check_sway(callers: &[&str], weights: [f64; 3], learned: i64) {
    let models = vec![(
        model("m", EnforcementClass::Effort),
        Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("three"))),
    )];
    let callers = callers.iter().map(|name| tenant(name, 1_000_000_000)).collect();
    let settings = LearnSettings { feedback_max: 1, ..LearnSettings::default() };
    let world =
        World::learning(auto(), models, callers, Arc::new(MemoryHistoryStore::default()), settings).await;
    let mut answers = Vec::new();
    for (number, weight) in (0..).zip(weights) {
        let mut body = question(number);
        body["response_format"] = json!({ "type": "json_schema", "json_schema": {
            "name": "nothing", "schema": { "enum": [] },
        } });
        let answer = world.ask(ALICE, &body).await.good();
        assert_eq!(told(&world, &answer["id"], "form").await["weight"], weight, "{number}");
        answers.push(answer);
    }
    for (answer, correct) in [(&answers[0], true), (&answers[1], true), (&answers[1], false)] {
        judge(&world, answer, correct).await;
    }
    assert!(world.stop().await);
    assert_eq!(world.metrics.learning.observations.with_label_values(&["m"]).get(), learned);
}

#[tokio::test]
async fn a_form_that_nothing_fits_moves_no_more_than_its_caller_may() {
    // Of three outcomes, three signs and three words, two of these and one of those count.
    check_sway(&["acme/alice", "acme/bob"], [0.5, 0.5, 0.0], 3 + 2 + 1).await;
    check_sway(&["acme/alice"], [0.5, 0.5, 0.5], 3 + 3 + 3).await;
}

#[tokio::test]
async fn an_answer_without_room_says_something_of_its_budget_unless_the_caller_set_it() {
    let long = "word ".repeat(200);
    let world = formed(EnforcementClass::Inline, ScriptedReply::new().answers(long.trim())).await;
    let answer = world.ask(ALICE, &question(1)).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let said = told(&world, &answer["id"], "ending").await;
    assert_eq!(said["success"], 0.0, "{said}");
    let mut body = question(1);
    body["max_tokens"] = json!(40);
    let answer = world.ask(ALICE, &body).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let story = request(&world, ALICE, &answer["id"]).await.good();
    assert_eq!(story["feedback"], json!([]));
}

#[tokio::test]
async fn a_preference_that_turns_over_too_much_is_not_half_taken() {
    let world = pair(Arc::new(MemoryHistoryStore::default()), LearnSettings::default()).await;
    let one = world.ask(ALICE, &question(1)).await.good();
    let other = world.ask(ALICE, &question(2)).await.good();
    let prefer = |better: &Value, over: &Value| json!({ "preferred": better["id"], "over": over["id"] });
    assert_eq!(say(&world, ALICE, &prefer(&one, &other)).await.status, 202);
    // The first judgement turns nothing over, so of a hundred changes one is left.
    for said in 0..100 {
        judge(&world, &one, said % 2 == 0).await;
    }
    let refused = say(&world, ALICE, &prefer(&other, &one)).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    for (answer, success) in [(&one, 1.0), (&other, 0.0)] {
        assert_eq!(told(&world, &answer["id"], "preference").await["success"], success);
    }
}

#[tokio::test]
async fn asking_the_same_again_says_something_of_the_first_answer() {
    let world = pair(Arc::new(MemoryHistoryStore::default()), LearnSettings::default()).await;
    let first = world.ask(ALICE, &question(1)).await.good();
    world.ask(BOB, &question(1)).await.good();
    let second = world.ask(ALICE, &question(1)).await.good();
    assert_eq!(told(&world, &first["id"], "asked_again").await["success"], 0.0);
    assert_eq!(request(&world, ALICE, &second["id"]).await.good()["feedback"], json!([]));
}

/// AU-19: the decision log holds no words either.
#[tokio::test]
async fn the_decision_log_has_all_that_judging_needs_and_no_word_of_anybody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = DecisionLogSettings { path: path.clone(), size_max: 1 << 20, files_max: 1 };
    let settings = LearnSettings { log: Some(log), ..LearnSettings::default() };
    let world = pair(Arc::new(MemoryHistoryStore::default()), settings).await;
    let mut body = question(1);
    body["messages"][0]["content"] = json!("a-secret-question about 1+2");
    body["user"] = json!("a-secret-name");
    let answer = world.ask(ALICE, &body).await.good();
    judge(&world, &answer, false).await;
    assert!(world.stop().await);
    let text = std::fs::read_to_string(path).unwrap();
    for secret in ["secret", "sk-acme", "acme"] {
        assert!(!text.contains(secret), "{text}");
    }
    let lines: Vec<DecisionLogLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [
        DecisionLogLine::Decision { version: 1, decision, outcome },
        DecisionLogLine::Verdict { version: 1, verdict },
    ] = &lines[..]
    else {
        panic!("{text}")
    };
    assert_eq!(decision.id.to_string(), answer["budget"]["id"].as_str().unwrap());
    assert_eq!((decision.id, verdict.success.get()), (verdict.id, 0.0));
    assert_eq!(decision.candidates.len(), 2);
    let propensities: f64 = decision.candidates.iter().map(|candidate| candidate.propensity).sum();
    assert!((propensities - 1.0).abs() < 1e-9);
    assert!(
        decision.candidates.iter().all(|candidate| candidate.success.get() > 0.0 && candidate.seconds >= 0.0)
    );
    assert_eq!(outcome.cost.to_string(), answer["budget"]["cost_usd"].as_str().unwrap());
}

/// The real binary: stories lie in its database, the log beside it, and both survive it.
#[tokio::test]
async fn a_gateway_that_was_restarted_knows_its_requests_and_takes_feedback_on_them() {
    let hash = stint_types::tenant::hash_key("sk-test");
    let folder = Folder::new(&format!("[[key]]\nname = \"test\"\nhash = \"{hash}\"\n"));
    let mut process = folder.serve();
    let answer = process.ask("sk-test", &question(1)).await.good();
    process.signal("TERM");
    assert!(process.ended().success());
    let log = std::fs::read_to_string(folder.path().join("decisions.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    let process = folder.serve();
    let path = format!("/v1/requests/{}", answer["id"].as_str().unwrap());
    let story = process.get("sk-test", &path).await.good();
    assert_eq!(story["outcome"]["cost_usd"], answer["budget"]["cost_usd"]);
    let body = json!({ "id": answer["id"], "correct": true }).to_string();
    let feedback = process.client.post(format!("{}/v1/feedback", process.base)).bearer_auth("sk-test");
    let said = Answer::of(feedback.header("content-type", "application/json").body(body)).await;
    assert_eq!((said.status, said.json()), (202, json!({ "recorded": true, "learned": true })));
    let story = process.get("sk-test", &path).await.good();
    assert_eq!(story["feedback"][0]["source"], "feedback", "{story}");
}

/// A route that explores tries what looks worse, and writes down with which chance.
#[tokio::test]
async fn a_route_that_explores_tries_other_models_and_logs_their_chances() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = DecisionLogSettings { path: path.clone(), size_max: 16 << 20, files_max: 1 };
    let settings = LearnSettings { log: Some(log), asked_again: Duration::ZERO, ..LearnSettings::default() };
    let world = pair_on(
        Route { explore: Chance::new(0.5), ..auto() },
        Arc::new(MemoryHistoryStore::default()),
        settings,
    )
    .await;
    let mut served = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..60 {
        let answer = world.ask(ALICE, &question(number)).await.good();
        *served.entry(answer["model"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(served.len() == 2 && served.values().all(|count| *count >= 5), "{served:?}");
    assert!(world.stop().await);
    let text = std::fs::read_to_string(path).unwrap();
    let mut explored = 0;
    for line in text.lines() {
        let DecisionLogLine::Decision { decision, .. } = serde_json::from_str(line).unwrap() else {
            continue;
        };
        let all: f64 = decision.candidates.iter().map(|candidate| candidate.propensity).sum();
        assert!((all - 1.0).abs() < 1e-9 && decision.candidates.len() == 2, "{line}");
        assert!(
            decision.candidates.iter().all(|candidate| candidate.propensity >= 0.25),
            "the floor: {line}"
        );
        assert!(decision.candidates.iter().all(|candidate| candidate.belief.spread > 0.0), "{line}");
        explored += u32::from(decision.explored);
    }
    assert!(explored >= 5, "{explored}");
}
