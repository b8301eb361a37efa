//! The hooks that judge one request, in the order of the configuration: each judges what those before it made of it.

use std::sync::Arc;

use stint_types::chat::{ContentPart, Message, Request, ToolCall};
use stint_types::units::AccountId;

use super::hook::{Hook, Question};
use super::settings::FailurePolicy;
use super::verdict::{AnswerVerdict, HookVerdict, Objection};
use super::wire;

/// The hooks of one request.
#[derive(Debug, Clone)]
pub struct GuardrailChain {
    pub(super) account: AccountId,
    pub(super) hooks: Vec<Arc<Hook>>,
}

/// One choice of an answer, as hooks see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgedChoice {
    /// What it thought.
    pub thought: String,
    /// What it says.
    pub answer: String,
    /// What it wants called.
    pub tool_calls: Vec<ToolCall>,
}

impl GuardrailChain {
    /// Whether requests are judged, before they run.
    pub fn judges_requests(&self) -> bool {
        self.hooks.iter().any(|hook| hook.settings.before)
    }

    /// Has the request judged, and rewritten where that is wanted.
    ///
    /// # Errors
    /// When a hook refuses it, or does not judge it and must.
    pub async fn before(&self, request: &mut Request) -> Result<(), Objection> {
        for hook in self.hooks.iter().filter(|hook| hook.settings.before) {
            // No hook can read tokens.
            if request.prompt_ids.is_some() {
                hook.count("before", "failed");
                match hook.settings.on_failure {
                    FailurePolicy::Closed => return Err(Objection::Tokens),
                    FailurePolicy::Open => continue,
                }
            }
            let body = wire::request(&self.account, request);
            let count = request.messages.len();
            let question = Question { stage: "before", body: &body, rewrite: ("messages", "content"), count };
            if let HookVerdict::Rewrite(texts) = hook.ask(question).await? {
                for (index, text) in texts {
                    rewrite(&mut request.messages[index], text);
                }
            }
        }
        Ok(())
    }

    /// Whether answers are judged, and must wait for that.
    pub fn judges_answers(&self) -> bool {
        self.hooks.iter().any(|hook| hook.settings.after)
    }

    /// Judges an answer: these are all of its choices.
    pub async fn after(self, model: Arc<str>, mut choices: Vec<JudgedChoice>) -> AnswerVerdict {
        let mut changed = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.settings.after) {
            let body = wire::answer(&self.account, &model, &choices);
            let count = choices.len();
            let question = Question { stage: "after", body: &body, rewrite: ("choices", "answer"), count };
            match hook.ask(question).await {
                Ok(HookVerdict::Rewrite(texts)) => {
                    for (index, text) in texts {
                        choices[index] = JudgedChoice { answer: text, ..std::mem::take(&mut choices[index]) };
                        choices[index].thought.clear();
                        changed.push(index);
                    }
                }
                Ok(_) => {}
                Err(objection) => return AnswerVerdict::Withhold(objection),
            }
        }
        changed.sort_unstable();
        changed.dedup();
        let text = |index: usize| (index, std::mem::take(&mut choices[index].answer));
        AnswerVerdict::Give(changed.into_iter().map(text).collect())
    }
}

/// Puts another text in place of a message's. Its images and other parts stay.
fn rewrite(message: &mut Message, text: String) {
    let mut text = Some(text);
    message.content.retain_mut(|part| match part {
        ContentPart::Text(old) => text.take().map(|new| *old = new).is_some(),
        _ => true,
    });
    message.content.extend(text.map(ContentPart::Text));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stint_types::chat::Role;

    use super::*;

    #[test]
    fn a_rewritten_message_keeps_all_but_its_text() {
        let image = ContentPart::Other(json!({ "type": "image_url" }));
        let mut message = Message::text(Role::User, "call ");
        message.content.extend([image.clone(), ContentPart::Text("0123".to_owned())]);
        rewrite(&mut message, "call [number]".to_owned());
        assert_eq!(message.content, [ContentPart::Text("call [number]".to_owned()), image.clone()]);
        let mut alone = Message { content: vec![image.clone()], ..Message::text(Role::User, "") };
        rewrite(&mut alone, "x".to_owned());
        assert_eq!(alone.content, [image, ContentPart::Text("x".to_owned())]);
    }
}
