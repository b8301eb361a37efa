//! Models with several targets, some of which fail.

mod hedging;
mod money;
mod overload;
mod ways;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Answer, Deployment, Folder, Says, Served, World, model};
use stint::http::{self, Server};
use stint_backend::Backend;
use stint_backend::fleet::{self, BreakerSettings, RetrySettings};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{EnforcementClass, Model};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::Tokens;

/// One conversation of many.
fn question(number: usize) -> Value {
    json!({
        "model": "m",
        "messages": [{ "role": "system", "content": "Be brief." },
                     { "role": "user", "content": format!("question {number}") }],
        "max_completion_tokens": 40,
    })
}

/// A model without thoughts behind OpenAI's API.
fn plain() -> Model {
    Model { thinking_max: Tokens::ZERO, efforts: Vec::new(), ..model("m", EnforcementClass::Effort) }
}

/// `m` on these deployments.
async fn on(deployments: &[&Deployment], resilience: fleet::Settings) -> World {
    over(deployments.iter().map(|deployment| deployment.backend()).collect(), resilience).await
}

async fn over(targets: Vec<Arc<dyn Backend>>, resilience: fleet::Settings) -> World {
    World::fleets(vec![Served { resilience, ..Served::by(plain(), targets) }], Vec::new()).await
}

/// Settings under which nothing is ever left alone.
fn without_breaker() -> fleet::Settings {
    let breaker = BreakerSettings { failures_max: 100_000, success_min: 0.0, ..BreakerSettings::default() };
    fleet::Settings { breaker, ..quick() }
}

/// The usual settings, with short waits before the same target is asked again.
fn quick() -> fleet::Settings {
    let retry = RetrySettings { wait_first: Duration::from_millis(10), ..RetrySettings::default() };
    fleet::Settings { retry, ..fleet::Settings::default() }
}

/// The same, and whoever is left alone is so for the rest of a test.
fn for_good() -> fleet::Settings {
    let breaker = BreakerSettings {
        rest_min: Duration::from_secs(600),
        rest_max: Duration::from_secs(600),
        ..BreakerSettings::default()
    };
    fleet::Settings { breaker, ..quick() }
}

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.error()["code"]), (status, &json!(code)), "{}", answer.text);
}

/// How many seconds a refusal asks to wait.
fn wait(answer: &Answer) -> u64 {
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_episode_stays_on_the_target_where_its_beginning_is_cached_and_episodes_spread() {
    let (one, other) = (Deployment::always(Says::tokens(3)).await, Deployment::always(Says::tokens(3)).await);
    let world = on(&[&one, &other], quick()).await;
    for episode in 0..12 {
        let mut body = question(episode);
        for turn in 0..4 {
            world.ask("", &body).await.good();
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({ "role": "assistant", "content": "x x x" }));
            messages.push(json!({ "role": "user", "content": format!("and {turn}?") }));
        }
    }
    let episodes = |deployment: &Deployment| {
        let turns = deployment.log();
        let mut episodes: Vec<String> =
            turns.iter().map(|turn| turn.messages[1]["content"].to_string()).collect();
        episodes.sort();
        assert!(turns.len() >= 12, "{} turns of 48", turns.len());
        episodes
    };
    let (ones, others) = (episodes(&one), episodes(&other));
    assert_eq!(ones.len() + others.len(), 48);
    assert!(ones.iter().all(|episode| !others.contains(episode)), "no episode is on both");
}

#[tokio::test]
async fn both_phases_of_a_choice_are_on_one_target() {
    let script = || Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(20).answers("3")));
    let scripts = [script(), script(), script()];
    let targets = scripts.iter().map(|script| script.clone() as Arc<dyn Backend>).collect();
    let world =
        World::fleets(vec![Served::by(model("m", EnforcementClass::Continue), targets)], Vec::new()).await;
    for number in 0..9 {
        let mut body = question(number);
        body["max_completion_tokens"] = Value::Null;
        body["budget"] = json!({ "thinking_tokens": 5, "solution_tokens": 10 });
        body["n"] = json!(2);
        assert_eq!(world.ask("", &body).await.good()["choices"][1]["message"]["content"], "3");
    }
    let parts: Vec<usize> = scripts.iter().map(|script| script.records().len()).collect();
    assert!(parts.iter().all(|parts| parts % 4 == 0), "two choices of two phases each: {parts:?}");
    assert_eq!(parts.iter().sum::<usize>(), 36);
}

