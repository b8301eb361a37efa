//! More than there is room for: connections, bodies, names, signals.
//!
//! The figures of load (OV-01, OV-15 to OV-17) belong to the measurements, fair shares and limits that adapt (OV-02 to
//! OV-04) to the tests of the fleet. That a ledger which is slow or full refuses new requests and leaves streams alone (OV-09) is
//! in `faults`, that one which is gone does (OV-10) in `outage`. Floods of HTTP/2 (OV-12) are in `http2`.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Version;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::faultup::Faultup;
use crate::harness::faultup::rig::{Caller, Rig, question};
use crate::harness::faultup::script::{DONE, Gate, Step, answers, chunked, event, good, nothing, says};
use crate::harness::patience::{PATIENCE, QuietInstant, until};
use crate::harness::{Answer, Folder, Process, World, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;
use stint_types::tenant::{LimitSelector, TenantLimit};
use stint_types::units::{Amount, Count, Window};

async fn connect(base: &str) -> TcpStream {
    TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Reads what comes until the other side ends it.
async fn rest(mut connection: TcpStream) -> String {
    let mut all = Vec::new();
    let ended = timeout(PATIENCE, connection.read_to_end(&mut all)).await;
    assert!(ended.is_ok(), "still open: {}", String::from_utf8_lossy(&all));
    String::from_utf8_lossy(&all).into_owned()
}

/// OV-06: connections that begin and do not go on are closed at the time for heads, and others are served meanwhile.
#[tokio::test]
async fn half_open_connections_are_closed_while_others_are_served() {
    let rig = Rig::with(vec![answers()], |knobs| knobs.http.head_timeout = Duration::from_millis(800)).await;
    let begun = QuietInstant::now();
    let mut half = Vec::new();
    for number in 0..300 {
        let mut connection = connect(&rig.world.base).await;
        let head = ["", "P", "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n"][number % 3];
        connection.write_all(head.as_bytes()).await.unwrap();
        half.push(connection);
    }
    for _ in 0..5 {
        rig.ask(true).await.chunks();
    }
    for connection in half {
        let said = rest(connection).await;
        assert!(!said.contains(" 200 "), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // On a connection of its own, since the one before is closed about now.
    Caller::ask(&rig.world, &question(true), "1.1").await.hears("[DONE]").await;
}

/// OV-08, IN-05: bodies that there is no room for are refused unread, and the room comes back.
#[tokio::test]
async fn bodies_share_a_bounded_room() {
    let gate = Gate::shut();
    let slow = chunked().chunk(&event(&says("4"))).wait(&gate).chunk(&good(&["2"], 7, 2)).send("0\r\n\r\n");
    let rig = Rig::with(vec![slow, answers()], |knobs| {
        knobs.http.body_max = 64 << 10;
        knobs.http.bodies_max = 100 << 10;
        knobs.model.context = stint_types::units::Tokens(1_000_000);
    })
    .await;
    let large = |stream: bool| {
        let mut body = question(stream);
        body["messages"][0]["content"] = json!("x".repeat(60 << 10));
        body
    };
    let mut caller = Caller::ask(&rig.world, &large(true), "1.1").await;
    caller.hears("\"4\"").await;
    let refused = rig.world.ask("sk-key", &large(false)).await;
    assert_eq!((refused.status, &refused.error()["code"]), (503, &json!("overloaded")));
    assert!(refused.headers.contains_key("retry-after") && refused.headers.contains_key("x-request-id"));
    // A request that only announces a large body takes no room.
    let mut silent = Vec::new();
    for _ in 0..9 {
        silent.push(send_beginning(&rig.world, "content-length: 65536\r\n\r\n").await);
        silent.push(send_beginning(&rig.world, "transfer-encoding: chunked\r\n\r\n").await);
    }
    rig.ask(false).await.good();
    drop(silent);
    gate.open();
    caller.hears("[DONE]").await;
    rig.world.ask("sk-key", &large(false)).await.good();
    let too_large =
        json!({ "model": "m", "messages": [{ "role": "user", "content": "x".repeat(70 << 10) }] });
    assert_eq!(rig.world.ask("sk-key", &too_large).await.status, 413);
    drop(caller);
    assert_eq!(rig.upstream.log().len(), 3, "what was refused went nowhere");
    rig.spent().await;
}

/// A request whose head ends so, with the beginning of a body.
async fn send_beginning(world: &World, end: &str) -> TcpStream {
    let mut connection = connect(&world.base).await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-key\r\n\
                content-type: application/json\r\n";
    connection.write_all(format!("{head}{end}").as_bytes()).await.unwrap();
    connection
}

/// OV-08: however many bodies one account sends and does not end, the others' have room.
#[tokio::test]
async fn bodies_of_one_account_leave_room_for_others() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let tenants = vec![tenant("key", 1_000_000), tenant("other", 1_000_000)];
    let mut served = model("m", EnforcementClass::Inline);
    served.context = stint_types::units::Tokens(1_000_000);
    let world = World::with(vec![(served, script)], tenants, |http| {
        http.body_max = 64 << 10;
        http.bodies_max = 128 << 10;
    })
    .await;
    let part = format!("content-length: 65536\r\nconnection: close\r\n\r\n{}", " ".repeat(60 << 10));
    let held = send_beginning(&world, &part).await;
    let refused = rest(send_beginning(&world, &part).await).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("overloaded"), "{refused}");
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "x".repeat(40 << 10) }] });
    world.ask("sk-other", &body).await.good();
    drop(held);
}

