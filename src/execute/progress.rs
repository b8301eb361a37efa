//! `ChoiceProgress`: the state of a running choice. It is the phase machine, and what the driver keeps beside it.
//!
//! The caller owns it and lends it to the driver. So what the choice took is known at every moment, also when the future
//! that runs the choice is dropped.

use std::collections::HashSet;

use tokio::time::Instant;

use stint_backend::{Backend, Failure, OutputStats};
use stint_sessions::agent::AnswerCallLimits;
use stint_types::catalog::ChoiceUsage;
use stint_types::chat::{AnswerNote, ChoiceEvent};
use stint_types::tasks::AccountTurns;
use stint_types::units::{AccountId, Count, Tokens};

use super::continuation::ContinuationSender;
use super::meter::{Meter, MeterSchedule};
use super::phases::{ChoiceStateMachine, ChoiceTerms};
use super::relay_turns::RelayTurns;
use super::reserved_output::{ReservedOutput, ReservedOutputShare};
use super::tool_call_filter::ToolCallFilter;
use super::transcript::AnswerTranscript;

/// A choice under way: its phases, and when it first showed something. It outlives the future that runs it.
#[derive(Debug, Clone)]
pub struct ChoiceProgress {
    /// Where it stands and what it took.
    pub phases: ChoiceStateMachine,
    /// When its first token came, of thought or answer.
    pub first: Option<Instant>,
    /// When the first token of its answer came.
    pub first_answer: Option<Instant>,
    /// What it has taken so far, for those who watch.
    pub meter: Meter,
    /// What it has shown, where that is to be recorded.
    pub transcript: AnswerTranscript,
    /// What of its tool calls passes, where not each may.
    pub tool_filter: Option<ToolCallFilter>,
    /// Its share of the reserved output, where not all that it may write is reserved at first.
    pub(super) reserved: Option<ReservedOutputShare>,
    /// Where it asks for the money of another call, where money alone ends its answer.
    pub(super) continuations: Option<ContinuationSender>,
    /// Where its account's streams take turns.
    pub(super) turns: Option<RelayTurns>,
    /// When its running part was called for, and how its target writes.
    part_began: Option<(Instant, OutputStats)>,
    /// True if its running part failed, and its upstream reported that: it wrote nothing unseen that it bills.
    is_failure_reported: bool,
    /// The tool calls of which something was shown, by their indices.
    shown_calls: HashSet<u32>,
    pub(super) meter_schedule: MeterSchedule,
}

impl ChoiceProgress {
    /// A choice that has not begun.
    pub fn new(terms: ChoiceTerms) -> ChoiceProgress {
        ChoiceProgress::of(ChoiceStateMachine::new(terms))
    }

    fn of(phases: ChoiceStateMachine) -> ChoiceProgress {
        ChoiceProgress {
            phases,
            first: None,
            first_answer: None,
            meter: Meter::default(),
            transcript: AnswerTranscript::default(),
            tool_filter: None,
            reserved: None,
            continuations: None,
            turns: None,
            part_began: None,
            is_failure_reported: false,
            shown_calls: HashSet::new(),
            meter_schedule: MeterSchedule::first(),
        }
    }

    /// The same, with a transcript of at most so many bytes.
    #[must_use]
    pub fn with_transcript(self, bytes_max: usize) -> ChoiceProgress {
        ChoiceProgress { transcript: AnswerTranscript::with_bytes_max(bytes_max), ..self }
    }

    /// The same, of whose tool calls only some may pass.
    #[must_use]
    pub fn with_tool_filter(self, filter: ToolCallFilter) -> ChoiceProgress {
        ChoiceProgress { tool_filter: Some(filter), ..self }
    }

    /// The same, whose answer may continue in another call, where that is paid for.
    #[must_use]
    pub fn with_continuations(self, sender: &ContinuationSender) -> ChoiceProgress {
        ChoiceProgress { continuations: Some(sender.clone()), ..self }
    }

    /// The same, which takes turns with others of its account.
    #[must_use]
    pub fn with_turns(self, turns: &AccountTurns, account: &AccountId) -> ChoiceProgress {
        ChoiceProgress { turns: Some(RelayTurns::new(turns.clone(), account.clone())), ..self }
    }

    /// The same, whose answer may only be as long as is reserved. `exempt` is what is reserved besides the answer.
    #[must_use]
    pub fn with_reserved_output(self, pool: &ReservedOutput, exempt: Tokens) -> ChoiceProgress {
        ChoiceProgress { reserved: Some(ReservedOutputShare::of(pool, exempt)), ..self }
    }

