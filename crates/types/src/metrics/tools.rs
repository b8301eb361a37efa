//! What becomes of tool calls.

use prometheus::{Error, IntCounterVec};

use super::factory::MetricFactory;

/// What becomes of tool calls.
#[derive(Debug)]
pub struct ToolCallMetrics {
    total: IntCounterVec,
}

/// What became of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolDecision {
    /// It reached the caller.
    Passed,
    /// It was beyond what was set aside, and did not.
    Trimmed,
    /// Its tool was not offered, being used up; counted once for each answer.
    Withheld,
    /// It reached the caller, and would have been trimmed by rules that are only watched.
    Watched,
}

impl ToolDecision {
    const ALL: [ToolDecision; 4] =
        [ToolDecision::Passed, ToolDecision::Trimmed, ToolDecision::Withheld, ToolDecision::Watched];

    fn as_str(self) -> &'static str {
        match self {
            ToolDecision::Passed => "passed",
            ToolDecision::Trimmed => "trimmed",
            ToolDecision::Withheld => "withheld",
            ToolDecision::Watched => "watched",
        }
    }
}

impl ToolCallMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<ToolCallMetrics, Error> {
        let help = "Tool calls that passed or were trimmed, and tools withheld from an answer";
        let total = make.counter_vec("tool_calls_total", help, &["decision"])?;
        for decision in ToolDecision::ALL {
            total.with_label_values(&[decision.as_str()]);
        }
        Ok(ToolCallMetrics { total })
    }

    /// Counts so many.
    pub fn count(&self, decision: ToolDecision, calls: u64) {
        self.total.with_label_values(&[decision.as_str()]).inc_by(calls);
    }
}
