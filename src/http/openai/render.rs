//! A whole completion as one object, and its usage.

use serde::Serialize;
use serde_json::{Value, json};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::{BudgetReport, budget};
use crate::http::collected_choice::CollectedChoice;
use crate::http::signed;
use stint_types::catalog::ChoiceUsage;
use stint_types::chat::{AnswerNote, ChoiceEvent, ToolCallDelta};
use stint_types::units::{RequestId, Timestamp, Tokens};

/// A whole answer.
#[derive(Debug, Serialize)]
struct Completion<'r> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'r str,
    system_fingerprint: &'r str,
    choices: Vec<WholeChoice>,
    usage: Usage,
    budget: BudgetReport<'r>,
}

/// A choice: of a conversation's answer its `message`, of how a text goes on its `text`.
#[derive(Debug, Serialize)]
struct WholeChoice {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<ChatMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    logprobs: Value,
    finish_reason: &'static str,
}

/// An answer as a message.
#[derive(Debug, Serialize)]
struct ChatMessage {
    role: &'static str,
    content: Option<String>,
    /// What the model says in place of an answer that it declines to give.
    refusal: Option<String>,
    /// The sources of the content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Value>,
    /// The thought once more, under another name, where that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
}

/// What was counted.
#[derive(Debug, Serialize)]
pub(super) struct Usage {
    prompt_tokens: Tokens,
    completion_tokens: Tokens,
    total_tokens: Tokens,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    cached_tokens: Tokens,
    /// What was put into the provider's cache, where that has a price.
    cache_write_tokens: Tokens,
}

#[derive(Debug, Serialize)]
struct CompletionDetails {
    reasoning_tokens: Tokens,
}

/// A choice as a message, and the chances of its tokens where they are wanted.
fn message(choice: CollectedChoice, options: OpenAiRenderOptions) -> (ChatMessage, Value) {
    let mut logprobs = Value::Null;
    let (mut thought, mut answer, mut refusal) = (String::new(), String::new(), None);
    let (mut tool_calls, mut reasoning_details, mut annotations) = (Vec::new(), Vec::new(), Vec::new());
    let mut extras = Vec::new();
    for event in choice.into_events() {
        match event {
            ChoiceEvent::Thought(text) if thought.is_empty() => thought = text,
            ChoiceEvent::Thought(text) => thought += &text,
            ChoiceEvent::Note(AnswerNote::Refusal) => refusal = Some(String::new()),
            ChoiceEvent::Note(AnswerNote::Annotation(source)) => annotations.push(source),
            // Chat completions have one message, and no place for this.
            ChoiceEvent::Note(AnswerNote::Phase(_)) => {}
            ChoiceEvent::Answer(text) => {
                let so_far = refusal.as_mut().unwrap_or(&mut answer);
                if so_far.is_empty() { *so_far = text } else { *so_far += &text }
            }
            ChoiceEvent::Logprobs(entries) => logprobs = logprobs_member(entries),
            ChoiceEvent::Signed(signed) => match signed::call_extra(&signed) {
                Some(extra) => extras.push(extra),
                None => reasoning_details.push(signed::reasoning_detail(&signed)),
            },
            ChoiceEvent::ToolCall(call) => tool_calls.push((call.index, tool_call(call))),
        }
    }
    if !options.thoughts {
        reasoning_details.clear();
    } else if options.mirror && !thought.is_empty() {
        reasoning_details.insert(0, signed::text_detail(&thought));
    }
    let tool_calls = with_extras(tool_calls, extras);
    // The model said only at the end that all of it declines.
    if refusal.as_ref().is_some_and(String::is_empty) {
        refusal = Some(std::mem::take(&mut answer));
    }
    let is_silent = answer.is_empty() && (!tool_calls.is_empty() || refusal.is_some());
    let reasoning_content = Some(thought).filter(|thought| options.thoughts && !thought.is_empty());
    let message = ChatMessage {
        role: "assistant",
        content: (!is_silent).then_some(answer),
        refusal,
        annotations,
        reasoning: reasoning_content.clone().filter(|_| options.mirror),
        reasoning_content,
        reasoning_details,
        tool_calls,
    };
    (message, logprobs)
}

fn tool_call(ToolCallDelta { id, name, arguments, .. }: ToolCallDelta) -> Value {
    let function = json!({ "name": name.unwrap_or_default(), "arguments": arguments });
    json!({ "id": id.unwrap_or_default(), "type": "function", "function": function })
}

