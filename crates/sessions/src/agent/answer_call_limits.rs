//! How many tool calls of one answer may pass.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::chat::{Request, ToolCounts, ToolLimits};
use stint_types::units::{Count, Money};

use super::{Tools, allowed_tools};

/// How many calls of one answer may pass; nothing is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerCallLimits {
    /// How many they may count for: each of these tools, and all together, those without a name here included.
    pub tools: ToolLimits,
    /// How many calls, whatever each counts for.
    pub calls: Option<Count>,
}

impl AnswerCallLimits {
    /// None at all.
    pub fn none() -> AnswerCallLimits {
        let all = Some(Count::ZERO);
        AnswerCallLimits { tools: ToolLimits { all, each: BTreeMap::new() }, calls: all }
    }

    /// For an answer to a request that declares no tools: nothing is set aside for what its model calls all the same. So no call passes
    /// that has a price, and none at all where an account's calls are limited.
    pub fn undeclared(request: &Request, tools: &Tools, are_calls_limited: bool) -> AnswerCallLimits {
        let each = tools.priced().map(|tool| (tool.clone(), Count::ZERO)).collect();
        let one = allowed_tools::forbids_parallel_calls(request).then_some(Count::ONE);
        AnswerCallLimits {
            tools: ToolLimits { all: are_calls_limited.then_some(Count::ZERO), each },
            calls: one.into_iter().chain(request.budget.tool_calls_max).min(),
        }
    }

    /// True if nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        self.tools.is_empty() && self.calls.is_none()
    }

    /// What must be set aside so that it all could pass, for so many choices. Tools without a limit are not in it.
    pub(super) fn max_counts(&self, choices: u32) -> ToolCounts {
        let times = |count: Count| Count(count.0.saturating_mul(u64::from(choices)));
        let sum = self.tools.each.values().fold(Count::ZERO, |sum, count| sum + *count);
        let mut all = self.tools.all.unwrap_or(sum);
        // One call is one tool's.
        if self.calls == Some(Count::ONE) && self.tools.all.is_none() {
            all = self.tools.each.values().copied().max().unwrap_or_default();
        }
        let each = self.tools.each.iter().filter(|(_, count)| **count > Count::ZERO);
        ToolCounts {
            all: times(all),
            each: each.map(|(tool, count)| (tool.clone(), times(*count))).collect(),
        }
    }

    /// The most that they may cost, for so many choices: the dearest first.
    pub(super) fn max_cost(&self, tools: &Tools, choices: u32) -> Money {
        let mut priced: Vec<(Money, Count)> =
            self.tools.each.iter().map(|(tool, count)| (tools.price(tool), *count)).collect();
        priced.sort_by_key(|(price, _)| Reverse(*price));
        let mut left = self.max_counts(1).all;
        let mut cost = Money::ZERO;
        for (price, count) in priced {
            let count = count.min(left);
            cost += price * count.0;
            left = left.saturating_sub(count);
        }
        cost * u64::from(choices)
    }

    /// Lowers what one tool may have.
    pub(super) fn lower(&mut self, tool: &Arc<str>, most: Count) {
        let mine = self.tools.each.entry(tool.clone()).or_insert(most);
        *mine = (*mine).min(most);
    }
}
