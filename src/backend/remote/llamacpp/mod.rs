//! llama.cpp's own server, by its native endpoints.
//!
//! They take token ids as a prompt, stop at a tag, and say why they stopped. So a thought is cut after exactly
//! its budget and resumed without being tokenized again (class `continue`). The chat template is rendered by
//! the server, `/completion` does the rest; the prompt cache makes the second phase cheap.
//!
//! What needs no resuming goes to its chat endpoint: a budget that the server holds itself (class `native`), and with
//! it tools.
//!
//! As everywhere on that server, a control token that a caller spells out in a message is taken for one.

mod events;
mod request;
mod template;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::client::{self, UpstreamClient};
use super::openai::{self, ChatCompletions, Dialect};
use super::{Connections, RemoteBackend, SettingsError, SilencePolicy, generation_stream, passthrough, wire};
use crate::backend::speed::SpeedEstimator;
use crate::backend::tool_calls;
use crate::backend::{
    Backend, BackendCall, EmbeddingResult, Failure, Fault, Generation, GenerationPart, Piece, Retry,
    TargetBehavior, Thought, Turns, UnsupportedFeature,
};
use crate::catalog::{EnforcementClass, ModelConditions};
use crate::chat::{EmbeddingRequest, Message, Request, Role};
use crate::prompt;
use crate::prompt::tags::Splitter;
use crate::prompt::tool_calls::ToolCallSyntax;
use crate::units::Tokens;

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the server is reached; the base URL has no `/v1`.
    pub client: client::Settings,
    /// The tag that begins a thought.
    pub start_tag: String,
    /// The tag that closes a thought.
    pub end_tag: String,
    /// What closes an unfinished thought: a sentence, if any, and the tag.
    pub hand_off: String,
    /// How the model writes its tool calls, where they can be read out of its text.
    pub tool_syntax: Option<ToolCallSyntax>,
    /// Whether the model thinks; nothing where its chat template is to tell.
    pub thinks: Option<bool>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: client::Settings::default(),
            start_tag: "<think>".to_owned(),
            end_tag: "</think>".to_owned(),
            hand_off: "\n</think>\n\n".to_owned(),
            tool_syntax: None,
            thinks: None,
        }
    }
}

/// The model of one llama.cpp server.
#[derive(Debug)]
pub struct LlamaCppBackend {
    client: UpstreamClient,
    settings: Settings,
    speed: SpeedEstimator,
    tag_tokens: OnceCell<LlamaCppTagTokens>,
    chat: OnceCell<RemoteBackend<ChatCompletions>>,
    props: OnceCell<Props>,
}

/// What the server says of its model; asked once.
#[derive(Debug)]
struct Props {
    /// Whether its chat template knows of thoughts.
    thinks: bool,
    context: Option<Tokens>,
}

/// What the server's tokenizer says about our texts; asked once.
#[derive(Debug)]
struct LlamaCppTagTokens {
    hand_off: Tokens,
    /// The tag that begins a thought, where it is one token.
    start: Option<u32>,
    /// The tag that closes a thought, where it is one token.
    end: Option<u32>,
}

impl LlamaCppTagTokens {
    /// What an answer may not contain. A tag of several tokens cannot be banned: each is of use elsewhere.
    fn banned(&self) -> Vec<u32> {
        self.start.into_iter().chain(self.end).collect()
    }
}

impl LlamaCppBackend {
    /// The server, not asked anything yet.
    pub fn new(connections: &Connections, settings: Settings) -> Result<LlamaCppBackend, SettingsError> {
        // The server closes a connection after a stream, and after its hundredth request, without having said so:
        // what is sent there in that moment gets no answer.
        let client = client::Settings { keep_alive: false, ..settings.client.clone() };
        let client = UpstreamClient::new(connections, client)?;
        Ok(LlamaCppBackend {
            client,
            settings,
            speed: SpeedEstimator::default(),
            tag_tokens: OnceCell::new(),
            chat: OnceCell::new(),
            props: OnceCell::new(),
        })
    }

