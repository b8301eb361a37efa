//! Estimates how many tokens a prompt probably has, where neither its tokenizer nor an upstream can count them. Unlike the
//! upper bound, the estimate limits nothing.

use serde_json::Value;

use stint_types::chat::{ContentPart, Message, Request};
use stint_types::units::Tokens;

use crate::media_bound;
use crate::prompt_text::{CONVERSATION, MESSAGE, TOOL};

/// English text and JSON have about four characters a token, other scripts fewer than two.
const ASCII_TOKEN: f64 = 0.25;
const OTHER_TOKEN: f64 = 0.7;

/// About so many tokens.
pub fn prompt_tokens(request: &Request) -> Tokens {
    if let Some(ids) = &request.prompt_ids {
        return Tokens(ids.len() as u64);
    }
    let messages: f64 = request.messages.iter().map(message).sum();
    let tools: f64 = request.tools.iter().map(|tool| TOOL + json(&tool.declaration)).sum();
    let format = request.response_format.as_ref().map_or(0.0, json);
    Tokens::round(CONVERSATION + messages + tools + format)
}

fn message(message: &Message) -> f64 {
    let content: f64 = message.content.iter().map(part).sum();
    let calls = message.tool_calls.iter().map(|call| MESSAGE + text(&call.name) + text(&call.arguments));
    let thought = message.thought.as_deref().map_or(0.0, text);
    MESSAGE + content + calls.sum::<f64>() + thought
}

fn part(part: &ContentPart) -> f64 {
    match part {
        ContentPart::Text(said) => text(said),
        ContentPart::Other(value) => media_bound::usual(value),
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => 0.0,
    }
}

fn json(value: &Value) -> f64 {
    text(&value.to_string())
}

/// Counted as fast as memory is read: a prompt may have megabytes.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn text(text: &str) -> f64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii as f64 * ASCII_TOKEN + others as f64 * OTHER_TOKEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::Role;

    fn check(said: &str, least: u64, most: u64) {
        let guess = prompt_tokens(&Request::new("m", vec![Message::text(Role::User, said)])).0;
        assert!((least..=most).contains(&guess), "{said:?}: {guess}");
    }

    #[test]
    fn letters_count_by_their_script_wherever_they_stand() {
        for said in ["", "abc", "ü", "a人b工c", "🦀\0\u{7f}\u{80}", "é̂"] {
            let each: f64 =
                said.chars().map(|letter| if letter.is_ascii() { ASCII_TOKEN } else { OTHER_TOKEN }).sum();
            assert!((text(said) - each).abs() < 1e-9, "{said:?}");
        }
    }

    /// What `GPT-4o` and Claude count, within a third.
    #[test]
    fn a_guess_is_near_what_tokenizers_count() {
        check("What is the capital of France?", 11, 18);
        check("hi", 7, 10);
        check("Die Würde des Menschen ist unantastbar.", 14, 26);
        check("人工智能正在改变世界", 12, 20);
        check(&"The quick brown fox jumps over the lazy dog. ".repeat(100), 900, 1_300);
    }
}
