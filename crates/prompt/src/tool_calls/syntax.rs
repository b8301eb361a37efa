//! The families of models by how they write a call.

use std::borrow::Cow;

use stint_types::chat::Tool;

use super::coder::{self, StringParams};
use super::declared_tools::DeclaredTools;
use super::json::{self, WrittenCall};
use super::tool_names::ToolNames;
use super::{deepseek, harmony, mistral};

/// How a family of models writes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallSyntax {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen 2.5 and 3, and many that were trained on
    /// their data.
    Hermes,
    /// `[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`, to the end of the text: Mistral. Since Devstral and Magistral each
    /// call is `[TOOL_CALLS]…[ARGS]{…}`.
    Mistral,
    /// The whole answer is `{"name": …, "parameters": {…}}`, several of them parted by `;`: Llama 3.1 and later.
    Llama,
    /// `<tool_call><function=…><parameter=…>…</parameter></function></tool_call>`: Qwen 3 Coder and later families, which
    /// now and then forget the first tag.
    Coder,
    /// `<｜tool▁calls▁begin｜>`, each call between tokens of its own, `<｜tool▁calls▁end｜>`: `DeepSeek` V3, R1 and later.
    DeepSeek,
    /// `<|channel|>commentary to=functions.… <|constrain|>json<|message|>{…}<|call|>`: gpt-oss.
    Harmony,
}

/// The end of a call that is wrapped in tags.
const WRAPPED: &str = "</tool_call>";

impl ToolCallSyntax {
    /// The syntax that a chat template shows a model, if it is one of these.
    pub fn of_template(template: &str) -> Option<ToolCallSyntax> {
        let has = |mark: &str| template.contains(mark);
        if has("<function=") && has("<parameter=") {
            Some(ToolCallSyntax::Coder)
        } else if has(deepseek::START) {
            Some(ToolCallSyntax::DeepSeek)
        } else if has("<|channel|>commentary") && has("to=functions.") {
            Some(ToolCallSyntax::Harmony)
        } else if has("<tool_call>") {
            Some(ToolCallSyntax::Hermes)
        } else if has(mistral::START) {
            Some(ToolCallSyntax::Mistral)
        } else if has("<|start_header_id|>") && has("\"parameters\"") {
            Some(ToolCallSyntax::Llama)
        } else {
            None
        }
    }

    /// Whether a token of this name is a part of a call. Many models have such tokens among those that have no text.
    pub(crate) fn is_tag(name: &str) -> bool {
        [&["<tool_call>", WRAPPED][..], &mistral::TAGS, &deepseek::TAGS]
            .iter()
            .any(|tags| tags.contains(&name))
    }