/// 17.1: however many requests one account begins and does not end, from however many addresses, the others have connections.
#[tokio::test]
async fn an_account_has_its_share_of_the_requests_in_flight_and_no_more() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let tenants = vec![tenant("key", 1_000_000), tenant("other", 1_000_000)];
    let world = World::with(vec![(model("m", EnforcementClass::Inline), script)], tenants, |http| {
        (http.connections_max, http.account_requests_max) = (8, 2);
    })
    .await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 1+2?" }] });
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(send_beginning(&world, "content-length: 65536\r\n\r\n{").await);
        world.ask("sk-other", &body).await.good();
    }
    let refused = world.ask("sk-key", &body).await;
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("rate_limit_exceeded")));
    let message = refused.error()["message"].to_string();
    assert!(
        message.contains("account_requests_max") && refused.headers.contains_key("retry-after"),
        "{message}"
    );
    assert!(world.metrics_page().contains("turned_away_total{why=\"account\"}"));
    drop(held);
    until("its requests have ended", async || world.ask("sk-key", &body).await.status == 200).await;
}

/// IN-05: a compressed body is named as what it is.
#[tokio::test]
async fn a_compressed_body_is_refused_by_its_name() {
    let rig = Rig::new(vec![answers()]).await;
    let part = "content-encoding: gzip\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let refused = rest(send_beginning(&rig.world, part).await).await;
    assert!(
        refused.starts_with("HTTP/1.1 415") && refused.contains("unsupported_content_encoding"),
        "{refused}"
    );
}

/// OV-11, IN-12: what strangers invent makes no new series.
#[tokio::test]
async fn invented_names_make_no_new_series() {
    let rig = Rig::new(vec![answers()]).await;
    let series = async || rig.world.metrics_page().lines().count();
    let mut asks = Vec::new();
    for number in 0..400 {
        let mut body = question(number % 2 == 0);
        match number % 4 {
            0 => body["model"] = json!(format!("model-{number}")),
            1 => body["user"] = json!(format!("user-{number}")),
            2 => body["metadata"] = json!({ "tag": format!("tag-{number}") }),
            _ => body["model"] = json!(format!("m\"}} {number}\n#{}", "x".repeat(number))),
        }
        asks.push((format!("sk-{number}"), body));
    }
    let (warming, rest) = asks.split_at(8);
    for (_, body) in warming {
        rig.world.ask("sk-key", body).await;
        rig.world.ask("sk-unknown", body).await;
        rig.world.post("/v1/embeddings", "sk-key", body).await;
    }
    let before = series().await;
    for (key, body) in rest {
        rig.world.ask("sk-key", body).await;
        rig.world.ask(key, body).await;
        rig.world.post("/v1/embeddings", "sk-key", body).await;
        rig.world.get("sk-key", &format!("/v1/{key}")).await;
    }
    assert_eq!(series().await, before);
}

