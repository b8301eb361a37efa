//! Tests of a server in this process whose configuration changes: what is kept, what is dropped, and that the result is the
//! same as that of a server that started with the last configuration.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::build::{RunningServer, build};
use crate::config;
use stint_backend::fleet::{AffinityKey, Fleet, FlowId, PermitRequest};
use stint_backend::{BackendCall, GenerationPart, Piece};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{Message, Request, Role};
use stint_types::units::{Priority, Tokens};

use super::*;

/// A running server and its configuration.
struct Site {
    folder: TempDir,
    running: RunningServer,
    base: String,
    client: Client,
}

fn environment(name: &str) -> Option<String> {
    let value = match name {
        "STINT_LEDGER" => ":memory:",
        "STINT_LISTEN" => "127.0.0.1:0",
        _ => return None,
    };
    Some(value.to_owned())
}

impl Site {
    async fn new(toml: &str) -> Site {
        Box::pin(Site::telling(toml, Box::new(|_| ()))).await
    }

    /// One that tells of every configuration that it takes.
    async fn telling(toml: &str, taken: Box<dyn Fn(&Settings) + Send + Sync>) -> Site {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("stint.toml");
        std::fs::write(&file, toml).unwrap();
        std::fs::write(folder.path().join("own.toml"), CATALOG).unwrap();
        let load = Arc::new(move || config::load(Some(&file), &environment));
        let settings = load().unwrap();
        let app = build(settings, ConfigSource { load, on_applied: taken }).await.unwrap();
        let base = format!("http://{}", app.addresses()[0]);
        Site { folder, running: app.start(), base, client: Client::builder().no_proxy().build().unwrap() }
    }

    async fn reload(&self, toml: &str) -> ReloadOutcome {
        std::fs::write(self.folder.path().join("stint.toml"), toml).unwrap();
        self.running.reloads.reload().await.unwrap()
    }

    /// The same, where it must be taken.
    async fn becomes(&self, toml: &str) -> Vec<String> {
        match self.reload(toml).await {
            ReloadOutcome::Applied(changes) => changes,
            ReloadOutcome::Refused(mistakes) => panic!("{mistakes:?} in {toml}"),
        }
    }

    fn now(&self) -> Arc<ConfigSnapshot> {
        self.running.current.load_full()
    }

    fn fleet(&self, model: &str) -> Arc<Fleet> {
        self.now().registry.fleets()[model].clone()
    }

