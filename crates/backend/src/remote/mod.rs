//! Models behind somebody else's HTTP API.
//!
//! Each API is two pure translations (our call to its JSON, its events to our pieces) and a thin piece of I/O.

mod answer_end;
pub mod anthropic;
mod begun_answer;
mod bounded_client;
mod cache_policy;
mod call_ids;
mod caller_headers;
pub(crate) mod caller_options;
mod chunk_joiner;
mod client;
mod connections;
mod connectors;
mod embeddings;
mod event_repair;
mod event_stream;
mod finish_word;
mod forced_tool;
mod form_instruction;
pub mod gemini;
#[cfg(test)]
mod golden;
mod http_client;
mod joined_chunks;
mod json_text;
pub mod llamacpp;
pub mod members;
pub mod model_lister;
pub mod openai;
mod passthrough;
pub mod price_list;
pub mod prompt_cache;
mod rate_limits;
mod refusal;
pub mod responses;
mod secret;
mod settings;
mod silence_policy;
mod sse;
mod stale_connections;
mod stream_output;
mod strict_schema;
mod summary_reader;
#[cfg(test)]
mod tests;
mod timeouts;
mod tls_roots;
mod tool_media;
mod tool_names;
mod transport_error;
mod uncounted;
mod unfenced;
#[cfg(test)]
mod upstream;
mod upstream_response;
mod upstream_url;
mod user_turn;
pub mod vllm;
mod wire;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use serde_json::Value;

use stint_prompt as prompt;
use stint_types::catalog::{ImageTokens, ModelConditions};
use stint_types::chat::{EmbeddingRequest, Request, SigningDomain};
use stint_types::units::Tokens;

use super::speed::{CallTimer, SpeedEstimator};
use super::tool_calls;
use super::{
    Backend, BackendCall, EmbeddingResult, Failure, Generation, Piece, TargetBehavior, Turns,
    UnsupportedFeature,
};

use client::UpstreamClient;
use event_repair::EventRepair;
use event_stream::UpstreamEventStream;
use sse::SseData;
use stream_output::StreamOutput;
use tool_names::{OwnNameReader, ShortToolNames};

pub use cache_policy::{CachePolicy, Caching};
pub use caller_headers::{ANY_BETA, CallerHeaderRules, HARMLESS_BETAS};
pub use connections::Connections;
pub use secret::Secret;
pub use settings::{Auth, LengthenedTimes, Settings, SettingsError};
pub use silence_policy::SilencePolicy;
pub use sse::SseLimits;

/// How long the end of a stream may keep a caller waiting whose answer is whole and counted.
const END_WAIT_MAX: Duration = Duration::from_secs(5);

/// An upstream's API, as two pure translations: our call to what is sent, and its events to our pieces.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// What is sent for a call.
    ///
    /// # Errors
    /// When the API has no words for it; nothing is sent then.
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure>;

    /// What is sent for vectors.
    ///
    /// # Errors
    /// When the API has none, as most.
    fn embed(&self, _: &EmbeddingRequest) -> Result<UpstreamRequest, Failure> {
        Err(Failure::incapable(UnsupportedFeature::Service, "this model makes no embeddings"))
    }

    /// Whether an answer can be asked for in a new turn, behind a thought that was cut.
    fn turns(&self) -> Turns {
        Turns::Never
    }

    /// Why the model cannot think for this request, though it does else.
    fn thinking_ruled_out(&self, _: &Request) -> Option<&'static str> {
        None
    }

    /// What is asked for how many tokens a prompt has, and where the answer says it; nothing if the API has no such
    /// question.
    fn count_request(&self, _: &Arc<Request>) -> Option<(UpstreamRequest, &'static str)> {
        None
    }

    /// Whether it can be asked for an answer in one piece; else all of them come as streams.
    fn answers_whole(&self) -> bool {
        false
    }

    /// Whether it takes names of tools of more than 64 bytes. Others are sent shorter ones.
    fn takes_long_tool_names(&self) -> bool {
        false
    }

    /// Whether it takes the tools that Anthropic's models know by themselves.
    fn takes_anthropic_tools(&self) -> bool {
        false
    }

    /// How it may be silent before it answers a call.
    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        if call.hides_thinking() { SilencePolicy::ThinksBeforeHeaders } else { SilencePolicy::Streams }
    }

    /// What reads the answer to a call.
    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader>;
}

/// What is sent to an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamRequest {
    /// Below the base URL.
    pub path: Cow<'static, str>,
    /// JSON.
    pub body: Value,
    /// Headers of this request alone, in place of what the upstream is usually sent under these names.
    pub headers: Vec<(&'static str, String)>,
}