/// A page with the queue of an engine, `waiting` long, and how often it was looked at.
fn engine_page(waiting: u32) -> (String, Arc<AtomicUsize>) {
    let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}/metrics", bound.address());
    let page = format!(
        "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{{engine=\"0\"}} {waiting}.0\n\
         vllm:num_requests_running{{engine=\"0\"}} 8.0\n"
    );
    let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
    let tasks = Tasks::default();
    let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
    let looks = Arc::new(AtomicUsize::new(0));
    let seen = looks.clone();
    let answer = move || async move {
        seen.fetch_add(1, Ordering::Relaxed);
        page
    };
    tasks.spawn(server.serve(bound, axum::Router::new().route("/metrics", axum::routing::get(answer))));
    (url, looks)
}

#[tokio::test]
async fn an_engine_that_says_it_is_full_gets_nothing_while_another_is_not() {
    let (full, free) = (Deployment::always(Says::tokens(3)).await, Deployment::always(Says::tokens(3)).await);
    let (full_page, free_page) = (engine_page(90), engine_page(0));
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[resilience]\nload_every = '1s'\n[[backend]]\nmodels = ['m']\n\
         [[backend.deployment]]\nbase_url = '{}'\nmetrics_url = '{}'\n\
         [[backend.deployment]]\nbase_url = '{}'\nmetrics_url = '{}'\n",
        full.base, full_page.0, free.base, free_page.0,
    ));
    let process = folder.serve();
    // A target that is asked a second time has had its first answer read.
    for looks in [full_page.1, free_page.1] {
        while looks.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    for number in 0..12 {
        process.ask("", &question(number)).await.good();
    }
    assert_eq!((full.asked(), free.asked()), (0, 12));
}

#[tokio::test]
async fn a_gateway_is_not_ready_while_all_its_models_are_left_alone_and_ready_again_by_itself() {
    let bad = Deployment::always(Says::Status(500, "")).await;
    let serve = |name: &str| {
        let resilience = fleet::Settings { hedge_after: None, ..quick() };
        Served { resilience, ..Served::by(Model { name: name.into(), ..plain() }, vec![bad.backend()]) }
    };
    let world = World::fleets(vec![serve("m"), serve("n")], Vec::new()).await;
    let fail = async |model: &str| {
        for number in 0..5 {
            let body = json!({ "model": model, "messages": question(number)["messages"] });
            assert!(world.ask("", &body).await.status >= 500);
        }
    };
    fail("m").await;
    assert_eq!(world.get("", "/readyz").await.status, 200, "one model's breaker takes no gateway out");
    // The first is left alone for two seconds: on a machine that stands still meanwhile, not at the same time as the other.
    until("none is left to be asked", async || {
        fail("n").await;
        let ready = world.get("", "/readyz").await;
        if ready.status == 200 {
            fail("m").await;
        }
        ready.status == 503 && ready.text.contains("left alone for another")
    })
    .await;
    until("nobody asks, and it is back", async || world.get("", "/readyz").await.status == 200).await;
}

#[tokio::test]
async fn deployments_come_from_the_configuration_and_show_in_the_metrics() {
    let good = Deployment::always(Says::tokens(3)).await;
    let bad = Deployment::always(Says::Status(401, "")).await;
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[resilience]\nretry_wait = '10ms'\n[[backend]]\nname = 'b'\nmodels = ['m']\n\
         base_url = '{}'\n[[backend.deployment]]\nname = 'good'\n[[backend.deployment]]\nname = 'bad'\n\
         base_url = '{}'\n",
        good.base, bad.base
    ));
    let process = folder.serve();
    for number in 0..8 {
        process.ask("", &question(number)).await.good();
    }
    assert_eq!((good.asked(), bad.asked()), (8, 1), "whose key is refused is not asked again");
    let metrics = process.get("", "/metrics").await.text;
    for line in [
        "stint_backend_state{model=\"m\",target=\"bad\"} 0",
        "stint_backend_state{model=\"m\",target=\"good\"} 1",
        "stint_backend_trips_total{cause=\"credential\",model=\"m\",target=\"bad\"} 1",
        "stint_retries_total{model=\"m\",target=\"good\"} 1",
        "stint_retries_total{model=\"m\",target=\"bad\"} 0",
        "stint_attempt_failures_total{fault=\"credential\",model=\"m\",target=\"bad\"} 1",
        "stint_attempt_failures_total{fault=\"timeout\",model=\"m\",target=\"good\"} 0",
        "stint_fallbacks_total{model=\"m\"} 0",
        "stint_demotions_total{model=\"m\"} 0",
        "stint_sheds_total{cause=\"full\",model=\"m\"} 0",
        "stint_concurrency_limit{model=\"m\",target=\"good\"} 1024",
        "stint_in_flight{model=\"m\",target=\"good\"} 0",
        "stint_queue_depth{model=\"m\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    // What is logged of another attempt names both targets, and why.
    let told = process.logged("tried again").await;
    for word in ["target=\"bad\"", "fault=\"credential\"", "next=\"good\""] {
        assert!(told.contains(word), "{word} in {told}");
    }
}
