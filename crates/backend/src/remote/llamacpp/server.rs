//! What a llama.cpp server is asked besides generating: its model's properties, rendered prompts, and tokens. None of it
//! costs anything.

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::remote::UpstreamRequest;
use crate::remote::client::UpstreamClient;
use crate::{Failure, Fault, Retry, Thought};
use stint_types::chat::{Message, RawPrompt, Request, Role};
use stint_types::units::Tokens;

use super::{Settings, request, template};

/// One server and what it has answered.
#[derive(Debug)]
pub(super) struct LlamaCppServer {
    pub(super) client: UpstreamClient,
    pub(super) settings: Settings,
    tag_tokens: OnceCell<LlamaCppTagTokens>,
    props: OnceCell<Props>,
}

/// What the server reports of its model; asked once.
#[derive(Debug)]
struct Props {
    /// Whether its chat template knows of thoughts.
    thinks: bool,
    context: Option<Tokens>,
}

/// What the server's tokenizer makes of our texts; asked once.
#[derive(Debug)]
pub(super) struct LlamaCppTagTokens {
    pub(super) hand_off: Tokens,
    /// The tag that begins a thought, where it is one token.
    pub(super) start: Option<u32>,
    /// The tag that closes a thought, where it is one token.
    pub(super) end: Option<u32>,
}

impl LlamaCppTagTokens {
    /// What an answer may not contain. A tag of several tokens cannot be banned: each is of use elsewhere.
    pub(super) fn banned(&self) -> Vec<u32> {
        self.start.into_iter().chain(self.end).collect()
    }
}

impl LlamaCppServer {
    /// The server, not asked anything yet.
    pub(super) fn new(client: UpstreamClient, settings: Settings) -> LlamaCppServer {
        LlamaCppServer { client, settings, tag_tokens: OnceCell::new(), props: OnceCell::new() }
    }

    /// The context, once the server was asked for it.
    pub(super) fn context(&self) -> Option<Tokens> {
        self.props.get()?.context
    }

    /// True if it is known that the model does not think.
    pub(super) fn never_thinks(&self) -> bool {
        self.settings.thinks.or(self.props.get().map(|props| props.thinks)) == Some(false)
    }

    /// Whether there is a thought to be held: by what is configured, else by the chat template, in which a model that thinks
    /// has words for it. A server that does not show its template is taken to have one that does.
    pub(super) async fn thinks(&self) -> Result<bool, Failure> {
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
    pub(super) async fn opening_tokens(&self) -> Result<Tokens, Failure> {
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

    /// What stands before the answer, and whether our hand-off is a part of it.
    pub(super) async fn resumed_prompt(
        &self,
        request: &Request,
        thought: &Thought,
    ) -> Result<(Value, bool), Failure> {
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

    pub(super) async fn render(&self, request: &Request, thinking: bool) -> Result<String, Failure> {
        let answer =
            self.ask("apply-template", request::template_body(&self.settings, request, thinking)).await?;
        let prompt = answer.get("prompt").and_then(Value::as_str).map(str::to_owned);
        prompt.ok_or_else(|| Failure::new(Fault::Backend, "the server rendered no prompt").unsent())
    }

    pub(super) async fn tag_tokens(&self) -> Result<&LlamaCppTagTokens, Failure> {
        let learn = || async {
            let hand_off = self.tokenize(&self.settings.hand_off).await?;
            let start = single(&self.tokenize(&self.settings.start_tag).await?);
            let end = single(&self.tokenize(&self.settings.end_tag).await?);
            Ok(LlamaCppTagTokens { hand_off: count(&hand_off), start, end })
        };
        self.tag_tokens.get_or_try_init(learn).await
    }

    /// A question that costs nothing: its failures never reached a model.
    async fn ask(&self, path: &'static str, body: Value) -> Result<Value, Failure> {
        self.client.json(UpstreamRequest::new(path, body)).await.map_err(Failure::unsent)
    }

    /// The prompt's tokens, with those that the server puts before it.
    pub(super) async fn count_prompt_tokens(&self, request: &Request) -> Result<Tokens, Failure> {
        let prompt = match request.raw_prompt() {
            Some(RawPrompt::Text(text)) => text,
            Some(RawPrompt::Ids(ids)) => return Ok(count(&ids)),
            None => self.render(request, true).await?,
        };
        let body = json!({"content": prompt, "parse_special": true, "add_special": true});
        Ok(count(&ids(&self.ask("tokenize", body).await?)?))
    }

    async fn tokenize(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let answer = self.ask("tokenize", json!({"content": text, "parse_special": true})).await?;
        ids(&answer)
    }
}

fn ids(answer: &Value) -> Result<Vec<u32>, Failure> {
    let ids = answer.get("tokens").and_then(|ids| serde_json::from_value(ids.clone()).ok());
    ids.ok_or_else(|| Failure::new(Fault::Backend, "the server returned no tokens").unsent())
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
