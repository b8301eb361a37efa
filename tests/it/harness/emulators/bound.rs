//! Thoughts that are bound to all that stood before them: tools, the system's words, every earlier message and block, and
//! the thought before. Thoughts may be left out from the oldest on, from the end, or all, and never from the middle.
//!
//! As platform.claude.com/docs/en/build-with-claude/preserved-thinking has it (2026-11).

use serde_json::{Value, json};

use super::sign;

/// What the provider sends where a thought stands behind another beginning.
const MESSAGE: &str = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set \
                       `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";

/// The features that such models have before their release.
pub(super) const BETAS: [&str; 5] = [CLEAR_AT, TOOL_CHANGES, BINDING, TASK_BUDGET, EFFORTS];
const CLEAR_AT: &str = "mid-conversation-system-clear-at-2026-08-21";
const TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
const BINDING: &str = "thinking-binding-controls-2026-08-01";
/// platform.claude.com/docs/en/build-with-claude/effort-per-message (2026-11).
const EFFORTS: &str = "mid-conversation-output-config-2026-07-01";
const TASK_BUDGET: &str = "task-budgets-2026-03-13";

/// Refuses a task's budget that there cannot be: platform.claude.com/docs/en/build-with-claude/task-budgets (2026-11).
pub(super) fn check_task_budget(body: &Value) -> Result<(), String> {
    let task = &body["output_config"]["task_budget"];
    match (task["type"].as_str(), task["total"].as_u64(), task["remaining"].as_u64().unwrap_or(0)) {
        _ if task.is_null() => Ok(()),
        (Some("tokens"), Some(total), left) if total >= 20_000 && left <= total => Ok(()),
        _ => Err(format!("output_config.task_budget: {task}: total must be at least 20000")),
    }
}

/// Refuses what wants a feature that was not asked for.
pub(super) fn check_betas(body: &Value, asked: &[&str]) -> Result<(), String> {
    let text = body["messages"].to_string();
    let used = [
        (CLEAR_AT, "clear_at", text.contains("\"clear_at\"")),
        (
            TOOL_CHANGES,
            "tool_removal",
            text.contains("\"tool_removal\"") || text.contains("\"tool_addition\""),
        ),
        (EFFORTS, "output_config", text.contains("\"output_config\"")),
        (BINDING, "block_binding", !body["thinking"]["block_binding"].is_null()),
        (TASK_BUDGET, "task_budget", !body["output_config"]["task_budget"].is_null()),
    ];
    match used.iter().find(|(beta, _, is_used)| *is_used && !asked.contains(beta)) {
        Some((_, name, _)) => Err(format!("{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// What stands before the next block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    sum: String,
    /// The signature of the thought before it, if there is one.
    thought: String,
}

impl Prefix {
    /// Reads a request, and checks each thought in it.
    pub(super) fn read(model: &str, body: &Value) -> Result<Prefix, String> {
        let mut prefix = Prefix::default();
        let list = |value: &Value| match value {
            Value::Array(blocks) => blocks.clone(),
            Value::Null => Vec::new(),
            text => vec![json!({"type": "text", "text": text})],
        };
        for block in list(&body["tools"]).iter().chain(&list(&body["system"])) {
            prefix.push(block);
        }
        for (at, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
            prefix.push(&json!([message["role"], message["clear_at"]]));
            for (number, block) in list(&message["content"]).iter().enumerate() {
                if block["type"] != "thinking" {
                    prefix.push(block);
                    continue;
                }
                let (text, signature) =
                    (block["thinking"].as_str().unwrap_or_default(), block["signature"].as_str());
                let (sum, before) = parts(signature.unwrap_or_default());
                let is_next = prefix.thought.is_empty() || before == own(&prefix.thought);
                if !is_next || signature != Some(&signed(model, text, &sum, &before)) || sum != prefix.sum {
                    return Err(format!("messages.{at}.content.{number}: {MESSAGE}"));
                }
                signature.unwrap_or_default().clone_into(&mut prefix.thought);
            }
        }
        prefix.push(&json!(["assistant", null]));
        Ok(prefix)
    }

    /// Adds a block. Marks for a cache do not count.
    pub(super) fn push(&mut self, block: &Value) {
        let mut block = block.clone();
        if let Some(members) = block.as_object_mut() {
            members.shift_remove("cache_control");
        }
        self.sum = sign("", &format!("{}{block}", self.sum));
    }

    /// Signs a thought that stands here.
    pub(super) fn sign(&mut self, model: &str, text: &str) -> String {
        let signature = signed(model, text, &self.sum, &own(&self.thought));
        signature.clone_into(&mut self.thought);
        signature
    }
}

fn signed(model: &str, text: &str, sum: &str, before: &str) -> String {
    format!("{}|{sum}|{before}", sign(model, &format!("{text}{sum}{before}")))
}

/// What a signature says of the prefix, and of the thought before.
fn parts(signature: &str) -> (String, String) {
    let mut parts = signature.split('|').skip(1).map(str::to_owned);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// What tells a thought from others.
fn own(signature: &str) -> String {
    signature.split('|').next().unwrap_or_default().to_owned()
}
