//! Runs of agents under the account of their key: what each has used, and what it may.
//!
//! A run is counted over all time, whole and tool by tool. Its limits are in no account's terms: they come with its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{
    Amount, Count, EpisodeId, Facet, Holder, Limit, Money, Timestamp, Tokens, Unit, Window, Zone,
};

use super::account::AccountState;
use super::extra_demand::ExtraDemand;
use super::quota_windows::quota_window;
use super::tally::WindowTally;
use super::{
    AccountId, Amounts, EpisodeBalance, EpisodeUsage, LimitStatus, QuotaNeed, RequestScope, Shortfall,
    StepReservation,
};

/// One run.
#[derive(Debug)]
pub(super) struct EpisodeAccount {
    /// The least that was ever said.
    pub(super) limits: EpisodeLimits,
    whole: WindowTally,
    tools: BTreeMap<Arc<str>, WindowTally>,
    /// When it was last asked for.
    used_at: Timestamp,
    /// What the journal says that it took, on all replicas.
    journal_usage: EpisodeUsage,
    /// Where replicas share the accounts: from when on it is counted here.
    pub(super) counted_since: Option<Timestamp>,
}

/// One limit of a run.
pub(super) struct EpisodeLimit {
    pub(super) facet: Facet,
    pub(super) max: Amount,
}

impl EpisodeAccount {
    fn new(now: Timestamp, since: Option<Timestamp>) -> EpisodeAccount {
        let (limits, tools) = (EpisodeLimits::default(), BTreeMap::new());
        EpisodeAccount {
            limits,
            whole: all_time(),
            tools,
            used_at: now,
            journal_usage: EpisodeUsage::default(),
            counted_since: since,
        }
    }

    /// With what the journal says that it took before.
    fn restored(used: &EpisodeUsage, now: Timestamp) -> EpisodeAccount {
        let mut episode = EpisodeAccount::new(now, None);
        let EpisodeUsage { cost, thinking, turns, tools } = used;
        episode.whole.spent =
            Amounts { money: *cost, thinking: *thinking, requests: *turns, tool_calls: tools.all };
        tools.each.iter().for_each(|(tool, count)| episode.tool(tool).spent = calls(*count));
        episode
    }

    pub(super) fn tally(&self, facet: &Facet) -> WindowTally {
        match facet {
            Facet::Tool(_, tool) => self.tools.get(tool).copied().unwrap_or_else(all_time),
            _ => self.whole,
        }
    }

    pub(super) fn tally_mut(&mut self, facet: &Facet) -> &mut WindowTally {
        match facet {
            Facet::Tool(_, tool) => self.tool(tool),
            _ => &mut self.whole,
        }
    }

    /// True where nothing is open, and the bank has been told what was used in the end.
    pub(super) fn is_finished(&self) -> bool {
        std::iter::once(&self.whole).chain(self.tools.values()).all(WindowTally::is_finished)
    }

    /// From when on it is counted here, where what was used before is not known yet.
    pub(super) fn counted_since(&self, tally: &WindowTally, unit: Unit) -> Option<Timestamp> {
        self.counted_since.filter(|_| !tally.lease(unit).has_prior_usage)
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

    fn standing(&self) -> EpisodeBalance {
        let mine = |tally: &WindowTally, unit| tally.used(unit).0.size();
        let all = |tally: &WindowTally, unit| tally.size(unit).saturating_add(tally.lease(unit).others);
        // What others have and no row tells of may come back.
        let spent = self.used(mine).at_least(&self.journal_usage);
        let reserved = self.used(all).beyond(&spent);
        EpisodeBalance { spent, reserved }
    }
}

impl AccountState {
    /// Begins to count a run, if that is new, and holds it to these limits from now on.
    pub(super) fn track_episode(
        &mut self,
        episode: &EpisodeId,
        limits: Option<&EpisodeLimits>,
        now: Timestamp,
        is_shared: bool,
    ) {
        let known = self.episodes.entry(episode.clone());
        let known = known.or_insert_with(|| EpisodeAccount::new(now, is_shared.then_some(now)));
        known.used_at = known.used_at.max(now);
        if let Some(limits) = limits {
            known.limits.lower(limits);
        }
    }

    /// The first limit of the run under which the wish does not fit; what it needs of those under which it may, and of
    /// which this replica's slice is too small.
    pub(super) fn check_step(
        &self,
        episode: &EpisodeId,
        wish: &ExtraDemand<'_>,
        id: &AccountId,
        needs: Option<&mut Vec<QuotaNeed>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        let Some(known) = self.episodes.get(episode) else { return Ok(()) };
        let mut missing = Vec::new();
        for EpisodeLimit { facet, max } in episode_limits(episode, &known.limits) {
            let (unit, needed) = (max.unit(), wish.step_amount(&facet, max.unit()));
            let tally = known.tally(&facet);
            let wanted = tally.size(unit).saturating_add(needed.size());
            let is_too_much = wanted > max.size() || tally.is_spent(unit, wanted, max.size(), now);
            let is_covered = needs.is_none() || tally.covers(unit, wanted, max.size());
            if needed.size() == 0 || (!is_too_much && is_covered) {
                continue;
            }
            let counted_since = known.counted_since(&tally, unit);
            let line = episode_limit_status(&facet, max, &tally);
            let shortfall = Shortfall { limit: line.limit, needed, left: line.left, resets_at: None };
            if is_too_much {
                return Err(shortfall);
            }
            let purse = quota_window(id, facet, unit, &tally);
            missing.push(QuotaNeed { window: purse, max: max.size(), counted_since, shortfall });
        }
        needs.into_iter().for_each(|needs| needs.append(&mut missing));
        Ok(())
    }