    /// The value of a series in the metrics.
    async fn metric(&self, series: &str) -> Option<u64> {
        let (_, metrics) = self.sees("", "/metrics", None).await;
        metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    /// What a caller sees at a path.
    async fn sees(&self, key: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let url = format!("{}{path}", self.base);
        let request = match body {
            None => self.client.get(url),
            Some(body) => {
                self.client.post(url).header("content-type", "application/json").body(body.to_string())
            }
        };
        let response = request.bearer_auth(key).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.running.request_tasks.stop();
        self.running.request_tasks.force_stop();
        self.running.listener_tasks.stop();
        self.running.ledger_tasks.stop();
    }
}

/// Models behind an address where nobody listens.
fn remote(models: &str, more: &str) -> String {
    format!("[engine]\nembedded = false\n[[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\n{models}\n{more}")
}

fn model(name: &str, price: u32) -> String {
    format!("[[backend.model]]\nname = \"{name}\"\nprice_input = \"{price}\"\nprice_output = \"{price}\"\n")
}

/// What there may be in turn: prices, routes, efforts, entries of a catalogue with wildcards, keys and accounts, and what
/// requests go by.
fn configurations() -> Vec<String> {
    let hash = stint_types::tenant::hash_key("sk-a");
    vec![
        remote(&(model("m", 1) + &model("n", 2)), ""),
        remote(
            &model("m", 3),
            "[[route]]\nname = \"fast\"\nmodels = [\"m\"]\nsuccess_floor = 0.9\n[thinking.efforts]\nlow = 0.1\n",
        ),
        remote(
            "models = [\"m1\", \"m2\"]",
            "[catalog]\nfile = \"own.toml\"\n[[route]]\nname = \"fast\"\nmodels = [\"m2\"]\n[agents]\ntracker = false\n",
        ),
        remote(
            &(model("m", 1) + &model("n", 1)),
            &format!(
                "[[account]]\nname = \"acme\"\nlimits = [{{ money = \"3\", per = \"month\" }}]\n[[key]]\nname = \"a\"\n\
                 account = \"acme\"\nhash = \"{hash}\"\nmodels = [\"n\"]\nlimits = [{{ requests = 9, per = \"day\" }}]\n"
            ),
        ),
        remote(
            &(model("n", 5) + "thinking_max = 4000\n"),
            "[gateway]\ntime_max = \"20s\"\n[server]\nbody_max = \"1KiB\"\n[resilience]\nqueue_max = 2\n",
        ),
    ]
}

const CATALOG: &str = "version = \"2026-11-22\"\n[[model]]\nmatch = [\"m*\"]\nprice_input = \"7\"\nprice_output = \"9\"\n\
                       [[model]]\nmatch = [\"*2\"]\nthinking_max = 1000\n";

/// All that a caller can see of a configuration.
async fn sight(site: &Site) -> Vec<(u16, String)> {
    let mut all = Vec::new();
    for key in ["", "sk-a"] {
        all.push(site.sees(key, "/v1/models", None).await);
        all.push(site.sees(key, "/v1/allowance", None).await);
        for name in ["m", "n", "m1", "m2", "fast", "auto", "n:low"] {
            let mut body = json!({ "model": name, "messages": [{ "role": "user", "content": "Why?" }] });
            all.push(site.sees(key, "/v1/plan", Some(&body)).await);
            body["messages"][0]["content"] = json!("x".repeat(2000));
            all.push(site.sees(key, "/v1/plan", Some(&body)).await);
        }
    }
    all
}

/// CF-05: models, routes, wildcards, prices in quotes, keys and limits.
#[tokio::test]
async fn a_server_that_was_reloaded_is_as_one_that_began_so() {
    let all = configurations();
    for (place, toml) in all.iter().enumerate() {
        let expected = sight(&Site::new(toml).await).await;
        assert!(expected.iter().any(|(status, _)| *status == 200), "{expected:?}");
        let site = Site::new(&all[(place + 1) % all.len()]).await;
        for other in 2..=all.len() {
            assert_ne!(sight(&site).await, expected);
            site.becomes(toml).await;
            assert_eq!(sight(&site).await, expected, "{toml}");
            assert_eq!(site.becomes(toml).await, Vec::<String>::new(), "nothing changed");
            site.becomes(&all[(place + other) % all.len()]).await;
        }
    }
}

/// Two configurations that have nothing in common that could be kept, with all that runs beside requests.
fn restless(number: usize) -> String {
    let port = 1 + number % 2;
    format!(
        "[engine]\nembedded = false\n[alerts]\nwebhook = \"http://127.0.0.1:{port}/hook\"\n[resilience]\nload_every = \"100ms\"\n\
         [[backend]]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmetrics_url = \"http://127.0.0.1:{port}/metrics\"\n{}",
        model("m", 1)
    )
}

#[tokio::test]
async fn a_hundred_reloads_leave_nothing_behind() {
    let site = Site::new(&restless(0)).await;
    let began = site.running.request_tasks.running();
    let mut generations: Vec<(Weak<ConfigSnapshot>, Weak<Fleet>)> = Vec::new();
    for number in 1..=100 {
        generations.push((Arc::downgrade(&site.now()), Arc::downgrade(&site.fleet("m"))));
        let changes = site.becomes(&restless(number)).await;
        assert_eq!(changes, ["model \"m\" changed", "[alerts] changed"]);
    }
    let gone = async {
        let lives = |(generation, fleet): &(Weak<ConfigSnapshot>, Weak<Fleet>)| {
            generation.strong_count() + fleet.strong_count() > 0
        };
        while generations.iter().any(lives) || site.running.request_tasks.running() > began {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(waited.is_ok(), "{} tasks of {began}", site.running.request_tasks.running());
}

/// CF-13.
#[tokio::test]
async fn a_thousand_models_of_an_upstream_have_their_connections_in_common() {
    let all: String = (0..1000).map(|number| model(&format!("m{number}"), 1)).collect();
    let with = |more: &str| remote(&all, "").replace("/v1\"\n", &format!("/v1\"\n{more}"));
    let site = Site::new(&with("")).await;
    let connections = || site.now().registry.connections();
    assert_eq!(connections(), 1);
    let gone = Arc::downgrade(&site.fleet("m7"));
    let changes = site.becomes(&with("total_timeout = \"1m\"\n")).await;
    assert_eq!((changes.len(), connections()), (1000, 1), "each changed, and none connects anew");
    site.becomes(&with("connect_timeout = \"1s\"\n")).await;
    assert!(gone.upgrade().is_none());
    assert_eq!(connections(), 1, "what nobody uses is gone");
}

#[tokio::test]
async fn a_tool_that_costs_more_is_told_as_a_change_of_tools() {
    let with = |more: &str| remote(&model("m", 1), more);
    let site = Site::new(&with("")).await;
    let priced = "[tools.search]\nprice_usd = \"0.001\"\n";
    assert_eq!(site.becomes(&with(priced)).await, ["[tools] changed"]);
    let untold = format!("{priced}[agents]\ntracker = false\n");
    assert_eq!(site.becomes(&with(&untold)).await, ["[agents] changed"]);
}

#[tokio::test]
async fn what_is_described_as_before_keeps_its_connections_and_what_is_known_of_it() {
    let with = |more: &str| remote(&(model("m", 1) + &model("n", 1)), more);
    let site = Site::new(&with("")).await;
    let (m, n) = (site.fleet("m"), site.fleet("n"));
    let dearer = remote(&(model("m", 2) + &model("n", 1)), "[gateway]\ntime_max = \"1m\"\n");
    assert_eq!(site.becomes(&dearer).await, ["model \"m\" changed", "[gateway] changed"]);
    assert!(Arc::ptr_eq(&site.fleet("m"), &m) && Arc::ptr_eq(&site.fleet("n"), &n));
    std::fs::write(site.folder.path().join("key"), "sk-upstream").unwrap();
    let keyed = with("").replace("/v1\"\n", "/v1\"\napi_key_file = \"key\"\n");
    site.becomes(&keyed).await;
    let keyed_fleet = site.fleet("m");
    assert!(!Arc::ptr_eq(&keyed_fleet, &m), "another key is another target");
    std::fs::write(site.folder.path().join("key"), "sk-another").unwrap();
    assert_eq!(site.becomes(&keyed).await, ["model \"m\" changed", "model \"n\" changed"]);
    assert!(
        !Arc::ptr_eq(&site.fleet("m"), &keyed_fleet),
        "the file's name is the same, what is in it is not"
    );
}

#[tokio::test]
async fn weights_are_loaded_once_and_let_go_of_with_their_last_request() {
    let site = Site::new("").await;
    let engine = |site: &Site| Arc::downgrade(&site.now().registry.engine_of("reasoner").unwrap());
    let first = engine(&site);
    site.becomes("[resilience]\nqueue_max = 2\n[thinking.efforts]\nlow = 0.2\n").await;
    assert!(first.ptr_eq(&engine(&site)), "another queue is no reason to load them again");
    site.becomes("[engine]\nsequences = 2\n").await;
    let second = engine(&site);
    assert!(!first.ptr_eq(&second), "an engine of another size is another engine");
    assert!(first.upgrade().is_none());
    site.becomes(&remote(&model("m", 1), "")).await;
    assert!(second.upgrade().is_none(), "nobody has it any more");
}

#[tokio::test]
async fn whatever_is_wrong_the_configuration_before_stays_in_force() {
    let right = remote(&model("m", 1), "");
    let site = Site::new(&right).await;
    let before = site.now();
    let broken = [
        "[server]\nbody_maxx = 1\n[engine]\nsequences = \"many\"\n".to_owned(),
        "not toml".to_owned(),
        remote(&model("m", 1), "[gateway]\nflights_max = 3\n[idempotency]\nreplay_streams = true\n"),
        remote(
            &model("stray", 1),
            "[[backend]]\nkind = \"local\"\nfile = \"none.gguf\"\n[[backend.model]]\nname = \"x\"\n",
        ),
    ];
    let named = [
        &["body_maxx", "engine.sequences"][..],
        &["not TOML"],
        &["gateway.flights_max", "idempotency"],
        &["backend.file", "none.gguf cannot be read"],
    ];
    for (toml, named) in broken.iter().zip(named) {
        let ReloadOutcome::Refused(mistakes) = site.reload(toml).await else { panic!("{toml}") };
        for name in named {
            assert!(mistakes.iter().any(|mistake| mistake.contains(name)), "{name} in {mistakes:?}");
        }
        assert!(Arc::ptr_eq(&site.now(), &before));
        let (_, metrics) = site.sees("", "/metrics", None).await;
        assert!(metrics.contains("stint_config_state 0"), "{metrics}");
        assert!(!metrics.contains("stray"), "a model that was never in force has no series: {metrics}");
    }
    site.becomes(&right).await;
    let (_, metrics) = site.sees("", "/metrics", None).await;
    assert!(metrics.contains("stint_config_state 1"), "{metrics}");
}

#[tokio::test]
async fn a_first_key_whose_file_is_gone_is_not_replaced() {
    let generated = remote(&model("m", 1), "[keys]\ngenerate = \"first-key\"\n");
    let site = Site::new(&remote(&model("m", 1), "")).await;
    let file = site.folder.path().join("first-key");
    site.becomes(&generated).await;
    let key = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let ReloadOutcome::Refused(told) = site.reload(&generated).await else { panic!("another key was made") };
    assert!(told[0].contains("first-key") && !file.exists(), "{told:?}");
    assert_eq!(site.sees(&key, "/v1/models", None).await.0, 200);
    std::fs::write(&file, &key).unwrap();
    assert_eq!(site.becomes(&generated).await, Vec::<String>::new());
}

#[tokio::test]
async fn targets_that_are_treated_otherwise_rest_on_and_go_by_the_new_numbers() {
    let with = |numbers: &str| {
        remote(&model("m", 1), &format!("[resilience]\nattempts_max = 1\nfailures_max = 1\n{numbers}"))
    };
    let site = Site::new(&with("rest_min = \"1h\"\nrest_max = \"2h\"\n")).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Why?" }] });
    let (status, text) = site.sees("", "/v1/chat/completions", Some(&body)).await;
    assert!(status >= 500, "{text}");
    let fleet = site.fleet("m");
    assert!(fleet.unavailable_for().is_some(), "nobody listens there");
    assert_eq!(site.becomes(&with("queue_max = 7\nconcurrency_max = 300\n")).await, ["[resilience] changed"]);
    assert!(Arc::ptr_eq(&site.fleet("m"), &fleet));
    assert!(
        fleet.unavailable_for().is_some_and(|rest| rest > Duration::from_secs(1800)),
        "{:?}",
        fleet.unavailable_for()
    );
    let settings = fleet.settings();
    assert_eq!((settings.queue_max, settings.concurrency.unwrap().max), (7, 300));
    let ReloadOutcome::Refused(_) = site.reload(&with("queue_max = 8\nwrong = 1\n")).await else { panic!() };
    assert_eq!(fleet.settings().queue_max, 7, "what is refused changes nothing");
}

/// As of a file system that hangs.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_never_comes_does_not_hold_up_the_end() {
    let (asks, asked) = std::sync::mpsc::channel();
    let (comes, awaited) = std::sync::mpsc::channel::<()>();
    let (asks, awaited) = (std::sync::Mutex::new(asks), std::sync::Mutex::new(awaited));
    let load = Arc::new(move || {
        asks.lock().unwrap().send(()).unwrap();
        let _ = awaited.lock().unwrap().recv();
        config::load(None, &environment)
    });
    let settings = config::load(None, &environment).unwrap();
    let app = build(settings, ConfigSource { load, on_applied: Box::new(|_| ()) }).await.unwrap();
    let running = app.start();
    let stop = async {
        tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
        running.request_tasks.stop();
    };
    let both = async { tokio::join!(running.reloads.reload(), stop) };
    let given_up = tokio::time::timeout(Duration::from_secs(60), both).await;
    assert!(matches!(given_up, Ok((None, ()))), "the end waits for the file: {given_up:?}");
    drop(comes);
    running.request_tasks.force_stop();
    running.listener_tasks.stop();
    running.ledger_tasks.stop();
}

#[tokio::test]
async fn the_end_stops_engines_of_earlier_configurations_and_those_that_come_too_late() {
    let site = Site::new("").await;
    let first = site.now().registry.engine_of("reasoner").unwrap();
    site.becomes("[engine]\nsequences = 2\n").await;
    let second = site.now().registry.engine_of("reasoner").unwrap();
    assert!(first.is_alive() && second.is_alive() && !Arc::ptr_eq(&first, &second));
    site.running.stop_engines();
    assert!(!first.is_alive() && !second.is_alive());
    site.becomes("[engine]\nsequences = 3\n").await;
    assert!(!site.now().registry.engine_of("reasoner").unwrap().is_alive());
}

#[tokio::test]
async fn an_engine_that_fails_comes_back_without_a_reload_and_the_metrics_say_so() {
    let site = Site::new("").await;
    let engine = site.now().registry.engine_of("reasoner").unwrap();
    let shows = async |up: u32, restarts: u32| {
        let (_, metrics) = site.sees("", "/metrics", None).await;
        let up = format!("stint_engine_up{{model=\"reasoner\"}} {up}\n");
        let times =
            format!("stint_engine_restarts_total{{cause=\"panicked\",model=\"reasoner\"}} {restarts}\n");
        metrics.contains(&up) && metrics.contains(&times)
    };
    assert!(shows(1, 0).await);
    engine.inject(stint_engine::InjectedFault::Panic);
    for (up, restarts) in [(0, 0), (1, 1)] {
        let seen = async {
            while !shows(up, restarts).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), seen).await.expect("it is seen");
    }
    assert!(Arc::ptr_eq(&engine, &site.now().registry.engine_of("reasoner").unwrap()));
    let body = json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "17*24+3=" }] });
    let (status, text) = site.sees("", "/v1/chat/completions", Some(&body)).await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test]