/// IN-26: an `Upgrade` to HTTP/2 is passed over: who wants it begins with its preface.
#[tokio::test]
async fn an_upgrade_to_another_protocol_is_passed_over() {
    let rig = Rig::new(vec![answers()]).await;
    let upgrade = "GET /v1/models HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\n\
                   http2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\nauthorization: Bearer sk-key\r\n\r\n";
    let mut connection = connect(&rig.world.base).await;
    connection.write_all(upgrade.as_bytes()).await.unwrap();
    let said = rest(connection).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

/// The binary over an upstream, with more words for its server section.
async fn binary(upstream: &Faultup, server: &str) -> Folder {
    Folder::new(&format!(
        "[server]\n{server}\n[engine]\nembedded = false\n[[backend]]\nbase_url = '{}/v1'\n\
         [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '4'\n",
        upstream.address
    ))
}

fn verified(folder: &Folder) {
    let output = folder.stint("ledger").arg("verify").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// OV-07: without descriptors for more connections the loop goes on, and accepts again once there are.
#[tokio::test]
async fn a_flood_of_connections_beyond_the_systems_limit_is_survived() {
    let upstream = Faultup::start(vec![answers()]).await;
    let folder = binary(&upstream, "").await;
    let process = folder.serve_by(limited(&folder.stint("serve"), 64));
    process.ask("", &question(false)).await.good();
    let mut flood = Vec::new();
    for _ in 0..200 {
        flood.push(connect(&process.base).await);
    }
    let fresh = reqwest::Client::builder().no_proxy().build().unwrap();
    // Those that say nothing give up their places, also where the system has no more.
    let asked = fresh.get(format!("{}/healthz", process.base)).send();
    assert_eq!(timeout(PATIENCE, asked).await.expect("room is made").unwrap().status().as_u16(), 200);
    drop(flood);
    let served = timeout(PATIENCE, fresh.get(format!("{}/healthz", process.base)).send()).await;
    assert_eq!(served.expect("it accepts again").unwrap().status().as_u16(), 200);
    process.ask("", &question(true)).await.chunks();
}

/// The same command with so many descriptors at most.
fn limited(stint: &Command, descriptors: u32) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(stint.get_program()).args(stint.get_args());
    for (name, value) in stint.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

async fn stopped(mut process: Process) -> (bool, Duration) {
    let since = QuietInstant::now();
    let status = tokio::task::spawn_blocking(move || process.ended()).await.unwrap();
    (status.success(), since.elapsed())
}

/// OV-14: a second SIGTERM does not wait for what runs. It is cut off and settled, and the books are right.
#[tokio::test]
async fn a_second_signal_stops_at_once_and_the_books_are_right() {
    let gate = Gate::shut();
    let begun = || chunked().chunk(&event(&says("4")));
    let finishes = begun().wait(&gate).chunk(&good(&["2"], 7, 2)).send("0\r\n\r\n");
    let upstream = Faultup::start(vec![finishes, begun().then(Step::Hold), nothing().then(Step::Hold)]).await;
    let folder = binary(&upstream, "drain = '60s'").await;
    let process = folder.serve();
    let ask = |stream| tokio::spawn(process.request("", &question(stream), &[]).send());
    let first = ask(true);
    upstream.until(|log| log.len() == 1).await;
    let asks = [true, false].map(ask);
    upstream.until(|log| log.len() == 3).await;
    process.signal("TERM");
    process.logged("answers that run may finish").await;
    gate.open();
    let text = first.await.unwrap().unwrap().text().await.unwrap();
    assert!(text.contains(DONE), "it may finish, and does: {text}");
    assert!(upstream.log()[1..].iter().all(|exchange| exchange.left.is_none()), "the others may too");
    let signalled = QuietInstant::now();
    process.signal("TERM");
    let (well, time) = stopped(process).await;
    assert!(well && time < Duration::from_secs(5), "{well} after {time:?}");
    for exchange in [1, 2] {
        upstream.sees_the_client_leave(exchange, &signalled).await;
    }
    for ask in asks {
        let text = ask.await.unwrap().unwrap().text().await.unwrap();
        assert!(
            text.contains("shutting_down") && !text.contains(DONE),
            "it was cut off, and is told so: {text}"
        );
    }
    verified(&folder);
}

/// 17.12: when the time for running answers is over, each open stream ends with an error in the form of its API.
#[tokio::test]
async fn streams_that_are_open_when_patience_ends_get_an_error_of_their_api() {
    let client = || reqwest::Client::builder().no_proxy();
    check_cut_off(&client().build().unwrap(), Version::HTTP_11).await;
    check_cut_off(&client().http2_prior_knowledge().build().unwrap(), Version::HTTP_2).await;
}

async fn check_cut_off(client: &reqwest::Client, version: Version) {
    let scripts = vec![chunked().chunk(&event(&says("4"))).then(Step::Hold); 3];
    let upstream = Faultup::start(scripts).await;
    let folder = binary(&upstream, "drain = '300ms'").await;
    let process = folder.serve();
    let message = json!([{ "role": "user", "content": "2+2?" }]);
    let asks = [
        ("/v1/chat/completions", json!({ "model": "m", "stream": true, "messages": message })),
        ("/v1/messages", json!({ "model": "m", "stream": true, "max_tokens": 2000, "messages": message })),
        ("/v1/responses", json!({ "model": "m", "stream": true, "input": "2+2?" })),
    ];
    let asked = asks.map(|(path, body)| {
        let request = client.post(format!("{}{path}", process.base)).body(body.to_string());
        let request = request.header("content-type", "application/json");
        tokio::spawn(async move {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.version(), version);
            answer.text().await
        })
    });
    upstream.until(|log| log.len() == 3).await;
    process.signal("TERM");
    let forms = ["\"type\":\"server_error\"", "event: error", "event: error"];
    for (asked, form) in asked.into_iter().zip(forms) {
        let text = asked.await.unwrap().expect("the stream ends as it should");
        assert!(text.contains("shutting down") && text.contains(form) && !text.contains(DONE), "{text}");
    }
    for line in process.logged_times("code=\"shutting_down\"", 3).await {
        assert!(line.contains("outcome=\"failed\"") && line.contains("status=200"), "{line}");
    }
    let (well, _) = stopped(process).await;
    assert!(well);
    verified(&folder);
}

/// 17.5, IN-06: a body of more values than anything that is asked has is refused, and those of embeddings may have more.
#[tokio::test]
async fn bodies_of_many_small_values_are_refused_before_they_take_their_memory() {
    let rig = Rig::new(vec![answers()]).await;
    let ones = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
    let bomb = |count: usize| {
        format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}],\"x\":{}}}",
            ones(count)
        )
    };
    let paths = [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/responses",
        "/v1/plan",
        "/v1/conversations",
        "/v1/feedback",
    ];
    let post = async |path: &str, body: String| {
        let request = rig.world.client.post(format!("{}{path}", rig.world.base)).bearer_auth("sk-key");
        Answer::of(request.header("content-type", "application/json").body(body)).await
    };
    for path in paths {
        let refused = post(path, bomb(300_000)).await;
        assert!(refused.status == 400 && refused.text.contains("262144 values"), "{path}: {}", refused.text);
    }
    let vectors = post("/v1/embeddings", format!("{{\"model\":\"m\",\"input\":{}}}", ones(300_000))).await;
    assert!(!vectors.text.contains("values"), "{}", vectors.text);
    let refused = post("/v1/embeddings", format!("{{\"model\":\"m\",\"input\":{}}}", ones(1_100_000))).await;
    assert!(refused.text.contains("1048576 values"), "{}", refused.text);
}

