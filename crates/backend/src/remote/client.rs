//! The HTTP client of an upstream: no redirects, no proxy but the configured one, no credentials but ours, and a limit on
//! every wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use serde_json::Value;
use tokio::time::Instant;

use crate::{Failure, Fault};
use stint_types::catalog::{ImageTokens, MemberRules, Model};
use stint_types::chat::{Request, SigningDomain};
use stint_types::tasks::{text_bytes, write_json};
use stint_types::units::Tokens;

use super::connections::{ConnectionPool, Connections};
use super::event_stream::UpstreamEventStream;
use super::http_client::HttpClient;
use super::settings::{Settings, SettingsError};
use super::silence_policy::SilencePolicy;
use super::timeouts::UpstreamTimeouts;
use super::transport_error::TransportError;
use super::upstream_response::UpstreamResponse;
use super::upstream_url::UpstreamUrls;
use super::{UpstreamRequest, prompt_cache, rate_limits, refusal};

/// What a token of an answer takes that comes in one piece, before its upstream is taken to have stalled.
const TOKEN_TIME_MAX: Duration = Duration::from_millis(100);

/// One model's client of an upstream.
#[derive(Debug, Clone)]
pub(super) struct UpstreamClient {
    pool: Arc<ConnectionPool>,
    /// Requests that were sent once more and not reported yet.
    resent: Arc<AtomicU64>,
    /// Answers that reported an exhausted rate limit and were not counted yet.
    exhausted_rate_limits: Arc<AtomicU64>,
    urls: UpstreamUrls,
    settings: Settings,
}

impl UpstreamClient {
    /// A client that has not asked yet.
    pub(super) fn new(
        connections: &Connections,
        settings: Settings,
    ) -> Result<UpstreamClient, SettingsError> {
        let base = settings.parsed_base_url()?;
        Ok(UpstreamClient {
            pool: connections.pool(&base, &settings)?,
            resent: Arc::default(),
            exhausted_rate_limits: Arc::default(),
            urls: UpstreamUrls::new(base),
            settings,
        })
    }

    /// Who can verify what is signed there.
    pub(super) fn origin(&self) -> SigningDomain {
        self.settings.origin()
    }

    /// Which members it is sent that the gateway gives no meaning to.
    pub(super) fn members(&self) -> &MemberRules {
        &self.settings.members
    }

    /// What an image costs the model at most.
    pub(super) fn images(&self) -> ImageTokens {
        self.settings.images
    }

    /// Keeps accounts apart in the upstream's prompt cache.
    pub(super) fn separate_cache(&self, body: &mut Value, request: &Request) {
        prompt_cache::separate(body, request, &self.settings);
    }

    /// How many requests were sent once more since this was last asked.
    pub(super) fn take_resent(&self) -> u64 {
        self.resent.swap(0, Ordering::Relaxed)
    }

    /// How many answers since the last call of this reported an exhausted rate limit.
    pub(super) fn take_exhausted_rate_limits(&self) -> u64 {
        self.exhausted_rate_limits.swap(0, Ordering::Relaxed)
    }

    /// Asks for an event stream; resolves when the upstream has begun one, or has sent its answer in one piece all the same. Its
    /// caller may have stated a deadline.
    pub(super) async fn stream(
        &self,
        asked: UpstreamRequest,
        silence: SilencePolicy,
        stated: Option<Duration>,
    ) -> Result<UpstreamEventStream, Failure> {
        let deadline = Instant::now() + self.settings.total_within(stated);
        let first_byte = match silence {
            SilencePolicy::Streams | SilencePolicy::ThinksInStream => self.settings.first_byte_within(stated),
            SilencePolicy::ThinksBeforeHeaders => Duration::MAX,
        };
        let timeouts = UpstreamTimeouts { idle: first_byte, deadline };
        let response = self.send(&self.pool.streams, asked, "text/event-stream", timeouts).await?;
        if refusal::is_json(response.headers()) {
            return self.read_whole(response, timeouts).await;
        }
        refusal::require_stream(response.headers())?;
        let idle = match silence {
            SilencePolicy::Streams => self.settings.idle,
            SilencePolicy::ThinksInStream | SilencePolicy::ThinksBeforeHeaders => Duration::MAX,
        };
        let timeouts = UpstreamTimeouts { idle, deadline };
        Ok(UpstreamEventStream::new(response, &self.settings, timeouts))
    }

