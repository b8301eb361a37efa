//! One generation beside its text: its budgets, and the caller who reads it.

use tokio::sync::mpsc;

use super::constraint::{AnswerConstraint, ConstraintError, RunningConstraint, TokenSet};
use super::error::EngineError;
use super::messages::GenerationEvent;
use super::ops::{LogitChange, SampledToken, SamplingParams, slot_words};
use super::penalties::LogitChanges;
use super::phases::{GeneratedToken, GenerationPhase, PhaseMachine, TokenRole};
use super::token_logprobs::TokenLogprobs;

/// A prompt counts as read alone where others had this part of its own rows meanwhile at most.
const OTHERS_PART: u64 = 4;

/// How the tokens of a generation are drawn, and what is told of them.
#[derive(Debug)]
pub(crate) struct DrawRules {
    pub(crate) sampling: SamplingParams,
    pub(crate) changes: LogitChanges,
    pub(crate) constraint: Option<AnswerConstraint>,
    pub(crate) logprobs: Option<u32>,
}

/// A generation that was accepted and whose caller has not heard its end.
#[derive(Debug)]
pub(crate) struct RunningGeneration {
    sampling: SamplingParams,
    changes: LogitChanges,
    constraint: Option<RunningConstraint>,
    logprobs: Option<u32>,
    machine: PhaseMachine,
    out: mpsc::Sender<GenerationEvent>,
    /// Forced tokens that the caller hears of once they are computed.
    forced: Vec<GeneratedToken>,
    /// Tokens that the caller heard of since that was last asked.
    sent: u64,
    was_read: bool,
    /// Rows of prompts in the steps until its own was read: its own, and all. The most that there is once it waited for a place.
    rows_read: [u64; 2],
    /// Its last word, once it is over.
    final_event: Option<GenerationEvent>,
}

impl RunningGeneration {
    pub(crate) fn new(machine: PhaseMachine, rules: DrawRules, out: mpsc::Sender<GenerationEvent>) -> Self {
        let DrawRules { sampling, changes, constraint, logprobs } = rules;
        Self {
            sampling,
            changes,
            constraint: constraint.map(RunningConstraint::new),
            logprobs,
            machine,
            out,
            forced: Vec::new(),
            sent: 0,
            was_read: false,
            rows_read: [0, 0],
            final_event: None,
        }
    }

    /// Over, or read by nobody any more.
    pub(crate) fn is_over(&self) -> bool {
        self.final_event.is_some() || self.out.is_closed()
    }

    /// The sampler's state of it.
    pub(crate) fn slot_words(&self) -> Vec<u32> {
        slot_words(&self.machine, self.sampling)
    }

    /// What changes of the logits from which its next token is drawn, as the pick of this number.
    pub(crate) fn logit_changes(&self, pick: u32) -> impl Iterator<Item = LogitChange> {
        self.changes.of_pick(pick)
    }

    /// Whether only some tokens may be drawn next.
    pub(crate) fn is_constrained(&self) -> bool {
        self.constraint.is_some() && RunningConstraint::holds_now(&self.machine)
    }

    /// The tokens that may be drawn next, where not all may.
    pub(crate) fn allowed(&mut self, vocab: u32) -> Option<Result<TokenSet, ConstraintError>> {
        let machine = &self.machine;
        let constraint = self.constraint.as_mut().filter(|_| RunningConstraint::holds_now(machine))?;
        Some(constraint.allowed(machine, vocab))
    }

    /// Whether its caller wants to know how likely the next token was. Thoughts are not told of.
    pub(crate) fn wants_logits(&self) -> bool {
        self.logprobs.is_some() && RunningConstraint::holds_now(&self.machine)
    }

    /// The sampler's state, where that cannot know it: what is forced is no business of its, nor are white space and tags
    /// that are no tokens.
    pub(crate) fn changed_slot_words(&self) -> Option<Vec<u32>> {
        let is_unknown = self.machine.has_spelled_tag() || self.machine.phase() == GenerationPhase::Idle;
        let has_changed = is_unknown || !self.forced.is_empty();
        has_changed.then(|| self.slot_words())
    }

    /// The tokens that are forced now. They are known beforehand, so they are computed all at once.
    pub(crate) fn force(&mut self) -> Vec<u32> {
        let before = self.forced.len();
        self.forced.extend(std::iter::from_fn(|| self.machine.force()));
        let ids: Vec<_> = self.forced.iter().skip(before).map(|token| token.id).collect();
        ids.iter().for_each(|id| self.changes.record(*id));
        self.end_if_done();
        ids
    }

    /// Its prompt is in the cache, so much of it from before. Told once, however often it is computed.
    pub(crate) fn tell_read(&mut self, reused: u32) -> bool {
        let is_first = !std::mem::replace(&mut self.was_read, true);
        if is_first {
            let [own, all] = self.rows_read;
            self.send(GenerationEvent::PromptRead { reused, alone: all <= own + own / OTHERS_PART });
        }
        is_first
    }

