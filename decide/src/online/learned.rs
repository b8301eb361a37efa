//! Stint's own way: the product's beliefs, a draw from them, and a floor of exploration.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_decide::learn::{BeliefStore, OutcomeSample, Settings};
use stint_types::catalog::{
    Demand, LengthTails, LogNormal, MeasuredLengths, ModelDemand, SolutionStopReason, TaskClass,
    ThinkingStopReason,
};
use stint_types::units::{Chance, Difficulty, SeededRng, Tokens};

use super::arena::{ARMS, Arena, Question};
use super::policy::{Outcome, Policy, Utility, best};

/// Without an answer of any model seen, this is predicted of all of them, with that spread.
const UNKNOWN: (f64, f64) = (0.5, 0.25);
/// How long an answer is thought to be before any was seen, in tokens.
const SOLUTION: u64 = 120;

/// How the beliefs are used.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// How it learns.
    pub settings: Settings,
    /// The share of requests that go anywhere.
    pub floor: f64,
    /// How many outcomes the offline answers count for; none of them is shown where zero.
    pub offline: f64,
    /// True where there is no prior.
    pub cold: bool,
}

/// The beliefs as a policy.
pub struct Learned {
    beliefs: BeliefStore,
    names: [Arc<str>; ARMS],
    prices: [f64; ARMS],
    utility: Utility,
    way: Way,
}

impl Learned {
    /// Before the first online question.
    pub fn new(arena: &Arena, utility: Utility, way: Way) -> Learned {
        let mut learned = Learned {
            beliefs: BeliefStore::new(way.settings),
            names: arena.arms.map(|arm| arm.name.into()),
            prices: arena.arms.map(|arm| arm.price * 1e-6),
            utility,
            way,
        };
        if way.offline > 0.0 {
            let weight = way.offline / arena.offline.len() as f64;
            for question in &arena.offline {
                (0..ARMS).for_each(|arm| learned.teach(question, arm, question.right[arm], weight));
            }
        }
        learned
    }

    /// What the prior says.
    fn prior(&self, question: &Question) -> Demand {
        let model = |arm: usize| {
            let (chance, spread) = if self.way.cold { UNKNOWN } else { (question.predicted[arm], 0.0) };
            let demand = ModelDemand {
                thinking: LogNormal { mu: 5.5, sigma: 1.0 },
                solution: Tokens(SOLUTION),
                prompt: Tokens::round(question.prompt),
                done: Chance::new(chance),
                blind: Chance::new(chance),
                bend: 1.0,
                saturation: 1.0,
                spread,
                prompt_least: Tokens::ZERO,
                prompt_usual: Tokens::ZERO,
                measured: MeasuredLengths::default(),
                tails: LengthTails::default(),
            };
            (self.names[arm].clone(), demand)
        };
        Demand {
            class: TaskClass::MultipleChoice,
            difficulty: Difficulty::new(0.5),
            confidence: Chance::new(0.5),
            request: question.request.clone(),
            models: (0..ARMS).map(model).collect::<BTreeMap<_, _>>(),
        }
    }

    /// What is believed of each model: success, its spread, and the cost.
    pub fn believed(&self, question: &Question) -> [(f64, f64, f64); ARMS] {
        let mut demand = self.prior(question);
        self.beliefs.adjust(&mut demand);
        std::array::from_fn(|arm| {
            let model = &demand.models[&self.names[arm]];
            let cost = self.prices[arm] * (question.prompt + model.solution.as_f64());
            (model.done.get(), model.spread, cost)
        })
    }

    /// Shows it an outcome.
    pub fn teach(&mut self, question: &Question, arm: usize, right: f64, weight: f64) {
        let demand = self.prior(question);
        self.beliefs.observe(&OutcomeSample {
            model: self.names[arm].clone(),
            class: demand.class,
            predicted: demand.models[&self.names[arm]].clone(),
            request: demand.request,
            budget: Tokens::ZERO,
            effort: 1.0,
            thinking: Tokens::ZERO,
            ended: ThinkingStopReason::Closed,
            solution: Tokens::round(question.output[arm]),
            solution_ended: SolutionStopReason::Stop,
            success: Some(Chance::new(right)),
            weight,
            alarm: weight,
        });
    }
}

impl Policy for Learned {
    fn choose(&mut self, question: &Question, dice: &mut SeededRng) -> usize {
        let explores = dice.next_f64() < self.way.floor;
        let anywhere = dice.below(ARMS);
        if explores {
            return anywhere;
        }
        let believed = self.believed(question);
        best(std::array::from_fn(|arm| {
            let (success, spread, cost) = believed[arm];
            self.utility.of(success + spread * dice.standard_normal(), cost)
        }))
    }
    fn learn(&mut self, question: &Question, arm: usize, outcome: &Outcome) {
        self.teach(question, arm, outcome.right, 1.0);
    }
}