/// 17.1: where nothing is left to pay with, a large body is refused before it is read, and a small one as before.
#[tokio::test]
async fn a_large_body_of_a_key_that_has_spent_everything_is_not_read() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let served = vec![(model("m", EnforcementClass::Native), script)];
    let mut once = tenant("once", 1_000_000_000);
    let limit = TenantLimit::new(Window::Day, Amount::Requests(Count(1)));
    once.terms.limits.push(limit);
    let world = World::new(served, vec![once]).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "1+2" }] });
    world.ask("sk-once", &body).await.good();
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/completions"]
    {
        let mut connection = connect(&world.base).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-once\r\ncontent-type: application/json\r\n\
             content-length: 30000000\r\n\r\n{{"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let said = rest(connection).await;
        assert!(said.starts_with("HTTP/1.1 429") && said.contains("requests"), "{path}: {said}");
    }
    let mut large = body.clone();
    large["messages"][0]["content"] = "1+2 ".repeat(5 << 18).into();
    for _ in 0..5 {
        // A client that sends all of it before it listens gets the answer and no reset.
        assert_eq!(world.ask("sk-once", &large).await.status, 429);
    }
    large["messages"][0]["content"] = "1+2 ".repeat(1 << 15).into();
    assert_eq!(
        world.post("/v1/plan", "sk-once", &large).await.error()["code"],
        "context_length_exceeded",
        "asking is free"
    );
}

/// A limit on one model that is used up leaves the others to be asked, with large bodies too.
#[tokio::test]
async fn a_limit_on_one_model_refuses_nothing_of_another() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let served = ["m", "n"].map(|name| {
        let mut model = model(name, EnforcementClass::Native);
        model.context = stint_types::units::Tokens(1_000_000);
        (model, script.clone())
    });
    let mut part = tenant("part", 1_000_000_000);
    let scope = LimitSelector::Model("n".into());
    let limit = TenantLimit { scope, ..TenantLimit::new(Window::Day, Amount::Requests(Count(1))) };
    part.terms.limits.push(limit);
    let world = World::new(served.into(), vec![part]).await;
    let body = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "1+2 ".repeat(1 << 15) }] });
    world.ask("sk-part", &body("n")).await.good();
    assert_eq!(world.ask("sk-part", &body("n")).await.status, 429);
    world.ask("sk-part", &body("m")).await.good();
}
