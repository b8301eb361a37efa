//! Another configuration while the server runs, as an operator puts it in force: with a signal, or by the admin API.

use std::convert::Infallible;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::managed::TOKEN;
use crate::harness::patience::until;
use crate::harness::{Answer, Folder, Managed, Process};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::Money;

/// Tokens of every answer, and of every prompt.
const TOKENS: u64 = 10;

/// An upstream whose answers to `wait` end when they are let; it notes the keys that it is shown.
struct Upstream {
    base: String,
    keys: Arc<Mutex<Vec<String>>>,
    gate: watch::Sender<bool>,
    _tasks: Tasks,
}

impl Upstream {
    fn start() -> Upstream {
        let (tasks, keys) = (Tasks::default(), Arc::<Mutex<Vec<String>>>::default());
        let (gate, open) = watch::channel(false);
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let seen = keys.clone();
        let answer = move |headers: HeaderMap, body: String| async move {
            let key = headers.get(header::AUTHORIZATION).map(|key| key.to_str().unwrap().to_owned());
            seen.lock().unwrap().push(key.unwrap_or_default());
            answer(&body, open)
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().route("/v1/chat/completions", post(answer))));
        Upstream { base, keys, gate, _tasks: tasks }
    }

    /// Waits until it was asked so often.
    async fn asked(&self, times: usize) {
        within("the upstream is asked", || self.keys.lock().unwrap().len() >= times).await;
    }

    /// Lets every answer end.
    fn open(&self) {
        self.gate.send_replace(true);
    }
}

/// One token at once, and the others when the gate is open or nobody was to wait for it.
fn answer(body: &str, open: watch::Receiver<bool>) -> Response {
    let request: Value = serde_json::from_str(body).unwrap();
    let waits = request["messages"].to_string().contains("wait");
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    let usage = json!({ "prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS });
    let last = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [],
                       "usage": usage });
    let first = chunk(json!({ "content": "x" }), None);
    let rest: String = (1..TOKENS).map(|_| first.clone()).collect();
    let rest = format!("{rest}{}data: {last}\n\ndata: [DONE]\n\n", chunk(json!({}), Some("stop")));
    let pieces = futures_util::stream::unfold(vec![rest, first], move |mut pieces| {
        let mut open = open.clone();
        async move {
            let piece = pieces.pop()?;
            if pieces.is_empty() && waits {
                let _ = open.wait_for(|open| *open).await;
            }
            Some((Ok::<_, Infallible>(Bytes::from(piece)), pieces))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
}

async fn within(what: &str, is_so: impl Fn() -> bool) {
    until(what, async || is_so()).await;
}

/// The model `m` at this price, and whatever else is said.
fn priced(upstream: &Upstream, price: u64, more: &str) -> String {
    format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = \"{}\"\n{more}\n[[backend.model]]\nname = \"m\"\n\
         price_input = \"{price}\"\nprice_output = \"{price}\"\n",
        upstream.base
    )
}

fn question(model: &str, words: &str, stream: bool) -> Value {
    json!({ "model": model, "stream": stream, "messages": [{ "role": "user", "content": words }] })
}

fn cost(budget: &Value) -> u64 {
    budget["cost_usd"].as_str().unwrap_or_else(|| panic!("{budget}")).parse::<Money>().unwrap().0
}

/// What a question costs now.
async fn asked(process: &Process, key: &str) -> u64 {
    cost(&process.ask(key, &question("m", "now", false)).await.good()["budget"])
}

const TAKEN: &str = "reloaded: ";
const REFUSED: &str = "not reloaded: ";

/// Writes it and says so with a signal; waits for what comes of it.
async fn reload(folder: &Folder, process: &Process, toml: &str, words: &str) {
    let before = process.lines(words).len();
    folder.write(toml);
    process.signal("HUP");
    within(words, || process.lines(words).len() > before).await;
}

async fn state(process: &Process) -> String {
    let metrics = process.get("", "/metrics").await.text;
    metrics.lines().find_map(|line| line.strip_prefix("stint_config_state ")).unwrap().to_owned()
}

/// UP-21: what runs finishes on the configuration that it began with, and at its prices.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_streams_outlive_their_configuration_and_pay_its_prices() {
    let upstream = Upstream::start();
    let folder = Folder::new(&priced(&upstream, 1, ""));
    let process = Arc::new(folder.serve());
    let usual = asked(&process, "").await;
    assert_eq!(usual, 2 * TOKENS * 1000);
    let streams: Vec<_> = (0..100)
        .map(|_| {
            let process = process.clone();
            tokio::spawn(async move { process.ask("", &question("m", "wait", true)).await })
        })
        .collect();
    upstream.asked(101).await;
    reload(&folder, &process, &priced(&upstream, 3, "total_timeout = \"90s\""), TAKEN).await;
    assert_eq!(asked(&process, "").await, 3 * usual, "the next request pays the new price");
    upstream.open();
    for stream in streams {
        let chunks = stream.await.unwrap().chunks();
        assert!(chunks.done && chunks.joined(0, "content").len() as u64 == TOKENS);
        assert_eq!(cost(chunks.budget()), usual);
    }
    let metrics = process.get("", "/metrics").await.text;
    let spent = metrics.lines().find_map(|line| line.strip_prefix("stint_money_spent_usd_total{"));
    let spent: f64 = spent.unwrap().split_whitespace().last().unwrap().parse().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "small sums")]
    let expected = (104 * usual) as f64 / 1e9;
    assert!((spent - expected).abs() < 1e-12, "{spent} of {expected}");
    assert!(metrics.contains("stint_money_reserved_usd 0\n"), "{metrics}");
}