    /// Asks for an answer of at most so many tokens in one piece; resolves when all of it is there. Until then the upstream is silent,
    /// as long as a slow model takes to write it. A deadline that the caller has `stated` lengthens what nobody wrote.
    pub(super) async fn whole(
        &self,
        asked: UpstreamRequest,
        tokens: Tokens,
        stated: Option<Duration>,
    ) -> Result<UpstreamEventStream, Failure> {
        let deadline = Instant::now() + self.settings.total_within(stated);
        // One that is expected to be longer is asked for as a stream, whatever its limit.
        let likely = tokens.min(Model::WHOLE_MAX);
        let writing = TOKEN_TIME_MAX.saturating_mul(u32::try_from(likely.0).unwrap_or(u32::MAX));
        let idle = self.settings.first_byte_within(stated).saturating_add(writing);
        let timeouts = UpstreamTimeouts { idle, deadline };
        let response = self.send(&self.pool.whole, asked, "application/json", timeouts).await?;
        // Some stream whatever they are asked for.
        if refusal::is_stream(response.headers()) {
            return Ok(UpstreamEventStream::new(response, &self.settings, timeouts));
        }
        self.read_whole(response, timeouts).await
    }

    /// Reads an answer in one piece to its end: only then it is known whether it is one.
    async fn read_whole(
        &self,
        mut response: UpstreamResponse,
        timeouts: UpstreamTimeouts,
    ) -> Result<UpstreamEventStream, Failure> {
        let body = self.read_answer(&mut response, timeouts).await?;
        Ok(UpstreamEventStream::new_whole(response, body, &self.settings, timeouts))
    }

    /// The body of a success, unless that is an error.
    async fn read_answer(
        &self,
        response: &mut UpstreamResponse,
        timeouts: UpstreamTimeouts,
    ) -> Result<Vec<u8>, Failure> {
        let body = read_body(response, self.settings.limits.event, timeouts).await?;
        match refusal::of_success(&body) {
            Some(failure) => Err(self.for_log(failure)),
            None => Ok(body),
        }
    }

    fn for_log(&self, failure: Failure) -> Failure {
        refusal::for_log(failure, self.settings.api_key.as_ref(), self.settings.logs_messages)
    }

    /// Asks for one JSON value that no model has to work for.
    pub(super) async fn json(&self, asked: UpstreamRequest) -> Result<Value, Failure> {
        let bytes = self.bytes_within(asked, self.settings.first_byte_without_model()).await?;
        serde_json::from_slice(&bytes).map_err(|_| Failure::new(Fault::Backend, "the upstream sent no JSON"))
    }

    /// Asks for one JSON value of what not every such server offers; nothing where it does not, or not to us (403, 404, 405).
    pub(super) async fn json_if_offered(&self, asked: UpstreamRequest) -> Result<Option<Value>, Failure> {
        let deadline = Instant::now() + self.settings.total;
        let timeouts = UpstreamTimeouts { idle: self.settings.first_byte_without_model(), deadline };
        let response = self.respond(&self.pool.whole, asked, "application/json", timeouts).await?;
        if matches!(response.status().as_u16(), 403..=405) {
            return Ok(None);
        }
        let mut response = self.require_success(response, deadline).await?;
        let body = self.read_answer(&mut response, timeouts).await?;
        let value = serde_json::from_slice(&body);
        value.map(Some).map_err(|_| Failure::new(Fault::Backend, "the upstream sent no JSON"))
    }

    /// Asks for one JSON value; its bytes.
    pub(super) async fn bytes(&self, asked: UpstreamRequest) -> Result<Vec<u8>, Failure> {
        self.bytes_within(asked, self.settings.first_byte).await
    }

    async fn bytes_within(&self, asked: UpstreamRequest, first_byte: Duration) -> Result<Vec<u8>, Failure> {
        let deadline = Instant::now() + self.settings.total;
        let first_byte = UpstreamTimeouts { idle: first_byte, deadline };
        let mut response = self.send(&self.pool.whole, asked, "application/json", first_byte).await?;
        let timeouts = UpstreamTimeouts { idle: self.settings.idle, deadline };
        self.read_answer(&mut response, timeouts).await
    }

