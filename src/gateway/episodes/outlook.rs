//! What a step is decided by: the limits that hold for it, how its run stands, and what its route says.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::{Asked, Next, Room, Standing, TurnCap, Use, next, pressure};
use crate::catalog::{Enforce, TaskClass, TurnRule};
use crate::chat::{EpisodeLimits, Request, ToolLimits};
use crate::gateway::Gateway;
use crate::gateway::considered::Stuck;
use crate::gateway::rollout::Rules;
use crate::ledger::{About, EpisodeStanding, EpisodeUse};
use crate::tenant::Tenant;
use crate::units::{Amount, Chance, Count, Money, Timestamp, Tokens, mixed};

use super::join::Joined;

/// How long providers keep a prefix in their caches, as far as most say.
const CACHE: Duration = Duration::from_secs(300);

/// By how much a dollar counts for more in a run that goes in circles.
const DEAD_END: f64 = 2.0;

/// The limits of a run that rules hold it to: those that are only watched leave out what is said of tool calls.
fn held_of(rules: &Rules, limits: &EpisodeLimits) -> EpisodeLimits {
    let tools = if rules.is_unheld() { ToolLimits::default() } else { limits.tools.clone() };
    EpisodeLimits { tools, ..limits.clone() }
}

/// A step before it is decided on.
#[derive(Clone)]
pub(super) struct Outlook<'a> {
    pub(super) request: &'a Arc<Request>,
    /// The same, as far as it is held: rules that are only watched leave out what it says of tool calls.
    pub(super) held: Arc<Request>,
    pub(super) run: &'a Joined,
    pub(super) rules: &'a Rules,
    /// The limits that hold.
    pub(super) limits: EpisodeLimits,
    pub(super) cap: Option<TurnCap>,
}

impl<'a> Outlook<'a> {
    pub(super) fn new(
        gateway: &Gateway,
        request: &'a Arc<Request>,
        run: &'a Joined,
        rules: &'a Rules,
    ) -> Outlook<'a> {
        let is_held = !rules.is_unheld();
        let limits = held_of(rules, &run.limits);
        let mut held = request.clone();
        if !is_held && request.budget.calls.is_some() {
            Arc::make_mut(&mut held).budget.calls = None;
        }
        let cap = if is_held { gateway.cap(run, rules) } else { None };
        Outlook { request, held, run, rules, limits, cap }
    }

    /// The same, of a run that may take so much by now.
    pub(super) fn raised(&self, limits: &EpisodeLimits) -> Outlook<'a> {
        Outlook { limits: held_of(self.rules, limits), ..self.clone() }
    }

    /// What is to happen, by the limits that hold.
    pub(super) fn next(
        &self,
        gateway: &Gateway,
        (standing, account): (&Standing, Option<Room>),
        calls_max: Count,
    ) -> Next {
        let settings = &gateway.parts.agents.inner.settings;
        let asked = Asked {
            request: &self.held,
            limits: &self.limits,
            standing,
            account,
            history: &self.run.history,
            is_named: self.run.is_named,
            turns: self.cap,
            is_held: !self.rules.is_unheld(),
            tracker: self.rules.route.tracker && !self.rules.is_unheld(),
            calls_max,
        };
        next(&asked, settings)
    }

    /// The same by limits that are only watched, where there are any.
    pub(super) fn watched(&self, gateway: &Gateway, standing: &Standing) -> Option<crate::agent::Step> {
        let limits = &self.run.limits;
        let is_limited = !limits.tools.is_empty() || self.request.budget.calls.is_some();
        if self.rules.route.enforce != Enforce::Observe || !is_limited {
            return None;
        }
        let settings = &gateway.parts.agents.inner.settings;
        let asked = Asked {
            request: self.request,
            limits,
            standing,
            account: None,
            history: &self.run.history,
            is_named: self.run.is_named,
            turns: None,
            is_held: true,
            tracker: false,
            calls_max: settings.calls_per_answer,
        };
        match next(&asked, settings) {
            Next::Go(step) => Some(*step),
            Next::Wait(_) | Next::Spent(_) => None,
        }
    }

    /// By how much a dollar counts for more, where the run's money is limited or it goes in circles.
    pub(super) fn pressure(&self, gateway: &Gateway, standing: &Standing) -> f64 {
        let circling = if self.run.history.dead_end.is_some() { DEAD_END } else { 1.0 };
        let Some(limit) = self.limits.cost else { return circling };
        let taken = standing.spent.cost + standing.reserved.cost;
        let turns = standing.spent.turns.max(self.run.history.turns);
        let usual = gateway.usual(self.run).into_iter().chain(self.limits.turns).min();
        circling * pressure(limit.saturating_sub(taken), limit, turns, usual.unwrap_or_default())
    }

    /// The model that the run is with.
    pub(super) fn sticky(&self, now: Timestamp) -> Option<Stuck> {
        let last = self.run.last.as_ref()?;
        let is_warm = self.run.used >= now.before(CACHE);
        Some(Stuck {
            model: last.model.clone(),
            cached: if is_warm { last.context } else { Tokens::ZERO },
            evidence: self.run.history.dead_end.is_some(),
        })
    }

    /// What the step is about, as far as limits care.
    pub(super) fn about(&self) -> About {
        let about = crate::gateway::about::of(&self.request.extra);
        About { episode: Some(self.run.id.clone()), ..about }
    }
}

