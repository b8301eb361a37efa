//! The tracker: the status block in a prompt that tells an agent what it has left.

use std::fmt::Write;
use std::sync::Arc;

use stint_ledger::EpisodeUsage;
use stint_types::chat::{EpisodeLimits, Message, Role};
use stint_types::units::{Count, Money};

use super::{BudgetLevel, DeadEnd, Settings, TrackerMessages, history};

/// The state of an episode that the tracker reports.
#[derive(Debug)]
pub(super) struct TrackerSnapshot<'a> {
    /// What its episode may take.
    pub(super) limits: &'a EpisodeLimits,
    /// What it has taken.
    pub(super) spent: &'a EpisodeUsage,
    /// The tools that it knows.
    pub(super) tools: Vec<&'a Arc<str>>,
    /// The turns that it has taken before this one, of how many, where these are limited.
    pub(super) turns: Option<(Count, Count)>,
    /// True if some more turns are granted at this one.
    pub(super) is_extended: bool,
    /// True if this is its final answer.
    pub(super) is_final: bool,
    /// The tools that are used up.
    pub(super) withheld: &'a [Arc<str>],
    /// True if this answer was to call one of those.
    pub(super) forces_withheld: bool,
    /// What shows that it goes in circles.
    pub(super) dead_end: Option<&'a DeadEnd>,
}

/// The block to put after the last message: after results of tools always, after the user's words at the first turn, with
/// the policy, and at the last.
pub(super) fn text(
    snapshot: &TrackerSnapshot<'_>,
    messages: &[Message],
    settings: &Settings,
) -> Option<String> {
    let last = messages.iter().rfind(|message| message.role != Role::System)?;
    let (has_tools, is_user) = (!snapshot.tools.is_empty(), last.role == Role::User);
    let is_first = has_tools && is_user && !messages.iter().any(|message| message.role == Role::Assistant);
    let is_told = is_first || has_tools && is_user && snapshot.is_final;
    if !(is_told || history::ends_with_results(messages)) {
        return None;
    }
    let words = &settings.tracker_messages;
    let mut lines: Vec<String> = Vec::new();
    if is_first && !snapshot.is_final {
        lines.push(words.policy.clone());
    }
    lines.extend(snapshot.amounts());
    lines.extend(snapshot.dead_end.map(|dead_end| dead_end_line(dead_end, words)));
    if snapshot.is_extended {
        lines.push(words.extended.clone());
    }
    lines.extend((!snapshot.is_final).then(|| snapshot.used_up(words)).flatten());
    lines.push(if snapshot.is_final {
        words.last.clone()
    } else if snapshot.forces_withheld {
        // The message says what to do, and does not mention what is left for other calls.
        String::new()
    } else {
        BudgetLevel::of(snapshot.least_share_left(), &settings.thresholds).message(words).to_owned()
    });
    lines.retain(|line| !line.trim().is_empty());
    (!lines.is_empty()).then(|| block(&lines.join("\n")))
}

/// Lines, marked as what they are.
pub(super) fn block(lines: &str) -> String {
    format!("<budget>\n{lines}\n</budget>")
}

/// The line that names tools that ran out.
pub(super) fn used_up(tools: &[impl AsRef<str>], words: &TrackerMessages) -> String {
    let names: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
    format!("Used up: {}. {}", names.join(", "), words.spent).trim_end().to_owned()
}

/// The lines that name what an answer called and may not: what ran out, and what its caller's list leaves out.
pub(super) fn not_to_be_called(
    spent: &[impl AsRef<str>],
    unlisted: &[impl AsRef<str>],
    words: &TrackerMessages,
) -> String {
    let names: Vec<&str> = unlisted.iter().map(AsRef::as_ref).collect();
    let unlisted =
        (!names.is_empty()).then(|| format!("Not to be called in this answer: {}.", names.join(", ")));
    let spent = (!spent.is_empty()).then(|| used_up(spent, words));
    spent.into_iter().chain(unlisted).collect::<Vec<_>>().join("\n")
}

/// Whether a block says something else than the one before it, but for its numbers: what to do now, or what has run out.
pub(super) fn is_news(text: &str, before: &str) -> bool {
    let words = |text: &str| -> String { text.chars().filter(|letter| !letter.is_ascii_digit()).collect() };
    words(text) != words(before)
}

impl TrackerSnapshot<'_> {
    /// What is used and left, line by line.
    fn amounts(&self) -> Vec<String> {
        let line = |name: &str, used: Count, most: Count| {
            format!("{name}: {used} used, {} left", most.saturating_sub(used))
        };
        let mut lines: Vec<String> =
            self.limited().map(|(tool, most)| line(tool, self.spent.tools.of(tool), most)).collect();
        lines.extend(self.limits.tools.all.map(|all| line("all tools", self.spent.tools.all, all)));
        lines.extend(self.turns.map(|(used, most)| line("turns", used, most)));
        lines.extend(self.limits.cost.map(|most| {
            let left = most.saturating_sub(self.spent.cost);
            format!("money: {} USD used, {left} USD left", self.spent.cost)
        }));
        lines
    }

    /// The tools that it knows and that are limited, with their limits.
    fn limited(&self) -> impl Iterator<Item = (&str, Count)> {
        self.tools.iter().filter_map(|tool| Some((&***tool, *self.limits.tools.each.get(&**tool)?)))
    }

    /// The tools that ran out, on a line of their own. A tool with a limit of zero is not listed, unless the caller
    /// insists on it.
    fn used_up(&self, words: &TrackerMessages) -> Option<String> {
        let is_ruled_out = |tool: &str| self.limits.tools.each.get(tool) == Some(&Count::ZERO);
        let named = self.withheld.iter().map(|tool| &**tool);
        let named: Vec<&str> = named.filter(|tool| self.forces_withheld || !is_ruled_out(tool)).collect();
        (!named.is_empty()).then(|| used_up(&named, words))
    }

    /// The smallest share left of any budget of the episode. A tool that is used up does not count: it is listed on its
    /// own, and says nothing about the rest.
    fn least_share_left(&self) -> f64 {
        let tools = self.limited().map(|(tool, most)| (self.spent.tools.of(tool), most));
        let tools = tools.filter(|(used, most)| used < most);
        let all = self.limits.tools.all.map(|all| (self.spent.tools.all, all));
        let counts = tools.chain(all).chain(self.turns).map(|(used, most)| share_left(used.0, most.0));
        let money = self.limits.cost.map(|cost: Money| share_left(self.spent.cost.0, cost.0));
        counts.chain(money).fold(1.0, f64::min)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share is told in four words, not spent")]
fn share_left(used: u64, most: u64) -> f64 {
    if most == 0 { 0.0 } else { most.saturating_sub(used) as f64 / most as f64 }
}

/// What it repeats, and what to do about it.
fn dead_end_line(dead_end: &DeadEnd, words: &TrackerMessages) -> String {
    let mut line = match dead_end {
        DeadEnd::Repeated { tool, times } => format!("The same call of {tool} was made {times} times."),
        DeadEnd::Failing(times) => format!("The last {times} tool calls failed."),
        DeadEnd::Unchanging(times) => format!("The last {times} tool calls brought the same."),
    };
    if !words.dead_end.is_empty() {
        let _ = write!(line, " {}", words.dead_end);
    }
    line
}
