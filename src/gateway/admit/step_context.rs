//! The inputs of a step's decision: its limits, the state of its episode, and the settings of its route.

use std::sync::Arc;
use std::time::Duration;

use crate::gateway::EpisodeManager;
use crate::gateway::episodes::join::JoinedEpisode;
use crate::gateway::request::scope;
use crate::gateway::state::GatewayParts;
use stint_ledger::{EpisodeBalance, Ledger, RequestScope};
use stint_sessions::agent::{
    Headroom, StepDecision, StepInput, StepPlan, TurnCap, decide_step, pressure, put_back,
};
use stint_types::catalog::{RolloutMode, TaskClass, TurnRule};
use stint_types::chat::{EpisodeLimits, Request, ToolLimits};
use stint_types::units::{AccountId, Amount, Chance, Count, Money, Timestamp, Tokens, mix64};

use super::plan_inputs::ModelAffinity;
use super::routing_rules::RoutingRules;

/// How long providers keep a prefix in their caches, as far as most say.
const CACHE: Duration = Duration::from_secs(300);

/// By how much a dollar counts for more in an episode of limited money that goes in circles.
const DEAD_END: f64 = 2.0;

/// A step before it is decided on.
#[derive(Clone)]
pub(super) struct StepContext<'a> {
    episodes: &'a EpisodeManager,
    ledger: &'a Ledger,
    account: &'a AccountId,
    pub(super) request: &'a Arc<Request>,
    /// The same with what was added to its conversation before, and as far as it is enforced: rules that are only observed
    /// leave out what it states about tool calls.
    pub(super) enforced_request: Arc<Request>,
    pub(super) episode: &'a JoinedEpisode,
    pub(super) rules: &'a RoutingRules,
    /// The limits that hold.
    pub(super) limits: EpisodeLimits,
    cap: Option<TurnCap>,
}

/// A step that was decided on.
pub(super) struct DecidedStep {
    /// How its episode stood then.
    pub(super) balance: EpisodeBalance,
    pub(super) plan: StepPlan,
    /// The step by limits that are only watched, where there are any.
    pub(super) observed: Option<StepPlan>,
}

