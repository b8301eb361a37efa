//! Hooks that judge requests and answers: the real binary and real hooks over HTTP, which allow, refuse, rewrite, dawdle and fail.

use serde_json::{Value, json};

use crate::harness::hook::{Does, Hook};
use crate::harness::{Answer, Deployment, Folder, Process, Says};

const SECRET: &str = "the-secret-of-the-guardrail";

/// A gateway with a hook, over an upstream of ten tokens.
struct Guarded {
    hook: Hook,
    upstream: Deployment,
    folder: Folder,
}

impl Guarded {
    async fn new(does: Does, more: &str) -> (Guarded, Process) {
        let (hook, upstream) = (Hook::start(does), Deployment::always(Says::tokens(10)).await);
        let hash = |key: &str| stint_types::tenant::hash_key(key);
        let folder = Folder::new(&format!(
            "[engine]\nembedded = false\n[[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"m\"\n\
             price_input = \"1\"\nprice_output = \"1\"\n\
             [[key]]\nname = \"alice\"\naccount = \"acme\"\nrole = \"read\"\nhash = \"{}\"\n\
             [[key]]\nname = \"bob\"\nhash = \"{}\"\n\
             [[guardrail]]\nname = \"judge\"\nurl = \"{}\"\nsecret_file = \"guard.secret\"\ndeadline = \"300ms\"\n{more}",
            upstream.base,
            hash("sk-alice"),
            hash("sk-bob"),
            hook.url
        ));
        std::fs::write(folder.path().join("guard.secret"), SECRET).unwrap();
        let process = folder.serve();
        (Guarded { hook, upstream, folder }, process)
    }
}

fn say(verdict: Value) -> Does {
    Does::Says(verdict)
}

/// The same question by each API, streamed or not.
const APIS: [(&str, bool); 6] = [
    ("/v1/chat/completions", false),
    ("/v1/chat/completions", true),
    ("/v1/messages", false),
    ("/v1/messages", true),
    ("/v1/responses", false),
    ("/v1/responses", true),
];

async fn ask(process: &Process, key: &str, (path, stream): (&str, bool), text: &str) -> Answer {
    let body = if path == "/v1/responses" {
        json!({ "model": "m", "input": text, "stream": stream })
    } else {
        json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": text }], "stream": stream })
    };
    send(process, key, path, &body, &[]).await
}

async fn send(process: &Process, key: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let request = process.client.post(format!("{}{path}", process.base)).bearer_auth(key);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

async fn metric(process: &Process, series: &str) -> f64 {
    let text = process.get("sk-alice", "/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).trim().parse().unwrap()
}

async fn spent(process: &Process) -> String {
    let usage = process.get("sk-bob", "/v1/usage").await.good();
    usage["data"][0]["spent_usd"].as_str().unwrap_or("0").to_owned()
}

#[tokio::test]
async fn a_request_that_is_refused_reaches_no_model_and_costs_nothing() {
    let refuse = json!({ "verdict": "refuse", "message": "no names, please" });
    let (guarded, process) = Guarded::new(say(refuse), "stages = [\"before\"]\n").await;
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "My name is Bob").await;
        assert_eq!(answer.status, 400, "{api:?}: {}", answer.text);
        assert!(answer.text.contains("no names, please"), "{}", answer.text);
        if api.0 != "/v1/messages" {
            assert_eq!(answer.error()["code"], "guardrail_refused");
        }
    }
    assert_eq!((guarded.upstream.asked(), spent(&process).await.as_str()), (0, "0"));
    let refused = "stint_guardrail_verdicts_total{guardrail=\"judge\",stage=\"before\",verdict=\"refuse\"}";
    assert!((metric(&process, refused).await - 6.0).abs() < 0.1);
    assert!(
        (metric(&process, "stint_guardrail_seconds_count{guardrail=\"judge\",stage=\"before\"}").await - 6.0)
            .abs()
            < 0.1
    );
}

