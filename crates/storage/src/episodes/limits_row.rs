//! The limits of an episode, as a column has them in JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use stint_types::chat::{EpisodeLimits, EpisodeRaise, ToolCounts, ToolLimits};
use stint_types::units::{Count, Money, Tokens};

/// What an episode may take: plain numbers, money in nano-dollars. What is absent is not limited.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct EpisodeLimitsRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<Arc<str>, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raised: Option<EpisodeRaiseRow>,
}

/// By how much it was raised beyond that, in all: the sum of its entries.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct EpisodeRaiseRow {
    cost: u64,
    thinking: u64,
    turns: u64,
    calls: u64,
    tools: BTreeMap<Arc<str>, u64>,
    is_end: bool,
    raises: u32,
}

/// Limits as a row has them.
pub(super) fn limits_to_json(
    limits: &EpisodeLimits,
    raised: &EpisodeRaise,
) -> Result<String, serde_json::Error> {
    let each = limits.tools.each.iter().map(|(tool, most)| (tool.clone(), most.0));
    serde_json::to_string(&EpisodeLimitsRow {
        cost: limits.cost.map(|most| most.0),
        thinking: limits.thinking.map(|most| most.0),
        turns: limits.turns.map(|most| most.0),
        calls: limits.tools.all.map(|most| most.0),
        tools: each.collect(),
        raised: (raised.raises > 0).then(|| EpisodeRaiseRow {
            cost: raised.cost.0,
            thinking: raised.thinking.0,
            turns: raised.turns.0,
            calls: raised.tools.all.0,
            tools: calls(raised),
            is_end: raised.is_end,
            raises: raised.raises,
        }),
    })
}

/// The calls of each tool that a raise adds.
fn calls(raised: &EpisodeRaise) -> BTreeMap<Arc<str>, u64> {
    raised.tools.each.iter().map(|(tool, count)| (tool.clone(), count.0)).collect()
}

/// A raise of the calls of tools, as a row of `episode_raises` has it.
pub(super) fn raise_to_json(raised: &EpisodeRaise) -> Result<String, serde_json::Error> {
    serde_json::to_string(&calls(raised))
}

/// Reads the limits of a row.
pub(super) fn limits_from_json(row: &str) -> Result<(EpisodeLimits, EpisodeRaise), serde_json::Error> {
    let EpisodeLimitsRow { cost, thinking, turns, calls, tools, raised } = serde_json::from_str(row)?;
    let counts = |tools: BTreeMap<Arc<str>, u64>| -> BTreeMap<Arc<str>, Count> {
        tools.into_iter().map(|(tool, count)| (tool, Count(count))).collect()
    };
    let limits = EpisodeLimits {
        cost: cost.map(Money),
        thinking: thinking.map(Tokens),
        turns: turns.map(Count),
        tools: ToolLimits { all: calls.map(Count), each: counts(tools) },
        raises: 0,
    };
    let EpisodeRaiseRow { cost, thinking, turns, calls, tools, is_end, raises } = raised.unwrap_or_default();
    let tools = ToolCounts { all: Count(calls), each: counts(tools) };
    let (cost, thinking, turns) = (Money(cost), Tokens(thinking), Count(turns));
    Ok((limits, EpisodeRaise { cost, thinking, turns, tools, is_end, raises }))
}
