//! What a caller can rely on: `rules` are tables, `laws` the properties of the design's "Budgets in".

mod answers;
mod exploring;
mod laws;
mod load;
mod prices;
mod rules;
mod stopping;
mod sweeping;
mod switching;
mod ties;
mod voting;
mod words;

use stint_types::catalog::{
    Allowance, Capability, Demand, EffortLevel, EnforcementClass, GoesOn, HandOff, LengthTails, LogNormal,
    Market, MeasuredLengths, Model, ModelDemand, Needs, Offer, Plan, Prices, Rates, RemainingQuota,
    RequestTraits, Route, Service, Tariff, TaskClass, TrialBounds,
};
use stint_types::chat::{Budget, ReasoningEffort};
use stint_types::units::{
    Amount, Chance, Difficulty, Effort, Limit, Money, Price, Timestamp, Tokens, Unit, Window,
};

use super::*;

/// Everything a plan depends on, owned.
#[derive(Debug, Clone)]
struct PlanFixture {
    models: Vec<Model>,
    demands: Vec<ModelDemand>,
    market: Market,
    route: Route,
    allowance: Allowance,
    budget: Budget,
    needs: Needs,
    choices: u32,
    streams: bool,
    /// Model, cached tokens, evidence.
    sticky: Option<(&'static str, u64, bool)>,
    explore: Option<Exploration>,
}

impl PlanFixture {
    fn plan(&self) -> Result<Plan, PlanRefusal> {
        self.ask(plan)
    }

    fn ask<T>(&self, what: impl FnOnce(&PlanRequest) -> T) -> T {
        let named = self.models.iter().zip(&self.demands);
        let demand = Demand {
            class: TaskClass::Math,
            difficulty: Difficulty::new(0.31),
            confidence: Chance::new(0.5),
            request: RequestTraits::default(),
            models: named.map(|(model, demand)| (model.name.clone(), demand.clone())).collect(),
        };
        what(&PlanRequest {
            demand: &demand,
            models: &self.models.iter().collect::<Vec<_>>(),
            route: &self.route,
            market: &self.market,
            allowance: &self.allowance,
            budget: &self.budget,
            needs: &self.needs,
            choices: self.choices,
            streams: self.streams,
            sticky: self.sticky.map(|(model, cached, evidence)| StickyModel {
                model,
                cached: Tokens(cached),
                has_problems: evidence,
            }),
            explore: self.explore,
            opening_quantile: Chance::new(OPENING_QUANTILE),
        })
    }

    fn first(&self) -> Offer {
        self.plan().unwrap().best
    }

    fn with(mut self, change: impl FnOnce(&mut PlanFixture)) -> PlanFixture {
        change(&mut self);
        self
    }
}

/// All offers of a plan, best first.
fn offers(plan: &Plan) -> impl Iterator<Item = &Offer> {
    std::iter::once(&plan.best).chain(&plan.fallbacks)
}

fn model(name: &str, class: EnforcementClass) -> Model {
    let level = |word: &str, usual| EffortLevel { word: word.into(), usual: Tokens(usual) };
    Model {
        name: name.into(),
        tariff: Some(Tariff::plain(Prices { input: price(100_000_000), output: price(400_000_000) })),
        context: Tokens(8192),
        context_limited_by: None,
        classes: vec![class],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: Tokens(4096),
        thinking_usual: None,
        solution_max: Some(Tokens(256)),
        output_max: None,
        output_min: Tokens(1),
        hand_off: HandOff { text: String::new(), overhead: Tokens(4), overhead_without_thought: Tokens(4) },
        services: vec![Service::Chat, Service::Completions],
        capabilities: vec![Capability::Tools],
        efforts: vec![level("minimal", 0), level("low", 100), level("high", 1000)],
        members: stint_types::catalog::MemberRules::default(),
        resumes_tools: false,
        conversation: stint_types::catalog::ConversationRules::default(),
        goes_on: GoesOn::Never,
        stops_billing: false,
        reference: None,
        ability_guess: None,
        specialty: None,
    }
}

fn price(per_million: u64) -> Price {
    Price { per_million_tokens: Money(per_million) }
}

pub(super) fn demand(mu: f64, blind: f64, done: f64) -> ModelDemand {
    ModelDemand {
        thinking: LogNormal { mu, sigma: 0.5 },
        solution: Tokens(20),
        prompt: Tokens(100),
        done: Chance::new(done),
        blind: Chance::new(blind),
        bend: 1.5,
        saturation: 1.0,
        spread: 0.0,
        prompt_least: Tokens(100),
        prompt_usual: Tokens::ZERO,
        measured: MeasuredLengths { thinking: true, solution: true },
        tails: LengthTails::default(),
    }
}

/// One inline model that usually thinks about 148 tokens.
fn world() -> PlanFixture {
    PlanFixture {
        models: vec![model("reasoner", EnforcementClass::Inline)],
        demands: vec![demand(5.0, 0.1, 0.95)],
        market: Market::default(),
        route: Route {
            success_floor: Chance::new(0.5),
            worth: Money(10_000_000),
            cost_per_second: Money(1_000),
            ..Route::with_defaults("auto")
        },
        allowance: Allowance::default(),
        budget: Budget::default(),
        needs: Needs::default(),
        choices: 1,
        streams: false,
        sticky: None,
        explore: None,
    }
}

fn key(unit: Unit) -> Limit {
    Limit::of_key(unit, Window::Month)
}

fn money_left(amount: u64) -> Option<RemainingQuota<Money>> {
    let (limit, max) = (key(Unit::Money), Amount::Money(Money(u64::MAX)));
    Some(RemainingQuota { limit, max, amount: Money(amount), resets_at: Some(Timestamp(7)) })
}

fn thinking_left(amount: u64) -> Option<RemainingQuota<Tokens>> {
    let (limit, max) = (key(Unit::Thinking), Amount::Thinking(Tokens(u64::MAX)));
    Some(RemainingQuota { limit, max, amount: Tokens(amount), resets_at: None })
}

fn effort_of(effort: f64, word: Option<&str>) -> Option<ReasoningEffort> {
    Some(ReasoningEffort { effort: Effort::try_from(effort).unwrap(), word: word.map(String::from) })
}

/// A small model and one ten times as dear.
fn two() -> PlanFixture {
    world().with(|w| {
        w.models = vec![model("small", EnforcementClass::Inline), model("large", EnforcementClass::Continue)];
        w.models[1].tariff =
            Some(Tariff::plain(Prices { input: price(1_000_000_000), output: price(4_000_000_000) }));
        w.demands = vec![demand(5.0, 0.1, 0.9), demand(5.0, 0.4, 0.99)];
    })
}
