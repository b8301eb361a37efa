//! What one attempt comes to: how long it thinks and writes, what is billed, and how likely it is right.
//!
//! The counting follows what `execute` does for each way of holding a thought.

use crate::catalog::{Billed, Class, Ended, ModelDemand, Offer, SolutionEnded};
use crate::units::{Chance, Tokens};

use super::population::{Luck, Request};

/// One attempt, as it goes where nothing fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    /// Thinking tokens.
    pub thinking: Tokens,
    /// How the thought ends.
    pub ended: Ended,
    /// Answer tokens.
    pub solution: Tokens,
    /// How the answer ends.
    pub solution_ended: SolutionEnded,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// The call, and the one that resumes after a cut.
    pub calls: [Billed; 2],
    /// The chance that it is right, by what is true.
    pub chance: Chance,
}

impl Work {
    /// What an offer comes to, with a model's truth and luck.
    pub(super) fn of(offer: &Offer, request: &Request, truth: &ModelDemand, luck: &Luck) -> Work {
        let (thinking, ended) = thought(offer.thinking, luck.thinking);
        let (solution, solution_ended) = if luck.solution > offer.solution {
            (offer.solution, offer.solution_by.into())
        } else {
            (luck.solution, SolutionEnded::Stop)
        };
        let chance = match (solution_ended, ended) {
            (ended, _) if ended.is_cut() => Chance::new(0.0),
            (_, Ended::None) => truth.blind,
            (_, Ended::Cut) => Chance::new(truth.cut(thinking.as_f64())),
            _ => truth.done,
        };
        let calls = calls(offer, request.prompt, thinking, ended, solution);
        Work { thinking, ended, solution, solution_ended, overhead: offer.overhead, calls, chance }
    }

    /// Everything read.
    pub(super) fn read(&self) -> Tokens {
        self.calls[0].input + self.calls[1].input
    }

    /// Everything written.
    pub(super) fn written(&self) -> Tokens {
        self.calls[0].output + self.calls[1].output
    }
}

fn thought(budget: Tokens, length: f64) -> (Tokens, Ended) {
    let whole = Tokens::round(length);
    match budget {
        Tokens::ZERO => (Tokens::ZERO, Ended::None),
        budget if whole <= budget => (whole, Ended::Closed),
        budget => (budget, Ended::Cut),
    }
}

fn calls(offer: &Offer, prompt: Tokens, thinking: Tokens, ended: Ended, solution: Tokens) -> [Billed; 2] {
    let call = |input: Tokens, output: Tokens| Billed { input, output, ..Billed::default() };
    let overhead = offer.overhead;
    let whole = call(prompt, thinking + overhead + solution);
    let none = Billed::default();
    match (ended, offer.class) {
        (Ended::Cut, Class::Continue | Class::Turn) => {
            [call(prompt, thinking), call(prompt + thinking + overhead, overhead + solution)]
        }
        (Ended::Cut, Class::Effort) => [call(prompt, thinking), call(prompt, overhead + solution)],
        _ => [whole, none],
    }
}
