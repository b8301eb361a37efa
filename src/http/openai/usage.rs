//! The usage of a completion, as one object or as the last chunk has it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::gateway::RequestReceipt;
use crate::http::provider_members;
use stint_types::catalog::ChoiceUsage;
use stint_types::chat::AnswerApi;
use stint_types::units::Tokens;

/// What was counted, and what a provider counts besides.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UsageReport {
    /// The gateway's own counts alone.
    Own(CountedUsage),
    /// Those with a provider's among them.
    Extended(Value),
}

/// What was counted.
#[derive(Debug, Serialize)]
pub(super) struct CountedUsage {
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

/// The delivered choices, summed; the prompt, and what of it came from the provider's cache, once.
pub(super) fn usage(receipt: &RequestReceipt) -> UsageReport {
    let (own, besides) = (counted(receipt), provider_members::of_usage(receipt, AnswerApi::Chat));
    if besides.is_empty() {
        return UsageReport::Own(own);
    }
    let mut usage = json!(own);
    provider_members::add(&mut usage, besides);
    UsageReport::Extended(usage)
}

fn counted(receipt: &RequestReceipt) -> CountedUsage {
    let total = |count: fn(&ChoiceUsage) -> Tokens| -> Tokens {
        receipt.choices.iter().map(|choice| count(&choice.spent)).sum()
    };
    let first = receipt.choices.first().map(|choice| &choice.spent);
    let prompt = first.map_or(Tokens::ZERO, |spent| spent.prompt);
    let cache = first.map(ChoiceUsage::prompt_cache).unwrap_or_default();
    let completion = total(ChoiceUsage::completion);
    CountedUsage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        prompt_tokens_details: PromptDetails { cached_tokens: cache.read, cache_write_tokens: cache.write },
        completion_tokens_details: CompletionDetails { reasoning_tokens: total(|spent| spent.thinking) },
    }
}
