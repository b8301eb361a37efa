//! What a caller gets to know about an episode at the end of one of its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_ledger::{EpisodeBalance, EpisodeUsage};
use stint_sessions::agent::{Finality, RouteTurns};
use stint_types::chat::EpisodeLimits;
use stint_types::units::{Count, EpisodeId, Money, Tokens};

/// How much of something an episode has used, and what is left of it where it is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUsage<T> {
    /// What is used.
    pub used: T,
    /// What is left for others; nothing if it is not limited.
    pub left: Option<T>,
}

/// The state of an episode, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeSnapshot {
    /// Its name.
    pub id: EpisodeId,
    /// False if the books do not have this step: then what is used and left is not reported.
    pub is_booked: bool,
    /// Requests.
    pub turns: LimitUsage<Count>,
    /// Tool calls altogether.
    pub calls: LimitUsage<Count>,
    /// Of each tool that was called or is limited.
    pub tools: BTreeMap<Arc<str>, LimitUsage<Count>>,
    /// Money.
    pub cost: LimitUsage<Money>,
    /// Thinking tokens.
    pub thinking: LimitUsage<Tokens>,
    /// The calls of this answer that passed.
    pub passed: Count,
    /// Those that did not.
    pub trimmed: Count,
    /// The tools that this answer was not offered, being used up.
    pub withheld: Vec<Arc<str>>,
    /// What made it the final answer, where it was.
    pub finality: Option<Finality>,
    /// The turns that the route allows, as it counts them.
    pub route_turns: Option<RouteTurns>,
}

impl EpisodeSnapshot {
    /// How it stands, by its limits.
    pub(crate) fn of(id: EpisodeId, limits: &EpisodeLimits, standing: &EpisodeBalance) -> EpisodeSnapshot {
        let EpisodeBalance { spent, reserved } = standing;
        let share = |limit: Option<Count>, count: fn(&EpisodeUsage) -> Count| LimitUsage {
            used: count(spent),
            left: limit.map(|limit| limit.saturating_sub(count(spent) + count(reserved))),
        };
        let names = limits.tools.each.keys().chain(spent.tools.each.keys());
        let tool = |tool: &Arc<str>| {
            let (used, taken) = (spent.tools.of(tool), reserved.tools.of(tool));
            let left = limits.tools.each.get(tool).map(|limit| limit.saturating_sub(used + taken));
            (tool.clone(), LimitUsage { used, left })
        };
        EpisodeSnapshot {
            turns: share(limits.turns, |taken| taken.turns),
            calls: share(limits.tools.all, |taken| taken.tools.all),
            tools: names.map(tool).collect(),
            cost: LimitUsage {
                used: spent.cost,
                left: limits.cost.map(|cost| cost.saturating_sub(spent.cost + reserved.cost)),
            },
            thinking: LimitUsage {
                used: spent.thinking,
                left: limits.thinking.map(|most| most.saturating_sub(spent.thinking + reserved.thinking)),
            },
            id,
            is_booked: true,
            passed: Count::ZERO,
            trimmed: Count::ZERO,
            withheld: Vec::new(),
            finality: None,
            route_turns: None,
        }
    }
}
