//! The machine's transitions: each piece of the running part in, one step out.

use stint_backend::{GenerationEnd, Piece, Remark, TagEdge, TokenUsage};
use stint_types::catalog::{EnforcementClass, ThinkingStopReason};
use stint_types::chat::{AnswerNote, ChoiceEvent, ToolCallDelta};
use stint_types::units::Tokens;

use super::super::running_part::PartEnd;
use super::repeat_filter::RepeatFilter;
use super::step::ChoiceEnd;
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

impl ChoiceStateMachine {
    /// Takes the next piece of the running part.
    pub fn on_piece(&mut self, piece: Piece) -> ChoiceStep {
        if self.enforcer.is_overrun_by(&piece) {
            return self.on_overrun(piece);
        }
        match piece {
            Piece::Thought { text, tokens, ids } => return self.on_thought(text, tokens, &ids),
            Piece::Answer { text, tokens } => return self.on_answer(&text, tokens),
            Piece::End(ending) => return self.on_end(ending),
            Piece::Usage(usage) => return self.on_usage(usage),
            Piece::Unthought => return self.on_unthought(),
            Piece::ToolCall(delta) => return self.on_tool_call(delta),
            Piece::Tag { tokens, edge } => self.on_tag(tokens, edge),
            Piece::HandOff { tokens } => self.on_hand_off(tokens),
            Piece::Summary(text) if text.is_empty() => {}
            Piece::Summary(text) => {
                self.account.add_summary(&text);
                return ChoiceStep::Show(ChoiceEvent::Thought(text));
            }
            Piece::Signed(signed) => return ChoiceStep::Show(ChoiceEvent::Signed(signed)),
            Piece::Note(note) => return self.on_note(note),
            Piece::Remark(remark) => self.on_remark(remark),
            Piece::Logprobs(entries) => self.logprobs.push(entries),
        }
        ChoiceStep::Continue
    }

    fn on_remark(&mut self, remark: Remark) {
        match remark {
            Remark::Members(members) => self.account.spent.add_members(*members),
            Remark::StoppedBy(text) => self.stopped_by = Some(text),
            Remark::ThoughtsDropped(count) => {
                let dropped = &mut self.account.spent.thoughts_dropped;
                *dropped = count.max(*dropped);
            }
            Remark::Fingerprint(name) => self.account.spent.fingerprint = Some(name),
        }
    }

