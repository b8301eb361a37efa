//! What a step is decided by: the limits that hold for it, how its run stands, and what its route says.

use std::sync::Arc;
use std::time::Duration;

use super::plan_inputs::ModelAffinity;
use super::rollout::RoutingRules;
use crate::agent::{
    BudgetState, BudgetUsage, Headroom, StepDecision, StepInput, TurnCap, decide_step, pressure,
};
use crate::catalog::{RolloutMode, TaskClass, TurnRule};
use crate::chat::{EpisodeLimits, Request, ToolLimits};
use crate::gateway::Gateway;
use crate::ledger::{EpisodeBalance, EpisodeUsage, RequestScope};
use crate::tenant::Tenant;
use crate::units::{Amount, Chance, Count, Money, Timestamp, Tokens, mix64};

use crate::gateway::episodes::join::JoinedEpisode;

/// How long providers keep a prefix in their caches, as far as most say.
const CACHE: Duration = Duration::from_secs(300);

/// By how much a dollar counts for more in a run that goes in circles.
const DEAD_END: f64 = 2.0;

/// The limits of a run that rules hold it to: those that are only watched leave out what is said of tool calls.
fn held_of(rules: &RoutingRules, limits: &EpisodeLimits) -> EpisodeLimits {
    let tools = if rules.is_unenforced() { ToolLimits::default() } else { limits.tools.clone() };
    EpisodeLimits { tools, ..limits.clone() }
}

/// A step before it is decided on.
#[derive(Clone)]
pub(in crate::gateway) struct StepContext<'a> {
    pub(in crate::gateway) request: &'a Arc<Request>,
    /// The same, as far as it is held: rules that are only watched leave out what it says of tool calls.
    pub(in crate::gateway) enforced_request: Arc<Request>,
    pub(in crate::gateway) episode: &'a JoinedEpisode,
    pub(in crate::gateway) rules: &'a RoutingRules,
    /// The limits that hold.
    pub(in crate::gateway) limits: EpisodeLimits,
    pub(in crate::gateway) cap: Option<TurnCap>,
}

impl<'a> StepContext<'a> {
    pub(in crate::gateway) fn new(
        gateway: &Gateway,
        request: &'a Arc<Request>,
        run: &'a JoinedEpisode,
        rules: &'a RoutingRules,
    ) -> StepContext<'a> {
        let is_held = !rules.is_unenforced();
        let limits = held_of(rules, &run.limits);
        let mut held = request.clone();
        if !is_held && request.budget.tool_calls_max.is_some() {
            Arc::make_mut(&mut held).budget.tool_calls_max = None;
        }
        let cap = if is_held { gateway.turn_cap(run, rules) } else { None };
        StepContext { request, enforced_request: held, episode: run, rules, limits, cap }
    }

    /// The same, of a run that may take so much by now.
    pub(in crate::gateway) fn raised(&self, limits: &EpisodeLimits) -> StepContext<'a> {
        StepContext { limits: held_of(self.rules, limits), ..self.clone() }
    }

    /// What is to happen, by the limits that hold.
    pub(in crate::gateway) fn next(
        &self,
        gateway: &Gateway,
        (standing, account): (&BudgetState, Option<Headroom>),
        calls_max: Count,
    ) -> StepDecision {
        let settings = &gateway.parts.episodes.inner.settings;
        let asked = StepInput {
            request: &self.enforced_request,
            limits: &self.limits,
            budget_state: standing,
            account_headroom: account,
            history: &self.episode.history,
            is_named: self.episode.is_named,
            turn_cap: self.cap,
            is_enforced: !self.rules.is_unenforced(),
            tracker: self.rules.route.tracker && !self.rules.is_unenforced(),
            calls_max,
        };
        decide_step(&asked, settings)
    }

    /// The same by limits that are only watched, where there are any.
    pub(in crate::gateway) fn observed_step(
        &self,
        gateway: &Gateway,
        standing: &BudgetState,
    ) -> Option<crate::agent::StepPlan> {
        let limits = &self.episode.limits;
        let is_limited = !limits.tools.is_empty() || self.request.budget.tool_calls_max.is_some();
        if self.rules.route.enforce != RolloutMode::Observe || !is_limited {
            return None;
        }
        let settings = &gateway.parts.episodes.inner.settings;
        let asked = StepInput {
            request: self.request,
            limits,
            budget_state: standing,
            account_headroom: None,
            history: &self.episode.history,
            is_named: self.episode.is_named,
            turn_cap: None,
            is_enforced: true,
            tracker: false,
            calls_max: settings.calls_per_answer,
        };
        match decide_step(&asked, settings) {
            StepDecision::Proceed(step) => Some(*step),
            StepDecision::Wait(_) | StepDecision::Exhausted(_) => None,
        }
    }

    /// By how much a dollar counts for more, where the run's money is limited or it goes in circles.
    pub(in crate::gateway) fn pressure(&self, gateway: &Gateway, standing: &BudgetState) -> f64 {
        let circling = if self.episode.history.dead_end.is_some() { DEAD_END } else { 1.0 };
        let Some(limit) = self.limits.cost else { return circling };
        let taken = standing.spent.cost + standing.reserved.cost;
        let turns = standing.spent.turns.max(self.episode.history.turns);
        let usual = gateway.usual_turns(self.episode).into_iter().chain(self.limits.turns).min();
        circling * pressure(limit.saturating_sub(taken), limit, turns, usual.unwrap_or_default())
    }

    /// The model that the run is with.
    pub(in crate::gateway) fn sticky(&self, now: Timestamp) -> Option<ModelAffinity> {
        let last = self.episode.last.as_ref()?;
        let is_warm = self.episode.last_used >= now.before(CACHE);
        Some(ModelAffinity {
            model: last.model.clone(),
            cached: if is_warm { last.context } else { Tokens::ZERO },
            evidence: self.episode.history.dead_end.is_some(),
        })
    }

    /// What the step is about, as far as limits care.
    pub(in crate::gateway) fn limit_scope(&self) -> RequestScope {
        let about = crate::gateway::request::scope::of(&self.request.extra);
        RequestScope { episode: Some(self.episode.id.clone()), ..about }
    }
}

