//! Tool calls, counted by tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::units::Count;

use super::short_tool_name;

/// How many calls there may be; nothing is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLimits {
    /// Of all tools together.
    pub all: Option<Count>,
    /// Of each of these.
    pub each: BTreeMap<Arc<str>, Count>,
}

/// How many calls there were, are set aside, or are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCounts {
    /// Of all tools together. Where they are set aside it may be less than the sum of `each`.
    pub all: Count,
    /// Of each of these.
    pub each: BTreeMap<Arc<str>, Count>,
}

impl ToolLimits {
    /// The most tools that can be limited by name: each limit is kept with its run.
    pub const NAMED_MAX: usize = 64;
    /// The longest name of a tool that can be limited, in bytes.
    pub const NAME_MAX: usize = 128;

    /// How many tools have limits here or in the other.
    pub fn named_with(&self, other: &ToolLimits) -> usize {
        let more = other.each.keys().filter(|tool| !self.each.contains_key(*tool));
        self.each.len() + more.count()
    }

    /// True if nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.each.is_empty()
    }

    /// Lowers each limit to the other's where that is lower; takes over those that only the other has.
    pub fn lower(&mut self, other: &ToolLimits) {
        lower(&mut self.all, other.all);
        for (tool, most) in &other.each {
            let mine = self.each.entry(tool.clone()).or_insert(*most);
            *mine = (*mine).min(*most);
        }
    }

    /// Limits each tool by its shortened name where its own is too long: so it is known where names are shortened.
    pub fn shorten(&mut self) {
        let each = std::mem::take(&mut self.each);
        let each = each.into_iter().map(|(tool, most)| (short_tool_name(&tool).into(), most));
        for (tool, most) in each {
            let mine = self.each.entry(tool).or_insert(most);
            *mine = (*mine).min(most);
        }
    }
}

impl ToolCounts {
    /// None.
    pub fn is_zero(&self) -> bool {
        self.all == Count::ZERO && self.each.values().all(|count| *count == Count::ZERO)
    }

    /// How many calls of one tool.
    pub fn of(&self, tool: &str) -> Count {
        self.each.get(tool).copied().unwrap_or_default()
    }

    /// Counts so many more calls of a tool.
    pub fn add(&mut self, tool: &Arc<str>, count: Count) {
        self.all += count;
        *self.each.entry(tool.clone()).or_default() += count;
    }
}

pub(super) fn lower<T: Ord + Copy>(limit: &mut Option<T>, other: Option<T>) {
    if let Some(other) = other {
        *limit = Some(limit.map_or(other, |limit| limit.min(other)));
    }
}
