//! llama.cpp's own server, by its native endpoints.
//!
//! They take token ids as a prompt, stop at a tag, and say why they stopped. So a thought is cut after exactly
//! its budget and resumed without being tokenized again (class `continue`). The chat template is rendered by
//! the server, `/completion` does the rest; the prompt cache makes the second phase cheap.
//!
//! What needs no resuming goes to its chat endpoint: a budget that the server holds itself (class `native`), and with
//! it tools.
//!
//! A control token that a caller spells out in a message is taken for a real one, as everywhere on that server.

mod events;
mod request;
mod server;
mod settings;
mod template;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::speed::SpeedEstimator;
use crate::{
    Backend, BackendCall, EmbeddingResult, Failure, Fault, Generation, GenerationPart, Piece, TargetBehavior,
    Thought, Turns, UnsupportedFeature, tool_calls,
};
use stint_prompt as prompt;
use stint_prompt::tags::Splitter;
use stint_types::catalog::{EnforcementClass, ImageTokens, ModelConditions};
use stint_types::chat::{EmbeddingRequest, RawPrompt, Request};
use stint_types::units::Tokens;

use super::begun_answer;
use super::client::UpstreamClient;
use super::event_stream::UpstreamEventStream;
use super::openai::{self, ChatCompletions, Dialect};
use super::{
    Connections, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest, generation_stream,
    passthrough, wire,
};

use server::{LlamaCppServer, LlamaCppTagTokens};

pub use settings::Settings;

/// The model of one llama.cpp server.
#[derive(Debug)]
pub struct LlamaCppBackend {
    server: LlamaCppServer,
    speed: SpeedEstimator,
    chat: OnceCell<RemoteBackend<ChatCompletions>>,
}

impl LlamaCppBackend {
    /// The server, not asked anything yet.
    pub fn new(connections: &Connections, settings: Settings) -> Result<LlamaCppBackend, SettingsError> {
        // The server closes a connection after a stream, and after its hundredth request, without saying so.
        // A request that is sent at that moment gets no answer.
        let client = super::Settings { keep_alive: false, ..settings.client.clone() };
        let client = UpstreamClient::new(connections, client)?;
        Ok(LlamaCppBackend {
            server: LlamaCppServer::new(client, settings),
            speed: SpeedEstimator::default(),
            chat: OnceCell::new(),
        })
    }

    async fn start(&self, call: BackendCall) -> Result<Generation, Failure> {
        if let Some(prompt) = call.request.raw_prompt() {
            return self.continue_text(&call, &prompt).await;
        }
        if call.request.continues_last || !self.server.thinks().await? {
            return self.chat().await?.start(call.unthought()).await;
        }
        if call.class != EnforcementClass::Continue {
            return self.chat().await?.start(call).await;
        }
        tool_calls::check(&call.request, self.server.settings.tool_syntax)?;
        match &call.part {
            GenerationPart::Thought { thinking, .. } => self.generate_thought(&call, *thinking).await,
            // A thought stops at its tag here, so no answer has begun.
            GenerationPart::Solution { thought, solution, .. } => {
                self.generate_solution(&call, thought, *solution).await
            }
            GenerationPart::Whole { .. } | GenerationPart::Total { .. } => {
                Err(Failure::new(Fault::Caller, "this model makes thoughts and answers one by one").unsent())
            }
        }
    }

    /// The chat endpoint, set up once. How many tokens open and close a thought depends on the template, so the server is
    /// asked for them first.
    async fn chat(&self) -> Result<&RemoteBackend<ChatCompletions>, Failure> {
        let learn = || async {
            let closing = self.server.tag_tokens().await?.hand_off;
            let opening = self.server.opening_tokens().await?;
            let Settings { start_tag, end_tag, hand_off, .. } = self.server.settings.clone();
            let settings = openai::Settings {
                dialect: Dialect::llamacpp(),
                start_tag,
                end_tag,
                hand_off,
                opening_tokens: opening,
                closing_tokens: closing,
                ..openai::Settings::default()
            };
            let (client, pace) = (self.server.client.clone(), self.speed.clone());
            Ok(RemoteBackend { client, provider: ChatCompletions::new(settings), speed: pace })
        };
        self.chat.get_or_try_init(learn).await
    }

