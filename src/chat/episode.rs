//! What a whole run of an agent may take.

use crate::units::{Count, Money, Tokens};

use super::ToolLimits;
use super::tools::lower;

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
}

impl EpisodeLimits {
    /// True where nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == EpisodeLimits::default()
    }

    /// Lowers each limit to the other's where that is lower; takes over those that only the other has.
    pub fn lower(&mut self, other: &EpisodeLimits) {
        lower(&mut self.cost, other.cost);
        lower(&mut self.thinking, other.thinking);
        lower(&mut self.turns, other.turns);
        self.tools.lower(&other.tools);
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
}
