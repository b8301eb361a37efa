//! Decides what a step may do, from all the limits on it. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use stint_ledger::EpisodeBalance;
use stint_types::chat::{Request, ToolLimits};
use stint_types::units::{Count, Money};

use super::allowed_tools::{self, AllowedTools};
use super::step::{ExhaustedBudget, Finality, RouteTurns, StepDecision, StepInput, StepPlan, StepWait};
use super::tracker::{self, TrackerSnapshot};
use super::{AddedWords, AnswerCallLimits, Headroom, Settings, history};

/// This part of the room for additions is kept for the final answer's.
const FINAL_PART: usize = 8;

/// Decides what a step may do.
pub fn decide_step(input: &StepInput<'_>, settings: &Settings) -> StepDecision {
    let evaluator = StepEvaluator::new(input, settings);
    if let Some(spent) = evaluator.spent() {
        return StepDecision::Exhausted(spent);
    }
    let wait = evaluator.wait();
    if wait != StepWait::default() {
        return StepDecision::Wait(wait);
    }
    StepDecision::Proceed(Box::new(evaluator.step()))
}

/// The inputs of a step's decision, put together.
struct StepEvaluator<'a> {
    input: &'a StepInput<'a>,
    settings: &'a Settings,
    /// The balance of the episode, by the ledger or by the client's own history, whichever shows more.
    balance: EpisodeBalance,
    /// The request's tools, each with what is left of it where something limits it.
    tools: Vec<(Arc<str>, Option<Headroom>)>,
    /// The names of those that may be called, where the caller lists them.
    listed: Option<HashSet<&'a str>>,
    all: Option<Headroom>,
    /// True if money alone keeps some tool from being called.
    is_money_short: bool,
}

