//! What a request's own messages tell of its run.

use std::collections::HashMap;
use std::sync::Arc;

use crate::chat::{Message, Request, Role, ToolCounts};
use crate::units::Count;

use super::{DeadEnd, Settings, dead_end};

/// What a request's own messages tell of its run. It may only tighten what the ledger says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The tool calls in it.
    pub tools: ToolCounts,
    /// The model's turns in it.
    pub turns: Count,
    /// The model's turns since the user spoke last.
    pub turns_since: Count,
    /// What shows that the run goes in circles.
    pub dead_end: Option<DeadEnd>,
}

/// A request whose history is too long to be read at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the conversation has {messages} messages, and with tools at most {most}; leave out the oldest")]
pub struct TooLong {
    /// How many it has.
    pub messages: usize,
    /// How many it may have.
    pub most: usize,
}

impl History {
    /// Reads the messages of a request. Of a run that its caller has named (`is_named`) only what came since the user spoke
    /// last is counted: what stands before may be another run's, and the ledger knows this one's.
    ///
    /// # Errors
    /// Where there are more messages than are read.
    pub fn read(request: &Request, is_named: bool, settings: &Settings) -> Result<History, TooLong> {
        let (messages, most) = (request.messages.len(), settings.messages_max);
        if messages > most {
            return Err(TooLong { messages, most });
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

/// What came since the user spoke last.
fn latest(messages: &[Message]) -> &[Message] {
    let said = messages.iter().rposition(|message| message.role == Role::User);
    &messages[said.map_or(0, |at| at + 1)..]
}

fn turns(messages: &[Message]) -> Count {
    let turns = messages.iter().filter(|message| message.role == Role::Assistant).count();
    Count(u64::try_from(turns).unwrap_or(u64::MAX))
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
