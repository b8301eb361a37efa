//! vLLM's own server, by its raw completions where a thought is resumed.
//!
//! They take token ids as a prompt and name the tokens of each chunk. So a thought is cut after exactly its budget and
//! resumed without being tokenized again (class `continue`). The chat template is rendered and tokenized by the server.
//! All else goes to its chat completions.

mod events;
mod request;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::speed::SpeedEstimator;
use crate::{
    Backend, BackendCall, EmbeddingResult, Failure, Fault, Generation, GenerationPart, Piece, TargetBehavior,
    Thought, tool_calls,
};
use stint_prompt as prompt;
use stint_prompt::tags::Splitter;
use stint_types::catalog::{EnforcementClass, ImageTokens, ModelConditions};
use stint_types::chat::{EmbeddingRequest, Message, RawPrompt, Request, Role};
use stint_types::units::Tokens;

use super::begun_answer;
use super::client::UpstreamClient;
use super::event_stream::UpstreamEventStream;
use super::openai::{ChatCompletions, Settings};
use super::{
    Connections, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest, generation_stream, passthrough,
};

/// One model of a vLLM server.
#[derive(Debug)]
pub struct VllmBackend {
    client: UpstreamClient,
    /// As for its chat completions; the hand-off has all that must stand before the answer.
    settings: Settings,
    speed: SpeedEstimator,
    tag_tokens: OnceCell<VllmTagTokens>,
    chat: OnceCell<RemoteBackend<ChatCompletions>>,
    /// Whether its chat template knows of thoughts.
    thinks: OnceCell<bool>,
    /// The server's context, as last reported; 0 before that.
    context: AtomicU64,
    /// Its chat completions where it counts no tokens, or not for us.
    uncounted: OnceCell<RemoteBackend<ChatCompletions>>,
    /// Until when it is not asked for tokens again.
    counts_nothing: Mutex<Option<Instant>>,
}

/// Where tokens are asked for: beside `/v1`.
const TOKENIZE: &str = "../tokenize";
/// The code of a failure since that is not offered.
const NOT_OFFERED: &str = "tokenize_not_offered";
/// How long a server that does not offer it is taken not to.
const NOT_OFFERED_TIME: Duration = Duration::from_mins(10);

/// What the server's tokenizer makes of our texts; asked once.
#[derive(Debug)]
struct VllmTagTokens {
    start: Vec<u32>,
    end: Vec<u32>,
    hand_off: Vec<u32>,
    newline: Vec<u32>,
    /// True if the tags stand on lines of their own, as the hand-off shows.
    tags_on_own_lines: bool,
}

/// What asks for the tokens of a text.
pub(super) fn tokenize_request(model: &str, text: &str) -> UpstreamRequest {
    let body = json!({"model": model, "prompt": text, "add_special_tokens": false});
    UpstreamRequest::new(TOKENIZE, body)
}

/// A prompt by its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TokenPrompt {
    ids: Vec<u32>,
    /// How many of them stand behind the tag that begins a thought; nothing if none is begun.
    opening: Option<usize>,
}

impl VllmTagTokens {
    /// The tokens with the place where they begin a thought, if they do: nothing but a line's end follows the tag.
    fn prompt(&self, ids: Vec<u32>) -> TokenPrompt {
        let before_newline = ids.strip_suffix(&self.newline[..]).unwrap_or(&ids).ends_with(&self.start);
        let opening = if self.start.is_empty() {
            None
        } else if ids.ends_with(&self.start) {
            Some(0)
        } else {
            before_newline.then_some(self.newline.len())
        };
        TokenPrompt { ids, opening }
    }

    /// The prompt's tokens, with a thought begun at their end.
    fn with_open_thought(&self, prompt: TokenPrompt) -> Vec<u32> {
        match prompt.opening {
            Some(_) => prompt.ids,
            None if self.tags_on_own_lines => [prompt.ids, self.start.clone(), self.newline.clone()].concat(),
            None => [prompt.ids, self.start.clone()].concat(),
        }
    }