    /// Another try at a choice that gave its reader no answer, on its own terms. So many of its tool calls pass.
    #[must_use]
    pub fn retry(&self, terms: ChoiceTerms, call_limits: &AnswerCallLimits) -> ChoiceProgress {
        ChoiceProgress {
            first: self.first,
            transcript: self.transcript.clone(),
            tool_filter: self.tool_filter.as_ref().map(|filter| filter.for_retry(call_limits)),
            turns: self.turns.clone(),
            ..ChoiceProgress::of(ChoiceStateMachine::retry(terms))
        }
    }

    /// As if all of it had been shown at this moment.
    #[must_use]
    pub fn shown_at(self, now: Instant) -> ChoiceProgress {
        ChoiceProgress { first: Some(now), first_answer: Some(now), ..self }
    }

    /// What the choice has taken so far, the running part included; ask at any moment. Of what is hidden, that is no more than
    /// can have been written in the time that passed.
    pub fn spent(&self) -> ChoiceUsage {
        self.phases.spent_within(self.unseen_max())
    }

    /// Its meter shows all of it from now on.
    pub fn update_meter(&self) {
        self.meter.update(self.spent());
    }

    /// How many tools its reader has seen called.
    pub fn shown_call_count(&self) -> Count {
        let shown = if self.first.is_some() { self.shown_calls.len() } else { 0 };
        Count(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    pub(super) fn update_meter_if_due(&mut self) {
        if self.meter_schedule.is_due() {
            self.update_meter();
        }
    }

    /// Reports to the target's fleet what its calls have shown, and takes over what the fleet knows by now.
    pub(super) fn report_observations(&mut self, backend: &dyn Backend) {
        let observations = self.phases.take_observations();
        if !observations.is_empty() {
            observations.into_iter().for_each(|observation| backend.observe(observation));
            self.phases.set_behavior(backend.behavior());
        }
    }

    pub(super) fn record_event(&mut self, event: &ChoiceEvent) {
        self.transcript.record(event);
        if let ChoiceEvent::ToolCall(delta) = event {
            self.shown_calls.insert(delta.index);
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        if is_of_the_answer(event) {
            self.first_answer.get_or_insert(now);
        }
    }

    /// A part is called for.
    pub(super) fn begin_part(&mut self, output_stats: OutputStats) {
        self.part_began = Some((Instant::now(), output_stats));
        self.is_failure_reported = false;
        self.phases.set_output_stats(output_stats);
    }

    /// The running part failed. One that no model saw took nothing; one whose upstream reports that itself, before it wrote anything,
    /// took what was counted.
    pub(super) fn record_failure(&mut self, failure: &Failure) {
        if failure.unsent {
            self.phases.mark_refused();
        } else if failure.reported {
            self.is_failure_reported = true;
            self.break_off_part();
        }
    }

    /// The running part is broken off: no more is booked of what it hid than it can have written.
    pub(super) fn break_off_part(&mut self) {
        if let Some(most) = self.unseen_max() {
            self.phases.set_unseen_max(most);
        }
    }

    /// True if so many tokens beyond what is written are reserved.
    pub(super) fn reserve_output(&mut self, more: Tokens) -> bool {
        let ChoiceProgress { reserved, phases, .. } = self;
        reserved.as_mut().is_none_or(|share| share.use_up_to(phases.written() + more))
    }

    /// What its running part can have written unseen.
    fn unseen_max(&self) -> Option<Tokens> {
        if self.is_failure_reported {
            return Some(Tokens::ZERO);
        }
        self.part_began.map(|(began, output_stats)| output_stats.max_tokens_in(began.elapsed()))
    }
}

/// Whether it is a part of the answer itself. Signatures of the thought come before it, and most notes say something about it.
fn is_of_the_answer(event: &ChoiceEvent) -> bool {
    match event {
        ChoiceEvent::Answer(_) | ChoiceEvent::ToolCall(_) => true,
        ChoiceEvent::Note(note) => matches!(note, AnswerNote::Image(_) | AnswerNote::Audio(_)),
        ChoiceEvent::Thought(_) | ChoiceEvent::Signed(_) | ChoiceEvent::Logprobs(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use stint_types::chat::{SignedThought, SigningDomain, ThoughtSigner};

    use super::*;

    #[test]
    fn what_comes_before_the_answer_is_none() {
        let block = "{}".into();
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain::default() };
        let signed = ChoiceEvent::Signed(SignedThought { signer, block });
        let phase = ChoiceEvent::Note(AnswerNote::Phase("final_answer".into()));
        for before in
            [ChoiceEvent::Thought("so".to_owned()), signed, phase, ChoiceEvent::Logprobs(Vec::new())]
        {
            assert!(!is_of_the_answer(&before), "{before:?}");
        }
        assert!(is_of_the_answer(&ChoiceEvent::Answer("4".to_owned())));
    }
}
