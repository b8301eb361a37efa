//! What a server tells of its model: by its chat template, and of its context.

use serde_json::Value;

use stint_types::units::Tokens;

use super::Settings;

/// The arguments and members by which templates know of thoughts.
const THINKING_WORDS: [&str; 4] =
    ["enable_thinking", "reasoning_content", "thinking_budget", "reasoning_effort"];

/// Whether the template knows of thoughts; one that is not shown may.
pub(super) fn knows_thinking(props: &Value, settings: &Settings) -> bool {
    let Some(template) = props.get("chat_template").and_then(Value::as_str) else { return true };
    let tags = [settings.start_tag.as_str(), settings.end_tag.as_str()];
    template.is_empty() || tags.iter().chain(&THINKING_WORDS).any(|word| template.contains(*word))
}

/// How many tokens one conversation may have there, prompt and answer together.
pub(super) fn context(props: &Value) -> Option<Tokens> {
    let told = props.get("default_generation_settings")?.get("n_ctx")?.as_u64()?;
    (told > 0).then_some(Tokens(told))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_without_words_for_a_thought_is_of_a_model_that_does_not_think() {
        let thinks =
            |template: &str| knows_thinking(&json!({ "chat_template": template }), &Settings::default());
        assert!(!thinks("{% for message in messages %}<|im_start|>{{ message.role }}{% endfor %}"));
        assert!(thinks("{% if '</think>' in content %}"));
        assert!(thinks("{%- if enable_thinking is defined and not enable_thinking %}"));
        assert!(knows_thinking(&json!({}), &Settings::default()), "nothing is told");
    }
}