#[tokio::test]
async fn a_rewritten_request_is_what_the_model_gets() {
    let rewrite =
        json!({ "verdict": "rewrite", "messages": [{ "index": 0, "content": "My name is [name]" }] });
    let (guarded, process) = Guarded::new(say(rewrite), "stages = [\"before\"]\n").await;
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "My name is Bob").await;
        assert_eq!(answer.status, 200, "{api:?}: {}", answer.text);
    }
    let log = guarded.upstream.log();
    assert_eq!(log.len(), 6);
    for served in log {
        let text = served.messages.to_string();
        assert!(text.contains("[name]") && !text.contains("Bob"), "{text}");
    }
    // One that has grown is measured and set aside as if its caller had written it.
    let long = "word ".repeat(200_000);
    guarded.hook.now(say(json!({ "verdict": "rewrite", "messages": [{ "index": 0, "content": long }] })));
    let answer = ask(&process, "sk-bob", APIS[0], "My name is Bob").await;
    let reserved = answer.good()["budget"]["reserved_usd"].as_str().unwrap().parse::<f64>().unwrap();
    assert!(reserved > 1.0, "{}", answer.text);
}

#[tokio::test]
async fn an_answer_is_held_back_until_it_was_judged() {
    let (guarded, process) = Guarded::new(say(json!({ "verdict": "allow" })), "stages = [\"after\"]\n").await;
    let mut plain = Vec::new();
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "Hello").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        plain.push(answer.text);
    }
    let said = guarded.hook.seen()[0]["choices"][0]["answer"].as_str().unwrap().to_owned();
    assert!(!said.is_empty() && plain[0].contains(&said), "{}", plain[0]);
    assert!(guarded.hook.seen().iter().all(|seen| seen.get("messages").is_none()), "an answer alone");
    let rewrite =
        json!({ "verdict": "rewrite", "choices": [{ "index": 0, "answer": "[withheld by policy]" }] });
    guarded.hook.now(say(rewrite));
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "Hello").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(
            answer.text.contains("[withheld by policy]") && !answer.text.contains(&said),
            "{}",
            answer.text
        );
    }
    let before = spent(&process).await;
    guarded.hook.now(say(json!({ "verdict": "refuse" })));
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "Hello").await;
        assert_eq!(answer.status, 400, "{api:?}: {}", answer.text);
        assert!(!answer.text.contains(&said), "{}", answer.text);
        assert_eq!(answer.headers["x-should-retry"], "false");
    }
    assert_ne!(spent(&process).await, before, "what was generated is paid for");
    assert_eq!(guarded.upstream.asked(), 18);
}

#[tokio::test]
async fn where_a_hook_does_not_judge_the_operator_has_chosen() {
    for (policy, status) in [("open", 200), ("closed", 503)] {
        let more = format!("stages = [\"before\"]\non_failure = \"{policy}\"\n");
        let (guarded, process) = Guarded::new(Does::Fails, &more).await;
        for does in [Does::Fails, Does::Dawdles, say(json!({ "verdict": "perhaps" })), say(json!("allow"))] {
            guarded.hook.now(does.clone());
            let answer = ask(&process, "sk-bob", APIS[0], "Hello").await;
            assert_eq!(answer.status, status, "{does:?}: {}", answer.text);
        }
        let late =
            "stint_guardrail_verdicts_total{guardrail=\"judge\",stage=\"before\",verdict=\"too_late\"}";
        assert!((metric(&process, late).await - 1.0).abs() < 0.1);
    }
    let (guarded, process) = Guarded::new(Does::Dawdles, "stages = [\"after\"]\n").await;
    for api in APIS {
        let answer = ask(&process, "sk-bob", api, "Hello").await;
        // Anthropic has a status of its own.
        let expected = if api.0 == "/v1/messages" { 529 } else { 503 };
        assert_eq!(answer.status, expected, "{}", answer.text);
    }
    assert_eq!(guarded.upstream.asked(), 6);
}

#[tokio::test]
async fn a_hook_sees_what_it_is_for_alone_and_can_tell_who_calls() {
    let more = "stages = [\"before\", \"after\"]\naccounts = [\"acme\"]\n";
    let (guarded, process) = Guarded::new(say(json!({ "verdict": "allow" })), more).await;
    ask(&process, "sk-bob", APIS[0], "the canary of Bob").await.good();
    assert!(guarded.hook.seen().is_empty(), "of another account");
    ask(&process, "sk-alice", APIS[0], "Hello").await.good();
    let seen = guarded.hook.seen();
    assert_eq!(
        (&seen[0]["stage"], &seen[1]["stage"], &seen[0]["account"]),
        (&json!("before"), &json!("after"), &json!("acme/alice"))
    );
    assert_eq!(seen[0]["messages"][0]["content"], "Hello");
    let (headers, body) = guarded.hook.seen.lock().unwrap()[0].clone();
    let signature = headers["stint-signature"].to_str().unwrap().to_owned();
    let (moment, code) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    assert!(moment.parse::<u64>().is_ok() && code.len() == 64, "{signature}");
    assert_eq!(code, hmac(&format!("{moment}.{body}")));
    assert!(!headers.contains_key("authorization"));
    let log = process.lines("").join("\n");
    assert!(!log.contains(SECRET) && !log.contains("canary"), "{log}");
    drop(guarded.folder);
}