    /// What closes a thought. Where the hand-off begins with the tag, it stands behind every thought: in Harmony the
    /// answer is a message of its own.
    fn closing_tokens(&self, closed: bool) -> &[u32] {
        if closed && !self.hand_off.starts_with(&self.end) { &self.end } else { &self.hand_off }
    }

    /// What an answer may not contain. A tag of several tokens cannot be banned: each is of use elsewhere.
    fn banned(&self) -> Option<[u32; 2]> {
        match (&self.start[..], &self.end[..]) {
            ([start], [end]) => Some([*start, *end]),
            _ => None,
        }
    }
}

impl VllmBackend {
    /// The model, not asked anything yet.
    pub fn new(connections: &Connections, settings: Settings) -> Result<VllmBackend, SettingsError> {
        let client = UpstreamClient::new(connections, settings.client.clone())?;
        let pace = SpeedEstimator::default();
        Ok(VllmBackend {
            client,
            settings,
            speed: pace,
            tag_tokens: OnceCell::new(),
            chat: OnceCell::new(),
            thinks: OnceCell::new(),
            context: AtomicU64::new(0),
            uncounted: OnceCell::new(),
            counts_nothing: Mutex::new(None),
        })
    }

    async fn start(&self, call: BackendCall) -> Result<Generation, Failure> {
        let is_raw = call.request.raw_prompt().is_some();
        let offers_tokens = self.offers_tokens().await?;
        if call.request.continues_last {
            let chat = if offers_tokens { self.chat().await? } else { self.uncounted_chat().await? };
            return chat.start(call.unthought()).await;
        }
        if !offers_tokens {
            return self.uncounted_chat().await?.start(call).await;
        }
        if !is_raw
            && matches!(call.class, EnforcementClass::Continue | EnforcementClass::Native)
            && !self.thinks().await?
        {
            return self.chat().await?.start(call.unthought()).await;
        }
        if call.class != EnforcementClass::Continue || is_raw {
            return self.chat().await?.start(call).await;
        }
        tool_calls::check(&call.request, self.settings.tool_syntax)?;
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

    /// Whether there is a thought to be held: by what is configured, else by the chat template. That of a model that thinks
    /// begins a thought, or renders a prompt otherwise where none is wanted.
    async fn thinks(&self) -> Result<bool, Failure> {
        if let Some(thinks) = self.settings.thinks {
            return Ok(thinks);
        }
        let learn = || async {
            let request = Request::new("", vec![Message::text(Role::User, "?")]);
            let thinking = self.render(&request, true).await?;
            let begins = self.tag_tokens().await?.prompt(thinking.clone()).opening.is_some();
            Ok(begins || thinking != self.render(&request, false).await?)
        };
        self.thinks.get_or_try_init(learn).await.copied()
    }

    async fn generate_thought(&self, call: &BackendCall, thinking: Tokens) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.tag_tokens().await?;
        let prompt = vocabulary.with_open_thought(vocabulary.prompt(self.render(&call.request, true).await?));
        let mut body = request::thought_body(&self.settings, call, &prompt, thinking);
        passthrough::add_members_after_template(&mut body, call, self.client.members());
        self.client.separate_cache(&mut body, &call.request);
        let events = self.complete(call, body).await?;
        let reader = events::VllmReader::thought(vocabulary.end.len());
        Ok(generation_stream(events, reader, lap, VecDeque::new()))
    }

    /// Calls the completion endpoint.
    async fn complete(&self, call: &BackendCall, body: Value) -> Result<UpstreamEventStream, Failure> {
        let (asked, stated) = (UpstreamRequest::new("completions", body), call.request.budget.deadline);
        let events = self.client.stream(asked, SilencePolicy::Streams, stated).await?;
        Ok(events.with_token_limit(call.part.tokens_max()))
    }