/// CF-04.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_taken_away_ends_what_it_has_begun_and_is_not_found_then() {
    let upstream = Upstream::start();
    let second = "[[backend.model]]\nname = \"n\"\nprice_input = \"1\"\nprice_output = \"1\"\n";
    let one = priced(&upstream, 1, "");
    let folder = Folder::new(&format!("{one}{second}"));
    let process = Arc::new(folder.serve());
    let runs = {
        let process = process.clone();
        tokio::spawn(async move { process.ask("", &question("n", "wait", true)).await })
    };
    upstream.asked(1).await;
    assert!(process.get("", "/metrics").await.text.contains("stint_backend_state{model=\"n\""));
    reload(&folder, &process, &one, TAKEN).await;
    let (gone, never) = (question("n", "now", false), question("never", "now", false));
    let (gone, never) = (process.ask("", &gone).await, process.ask("", &never).await);
    assert_eq!((gone.status, &gone.error()["code"]), (404, &json!("model_not_found")));
    assert_eq!(gone.text, never.text.replace("never", "n"), "as if it had never been");
    let metrics = process.get("", "/metrics").await.text;
    assert!(!metrics.contains("stint_backend_state{model=\"n\""), "nobody asks it any more");
    upstream.open();
    let chunks = runs.await.unwrap().chunks();
    assert!(chunks.done && cost(chunks.budget()) == 2 * TOKENS * 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_leaves_the_one_before_in_force_and_every_mistake_is_logged() {
    let upstream = Upstream::start();
    let folder = Folder::new(&priced(&upstream, 1, ""));
    let process = folder.serve();
    let usual = asked(&process, "").await;
    assert_eq!(state(&process).await, "1");
    let bad =
        priced(&upstream, 9, "timeout = 3") + "[server]\nbody_maxx = 3\n[gateway]\nchoices_max = \"many\"\n";
    reload(&folder, &process, &bad, REFUSED).await;
    for expected in ["backend.timeout", "server.body_maxx", "gateway.choices_max"] {
        assert_eq!(process.lines(expected).len(), 1, "{expected} in {:?}", process.lines(""));
    }
    assert_eq!((state(&process).await, asked(&process, "").await), ("0".to_owned(), usual));
    let settled = priced(&upstream, 9, "") + "[gateway]\nflights_max = 3\n";
    reload(&folder, &process, &settled, REFUSED).await;
    assert!(process.lines("gateway.flights_max")[0].contains("restart"), "{:?}", process.lines(""));
    assert_eq!((state(&process).await, asked(&process, "").await), ("0".to_owned(), usual));
    reload(&folder, &process, &priced(&upstream, 2, ""), TAKEN).await;
    assert_eq!((state(&process).await, asked(&process, "").await), ("1".to_owned(), 2 * usual));
    let metrics = process.get("", "/metrics").await.text;
    crate::operating::promtool(&metrics);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_keys_hold_from_the_next_request_on() {
    let upstream = Upstream::start();
    let keyed = |key: &str, limits: &str| {
        let hash = stint_types::tenant::hash_key(key);
        let key = format!("[[key]]\nname = \"test\"\nhash = \"{hash}\"\nlimits = [{limits}]\n");
        priced(&upstream, 1, "") + &key
    };
    let folder = Folder::new(&keyed("sk-one", ""));
    let process = folder.serve();
    let usual = asked(&process, "sk-one").await;
    asked(&process, "sk-one").await;
    // What was spent before counts.
    let limit = format!("{{ money = \"{}\", per = \"day\" }}", Money(2 * usual + 1));
    reload(&folder, &process, &keyed("sk-one", &limit), TAKEN).await;
    let refused = process.ask("sk-one", &question("m", "now", false)).await;
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("insufficient_quota")));
    reload(&folder, &process, &keyed("sk-two", ""), TAKEN).await;
    assert_eq!(process.ask("sk-one", &question("m", "now", false)).await.status, 401);
    asked(&process, "sk-two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_changed_in_its_file_is_sent_from_the_next_request_on() {
    let upstream = Upstream::start();
    let toml = priced(&upstream, 1, "api_key_file = \"upstream.key\"");
    let folder = Folder::new(&toml);
    let secret = |text: &str| std::fs::write(folder.path().join("upstream.key"), text).unwrap();
    secret("sk-old");
    let process = folder.serve();
    asked(&process, "").await;
    secret("sk-new");
    reload(&folder, &process, &toml, TAKEN).await;
    asked(&process, "").await;
    assert_eq!(*upstream.keys.lock().unwrap(), ["Bearer sk-old", "Bearer sk-new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_that_come_together_end_with_what_is_written_last_and_none_ends_the_server() {
    let upstream = Upstream::start();
    let folder = Folder::new(&priced(&upstream, 1, ""));
    let mut process = folder.serve();
    let usual = asked(&process, "").await;
    for price in 2..=9 {
        folder.write(&priced(&upstream, price, ""));
        process.signal("HUP");
    }
    until("the last price holds", async || asked(&process, "").await == 9 * usual).await;
    assert!(process.lines(REFUSED).is_empty());
    let before = upstream.keys.lock().unwrap().len();
    let runs = tokio::spawn(Answer::of(process.request("", &question("m", "wait", true), &[])));
    upstream.asked(before + 1).await;
    process.signal("TERM");
    process.logged("stopping").await;
    folder.write("no configuration at all");
    process.signal("HUP");
    upstream.open();
    assert!(runs.await.unwrap().chunks().done);
    assert!(process.ended().success());
    assert!(process.lines(REFUSED).is_empty(), "a server that ends reads nothing any more");
}

/// The weights are there, the listeners are not.
#[test]
fn a_signal_before_it_is_ready_is_kept_until_it_is() {
    let folder = Folder::new("");
    let mut command = folder.stint("serve");
    command.env("STINT_LISTEN", "127.0.0.1:0").env("STINT_LOG", "info").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(log.any(|line| line.contains("loaded")));
    let sent = Command::new("kill").args(["-s", "HUP", &child.id().to_string()]).status().unwrap();
    assert!(sent.success() && log.any(|line| line.contains(TAKEN)));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_api_says_what_is_other_or_all_that_is_wrong() {
    let managed = Managed::new("");
    let process = managed.serve();
    let path = managed.folder.path().join("stint.toml");
    let toml = std::fs::read_to_string(&path).unwrap();
    let same = managed.ask(TOKEN, "POST", "/admin/reload", None).await.good();
    assert_eq!(same, json!({ "object": "reload", "changed": [] }));
    managed.folder.write(&format!(
        "{toml}[[backend.model]]\nname = \"o\"\n[[route]]\nname = \"fast\"\nmodels = [\"m\"]\n"
    ));
    let other = managed.ask(TOKEN, "POST", "/admin/reload", None).await.good();
    assert_eq!(other["changed"], json!(["model \"o\" is new", "route \"fast\" is new"]));
    managed.folder.write(&format!("{toml}[server]\nbody_maxx = 3\n[gateway]\nchoices_max = \"many\"\n"));
    let refused = managed.ask(TOKEN, "POST", "/admin/reload", None).await;
    assert_eq!((refused.status, &refused.error()["code"]), (422, &json!("config_refused")));
    for expected in ["server.body_maxx", "gateway.choices_max"] {
        assert!(refused.error()["message"].as_str().unwrap().contains(expected), "{}", refused.text);
    }
    let models = process.get("", "/v1/models").await.good()["data"].to_string();
    assert!(models.contains("\"o\"") && models.contains("\"fast\""), "{models}");
    // The token that opens is the one in force.
    managed.folder.write(&toml);
    std::fs::write(managed.folder.path().join("admin.token"), "another-token-of-the-admin-api").unwrap();
    let changed = managed.ask(TOKEN, "POST", "/admin/reload", None).await.good()["changed"].clone();
    assert_eq!(changed, json!(["model \"o\" is gone", "route \"fast\" is gone", "[admin] changed"]));
    assert_eq!(managed.ask(TOKEN, "POST", "/admin/reload", None).await.status, 401);
}

/// Writes a file in its place as editors and simple syncs do, with a pause in the middle; `begun` is called there.
fn write_in_place(file: &Path, text: &str, pause: Duration, begun: impl FnOnce()) {
    let (half, rest) = text.split_at(text.len() / 2);
    let mut open = File::create(file).unwrap();
    open.write_all(half.as_bytes()).unwrap();
    begun();
    std::thread::sleep(pause);
    open.write_all(rest.as_bytes()).unwrap();
}

/// What its upstream is, a catalogue that prices it and a secret, each in a file that is half a valid one where it is cut.
struct Cut {
    upstream: Upstream,
    folder: Folder,
}

impl Cut {
    /// Far less than the second for which a file must stand still, on a machine that does so itself now and then.
    const PAUSE: Duration = Duration::from_millis(250);

    fn new() -> Cut {
        let cut = Cut { upstream: Upstream::start(), folder: Folder::new("") };
        cut.folder.write(&cut.toml(90));
        cut.write("own.toml", &Cut::catalogue(1));
        cut.write("upstream.key", "sk-old-old");
        cut
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// What is cut is a comment and what comes after it.
    fn toml(&self, seconds: u64) -> String {
        let base = &self.upstream.base;
        let first = format!(
            "[engine]\nembedded = false\n[catalog]\nfile = \"own.toml\"\n[[backend]]\nbase_url = \"{base}\"\n\
             api_key_file = \"upstream.key\"\nmodels = [\"m\"]\n"
        );
        let last = format!("[gateway]\ntime_max = \"{seconds}s\"\n");
        format!("{first}#{}\n{last}", "-".repeat(first.len()))
    }

    fn catalogue(price: u64) -> String {
        let first = "version = \"2026-11-22\"\n".to_owned();
        let last =
            format!("[[model]]\nmatch = [\"m\"]\nprice_input = \"{price}\"\nprice_output = \"{price}\"\n");
        format!("{first}#{}\n{last}", "-".repeat(last.len()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_being_written_is_never_taken_by_half() {
    let cut = Cut::new();
    let process = cut.folder.serve();
    let usual = asked(&process, "").await;
    let files = [
        ("stint.toml", cut.toml(80)),
        ("own.toml", Cut::catalogue(3)),
        ("upstream.key", "sk-new-new".to_owned()),
    ];
    for (number, (name, text)) in files.iter().enumerate() {
        let file = cut.folder.path().join(name);
        write_in_place(&file, text, Cut::PAUSE, || process.signal("HUP"));
        within("taken", || process.lines(TAKEN).len() == number + 1).await;
    }
    let taken = process.lines(TAKEN);
    assert!(taken[0].contains("[gateway] changed") && !taken[0].contains("model \""), "{taken:?}");
    assert!(taken[1].contains(r#"model \"m\" changed"#), "{taken:?}");
    assert_eq!(asked(&process, "").await, 3 * usual);
    assert_eq!(*cut.upstream.keys.lock().unwrap(), ["Bearer sk-old-old", "Bearer sk-new-new"]);
    assert!(process.lines(REFUSED).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_stand_still_is_refused_by_its_name() {
    let cut = Cut::new();
    let process = cut.folder.serve();
    process.signal("HUP");
    let file = cut.folder.path().join("upstream.key");
    let mut number = 0;
    until("it is refused", async || {
        number += 1;
        std::fs::write(&file, format!("sk-{number}")).unwrap();
        !process.lines("is being written").is_empty()
    })
    .await;
    let refused = process.lines("is being written");
    assert!(refused.iter().any(|line| line.contains("upstream.key")), "{refused:?}");
    assert_eq!(state(&process).await, "0");
    asked(&process, "").await;
    assert_eq!(*cut.upstream.keys.lock().unwrap(), ["Bearer sk-old-old"]);
}

/// As Kubernetes puts another version of a configuration map in place: one link is renamed, and all files are others.
#[tokio::test(flavor = "multi_thread")]
async fn files_behind_a_link_that_is_swapped_are_taken_together() {
    let cut = Cut::new();
    let usual = cut.folder.path().to_owned();
    let version = |name: &str, toml: &str, catalogue: &str, key: &str| {
        let folder = usual.join(name);
        std::fs::create_dir(&folder).unwrap();
        let files = [("stint.toml", toml), ("own.toml", catalogue), ("upstream.key", key)];
        files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).unwrap());
        symlink(name, usual.join("..next")).unwrap();
        std::fs::rename(usual.join("..next"), usual.join("..data")).unwrap();
    };
    version("..one", &cut.toml(90), &Cut::catalogue(1), "sk-one");
    for file in ["stint.toml", "own.toml", "upstream.key"] {
        std::fs::remove_file(usual.join(file)).unwrap();
        symlink(Path::new("..data").join(file), usual.join(file)).unwrap();
    }
    let process = cut.folder.serve();
    let before = asked(&process, "").await;
    version("..two", &cut.toml(80), &Cut::catalogue(2), "sk-two");
    process.signal("HUP");
    within("taken", || process.lines(TAKEN).len() == 1).await;
    assert_eq!(asked(&process, "").await, 2 * before);
    assert_eq!(*cut.upstream.keys.lock().unwrap(), ["Bearer sk-one", "Bearer sk-two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_or_a_device_in_the_place_of_a_file_is_refused_and_the_next_reload_goes_on() {
    let upstream = Upstream::start();
    let folder = Folder::new(&priced(&upstream, 1, ""));
    let process = folder.serve();
    assert_eq!(state(&process).await, "1");
    let file = folder.path().join("stint.toml");
    for (round, make) in ["pipe", "device"].into_iter().enumerate() {
        std::fs::remove_file(&file).unwrap();
        if make == "pipe" {
            assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        } else {
            symlink("/dev/zero", &file).unwrap();
        }
        process.signal("HUP");
        within("refused", || process.lines(REFUSED).len() == round + 1).await;
        assert_eq!(process.lines("no regular file").len(), round + 1, "{make}");
        assert_eq!(state(&process).await, "0");
    }
    let other = folder.path().join("next.toml");
    std::fs::write(&other, priced(&upstream, 2, "")).unwrap();
    std::fs::rename(other, &file).unwrap();
    let before = process.lines(TAKEN).len();
    process.signal("HUP");
    within("taken", || process.lines(TAKEN).len() > before).await;
    assert_eq!(state(&process).await, "1");
}