    fn on_thought(&mut self, text: String, tokens: Tokens, ids: &[u32]) -> ChoiceStep {
        if self.enforcer.has_answered() {
            return self.on_late_thought(text, tokens);
        }
        if self.class.is_resumed() && self.state == ChoiceState::Solution && !self.thinks {
            return self.on_unasked_thought(&text, tokens);
        }
        if self.thinks && self.state != ChoiceState::Waiting {
            // Only blank came, or a thought that was closed: it is still to be answered.
            self.state = ChoiceState::Thinking;
        }
        self.on_visible_thought();
        if self.is_beyond_budget(&text, tokens) {
            // The backend does not hold its limit: we do, where we can.
            self.overran |= self.class == EnforcementClass::Native;
            if self.resume_class().is_some() {
                self.account.add_discarded_thought(&text, tokens);
                return ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff));
            }
        }
        if self.is_beyond_reserved() {
            return self.end_at_thought(&text, tokens);
        }
        if self.class == EnforcementClass::Continue && self.enforcer.thinking_tokens() > self.thinking_max() {
            // Within the tolerance, and beyond the budget all the same.
            self.account.add_discarded_thought(&text, tokens);
            return ChoiceStep::Continue;
        }
        self.account.add_thinking(&text, tokens);
        self.thought.ids.extend_from_slice(ids);
        self.thought.text.push_str(&text);
        if text.is_empty() { ChoiceStep::Continue } else { ChoiceStep::Show(ChoiceEvent::Thought(text)) }
    }

    /// A thought in a call that was asked for the answer alone, before the answer's first word: the upstream cannot be kept from
    /// thinking. It eats the answer's budget and is not shown.
    fn on_unasked_thought(&mut self, text: &str, tokens: Tokens) -> ChoiceStep {
        if self.is_beyond_reserved() {
            return self.end_at_thought(text, tokens);
        }
        self.enforcer.tolerate_thought();
        if tokens > Tokens::ZERO {
            return self.on_answer("", tokens);
        }
        self.account.add_thinking(text, tokens);
        if self.enforcer.is_answer_thought_away() {
            return self.hang_up(String::new());
        }
        ChoiceStep::Continue
    }

    /// A picture or a sound is an answer, or a part of one.
    fn on_note(&mut self, note: AnswerNote) -> ChoiceStep {
        if matches!(note, AnswerNote::Image(_) | AnswerNote::Audio(_)) {
            self.begin_answer();
            (self.has_answered, self.has_media) = (true, true);
        }
        ChoiceStep::Show(ChoiceEvent::Note(note))
    }

    fn on_tag(&mut self, tokens: Tokens, edge: TagEdge) {
        self.account.add_overhead(tokens);
        self.has_stray_tags |= tokens == Tokens::ZERO;
        match edge {
            TagEdge::Start => self.repeat_filter.iter_mut().for_each(RepeatFilter::distrust),
            TagEdge::End => self.end_thinking(ThinkingStopReason::Closed),
        }
    }

    fn on_hand_off(&mut self, tokens: Tokens) {
        match self.class {
            EnforcementClass::Continue | EnforcementClass::Turn => self.account.add_injected(tokens),
            EnforcementClass::Inline | EnforcementClass::Native | EnforcementClass::Effort => {
                self.account.add_overhead(tokens);
            }
        }
        self.end_thinking(self.hand_off_reason());
        self.state = ChoiceState::Solution;
    }

    /// The running part's thought was its answer: text that begins inside a thought, by its model's name, and of which no tag
    /// says where the thought ends. It was shown as a thought already, and is shown as what it is now.
    fn on_unthought(&mut self) -> ChoiceStep {
        if self.state != ChoiceState::Thinking {
            return ChoiceStep::Continue;
        }
        self.account.unthink();
        self.carry_over_thinking(false);
        self.state = ChoiceState::Solution;
        let text = std::mem::take(&mut self.thought).text;
        self.show_answer(&text)
    }

    /// Takes the upstream's own count, which may say in the middle that the thought has gone too far.
    fn on_usage(&mut self, usage: TokenUsage) -> ChoiceStep {
        self.account.set_usage(self.enforcer.clamp_usage(usage));
        // A count that is not split may be of an answer without text, such as a call that begins.
        let is_of_thought = usage.thinking.is_some() || self.account.has_visible_thought();
        let cuts = matches!(self.class, EnforcementClass::Turn | EnforcementClass::Native)
            && is_of_thought
            && self.is_beyond_budget("", Tokens::ZERO);
        self.overran |= cuts && self.class == EnforcementClass::Native;
        if cuts
            && self.state == ChoiceState::Thinking
            && self.resume_class().is_some()
            && self.account.has_visible_thought()
        {
            return ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff));
        }
        ChoiceStep::Continue
    }

    fn on_answer(&mut self, text: &str, tokens: Tokens) -> ChoiceStep {
        self.begin_answer();
        let is_within = self.class == EnforcementClass::Effort
            || self.account.solution_now() + tokens <= self.terms.solution;
        if !is_within {
            self.account.add_discarded(text, tokens);
            return self.finish(ChoiceEnd::broken_off(self.terms.solution_by.into()));
        }
        let text = self.continuation.strip_repeated_blank(text);
        let text = self.new_text(text);
        self.account.add_solution(&text, tokens);
        self.show_answer(&text)
    }

    /// Shows what passes of some text of the answer.
    fn show_answer(&mut self, text: &str) -> ChoiceStep {
        self.enforcer.record_answer(text);
        let text = self.enforcer.pass(text);
        self.has_answered |= !text.is_empty();
        self.observe_answer(text);
        let shown = self.shown_text(text);
        if self.enforcer.is_answer_beyond() {
            self.hang_up(shown)
        } else if self.stop_filter.stopped_by().is_some() {
            self.on_stop_text(shown)
        } else if shown.is_empty() {
            ChoiceStep::Continue
        } else {
            ChoiceStep::Show(ChoiceEvent::Answer(shown))
        }
    }

    fn on_tool_call(&mut self, delta: ToolCallDelta) -> ChoiceStep {
        self.begin_answer();
        self.account.add_solution(&delta.arguments, Tokens::ZERO);
        self.tool_calls = true;
        self.enforcer.record_call();
        self.arguments.entry(delta.index).or_default().push_str(&delta.arguments);
        if self.enforcer.is_answer_beyond() {
            return self.hang_up(String::new());
        }
        ChoiceStep::Show(ChoiceEvent::ToolCall(delta))
    }

    fn on_end(&mut self, ending: GenerationEnd) -> ChoiceStep {
        if let GenerationEnd::Stop { tokens } = ending {
            self.account.add_overhead(tokens);
        }
        self.observe_end();
        if self.continuation.take_grant() {
            return self.resume_answer();
        }
        let answered = self.has_begun_answer();
        if ending == GenerationEnd::Filtered {
            // Nobody asks for the rest of what its provider withholds.
            return self.conclude(ending);
        }
        let limit = ending.is_cut();
        // A text that ends inside a thought has lost its answer as well.
        let lost =
            limit || (self.account.has_visible_thought() && matches!(ending, GenerationEnd::Stop { .. }));
        match (self.class, self.state) {
            (EnforcementClass::Continue | EnforcementClass::Turn, ChoiceState::Closed) => {
                ChoiceStep::Call(self.resume(ThinkingStopReason::Closed, PartEnd::Completed))
            }
            (EnforcementClass::Continue | EnforcementClass::Turn, ChoiceState::Thinking) => {
                ChoiceStep::Call(self.resume(
                    if limit { ThinkingStopReason::Cut } else { ThinkingStopReason::Stopped },
                    PartEnd::Completed,
                ))
            }
            (EnforcementClass::Continue, _)
                if ending == GenerationEnd::Limit && !self.tool_calls && self.thinks =>
            {
                self.continue_answer(ending)
            }
            (EnforcementClass::Native, _)
                if limit && !answered && self.thinks && self.resume_class().is_some() =>
            {
                ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::Completed))
            }
            (EnforcementClass::Effort, _) if lost && !answered && self.may_think_less() => {
                ChoiceStep::Call(self.rescue())
            }
            _ => self.conclude(ending),
        }
    }
}
