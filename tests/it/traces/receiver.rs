//! A collector made from the protocol's own definitions, over HTTP and over gRPC; and an upstream that notes what heads it is sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// What came, and with what head.
type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server of this test. It ends with the test.
pub(super) struct Receiver {
    pub(super) base: String,
    received: Received,
    _tasks: Tasks,
}

fn serve(router: Router) -> (String, Tasks) {
    let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
    let (tasks, bound) = (Tasks::default(), http::bind(([127, 0, 0, 1], 0).into()).unwrap());
    let base = format!("http://{}", bound.address());
    let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
    tasks.spawn(server.serve(bound, router));
    (base, tasks)
}

impl Receiver {
    pub(super) fn answering(
        path: &str,
        answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
    ) -> Receiver {
        let received = Received::default();
        let kept = received.clone();
        let take = move |headers: HeaderMap, body: Bytes| async move {
            kept.lock().unwrap().push((headers, body));
            answer()
        };
        let (base, tasks) = serve(Router::new().route(path, post(take)));
        Receiver { base, received, _tasks: tasks }
    }

    /// A collector over HTTP.
    pub(super) fn over_http() -> Receiver {
        Receiver::answering("/v1/traces", || Body::empty().into_response())
    }

    /// An upstream that answers with one word.
    pub(super) fn upstream() -> Receiver {
        let chunk = |choices: Value, usage: Value| {
            let chunk = json!({
                "id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices, "usage": usage,
            });
            format!("data: {chunk}\n\n")
        };
        let word = json!([{ "index": 0, "delta": { "role": "assistant", "content": "canary-of-an-answer" }, "finish_reason": null }]);
        let stop = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
        let usage = json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12 });
        let events = [chunk(word, Value::Null), chunk(stop, usage), "data: [DONE]\n\n".to_owned()].concat();
        Receiver::answering("/v1/chat/completions", move || {
            ([("content-type", "text/event-stream")], events.clone()).into_response()
        })
    }

    /// A collector over gRPC.
    pub(super) async fn over_grpc() -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (received, tasks) = (Received::default(), Tasks::default());
        let kept = received.clone();
        tasks.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let mut connection = h2::server::handshake(connection).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let kept = kept.clone();
                    tokio::spawn(async move {
                        let (head, mut body) = request.into_parts();
                        assert_eq!(
                            head.uri.path(),
                            "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
                        );
                        let mut bytes = Vec::new();
                        while let Some(Ok(chunk)) = body.data().await {
                            body.flow_control().release_capacity(chunk.len()).unwrap();
                            bytes.extend_from_slice(&chunk);
                        }
                        // A flag and four bytes of length stand before the message.
                        kept.lock().unwrap().push((head.headers, Bytes::from(bytes.split_off(5))));
                        let head = axum::http::Response::builder().header("content-type", "application/grpc");
                        let mut answer = respond.send_response(head.body(()).unwrap(), false).unwrap();
                        answer.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
                        let ok =
                            HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
                        answer.send_trailers(ok).unwrap();
                    });
                }
            }
        });
        Receiver { base, received, _tasks: tasks }
    }

    /// Every span that came.
    pub(super) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let messages = received.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&**body).unwrap());
        let resources = messages.flat_map(|message| message.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// What every span says of its server.
    pub(super) fn resource(&self) -> Value {
        let received = self.received.lock().unwrap();
        let message = ExportTraceServiceRequest::decode(&*received.first().unwrap().1).unwrap();
        attributes(&message.resource_spans[0].resource.as_ref().unwrap().attributes)
    }

    /// A header of each request that came.
    pub(super) fn header(&self, name: &str) -> Vec<Option<String>> {
        let received = self.received.lock().unwrap();
        let text =
            |(headers, _): &(HeaderMap, Bytes)| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        received.iter().map(text).collect()
    }

    /// Whether these bytes are anywhere in what came.
    pub(super) fn has(&self, text: &str) -> bool {
        let received = self.received.lock().unwrap();
        let is_in = |body: &Bytes| body.windows(text.len()).any(|window| window == text.as_bytes());
        received.iter().any(|(_, body)| is_in(body))
    }
}

/// What a span says.
pub(super) fn said(span: &Span) -> Value {
    attributes(&span.attributes)
}

fn attributes(attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue]) -> Value {
    let value = |value: Option<&Any>| match value {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::BoolValue(is)) => json!(is),
        other => panic!("{other:?}"),
    };
    let each = attributes
        .iter()
        .map(|it| (it.key.clone(), value(it.value.as_ref().and_then(|value| value.value.as_ref()))));
    Value::Object(each.collect())
}
