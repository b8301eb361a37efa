//! `PlanInputs`: everything known about a request before money is reserved, and the questions it puts to the planner.

use std::sync::Arc;

use crate::gateway::feedback::QuestionFingerprint;
use crate::gateway::request::{DecisionContext, ObservedPlan};
use crate::gateway::state::TrialUse;
use stint_backend::fleet::FlowId;
use stint_decide::plan;
use stint_ledger::LimitStatus;
use stint_types::catalog::{
    Allowance, Demand, Market, MemberAction, Model, Needs, Offer, Plan, Route, Stakes,
};
use stint_types::chat::Request;
use stint_types::units::{AccountId, Chance, Timestamp, Tokens};

use super::routing_rules::RoutingRules;

/// What was considered about a request.
pub(crate) struct PlanInputs {
    /// As its caller wrote it.
    pub(crate) original: Arc<Request>,
    /// As it is sent to a model.
    pub(crate) request: Arc<Request>,
    /// What it needs of a model.
    pub(crate) needs: Needs,
    /// The routing rules by which it is decided.
    pub(crate) rules: RoutingRules,
    /// Why there is no vote, although the route has one.
    pub(crate) no_vote: Option<&'static str>,
    /// What the prior predicts.
    pub(crate) prior: Demand,
    /// The prior's prediction, corrected by what was learned since.
    pub(crate) demand: Demand,
    pub(crate) market: Market,
    pub(crate) models: Vec<Arc<Model>>,
    /// A model that was left out, since it was made for other questions.
    pub(crate) wrong_specialty: Option<Arc<str>>,
    /// Those of the account's limits that are paced, as they stood.
    pub(crate) paced: Vec<LimitStatus>,
    /// What share of answers a first reservation covers.
    pub(crate) opening_quantile: Chance,
    /// The model that has served its episode so far.
    pub(crate) sticky: Option<ModelAffinity>,
    /// Whether a model that looks worse may be tried with it, now or when there is room for more trials.
    pub(crate) may_try: bool,
    /// How much may be tried with it now.
    pub(crate) trials: Option<plan::TrialShare>,
    /// The models beyond the route's that would take all of its members, where some are not known here.
    pub(crate) takers: Vec<Arc<str>>,
    /// Whose calls the models would get.
    pub(crate) flow: FlowId,
}

/// The model that the last steps of an episode were served by.
#[derive(Debug, Clone)]
pub(crate) struct ModelAffinity {
    pub(crate) model: Arc<str>,
    /// How much of the context its provider has in its cache.
    pub(crate) cached: Tokens,
    /// Whether something went wrong with it.
    pub(crate) evidence: bool,
}

impl ModelAffinity {
    /// How much of the context is in a cache, where these models are to be had: nothing of one that is too short to be kept.
    fn cached_of(&self, models: &[&Model]) -> Tokens {
        let own = models.iter().find(|model| *model.name == *self.model);
        let least = own.and_then(|model| model.conversation.cache_min).unwrap_or_default();
        if self.cached >= least { self.cached } else { Tokens::ZERO }
    }
}

impl PlanInputs {
    /// Asks `what` of the plan on what is left; draws are made from `seed`.
    pub(crate) fn ask<T>(
        &self,
        allowance: &Allowance,
        seed: u64,
        what: impl FnOnce(&plan::PlanRequest) -> T,
    ) -> T {
        let chosen = self.rules.choose(&self.models, |model| self.is_able(model));
        self.ask_by(&self.rules.route, &chosen, &self.market, allowance, seed, what)
    }

    /// The plan. Where nothing is decided it is the first model, in the route's order, that serves it on what is left, and
    /// those after it stand by.
    pub(crate) fn plan(&self, allowance: &Allowance, seed: u64) -> Result<Plan, plan::PlanRefusal> {
        if !self.rules.is_unenforced() {
            return match self.ask(allowance, seed, plan::plan) {
                Ok(plan) => Ok(self.with_stand_ins(plan, allowance, seed)),
                Err(_) if self.rules.canary.is_some() => {
                    self.ask_by(&self.rules.route, &self.models, &self.market, allowance, seed, plan::plan)
                }
                refused => refused,
            };
        }
        let mut plans = self.rules.in_order(&self.models).into_iter().map(|model| {
            let models = std::slice::from_ref(model);
            self.ask_by(&self.rules.route, models, &self.market, allowance, seed, plan::plan)
        });
        let mut refused = Err(plan::PlanRefusal::Unhealthy);
        let first = loop {
            match plans.next() {
                Some(Ok(plan)) => break plan,
                Some(refusal) => refused = refusal,
                None => return refused,
            }
        };
        let fallbacks =
            plans.filter_map(Result::ok).map(|plan| plan.best).take(plan::FALLBACKS_MAX).collect();
        Ok(Plan { fallbacks, ..first })
    }

