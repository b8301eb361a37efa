//! How an upstream is asked: no redirects, no proxy but ours, no credentials but ours, and a limit on every wait.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, Url};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::connections::{ConnectionPool, Connections};
use super::refusal;
use super::secret::Secret;
use super::silence_policy::SilencePolicy;
use super::sse::{SseData, SseLimits, SseScanner};
use super::timeouts::UpstreamTimeouts;
use crate::backend::{Failure, Fault};
use crate::catalog::MemberRules;
use crate::chat::SigningDomain;
use crate::units::Tokens;

/// How long the end of a stream may lag behind its last event.
const RELEASE_WAIT: Duration = Duration::from_millis(20);

/// How the key is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// As a bearer token.
    #[default]
    Bearer,
    /// As it is, in a header of that name.
    Header(&'static str),
}

/// How an upstream is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where the API begins, as OpenAI's SDKs want it: `https://api.example.com/v1`.
    pub base_url: String,
    /// Sent as `auth` says.
    pub api_key: Option<Secret>,
    /// How the key is sent.
    pub auth: Auth,
    /// Whose the credential is, where that is said: what one signs, all of the same organisation can verify.
    pub organization: Option<String>,
    /// Sent with every request: a header's name, and what it says.
    pub headers: Vec<(&'static str, String)>,
    /// The proxy to go through; the environment's is not looked at.
    pub proxy: Option<String>,
    /// Whether a connection is used again for the next request.
    pub keep_alive: bool,
    /// Whether a question is sent once more whose connection was gone before anybody seems to have read it: nothing proves
    /// that nobody has.
    pub sent_too: bool,
    /// How long to wait for a connection, TLS included.
    pub connect: Duration,
    /// How long to wait for the first byte of an answer, unless the upstream may think before.
    pub first_byte: Duration,
    /// How long to wait between two pieces of an answer; where the thought is hidden, from the first token on.
    pub idle: Duration,
    /// How long an answer may take altogether.
    pub total: Duration,
    /// The longest `Retry-After` that is believed.
    pub retry_after_max: Duration,
    /// How long lines and events may be; the latter bounds bodies too.
    pub limits: SseLimits,
    /// Which members of a caller's it is sent that the gateway gives no meaning to.
    pub members: MemberRules,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            base_url: String::new(),
            api_key: None,
            auth: Auth::Bearer,
            organization: None,
            headers: Vec::new(),
            proxy: None,
            keep_alive: true,
            sent_too: true,
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            retry_after_max: Duration::from_secs(60),
            limits: SseLimits::default(),
            members: MemberRules::default(),
        }
    }
}

impl Settings {
    /// Who can verify what is signed there: whoever is reached at the same address with the same credential, or is said to
    /// be of the same organisation. Of the hash only so little is shown that no credential can be found by it.
    pub fn origin(&self) -> SigningDomain {
        let (base, key) = (self.base_url.trim_end_matches('/'), self.api_key.as_ref().map(Secret::expose));
        let parts = match &self.organization {
            Some(name) => ["organization", name, ""],
            None => ["credential", base, key.unwrap_or_default()],
        };
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        SigningDomain(u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }
}

/// Why an upstream cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The base URL is none.
    #[error("the base URL of an upstream must be an absolute http or https URL without credentials")]
    Url,
    /// The key has characters that no header may have.
    #[error("the API key of an upstream has characters that no header may have")]
    Key,
    /// A header has a name or a value that none may have.
    #[error("a header for an upstream has characters that no header may have")]
    Header,
    /// The proxy is none.
    #[error("the proxy of an upstream is not a URL")]
    Proxy,
    /// The HTTP client refuses to be made.
    #[error("the HTTP client of an upstream could not be made")]
    Client(#[source] reqwest::Error),
    /// The certificates that the system trusts cannot be had.
    #[error(
        "the certificates that the system trusts cannot be read; install them (ca-certificates), or name them in SSL_CERT_FILE"
    )]
    Roots(#[source] rustls::Error),
}

/// One model's client of an upstream.
#[derive(Debug, Clone)]
pub(super) struct UpstreamClient {
    pool: Arc<ConnectionPool>,
    /// Questions that were sent once more and not told of yet.
    resent: Arc<AtomicU64>,
    /// Answers that said that nothing is left of a rate limit, not told of yet.
    exhausted_rate_limits: Arc<AtomicU64>,
    base_url: String,
    settings: Settings,
}

