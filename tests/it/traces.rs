//! Traces as a collector gets them.

mod canaries;
mod receiver;

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::{Value, json};

use crate::harness::{Folder, Process};
use receiver::{Receiver, said};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

fn configuration(upstream: &Receiver, traces: &str) -> String {
    let hash = stint_types::tenant::hash_key("sk-canary-of-a-key");
    format!(
        "[traces]\n{traces}\n[[backend]]\nbase_url = '{}/v1'\n[[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '2'\n\
         [[key]]\nname = 'test'\nadmin = true\nhash = '{hash}'\nlimits = [{{ money = '5', per = 'month' }}]\n",
        upstream.base
    )
}

fn question(model: &str) -> Value {
    let content = if model == "reasoner" { "What is 12+34*2?" } else { "canary-of-a-prompt" };
    json!({ "model": model, "messages": [{ "role": "user", "content": content }], "budget": { "thinking_tokens": 8 } })
}

async fn ask(process: &Process, model: &str, headers: &[(&str, &str)]) -> Value {
    let mut body = question(model);
    if model == "m" {
        body.as_object_mut().unwrap().remove("budget");
    }
    let sent = process.request("sk-canary-of-a-key", &body, headers);
    crate::harness::Answer::of(sent).await.good()
}

/// Ends the server, which sends what is left.
async fn end(mut process: Process) {
    process.signal("TERM");
    // The collector is in this process, and answers meanwhile.
    let ended = tokio::task::spawn_blocking(move || process.ended());
    assert!(ended.await.unwrap().success());
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| {
        let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
        panic!("no {name} in {names:?}")
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_request_is_one_trace_with_a_span_for_each_stage() {
    let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
    let traces = format!("endpoint = '{}'\nservice = 'gate'", collector.base);
    let process = Folder::new(&configuration(&upstream, &traces));
    let process = process.serve();
    let answer = ask(&process, "reasoner", &[]).await;
    end(process).await;
    let spans = collector.spans();
    let root = named(&spans, "POST /v1/chat/completions");
    assert_eq!((root.kind(), root.parent_span_id.is_empty()), (SpanKind::Server, true));
    assert!(spans.iter().all(|span| span.trace_id == root.trace_id));
    let attempt = named(&spans, "chat reasoner");
    assert_eq!(attempt.kind(), SpanKind::Client);
    for name in ["read", "demand", "plan", "reserve", "queue", "dispatch", "chat reasoner", "settle"] {
        assert_eq!(named(&spans, name).parent_span_id, root.span_id, "{name}");
    }
    for name in ["think", "solve"] {
        assert_eq!(named(&spans, name).parent_span_id, attempt.span_id, "{name}");
    }
    for span in &spans {
        let (from, to) = (span.start_time_unix_nano, span.end_time_unix_nano);
        assert!(
            root.start_time_unix_nano <= from && from <= to && to <= root.end_time_unix_nano,
            "{}",
            span.name
        );
    }
    let budget = &answer["budget"];
    let (think, solve) = (said(named(&spans, "think")), said(named(&spans, "solve")));
    assert_eq!(think["stint.thinking.budget"], 8);
    assert_eq!(think["stint.thinking.used"], budget["thinking"]["used"]);
    assert_eq!(think["stint.thinking.ended"], "cut");
    assert_eq!(solve["stint.solution.used"], budget["solution"]["used"]);
    let root = said(root);
    assert_eq!(root["stint.cost_usd"], budget["cost_usd"]);
    assert_eq!(
        (&root["http.response.status_code"], &root["stint.outcome"]),
        (&json!(200), &json!("answered"))
    );
    assert_eq!(said(attempt)["gen_ai.usage.input_tokens"], answer["usage"]["prompt_tokens"]);
    assert_eq!(said(attempt)["gen_ai.usage.output_tokens"], answer["usage"]["completion_tokens"]);
    assert!(said(named(&spans, "plan"))["stint.why"].as_str().unwrap().contains("reasoner"));
    assert_eq!(collector.resource()["service.name"], "gate");
}

#[tokio::test]
async fn a_callers_trace_goes_on_here_and_at_the_upstream() {
    let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
    let folder = Folder::new(&configuration(&upstream, &format!("endpoint = '{}'", collector.base)));
    let process = folder.serve();
    let sampled = format!("00-{TRACE}-{CALLER}-01");
    ask(&process, "m", &[("traceparent", &sampled), ("tracestate", "vendor=x")]).await;
    let unsampled = format!("00-{}-{CALLER}-00", TRACE.replace('0', "1"));
    ask(&process, "m", &[("traceparent", &unsampled)]).await;
    end(process).await;
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| hex(&span.trace_id) == TRACE),
        "what its caller does not record is not recorded"
    );
    let root = named(&spans, "POST /v1/chat/completions");
    assert_eq!(hex(&root.parent_span_id), CALLER);
    let attempt = hex(&named(&spans, "chat m").span_id);
    let heard = upstream.header("traceparent");
    assert_eq!(heard[0].as_deref(), Some(&*format!("00-{TRACE}-{attempt}-01")));
    assert!(heard[1].as_deref().unwrap().ends_with("-00"), "{heard:?}");
    assert_eq!(upstream.header("tracestate"), [Some("vendor=x".to_owned()), None]);
}

