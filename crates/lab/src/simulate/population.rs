//! Who asks what, what is true about it, and what the gateway sees: all of it from the seed and a number, or from a record.
//!
//! Nothing here depends on what any policy did, so that policies can be compared on the same requests with the same luck.

use std::sync::Arc;

use stint_types::catalog::{
    LengthTails, LogNormal, MeasuredLengths, ModelConditions, ModelDemand, TaskClass, ThinkingStopReason,
};
use stint_types::units::{Chance, Difficulty, SeededRng, Tokens, mix64};

use super::scenario::{EstimateNoise, Scenario, ScenarioModel, WorkClass};
use super::trace::{RecordedOutcome, RecordedRequest, RequestTrace};

/// By how much ln of the thinking length rises with a logit of difficulty.
const LENGTH_PER_DIFFICULTY: f64 = 0.35;
/// The standard deviation of ln of prompts' and answers' lengths.
const LENGTH_SIGMA: f64 = 0.5;
/// By what the bound of a prompt's tokens is more than they are.
const PROMPT_BOUND_FACTOR: f64 = 1.2;

/// One request, as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SimulatedRequest {
    /// Counted from 0.
    pub number: u64,
    /// Which of the scenario's classes.
    pub class: usize,
    /// Which of its tenants.
    pub tenant: usize,
    /// In logits.
    pub difficulty: f64,
    /// What the prompt really takes.
    pub prompt: Tokens,
    /// What its answer usually takes.
    pub solution: f64,
}

/// What one model's work on one request depends on beside its chances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RequestDraws {
    /// How long it would think.
    pub thinking: f64,
    /// How long its answer is.
    pub solution: Tokens,
    /// The answer is right where its chance is above this.
    pub right: f64,
}

/// What is true, and what is believed, about one model at one class.
#[derive(Debug, Clone, Copy, Default)]
struct ClassBias {
    skill: f64,
    success: f64,
    length: f64,
}

/// All requests of a scenario.
#[derive(Debug, Clone)]
pub(super) struct Population {
    seed: u64,
    classes: Vec<WorkClass>,
    models: Vec<ScenarioModel>,
    noise: EstimateNoise,
    /// Weights, added up.
    by_class: Vec<f64>,
    by_tenant: Vec<f64>,
    /// By model, then by class.
    class_biases: Vec<Vec<ClassBias>>,
    /// Requests that were recorded, in place of those made up.
    trace: Option<Arc<RequestTrace>>,
}

impl Population {
    /// The requests of a scenario with these models.
    pub(super) fn new(
        scenario: &Scenario,
        models: &[ScenarioModel],
        trace: Option<Arc<RequestTrace>>,
    ) -> Population {
        let seed = scenario.seed;
        let bent = |(number, model): (usize, &ScenarioModel)| {
            let mut dice = SeededRng::new(stream(seed, 0xbe17, number));
            let mut at_class = |_| ClassBias {
                skill: model.uneven * dice.standard_normal(),
                success: scenario.estimate.success_bias * dice.standard_normal(),
                length: scenario.estimate.length_bias * dice.standard_normal(),
            };
            (0..scenario.classes.len()).map(&mut at_class).collect()
        };
        Population {
            seed,
            by_class: cumulative(scenario.classes.iter().map(|class| class.share)),
            by_tenant: cumulative(scenario.tenants.iter().map(|tenant| tenant.share)),
            class_biases: models.iter().enumerate().map(bent).collect(),
            classes: scenario.classes.clone(),
            models: models.to_vec(),
            noise: scenario.estimate,
            trace,
        }
    }

    /// The request of that number.
    pub(super) fn request(&self, number: u64) -> SimulatedRequest {
        let mut dice = SeededRng::new(mix64(self.seed ^ mix64(number)));
        let class = pick_weighted(&self.by_class, dice.next_f64());
        let tenant = pick_weighted(&self.by_tenant, dice.next_f64());
        if let Some(row) = self.row(number) {
            return self.recorded(number, tenant, row);
        }
        let work = &self.classes[class];
        SimulatedRequest {
            number,
            class,
            tenant,
            difficulty: work.difficulty + work.spread * dice.standard_normal(),
            prompt: Tokens::round((work.prompt.ln() + LENGTH_SIGMA * dice.standard_normal()).exp().max(1.0)),
            solution: work.solution,
        }
    }