/// The calls, by their place in the answer, with what their provider added to them.
fn with_extras(mut calls: Vec<(u32, Value)>, extras: Vec<(u32, Value)>) -> Vec<Value> {
    for (index, extra) in extras {
        if let Some((_, call)) = calls.iter_mut().find(|(at, _)| *at == index) {
            call["extra_content"] = extra;
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}

/// The chances of tokens, as OpenAI has them in a choice.
pub(super) fn logprobs_member(entries: Vec<Value>) -> Value {
    json!({ "content": Value::Array(entries), "refusal": null })
}

/// A choice as text alone.
fn text(choice: CollectedChoice) -> String {
    let answer = choice.into_events().into_iter().filter_map(|event| match event {
        ChoiceEvent::Answer(text) => Some(text),
        ChoiceEvent::Thought(_)
        | ChoiceEvent::Signed(_)
        | ChoiceEvent::Logprobs(_)
        | ChoiceEvent::Note(_)
        | ChoiceEvent::ToolCall(_) => None,
    });
    answer.collect()
}

/// Which of OpenAI's two completions is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionFormat {
    /// A turn of a conversation.
    Chat,
    /// How a text goes on.
    Text,
}

impl CompletionFormat {
    /// The endpoint's name.
    pub(super) fn endpoint(self) -> &'static str {
        match self {
            CompletionFormat::Chat => "chat.completions",
            CompletionFormat::Text => "completions",
        }
    }

    /// `chatcmpl-` or `cmpl-`, and the request's id.
    pub(super) fn id(self, id: RequestId) -> String {
        let prefix = match self {
            CompletionFormat::Chat => "chatcmpl-",
            CompletionFormat::Text => "cmpl-",
        };
        id.to_string().replacen("req_", prefix, 1)
    }

    /// What a whole answer, and what a chunk of one, is called.
    pub(super) fn objects(self) -> (&'static str, &'static str) {
        match self {
            CompletionFormat::Chat => ("chat.completion", "chat.completion.chunk"),
            CompletionFormat::Text => ("text_completion", "text_completion"),
        }
    }
}

/// How the answer is to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenAiRenderOptions {
    pub(super) kind: CompletionFormat,
    pub(super) thoughts: bool,
    pub(super) mirror: bool,
}

/// The whole answer as the text of one object.
pub(super) fn completion(
    receipt: &RequestReceipt,
    choices: Vec<CollectedChoice>,
    created: Timestamp,
    options: OpenAiRenderOptions,
) -> String {
    let choices = choices.into_iter().zip(&receipt.choices).enumerate().map(|(index, (choice, settled))| {
        let choice = choice.without_partial_calls(settled.finish);
        let (message, text, logprobs) = match options.kind {
            CompletionFormat::Chat => {
                let (message, logprobs) = message(choice, options);
                (Some(message), None, logprobs)
            }
            CompletionFormat::Text => (None, Some(text(choice)), Value::Null),
        };
        WholeChoice { index, message, text, logprobs, finish_reason: settled.finish.as_str() }
    });
    let completion = Completion {
        id: options.kind.id(receipt.id),
        object: options.kind.objects().0,
        created: created.as_seconds(),
        model: &receipt.model,
        system_fingerprint: &receipt.fingerprint,
        choices: choices.collect(),
        usage: usage(receipt),
        budget: budget(receipt),
    };
    // Values of ours always have JSON.
    serde_json::to_string(&completion).unwrap_or_default()
}

/// The delivered choices, summed; the prompt, and what of it came from the provider's cache, once.
pub(super) fn usage(receipt: &RequestReceipt) -> Usage {
    let total = |count: fn(&ChoiceUsage) -> Tokens| -> Tokens {
        receipt.choices.iter().map(|choice| count(&choice.spent)).sum()
    };
    let first = receipt.choices.first().map(|choice| &choice.spent);
    let prompt = first.map_or(Tokens::ZERO, |spent| spent.prompt);
    let cache = first.map(ChoiceUsage::prompt_cache).unwrap_or_default();
    let completion = total(ChoiceUsage::completion);
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        prompt_tokens_details: PromptDetails { cached_tokens: cache.read, cache_write_tokens: cache.write },
        completion_tokens_details: CompletionDetails { reasoning_tokens: total(|spent| spent.thinking) },
    }
}
