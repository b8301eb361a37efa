//! A whole completion as one object.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::gateway::RequestReceipt;
use crate::http::budget_report::{BudgetReport, budget};
use crate::http::collected_choice::CollectedChoice;
use crate::http::{provider_members, signed};
use stint_types::chat::{AnswerApi, ChoiceEvent, CommentaryPlace};
use stint_types::units::{RequestId, Timestamp};

use super::choice_content::ChoiceContent;
use super::usage::{UsageReport, usage};

/// What an answer has beside its texts, usually.
const BESIDE_TEXTS: usize = 1536;

/// A whole answer.
#[derive(Debug, Serialize)]
struct Completion<'r> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'r str,
    system_fingerprint: &'r str,
    choices: Vec<WholeChoice>,
    usage: UsageReport,
    budget: BudgetReport<'r>,
    /// What the provider says besides.
    #[serde(flatten)]
    members: Map<String, Value>,
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
    #[serde(flatten)]
    members: Map<String, Value>,
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
    /// Pictures and sound that the model made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    audio: Map<String, Value>,
    /// The thought once more, under another name, where that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(flatten)]
    members: Map<String, Value>,
}

/// A choice as a message, and the chances of its tokens where they are wanted.
fn message(
    choice: CollectedChoice,
    members: Map<String, Value>,
    options: OpenAiRenderOptions,
) -> (ChatMessage, Value) {
    let ChoiceContent {
        thought,
        answer,
        refusal,
        annotations,
        images,
        audio,
        tool_calls,
        extras,
        mut reasoning_details,
        logprobs,
    } = ChoiceContent::of(choice, options.commentary);
    if !options.thoughts {
        reasoning_details.clear();
    } else if options.mirror && !thought.is_empty() {
        reasoning_details.insert(0, signed::text_detail(&thought));
    }
    let tool_calls = with_extras(tool_calls, extras);
    let has_other = !tool_calls.is_empty() || refusal.is_some() || !images.is_empty() || !audio.is_empty();
    let is_silent = answer.is_empty() && has_other;
    let reasoning_content = Some(thought).filter(|thought| options.thoughts && !thought.is_empty());
    let message = ChatMessage {
        role: "assistant",
        content: (!is_silent).then_some(answer),
        refusal,
        annotations,
        images,
        audio,
        reasoning: reasoning_content.clone().filter(|_| options.mirror),
        reasoning_content,
        reasoning_details,
        tool_calls,
        members,
    };
    (message, logprobs)
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

impl WholeChoice {
    /// How long its text and its thought are.
    fn text_bytes(&self) -> usize {
        let message = self.message.iter().flat_map(|message| [&message.content, &message.reasoning_content]);
        message.chain([&self.text]).flatten().map(String::len).sum()
    }
}

/// A value of ours as JSON, with texts of so many bytes in it.
fn json_of(value: &impl Serialize, texts: usize) -> String {
    let mut json = Vec::with_capacity(texts + BESIDE_TEXTS);
    // Values of ours always have JSON, which is text.
    let _ = serde_json::to_writer(&mut json, value);
    String::from_utf8(json).unwrap_or_default()
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
        let id = id.to_string();
        [prefix, id.strip_prefix("req_").unwrap_or(&id)].concat()
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
    pub(super) commentary: CommentaryPlace,
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
        let members = provider_members::of_choice(settled, AnswerApi::Chat);
        let (message, text, logprobs) = match options.kind {
            CompletionFormat::Chat => {
                let of_message = members.map(|members| members.message.clone()).unwrap_or_default();
                let (message, logprobs) = message(choice, of_message, options);
                (Some(message), None, logprobs)
            }
            CompletionFormat::Text => (None, Some(text(choice)), Value::Null),
        };
        let members = members.map(|members| members.choice.clone()).unwrap_or_default();
        WholeChoice { index, message, text, logprobs, finish_reason: settled.finish.as_str(), members }
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
        members: provider_members::of_answer(receipt, AnswerApi::Chat),
    };
    let length = completion.choices.iter().map(WholeChoice::text_bytes).sum::<usize>();
    json_of(&completion, length)
}