    async fn generate_solution(
        &self,
        call: &BackendCall,
        thought: &Thought,
        solution: Tokens,
    ) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.tag_tokens().await?;
        let (prompt, hand_off) = self.resumed_prompt(vocabulary, &call.request, thought).await?;
        let mut body = request::solution_body(&self.settings, call, &prompt, solution, vocabulary.banned());
        passthrough::add_members_after_template(&mut body, call, self.client.members());
        self.client.separate_cache(&mut body, &call.request);
        let events = self.complete(call, body).await?;
        let first = hand_off.then(|| Piece::HandOff { tokens: count(&vocabulary.hand_off) });
        let Settings { start_tag, end_tag, .. } = &self.settings;
        // Tags that are banned stay out by themselves; what spells them then only speaks of them.
        let strips = vocabulary.banned().is_none();
        let splitter = strips.then(|| Splitter::after_thought(start_tag.as_str(), end_tag.as_str()));
        let reader = events::VllmReader::solution(splitter);
        let pieces = generation_stream(events, reader, lap, first.into_iter().collect());
        Ok(tool_calls::extract_calls(pieces, &call.request, self.settings.tool_syntax))
    }

    /// What stands before the answer, and whether our hand-off is a part of it.
    async fn resumed_prompt(
        &self,
        vocabulary: &VllmTagTokens,
        request: &Request,
        thought: &Thought,
    ) -> Result<(Vec<u32>, bool), Failure> {
        let thinks = vocabulary.prompt(self.render(request, true).await?);
        if !thought.closed && thought.text.is_empty() && thought.ids.is_empty() {
            // No thought at all: a template that can close it by itself does so in the form that was trained.
            let closed = vocabulary.prompt(self.render(request, false).await?);
            if closed != thinks && closed.opening.is_none() {
                return Ok((closed.ids, false));
            }
        }
        let ids = match (&thought.ids[..], thought.text.as_str()) {
            ([], "") => Vec::new(),
            ([], text) => self.tokenize(text).await?,
            (ids, _) => ids.to_vec(),
        };
        let close = vocabulary.closing_tokens(thought.closed);
        let hand_off = close == vocabulary.hand_off;
        Ok(([&vocabulary.with_open_thought(thinks)[..], &ids, close].concat(), hand_off))
    }

    /// Its chat completions. What the template puts behind the tag counts as thought there, so that is asked for once.
    async fn chat(&self) -> Result<&RemoteBackend<ChatCompletions>, Failure> {
        let learn = || async {
            let vocabulary = self.tag_tokens().await?;
            let request = Request::new("", vec![Message::text(Role::User, "?")]);
            let opening = vocabulary.prompt(self.render(&request, true).await?).opening.unwrap_or(0);
            let (opening, closing) = (Tokens(opening as u64), count(&vocabulary.hand_off));
            let settings =
                Settings { opening_tokens: opening, closing_tokens: closing, ..self.settings.clone() };
            let (client, pace) = (self.client.clone(), self.speed.clone());
            Ok(RemoteBackend { client, provider: ChatCompletions::new(settings), speed: pace })
        };
        self.chat.get_or_try_init(learn).await
    }

    /// Whether it counts tokens for us. Some gateways and load balancers show nothing but `/v1`.
    async fn offers_tokens(&self) -> Result<bool, Failure> {
        // It may have offered it before.
        if self.is_known_not_to_count() {
            return Ok(false);
        }
        match self.tag_tokens().await {
            Ok(_) => Ok(true),
            Err(failure) if failure.code == Some(NOT_OFFERED) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Its chat completions, for which nothing is counted: thoughts are resumed there, and a prompt's tokens estimated.
    async fn uncounted_chat(&self) -> Result<&RemoteBackend<ChatCompletions>, Failure> {
        let learn = || async {
            // A token is a byte at least.
            let closing = Tokens(self.settings.hand_off.len() as u64);
            let settings = Settings { closing_tokens: closing, ..self.settings.clone() };
            let (client, speed) = (self.client.clone(), self.speed.clone());
            Ok(RemoteBackend { client, provider: ChatCompletions::new(settings), speed })
        };
        self.uncounted.get_or_try_init(learn).await
    }

    fn is_known_not_to_count(&self) -> bool {
        let until = *self.counts_nothing.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// It counts nothing. That is logged once.
    fn remember_not_to_count(&self) {
        let until = Instant::now() + NOT_OFFERED_TIME;
        let before = self.counts_nothing.lock().unwrap_or_else(PoisonError::into_inner).replace(until);
        if before.is_none() {
            let model = self.settings.model.as_str();
            tracing::warn!(
                model,
                "the server does not offer /tokenize beside its /v1 (403, 404 or 405): prompts are estimated, and thoughts are cut \
                 by the stream's own counts"
            );
        }
    }

    async fn tag_tokens(&self) -> Result<&VllmTagTokens, Failure> {
        let learn = || async {
            let Settings { start_tag, end_tag, hand_off, .. } = &self.settings;
            Ok(VllmTagTokens {
                start: self.tokenize(start_tag).await?,
                end: self.tokenize(end_tag).await?,
                hand_off: self.tokenize(hand_off).await?,
                newline: self.tokenize("\n").await?,
                tags_on_own_lines: hand_off.starts_with('\n'),
            })
        };
        self.tag_tokens.get_or_try_init(learn).await
    }

    async fn render(&self, request: &Request, thinking: bool) -> Result<Vec<u32>, Failure> {
        let body = request::template_body(&self.settings, request, thinking);
        self.ids(UpstreamRequest::new(TOKENIZE, body)).await
    }

    async fn tokenize(&self, text: &str) -> Result<Vec<u32>, Failure> {
        self.ids(tokenize_request(&self.settings.model, text)).await
    }

    /// A question that costs nothing: its failures never reached a model.
    async fn ids(&self, asked: UpstreamRequest) -> Result<Vec<u32>, Failure> {
        let not_offered =
            || Failure::new(Fault::Backend, "the server does not offer /tokenize").unsent().code(NOT_OFFERED);
        if self.is_known_not_to_count() {
            return Err(not_offered());
        }
        let Some(answer) = self.client.json_if_offered(asked).await.map_err(Failure::unsent)? else {
            self.remember_not_to_count();
            return Err(not_offered());
        };
        if let Some(context) = answer.get("max_model_len").and_then(Value::as_u64) {
            self.context.store(context, Ordering::Relaxed);
        }
        let ids = answer.get("tokens").and_then(|ids| serde_json::from_value(ids.clone()).ok());
        ids.ok_or_else(|| Failure::new(Fault::Backend, "the server returned no tokens").unsent())
    }
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}

impl Backend for VllmBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        async move { self.start(call).await }.boxed()
    }

    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        request.continues_last.then_some(begun_answer::NO_THOUGHT)
    }

    fn embed(&self, ask: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        async move {
            let chat =
                if self.offers_tokens().await? { self.chat().await? } else { self.uncounted_chat().await? };
            chat.embed(ask).await
        }
        .boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request, &self.images())
    }

    fn images(&self) -> ImageTokens {
        self.client.images()
    }

    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        async move {
            let ids = match request.raw_prompt() {
                Some(RawPrompt::Ids(ids)) => return Some(count(&ids)),
                Some(RawPrompt::Text(text)) => self.tokenize(&text).await,
                None => self.render(&request, true).await,
            };
            ids.ok().map(|ids| count(&ids))
        }
        .boxed()
    }

    fn conditions(&self) -> ModelConditions {
        self.speed.conditions()
    }

    fn behavior(&self) -> TargetBehavior {
        let told = self.settings.thinks.or(self.thinks.get().copied());
        TargetBehavior { never_thinks: told == Some(false), ..TargetBehavior::default() }
    }

    fn context(&self) -> Option<Tokens> {
        let told = self.context.load(Ordering::Relaxed);
        (told > 0).then_some(Tokens(told))
    }

    fn take_resent(&self) -> u64 {
        self.client.take_resent()
    }

    fn take_exhausted_rate_limits(&self) -> u64 {
        self.client.take_exhausted_rate_limits()
    }
}

#[cfg(test)]
mod tests;