#[tokio::test]
async fn an_idempotency_key_leads_round_no_hook() {
    let (guarded, process) =
        Guarded::new(say(json!({ "verdict": "refuse" })), "stages = [\"after\"]\n").await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] });
    for stream in [false, true] {
        let mut body = body.clone();
        body["stream"] = stream.into();
        let headers = [("idempotency-key", if stream { "b" } else { "a" })];
        for _ in 0..2 {
            let answer = send(&process, "sk-bob", APIS[0].0, &body, &headers).await;
            assert_eq!(answer.error()["code"], "guardrail_refused", "{}", answer.text);
        }
    }
    assert_eq!(guarded.upstream.asked(), 2, "a repeat gets what was judged");
}

#[tokio::test]
async fn an_answer_that_nobody_could_judge_is_no_answer_to_a_repeat() {
    let (guarded, process) = Guarded::new(Does::Fails, "stages = [\"after\"]\n").await;
    for stream in [false, true] {
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }], "stream": stream });
        let headers = [("idempotency-key", if stream { "b" } else { "a" })];
        guarded.hook.now(Does::Fails);
        let unjudged = send(&process, "sk-bob", APIS[0].0, &body, &headers).await;
        assert_eq!((unjudged.status, &unjudged.error()["code"]), (503, &json!("guardrail_unavailable")));
        guarded.hook.now(say(json!({ "verdict": "allow" })));
        let mut repeat = send(&process, "sk-bob", APIS[0].0, &body, &headers).await;
        while repeat.error()["code"] == "idempotency_in_flight" {
            // How it ended is still on its way to the records.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            repeat = send(&process, "sk-bob", APIS[0].0, &body, &headers).await;
        }
        assert_eq!((repeat.status, &repeat.error()["code"]), (409, &json!("idempotency_interrupted")));
    }
    assert_eq!(guarded.upstream.asked(), 2, "and nothing is charged twice");
}

#[tokio::test]
async fn what_is_refused_for_free_asks_no_hook() {
    let more =
        "stages = [\"before\"]\n[[account]]\nname = \"acme\"\nlimits = [{ requests = 1, per = \"day\" }]\n";
    let (guarded, process) = Guarded::new(say(json!({ "verdict": "allow" })), more).await;
    let asks = async |model: &str, stated: Value| {
        let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": "Hello" }] });
        body.as_object_mut().unwrap().extend(stated.as_object().unwrap().clone());
        let answer = send(&process, "sk-alice", APIS[0].0, &body, &[]).await;
        (answer.status, guarded.hook.seen().len())
    };
    assert_eq!(asks("nothing-of-that-name", json!({})).await, (404, 0));
    assert_eq!(asks("m", json!({ "n": 100 })).await, (400, 0));
    assert_eq!(asks("m", json!({ "budget": { "cost_usd": "0.000000001" } })).await, (400, 0));
    assert_eq!(asks("m", json!({})).await, (200, 1));
    assert_eq!(asks("m", json!({})).await, (429, 1), "its one request is spent");
    let refused = "stint_requests_total{model=\"none\",outcome=\"refused\",route=\"m\"}";
    assert!((metric(&process, refused).await - 3.0).abs() < 0.1, "they count like others");
}

#[tokio::test]
async fn a_stream_that_is_judged_for_long_is_kept_alive() {
    let more = "stages = [\"after\"]\n[server]\nheartbeat = \"100ms\"\n";
    let (_guarded, process) = Guarded::new(Does::Dawdles, more).await;
    let answer = ask(&process, "sk-bob", APIS[1], "Hello").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("\n: ") || answer.text.starts_with(':'), "{}", answer.text);
    assert!(answer.text.contains("guardrail_unavailable"), "{}", answer.text);
}

/// HMAC-SHA-256 with the hook's secret, as the standard writes it.
fn hmac(text: &str) -> String {
    use std::io::Write;
    let mut openssl = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", SECRET, "-r"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    openssl.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let printed = String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap();
    printed.split_whitespace().next().unwrap().to_owned()
}