    /// Takes over what the journal says of a run, where nothing is known of it; where replicas share it, beside that.
    pub(super) fn restore_episode(
        &mut self,
        id: &EpisodeId,
        used: &EpisodeUsage,
        now: Timestamp,
        is_shared: bool,
    ) {
        match self.episodes.get_mut(id) {
            None if is_shared => {}
            None => drop(self.episodes.insert(id.clone(), EpisodeAccount::restored(used, now))),
            Some(known) if is_shared => known.journal_usage = used.clone(),
            Some(_) => {}
        }
    }

    /// Forgets runs that nobody asked for since then; says how many, and when the others were last asked for.
    pub(super) fn evict_episodes(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> usize {
        let before = self.episodes.len();
        self.episodes.retain(|_, episode| episode.used_at >= since || !episode.is_finished());
        used.extend(self.episodes.values().map(|episode| episode.used_at));
        before - self.episodes.len()
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve_step(&mut self, wish: &ExtraDemand<'_>, now: Timestamp) {
        let Some(id) = &wish.about.episode else { return };
        let episode = self.episodes.entry(id.clone()).or_insert_with(|| EpisodeAccount::new(now, None));
        episode.used_at = episode.used_at.max(now);
        let more = wish.about.episode_amounts(wish.more);
        if wish.previous.is_some() {
            return episode.whole.extend(more);
        }
        episode.whole.open(more);
        for (tool, count) in wish.step.iter().flat_map(|step| &step.tools.each) {
            episode.tool(tool).open(calls(*count));
        }
    }

    /// A step of a run is over: what was set aside for it, and what it took.
    pub(super) fn resolve_step(
        &mut self,
        about: &RequestScope,
        (held, held_tools): (Amounts, &ToolCounts),
        (spent, spent_tools): (Amounts, &ToolCounts),
        now: Timestamp,
    ) {
        let known = about.episode.as_ref().and_then(|id| self.episodes.get_mut(id));
        let Some(episode) = known else { return };
        episode.used_at = episode.used_at.max(now);
        episode.whole.close(about.episode_amounts(held), about.episode_amounts(spent));
        for (tool, count) in &held_tools.each {
            episode.tool(tool).close(calls(*count), calls(spent_tools.of(tool)));
        }
        for (tool, count) in spent_tools.each.iter().filter(|(tool, _)| !held_tools.each.contains_key(*tool))
        {
            episode.tool(tool).spent += calls(*count);
        }
    }

    /// How the limits of a run stand, with these beside those that are known.
    pub(super) fn episode_limit_statuses(&self, id: &EpisodeId, limits: &EpisodeLimits) -> Vec<LimitStatus> {
        let known = self.episodes.get(id);
        let mut least = known.map(|known| known.limits.clone()).unwrap_or_default();
        least.lower(limits);
        let line = |EpisodeLimit { facet, max }: EpisodeLimit| {
            let tally = known.map_or_else(all_time, |known| known.tally(&facet));
            episode_limit_status(&facet, max, &tally)
        };
        episode_limits(id, &least).into_iter().map(line).collect()
    }

    /// How a run stands.
    pub(super) fn episode(&self, id: &EpisodeId) -> EpisodeBalance {
        self.episodes.get(id).map(EpisodeAccount::standing).unwrap_or_default()
    }
}

impl ExtraDemand<'_> {
    /// What it asks of a limit of its run.
    fn step_amount(&self, facet: &Facet, unit: Unit) -> Amount {
        match (facet, self.step) {
            (Facet::Tool(_, tool), Some(StepReservation { tools, .. })) => calls(tools.of(tool)).of(unit),
            (Facet::Tool(..), None) => Amounts::ZERO.of(unit),
            _ => self.about.episode_amounts(self.more).of(unit),
        }
    }
}

/// Each limit of a run by itself, in the order in which they are checked.
pub(super) fn episode_limits(id: &EpisodeId, limits: &EpisodeLimits) -> Vec<EpisodeLimit> {
    let EpisodeLimits { cost, thinking, turns, tools, .. } = limits;
    let whole = [
        cost.map(Amount::Money),
        thinking.map(Amount::Thinking),
        turns.map(Amount::Requests),
        tools.all.map(Amount::ToolCalls),
    ];
    let whole =
        whole.into_iter().flatten().map(|max| EpisodeLimit { facet: Facet::Episode(id.clone()), max });
    let each = tools.each.iter().map(|(tool, max)| EpisodeLimit {
        facet: Facet::Tool(id.clone(), tool.clone()),
        max: Amount::ToolCalls(*max),
    });
    whole.chain(each).collect()
}

pub(super) fn episode_limit_status(facet: &Facet, max: Amount, tally: &WindowTally) -> LimitStatus {
    let unit = max.unit();
    let (spent, reserved) = tally.used(unit);
    let others = tally.lease(unit).others;
    let used = tally.size(unit).saturating_add(others);
    let left = Amount::new(unit, max.size().saturating_sub(used));
    let limit = Limit { holder: Holder::Episode, facet: facet.clone(), unit, window: Window::Total };
    let spent = Amount::new(unit, spent.size().saturating_add(others));
    LimitStatus { limit, max, spent, reserved, left, resets_at: None }
}

fn all_time() -> WindowTally {
    WindowTally::new(Window::Total, Timestamp::default(), &Zone::UTC)
}

fn calls(count: Count) -> Amounts {
    Amounts { tool_calls: count, ..Amounts::ZERO }
}