    /// Reads one JSON value that is there without asking for it.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let timeouts = UpstreamTimeouts {
            idle: self.settings.idle,
            deadline: Instant::now() + self.settings.first_byte_without_model(),
        };
        let url = self.urls.below(path).map_err(|error| transport_failure(&error))?;
        let response = timeouts.wait(self.pool.whole.get(&url), "did not answer").await?;
        let mut response = response.map_err(|error| transport_failure(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal_failure(response, timeouts.deadline).await);
        }
        refusal::require_uncompressed(response.headers())?;
        let bytes = read_body(&mut response, self.settings.limits.event, timeouts).await?;
        serde_json::from_slice(&bytes).map_err(|_| Failure::new(Fault::Backend, "the upstream sent no JSON"))
    }

    async fn send(
        &self,
        http: &HttpClient,
        sent: UpstreamRequest,
        accept: &'static str,
        first_byte: UpstreamTimeouts,
    ) -> Result<UpstreamResponse, Failure> {
        let response = self.respond(http, sent, accept, first_byte).await?;
        self.require_success(response, first_byte.deadline).await
    }

    /// The head of an answer, whatever it is.
    async fn respond(
        &self,
        http: &HttpClient,
        sent: UpstreamRequest,
        accept: &'static str,
        first_byte: UpstreamTimeouts,
    ) -> Result<UpstreamResponse, Failure> {
        let UpstreamRequest { path, body, headers } = sent;
        let about = text_bytes(&body);
        let body = write_json(body, about)
            .await
            .map_err(|_| Failure::new(Fault::Backend, "the request cannot be written as JSON").unsent())?;
        let body = Bytes::from(body);
        let sending = self.pool.connect_tracker.start_send();
        let url = self.urls.below(&path).map_err(|error| transport_failure(&error).unsent())?;
        let asked = http.post(&url, accept, &headers, body.clone());
        let mut answered = self.wait_for_head(first_byte, asked).await?;
        let is_to_be_resent =
            |error| is_left_out(error) || (self.settings.sent_too && sending.was_lost(error));
        if answered.as_ref().is_err_and(is_to_be_resent) {
            self.resent.fetch_add(1, Ordering::Relaxed);
            let asked = self.pool.fresh.post(&url, accept, &headers, body);
            answered = self.wait_for_head(first_byte, asked).await?;
        }
        answered.map_err(|error| transport_failure(&error))
    }

    /// The answer, if it is one.
    async fn require_success(
        &self,
        response: UpstreamResponse,
        deadline: Instant,
    ) -> Result<UpstreamResponse, Failure> {
        if response.status().is_success() {
            refusal::require_api_answer(response.status(), response.headers())?;
            refusal::require_uncompressed(response.headers())?;
            let is_exhausted = rate_limits::is_rate_limit_exhausted(response.headers());
            self.exhausted_rate_limits.fetch_add(u64::from(is_exhausted), Ordering::Relaxed);
            return Ok(response);
        }
        Err(self.refusal_failure(response, deadline).await)
    }

    /// Waits for the head of an answer. A server that reads for long is not asked again: it may still be at it.
    async fn wait_for_head<T>(
        &self,
        first_byte: UpstreamTimeouts,
        asked: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        // What no model works on has a limit that nobody can set.
        let answered = if first_byte.idle < self.settings.first_byte {
            first_byte.wait(asked, "did not answer").await
        } else {
            first_byte.wait_for_head(asked).await
        };
        answered
            .map_err(|failure| if self.settings.reads_for_long { failure.retry_elsewhere() } else { failure })
    }

    async fn refusal_failure(&self, mut response: UpstreamResponse, deadline: Instant) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let timeouts = UpstreamTimeouts { idle: self.settings.idle.min(Duration::from_secs(5)), deadline };
        // A refusal without a readable body is still a refusal.
        let body = read_body(&mut response, 64 << 10, timeouts).await.unwrap_or_default();
        self.for_log(refusal::of_status(status.as_u16(), &headers, &body, self.settings.retry_after_max))
    }
}

/// A request that no answer came to. Over HTTP/2 an upstream can say that nothing has looked at it.
fn transport_failure(error: &TransportError) -> Failure {
    let failure = refusal::of_transport(error);
    let is_refused = h2_error(error).is_some_and(|error| error.reason() == Some(Reason::REFUSED_STREAM));
    if is_refused || is_left_out(error) { failure.unsent() } else { failure }
}

/// Whether the upstream ended its connection in order (GOAWAY without an error) and this request came too late for that: it
/// was not looked at, and another connection will take it (RFC 9113, 6.8). Load balancers do so now and then, as does every
/// server that is restarted.
fn is_left_out(error: &TransportError) -> bool {
    h2_error(error).is_some_and(|error| {
        error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
    })
}

fn h2_error(error: &TransportError) -> Option<&h2::Error> {
    error.causes().find_map(|cause| cause.downcast_ref())
}

async fn read_body(
    response: &mut UpstreamResponse,
    most: usize,
    timeouts: UpstreamTimeouts,
) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let chunk = timeouts.wait(response.chunk(), "fell silent").await?;
        let Some(chunk) = chunk.map_err(|_| refusal::broken())? else { return Ok(body) };
        if body.len() + chunk.len() > most {
            return Err(Failure::new(Fault::Backend, format!("the upstream sent more than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
}
