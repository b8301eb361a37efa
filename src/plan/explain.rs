//! What decided, in one line.

use std::fmt::{self, Write as _};

use crate::catalog::{Demand, Offer, Prices};
use crate::units::{Limit, Tokens};

use super::PlanRequest;

/// What limits a thinking budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BudgetReason<'a> {
    /// The thinking budget that the caller stated, by this member.
    Stated(&'static str),
    /// The caller's effort, by this member.
    Effort(&'static str),
    /// The caller's limit on thought and answer, by this member.
    Total(&'static str),
    /// A text goes on without a thought.
    Text,
    /// The caller's limit on the cost, by this member.
    Cost(&'static str),
    /// The deadline, which the caller states by this member.
    Deadline(&'static str),
    /// The model's context.
    Context,
    /// The most that its provider lets it write in one call.
    Output,
    /// The most that the model can think.
    Provider,
    /// What the caller stated by this member does nothing, since the model is not known to think.
    NoThinking(&'static str),
    /// The caller's effort by this member says nothing of tokens, since it is not known how long the model usually thinks.
    Unknown(&'static str),
    /// The least that a provider takes.
    Least,
    /// What is left under a limit.
    Remaining(&'a Limit),
    /// More thinking was possible, and not worth its price.
    Value,
    /// All that is possible, so that whole lengths are seen.
    Uncapped,
}

/// How the model was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SelectedBy {
    /// By its worth.
    Valued,
    /// By a draw.
    Drawn,
}

impl BudgetReason<'_> {
    /// The caller's member that would have to say more; nothing where it is none of theirs.
    pub(super) fn member(self) -> Option<&'static str> {
        match self {
            BudgetReason::Stated(member)
            | BudgetReason::Effort(member)
            | BudgetReason::Total(member)
            | BudgetReason::Cost(member)
            | BudgetReason::Deadline(member) => Some(member),
            _ => None,
        }
    }
}

impl fmt::Display for BudgetReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BudgetReason::Stated(member) => return write!(f, "stated as {member}"),
            BudgetReason::Effort(member) => return write!(f, "by {member}"),
            BudgetReason::Total(member) | BudgetReason::Cost(member) => {
                return write!(f, "limited by {member}");
            }
            BudgetReason::NoThinking(member) => {
                return write!(f, "{member} has no effect since the model is not known to think");
            }
            BudgetReason::Unknown(member) => {
                return write!(f, "{member} cuts nothing since its usual thoughts are not known");
            }
            BudgetReason::Text => "as texts go on",
            BudgetReason::Deadline(_) => "limited by the deadline",
            BudgetReason::Context => "limited by the context",
            BudgetReason::Output => "limited by what its provider lets it write",
            BudgetReason::Provider => "the most that the model thinks",
            BudgetReason::Least => "less is no thought to its provider",
            BudgetReason::Remaining(limit) => return write!(f, "limited by what {limit} has left"),
            BudgetReason::Value => "chosen by value",
            BudgetReason::Uncapped => "left uncapped",
        })
    }
}

/// What limits the two budgets of an offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BudgetReasons<'a> {
    pub thinking: BudgetReason<'a>,
    /// Of the answer only where it is money.
    pub answer: Option<BudgetReason<'a>>,
}

/// One line on the chosen offer and the next best.
pub(super) fn explain(
    ask: &PlanRequest,
    best: (&Offer, BudgetReasons<'_>),
    found: SelectedBy,
    next: Option<&Offer>,
) -> String {
    let (best, BudgetReasons { thinking: reason, answer }) = best;
    let mut why = String::with_capacity(160);
    // Writing to a text does not fail.
    let _ = write!(why, "{}, difficulty {:.2}: ", ask.demand.class.as_str(), ask.demand.difficulty.get());
    let _ = budget(&mut why, ask.demand, best);
    let _ = write!(why, " ({}), {reason}", best.success);
    let _ = price_unknown(&mut why, ask, best);
    let _ = price_of_money(&mut why, ask, reason);
    if let Some(answer) = answer {
        let _ = write!(why, "; its answer of up to {} tokens {answer}", best.solution);
    }
    let _ = samples(&mut why, best);
    let _ = circumstances(&mut why, ask, best, found);
    if let Some(next) = next {
        let _ = write!(why, "; next: {} with {} ({})", next.model, next.thinking, next.success);
    }
    why
}

fn budget(why: &mut String, demand: &Demand, offer: &Offer) -> fmt::Result {
    if offer.thinking == Tokens::ZERO {
        return write!(why, "{} answers without thinking", offer.model);
    }
    let usual = demand.models.get(&offer.model).map_or(0.0, |model| model.thinking.median());
    write!(why, "{} thinks up to {} tokens, usually about {usual:.0}", offer.model, offer.thinking)
}

/// At what the model is weighed, where nobody wrote its price.
fn price_unknown(why: &mut String, ask: &PlanRequest, offer: &Offer) -> fmt::Result {
    let unpriced = ask.models.iter().find(|model| model.name == offer.model && model.tariff.is_none());
    match unpriced.map(|model| model.reference) {
        None => Ok(()),
        Some(None) => write!(why, ", price unknown"),
        Some(Some(reference)) => {
            let Prices { input, output } = reference.rates.list;
            let (input, output) = (input.per_million_tokens, output.per_million_tokens);
            write!(why, ", weighed at {input} and {output} dollars for a million tokens, price unknown")
        }
    }
}

/// From here on it is worth a word that money counts for more or less than its face.
const FACE: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// What money counts for, where value decided.
fn price_of_money(why: &mut String, ask: &PlanRequest, reason: BudgetReason<'_>) -> fmt::Result {
    let price = ask.market.shadow_price;
    if reason != BudgetReason::Value || FACE.contains(&price) {
        return Ok(());
    }
    write!(why, " while a dollar counts {price:.2}, so that the budget lasts")
}

fn samples(why: &mut String, offer: &Offer) -> fmt::Result {
    match &offer.escalate {
        Some(second) => write!(
            why,
            ", {} times, and {} is asked where they do not agree, which pays",
            offer.samples, second.model
        ),
        None if offer.samples > 1 => write!(why, ", up to {} times with a vote, which pays", offer.samples),
        None => Ok(()),
    }
}

fn circumstances(why: &mut String, ask: &PlanRequest, offer: &Offer, found: SelectedBy) -> fmt::Result {
    if found == SelectedBy::Drawn {
        why.push_str(", drawn to learn which model is best");
    }
    match ask.sticky {
        Some(sticky) if *sticky.model == *offer.model && sticky.cached > Tokens::ZERO => {
            write!(why, ", stays where {} tokens of the prompt are cached", sticky.cached)
        }
        Some(sticky) if *sticky.model != *offer.model => write!(why, ", switched from {}", sticky.model),
        _ => Ok(()),
    }
}
