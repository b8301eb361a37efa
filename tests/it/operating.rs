//! The binary as an operator meets it: its verbs, its signals, its end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Folder, Managed, Process, free_port};
use stint_ledger::Journal;
use stint_storage::{Sqlite, SqliteJournal, SqliteSettings, Synchronous};
use stint_types::units::Timestamp;

/// A key's configuration with limits, for the key `sk-test`.
fn keyed(limits: &str) -> String {
    let hash = stint_types::tenant::hash_key("sk-test");
    format!("[[key]]\nname = \"test\"\nadmin = true\nhash = \"{hash}\"\nlimits = [{limits}]\n")
}

fn question(thinking: u64) -> Value {
    json!({
        "model": "reasoner",
        "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
        "budget": { "thinking_tokens": thinking, "solution_tokens": 12 },
    })
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn check_reports_every_mistake_at_once_with_its_line() {
    let folder =
        Folder::new("[server]\nlisten = \"nowhere\"\nbody_maxx = 3\n\n[engine]\nsequences = \"many\"\n");
    let output = folder.stint("check").output().unwrap();
    let text = text(&output);
    assert!(!output.status.success());
    for expected in ["line 2", "line 3", "body_max", "line 6"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let right = Folder::new("").stint("check").output().unwrap();
    assert!(right.status.success());
}

/// What an alert watches is there before it first rises.
#[tokio::test]
async fn warnings_of_every_limit_there_is_stand_at_nothing_from_the_start() {
    let limits = r#"{ requests = 5, per = "day" }, { money = "1", per = "day", tag = "batch" }"#;
    let process = Folder::new(&keyed(limits)).serve();
    let metrics = process.get("sk-test", "/metrics").await.text;
    for kind in ["key requests day", "account requests day", "key money day of tag"] {
        let line = format!("stint_limit_warnings_total{{limit=\"{kind}\"}} 0");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

/// The same of what votes, cascades, learning and idempotency keys may come to.
#[tokio::test]
async fn what_votes_learning_and_keys_may_come_to_stands_at_nothing_from_the_start() {
    let route = "[[route]]\nname = \"vote\"\nvote = { compare = \"number\" }\njudge = \"reasoner\"\n\
                 probe = { model = \"reasoner\" }\n";
    let metrics = Folder::new(route).serve().get("", "/metrics").await.text;
    for line in [
        "stint_votes_total{ended=\"uncatchable\"} 0",
        "stint_samples_total{model=\"reasoner\",outcome=\"dropped\"} 0",
        "stint_cascades_total{model=\"reasoner\",outcome=\"kept\"} 0",
        "stint_judgements_total{model=\"reasoner\",outcome=\"malformed\"} 0",
        "stint_probes_total{model=\"reasoner\",outcome=\"changed\"} 0",
        "stint_verdicts_total{outcome=\"none\"} 0",
        "stint_outcomes_dropped_total{at=\"store\"} 0",
        "stint_learned_observations{model=\"reasoner\"} 0",
        "stint_feedback_score_count{model=\"reasoner\"} 0",
        "stint_regret_count{route=\"vote\"} 0",
        "stint_idempotency_total{outcome=\"replayed\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn an_open_server_listens_on_loopback_alone() {
    let output = Folder::new("[server]\nlisten = \"0.0.0.0:8080\"\n").stint("check").output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("key"), "{}", text(&output));
}

#[test]
fn hashing_no_key_is_refused() {
    let binary = env!("CARGO_BIN_EXE_stint");
    let output = Command::new(binary).args(["keys", "hash"]).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("no key on standard input"), "{}", text(&output));
}

#[test]
fn a_new_key_comes_with_the_hash_that_hashing_it_gives() {
    let binary = env!("CARGO_BIN_EXE_stint");
    let new = Command::new(binary).args(["keys", "new"]).output().unwrap();
    let new = String::from_utf8(new.stdout).unwrap();
    let word = |start: &str| new.split_whitespace().find(|word| word.starts_with(start)).unwrap().to_owned();
    let mut hash = Command::new(binary)
        .args(["keys", "hash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    hash.stdin.take().unwrap().write_all(word("sk-stint-").as_bytes()).unwrap();
    let output = hash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), word("sha256:"));
}

#[tokio::test]
async fn health_says_whom_it_asked_and_what_to_do() {
    let free = format!("127.0.0.1:{}", free_port());
    let folder = Folder::new(&format!("[server]\nlisten = \"{free}\"\n"));
    let output = folder.stint("health").output().unwrap();
    let said = text(&output);
    assert!(!output.status.success());
    for expected in
        [&*format!("no server answers at {free}"), "stint serve", "--config", "because: Connection refused"]
    {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let process = folder.serve();
    let address = process.base.strip_prefix("http://").unwrap();
    let output = folder.stint("health").env("STINT_LISTEN", address).output().unwrap();
    assert!(output.status.success() && text(&output).contains("ready"), "{}", text(&output));
    let unready = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unready.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut connection, _) = unready.accept().unwrap();
        let _ = connection.read(&mut [0; 1024]);
        write!(connection, "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n").unwrap();
    });
    let output = folder.stint("health").env("STINT_LISTEN", &address).output().unwrap();
    let expected =
        format!("the server at {address} is not ready: it says \"HTTP/1.1 503 Service Unavailable\"");
    assert!(!output.status.success() && text(&output).contains(&expected), "{}", text(&output));
}

/// A refused reload leaves the gateway in service, and the refused file to the verbs that look after it.
#[tokio::test]
async fn mistakes_elsewhere_in_the_file_stop_no_verb_that_looks_after_a_running_server() {
    let managed = Managed::new("");
    let process = managed.serve();
    managed.keys(&["create", "early"]);
    let path = managed.folder.path().join("stint.toml");
    let mistaken = std::fs::read_to_string(&path).unwrap() + "nonsense = 1\n";
    managed.folder.write(&mistaken);
    let address = process.base.strip_prefix("http://").unwrap();
    for words in
        [&["health", "--alive"][..], &["ledger", "verify"], &["usage"], &["top", "--once"], &["keys", "list"]]
    {
        let mut stint = managed.folder.stint(words[0]);
        let output = stint.args(&words[1..]).env("STINT_LISTEN", address).output().unwrap();
        let told = text(&output);
        assert!(output.status.success() && told.contains("passed over 1 mistake in"), "{words:?}: {told}");
    }
    managed.keys(&["revoke", "early"]);
    drop(process);
    let refused = managed.complaint(&["create", "late"]);
    assert!(
        refused.contains("nonsense: unknown key"),
        "where no server checks it, all must be right: {refused}"
    );
    managed.folder.write(&mistaken.replace("nonsense", "[ledgr]\nlease"));
    assert!(managed.complaint(&["list"]).contains("ledgr: unknown key"));
}

#[test]
fn a_file_that_is_named_and_empty_is_refused_and_none_is_not() {
    let folder = Folder::new("");
    let path = folder.path().join("empty.toml");
    std::fs::write(&path, "\n# nothing\n").unwrap();
    for verb in ["check", "serve"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_stint")).arg(verb).env("STINT_CONFIG", &path).output().unwrap();
        assert!(
            !output.status.success() && text(&output).contains("there is nothing in it"),
            "{}",
            text(&output)
        );
    }
    let mut without = Command::new(env!("CARGO_BIN_EXE_stint"));
    let without = without.arg("check").env_remove("STINT_CONFIG").current_dir(folder.path());
    let output = without.env("STINT_LEDGER", ":memory:").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[tokio::test]
async fn usage_of_nobody_or_of_no_time_is_a_mistake() {
    let folder = Folder::new(&(keyed("") + "[[account]]\nname = \"idle\"\n"));
    let process = folder.serve();
    process.ask("sk-test", &question(8)).await.good();
    drop(process);
    let usage = |words: &[&str]| folder.stint("usage").args(words).output().unwrap();
    for words in
        [&["--account", "test"][..], &["--account", "idle"], &["--account", "test", "--to", "2020-01-01"]]
    {
        let output = usage(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output));
    }
    let nobody = usage(&["--account", "nobody"]);
    assert!(
        !nobody.status.success() && text(&nobody).contains("there is no account nobody"),
        "{}",
        text(&nobody)
    );
    let backwards = ["--from", "2026-02-01", "--to", "2026-01-01"];
    let exported = folder.stint("ledger").arg("export").args(backwards).output().unwrap();
    for output in [usage(&backwards), exported] {
        assert!(
            !output.status.success() && text(&output).contains("is not after --from"),
            "{}",
            text(&output)
        );
    }
}

#[tokio::test]
async fn accounts_that_are_declared_have_a_series_of_what_is_left_wherever_their_keys_are() {
    let limited = "[[account]]\nname = \"acme\"\nlimits = [{ money = \"5\", per = \"month\" }]\n";
    let process = Folder::new(&(keyed("") + limited)).serve();
    let metrics = process.get("sk-test", "/metrics").await.text;
    assert!(metrics.contains("stint_budget_left_ratio{tenant=\"acme\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn sigterm_finishes_what_runs_and_ends_well() {
    let folder = Folder::new("");
    let mut process = folder.serve();
    process.ask("", &question(8)).await.good();
    process.signal("TERM");
    assert!(process.ended().success());
}

/// CR-08: of two servers on one file the second ends at once and says why; the first goes on.
#[tokio::test]
async fn a_second_server_on_the_same_file_says_so_and_ends() {
    let folder = Folder::new("");
    let process = folder.serve();
    let mut second = folder.stint("serve");
    let output = second.env("STINT_LISTEN", "127.0.0.1:0").output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("another stint process uses"), "{}", text(&output));
    process.ask("", &question(8)).await.good();
    drop(process);
    let verified = folder.stint("ledger").arg("verify").output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified));
}

