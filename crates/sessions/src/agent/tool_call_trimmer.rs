//! Removes tool calls beyond the reserved ones from an answer, before its reader sees them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use stint_types::chat::{
    ChoiceEvent, FinishReason, JsonObjectScanner, SignedThought, ToolCallDelta, ToolCounts,
};
use stint_types::units::Count;

use super::{AnswerCallLimits, StepPlan, Tools, arguments};

/// The longest arguments that are held back to count a list in them, in bytes; a call with longer ones does not pass.
const HELD_MAX: usize = 1 << 20;

/// Takes calls beyond what was set aside out of one choice's events. The first that fit pass, with indices of their own; a
/// list of which only the first elements fit is shortened. Calls that are counted by their list are held back until it is
/// there, and those after them wait for their turn; all else passes at once.
#[derive(Debug, Clone)]
pub struct ToolCallTrimmer {
    left: AnswerCallLimits,
    tools: Arc<Tools>,
    known: Vec<Arc<str>>,
    calls: HashMap<u32, TrimCallState>,
    /// Those not decided yet, in their order, and what was signed behind them.
    waiting: VecDeque<Waiting>,
    next: u32,
    passed: ToolCounts,
    dropped: Count,
    /// Whether a try before this one had calls that were dropped.
    follows_dropped: bool,
}

/// What waits until the calls before it are decided.
#[derive(Debug, Clone)]
enum Waiting {
    /// A call, by its index as the model counts.
    Call(u32),
    /// A part of a thought that its provider signed. Behind a call that is dropped it would be out of place: its provider
    /// accepts it only behind all that was there when it was thought.
    Signed(SignedThought),
}

/// What came of one choice's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimResult {
    /// Why the answer ended, as its reader sees it.
    pub finish: FinishReason,
    /// The calls that passed, with the elements of their lists where these are counted.
    pub passed: ToolCounts,
    /// How many did not.
    pub dropped: Count,
}

#[derive(Debug, Clone)]
enum TrimCallState {
    /// Not decided yet.
    Waiting(HeldCall),
    /// Its reader has its beginning, under this index.
    Passing(u32),
    /// Its reader has all of it, or nothing.
    Over,
}

/// What there is of a call that is not decided yet.
#[derive(Debug, Clone, Default)]
struct HeldCall {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    object: JsonObjectScanner,
}

impl ToolCallTrimmer {
    /// Holds an answer to what its step set aside.
    pub fn new(step: &StepPlan, tools: Arc<Tools>) -> ToolCallTrimmer {
        ToolCallTrimmer {
            known: step.known.clone(),
            ..ToolCallTrimmer::within(step.call_limits.clone(), tools)
        }
    }

    /// Holds an answer to these limits. Its request knows no tools.
    pub fn within(limits: AnswerCallLimits, tools: Arc<Tools>) -> ToolCallTrimmer {
        ToolCallTrimmer {
            left: limits,
            tools,
            known: Vec::new(),
            calls: HashMap::new(),
            waiting: VecDeque::new(),
            next: 0,
            passed: ToolCounts::default(),
            dropped: Count::ZERO,
            follows_dropped: false,
        }
    }

    /// For another try at the same answer, of which so many calls may pass. It follows calls that were dropped, and so do its
    /// thoughts.
    #[must_use]
    pub fn for_retry(&self, limits: &AnswerCallLimits) -> ToolCallTrimmer {
        ToolCallTrimmer {
            known: self.known.clone(),
            follows_dropped: true,
            ..ToolCallTrimmer::within(limits.clone(), self.tools.clone())
        }
    }

    /// What of an event passes, and what it lets pass that was held back.
    pub fn push(&mut self, event: ChoiceEvent) -> Vec<ChoiceEvent> {
        let mut events = Vec::new();
        match event {
            ChoiceEvent::ToolCall(delta) => self.push_call(delta, &mut events),
            ChoiceEvent::Signed(signed) => self.waiting.push_back(Waiting::Signed(signed)),
            other => return vec![other],
        }
        self.decide(false, &mut events);
        events
    }

    fn push_call(&mut self, delta: ToolCallDelta, events: &mut Vec<ChoiceEvent>) {
        let from = delta.index;
        match self.calls.get_mut(&from) {
            Some(TrimCallState::Over) => {}
            Some(TrimCallState::Passing(index)) => {
                events.push(ChoiceEvent::ToolCall(ToolCallDelta { index: *index, ..delta }));
            }
            Some(TrimCallState::Waiting(held)) => held.push(delta),
            None => {
                let mut held = HeldCall::default();
                held.push(delta);
                self.calls.insert(from, TrimCallState::Waiting(held));
                self.waiting.push_back(Waiting::Call(from));
            }
        }
    }

