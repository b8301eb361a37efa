//! A response as server-sent events: the frame around the items that `EventWriter` writes.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::gateway::{AnsweringModel, RequestReceipt, RequestTask};
use crate::http::body_limiter::SharedBodyPermit;
use crate::http::dialect::StreamWriter;
use crate::http::error::ApiError;
use stint_types::chat::ChoiceEvent;
use stint_types::units::Timestamp;

use super::echo;
use super::event_writer::EventWriter;
use super::output::{ResponsesRenderOptions, visible_items};
use super::recorder::ResponseRecorder;
use super::tool_set::OmittedTools;

/// Writes the events of one response.
pub(super) struct ResponsesStreamWriter {
    /// The response as it is before it ends.
    frame: Value,
    answering: AnsweringModel,
    writer: EventWriter,
    omitted: Arc<OmittedTools>,
    recorder: ResponseRecorder,
    begun: bool,
    /// The last events, once the response has ended and is stored.
    ended: Option<String>,
    /// Holds room for the conversation that it continues, until the stream is over.
    _permits: Vec<SharedBodyPermit>,
}

impl ResponsesStreamWriter {
    pub(super) fn new(
        task: &RequestTask,
        created: Timestamp,
        options: ResponsesRenderOptions,
        echo: &Map<String, Value>,
        recorder: ResponseRecorder,
    ) -> ResponsesStreamWriter {
        let id = task.id();
        let frame = echo::in_progress(id, created, &task.model().name(), recorder.is_stored(), echo);
        ResponsesStreamWriter {
            frame,
            answering: task.model().clone(),
            omitted: options.omitted.clone(),
            writer: EventWriter::new(id, options),
            recorder,
            begun: false,
            ended: None,
            _permits: Vec::new(),
        }
    }

    /// The same, holding these permits until the stream is over.
    pub(super) fn with_permits(self, permits: Vec<SharedBodyPermit>) -> ResponsesStreamWriter {
        ResponsesStreamWriter { _permits: permits, ..self }
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        self.frame["model"] = (*self.answering.name()).into();
        let response = json!({ "response": self.frame });
        let created = self.writer.emit("response.created", response.clone());
        created + &self.writer.emit("response.in_progress", response)
    }

    async fn end(&mut self, receipt: &RequestReceipt) {
        let status = echo::status(receipt);
        let mut text = self.begin();
        text += &self.writer.end(status);
        let (now, items) = (Timestamp::now(), self.writer.items());
        let (frame, shown) = (self.frame.clone(), visible_items(items));
        let mut response = echo::finished(frame, receipt, shown, &self.omitted, now);
        self.recorder.store(receipt, &mut response, items).await;
        text += &self.writer.emit(&format!("response.{status}"), json!({ "response": response }));
        self.ended = Some(text);
    }
}

impl StreamWriter for ResponsesStreamWriter {
    fn write_event(&mut self, _: u32, event: ChoiceEvent) -> String {
        let begun = self.begin();
        begun + &self.writer.write(event)
    }

    fn write_end(&mut self, _: &RequestReceipt) -> String {
        self.ended.take().unwrap_or_default()
    }

    fn before_end<'a>(&'a mut self, receipt: &'a RequestReceipt) -> BoxFuture<'a, ()> {
        self.end(receipt).boxed()
    }

    fn keep_alive(&self) -> &'static str {
        ": thinking\n\n"
    }

    /// What is open is closed. Then there are two events: `error` for clients that look for that, and at the very end
    /// `response.failed` for those that look at the response's state.
    fn write_error(&mut self, problem: &ApiError) -> String {
        let begun = self.begin();
        let closed = self.writer.end("incomplete");
        let error = problem.to_json()["error"].take();
        let code = failed_code(problem.status().as_u16(), error["code"].as_str());
        let mut response = self.frame.clone();
        response["status"] = "failed".into();
        response["store"] = false.into();
        response["conversation"] = Value::Null;
        response["output"] = visible_items(self.writer.items()).into();
        response["error"] = json!({ "code": code, "message": error["message"] });
        let flat = json!({
            "code": error["code"], "message": error["message"], "param": error["param"], "error": error,
        });
        let told = self.writer.emit("error", flat);
        begun + &closed + &told + &self.writer.emit("response.failed", json!({ "response": response }))
    }
}

/// The API has few codes for why a response failed. Agents look for two more.
fn failed_code(status: u16, code: Option<&str>) -> &str {
    match (status, code) {
        (_, Some(code @ ("insufficient_quota" | "context_length_exceeded"))) => code,
        (429, _) => "rate_limit_exceeded",
        (400..=499, _) => "invalid_prompt",
        _ => "server_error",
    }
}