/// Upstream that takes a request and never answers it; tells of the first one.
pub(crate) fn silent_upstream() -> (String, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, told) = sync_channel(1);
    std::thread::spawn(move || tell.send(listener.accept().unwrap().0));
    (base, told)
}

#[tokio::test]
async fn what_is_cut_off_at_the_end_is_settled_and_that_is_a_good_end() {
    let messages = json!([{ "role": "user", "content": "x" }]);
    is_cut_off_and_settled("/v1/chat/completions", &json!({ "model": "m", "messages": messages })).await;
    is_cut_off_and_settled("/v1/embeddings", &json!({ "model": "m", "input": "x" })).await;
}

async fn is_cut_off_and_settled(path: &str, body: &Value) {
    let (base, asked) = silent_upstream();
    let folder = Folder::new(&format!(
        "[server]\ndrain = '100ms'\n[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n\
         [[backend.model]]\nname = 'm'\nserves = ['chat', 'embeddings']\nprice_input = '1'\nprice_output = '1'\n"
    ));
    let mut process = folder.serve();
    let request = process.client.post(format!("{}{path}", process.base));
    let request =
        tokio::spawn(request.header("content-type", "application/json").body(body.to_string()).send());
    let upstream = tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
    process.signal("TERM");
    let ended = tokio::task::spawn_blocking(move || process.ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let answer = request.await.unwrap().expect("it is told so");
    assert_eq!(answer.status().as_u16(), 503);
    assert!(answer.text().await.unwrap().contains("shutting_down"));
    drop(upstream);
    assert!(spent(&folder).await > 0, "the upstream may bill it, so it is posted");
    let books = text(&folder.stint("ledger").arg("export").output().unwrap());
    assert!(books.contains(",failed,") && !books.contains("hung_up"), "its caller did not leave: {books}");
}

/// Asks without end until the server is gone; gives back what was told of each settled request.
async fn load(process: Arc<Process>, answered: Arc<AtomicUsize>) -> Vec<(String, String)> {
    let mut settled = Vec::new();
    for number in 0_u64.. {
        let request =
            process.client.post(format!("{}/v1/chat/completions", process.base)).bearer_auth("sk-test");
        let body = question(number % 40).to_string();
        let Ok(response) = request.header("content-type", "application/json").body(body).send().await else {
            break;
        };
        let Ok(body) = response.text().await else { break };
        let answer: Value = serde_json::from_str(&body).expect("an answer is whole or it is none");
        let budget = &answer["budget"];
        let cost = budget["cost_usd"].as_str().unwrap_or_else(|| panic!("{body}"));
        settled.push((budget["id"].as_str().unwrap().to_owned(), cost.to_owned()));
        answered.fetch_add(1, Ordering::Relaxed);
    }
    settled
}

#[tokio::test]
async fn after_kill_9_under_load_no_settlement_is_lost_and_nothing_stays_reserved() {
    let folder = Folder::new(&keyed("{ money = \"5\", per = \"total\" }"));
    let mut told = 0;
    for round in 0..3_u64 {
        let (process, answered) = (Arc::new(folder.serve()), Arc::new(AtomicUsize::new(0)));
        let callers: Vec<_> = (0..6).map(|_| tokio::spawn(load(process.clone(), answered.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(700 + 150 * round)).await;
        until("some are answered", async || answered.load(Ordering::Relaxed) > 0).await;
        process.signal("KILL");
        for caller in callers {
            let settled = caller.await.unwrap();
            let money = settled.iter().map(|(_, cost)| cost.parse::<stint_types::units::Money>().unwrap().0);
            told += money.sum::<u64>();
        }
    }
    assert!(told > 0, "some requests were settled");
    let process = folder.serve();
    let page = process.get("sk-test", "/v1/allowance").await.good();
    assert_eq!(page["limits"][0]["reserved"], "0", "{page}");
    drop(process);
    let spent = spent(&folder).await;
    assert!(spent >= told, "callers were told of {told} nano-dollars, the ledger has {spent}");
    // What was in flight at a kill is posted whole: 6 callers, 3 kills, at most 0.00005 dollars each.
    assert!(spent - told <= 18 * 50_000, "{spent} against {told}");
}

/// What the database itself says was spent, in nano-dollars.
async fn spent(folder: &Folder) -> u64 {
    let path = folder.path().join("ledger.db");
    let settings = SqliteSettings { path, synchronous: Synchronous::Full };
    let journal = SqliteJournal::new(Arc::new(Sqlite::open(&settings).await.unwrap()));
    let totals = journal.spend_since(Timestamp(i64::MIN)).await.unwrap();
    totals.iter().map(|total| total.spent.money.0).sum()
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{metrics}"));
    line.trim().parse().unwrap()
}

/// OB-02: callers, series and database agree.
#[tokio::test]
async fn prometheus_sees_what_the_ledger_has() {
    let folder = Folder::new(&keyed("{ money = \"0.0001\", per = \"total\" }"));
    let process = folder.serve();
    let (mut nanos, mut thinking, mut refused) = (0, 0, 0);
    for budget in [0, 8, 16, 60, 200, 200, 200, 200] {
        let answer = process.ask("sk-test", &question(budget)).await;
        if answer.status == 429 {
            refused += 1;
            continue;
        }
        let answer = answer.good();
        nanos +=
            answer["budget"]["cost_usd"].as_str().unwrap().parse::<stint_types::units::Money>().unwrap().0;
        thinking += answer["budget"]["thinking"]["used"].as_u64().unwrap();
    }
    assert!(refused > 0 && nanos > 0);
    let metrics = process.get("sk-test", "/metrics").await.text;
    let served = f64::from(8 - refused);
    let check = |series: &str, expected: f64| {
        let seen = value(&metrics, series);
        assert!((seen - expected).abs() < 1e-12, "{series} is {seen}, not {expected}");
    };
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let (dollars, thinking) = (nanos as f64 / 1e9, thinking as f64);
    check("stint_money_spent_usd_total{model=\"reasoner\",tenant=\"test\"}", dollars);
    check("stint_money_reserved_usd", 0.0);
    check("stint_thinking_tokens_used_sum{class=\"inline\",model=\"reasoner\"}", thinking);
    check("stint_requests_total{model=\"reasoner\",outcome=\"finished\",route=\"reasoner\"}", served);
    check("stint_refusals_total{limit=\"key money total\"}", f64::from(refused));
    check("stint_budget_left_ratio{tenant=\"test\"}", 1.0 - dollars / 0.0001);
    promtool(&metrics);
    drop(process);
    assert_eq!(spent(&folder).await, nanos, "callers, metrics and database agree");
}

/// Prometheus' own linter has nothing to say against the page.
pub(crate) fn promtool(metrics: &str) {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/promtool");
    let mut check = Command::new(tool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which `make test-tools` fetches");
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}
