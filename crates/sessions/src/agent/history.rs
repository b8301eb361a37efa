//! Reads from a request's own messages what happened in its episode.

use std::collections::HashMap;
use std::sync::Arc;

use stint_ledger::{EpisodeBalance, EpisodeUsage};
use stint_types::chat::{Message, Request, Role, ToolCounts};
use stint_types::units::Count;

use super::{DeadEnd, Settings, dead_end};

/// What a request's own messages show of its episode. It may only tighten what the ledger has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The tool calls in it.
    pub tools: ToolCounts,
    /// The model's turns in it.
    pub turns: Count,
    /// The model's turns since the user spoke last.
    pub turns_since: Count,
    /// What shows that the episode goes in circles.
    pub dead_end: Option<DeadEnd>,
}

/// A request whose history is too long to be read at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the conversation has {messages} messages, and with tools at most {most}; leave out the oldest")]
pub struct HistoryTooLong {
    /// How many it has.
    pub messages: usize,
    /// How many it may have.
    pub most: usize,
    /// What its caller calls them.
    pub member: &'static str,
}

impl History {
    /// The balance of an episode, raised to this history where the history shows more than the ledger.
    pub fn tighten(&self, balance: &EpisodeBalance) -> EpisodeBalance {
        let claimed =
            EpisodeUsage { turns: self.turns, tools: self.tools.clone(), ..EpisodeUsage::default() };
        EpisodeBalance { spent: balance.spent.clone().at_least(&claimed), ..balance.clone() }
    }

    /// Reads the messages of a request. Of an episode that its caller has named (`is_named`) only what came since the user spoke
    /// last is counted: what stands before may be another episode's, and the ledger knows this one's.
    ///
    /// # Errors
    /// Where there are more messages than are read.
    pub fn read(request: &Request, is_named: bool, settings: &Settings) -> Result<History, HistoryTooLong> {
        let (messages, most) = (request.messages.len(), settings.messages_max);
        if messages > most {
            return Err(HistoryTooLong { messages, most, member: request.budget.members.prompt });
        }
        let latest = latest(&request.messages);
        let counted = if is_named { latest } else { &request.messages };
        Ok(History {
            tools: calls(counted, settings),
            turns: turns(counted),
            turns_since: turns(latest),
            dead_end: dead_end::find(latest),
        })
    }
}

/// True if the messages end with tool results that the model has not seen yet, possibly beside other text.
pub(super) fn ends_with_results(messages: &[Message]) -> bool {
    let unseen = messages.iter().rev().take_while(|message| message.role != Role::Assistant);
    unseen.into_iter().any(|message| message.role == Role::Tool)
}

/// The messages since the user spoke last. A user message beside tool results, which some clients add at every turn, does
/// not count as the user's.
fn latest(messages: &[Message]) -> &[Message] {
    let (mut spoke, mut before) = (0, Role::User);
    for (at, message) in messages.iter().enumerate() {
        match message.role {
            Role::User if before != Role::Tool => spoke = at + 1,
            Role::User | Role::System => {}
            role => before = role,
        }
    }
    &messages[spoke..]
}

/// The model's turns; several of its messages in a row are one.
fn turns(messages: &[Message]) -> Count {
    let is_model = |message: &Message| message.role == Role::Assistant;
    let begins = |at: &usize| is_model(&messages[*at]) && (*at == 0 || !is_model(&messages[at - 1]));
    Count(u64::try_from((0..messages.len()).filter(begins).count()).unwrap_or(u64::MAX))
}

fn calls(messages: &[Message], settings: &Settings) -> ToolCounts {
    let mut counts = ToolCounts::default();
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    for call in messages.iter().flat_map(|message| &message.tool_calls) {
        let name = names.entry(&call.name).or_insert_with(|| call.name.as_str().into());
        counts.add(name, settings.tools.count(&call.name, &call.arguments));
    }
    counts
}
