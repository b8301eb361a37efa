//! What one API (chat completions, Messages, Responses) has to know to write an answer. `answer` and `events` call it; the
//! implementations stand in the folder of each API.

use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::gateway::{RequestReceipt, RequestTask};
use stint_types::chat::ChoiceEvent;
use stint_types::units::{RequestId, Timestamp};

use super::collected_choice::CollectedChoice;
use super::error::ApiError;

/// How an API writes answers.
pub(super) trait ApiDialect {
    /// The endpoint's name. It is part of an idempotency key's fingerprint, since two endpoints may take the same body.
    fn endpoint(&self) -> &'static str;

    /// The whole answer as the text of one object. It may store the answer first.
    fn render(
        &self,
        receipt: &RequestReceipt,
        choices: Vec<CollectedChoice>,
        created: Timestamp,
    ) -> impl Future<Output = String> + Send;

    /// What writes the answer as events.
    fn stream_writer(&self, task: &RequestTask, created: Timestamp) -> Box<dyn StreamWriter>;

    /// An error in the API's own form.
    fn error_response(&self, problem: ApiError, id: RequestId) -> Response;
}

/// Writes the events of one answer.
pub(super) trait StreamWriter: Send {
    /// The text that one event of a choice puts on the wire; empty for what is not shown.
    fn write_event(&mut self, choice: u32, event: ChoiceEvent) -> String;

    /// The text at the end of the answer.
    fn write_end(&mut self, receipt: &RequestReceipt) -> String;

    /// What has to be done before the end is sent.
    fn before_end<'a>(&'a mut self, _: &'a RequestReceipt) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    /// What keeps a silent stream alive and is skipped by clients.
    fn keep_alive(&self) -> &'static str;

    /// The event of an error, after which nothing comes: a clean end would look like success.
    fn write_error(&mut self, problem: &ApiError) -> String;
}