    /// What a call may begin with. Llama's brace is a part of the call; a tag is none. A coder's function begins one only
    /// where there is such a tool: others are written about.
    pub(super) fn starts(self, tools: &[Tool]) -> Vec<Cow<'static, str>> {
        let tags: &[&'static str] = match self {
            ToolCallSyntax::Hermes | ToolCallSyntax::Coder => &["<tool_call>"],
            ToolCallSyntax::Mistral => &[mistral::START],
            ToolCallSyntax::Llama => &["{"],
            ToolCallSyntax::DeepSeek => &[deepseek::START],
            ToolCallSyntax::Harmony => harmony::STARTS,
        };
        let functions =
            tools.iter().filter(|_| self == ToolCallSyntax::Coder).map(|tool| coder::start(&tool.name));
        tags.iter().map(|tag| Cow::Borrowed(*tag)).chain(functions.map(Cow::Owned)).collect()
    }

    /// What ends a call that was opened so; nothing but the end of the text where there is none.
    pub(super) fn end(self, opened: &str) -> Option<&'static str> {
        match self {
            ToolCallSyntax::Coder if coder::is_start(opened) => Some(coder::END),
            ToolCallSyntax::Hermes | ToolCallSyntax::Coder => Some(WRAPPED),
            ToolCallSyntax::DeepSeek => Some(deepseek::LAST),
            ToolCallSyntax::Harmony => Some(harmony::END),
            ToolCallSyntax::Mistral | ToolCallSyntax::Llama => None,
        }
    }

    /// True if the end of the text may end a call too that was opened so. Of a bare function its end tag is a part.
    pub(super) fn ends_with_text(self, opened: &str) -> bool {
        !(self == ToolCallSyntax::Coder && coder::is_start(opened))
    }

    /// True if a call's end tag may stand in its text as well, inside a string.
    pub(super) fn may_quote_end(self, text: &str) -> bool {
        self == ToolCallSyntax::Hermes && text.trim_start().starts_with('{')
    }

    /// What may stand behind a call that was opened so and belongs to it all the same: the tag whose fellow was forgotten.
    pub(super) fn tail(self, opened: &str) -> Option<&'static str> {
        (self == ToolCallSyntax::Coder && coder::is_start(opened)).then_some(WRAPPED)
    }

    /// The calls that stand in a text between start and end; nothing if it is none.
    pub(super) fn read(self, opened: &str, text: &str, tools: &DeclaredTools) -> Option<Vec<WrittenCall>> {
        let texts = &tools.string_params;
        match self {
            ToolCallSyntax::Coder if coder::is_start(opened) => {
                coder::read(&[opened, text, coder::END].concat(), texts)
            }
            ToolCallSyntax::Hermes => json::parse_one(text),
            ToolCallSyntax::Mistral => mistral::read(text),
            ToolCallSyntax::Llama => json::parse_sequence(text, &tools.names),
            ToolCallSyntax::Coder => coder::read(text, texts),
            ToolCallSyntax::DeepSeek => deepseek::read(text),
            ToolCallSyntax::Harmony => harmony::read(text),
        }
    }

    /// The whole calls at the beginning of a text whose last call broke off.
    pub(super) fn leading_calls(self, text: &str, tools: &DeclaredTools) -> Vec<WrittenCall> {
        match self {
            ToolCallSyntax::Mistral => mistral::leading_calls(text),
            ToolCallSyntax::Llama => json::leading_calls(text, &tools.names).0,
            ToolCallSyntax::Coder => coder::leading_calls(text, &tools.string_params).0,
            ToolCallSyntax::DeepSeek => deepseek::leading_calls(text).0,
            // Each call has tags of its own.
            ToolCallSyntax::Hermes | ToolCallSyntax::Harmony => Vec::new(),
        }
    }

    /// Whether what the end of the text left open is a call that broke off, and no text.
    pub(super) fn is_truncated(self, opened: &str, text: &str, tools: &DeclaredTools) -> bool {
        match self {
            ToolCallSyntax::Mistral => mistral::is_truncated(text),
            ToolCallSyntax::Llama => json::is_sequence_cut(text, &tools.names),
            // Behind an end tag there is more than a call.
            ToolCallSyntax::Hermes => json::is_object_cut(text) && !text.contains(WRAPPED),
            ToolCallSyntax::Coder => coder::is_truncated(opened, text),
            // Nobody writes such a tag into a text.
            ToolCallSyntax::DeepSeek | ToolCallSyntax::Harmony => true,
        }
    }

    /// Whether a limit that ends the text here has cut a call, though the text would be a call, or no part of one, had the model
    /// ended it.
    pub(super) fn is_cut_at_limit(self, text: &str) -> bool {
        text.trim().is_empty() || (self == ToolCallSyntax::Mistral && mistral::ends_before_arguments(text))
    }

    /// What must be known of the tools.
    pub(super) fn declared(self, tools: &[Tool]) -> DeclaredTools {
        match self {
            ToolCallSyntax::Coder => {
                DeclaredTools { string_params: StringParams::of(tools), ..DeclaredTools::default() }
            }
            ToolCallSyntax::Llama => {
                DeclaredTools { names: ToolNames::of(tools), ..DeclaredTools::default() }
            }
            _ => DeclaredTools::default(),
        }
    }
}
