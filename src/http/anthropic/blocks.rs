//! The content blocks of a Messages answer: those of a whole answer, and each kind's form for the stream.

use serde_json::{Value, json};

use crate::http::collected_choice::CollectedChoice;
use crate::http::signed;
use stint_types::chat::{ChoiceEvent, SignedThought};

use super::thoughts::AnthropicThoughts;

/// Arguments that are no JSON, as Anthropic has them wrapped.
const INVALID: &str = "INVALID_JSON";

/// The blocks of a whole answer.
pub(super) fn render_blocks(choice: CollectedChoice, thoughts: AnthropicThoughts) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for event in choice.into_events() {
        match event {
            // There is no place for these in a message.
            ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(_) => {}
            ChoiceEvent::Signed(_) if thoughts == AnthropicThoughts::Hidden => {}
            ChoiceEvent::Signed(signed) if thoughts == AnthropicThoughts::Sealed => {
                blocks.push(thinking("", &signed::seal(&signed)));
            }
            ChoiceEvent::Thought(_) if thoughts != AnthropicThoughts::Shown => {}
            ChoiceEvent::Thought(text) => blocks.push(thinking(&text, "")),
            ChoiceEvent::Signed(signed) => sign(&mut blocks, &signed),
            ChoiceEvent::Answer(text) => blocks.push(text_block(&text)),
            ChoiceEvent::ToolCall(call) => {
                let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
                blocks.push(tool_use(&id, &name, &input(&call.arguments)));
            }
        }
    }
    blocks
}

/// A signed part belongs to the thought before it, or stands for one that nobody may see.
fn sign(blocks: &mut Vec<Value>, signed: &SignedThought) {
    match blocks.last_mut() {
        Some(last) if last["type"] == "thinking" && last["signature"] == "" => {
            last["signature"] = signed::seal(signed).into();
        }
        _ => blocks.push(redacted(signed)),
    }
}

pub(super) fn thinking(text: &str, signature: &str) -> Value {
    json!({ "type": "thinking", "thinking": text, "signature": signature })
}

pub(super) fn redacted(signed: &SignedThought) -> Value {
    json!({ "type": "redacted_thinking", "data": signed::seal(signed) })
}

pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(super) fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(input)) => Value::Object(input),
        _ if arguments.trim().is_empty() => json!({}),
        _ => json!({ INVALID: arguments }),
    }
}