    /// What has passed until now.
    pub fn passed(&self) -> &ToolCounts {
        &self.passed
    }

    /// What was still held back, and what came of it all. Nothing is pushed after it.
    pub fn finish(&mut self, finish: FinishReason) -> (Vec<ChoiceEvent>, TrimResult) {
        let mut events = Vec::new();
        self.decide(true, &mut events);
        // There is nothing left to call.
        let is_bare = finish == FinishReason::ToolCalls && self.next == 0 && self.dropped > Count::ZERO;
        let finish = if is_bare { FinishReason::Stop } else { finish };
        (events, TrimResult { finish, passed: std::mem::take(&mut self.passed), dropped: self.dropped })
    }

    /// Decides on those that can be decided, in their order.
    fn decide(&mut self, is_over: bool, events: &mut Vec<ChoiceEvent>) {
        while let Some(first) = self.waiting.front() {
            if let Waiting::Call(first) = first
                && let Some(TrimCallState::Waiting(held)) = self.calls.get(first)
                && !(is_over || held.is_ready(&self.tools))
            {
                return;
            }
            match self.waiting.pop_front() {
                Some(Waiting::Call(first)) => {
                    if let Some(TrimCallState::Waiting(held)) = self.calls.remove(&first) {
                        let call = self.judge(held, events);
                        self.calls.insert(first, call);
                    }
                }
                Some(Waiting::Signed(_)) if self.follows_dropped || self.dropped > Count::ZERO => {}
                Some(Waiting::Signed(signed)) => events.push(ChoiceEvent::Signed(signed)),
                None => return,
            }
        }
    }

    /// Lets a call pass, shortens it, or drops it.
    fn judge(&mut self, held: HeldCall, events: &mut Vec<ChoiceEvent>) -> TrimCallState {
        let name = held.name.as_deref().unwrap_or_default();
        let (body, rest) = held.object.split(&held.arguments);
        let count = self.tools.count(name, body);
        let room = self.calls_left(name);
        let list = self.tools.list(name);
        if room == Some(Count::ZERO) || (room.is_some() && list.is_some() && body.len() > HELD_MAX) {
            self.dropped += count;
            return TrimCallState::Over;
        }
        let fits = room.map_or(count, |room| count.min(room));
        let short = list.filter(|_| fits < count).and_then(|list| arguments::shortened(body, list, fits));
        let is_short = short.is_some();
        let arguments = short.unwrap_or_else(|| [body, rest].concat());
        self.take(name, fits);
        self.dropped += count.saturating_sub(fits);
        let index = self.next;
        self.next += 1;
        events.push(ChoiceEvent::ToolCall(ToolCallDelta { index, id: held.id, name: held.name, arguments }));
        if is_short { TrimCallState::Over } else { TrimCallState::Passing(index) }
    }

    /// For how many calls a call of this tool may count; nothing is no limit.
    fn calls_left(&self, name: &str) -> Option<Count> {
        if self.left.calls == Some(Count::ZERO) {
            return Some(Count::ZERO);
        }
        let own = self.left.tools.each.get(name).copied();
        self.left.tools.all.into_iter().chain(own).min()
    }

    fn take(&mut self, name: &str, count: Count) {
        let take = |left: &mut Count, count| *left = left.saturating_sub(count);
        self.left.calls.iter_mut().for_each(|left| take(left, Count::ONE));
        self.left.tools.all.iter_mut().for_each(|left| take(left, count));
        if let Some(left) = self.left.tools.each.get_mut(name) {
            take(left, count);
        }
        match self.known.iter().find(|known| ***known == *name) {
            Some(known) => self.passed.add(known, count),
            None => self.passed.all += count,
        }
    }
}

impl HeldCall {
    fn push(&mut self, delta: ToolCallDelta) {
        self.id = self.id.take().or(delta.id);
        self.name = self.name.take().or(delta.name);
        self.object.push(&delta.arguments);
        // Beyond the bound it is only known that there was more.
        if self.arguments.len() <= HELD_MAX {
            self.arguments.push_str(&delta.arguments);
        }
    }

    /// Whether it can be decided on: its name is there, and so is its list where that counts.
    fn is_ready(&self, tools: &Tools) -> bool {
        let Some(name) = &self.name else { return false };
        tools.list(name).is_none() || self.object.is_closed() || self.arguments.len() > HELD_MAX
    }
}
