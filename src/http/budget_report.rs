//! The `budget` member of every answer, the same in all dialects: what was given, what was used, what it cost, and why.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::gateway::{RequestReceipt, SettledChoice, VoteTally};
use stint_types::catalog::{ChoiceUsage, ThinkingStopReason};
use stint_types::units::{Money, RequestId, Tokens};

use super::episodes;

/// The `budget` member of an answer.
#[derive(Debug, Serialize)]
pub(super) struct BudgetReport<'r> {
    id: RequestId,
    model: &'r str,
    enforced: &'static str,
    /// Of the one choice, where there is one.
    #[serde(flatten)]
    only: Option<PhasesReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<PhasesReport>>,
    /// Of the run that it was a step of.
    #[serde(flatten)]
    episode: Map<String, Value>,
    other: UndeliveredReport,
    cost_usd: Option<Money>,
    reserved_usd: Money,
    estimated: bool,
    why: &'r str,
}

/// The two phases of a choice.
#[derive(Debug, Serialize)]
struct PhasesReport {
    thinking: PhaseReport<ThinkingStopReason>,
    solution: PhaseReport<&'static str>,
    overhead_tokens: Tokens,
    #[serde(skip_serializing_if = "is_zero")]
    unfinished_tool_calls: u32,
    #[serde(skip_serializing_if = "is_zero")]
    thoughts_dropped: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SamplesReport>,
}

#[derive(Debug, Serialize)]
struct PhaseReport<E> {
    budget: Tokens,
    used: Tokens,
    ended: E,
}

/// How an answer was chosen among several.
#[derive(Debug, Serialize)]
struct SamplesReport {
    most: u32,
    asked: u32,
    cancelled: u32,
    agreed: u32,
    chosen_by: &'static str,
    ended: &'static str,
}

/// What was billed and not delivered: prompts read again, discarded tokens, failed attempts.
#[derive(Debug, Serialize)]
struct UndeliveredReport {
    attempts: u32,
    tokens: Tokens,
}

/// What an answer's `budget` says.
pub(super) fn budget(receipt: &RequestReceipt) -> BudgetReport<'_> {
    let phases = |choice: &SettledChoice| PhasesReport::of(receipt, choice);
    let (only, choices) = match &receipt.choices[..] {
        [only] => (Some(phases(only)), None),
        several => (None, Some(several.iter().map(phases).collect())),
    };
    BudgetReport {
        id: receipt.id,
        model: &receipt.model,
        enforced: receipt.class.as_str(),
        only,
        choices,
        episode: receipt.episode.iter().flat_map(episodes::step_members).collect(),
        other: UndeliveredReport::of(receipt),
        cost_usd: receipt.cost,
        reserved_usd: receipt.reserved,
        estimated: receipt.choices.iter().any(|choice| choice.spent.estimated),
        why: &receipt.why,
    }
}

impl PhasesReport {
    fn of(receipt: &RequestReceipt, choice: &SettledChoice) -> PhasesReport {
        let spent = &choice.spent;
        let (thinking, ended) = (spent.thinking, spent.thinking_ended);
        let (solution, solution_ended) = (spent.solution, spent.solution_ended.as_str());
        PhasesReport {
            thinking: PhaseReport { budget: receipt.thinking, used: thinking, ended },
            solution: PhaseReport { budget: receipt.solution, used: solution, ended: solution_ended },
            overhead_tokens: spent.overhead,
            unfinished_tool_calls: spent.unfinished_calls,
            thoughts_dropped: spent.thoughts_dropped,
            samples: choice.tally.map(SamplesReport::of),
        }
    }
}

impl SamplesReport {
    fn of(tally: VoteTally) -> SamplesReport {
        let VoteTally { most, asked, cancelled, agreed, by, ended } = tally;
        SamplesReport { most, asked, cancelled, agreed, chosen_by: by.as_str(), ended }
    }
}

impl UndeliveredReport {
    fn of(receipt: &RequestReceipt) -> UndeliveredReport {
        let again = receipt.choices.iter().skip(1).map(|choice| choice.spent.prompt).sum::<Tokens>();
        let each = |spent: &ChoiceUsage| spent.prompt_rebilled + spent.undelivered;
        let each = receipt.choices.iter().map(|choice| each(&choice.spent)).sum::<Tokens>();
        let attempts: u32 = receipt.choices.iter().map(|choice| choice.spent.extra_calls).sum();
        UndeliveredReport { attempts: attempts + receipt.attempts, tokens: each + again + receipt.given_up }
    }
}

/// Says of a count whether it is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