    /// It has so many of all rows of prompts in a step; nothing while it waits for a place.
    pub(crate) fn record_reading(&mut self, own: Option<usize>, all: u32) {
        let [own_rows, all_rows] = &mut self.rows_read;
        *own_rows += own.unwrap_or(0) as u64;
        *all_rows = all_rows.saturating_add(own.map_or(u64::MAX, |_| u64::from(all)));
    }

    /// Takes a token and tells of it, and of how likely it was by these logits. The budget's specification replays it: the device
    /// may not differ from it.
    pub(crate) fn accept(&mut self, drawn: SampledToken, logits: Option<&[f32]>) {
        if self.final_event.is_some() {
            return;
        }
        self.tell_forced();
        let banned = self.machine.banned().contains(&Some(drawn.sampled));
        let Some(step) = self.machine.accept(drawn.sampled) else { return };
        // The device takes white space for the answer's beginning.
        let role = if step.role == TokenRole::Blank { TokenRole::Solution } else { step.role };
        let phase = match self.machine.phase() {
            GenerationPhase::Idle => GenerationPhase::Solution,
            phase => phase,
        };
        let agrees = Some(role) == drawn.role && phase as u32 == drawn.phase;
        // Nor does it know of tags that are no tokens.
        let agrees = step.id == drawn.id && (agrees || self.machine.has_spelled_tag());
        if banned || !agrees {
            return self.fail(EngineError::SamplerMismatch);
        }
        let constrained = self.constraint.as_mut().map(|constraint| constraint.accept(step, &self.machine));
        if let Some(Err(error)) = constrained {
            return self.fail(error.into());
        }
        self.changes.record(step.id);
        self.tell_logprobs(step, logits);
        self.tell(step);
        self.end_if_done();
    }

    fn tell_logprobs(&self, step: GeneratedToken, logits: Option<&[f32]>) {
        let is_answer = matches!(step.role, TokenRole::Solution | TokenRole::Blank);
        if let Some((logits, top)) = logits.zip(self.logprobs).filter(|_| is_answer) {
            self.send(GenerationEvent::Logprobs(TokenLogprobs::of(logits, step.id, top)));
        }
    }

    /// How many tokens the caller heard of since this was last asked.
    pub(crate) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// It ends with this error, unless it has ended.
    pub(crate) fn fail(&mut self, error: EngineError) {
        self.final_event.get_or_insert(GenerationEvent::Failed(error));
    }

    /// The last word, and where it is read.
    pub(crate) fn into_last_word(self) -> Option<LastWord> {
        Some(LastWord { event: self.final_event?, out: self.out })
    }

    fn end_if_done(&mut self) {
        if let Some(done) = self.machine.done() {
            self.tell_forced();
            self.final_event = Some(GenerationEvent::Done(done));
        }
    }

    fn tell_forced(&mut self) {
        std::mem::take(&mut self.forced).into_iter().for_each(|step| self.tell(step));
    }

    fn tell(&mut self, step: GeneratedToken) {
        self.sent += 1;
        self.send(GenerationEvent::Token(step));
    }

    /// There is room for every token and the last word.
    fn send(&self, event: GenerationEvent) {
        let _ = self.out.try_send(event);
    }
}

/// The end of a generation. Who hears it may count on its place being free.
pub(crate) struct LastWord {
    event: GenerationEvent,
    out: mpsc::Sender<GenerationEvent>,
}

impl LastWord {
    pub(crate) fn say(self) {
        let _ = self.out.try_send(self.event);
    }
}

#[cfg(test)]
mod tests {
    use super::super::penalties::TokenPenalties;
    use super::super::phases::{PhaseBudgets, SpelledTags, ThinkingPhase};
    use super::*;

    #[test]
    fn a_tag_that_is_no_token_moves_the_device_on_to_the_answer() {
        let texts = ["", "a </th", "ink>"].iter().map(|text| text.as_bytes().into()).collect();
        let spelled = Some(SpelledTags { start: "<think>".into(), end: "</think>".into(), texts });
        let (start, end, open, blanks) = (None, u32::MAX, true, [].into());
        let thinking = ThinkingPhase { budget: 5, hand_off: vec![1], start, end, open, blanks, spelled };
        let phases = PhaseBudgets { thinking: Some(thinking), solution: 5, solution_max: 5 };
        let sampling = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
        let changes = LogitChanges::new(TokenPenalties::default(), &[]);
        let rules = DrawRules { sampling, changes, constraint: None, logprobs: None };
        let (out, _heard) = mpsc::channel(8);
        let mut generation = RunningGeneration::new(PhaseMachine::new(phases, Vec::new()), rules, out);
        // The device takes both for the thought's.
        let (role, phase) = (Some(TokenRole::Thought), GenerationPhase::Thinking as u32);
        let drawn = |id| SampledToken { id, role, phase, sampled: id };
        generation.accept(drawn(1), None);
        assert_eq!(generation.changed_slot_words(), None);
        generation.accept(drawn(2), None);
        let words = generation.changed_slot_words().unwrap();
        assert_eq!((words[0], generation.is_over()), (GenerationPhase::Solution as u32, false));
    }
}
