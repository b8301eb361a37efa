//! The keys by which it is said what a model's provider asks of a conversation that goes on.

use crate::config::reader::Section;
use stint_types::catalog::ConversationRules;
use stint_types::units::Tokens;

/// The most tokens that a least budget or a least prompt may have.
const LEAST_MAX: Tokens = Tokens(10_000_000);

/// Puts what a section says in place of what was known before.
pub(super) fn apply(section: &Section<'_>, rules: &mut ConversationRules) {
    section.set("thoughts_bound", &mut rules.thoughts_bound);
    section.set("late_instructions", &mut rules.late_instructions);
    section.set("late_tools", &mut rules.late_tools);
    section.set("late_efforts", &mut rules.late_efforts);
    section.set("allowed_tools", &mut rules.allowed_tools);
    section.set("cache_breakpoints", &mut rules.cache_breakpoints);
    section.set("refuses_forced_tools", &mut rules.refuses_forced_tools);
    let least = [("task_budget_min", &mut rules.task_budget_min), ("cache_min", &mut rules.cache_min)];
    for (key, known) in least {
        *known = section.within(key, Tokens(1)..=LEAST_MAX).or(*known);
    }
}
