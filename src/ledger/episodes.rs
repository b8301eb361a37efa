//! Runs of agents under the account of their key: what each has used, and what it may.
//!
//! A run is counted over all time, whole and tool by tool. Its limits are in no account's terms: they come with its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{
    Amount, Count, EpisodeId, Facet, Holder, Limit, Money, Timestamp, Tokens, Unit, Window, Zone,
};

use super::account::Account;
use super::purses::purse;
use super::tally::Tally;
use super::wish::Wish;
use super::{About, AccountId, Amounts, EpisodeStanding, EpisodeUse, Line, Need, Shortfall, Step};

/// One run.
#[derive(Debug)]
pub(super) struct Episode {
    /// The least that was ever said.
    pub(super) limits: EpisodeLimits,
    whole: Tally,
    tools: BTreeMap<Arc<str>, Tally>,
    /// When it was last asked for.
    used_at: Timestamp,
    /// What the journal says that it took, on all replicas.
    told: EpisodeUse,
    /// Where replicas share the accounts: from when on it is counted here.
    pub(super) since: Option<Timestamp>,
}

/// One limit of a run.
pub(super) struct Most {
    pub(super) facet: Facet,
    pub(super) max: Amount,
}

impl Episode {
    fn new(now: Timestamp, since: Option<Timestamp>) -> Episode {
        let (limits, tools) = (EpisodeLimits::default(), BTreeMap::new());
        Episode { limits, whole: all_time(), tools, used_at: now, told: EpisodeUse::default(), since }
    }

    /// With what the journal says that it took before.
    fn recalled(used: &EpisodeUse, now: Timestamp) -> Episode {
        let mut episode = Episode::new(now, None);
        let EpisodeUse { cost, thinking, turns, tools } = used;
        episode.whole.spent =
            Amounts { money: *cost, thinking: *thinking, requests: *turns, tool_calls: tools.all };
        tools.each.iter().for_each(|(tool, count)| episode.tool(tool).spent = calls(*count));
        episode
    }

    pub(super) fn tally(&self, facet: &Facet) -> Tally {
        match facet {
            Facet::Tool(_, tool) => self.tools.get(tool).copied().unwrap_or_else(all_time),
            _ => self.whole,
        }
    }

    pub(super) fn tally_mut(&mut self, facet: &Facet) -> &mut Tally {
        match facet {
            Facet::Tool(_, tool) => self.tool(tool),
            _ => &mut self.whole,
        }
    }

    /// True where nothing is open, and the bank has been told what was used in the end.
    pub(super) fn is_over(&self) -> bool {
        std::iter::once(&self.whole).chain(self.tools.values()).all(Tally::is_over)
    }

    /// From when on it is counted here, where what was used before is not known yet.
    pub(super) fn counted_since(&self, tally: &Tally, unit: Unit) -> Option<Timestamp> {
        self.since.filter(|_| !tally.slice(unit).has_before)
    }

    fn tool(&mut self, tool: &Arc<str>) -> &mut Tally {
        self.tools.entry(tool.clone()).or_insert_with(all_time)
    }

    fn used(&self, of: impl Fn(&Tally, Unit) -> u64) -> EpisodeUse {
        let each = self.tools.iter();
        let each = each.map(|(tool, tally)| (tool.clone(), Count(of(tally, Unit::ToolCalls))));
        EpisodeUse {
            cost: Money(of(&self.whole, Unit::Money)),
            thinking: Tokens(of(&self.whole, Unit::Thinking)),
            turns: Count(of(&self.whole, Unit::Requests)),
            tools: ToolCounts { all: Count(of(&self.whole, Unit::ToolCalls)), each: each.collect() },
        }
    }

    fn standing(&self) -> EpisodeStanding {
        let mine = |tally: &Tally, unit| tally.used(unit).0.size();
        let all = |tally: &Tally, unit| tally.size(unit).saturating_add(tally.slice(unit).others);
        // What others have and no row tells of may come back.
        let spent = self.used(mine).at_least(&self.told);
        let reserved = self.used(all).beyond(&spent);
        EpisodeStanding { spent, reserved }
    }
}

impl Account {
    /// Begins to count a run, if that is new, and holds it to these limits from now on.
    pub(super) fn know(
        &mut self,
        episode: &EpisodeId,
        limits: Option<&EpisodeLimits>,
        now: Timestamp,
        is_shared: bool,
    ) {
        let known = self.episodes.entry(episode.clone());
        let known = known.or_insert_with(|| Episode::new(now, is_shared.then_some(now)));
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
        wish: &Wish<'_>,
        id: &AccountId,
        needs: Option<&mut Vec<Need>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        let Some(known) = self.episodes.get(episode) else { return Ok(()) };
        let mut missing = Vec::new();
        for Most { facet, max } in mosts(episode, &known.limits) {
            let (unit, needed) = (max.unit(), wish.of_step(&facet, max.unit()));
            let tally = known.tally(&facet);
            let wanted = tally.size(unit).saturating_add(needed.size());
            let is_too_much = wanted > max.size() || tally.is_spent(unit, wanted, max.size(), now);
            let is_covered = needs.is_none() || tally.covers(unit, wanted, max.size());
            if needed.size() == 0 || (!is_too_much && is_covered) {
                continue;
            }
            let counted_since = known.counted_since(&tally, unit);
            let line = line(&facet, max, &tally);
            let shortfall = Shortfall { limit: line.limit, needed, left: line.left, resets_at: None };
            if is_too_much {
                return Err(shortfall);
            }
            let purse = purse(id, facet, unit, &tally);
            missing.push(Need { purse, max: max.size(), counted_since, shortfall });
        }
        needs.into_iter().for_each(|needs| needs.append(&mut missing));
        Ok(())
    }