impl UpstreamClient {
    /// A client that has not asked yet.
    pub(super) fn new(
        connections: &Connections,
        settings: Settings,
    ) -> Result<UpstreamClient, SettingsError> {
        let base = parsed_base_url(&settings)?;
        let line = connections.pool(&base, &settings)?;
        let base = base.as_str().trim_end_matches('/').to_owned();
        Ok(UpstreamClient {
            pool: line,
            resent: Arc::default(),
            exhausted_rate_limits: Arc::default(),
            base_url: base,
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

    /// How many questions were sent once more since this was last asked.
    pub(super) fn take_resent(&self) -> u64 {
        self.resent.swap(0, Ordering::Relaxed)
    }

    /// How many answers since this was last asked said that nothing is left of a rate limit.
    pub(super) fn take_exhausted_rate_limits(&self) -> u64 {
        self.exhausted_rate_limits.swap(0, Ordering::Relaxed)
    }

    /// Asks for an event stream; resolves when the upstream has begun one.
    pub(super) async fn stream(
        &self,
        path: &str,
        body: &Value,
        silence: SilencePolicy,
    ) -> Result<UpstreamEventStream, Failure> {
        let deadline = Instant::now() + self.settings.total;
        let first_byte = match silence {
            SilencePolicy::Streams | SilencePolicy::ThinksInStream => self.settings.first_byte,
            SilencePolicy::ThinksBeforeHeaders => Duration::MAX,
        };
        let patience = UpstreamTimeouts { idle: first_byte, deadline };
        let response = self.send(path, body, "text/event-stream", patience).await?;
        refusal::require_stream(response.headers())?;
        let scanner = SseScanner::new(self.settings.limits);
        Ok(UpstreamEventStream {
            response,
            scanner: Some(scanner),
            ready: VecDeque::new(),
            secret: self.settings.api_key.clone(),
            timeouts: match silence {
                SilencePolicy::Streams => UpstreamTimeouts { idle: self.settings.idle, deadline },
                SilencePolicy::ThinksInStream | SilencePolicy::ThinksBeforeHeaders => {
                    UpstreamTimeouts { idle: Duration::MAX, deadline }
                }
            },
            idle: self.settings.idle,
            bytes_left: u64::MAX,
        })
    }

    /// Asks for one JSON value.
    pub(super) async fn json(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let deadline = Instant::now() + self.settings.total;
        let first_byte = UpstreamTimeouts { idle: self.settings.first_byte, deadline };
        let response = self.send(path, body, "application/json", first_byte).await?;
        let patience = UpstreamTimeouts { idle: self.settings.idle, deadline };
        let bytes = read_body(response, self.settings.limits.event, patience).await?;
        serde_json::from_slice(&bytes).map_err(|_| Failure::new(Fault::Backend, "the upstream sent no JSON"))
    }

    /// Reads one JSON value that is there without asking for it.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let patience = UpstreamTimeouts {
            idle: self.settings.idle,
            deadline: Instant::now() + self.settings.first_byte,
        };
        let request =
            self.pool.http.get(format!("{}/{path}", self.base_url)).header(ACCEPT, "application/json");
        let response = patience.wait(request.send(), "did not answer").await?;
        let response = response.map_err(|error| transport_failure(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal_failure(response, patience.deadline).await);
        }
        refusal::require_uncompressed(response.headers())?;
        let bytes = read_body(response, self.settings.limits.event, patience).await?;
        serde_json::from_slice(&bytes).map_err(|_| Failure::new(Fault::Backend, "the upstream sent no JSON"))
    }

    async fn send(
        &self,
        path: &str,
        body: &Value,
        accept: &str,
        first_byte: UpstreamTimeouts,
    ) -> Result<Response, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|_| Failure::new(Fault::Backend, "the request cannot be written as JSON").unsent())?;
        let body = Bytes::from(body);
        let sending = self.pool.connect_tracker.start_send();
        let asked = |http: &reqwest::Client| {
            let request = http.post(format!("{}/{path}", self.base_url));
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, accept).body(body.clone()).send()
        };
        let mut answered = first_byte.wait(asked(&self.pool.http), "did not answer").await?;
        let was_lost = answered.as_ref().is_err_and(|error| sending.was_lost(error));
        if was_lost && self.settings.sent_too {
            self.resent.fetch_add(1, Ordering::Relaxed);
            answered = first_byte.wait(asked(&self.pool.fresh), "did not answer").await?;
        }
        let response = answered.map_err(|error| transport_failure(&error))?;
        if response.status().is_success() {
            refusal::require_uncompressed(response.headers())?;
            self.exhausted_rate_limits.fetch_add(
                u64::from(refusal::is_rate_limit_exhausted(response.headers())),
                Ordering::Relaxed,
            );
            return Ok(response);
        }
        Err(self.refusal_failure(response, first_byte.deadline).await)
    }

    async fn refusal_failure(&self, response: Response, deadline: Instant) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let patience = UpstreamTimeouts { idle: self.settings.idle.min(Duration::from_secs(5)), deadline };
        // A refusal without a readable body is still a refusal.
        let body = read_body(response, 64 << 10, patience).await.unwrap_or_default();
        let failure = refusal::of_status(status.as_u16(), &headers, &body, self.settings.retry_after_max);
        without_secret(failure, self.settings.api_key.as_ref())
    }
}