impl Gateway {
    /// How a run stands, by all replicas.
    pub(in crate::gateway) async fn budget_state_of(
        &self,
        tenant: &Tenant,
        outlook: &StepContext<'_>,
    ) -> BudgetState {
        let (ledger, account, id) = (&self.parts.ledger, &tenant.account, &outlook.episode.id);
        ledger.refresh_episode(account, id, &outlook.limits).await;
        budget_state(ledger.episode(account, id))
    }

    /// What the account's own limits leave of tool calls.
    pub(in crate::gateway) fn tool_call_headroom(
        &self,
        tenant: &Tenant,
        outlook: &StepContext<'_>,
    ) -> Option<Headroom> {
        let lines = self.parts.ledger.statement(&tenant.account, &outlook.limit_scope(), self.now());
        let rooms = lines.iter().filter_map(|line| match (line.max, line.spent, line.reserved) {
            (Amount::ToolCalls(max), Amount::ToolCalls(spent), Amount::ToolCalls(reserved)) => {
                Some(Headroom::of(max, spent, reserved))
            }
            _ => None,
        });
        rooms.reduce(Headroom::least)
    }

    /// How many turns the route allows it.
    fn turn_cap(&self, run: &JoinedEpisode, rules: &RoutingRules) -> Option<TurnCap> {
        match rules.route.turns {
            TurnRule::Free => None,
            TurnRule::Fixed(turns) => Some(TurnCap::fixed(turns)),
            TurnRule::Learned => {
                let model = &run.last.as_ref()?.model;
                // Drawn once for the run, whoever serves its steps.
                let drawn = run.id.as_str().bytes().fold(0, |drawn, byte| mix64(drawn ^ u64::from(byte)));
                self.parts.episodes.inner.turns.load().cap(TaskClass::Agentic, model, share(drawn))
            }
        }
    }

    /// How many turns such runs usually take, where that is known.
    fn usual_turns(&self, run: &JoinedEpisode) -> Option<Count> {
        let model = &run.last.as_ref()?.model;
        let turns = self.parts.episodes.inner.turns.load();
        turns.cap(TaskClass::Agentic, model, Chance::new(1.0)).map(|cap| cap.usual)
    }
}

/// How a run stands, in the words of those who decide.
pub(in crate::gateway) fn budget_state(standing: EpisodeBalance) -> BudgetState {
    let taken = |taken: EpisodeUsage| BudgetUsage {
        cost: taken.cost,
        thinking: taken.thinking,
        turns: taken.turns,
        tools: taken.tools,
    };
    BudgetState { spent: taken(standing.spent), reserved: taken(standing.reserved) }
}

/// What is left of the money, where that is limited.
pub(in crate::gateway) fn money_left(limits: &EpisodeLimits, standing: &BudgetState) -> Option<Money> {
    let taken = standing.spent.cost + standing.reserved.cost;
    limits.cost.map(|cost| cost.saturating_sub(taken))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn share(drawn: u64) -> Chance {
    Chance::new((drawn >> 11) as f64 / (1_u64 << 53) as f64)
}
