//! The plan of one step of an episode: what it may do.

use std::collections::HashSet;
use std::sync::Arc;

use stint_ledger::EpisodeBalance;
use stint_types::chat::{EpisodeLimits, Request, ToolCounts};
use stint_types::units::{Count, Money};

use super::allowed_tools::{self, AllowedTools};
use super::{AddedWords, AnswerCallLimits, Headroom, History, Settings, TurnCap, additions, tracker};

/// What is known when a step is asked for.
#[derive(Debug, Clone, Copy)]
pub struct StepInput<'a> {
    /// The request, as its caller wrote it.
    pub request: &'a Request,
    /// What the episode may take altogether.
    pub limits: &'a EpisodeLimits,
    /// What it has taken, by the ledger.
    pub balance: &'a EpisodeBalance,
    /// What the account's own limits leave of tool calls, where it has some.
    pub account_headroom: Option<Headroom>,
    /// What the request's own messages show.
    pub history: &'a History,
    /// True if the caller has named the episode.
    pub is_named: bool,
    /// How many turns it may take by the route's rules.
    pub turn_cap: Option<TurnCap>,
    /// True if the route's rules are held: elsewhere what the caller asks for in a `tool_choice` is for the model alone.
    pub is_enforced: bool,
    /// Whether the route allows the tracker.
    pub tracker: bool,
    /// How much was added to the episode's prompts before, in bytes.
    pub added_bytes: usize,
    /// What was added last to this conversation.
    pub last_added: Option<&'a AddedWords>,
    /// How many calls may be set aside for the answer at most: all that the settings allow, or fewer where the money does
    /// not pay for so many. None: it is to be the final answer.
    pub calls_max: Count,
}

/// How a step is asked for once more whose answer had only calls that did not pass.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRetry {
    /// The request.
    pub request: Request,
    /// What of its calls may pass.
    pub call_limits: AnswerCallLimits,
}

/// What is to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum StepDecision {
    /// The step may go.
    Proceed(Box<StepPlan>),
    /// What it needs is set aside by a parallel step of the episode, and may come back.
    Wait(StepWait),
    /// Not even an answer may be had any more.
    Exhausted(ExhaustedBudget),
}

/// What a step has to wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepWait {
    /// Calls of these tools.
    pub tools: Vec<Arc<str>>,
    /// A turn.
    pub turn: bool,
    /// Money.
    pub money: bool,
}

/// What of an episode is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExhaustedBudget {
    /// Its turns, so many.
    Turns(Count),
    /// Its money, so much.
    Money(Money),
}

/// What makes an answer the final one of its episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// It is the episode's last turn.
    Turns,
    /// It is the last turn that its route allows.
    RouteTurns,
    /// The money pays for no tool call beside an answer.
    Money,
    /// Every tool is used up.
    Tools,
}

/// What a route allows of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteTurns {
    /// Those that were taken, as it counts them.
    pub used: Count,
    /// How many it allows.
    pub most: Count,
}

/// What one step may do.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPlan {
    /// What of the answer's calls may pass, in each choice.
    pub call_limits: AnswerCallLimits,
    /// The calls to set aside for it, all choices together. Tools that nothing limits are not in it.
    pub tools: ToolCounts,
    /// The most that these may cost.
    pub tools_cost: Money,
    /// What makes it the episode's final answer, where it is one.
    pub finality: Option<Finality>,
    /// The turns that the route allows, with this one, where it limits them.
    pub route_turns: Option<RouteTurns>,
    /// What was held back, and why; nothing if nothing was.
    pub why: Option<String>,
    /// The tools that the request knows.
    pub known: Vec<Arc<str>>,
    /// Those that are withheld, being used up.
    pub withheld: Vec<Arc<str>>,
    /// Those that the caller's list of tools that may be called leaves out.
    pub(super) unlisted: Vec<Arc<str>>,
    pub(super) allowed_tools: AllowedTools,
    pub(super) addition: Option<AddedWords>,
}

impl Finality {
    /// All of them.
    pub const ALL: [Finality; 4] = [Finality::Turns, Finality::RouteTurns, Finality::Money, Finality::Tools];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Finality::Turns => "turns",
            Finality::RouteTurns => "route_turns",
            Finality::Money => "money",
            Finality::Tools => "tools",
        }
    }

    /// Why it is so.
    pub(super) fn why(self) -> &'static str {
        match self {
            Finality::Turns => "the run's last turn",
            Finality::RouteTurns => "the last turn that the route allows",
            Finality::Money => "the money pays for no more tool calls",
            Finality::Tools => "every tool is used up",
        }
    }
}

impl StepPlan {
    /// True if it is the episode's final answer.
    pub fn is_final(&self) -> bool {
        self.finality.is_some()
    }

    /// How many calls to have set aside instead, where money does not pay for the step with so many: half of them, if they
    /// cost anything, and in the end none.
    pub fn fewer_calls(&self, calls: Count) -> Count {
        if self.tools_cost == Money::ZERO { Count::ZERO } else { Count(calls.0 / 2) }
    }

    /// How the model is asked again whose answer had only calls that did not pass, in this order: for one with other calls, where
    /// there are some; and for one without calls. The tools stay declared. `sent` is what it was asked.
    pub fn retries(&self, sent: &Request, settings: &Settings) -> Vec<StepRetry> {
        let words = &settings.tracker_messages;
        let added = |line: &str| {
            let text = (!line.trim().is_empty()).then(|| tracker::block(line).into());
            let withheld = self.addition.as_ref().map(|words| words.withheld.clone());
            let withheld = withheld.unwrap_or_else(|| self.barred().into());
            text.map(|text| AddedWords { text, withheld })
        };
        let request = allowed_tools::without_calls(sent, added(&words.last).as_ref());
        let without = StepRetry { request, call_limits: AnswerCallLimits::none() };
        let barred = self.barred();
        let has_others = !self.is_final() && !barred.is_empty() && barred.len() < self.known.len();
        if !has_others || allowed_tools::is_none(sent) {
            return vec![without];
        }
        let mut request = sent.clone();
        if let Some(words) = added(&tracker::not_to_be_called(&self.withheld, &self.unlisted, words)) {
            additions::append_last(&words, &mut request.messages);
        }
        let others = StepRetry { request, call_limits: self.call_limits.clone() };
        vec![others, without]
    }

    /// The tools that this answer may not call though others may be called: those that are used up, and those that the caller
    /// left out of its list.
    fn barred(&self) -> Vec<Arc<str>> {
        let barred: HashSet<&Arc<str>> = self.withheld.iter().chain(&self.unlisted).collect();
        self.known.iter().filter(|name| barred.contains(name)).cloned().collect()
    }

    /// What is added behind the last message of its prompt.
    pub fn addition(&self) -> Option<&AddedWords> {
        self.addition.as_ref()
    }

    /// The request as the model is to have it: what the caller wrote, and an addition at its end. The tools stay declared as
    /// they are: what may not be called is said beside them.
    #[must_use]
    pub fn applied(&self, request: &Request) -> Request {
        let mut request = request.clone();
        allowed_tools::apply(&self.allowed_tools, &mut request);
        if let Some(words) = &self.addition {
            additions::append_last(words, &mut request.messages);
        }
        request
    }
}