/// An event stream that an upstream has begun. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct UpstreamEventStream {
    response: Response,
    /// `None` once the upstream has ended the stream.
    scanner: Option<SseScanner>,
    ready: VecDeque<SseData>,
    /// What no failure may repeat.
    secret: Option<Secret>,
    timeouts: UpstreamTimeouts,
    /// How long to wait between two pieces, once there was one.
    idle: Duration,
    /// How many more bytes may come.
    bytes_left: u64,
}

/// What an upstream may send for a token of its limit, with all that stands around it, and beside.
const BYTES_PER_TOKEN: u64 = 4 << 10;
const BYTES_EXTRA: u64 = 8 << 20;

impl UpstreamEventStream {
    /// The same, of which no more may come than answers of so many tokens have.
    pub(super) fn with_token_limit(self, tokens: Tokens) -> UpstreamEventStream {
        let bytes_left = tokens.0.saturating_mul(BYTES_PER_TOKEN).saturating_add(BYTES_EXTRA);
        UpstreamEventStream { bytes_left, ..self }
    }

    /// The next event; `None` at a clean end. A stream that breaks off inside an event is a failure, except
    /// inside `[DONE]`, which some upstreams send without the blank line.
    pub(super) async fn next(&mut self) -> Result<Option<SseData>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.scanner.is_none() {
                return Ok(None);
            }
            let chunk = self.timeouts.wait(self.response.chunk(), "fell silent").await?;
            let chunk = chunk.map_err(|error| refusal::of_transport(&error))?;
            self.count_bytes(chunk.as_ref().map_or(0, Bytes::len))?;
            self.feed(chunk.as_deref())?;
        }
    }

    /// The answer has begun, or a thought that shows: from now on it is not silent for long.
    pub(super) fn start_idle_timeout(&mut self) {
        self.timeouts.idle = self.idle;
    }

    /// What an event says is wrong, without our key.
    pub(super) fn without_secret(&self, failure: Failure) -> Failure {
        without_secret(failure, self.secret.as_ref())
    }

    /// Lets the connection be used again: takes the end of the stream, for which it waits only a moment.
    pub(super) async fn release(&mut self) {
        let end = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(RELEASE_WAIT, end).await;
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.bytes_left = left.ok_or_else(|| {
            let what =
                "the upstream sent more than any answer within its limit has: upstream_answer_too_large";
            Failure::new(Fault::Backend, what).retry_elsewhere()
        })?;
        Ok(())
    }

    fn feed(&mut self, chunk: Option<&[u8]>) -> Result<(), Failure> {
        let too_large = |error| Failure::new(Fault::Backend, format!("{error}: upstream_event_too_large"));
        match (chunk, self.scanner.as_mut()) {
            (Some(bytes), Some(scanner)) => scanner.feed(bytes, &mut self.ready).map_err(too_large)?,
            _ => {
                let rest =
                    self.scanner.take().map(SseScanner::finish).transpose().map_err(too_large)?.flatten();
                match rest {
                    Some(event) if event == b"[DONE]" => self.ready.push_back(event),
                    Some(_) => return Err(refusal::truncated()),
                    None => {}
                }
            }
        }
        Ok(())
    }
}

/// A request that no answer came to. Over HTTP/2 an upstream can say that nothing has looked at it.
fn transport_failure(error: &reqwest::Error) -> Failure {
    let failure = refusal::of_transport(error);
    let mut causes = std::iter::successors(error.source(), |error| Error::source(*error));
    let refused = causes.any(|cause| {
        cause
            .downcast_ref::<h2::Error>()
            .is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM))
    });
    if refused { failure.unsent() } else { failure }
}

async fn read_body(
    mut response: Response,
    most: usize,
    patience: UpstreamTimeouts,
) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let chunk = patience.wait(response.chunk(), "fell silent").await?;
        let Some(chunk) = chunk.map_err(|error| refusal::of_transport(&error))? else { return Ok(body) };
        if body.len() + chunk.len() > most {
            return Err(Failure::new(Fault::Backend, format!("the upstream sent more than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
}

fn without_secret(failure: Failure, secret: Option<&Secret>) -> Failure {
    match secret {
        Some(secret) => refusal::without_secret(failure, secret.expose()),
        None => failure,
    }
}

fn parsed_base_url(settings: &Settings) -> Result<Url, SettingsError> {
    let url = Url::parse(&settings.base_url).map_err(|_| SettingsError::Url)?;
    let plain =
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    if !plain || !url.has_host() || url.query().is_some() {
        return Err(SettingsError::Url);
    }
    Ok(url)
}