impl<'a> StepEvaluator<'a> {
    fn new(input: &'a StepInput<'a>, settings: &'a Settings) -> StepEvaluator<'a> {
        let balance = input.history.tighten(input.balance);
        let (spent, reserved) = (&balance.spent.tools, &balance.reserved.tools);
        let all = input.limits.tools.all.map(|all| Headroom::of(all, spent.all, reserved.all));
        let all = Headroom::least_of([all, input.account_headroom]);
        let mut tools: Vec<(Arc<str>, Option<Headroom>)> = Vec::new();
        let choices = choices(input.request);
        let is_spent = |room: Option<Headroom>| room.is_some_and(|room| room.is_spent(choices));
        let (mut known, mut is_poor) = (HashSet::new(), false);
        for tool in &input.request.tools {
            if !known.insert(tool.name.as_str()) {
                continue;
            }
            let name: Arc<str> = tool.name.as_str().into();
            let own = input.limits.tools.each.get(&name);
            let own = own.map(|limit| Headroom::of(*limit, spent.of(&name), reserved.of(&name)));
            let paid = affordable_calls(input.limits.cost, &balance, settings.tools.price(&name));
            is_poor |= is_spent(paid) && !is_spent(own) && !is_spent(all);
            tools.push((name, Headroom::least_of([own, paid])));
        }
        let listed = allowed_tools::listed_names(input.request);
        StepEvaluator { input, settings, balance, tools, listed, all, is_money_short: is_poor }
    }

    /// True if the caller lists the tools that may be called, and this one is not among them.
    fn is_unlisted(&self, name: &str) -> bool {
        self.listed.as_ref().is_some_and(|listed| !listed.contains(name))
    }

    fn turns(&self) -> Count {
        self.balance.spent.turns + self.balance.reserved.turns
    }

    fn spent(&self) -> Option<ExhaustedBudget> {
        let (limits, spent) = (self.input.limits, &self.balance.spent);
        let turns = limits.turns.filter(|turns| spent.turns >= *turns).map(ExhaustedBudget::Turns);
        turns.or_else(|| limits.cost.filter(|cost| spent.cost >= *cost).map(ExhaustedBudget::Money))
    }

    fn wait(&self) -> StepWait {
        let limits = self.input.limits;
        let taken = self.balance.spent.cost + self.balance.reserved.cost;
        let is_taken = |room: &Option<Headroom>| room.is_some_and(|room| room.is_reserved(self.choices()));
        let all = is_taken(&self.all);
        let tools =
            self.tools.iter().filter(|(name, room)| self.may_call(name, room) && (all || is_taken(room)));
        let tools =
            if self.may_call_tools() { tools.map(|(name, _)| name.clone()).collect() } else { Vec::new() };
        StepWait {
            tools,
            turn: limits.turns.is_some_and(|turns| self.turns() >= turns),
            money: limits.cost.is_some_and(|cost| taken >= cost),
        }
    }

    /// True if this answer may call tools at all.
    fn may_call_tools(&self) -> bool {
        self.finality().is_none() && self.wants_calls()
    }

    /// True if the caller lets this answer call tools.
    fn wants_calls(&self) -> bool {
        let request = self.input.request;
        request.budget.tool_calls_max != Some(Count::ZERO)
            && !allowed_tools::is_none(request)
            && !self.tools.is_empty()
    }

    /// Why nothing but an answer is possible, where that is so.
    fn finality(&self) -> Option<Finality> {
        let is_last_turn = |turns| self.turns() + Count::ONE >= turns;
        if self.input.limits.turns.is_some_and(is_last_turn) {
            Some(Finality::Turns)
        } else if self.is_past_cap() {
            Some(Finality::RouteTurns)
        } else if self.input.calls_max == Count::ZERO {
            Some(Finality::Money)
        } else if self.is_out_of_tools() {
            Some(if self.is_money_short { Finality::Money } else { Finality::Tools })
        } else {
            None
        }
    }

    /// True if the caller wants a tool called that is used up.
    fn forces_withheld(&self, withheld: &[Arc<str>]) -> bool {
        allowed_tools::forced(self.input.request)
            .is_some_and(|forced| withheld.iter().any(|name| **name == *forced))
    }

    /// True if there were tools to call, and every one is used up.
    fn is_out_of_tools(&self) -> bool {
        self.wants_calls() && !self.tools.iter().any(|(_, room)| self.is_available(room))
    }

    /// True if the tool is not used up.
    fn is_available(&self, room: &Option<Headroom>) -> bool {
        let is_spent = |room: &Option<Headroom>| room.is_some_and(|room| room.is_spent(self.choices()));
        !is_spent(room) && !is_spent(&self.all)
    }

    /// True if this answer may call the tool.
    fn may_call(&self, name: &str, room: &Option<Headroom>) -> bool {
        self.is_available(room)
            && !self.is_unlisted(name)
            && allowed_tools::forced(self.input.request).is_none_or(|forced| forced == name)
    }

    /// The turns that count against the route's cap. A named episode is one task; in others each user message starts a
    /// task.
    fn turns_of_task(&self) -> Count {
        let since = self.input.history.turns_since;
        if self.input.is_named { self.turns().max(since) } else { since }
    }

    /// The cap that holds now, and whether it was extended just now: the agent calls on at the usual one.
    fn current_cap(&self) -> Option<(Count, bool)> {
        let cap = self.input.turn_cap?;
        let now = self.turns_of_task() + Count::ONE;
        let calls_on = history::ends_with_results(&self.input.request.messages);
        let is_extended = cap.usual < cap.extended && (now > cap.usual || now == cap.usual && calls_on);
        Some(if is_extended { (cap.extended, now == cap.usual) } else { (cap.usual, false) })
    }

    fn is_past_cap(&self) -> bool {
        self.current_cap().is_some_and(|(cap, _)| self.turns_of_task() + Count::ONE >= cap)
    }

    fn route_turns(&self) -> Option<RouteTurns> {
        let used = self.turns_of_task() + Count::ONE;
        self.current_cap().map(|(most, _)| RouteTurns { used, most })
    }

    fn step(&self) -> StepPlan {
        let request = self.input.request;
        let (finality, withheld, unlisted) = (self.finality(), self.withheld(), self.unlisted());
        let is_lifted = self.forces_withheld(&withheld);
        let choice = if self.may_call_tools() && !is_lifted {
            let barred = withheld.iter().chain(&unlisted);
            let mut seen = HashSet::new();
            AllowedTools::Without(barred.filter(|name| seen.insert(Arc::clone(name))).cloned().collect())
        } else if request.tools.is_empty() {
            AllowedTools::Without(Vec::new())
        } else if finality.is_some() && self.wants_calls() && self.can_ask_again() {
            AllowedTools::UsedUp
        } else {
            AllowedTools::None
        };
        // Where nothing is decided the caller's own `none` is for the model alone.
        let is_told_only = !self.input.is_enforced && finality.is_none() && allowed_tools::is_none(request);
        let pass = match choice {
            AllowedTools::None | AllowedTools::UsedUp if !is_told_only => AnswerCallLimits::none(),
            AllowedTools::None | AllowedTools::UsedUp | AllowedTools::Without(_) => self.call_limits(),
        };
        StepPlan {
            tools: pass.max_counts(request.choices),
            tools_cost: pass.max_cost(&self.settings.tools, request.choices),
            call_limits: pass,
            finality,
            route_turns: self.route_turns(),
            why: self.why(finality, &withheld),
            known: self.tools.iter().map(|(name, _)| name.clone()).collect(),
            addition: self.addition(finality.is_some(), &withheld, &choice),
            withheld,
            unlisted,
            allowed_tools: choice,
        }
    }

    /// True if no money was stated: a model that is only told that it may call nothing may have to be asked again.
    fn can_ask_again(&self) -> bool {
        self.input.limits.cost.is_none() && self.input.request.budget.cost.is_none()
    }

    fn withheld(&self) -> Vec<Arc<str>> {
        self.tools.iter().filter(|(_, room)| !self.is_available(room)).map(|(name, _)| name.clone()).collect()
    }

    /// The tools that the caller leaves out of its list of those that may be called.
    fn unlisted(&self) -> Vec<Arc<str>> {
        self.tools.iter().map(|(name, _)| name).filter(|name| self.is_unlisted(name)).cloned().collect()
    }

    /// What may pass of each choice: the least of what is left and what is set aside for one answer.
    fn call_limits(&self) -> AnswerCallLimits {
        let mut pass = AnswerCallLimits {
            tools: ToolLimits::default(),
            calls: self.allows_one_call().then_some(Count::ONE),
        };
        for (name, room) in &self.tools {
            let is_priced = self.settings.tools.price(name) > Money::ZERO;
            match room {
                _ if !self.is_available(room) || self.is_unlisted(name) => {
                    pass.lower(name, Count::ZERO);
                }
                Some(room) => pass.lower(name, self.share(room.free)),
                None if is_priced => pass.lower(name, self.calls_max()),
                None => {}
            }
        }
        // What the request does not declare has nothing set aside for it: where it is limited or has a price it does not
        // pass. What else a model invents passes, as everywhere, and counts among all.
        let unknown = |name: &Arc<str>| !self.tools.iter().any(|(known, _)| known == name);
        let priced = self.settings.tools.priced();
        for name in self.input.limits.tools.each.keys().chain(priced).filter(|name| unknown(name)) {
            pass.lower(name, Count::ZERO);
        }
        let all = self.all.map(|all| self.share(all.free));
        pass.tools.all = all.into_iter().chain(self.input.request.budget.tool_calls_max).min();
        if pass.calls.is_some() {
            self.narrow(&mut pass);
        }
        pass
    }

    /// One call is one, unless its elements are counted.
    fn narrow(&self, pass: &mut AnswerCallLimits) {
        let mut most = Count::ZERO;
        for (name, _) in &self.tools {
            let one = match self.settings.tools.list(name) {
                Some(_) => self.calls_max(),
                None => Count::ONE,
            };
            if let Some(own) = pass.tools.each.get_mut(name) {
                *own = one.min(*own);
            }
            most = most.max(pass.tools.each.get(name).copied().unwrap_or(one));
        }
        if let Some(all) = &mut pass.tools.all {
            *all = most.min(*all);
        }
    }

    fn choices(&self) -> Count {
        choices(self.input.request)
    }

    /// What one choice gets of what is free, at most what is set aside for one answer.
    fn share(&self, free: Count) -> Count {
        let each = free.0 / self.choices().0;
        Count(each).min(self.calls_max())
    }

    /// What is set aside for one answer at most.
    fn calls_max(&self) -> Count {
        self.input.calls_max.min(self.settings.calls_per_answer)
    }

    /// One call at a time: the caller wants it so, or the episode goes in circles while something is limited.
    fn allows_one_call(&self) -> bool {
        allowed_tools::forbids_parallel_calls(self.input.request)
            || (self.is_limited() && self.input.history.dead_end.is_some())
    }

    fn is_limited(&self) -> bool {
        !self.input.limits.is_empty() || self.input.turn_cap.is_some()
    }

    fn why(&self, finality: Option<Finality>, withheld: &[Arc<str>]) -> Option<String> {
        let mut why = Vec::new();
        if !withheld.is_empty() {
            why.push(format!("{} withheld, being used up", withheld.join(", ")));
        }
        if finality.is_none() && self.forces_withheld(withheld) {
            why.push("so no call is insisted on".to_owned());
        }
        if let Some((cap, true)) = self.current_cap() {
            why.push(format!("extended to {cap} turns"));
        }
        if let Some(finality) = finality {
            why.push(format!("the final answer, since {}", finality.why()));
        }
        if self.is_limited() && self.input.history.dead_end.is_some() {
            why.push("one call, as it goes in circles".to_owned());
        }
        (!why.is_empty()).then(|| why.join("; "))
    }

    /// What is added at the end of the prompt: the tracker's text, where there is room for it, and the tools that ran out, where
    /// these are others than before.
    fn addition(&self, is_final: bool, withheld: &[Arc<str>], choice: &AllowedTools) -> Option<AddedWords> {
        let text = self.tracker_text(is_final, withheld).filter(|text| self.has_room(text, is_final));
        let withheld: Arc<[Arc<str>]> = match choice {
            AllowedTools::UsedUp => self.tools.iter().map(|(name, _)| name.clone()).collect(),
            AllowedTools::Without(barred) => barred.as_slice().into(),
            AllowedTools::None => withheld.into(),
        };
        let before = self.input.last_added.map_or(&[][..], |added| &*added.withheld);
        let is_said = text.is_some() || *withheld != *before;
        is_said.then(|| AddedWords { text: text.unwrap_or_default().into(), withheld })
    }

    fn tracker_text(&self, is_final: bool, withheld: &[Arc<str>]) -> Option<String> {
        if !(self.settings.tracker && self.input.tracker && (is_final || self.is_limited())) {
            return None;
        }
        let turns = self.input.limits.turns.map(|turns| (self.turns(), turns));
        let cap = self.current_cap().map(|(cap, _)| (self.turns_of_task(), cap));
        let snapshot = TrackerSnapshot {
            limits: self.input.limits,
            spent: &self.balance.spent,
            tools: self.tools.iter().map(|(name, _)| name).collect(),
            turns: turns.into_iter().chain(cap).min_by_key(|(used, most)| most.saturating_sub(*used)),
            is_extended: self.current_cap().is_some_and(|(_, extended)| extended),
            is_final,
            withheld,
            forces_withheld: self.forces_withheld(withheld),
            dead_end: self.input.history.dead_end.as_ref().filter(|_| !is_final),
        };
        tracker::text(&snapshot, &self.input.request.messages, self.settings)
    }

    /// Whether a text may be added. Every later prompt has it again, so what is added to an episode is bounded: while half of
    /// the room is free, each step may; then only news; and the last part is kept for the final answer.
    fn has_room(&self, text: &str, is_final: bool) -> bool {
        let most = self.settings.additions_max;
        let taken = self.input.added_bytes.saturating_add(text.len());
        if is_final {
            return taken <= most;
        }
        let is_news = || self.input.last_added.is_none_or(|before| tracker::is_news(text, &before.text));
        taken <= most / 2 || (taken <= most - most / FINAL_PART && is_news())
    }
}

/// How many choices there are: a call for each must be left.
fn choices(request: &Request) -> Count {
    Count(u64::from(request.choices.max(1)))
}

/// How many calls the money pays for.
fn affordable_calls(limit: Option<Money>, balance: &EpisodeBalance, price: Money) -> Option<Headroom> {
    let limit = limit.filter(|_| price > Money::ZERO)?;
    let unspent = limit.saturating_sub(balance.spent.cost);
    let free = unspent.saturating_sub(balance.reserved.cost);
    Some(Headroom { unspent: Count(unspent.0 / price.0), free: Count(free.0 / price.0) })
}
