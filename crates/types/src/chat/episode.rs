//! The limits of an agent's episode.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::units::{Count, Money, Tokens};

use super::tools::lower;
use super::{ToolCounts, ToolLimits};

/// What a run may take altogether; nothing is no limit. Said again it may only be lowered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeLimits {
    /// Money: tokens at their prices and tool calls at theirs.
    pub cost: Option<Money>,
    /// Thinking tokens.
    pub thinking: Option<Tokens>,
    /// Requests.
    pub turns: Option<Count>,
    /// Tool calls.
    pub tools: ToolLimits,
    /// How often they were raised: of two that differ in that, the later holds.
    pub raises: u32,
}

/// By how much a run was raised beyond what its steps have stated, in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeRaise {
    /// Money.
    pub cost: Money,
    /// Thinking tokens.
    pub thinking: Tokens,
    /// Requests.
    pub turns: Count,
    /// Tool calls.
    pub tools: ToolCounts,
    /// True if it was ended instead: it takes no step any more.
    pub is_end: bool,
    /// How often that was.
    pub raises: u32,
}

impl EpisodeLimits {
    /// True if nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == EpisodeLimits { raises: self.raises, ..EpisodeLimits::default() }
    }

    /// Lowers each limit to the other's where that is lower; takes over those that only the other has.
    /// Limits that were raised since replace those that were not.
    pub fn lower(&mut self, other: &EpisodeLimits) {
        match other.raises.cmp(&self.raises) {
            Ordering::Equal => {}
            Ordering::Less => return,
            Ordering::Greater => {
                *self = other.clone();
                return;
            }
        }
        lower(&mut self.cost, other.cost);
        lower(&mut self.thinking, other.thinking);
        lower(&mut self.turns, other.turns);
        self.tools.lower(&other.tools);
    }
}

impl EpisodeRaise {
    /// So much more.
    pub fn add(&mut self, more: &EpisodeRaise) {
        self.cost += more.cost;
        self.thinking += more.thinking;
        self.turns += more.turns;
        self.tools.all += more.tools.all;
        for (tool, count) in &more.tools.each {
            *self.tools.each.entry(tool.clone()).or_default() += *count;
        }
        self.is_end |= more.is_end;
        self.raises += more.raises;
    }

    /// What may be taken where that much was stated. What is not limited stays so.
    pub fn applied_to(&self, stated: &EpisodeLimits) -> EpisodeLimits {
        let EpisodeLimits { cost, thinking, turns, tools, .. } = stated;
        let each = |(tool, most): (&Arc<str>, &Count)| (tool.clone(), *most + self.tools.of(tool));
        EpisodeLimits {
            cost: cost.map(|cost| cost + self.cost),
            thinking: thinking.map(|thinking| thinking + self.thinking),
            turns: if self.is_end { Some(Count::ZERO) } else { turns.map(|turns| turns + self.turns) },
            tools: ToolLimits {
                all: tools.all.map(|all| all + self.tools.all),
                each: tools.each.iter().map(each).collect(),
            },
            raises: self.raises,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_lowers_and_never_raises() {
        let turns = |turns| EpisodeLimits { turns: Some(Count(turns)), ..EpisodeLimits::default() };
        let mut limits = EpisodeLimits { cost: Some(Money(5)), ..turns(10) };
        limits.tools.each.insert("search".into(), Count(3));
        let mut again = turns(20);
        again.tools.each.insert("search".into(), Count(2));
        again.tools.each.insert("browse".into(), Count(7));
        limits.lower(&again);
        assert_eq!((limits.cost, limits.turns), (Some(Money(5)), Some(Count(10))));
        let each: Vec<_> = limits.tools.each.values().copied().collect();
        assert_eq!(each, [Count(7), Count(2)]);
        limits.lower(&turns(4));
        assert_eq!(limits.turns, Some(Count(4)));
    }

    #[test]
    fn a_raise_is_on_top_of_what_is_stated_and_goes_before_what_was_known_without_it() {
        let stated =
            EpisodeLimits { cost: Some(Money(5)), turns: Some(Count(3)), ..EpisodeLimits::default() };
        let mut raise = EpisodeRaise { cost: Money(10), raises: 1, ..EpisodeRaise::default() };
        let raised = raise.applied_to(&stated);
        assert_eq!((raised.cost, raised.turns, raised.thinking), (Some(Money(15)), Some(Count(3)), None));
        let mut known = stated.clone();
        known.lower(&raised);
        assert_eq!(known, raised);
        known.lower(&stated);
        assert_eq!(known, raised, "who does not know of the raise does not take it back");
        raise.add(&EpisodeRaise { is_end: true, raises: 1, ..EpisodeRaise::default() });
        assert_eq!(raise.applied_to(&stated).turns, Some(Count::ZERO));
    }
}