    async fn start(&self, call: BackendCall) -> Result<Generation, Failure> {
        if let Some(text) = call.request.raw_prompt() {
            return self.continue_text(&call, &text).await;
        }
        if !self.thinks().await? {
            return self.chat().await?.start(call.unthought()).await;
        }
        if call.class != EnforcementClass::Continue {
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

    /// The chat endpoint. What the server counts and puts in itself is the template's, so that is asked for once.
    async fn chat(&self) -> Result<&RemoteBackend<ChatCompletions>, Failure> {
        let learn = || async {
            let closing = self.tag_tokens().await?.hand_off;
            let opening = self.opening_tokens().await?;
            let Settings { start_tag, end_tag, hand_off, .. } = self.settings.clone();
            let dialect = Dialect::llamacpp();
            let settings = openai::Settings {
                dialect,
                start_tag,
                end_tag,
                hand_off,
                opening_tokens: opening,
                closing_tokens: closing,
                ..openai::Settings::default()
            };
            let (client, pace) = (self.client.clone(), self.speed.clone());
            Ok(RemoteBackend { client, provider: ChatCompletions::new(settings), speed: pace })
        };
        self.chat.get_or_try_init(learn).await
    }

    /// Whether there is a thought to be held: by what is configured, else by the chat template, in which a model that thinks
    /// has words for it. A server that does not show its template is taken to have one that does.
    async fn thinks(&self) -> Result<bool, Failure> {
        if let Some(thinks) = self.settings.thinks {
            return Ok(thinks);
        }
        let learn = || async {
            match self.client.get("props").await {
                Ok(props) => {
                    let thinks = template::knows_thinking(&props, &self.settings);
                    Ok(Props { thinks, context: template::context(&props) })
                }
                // It may be loading still.
                Err(failure) if failure.retry == Retry::Again => Err(failure.unsent()),
                Err(_) => Ok(Props { thinks: true, context: None }),
            }
        };
        Ok(self.props.get_or_try_init(learn).await?.thinks)
    }

    /// How many tokens the template puts behind the tag that begins a thought.
    async fn opening_tokens(&self) -> Result<Tokens, Failure> {
        if !self.thinks().await? {
            return Ok(Tokens::ZERO);
        }
        let request = Request::new("", vec![Message::text(Role::User, "?")]);
        let prompt = self.render(&request, true).await?;
        if !request::opens_thought(&self.settings, &prompt) {
            return Ok(Tokens::ZERO);
        }
        let behind = &prompt[prompt.trim_end().len()..];
        Ok(if behind.is_empty() { Tokens::ZERO } else { count(&self.tokenize(behind).await?) })
    }

    async fn generate_thought(&self, call: &BackendCall, thinking: Tokens) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.tag_tokens().await?;
        let prompt = request::with_open_thought(&self.settings, self.render(&call.request, true).await?);
        let mut body = request::thought_body(&self.settings, call, &prompt, thinking);
        passthrough::add_members_after_template(&mut body, call, self.client.members());
        let events = self
            .client
            .stream("completion", &body, SilencePolicy::Streams)
            .await?
            .with_token_limit(call.part.tokens_max());
        let reader = events::LlamaCppReader::thought(vocabulary.end);
        let pieces = generation_stream(events, reader, lap, VecDeque::new());
        let client = self.client.clone();
        Ok(Box::pin(pieces.then(move |piece| restore_missing_text(client.clone(), piece))))
    }

    async fn generate_solution(
        &self,
        call: &BackendCall,
        thought: &Thought,
        solution: Tokens,
    ) -> Result<Generation, Failure> {
        let lap = self.speed.start();
        let vocabulary = self.tag_tokens().await?;
        let (prompt, hand_off) = self.resumed_prompt(&call.request, thought).await?;
        let mut body = request::solution_body(call, prompt, solution, &vocabulary.banned());
        passthrough::add_members_after_template(&mut body, call, self.client.members());
        let events = self
            .client
            .stream("completion", &body, SilencePolicy::Streams)
            .await?
            .with_token_limit(call.part.tokens_max());
        let first = hand_off.then_some(Piece::HandOff { tokens: vocabulary.hand_off });
        let reader = events::LlamaCppReader::solution(self.splitter(vocabulary));
        let pieces = generation_stream(events, reader, lap, first.into_iter().collect());
        Ok(tool_calls::extract_calls(pieces, &call.request, self.settings.tool_syntax))
    }

    /// How a text goes on, without template or tags.
    async fn continue_text(&self, call: &BackendCall, text: &str) -> Result<Generation, Failure> {
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
        let mut body = request::solution_body(call, json!(text), solution, &[]);
        passthrough::add_members_after_template(&mut body, call, self.client.members());
        let events = self
            .client
            .stream("completion", &body, SilencePolicy::Streams)
            .await?
            .with_token_limit(call.part.tokens_max());
        Ok(generation_stream(events, events::LlamaCppReader::solution(None), lap, VecDeque::new()))
    }

    /// What stands before the answer, and whether our hand-off is a part of it.
    async fn resumed_prompt(&self, request: &Request, thought: &Thought) -> Result<(Value, bool), Failure> {
        let thinks = self.render(request, true).await?;
        if !thought.closed && thought.text.is_empty() && thought.ids.is_empty() {
            // No thought at all: a template that can close it by itself does so in the form that was trained.
            let closed = self.render(request, false).await?;
            if closed != thinks && !request::opens_thought(&self.settings, &closed) {
                return Ok((json!(closed), false));
            }
        }
        let prompt = request::with_open_thought(&self.settings, thinks);
        let hand_off = request::needs_hand_off(&self.settings, thought);
        Ok((request::resumed_prompt(&self.settings, &prompt, thought), hand_off))
    }

    /// Tags that are banned stay out by themselves; what spells them then only speaks of them.
    fn splitter(&self, vocabulary: &LlamaCppTagTokens) -> Option<Splitter> {
        let Settings { start_tag, end_tag, .. } = &self.settings;
        let banned = vocabulary.start.is_some() && vocabulary.end.is_some();
        (!banned).then(|| Splitter::after_thought(start_tag.as_str(), end_tag.as_str()))
    }

    async fn render(&self, request: &Request, thinking: bool) -> Result<String, Failure> {
        let answer =
            self.ask("apply-template", &request::template_body(&self.settings, request, thinking)).await?;
        let prompt = answer.get("prompt").and_then(Value::as_str).map(str::to_owned);
        prompt.ok_or_else(|| Failure::new(Fault::Backend, "the server rendered no prompt").unsent())
    }

    async fn tag_tokens(&self) -> Result<&LlamaCppTagTokens, Failure> {
        let learn = || async {
            let hand_off = self.tokenize(&self.settings.hand_off).await?;
            let start = single(&self.tokenize(&self.settings.start_tag).await?);
            let end = single(&self.tokenize(&self.settings.end_tag).await?);
            Ok(LlamaCppTagTokens { hand_off: count(&hand_off), start, end })
        };
        self.tag_tokens.get_or_try_init(learn).await
    }

    /// A question that costs nothing: its failures never reached a model.
    async fn ask(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.client.json(path, body).await.map_err(Failure::unsent)
    }

    /// The prompt's tokens, with those that the server puts before it.
    async fn count_prompt_tokens(&self, request: &Request) -> Result<Tokens, Failure> {
        let prompt = match request.raw_prompt() {
            Some(text) => text,
            None => self.render(request, true).await?,
        };
        let body = json!({"content": prompt, "parse_special": true, "add_special": true});
        Ok(count(&ids(&self.ask("tokenize", &body).await?)?))
    }

    async fn tokenize(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let answer = self.ask("tokenize", &json!({"content": text, "parse_special": true})).await?;
        ids(&answer)
    }
}

fn ids(answer: &Value) -> Result<Vec<u32>, Failure> {
    let ids = answer.get("tokens").and_then(|ids| serde_json::from_value(ids.clone()).ok());
    ids.ok_or_else(|| Failure::new(Fault::Backend, "the server told no tokens").unsent())
}

/// A thought that is cut right after what looks like the beginning of the tag lacks it: the server told the
/// tokens and kept their text. What they say is asked for then; half a character says nothing.
async fn restore_missing_text(
    client: UpstreamClient,
    piece: Result<Piece, Failure>,
) -> Result<Piece, Failure> {
    match piece {
        Ok(Piece::Thought { text, tokens, ids }) if text.is_empty() && !ids.is_empty() => {
            let answer = client.json("detokenize", &json!({"tokens": &ids})).await.unwrap_or_default();
            let text = answer.get("content").and_then(Value::as_str).unwrap_or_default();
            let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned();
            Ok(Piece::Thought { text, tokens, ids })
        }
        piece => piece,
    }
}

fn count(ids: &[u32]) -> Tokens {
    Tokens(ids.len().try_into().unwrap_or(u64::MAX))
}

fn single(ids: &[u32]) -> Option<u32> {
    match ids {
        [id] => Some(*id),
        _ => None,
    }
}

impl Backend for LlamaCppBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.start(call).boxed()
    }

    fn embed(&self, ask: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        async move {
            let body = wire::embedding(&ask, None);
            let answer = self.client.json("v1/embeddings", &body).await;
            super::parse_embeddings(answer?, ask.inputs.len())
        }
        .boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request)
    }

    fn count_prompt(&self, request: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        async move { self.count_prompt_tokens(&request).await.ok() }.boxed()
    }

    fn conditions(&self) -> ModelConditions {
        self.speed.conditions()
    }

    fn behavior(&self) -> TargetBehavior {
        let told = self.settings.thinks.or(self.props.get().map(|props| props.thinks));
        TargetBehavior {
            turns: Turns::Always,
            never_thinks: told == Some(false),
            ..TargetBehavior::default()
        }
    }

    fn context(&self) -> Option<Tokens> {
        self.props.get()?.context
    }

    fn take_resent(&self) -> u64 {
        self.client.take_resent()
    }

    fn take_exhausted_rate_limits(&self) -> u64 {
        self.client.take_exhausted_rate_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::remote::golden;

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