#[tokio::test]
async fn refusals_are_traces_too() {
    let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
    let folder = Folder::new(&configuration(&upstream, &format!("endpoint = '{}'", collector.base)));
    let process = folder.serve();
    assert_eq!(process.ask("sk-nobodys", &question("m")).await.status, 401);
    assert_eq!(process.ask("sk-canary-of-a-key", &question("unknown")).await.status, 404);
    let mut dear = question("reasoner");
    dear["budget"] = json!({ "cost_usd": "0.000000001" });
    assert!(process.ask("sk-canary-of-a-key", &dear).await.status >= 400);
    end(process).await;
    let roots: Vec<Value> =
        collector.spans().iter().filter(|span| span.kind() == SpanKind::Server).map(said).collect();
    let statuses: Vec<&Value> = roots.iter().map(|root| &root["http.response.status_code"]).collect();
    assert_eq!(statuses.len(), 3, "{roots:?}");
    assert!(
        roots.iter().all(|root| root["stint.outcome"] == "refused" && root["error.type"].is_string()),
        "{roots:?}"
    );
    assert_eq!(roots[1]["stint.refused_by"], "model");
}

#[tokio::test]
async fn nothing_that_anybody_wrote_is_in_what_a_collector_gets() {
    let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
    let folder = Folder::new(&configuration(&upstream, &format!("endpoint = '{}'", collector.base)));
    let process = folder.serve();
    let answer = ask(&process, "m", &[]).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "canary-of-an-answer");
    process.ask("sk-canary-of-another", &question("m")).await;
    end(process).await;
    assert!(collector.has("chat m"), "it got something");
    assert!(!collector.has("canary"), "{:?}", collector.spans());
}

#[tokio::test]
async fn a_collector_may_speak_grpc_and_want_a_header() {
    let (collector, upstream) = (Receiver::over_grpc().await, Receiver::upstream());
    let traces = format!("endpoint = '{}'\nprotocol = 'grpc'\nheaders_file = 'headers'", collector.base);
    let folder = Folder::new(&configuration(&upstream, &traces));
    std::fs::write(folder.path().join("headers"), "authorization=Bearer%20secret\n").unwrap();
    let process = folder.serve();
    ask(&process, "m", &[]).await;
    end(process).await;
    assert_eq!(named(&collector.spans(), "chat m").kind(), SpanKind::Client);
    assert_eq!(collector.header("authorization"), [Some("Bearer secret".to_owned())]);
}

#[tokio::test]
async fn a_collector_that_is_not_there_delays_nothing_and_is_counted() {
    let upstream = Receiver::upstream();
    let (silent, _heard) = crate::operating::silent_upstream();
    let traces = format!("endpoint = '{}'\nqueue_max = 1\ntimeout = '60s'", silent.trim_end_matches("/v1"));
    let folder = Folder::new(&configuration(&upstream, &traces));
    let process = folder.serve();
    let dropped = async {
        loop {
            ask(&process, "m", &[]).await;
            let page = process.get("sk-canary-of-a-key", "/metrics").await.text;
            if !page.contains("stint_traces_total{outcome=\"dropped\"} 0") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), dropped)
        .await
        .expect("what has no room is dropped and counted");
    let gone = Folder::new(&configuration(&upstream, "endpoint = 'http://127.0.0.1:9'\ntimeout = '2s'"));
    let process = gone.serve();
    ask(&process, "m", &[]).await;
    process.logged("the collector takes no traces").await;
}

#[tokio::test]
async fn the_usual_variables_are_enough() {
    let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
    let folder = Folder::new(&configuration(&upstream, ""));
    let mut stint = folder.stint("serve");
    stint.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.base).env("OTEL_SERVICE_NAME", "named");
    stint.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    let process = folder.serve_by(stint);
    ask(&process, "m", &[]).await;
    end(process).await;
    let root = collector.spans();
    assert_eq!(
        named(&root, "POST /v1/chat/completions").status.as_ref().map(Status::code),
        Some(StatusCode::Unset)
    );
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "named");
    assert_eq!(resource["deployment.environment.name"], "test");
}
