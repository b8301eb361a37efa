//! Runs of agents under the account of their key: what each has used, and what it may.
//!
//! A run is counted over all time, whole and tool by tool. Its limits are in no account's terms: they come with its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chat::{EpisodeLimits, ToolCounts};
use crate::units::{Amount, Count, EpisodeId, Facet, Holder, Limit, Timestamp, Unit, Window, Zone};

use super::account::Account;
use super::purses::purse;
use super::tally::Tally;
use super::wish::Wish;
use super::{AccountId, Amounts, EpisodeStanding, EpisodeUse, Line, Need, Shortfall, Step};

/// One run.
#[derive(Debug)]
pub(super) struct Episode {
    /// The least that was ever said.
    limits: EpisodeLimits,
    pub(super) whole: Tally,
    pub(super) tools: BTreeMap<Arc<str>, Tally>,
    /// When it was last asked for.
    pub(super) used_at: Timestamp,
    /// Where replicas share the accounts: from when on it is counted here.
    pub(super) since: Option<Timestamp>,
}

/// One limit of a run.
struct Most {
    facet: Facet,
    max: Amount,
}

impl Episode {
    fn new(now: Timestamp, since: Option<Timestamp>) -> Episode {
        let (limits, tools) = (EpisodeLimits::default(), BTreeMap::new());
        Episode { limits, whole: all_time(), tools, used_at: now, since }
    }

    pub(super) fn tally(&self, facet: &Facet) -> Option<&Tally> {
        match facet {
            Facet::Tool(_, tool) => self.tools.get(tool),
            _ => Some(&self.whole),
        }
    }

    fn tool(&mut self, tool: &Arc<str>) -> &mut Tally {
        self.tools.entry(tool.clone()).or_insert_with(all_time)
    }

    fn used(&self, of: impl Fn(&Tally, Unit) -> u64) -> EpisodeUse {
        let each = self.tools.iter();
        let each = each.map(|(tool, tally)| (tool.clone(), Count(of(tally, Unit::ToolCalls))));
        EpisodeUse {
            cost: crate::units::Money(of(&self.whole, Unit::Money)),
            thinking: crate::units::Tokens(of(&self.whole, Unit::Thinking)),
            turns: Count(of(&self.whole, Unit::Requests)),
            tools: ToolCounts { all: Count(of(&self.whole, Unit::ToolCalls)), each: each.collect() },
        }
    }

    fn standing(&self) -> EpisodeStanding {
        let spent = |tally: &Tally, unit| tally.used(unit).0.size().saturating_add(tally.slice(unit).others);
        EpisodeStanding {
            spent: self.used(spent),
            reserved: self.used(|tally, unit| tally.used(unit).1.size()),
        }
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
            let tally = known.tally(&facet).copied().unwrap_or_else(all_time);
            let wanted = tally.size(unit).saturating_add(needed.size());
            let is_too_much = wanted > max.size() || tally.is_spent(unit, wanted, max.size(), now);
            let is_covered = needs.is_none() || tally.covers(unit, wanted, max.size());
            if needed.size() == 0 || (!is_too_much && is_covered) {
                continue;
            }
            let counted_since = known.since.filter(|_| !tally.slice(unit).has_before);
            let line = line(&facet, max, &tally);
            let shortfall = Shortfall { limit: line.limit, needed, left: line.left, resets_at: None };
            if is_too_much && counted_since.is_none() {
                return Err(shortfall);
            }
            let purse = purse(id, facet, unit, &tally);
            missing.push(Need { purse, max: max.size(), counted_since, shortfall });
        }
        needs.into_iter().for_each(|needs| needs.append(&mut missing));
        Ok(())
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve_step(&mut self, wish: &Wish<'_>, now: Timestamp) {
        let Some(id) = &wish.about.episode else { return };
        let episode = self.episodes.entry(id.clone()).or_insert_with(|| Episode::new(now, None));
        episode.used_at = episode.used_at.max(now);
        if wish.before.is_some() {
            return episode.whole.extend(wish.more);
        }
        episode.whole.open(wish.more);
        for (tool, count) in wish.step.iter().flat_map(|step| &step.tools.each) {
            episode.tool(tool).open(calls(*count));
        }
    }

    /// A step of a run is over: what was set aside for it, and what it took.
    pub(super) fn resolve_step(
        &mut self,
        id: &EpisodeId,
        (held, held_tools): (Amounts, &ToolCounts),
        (spent, spent_tools): (Amounts, &ToolCounts),
        now: Timestamp,
    ) {
        let Some(episode) = self.episodes.get_mut(id) else { return };
        episode.used_at = episode.used_at.max(now);
        episode.whole.close(held, spent);
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
            let tally = known.and_then(|known| known.tally(&facet));
            line(&facet, max, &tally.copied().unwrap_or_else(all_time))
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
            _ => self.more.of(unit),
        }
    }
}

/// Each limit of a run by itself, in the order in which they are checked.
fn mosts(id: &EpisodeId, limits: &EpisodeLimits) -> Vec<Most> {
    let EpisodeLimits { cost, thinking, turns, tools } = limits;
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

fn line(facet: &Facet, max: Amount, tally: &Tally) -> Line {
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