impl UpstreamRequest {
    /// What is sent with the headers that the upstream is usually sent.
    fn new(path: impl Into<Cow<'static, str>>, body: Value) -> UpstreamRequest {
        UpstreamRequest { path: path.into(), body, headers: Vec::new() }
    }
}

/// One model of an upstream that is asked once for each part: its API between our calls and its connections.
#[derive(Debug)]
pub struct RemoteBackend<P> {
    client: UpstreamClient,
    provider: P,
    speed: SpeedEstimator,
}

impl<P: Provider> RemoteBackend<P> {
    /// The model, not asked anything yet.
    fn with_provider(
        connections: &Connections,
        settings: Settings,
        provider: P,
    ) -> Result<RemoteBackend<P>, SettingsError> {
        Ok(RemoteBackend {
            client: UpstreamClient::new(connections, settings)?,
            provider,
            speed: SpeedEstimator::default(),
        })
    }

    async fn start(&self, call: BackendCall) -> Result<Generation, Failure> {
        if !self.provider.takes_anthropic_tools() {
            tool_calls::refuse_anthropic_tools(&call.request)?;
        }
        let names = if self.provider.takes_long_tool_names() {
            ShortToolNames::default()
        } else {
            ShortToolNames::of(&call.request)
        };
        if names.is_empty() {
            return self.send(call, |reader| reader).await;
        }
        let request = Arc::new(tool_names::shorten(&call.request));
        self.send(BackendCall { request, ..call }, |reader| OwnNameReader { reader, names }).await
    }

    /// Sends a call; `read` is given what reads its answer.
    async fn send<R: EventReader>(
        &self,
        call: BackendCall,
        read: impl FnOnce(Box<dyn EventReader>) -> R,
    ) -> Result<Generation, Failure> {
        let mut sent = self.provider.write_request(&call).map_err(Failure::unsent)?;
        passthrough::add_members(&mut sent.body, &call, self.client.members());
        self.client.separate_cache(&mut sent.body, &call.request);
        if let Some(trace) = &call.request.trace {
            sent.headers.push(("traceparent", trace.parent()));
            sent.headers.extend(trace.state().map(|state| ("tracestate", state.to_owned())));
        }
        let mut lap = self.speed.start();
        let stated = call.request.budget.deadline;
        let events = if call.whole {
            self.client.whole(sent, call.part.tokens_max(), stated).await?
        } else {
            self.client.stream(sent, self.provider.silence_policy(&call), stated).await?
        };
        if call.whole || events.is_whole() {
            lap.mark_whole();
        }
        let events = events.with_token_limit(call.part.tokens_max());
        Ok(generation_stream(events, read(self.provider.reader(&call)), lap, VecDeque::new()))
    }

    async fn count_prompt_tokens(&self, request: &Arc<Request>) -> Option<Tokens> {
        let (sent, at) = self.provider.count_request(request)?;
        let answer = self.client.json(sent).await;
        let answer =
            answer.inspect_err(|error| tracing::debug!(%error, "a prompt's tokens were not counted"));
        answer.ok()?.pointer(at)?.as_u64().map(Tokens)
    }

    async fn embed_inputs(&self, ask: &EmbeddingRequest) -> Result<EmbeddingResult, Failure> {
        let sent = self.provider.embed(ask)?;
        let answer = self.client.bytes(sent).await?;
        embeddings::read(answer, ask.inputs.len()).await
    }
}

impl<P: Provider> Backend for RemoteBackend<P> {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.start(call).boxed()
    }

    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        self.provider.thinking_ruled_out(request)
    }

    fn embed(&self, ask: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        async move { self.embed_inputs(&ask).await }.boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request, &self.images())
    }

    fn images(&self) -> ImageTokens {
        self.client.images()
    }

    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        async move { self.count_prompt_tokens(&request).await }.boxed()
    }

    fn conditions(&self) -> ModelConditions {
        self.speed.conditions()
    }

    fn behavior(&self) -> TargetBehavior {
        let (turns, answers_whole) = (self.provider.turns(), self.provider.answers_whole());
        TargetBehavior { turns, answers_whole, ..TargetBehavior::default() }
    }

    fn origin(&self) -> Option<SigningDomain> {
        Some(self.client.origin())
    }

    fn take_resent(&self) -> u64 {
        self.client.take_resent()
    }

    fn take_exhausted_rate_limits(&self) -> u64 {
        self.client.take_exhausted_rate_limits()
    }
}

