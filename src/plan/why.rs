//! What decided, in one line.

use crate::catalog::{Demand, Offer};
use crate::units::Limit;

use super::frontier::Candidate;

/// What limits a thinking budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reason {
    /// The caller's `thinking_tokens`.
    Stated,
    /// The caller's effort.
    Effort,
    /// The caller's `max_completion_tokens`.
    Total,
    /// The caller's `cost_usd`.
    Cost,
    /// The deadline.
    Deadline,
    /// The model's context.
    Context,
    /// The most that the model can think.
    Provider,
    /// The least that a provider takes.
    Least,
    /// What is left under a limit.
    Left(Limit),
    /// More thinking was possible, and not worth its price.
    Value,
}

impl Reason {
    fn words(&self) -> String {
        match self {
            Reason::Stated => "stated".into(),
            Reason::Effort => "by effort".into(),
            Reason::Total => "limited by max_completion_tokens".into(),
            Reason::Cost => "limited by cost_usd".into(),
            Reason::Deadline => "limited by the deadline".into(),
            Reason::Context => "limited by the context".into(),
            Reason::Provider => "the most that the model thinks".into(),
            Reason::Least => "less is no thought to its provider".into(),
            Reason::Left(limit) => format!("limited by what {limit} has left"),
            Reason::Value => "chosen by value".into(),
        }
    }
}

/// One line on the chosen offer and the next best.
pub(super) fn why(demand: &Demand, ranked: &[&Candidate]) -> String {
    let head = format!("{}, difficulty {:.2}", demand.class.word(), demand.difficulty.get());
    let Some((first, others)) = ranked.split_first() else { return head };
    let usual = demand.models.get(&first.offer.model).map_or(0.0, |model| model.thinking.median());
    let offer = &first.offer;
    let budget = match offer.thinking.0 {
        0 => format!("{} answers without thinking", offer.model),
        t => format!("{} thinks up to {t} tokens, usually about {usual:.0}", offer.model),
    };
    let next = others.first().map_or(String::new(), |next| format!("; next: {}", short(&next.offer)));
    format!("{head}: {budget} ({}), {}{next}", offer.success, first.reason.words())
}

fn short(offer: &Offer) -> String {
    format!("{} with {} ({})", offer.model, offer.thinking, offer.success)
}