    /// Takes over what the journal says of a run, where nothing is known of it; where replicas share it, beside that.
    pub(super) fn recall(&mut self, id: &EpisodeId, used: &EpisodeUse, now: Timestamp, is_shared: bool) {
        match self.episodes.get_mut(id) {
            None if is_shared => {}
            None => drop(self.episodes.insert(id.clone(), Episode::recalled(used, now))),
            Some(known) if is_shared => known.told = used.clone(),
            Some(_) => {}
        }
    }

    /// Forgets runs that nobody asked for since then; says how many, and when the others were last asked for.
    pub(super) fn forget_episodes(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> usize {
        let before = self.episodes.len();
        self.episodes.retain(|_, episode| episode.used_at >= since || !episode.is_over());
        used.extend(self.episodes.values().map(|episode| episode.used_at));
        before - self.episodes.len()
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve_step(&mut self, wish: &Wish<'_>, now: Timestamp) {
        let Some(id) = &wish.about.episode else { return };
        let episode = self.episodes.entry(id.clone()).or_insert_with(|| Episode::new(now, None));
        episode.used_at = episode.used_at.max(now);
        let more = wish.about.of_run(wish.more);
        if wish.before.is_some() {
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
        about: &About,
        (held, held_tools): (Amounts, &ToolCounts),
        (spent, spent_tools): (Amounts, &ToolCounts),
        now: Timestamp,
    ) {
        let known = about.episode.as_ref().and_then(|id| self.episodes.get_mut(id));
        let Some(episode) = known else { return };
        episode.used_at = episode.used_at.max(now);
        episode.whole.close(about.of_run(held), about.of_run(spent));
        for (tool, count) in &held_tools.each {
            episode.tool(tool).close(calls(*count), calls(spent_tools.of(tool)));
        }
        for (tool, count) in spent_tools.each.iter().filter(|(tool, _)| !held_tools.each.contains_key(*tool))
        {
            episode.tool(tool).spent += calls(*count);
        }
    }

    /// How the limits of a run stand, with these beside those that are known.
    pub(super) fn episode_lines(&self, id: &EpisodeId, limits: &EpisodeLimits) -> Vec<Line> {
        let known = self.episodes.get(id);
        let mut least = known.map(|known| known.limits.clone()).unwrap_or_default();
        least.lower(limits);
        let line = |Most { facet, max }: Most| {
            let tally = known.map_or_else(all_time, |known| known.tally(&facet));
            line(&facet, max, &tally)
        };
        mosts(id, &least).into_iter().map(line).collect()
    }

    /// How a run stands.
    pub(super) fn episode(&self, id: &EpisodeId) -> EpisodeStanding {
        self.episodes.get(id).map(Episode::standing).unwrap_or_default()
    }
}

impl Wish<'_> {
    /// What it asks of a limit of its run.
    fn of_step(&self, facet: &Facet, unit: Unit) -> Amount {
        match (facet, self.step) {
            (Facet::Tool(_, tool), Some(Step { tools, .. })) => calls(tools.of(tool)).of(unit),
            (Facet::Tool(..), None) => Amounts::ZERO.of(unit),
            _ => self.about.of_run(self.more).of(unit),
        }
    }
}

/// Each limit of a run by itself, in the order in which they are checked.
pub(super) fn mosts(id: &EpisodeId, limits: &EpisodeLimits) -> Vec<Most> {
    let EpisodeLimits { cost, thinking, turns, tools, .. } = limits;
    let whole = [
        cost.map(Amount::Money),
        thinking.map(Amount::Thinking),
        turns.map(Amount::Requests),
        tools.all.map(Amount::ToolCalls),
    ];
    let whole = whole.into_iter().flatten().map(|max| Most { facet: Facet::Episode(id.clone()), max });
    let each = tools.each.iter().map(|(tool, max)| Most {
        facet: Facet::Tool(id.clone(), tool.clone()),
        max: Amount::ToolCalls(*max),
    });
    whole.chain(each).collect()
}

pub(super) fn line(facet: &Facet, max: Amount, tally: &Tally) -> Line {
    let unit = max.unit();
    let (spent, reserved) = tally.used(unit);
    let others = tally.slice(unit).others;
    let used = tally.size(unit).saturating_add(others);
    let left = Amount::new(unit, max.size().saturating_sub(used));
    let limit = Limit { holder: Holder::Episode, facet: facet.clone(), unit, window: Window::Total };
    let spent = Amount::new(unit, spent.size().saturating_add(others));
    Line { limit, max, spent, reserved, left, resets_at: None }
}

fn all_time() -> Tally {
    Tally::new(Window::Total, Timestamp::default(), &Zone::UTC)
}

fn calls(count: Count) -> Amounts {
    Amounts { tool_calls: count, ..Amounts::ZERO }
}