    async fn generate_thought(&self, call: &BackendCall, thinking: Tokens) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.server.tag_tokens().await?;
        let prompt =
            request::with_open_thought(&self.server.settings, self.server.render(&call.request, true).await?);
        let body = request::thought_body(&self.server.settings, call, &prompt, thinking);
        let events = self.complete(call, body).await?;
        let reader = events::LlamaCppReader::thought(vocabulary.end);
        let pieces = generation_stream(events, reader, lap, VecDeque::new());
        let client = self.server.client.clone();
        Ok(Box::pin(pieces.then(move |piece| restore_missing_text(client.clone(), piece))))
    }

    async fn generate_solution(
        &self,
        call: &BackendCall,
        thought: &Thought,
        solution: Tokens,
    ) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.server.tag_tokens().await?;
        let (prompt, hand_off) = self.server.resumed_prompt(&call.request, thought).await?;
        let body = request::solution_body(call, prompt, solution, &vocabulary.banned());
        let events = self.complete(call, body).await?;
        let first = hand_off.then_some(Piece::HandOff { tokens: vocabulary.hand_off });
        let reader = events::LlamaCppReader::solution(self.splitter(vocabulary));
        let pieces = generation_stream(events, reader, lap, first.into_iter().collect());
        Ok(tool_calls::extract_calls(pieces, &call.request, self.server.settings.tool_syntax))
    }

    /// Continues a text, without template or tags.
    async fn continue_text(&self, call: &BackendCall, prompt: &RawPrompt) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let solution = match &call.part {
            GenerationPart::Whole { solution, .. } | GenerationPart::Solution { solution, .. } => *solution,
            GenerationPart::Thought { .. } | GenerationPart::Total { .. } => {
                return Err(Failure::incapable(
                    UnsupportedFeature::Thinking,
                    "there is no thought in how a text goes on",
                ));
            }
        };
        let body = request::solution_body(call, prompt.to_json(), solution, &[]);
        let events = self.complete(call, body).await?;
        Ok(generation_stream(events, events::LlamaCppReader::solution(None), lap, VecDeque::new()))
    }

    /// Calls the completion endpoint, with what the caller passes through.
    async fn complete(&self, call: &BackendCall, mut body: Value) -> Result<UpstreamEventStream, Failure> {
        let client = &self.server.client;
        passthrough::add_members_after_template(&mut body, call, client.members());
        client.separate_cache(&mut body, &call.request);
        let asked = UpstreamRequest::new("completion", body);
        let events = client.stream(asked, SilencePolicy::Streams, call.request.budget.deadline).await?;
        Ok(events.with_token_limit(call.part.tokens_max()))
    }

    /// Takes tags out of the answer. Where both tags are banned as tokens it is not needed: a text that spells a tag then
    /// only mentions it.
    fn splitter(&self, vocabulary: &LlamaCppTagTokens) -> Option<Splitter> {
        let Settings { start_tag, end_tag, .. } = &self.server.settings;
        let banned = vocabulary.start.is_some() && vocabulary.end.is_some();
        (!banned).then(|| Splitter::after_thought(start_tag.as_str(), end_tag.as_str()))
    }
}

/// The server holds back text that looks like the beginning of the tag. If the thought is cut there, the server has
/// reported the tokens without their text, so it is asked for the text. Half a character at the end is dropped.
async fn restore_missing_text(
    client: UpstreamClient,
    piece: Result<Piece, Failure>,
) -> Result<Piece, Failure> {
    match piece {
        Ok(Piece::Thought { text, tokens, ids }) if text.is_empty() && !ids.is_empty() => {
            let asked = UpstreamRequest::new("detokenize", json!({"tokens": &ids}));
            let answer = client.json(asked).await.unwrap_or_default();
            let text = answer.get("content").and_then(Value::as_str).unwrap_or_default();
            let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned();
            Ok(Piece::Thought { text, tokens, ids })
        }
        piece => piece,
    }
}

impl Backend for LlamaCppBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.start(call).boxed()
    }

    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        request.continues_last.then_some(begun_answer::NO_THOUGHT)
    }

    fn embed(&self, ask: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        async move {
            let body = wire::embedding(&ask, None, &self.server.settings.client.members);
            let asked = UpstreamRequest::new("v1/embeddings", body);
            let answer = self.server.client.bytes(asked).await?;
            super::embeddings::read(answer, ask.inputs.len()).await
        }
        .boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request, &self.images())
    }

    fn images(&self) -> ImageTokens {
        self.server.client.images()
    }

    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        async move { self.server.count_prompt_tokens(&request).await.ok() }.boxed()
    }

    fn conditions(&self) -> ModelConditions {
        self.speed.conditions()
    }

    fn behavior(&self) -> TargetBehavior {
        TargetBehavior {
            turns: Turns::Always,
            never_thinks: self.server.never_thinks(),
            ..TargetBehavior::default()
        }
    }

    fn context(&self) -> Option<Tokens> {
        self.server.context()
    }

    fn take_resent(&self) -> u64 {
        self.server.client.take_resent()
    }

    fn take_exhausted_rate_limits(&self) -> u64 {
        self.server.client.take_exhausted_rate_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::golden;

    #[test]
    fn thoughts_are_asked_for_as_the_fixtures_say() {
        golden::check("llamacpp", "thought", |fixture| {
            let thinking = golden::tokens(&fixture["tokens"]);
            let call = golden::call(fixture, GenerationPart::Thought { thinking, solution: Tokens(8) });
            let prompt = request::with_open_thought(
                &Settings::default(),
                fixture["rendered"].as_str().unwrap().to_owned(),
            );
            request::thought_body(&Settings::default(), &call, &prompt, thinking)
        });
    }

    #[test]
    fn answers_are_asked_for_as_the_fixtures_say() {
        golden::check("llamacpp", "solution", |fixture| {
            let solution = golden::tokens(&fixture["tokens"]);
            let thought = golden::thought(&fixture["thought"]);
            let call = golden::call(fixture, GenerationPart::after_thought(thought.clone(), solution));
            let prompt = fixture["rendered"].as_str().unwrap();
            let prompt = request::resumed_prompt(&Settings::default(), prompt, &thought);
            request::solution_body(&call, prompt, solution, &[3, 4])
        });
    }

    #[test]
    fn streams_are_read_as_the_fixtures_say() {
        golden::check("llamacpp", "stream", |fixture| {
            let solves = fixture["solution"] == true;
            let splitter = || Splitter::after_thought("<think>", "</think>");
            let splitter = (fixture["strips"] == true).then(splitter);
            let thought = || events::LlamaCppReader::thought(Some(4));
            let reader = if solves { events::LlamaCppReader::solution(splitter) } else { thought() };
            golden::pieces(reader, &fixture["events"])
        });
    }
}
