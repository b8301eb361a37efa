//! Models behind somebody else's HTTP API.
//!
//! Each API is two pure translations (our call to its JSON, its events to our pieces) and a thin piece of I/O.

pub mod anthropic;
mod asked;
mod client;
mod connections;
pub mod gemini;
#[cfg(test)]
mod golden;
pub mod llamacpp;
pub mod members;
pub mod openai;
mod passed;
mod patience;
pub mod reach;
mod refusal;
pub mod responses;
mod roots;
mod secret;
mod silence;
mod sse;
mod stale;
mod summaries;
#[cfg(test)]
mod tests;
mod uncounted;
#[cfg(test)]
mod upstream;
pub mod vllm;
mod wire;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use serde_json::Value;

use super::pace::{Lap, Pace};
use super::{Backend, Call, Conduct, Embedded, Failure, Fault, Generation, Lack, Piece, Turns};
use crate::catalog::Conditions;
use crate::chat::{Embedding, Origin, Request};
use crate::prompt;
use crate::units::Tokens;

pub use client::{Auth, Settings, SettingsError};
pub use connections::Connections;
pub use secret::Secret;
pub use silence::Silence;
pub use sse::Limits;

/// An upstream's API, as two pure translations: our call to what is sent, and its events to our pieces.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// What is sent for a call.
    ///
    /// # Errors
    /// When the API has no words for it; nothing is sent then.
    fn write(&self, call: &Call) -> Result<Sent, Failure>;

    /// What is sent for vectors.
    ///
    /// # Errors
    /// When the API has none, as most.
    fn embed(&self, _: &Embedding) -> Result<Sent, Failure> {
        Err(Failure::incapable(Lack::Service, "this model makes no embeddings"))
    }

    /// Whether an answer can be asked for in a new turn, behind a thought that was cut.
    fn turns(&self) -> Turns {
        Turns::Never
    }

    /// What is asked for how many tokens a prompt has, and where the answer says it; nothing where the API has no such
    /// question.
    fn count(&self, _: &Arc<Request>) -> Option<(Sent, &'static str)> {
        None
    }

    /// How it may be silent before it answers a call.
    fn silence(&self, call: &Call) -> Silence {
        if call.thinks_unseen() { Silence::ThinksFirst } else { Silence::Usual }
    }

    /// What reads the answer to a call.
    fn reader(&self, call: &Call) -> Box<dyn Reader>;
}

/// What is sent to an upstream.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// Below the base URL.
    pub path: Cow<'static, str>,
    /// JSON.
    pub body: Value,
}

/// One model of an upstream that is asked once for each part: its API between our calls and its connections.
#[derive(Debug)]
pub struct Remote<P> {
    client: client::Client,
    provider: P,
    pace: Pace,
}

impl<P: Provider> Remote<P> {
    /// The model, not asked anything yet.
    fn over(connections: &Connections, settings: Settings, provider: P) -> Result<Remote<P>, SettingsError> {
        Ok(Remote { client: client::Client::new(connections, settings)?, provider, pace: Pace::default() })
    }

    async fn begin(&self, call: Call) -> Result<Generation, Failure> {
        let mut sent = self.provider.write(&call).map_err(Failure::unsent)?;
        passed::add(&mut sent.body, &call, self.client.members());
        let lap = self.pace.start();
        let events = self.client.stream(&sent.path, &sent.body, self.provider.silence(&call)).await?;
        let events = events.within(call.part.most());
        Ok(generation(events, self.provider.reader(&call), lap, VecDeque::new()))
    }

    async fn counted(&self, request: &Arc<Request>) -> Option<Tokens> {
        let (sent, at) = self.provider.count(request)?;
        let answer = self.client.json(&sent.path, &sent.body).await;
        let answer =
            answer.inspect_err(|error| tracing::debug!(%error, "a prompt's tokens were not counted"));
        answer.ok()?.pointer(at)?.as_u64().map(Tokens)
    }

    async fn vectors(&self, ask: &Embedding) -> Result<Embedded, Failure> {
        let sent = self.provider.embed(ask)?;
        let answer = self.client.json(&sent.path, &sent.body).await?;
        embedded(answer, ask.inputs.len())
    }
}

/// The vectors of an answer in OpenAI's form, which most have taken over.
fn embedded(mut answer: Value, wanted: usize) -> Result<Embedded, Failure> {
    let data = match answer.get_mut("data").map(Value::take).unwrap_or_default() {
        Value::Array(data) if data.len() == wanted => data,
        _ => {
            return Err(Failure::new(
                Fault::Backend,
                "the upstream sent other than one vector for each text",
            ));
        }
    };
    let told =
        ["/usage/prompt_tokens", "/usage/total_tokens"].iter().find_map(|at| answer.pointer(at)?.as_u64());
    Ok(Embedded { data, prompt: told.map(Tokens) })
}

impl<P: Provider> Backend for Remote<P> {
    fn generate(&self, call: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.begin(call).boxed()
    }

    fn embed(&self, ask: Arc<Embedding>) -> BoxFuture<'_, Result<Embedded, Failure>> {
        async move { self.vectors(&ask).await }.boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::bound::prompt_tokens(request)
    }

    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        async move { self.counted(&request).await }.boxed()
    }

    fn conditions(&self) -> Conditions {
        self.pace.conditions()
    }

    fn conduct(&self) -> Conduct {
        Conduct { turns: self.provider.turns(), ..Conduct::default() }
    }

    fn origin(&self) -> Option<Origin> {
        Some(self.client.origin())
    }

    fn resent(&self) -> u64 {
        self.client.resent()
    }

    fn rate_limits_spent(&self) -> u64 {
        self.client.rate_limits_spent()
    }
}

/// Turns an upstream's events into pieces. It hands out an [`Piece::End`] once, and last.
pub trait Reader: fmt::Debug + Send + 'static {
    /// Reads the data of one event.
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// The upstream has ended its stream; a failure where it was not complete.
    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;
}

impl Reader for Box<dyn Reader> {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        (**self).read(data, pieces)
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        (**self).close(pieces)
    }
}

struct Flow<R> {
    events: client::Events,
    reader: R,
    lap: Lap,
    pieces: VecDeque<Piece>,
    over: bool,
}

/// The pieces of a stream that has begun. `first` come before whatever the upstream says.
fn generation<R: Reader>(events: client::Events, reader: R, lap: Lap, first: VecDeque<Piece>) -> Generation {
    let flow = Flow { events, reader, lap, pieces: first, over: false };
    Box::pin(stream::unfold(flow, |mut flow| async move {
        let piece = flow.next().await?;
        flow.over |= piece.is_err();
        Some((piece, flow))
    }))
}

impl<R: Reader> Flow<R> {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        while !self.over && self.pieces.is_empty() {
            if let Err(failure) = self.advance().await {
                return Some(Err(failure));
            }
        }
        let piece = self.pieces.pop_front()?;
        self.lap.note(&piece);
        if matches!(piece, Piece::Thought { .. } | Piece::Answer { .. } | Piece::ToolCall(_)) {
            self.events.speaks();
        }
        if matches!(piece, Piece::End(_)) {
            self.over = true;
            self.pieces.clear();
            self.events.release().await;
        }
        Some(Ok(piece))
    }

    async fn advance(&mut self) -> Result<(), Failure> {
        let read = match self.events.next().await? {
            Some(event) => self.reader.read(&event, &mut self.pieces),
            None => self.reader.close(&mut self.pieces),
        };
        read.map_err(|failure| self.events.without_secret(failure))
    }
}