    /// What kind of work a request is.
    pub(super) fn task(&self, request: &SimulatedRequest) -> TaskClass {
        self.classes[request.class].task
    }

    /// How hard it is, for people.
    pub(super) fn difficulty(&self, request: &SimulatedRequest) -> Difficulty {
        Difficulty::new(sigmoid(request.difficulty))
    }

    /// What is true of a model that is so able now.
    pub(super) fn truth(&self, request: &SimulatedRequest, model: usize, ability: f64) -> ModelDemand {
        let (answerer, bent) = (&self.models[model], self.class_biases[model][request.class]);
        if let Some((_, _, believed)) = self.recorded_model(request, model) {
            let prompt = request.prompt;
            return ModelDemand { prompt, ..shifted(believed, ability - answerer.ability) };
        }
        let length = LogNormal { mu: self.mu(request, model), sigma: answerer.sigma };
        let truth = self.demand(request, model, ability + bent.skill - request.difficulty, length);
        ModelDemand { prompt: request.prompt, ..truth }
    }

    /// What the gateway sees of it: the truth of the beginning, blurred, without what changed since.
    pub(super) fn predicted(&self, request: &SimulatedRequest, model: usize) -> ModelDemand {
        if let Some((_, told, _)) = self.recorded_model(request, model) {
            let prompt = told.prompt.max(request.prompt);
            let prompt_usual =
                if told.prompt_usual == Tokens::ZERO { request.prompt } else { told.prompt_usual };
            return ModelDemand { prompt, prompt_usual, ..told.clone() };
        }
        let (answerer, bent) = (&self.models[model], self.class_biases[model][request.class]);
        let mut dice = self.dice(request, 0x701d, model);
        let ability =
            answerer.ability + bent.skill + bent.success + self.noise.success * dice.standard_normal();
        let mu = self.mu(request, model) + bent.length + self.noise.length * dice.standard_normal();
        let length = LogNormal { mu, sigma: answerer.sigma.hypot(self.noise.length) };
        self.demand(request, model, ability - request.difficulty, length)
    }

    /// How a model stood when a recorded request was decided, where the log has that; whether it can be asked is what it is now.
    pub(super) fn conditions(
        &self,
        request: &SimulatedRequest,
        model: usize,
        now: ModelConditions,
    ) -> ModelConditions {
        let name = &self.models[model].name;
        let recorded = self.row(request.number).into_iter().flat_map(|row| &row.conditions);
        let mut stood = recorded.filter(|(recorded, _)| recorded == name);
        stood.next().map_or(now, |(_, stood)| ModelConditions { healthy: now.healthy, ..*stood })
    }

    /// The luck of one model with one request.
    pub(super) fn draws(&self, request: &SimulatedRequest, model: usize) -> RequestDraws {
        let mut dice = self.dice(request, 0x10c4, model);
        let length = match self.recorded_model(request, model) {
            Some((_, _, believed)) => believed.thinking,
            None => LogNormal { mu: self.mu(request, model), sigma: self.models[model].sigma },
        };
        let luck = RequestDraws {
            thinking: (length.mu + length.sigma * dice.standard_normal()).exp().max(1.0),
            solution: Tokens::round(
                (request.solution.ln() + LENGTH_SIGMA * dice.standard_normal()).exp().max(1.0),
            ),
            right: dice.next_f64(),
        };
        let seen = self.row(request.number).map(|row| &row.outcome);
        match seen.filter(|seen| seen.model == self.models[model].name) {
            Some(seen) => luck.replayed(seen),
            None => luck,
        }
    }

    /// Numbers about one model and one request, for one purpose.
    pub(super) fn dice(&self, request: &SimulatedRequest, purpose: u64, model: usize) -> SeededRng {
        SeededRng::new(stream(self.seed ^ mix64(request.number), purpose, model))
    }