impl<'a> StepContext<'a> {
    pub(super) fn new(
        parts: &'a GatewayParts,
        account: &'a AccountId,
        request: &'a Arc<Request>,
        episode: &'a JoinedEpisode,
        rules: &'a RoutingRules,
    ) -> StepContext<'a> {
        let (episodes, ledger) = (&parts.episodes, &parts.ledger);
        let is_enforced = !rules.is_unenforced();
        let mut enforced_request = request.clone();
        if !is_enforced && request.budget.tool_calls_max.is_some() {
            Arc::make_mut(&mut enforced_request).budget.tool_calls_max = None;
        }
        if !episode.added.placed.is_empty() {
            put_back(&episode.added.placed, &mut Arc::make_mut(&mut enforced_request).messages);
        }
        let limits = enforced_limits(rules, &episode.limits);
        let cap = if is_enforced { turn_cap(episodes, episode, rules) } else { None };
        StepContext { episodes, ledger, account, request, enforced_request, episode, rules, limits, cap }
    }

    /// The same, of an episode that may take so much by now.
    pub(super) fn raised(&self, limits: &EpisodeLimits) -> StepContext<'a> {
        StepContext { limits: enforced_limits(self.rules, limits), ..self.clone() }
    }

    /// What the whole episode may cost, where the model is to be told by its provider's own means.
    pub(super) fn told_cost(&self) -> Option<Money> {
        let is_told = self.episodes.inner.settings.task_budget && self.rules.route.tracker;
        self.limits.cost.filter(|_| is_told && !self.rules.is_unenforced())
    }

    /// How the episode stands, as this process knows it.
    pub(super) fn balance(&self) -> EpisodeBalance {
        self.ledger.episode(self.account, &self.episode.id)
    }

    /// How it stands by all replicas.
    pub(super) async fn refreshed_balance(&self) -> EpisodeBalance {
        self.ledger.refresh_episode(self.account, &self.episode.id, &self.limits).await;
        self.balance()
    }

    /// What the account's own limits leave of tool calls.
    pub(super) fn tool_call_headroom(&self) -> Option<Headroom> {
        let lines = self.ledger.statement(self.account, &self.limit_scope(), self.ledger.now());
        let rooms = lines.iter().filter_map(|line| match (line.max, line.spent, line.reserved) {
            (Amount::ToolCalls(max), Amount::ToolCalls(spent), Amount::ToolCalls(reserved)) => {
                Some(Headroom::of(max, spent, reserved))
            }
            _ => None,
        });
        rooms.reduce(Headroom::least)
    }

    /// What is to happen, by the limits that hold.
    pub(super) fn decide(
        &self,
        balance: &EpisodeBalance,
        headroom: Option<Headroom>,
        calls_max: Count,
    ) -> StepDecision {
        let is_enforced = !self.rules.is_unenforced();
        let input = StepInput {
            request: &self.enforced_request,
            limits: &self.limits,
            balance,
            account_headroom: headroom,
            history: &self.episode.history,
            is_named: self.episode.is_named,
            turn_cap: self.cap,
            is_enforced,
            tracker: self.rules.route.tracker && is_enforced,
            added_bytes: self.episode.added.bytes(),
            last_added: self.episode.added.placed.last().map(|last| &last.words),
            calls_max,
        };
        decide_step(&input, &self.episodes.inner.settings)
    }

    /// The same by limits that are only watched, where there are any.
    pub(super) fn observed_step(&self, balance: &EpisodeBalance) -> Option<StepPlan> {
        let limits = &self.episode.limits;
        let is_limited = !limits.tools.is_empty() || self.request.budget.tool_calls_max.is_some();
        if self.rules.route.enforce != RolloutMode::Observe || !is_limited {
            return None;
        }
        let settings = &self.episodes.inner.settings;
        let input = StepInput {
            request: self.request,
            limits,
            balance,
            account_headroom: None,
            history: &self.episode.history,
            is_named: self.episode.is_named,
            turn_cap: None,
            is_enforced: true,
            tracker: false,
            added_bytes: 0,
            last_added: None,
            calls_max: settings.calls_per_answer,
        };
        match decide_step(&input, settings) {
            StepDecision::Proceed(step) => Some(*step),
            StepDecision::Wait(_) | StepDecision::Exhausted(_) => None,
        }
    }

    /// By how much a dollar counts for more, where the episode's money is limited. Where it is not, one that goes in circles gets
    /// no weaker model for it.
    pub(super) fn pressure(&self, balance: &EpisodeBalance) -> f64 {
        let Some(limit) = self.limits.cost else { return 1.0 };
        let circling = if self.saves_in_circles() { DEAD_END } else { 1.0 };
        let taken = balance.spent.cost + balance.reserved.cost;
        let turns = balance.spent.turns.max(self.episode.history.turns);
        let usual = self.usual_turns().into_iter().chain(self.limits.turns).min();
        circling * pressure(limit.saturating_sub(taken), limit, turns, usual.unwrap_or_default())
    }

    /// Adds to `why` that its money is saved since it goes in circles, where that is so.
    pub(super) fn annotate(&self, why: &mut String) {
        if self.saves_in_circles() {
            why.push_str("; a dollar of the run's budget counts twice, since it goes in circles");
        }
    }

    fn saves_in_circles(&self) -> bool {
        self.limits.cost.is_some() && self.episode.history.dead_end.is_some()
    }

    /// How many turns such episodes usually take, where that is known.
    fn usual_turns(&self) -> Option<Count> {
        let model = &self.episode.last.as_ref()?.model;
        let turns = self.episodes.inner.turns.load();
        turns.cap(TaskClass::Agentic, model, Chance::new(1.0)).map(|cap| cap.usual)
    }

    /// The model that the episode is with.
    pub(super) fn sticky(&self, now: Timestamp) -> Option<ModelAffinity> {
        let last = self.episode.last.as_ref()?;
        let is_warm = self.episode.last_used >= now.before(CACHE);
        Some(ModelAffinity {
            model: last.model.clone(),
            cached: if is_warm { last.context } else { Tokens::ZERO },
            evidence: self.episode.history.dead_end.is_some(),
        })
    }

    /// What the step is about, as far as limits care.
    pub(super) fn limit_scope(&self) -> RequestScope {
        let about = scope::of(&self.request.extra);
        RequestScope { episode: Some(self.episode.id.clone()), ..about }
    }
}

/// The limits of an episode that are enforced: rules that are only observed leave out the limits on tool calls.
fn enforced_limits(rules: &RoutingRules, limits: &EpisodeLimits) -> EpisodeLimits {
    let tools = if rules.is_unenforced() { ToolLimits::default() } else { limits.tools.clone() };
    EpisodeLimits { tools, ..limits.clone() }
}

/// How many turns the route allows it.
fn turn_cap(episodes: &EpisodeManager, episode: &JoinedEpisode, rules: &RoutingRules) -> Option<TurnCap> {
    match rules.route.turns {
        TurnRule::Free => None,
        TurnRule::Fixed(turns) => Some(TurnCap::fixed(turns)),
        TurnRule::Learned => {
            let model = &episode.last.as_ref()?.model;
            // Drawn once for the episode, whichever model serves its steps.
            let drawn = episode.id.as_str().bytes().fold(0, |drawn, byte| mix64(drawn ^ u64::from(byte)));
            episodes.inner.turns.load().cap(TaskClass::Agentic, model, share(drawn))
        }
    }
}

/// What is left of the money, where that is limited.
pub(super) fn money_left(limits: &EpisodeLimits, balance: &EpisodeBalance) -> Option<Money> {
    let taken = balance.spent.cost + balance.reserved.cost;
    limits.cost.map(|cost| cost.saturating_sub(taken))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn share(drawn: u64) -> Chance {
    Chance::new((drawn >> 11) as f64 / (1_u64 << 53) as f64)
}