async fn the_metrics_show_how_full_an_engine_is_that_serves() {
    let site = Site::new("").await;
    for name in ["requests_waiting", "requests_running", "kv_cache_usage_ratio"] {
        assert_eq!(
            site.metric(&format!("stint_engine_{name}{{model=\"reasoner\"}}")).await,
            Some(0),
            "{name}"
        );
    }
}

/// A place at a model and the call of a question that the embedded model answers.
fn call() -> (PermitRequest, BackendCall) {
    let request = Request::new("reasoner", vec![Message::text(Role::User, "17*24+3=")]);
    let want = PermitRequest {
        affinity: AffinityKey::of(&request),
        flow: FlowId(0),
        calls: 1,
        priority: Priority::Interactive,
        deadline: Instant::now() + Duration::from_secs(60),
    };
    let call = BackendCall {
        request: Arc::new(request),
        class: EnforcementClass::Inline,
        part: GenerationPart::Whole { thinking: Tokens(20), solution: Tokens(8) },
        seed: 1,
        hidden: false,
        whole: false,
        tells_limit: true,
        effort: None,
        effort_least: None,
    };
    (want, call)
}

#[tokio::test]
async fn an_answer_on_an_engine_that_a_reload_replaced_stays_in_the_metrics_until_its_end() {
    let in_flight = "stint_in_flight{model=\"reasoner\",target=\"embedded\"}";
    let decoded = "stint_engine_tokens_total{model=\"reasoner\",phase=\"decode\"}";
    let site = Site::new("").await;
    let (want, call) = call();
    let permit = site.fleet("reasoner").acquire(want).await.unwrap();
    let backend = permit.backend();
    let mut answer = backend.generate(call).await.unwrap();
    site.becomes("[engine]\nsequences = 2\n").await;
    assert_eq!(site.metric(in_flight).await, Some(1));
    let mut written = None;
    while let Some(piece) = answer.next().await {
        if let Piece::Usage(usage) = piece.unwrap() {
            written = Some(usage.completion.0);
        }
    }
    drop((answer, backend, permit));
    assert_eq!((site.metric(in_flight).await, site.metric(decoded).await), (Some(0), written));
    // Of a model that is served no more the series ends with its last call.
    let permit = site.fleet("reasoner").acquire(self::call().0).await.unwrap();
    site.becomes(&remote(&model("m", 1), "")).await;
    assert_eq!(site.metric(in_flight).await, Some(1));
    drop(permit);
    assert_eq!(site.metric(in_flight).await, None);
}

#[tokio::test]
async fn a_panic_while_it_is_put_in_force_is_told_and_the_next_is_taken() {
    let panics = std::sync::atomic::AtomicBool::new(true);
    let taken = move |_: &Settings| {
        assert!(!panics.swap(false, std::sync::atomic::Ordering::Relaxed), "as the test wants");
    };
    let site = Box::pin(Site::telling(&remote(&model("m", 1), ""), Box::new(taken))).await;
    let other = remote(&model("m", 2), "");
    let ReloadOutcome::Refused(told) = site.reload(&other).await else { panic!("it panicked") };
    assert!(told[0].contains("ended in a panic"), "{told:?}");
    let (_, metrics) = site.sees("", "/metrics", None).await;
    assert!(metrics.contains("stint_config_state 0"), "{metrics}");
    site.becomes(&other).await;
    let (_, metrics) = site.sees("", "/metrics", None).await;
    assert!(metrics.contains("stint_config_state 1"), "{metrics}");
}