    /// The plan for a new model that is tried, with the others standing by; any other plan as it is.
    fn with_stand_ins(&self, plan: Plan, allowance: &Allowance, seed: u64) -> Plan {
        if self.rules.canary.as_ref() != Some(&plan.best.model) {
            return plan;
        }
        let is_other = |model: &&Arc<Model>| model.name != plan.best.model;
        let others: Vec<Arc<Model>> = self.models.iter().filter(is_other).cloned().collect();
        let ask = self.ask_by(&self.rules.route, &others, &self.market, allowance, seed, plan::plan);
        let fallbacks =
            ask.into_iter().flat_map(|others| std::iter::once(others.best).chain(others.fallbacks));
        Plan { fallbacks: fallbacks.take(plan::FALLBACKS_MAX).collect(), ..plan }
    }

    /// Adds to `why` what the plan itself does not know: why there is no vote, and that a new model is tried.
    pub(super) fn annotate(&self, why: &mut String, chosen: &str) {
        let tried = self.rules.canary.as_ref().filter(|new| ***new == *chosen);
        let note = tried.map(|new| format!("{new} is new here and tried on a share of the conversations"));
        for note in self.no_vote.map(str::to_owned).into_iter().chain(note) {
            why.push_str("; ");
            why.push_str(&note);
        }
    }

    /// What the rules that are only watched would choose, where there are any and something fits. Success counts
    /// `factor` times what they say.
    pub(crate) fn observed_offer(&self, allowance: &Allowance, seed: u64, factor: f64) -> Option<Offer> {
        let watched = self.rules.observed_route.as_ref()?;
        let market = Market { worth_factor: factor, ..self.market.clone() };
        let plan = self.ask_by(watched, &self.models, &market, allowance, seed, plan::plan);
        plan.ok().map(|plan| plan.best)
    }

    fn ask_by<T>(
        &self,
        route: &Route,
        models: &[Arc<Model>],
        market: &Market,
        allowance: &Allowance,
        seed: u64,
        what: impl FnOnce(&plan::PlanRequest) -> T,
    ) -> T {
        let models: Vec<&Model> = models.iter().map(AsRef::as_ref).collect();
        what(&plan::PlanRequest {
            demand: &self.demand,
            models: &models,
            route,
            market,
            allowance,
            budget: &self.request.budget,
            needs: &self.needs,
            choices: self.request.choices,
            streams: self.request.streams,
            sticky: self.sticky.as_ref().map(|stuck| plan::StickyModel {
                model: &stuck.model,
                cached: stuck.cached_of(&models),
                has_problems: stuck.evidence,
            }),
            explore: self.draw_rule(route).map(|rule| plan::Exploration { seed, rule }),
            opening_quantile: self.opening_quantile,
        })
    }

    /// By which rule a model is drawn, where one is.
    fn draw_rule(&self, route: &Route) -> Option<plan::DrawRule> {
        let nothing = Chance::new(0.0);
        if route.explore > nothing || route.uncapped > nothing {
            return Some(plan::DrawRule::Beliefs(route.explore));
        }
        self.trials.filter(|_| route.trials.is_some()).map(plan::DrawRule::Trials)
    }

    /// What the request is to those who count trials.
    fn trial_use(&self, plan: &Plan) -> TrialUse {
        match (self.may_try, plan.is_less_likely()) {
            (false, _) => TrialUse::Exempt,
            (true, false) => TrialUse::Usual,
            (true, true) => TrialUse::Trial,
        }
    }

    /// True if a model could be asked now.
    fn is_able(&self, model: &Model) -> bool {
        model.services.contains(&self.needs.service)
            && self.needs.capabilities.iter().all(|need| model.has_capability(*need))
            && model.first_refused_member(&self.needs).is_none()
            && self.market.conditions(&model.name).healthy
    }

    /// The members of the request that a model's backend is not sent, where there are some.
    pub(crate) fn left_out(&self, model: &str) -> Vec<Arc<str>> {
        let model = self.models.iter().find(|known| *known.name == *model);
        let is_left =
            |name: &Arc<str>| model.is_some_and(|model| model.members.action_for(name) == MemberAction::Drop);
        self.needs.members.iter().filter(|name| is_left(name)).cloned().collect()
    }

    /// What the decision rests on, for the end of its request.
    pub(crate) fn decision_context(
        &self,
        account: &AccountId,
        observed: Option<ObservedPlan>,
        plan: &Plan,
    ) -> DecisionContext {
        let (at, budget, route) = (Timestamp::now(), &self.request.budget, &self.rules.route);
        let stakes = Stakes {
            worth: route.worth.as_dollars() * self.market.worth_factor,
            second: route.cost_per_second.as_dollars(),
            shadow_price: self.market.shadow_price,
            preference: budget.preference,
            success_min: plan.success_min,
        };
        DecisionContext {
            at,
            policy: self.rules.policy.clone(),
            prior: self.prior.clone(),
            stakes,
            question: QuestionFingerprint::of(account, &self.original, at),
            observed,
            paced: self.paced.clone(),
            expected: plan.best.cost,
            trial: self.trial_use(plan),
        }
    }
}
