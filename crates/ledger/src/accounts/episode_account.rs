//! One episode under the account of its key: what it has used, and what it may use.
//!
//! An episode is counted over all time, whole and tool by tool. Its limits are in no account's terms: its steps bring them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rows::{Amounts, EpisodeBalance, EpisodeUsage, StepReservation};
use stint_types::chat::{EpisodeLimits, ToolCounts};
use stint_types::units::{
    AccountId, Amount, Count, EpisodeId, Facet, Money, Timestamp, Tokens, Unit, Window, Zone,
};

use super::counted_limit::CountedLimit;
use super::demand::ExtraDemand;
use super::tally::WindowTally;

/// One episode.
#[derive(Debug)]
pub(crate) struct EpisodeAccount {
    /// The lowest limits that any step brought.
    pub(super) limits: EpisodeLimits,
    whole: WindowTally,
    tools: BTreeMap<Arc<str>, WindowTally>,
    /// When it was last used or asked for.
    pub(crate) used_at: Timestamp,
    /// What it used on all replicas, by the journal.
    pub(crate) journal_usage: EpisodeUsage,
    /// Since when this replica counts it, where replicas share the accounts.
    pub(crate) counted_since: Option<Timestamp>,
}

/// What one step reserved or used: all of it, and its calls by tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepAmounts<'a> {
    pub(crate) all: Amounts,
    pub(crate) tools: &'a ToolCounts,
}

impl EpisodeAccount {
    pub(crate) fn new(now: Timestamp, counted_since: Option<Timestamp>) -> EpisodeAccount {
        EpisodeAccount {
            limits: EpisodeLimits::default(),
            whole: all_time(),
            tools: BTreeMap::new(),
            used_at: now,
            journal_usage: EpisodeUsage::default(),
            counted_since,
        }
    }

    /// With what it used before, by the journal.
    pub(crate) fn restored(used: &EpisodeUsage, now: Timestamp) -> EpisodeAccount {
        let mut episode = EpisodeAccount::new(now, None);
        let EpisodeUsage { cost, thinking, turns, tools } = used;
        episode.whole.spent =
            Amounts { money: *cost, thinking: *thinking, requests: *turns, tool_calls: tools.all };
        tools.each.iter().for_each(|(tool, count)| episode.tool(tool).spent = calls(*count));
        episode
    }

    /// Its limits and what they count, in the order in which they are checked.
    pub(crate) fn counted_limits<'a>(&self, account: &'a AccountId, id: &EpisodeId) -> Vec<CountedLimit<'a>> {
        self.count(account, id, &self.limits)
    }

    /// The same of these limits instead of its own.
    pub(crate) fn count<'a>(
        &self,
        account: &'a AccountId,
        id: &EpisodeId,
        limits: &EpisodeLimits,
    ) -> Vec<CountedLimit<'a>> {
        let EpisodeLimits { cost, thinking, turns, tools, .. } = limits;
        let whole = [
            cost.map(Amount::Money),
            thinking.map(Amount::Thinking),
            turns.map(Amount::Requests),
            tools.all.map(Amount::ToolCalls),
        ];
        let whole = whole.into_iter().flatten().map(|max| (Facet::Episode(id.clone()), max));
        let each = tools.each.iter();
        let each = each.map(|(tool, max)| (Facet::Tool(id.clone(), tool.clone()), Amount::ToolCalls(*max)));
        let counted = |(facet, max): (Facet, Amount)| {
            let tally = self.tally(&facet);
            let has_prior_usage = tally.lease(max.unit()).has_prior_usage;
            let counted_since = self.counted_since.filter(|_| !has_prior_usage);
            CountedLimit { account, facet, max, tally, counted_since }
        };
        whole.chain(each).map(counted).collect()
    }

    /// Reserves for a step what was checked before.
    pub(crate) fn reserve(&mut self, demand: &ExtraDemand<'_>) {
        let more = demand.about.episode_amounts(demand.more);
        if demand.previous.is_some() {
            return self.whole.extend(more);
        }
        self.whole.open(more);
        for (tool, count) in demand.step.iter().flat_map(|step| &step.tools.each) {
            self.tool(tool).open(calls(*count));
        }
    }

    /// Ends a step: gives back what it reserved, and counts what it used.
    pub(crate) fn resolve(&mut self, held: StepAmounts<'_>, spent: StepAmounts<'_>) {
        self.whole.close(held.all, spent.all);
        for (tool, count) in &held.tools.each {
            self.tool(tool).close(calls(*count), calls(spent.tools.of(tool)));
        }
        let is_held = |tool: &Arc<str>| held.tools.each.contains_key(tool);
        for (tool, count) in spent.tools.each.iter().filter(|(tool, _)| !is_held(tool)) {
            self.tool(tool).spent += calls(*count);
        }
    }

    fn tally(&self, facet: &Facet) -> WindowTally {
        match facet {
            Facet::Tool(_, tool) => self.tools.get(tool).copied().unwrap_or_else(all_time),
            _ => self.whole,
        }
    }

    pub(crate) fn tally_mut(&mut self, facet: &Facet) -> &mut WindowTally {
        match facet {
            Facet::Tool(_, tool) => self.tool(tool),
            _ => &mut self.whole,
        }
    }

    /// True if nothing is open, and the coordinator knows what was used in the end.
    pub(crate) fn is_finished(&self) -> bool {
        std::iter::once(&self.whole).chain(self.tools.values()).all(WindowTally::is_finished)
    }

    fn tool(&mut self, tool: &Arc<str>) -> &mut WindowTally {
        self.tools.entry(tool.clone()).or_insert_with(all_time)
    }

    fn used(&self, of: impl Fn(&WindowTally, Unit) -> u64) -> EpisodeUsage {
        let each = self.tools.iter();
        let each = each.map(|(tool, tally)| (tool.clone(), Count(of(tally, Unit::ToolCalls))));
        EpisodeUsage {
            cost: Money(of(&self.whole, Unit::Money)),
            thinking: Tokens(of(&self.whole, Unit::Thinking)),
            turns: Count(of(&self.whole, Unit::Requests)),
            tools: ToolCounts { all: Count(of(&self.whole, Unit::ToolCalls)), each: each.collect() },
        }
    }

    /// How it stands.
    pub(crate) fn balance(&self) -> EpisodeBalance {
        let mine = |tally: &WindowTally, unit| tally.used(unit).0.size();
        let all = |tally: &WindowTally, unit| tally.size(unit).saturating_add(tally.lease(unit).others);
        // What others hold and the journal does not show as used may come back.
        let spent = self.used(mine).at_least(&self.journal_usage);
        let reserved = self.used(all).beyond(&spent);
        EpisodeBalance { spent, reserved }
    }
}

impl ExtraDemand<'_> {
    /// What it demands of a limit of its episode.
    pub(super) fn step_amount(&self, facet: &Facet, unit: Unit) -> Amount {
        match (facet, self.step) {
            (Facet::Tool(_, tool), Some(StepReservation { tools, .. })) => calls(tools.of(tool)).of(unit),
            (Facet::Tool(..), None) => Amounts::ZERO.of(unit),
            _ => self.about.episode_amounts(self.more).of(unit),
        }
    }
}

fn all_time() -> WindowTally {
    WindowTally::new(Window::Total, Timestamp::default(), &Zone::UTC)
}

fn calls(count: Count) -> Amounts {
    Amounts { tool_calls: count, ..Amounts::ZERO }
}