    /// A request as it was recorded.
    fn recorded(&self, number: u64, tenant: usize, row: &RecordedRequest) -> SimulatedRequest {
        let usual = row.models.first().map_or(row.outcome.solution, |(_, told, _)| told.solution);
        let odds = row.difficulty.clamp(0.01, 0.99);
        SimulatedRequest {
            number,
            class: self.classes.iter().position(|class| class.task == row.class).unwrap_or(0),
            tenant,
            difficulty: (odds / (1.0 - odds)).ln(),
            prompt: row.prompt,
            solution: usual.as_f64().max(1.0),
        }
    }

    fn row(&self, number: u64) -> Option<&RecordedRequest> {
        self.trace.as_ref()?.rows.get(usize::try_from(number).ok()?)
    }

    /// What the log has of a model and a request.
    fn recorded_model(
        &self,
        request: &SimulatedRequest,
        model: usize,
    ) -> Option<&(Arc<str>, ModelDemand, ModelDemand)> {
        self.row(request.number)?.models.iter().find(|(name, ..)| *name == self.models[model].name)
    }

    fn mu(&self, request: &SimulatedRequest, model: usize) -> f64 {
        (self.models[model].thinking * self.classes[request.class].length).ln()
            + LENGTH_PER_DIFFICULTY * request.difficulty
    }

    fn demand(
        &self,
        request: &SimulatedRequest,
        model: usize,
        logit: f64,
        thinking: LogNormal,
    ) -> ModelDemand {
        let WorkClass { guess, needs, .. } = self.classes[request.class];
        let chance = |logit: f64| Chance::new(guess + (1.0 - guess) * sigmoid(logit));
        let prompt = Tokens::round((request.prompt.as_f64() * PROMPT_BOUND_FACTOR).ceil());
        ModelDemand {
            thinking,
            solution: Tokens::round(request.solution * (LENGTH_SIGMA * LENGTH_SIGMA / 2.0).exp()),
            prompt,
            done: chance(logit),
            blind: chance(logit - needs),
            bend: self.models[model].bend,
            saturation: self.models[model].saturation,
            spread: 0.0,
            prompt_least: Tokens::ZERO,
            prompt_usual: request.prompt,
            measured: MeasuredLengths { thinking: true, solution: true },
            tails: LengthTails::default(),
        }
    }
}

impl RequestDraws {
    /// The same again as was seen; of a thought that was cut, only that it would have been longer.
    fn replayed(self, seen: &RecordedOutcome) -> RequestDraws {
        let thinking = match seen.ended {
            ThinkingStopReason::None => self.thinking,
            ThinkingStopReason::Cut => self.thinking.max(seen.thinking.as_f64() + 1.0),
            ThinkingStopReason::Closed | ThinkingStopReason::Stopped => seen.thinking.as_f64(),
        };
        // Its chance decides again where nobody said how right it was.
        let right = seen.success.map_or(self.right, |success| 1.0 - success.get());
        RequestDraws { thinking, solution: seen.solution.max(Tokens(1)), right }
    }
}

/// What a model that has gained so many logits since would reach.
fn shifted(demand: &ModelDemand, gained: f64) -> ModelDemand {
    let moved = |chance: Chance| {
        let odds = chance.get().clamp(1e-6, 1.0 - 1e-6);
        Chance::new(sigmoid((odds / (1.0 - odds)).ln() + gained))
    };
    ModelDemand { done: moved(demand.done), blind: moved(demand.blind), ..demand.clone() }
}

fn stream(seed: u64, purpose: u64, number: usize) -> u64 {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    mix64(seed ^ mix64((purpose << 32) ^ number))
}

fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Weights that rise to 1.
fn cumulative(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let sums: Vec<f64> = weights
        .map(|weight| {
            sum += weight.max(0.0);
            sum
        })
        .collect();
    sums.into_iter().map(|part| if sum > 0.0 { part / sum } else { 1.0 }).collect()
}

/// Which of several weights a share falls on.
fn pick_weighted(sums: &[f64], share: f64) -> usize {
    sums.iter().position(|&sum| share < sum).unwrap_or(sums.len().saturating_sub(1))
}
