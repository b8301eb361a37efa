//! The settings of episodes, as plain data.

use std::time::Duration;

use stint_types::units::{Chance, Count};

use super::Tools;

/// The settings of episodes of agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether a tracker tells the model what is left, if something is limited. A route may turn it off for itself.
    pub tracker: bool,
    /// Whether a run's money is told to models in their providers' own way too, as a number of tokens for the whole task.
    pub task_budget: bool,
    /// The shares left at which the tracker changes its line.
    pub thresholds: BudgetThresholds,
    /// The texts of the tracker.
    pub tracker_messages: TrackerMessages,
    /// The most that is added to the prompts of one episode, in bytes: every later prompt has it again. Towards the end of it the
    /// tracker becomes rarer.
    pub additions_max: usize,
    /// The most calls of one tool that are set aside for one answer, and of all tools where only they are limited together.
    pub calls_per_answer: Count,
    /// How long a step waits for what a parallel step of its episode has set aside.
    pub wait_max: Duration,
    /// How long an episode is kept after its last step.
    pub expires_after: Duration,
    /// The most messages of a request with tools; more are refused, since every step reads all of them.
    pub messages_max: usize,
    /// What is known about tools.
    pub tools: Tools,
}

/// The shares left that separate the tracker's lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetThresholds {
    /// From here on there is plenty.
    pub high: Chance,
    /// From here on there is some.
    pub medium: Chance,
    /// From here on there is little; below, hardly anything.
    pub low: Chance,
}

/// The texts of the tracker, in the operator's words. An empty line is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerMessages {
    /// Once, at the first turn of an episode with limits.
    pub policy: String,
    /// While there is plenty.
    pub high: String,
    /// While there is some.
    pub medium: String,
    /// While there is little.
    pub low: String,
    /// When there is hardly anything.
    pub critical: String,
    /// When some of its tools are used up, after their names.
    pub spent: String,
    /// When no tool may be called any more.
    pub last: String,
    /// When the turns that such a task usually takes are over and some more are granted.
    pub extended: String,
    /// When the episode goes in circles, after what it repeats.
    pub dead_end: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tracker: true,
            task_budget: false,
            thresholds: BudgetThresholds::default(),
            tracker_messages: TrackerMessages::default(),
            additions_max: 16 << 10,
            calls_per_answer: Count(8),
            wait_max: Duration::from_secs(30),
            expires_after: Duration::from_secs(7 * 24 * 3600),
            messages_max: 20_000,
            tools: Tools::default(),
        }
    }
}

/// The shares of Budget Tracker (Liu et al., *Budget-Aware Tool-Use Enables Effective Agent Scaling*, arXiv 2511.17006).
impl Default for BudgetThresholds {
    fn default() -> BudgetThresholds {
        BudgetThresholds { high: Chance::new(0.7), medium: Chance::new(0.3), low: Chance::new(0.1) }
    }
}

impl Default for TrackerMessages {
    fn default() -> TrackerMessages {
        let own = str::to_owned;
        TrackerMessages {
            policy: own(
                "This task has a budget for tool calls, turns or money. What is used and left is told after each tool \
                 result. Spend broadly while there is plenty, precisely when there is little, and answer before it runs out.",
            ),
            high: own(
                "There is plenty left: look in several directions, three to five different calls at a time.",
            ),
            medium: own("Part of it is used: two or three precise calls at a time, on what is still open."),
            low: own("Little is left: one call at a time, only where the answer depends on it."),
            critical: own(
                "Hardly anything is left. Make at most one more call, only if the answer depends on it, or answer now.",
            ),
            spent: own("What is used up cannot be called any more: go on without it."),
            last: own(
                "No more tool calls are possible. Give the final answer now, from what is known; say what remains open.",
            ),
            extended: own(
                "The usual number of turns is over. A few more are granted, once: bring the task to its end.",
            ),
            dead_end: own("This leads nowhere. Try something different, or answer from what is known."),
        }
    }
}
