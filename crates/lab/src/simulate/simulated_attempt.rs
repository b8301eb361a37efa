//! What one attempt comes to: how long it thinks and writes, what is billed, and how likely it is right.
//!
//! The counting follows what `execute` does for each way of holding a thought.

use stint_types::catalog::{
    BilledCall, EnforcementClass, ModelDemand, Offer, SolutionStopReason, ThinkingStopReason,
};
use stint_types::units::{Chance, Tokens};

use super::population::{RequestDraws, SimulatedRequest};

/// One attempt, as it goes where nothing fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SimulatedAttempt {
    /// Thinking tokens.
    pub thinking: Tokens,
    /// How the thought ends.
    pub ended: ThinkingStopReason,
    /// Answer tokens.
    pub solution: Tokens,
    /// How the answer ends.
    pub solution_ended: SolutionStopReason,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// The call, and the one that resumes after a cut.
    pub calls: [BilledCall; 2],
    /// The chance that it is right, by what is true.
    pub chance: Chance,
}

impl SimulatedAttempt {
    /// What an offer comes to, with a model's truth and luck.
    pub(super) fn of(
        offer: &Offer,
        request: &SimulatedRequest,
        truth: &ModelDemand,
        luck: &RequestDraws,
    ) -> SimulatedAttempt {
        let (thinking, ended) = thought(offer.thinking, luck.thinking);
        let (solution, solution_ended) = if luck.solution > offer.solution {
            (offer.solution, offer.solution_by.into())
        } else {
            (luck.solution, SolutionStopReason::Stop)
        };
        let chance = match (solution_ended, ended) {
            (ended, _) if ended.is_cut() => Chance::new(0.0),
            (_, ThinkingStopReason::None) => truth.blind,
            (_, ThinkingStopReason::Cut) => Chance::new(truth.success_if_cut(thinking.as_f64())),
            _ => truth.done,
        };
        let calls = calls(offer, request.prompt, thinking, ended, solution);
        SimulatedAttempt {
            thinking,
            ended,
            solution,
            solution_ended,
            overhead: offer.overhead,
            calls,
            chance,
        }
    }

    /// Everything read.
    pub(super) fn tokens_read(&self) -> Tokens {
        self.calls[0].input + self.calls[1].input
    }

    /// Everything written.
    pub(super) fn tokens_written(&self) -> Tokens {
        self.calls[0].output + self.calls[1].output
    }
}

fn thought(budget: Tokens, length: f64) -> (Tokens, ThinkingStopReason) {
    let whole = Tokens::round(length);
    match budget {
        Tokens::ZERO => (Tokens::ZERO, ThinkingStopReason::None),
        budget if whole <= budget => (whole, ThinkingStopReason::Closed),
        budget => (budget, ThinkingStopReason::Cut),
    }
}

fn calls(
    offer: &Offer,
    prompt: Tokens,
    thinking: Tokens,
    ended: ThinkingStopReason,
    solution: Tokens,
) -> [BilledCall; 2] {
    let call = |input: Tokens, output: Tokens| BilledCall { input, output, ..BilledCall::default() };
    let overhead = offer.overhead;
    let whole = call(prompt, thinking + overhead + solution);
    let none = BilledCall::default();
    match (ended, offer.class) {
        (ThinkingStopReason::Cut, EnforcementClass::Continue | EnforcementClass::Turn) => {
            [call(prompt, thinking), call(prompt + thinking + overhead, overhead + solution)]
        }
        (ThinkingStopReason::Cut, EnforcementClass::Effort) => {
            [call(prompt, thinking), call(prompt, overhead + solution)]
        }
        _ => [whole, none],
    }
}