impl Gateway {
    /// How a run stands, by all replicas.
    pub(super) async fn standing_of(&self, tenant: &Tenant, outlook: &Outlook<'_>) -> Standing {
        let (ledger, account, id) = (&self.parts.ledger, &tenant.account, &outlook.run.id);
        ledger.gather_episode(account, id, &outlook.limits).await;
        standing(ledger.episode(account, id))
    }

    /// What the account's own limits leave of tool calls.
    pub(super) fn room(&self, tenant: &Tenant, outlook: &Outlook<'_>) -> Option<Room> {
        let lines = self.parts.ledger.statement(&tenant.account, &outlook.about(), self.now());
        let rooms = lines.iter().filter_map(|line| match (line.max, line.spent, line.reserved) {
            (Amount::ToolCalls(max), Amount::ToolCalls(spent), Amount::ToolCalls(reserved)) => {
                Some(Room::of(max, spent, reserved))
            }
            _ => None,
        });
        rooms.reduce(Room::least)
    }

    /// How many turns the route allows it.
    fn cap(&self, run: &Joined, rules: &Rules) -> Option<TurnCap> {
        match rules.route.turns {
            TurnRule::Free => None,
            TurnRule::Fixed(turns) => Some(TurnCap::fixed(turns)),
            TurnRule::Learned => {
                let model = &run.last.as_ref()?.model;
                // Drawn once for the run, whoever serves its steps.
                let drawn = run.id.as_str().bytes().fold(0, |drawn, byte| mixed(drawn ^ u64::from(byte)));
                self.parts.agents.inner.turns.load().cap(TaskClass::Agentic, model, share(drawn))
            }
        }
    }

    /// How many turns such runs usually take, where that is known.
    fn usual(&self, run: &Joined) -> Option<Count> {
        let model = &run.last.as_ref()?.model;
        let turns = self.parts.agents.inner.turns.load();
        turns.cap(TaskClass::Agentic, model, Chance::new(1.0)).map(|cap| cap.usual)
    }
}

/// How a run stands, in the words of those who decide.
pub(super) fn standing(standing: EpisodeStanding) -> Standing {
    let taken = |taken: EpisodeUse| Use {
        cost: taken.cost,
        thinking: taken.thinking,
        turns: taken.turns,
        tools: taken.tools,
    };
    Standing { spent: taken(standing.spent), reserved: taken(standing.reserved) }
}

/// What is left of the money, where that is limited.
pub(super) fn money_left(limits: &EpisodeLimits, standing: &Standing) -> Option<Money> {
    let taken = standing.spent.cost + standing.reserved.cost;
    limits.cost.map(|cost| cost.saturating_sub(taken))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn share(drawn: u64) -> Chance {
    Chance::new((drawn >> 11) as f64 / (1_u64 << 53) as f64)
}