/// Turns an upstream's events into pieces. It hands out an [`Piece::End`] once, and last.
pub trait EventReader: fmt::Debug + Send + 'static {
    /// Reads the data of one event. Of an event that is a failure only the usage counts, which says what it costs all the same.
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// The upstream has ended its stream; a failure where it was not complete.
    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// True once nothing of the answer is missing but the end of its stream, so that it may end in any way.
    fn is_complete(&self) -> bool;
}

impl EventReader for Box<dyn EventReader> {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        (**self).read(data, pieces)
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        (**self).close(pieces)
    }

    fn is_complete(&self) -> bool {
        (**self).is_complete()
    }
}

struct RemoteStream<R> {
    events: UpstreamEventStream,
    reader: R,
    timer: CallTimer,
    pieces: VecDeque<Piece>,
    repair: EventRepair,
    /// How it failed, behind the pieces that are left.
    failure: Option<Failure>,
    /// What it has written and counted.
    output: StreamOutput,
    /// Some usage came.
    is_counted: bool,
    is_finished: bool,
}

/// The pieces of a stream that has begun. `first` come before whatever the upstream says.
fn generation_stream<R: EventReader>(
    events: UpstreamEventStream,
    reader: R,
    lap: CallTimer,
    first: VecDeque<Piece>,
) -> Generation {
    // Boxed: the stream moves it with every piece.
    let flow = Box::new(RemoteStream {
        events,
        reader,
        timer: lap,
        pieces: first,
        repair: EventRepair::default(),
        failure: None,
        output: StreamOutput::Nothing,
        is_counted: false,
        is_finished: false,
    });
    Box::pin(stream::unfold(flow, |mut flow| async move {
        let piece = flow.next().await?;
        flow.is_finished |= piece.is_err();
        Some((piece, flow))
    }))
}

impl<R: EventReader> RemoteStream<R> {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        while !self.is_finished && self.pieces.is_empty() {
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            if let Err(failure) = self.advance().await {
                let last = self.pieces.iter().map(StreamOutput::of).max();
                self.output = self.output.max(last.unwrap_or(StreamOutput::Nothing));
                self.pieces.retain(|piece| matches!(piece, Piece::Usage(_)));
                self.failure = Some(self.output.priced(failure));
            }
        }
        let piece = self.pieces.pop_front()?;
        self.output = self.output.max(StreamOutput::of(&piece));
        self.timer.record(&piece);
        match piece {
            Piece::Thought { .. } | Piece::Answer { .. } | Piece::ToolCall(_) => {
                self.events.start_idle_timeout();
            }
            // A thought goes on unseen, perhaps behind some of the answer.
            Piece::Summary(_) => self.events.stop_idle_timeout(),
            _ => {}
        }
        if matches!(piece, Piece::End(_)) {
            self.is_finished = true;
            self.pieces.clear();
            self.events.release().await;
        }
        Some(Ok(piece))
    }

    async fn advance(&mut self) -> Result<(), Failure> {
        let read = match self.next_event().await? {
            Some(event) => match self.reader.read(&event, &mut self.pieces) {
                Ok(()) if self.pieces.is_empty() => refusal::of_unread_event(&event).map_or(Ok(()), Err),
                Ok(()) => {
                    self.is_counted |= self.pieces.iter().any(|piece| matches!(piece, Piece::Usage(_)));
                    return Ok(());
                }
                Err(failure) => self.read_repaired(&event, failure),
            },
            None => self.reader.close(&mut self.pieces),
        };
        read.map_err(|failure| self.events.for_log(failure))
    }

    /// The next event; nothing at the end. Behind a whole answer anything is an end: what breaks there, or is not said, was no part of it.
    async fn next_event(&mut self) -> Result<Option<SseData>, Failure> {
        let is_whole = self.reader.is_complete();
        self.events.limit_wait(if is_whole && self.is_counted { END_WAIT_MAX } else { Duration::MAX });
        match self.events.next().await {
            Err(failure) if is_whole => {
                tracing::debug!(%failure, "an answer was whole before its stream broke off");
                self.events.abandon();
                Ok(None)
            }
            event => event,
        }
    }

    /// Reads an event again whose reader failed, if that may be since not all of it is text.
    fn read_repaired(&mut self, event: &[u8], failure: Failure) -> Result<(), Failure> {
        let Some(repaired) = self.repair.repaired(event) else { return Err(failure) };
        self.pieces.clear();
        self.reader.read(&repaired, &mut self.pieces)
    }
}
