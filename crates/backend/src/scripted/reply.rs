//! What a scripted model would do by itself, and what is left of it under the limits of a call.

use std::time::Duration;

use crate::{BackendCall, Failure, GenerationEnd, GenerationPart, Piece, TagEdge, Thought, TokenUsage};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{CompletionKind, ToolCallDelta};
use stint_types::units::Tokens;

use super::PieceGate;

/// How many tokens a scripted hand-off has.
pub const HAND_OFF: Tokens = Tokens(3);

/// What the model would do by itself. A text here is one token.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    thought: Vec<String>,
    stops: bool,
    answer: Vec<String>,
    answer_cut: Option<Vec<String>>,
    ending: Option<GenerationEnd>,
    tool_calls: Vec<ToolCallDelta>,
    hidden: bool,
    uncounted: bool,
    pub(super) refuses: Option<Failure>,
    pub(super) breaks: Option<(usize, Failure)>,
    pub(super) pause: Duration,
    pub(super) start_gate: Option<PieceGate>,
    pub(super) piece_gate: Option<PieceGate>,
}

impl ScriptedReply {
    /// A model that says nothing.
    pub fn new() -> ScriptedReply {
        ScriptedReply::default()
    }

    /// Thinks so many tokens, unless it is cut.
    #[must_use]
    pub fn thinks(self, tokens: usize) -> ScriptedReply {
        ScriptedReply { thought: (1..=tokens).map(|number| format!("{number} ")).collect(), ..self }
    }

    /// Answers with these words, a token each.
    #[must_use]
    pub fn answers(self, text: &str) -> ScriptedReply {
        ScriptedReply { answer: words(text), ..self }
    }

    /// Answers with these words after a thought that was cut or left out; otherwise as always.
    #[must_use]
    pub fn answers_when_cut(self, text: &str) -> ScriptedReply {
        ScriptedReply { answer_cut: Some(words(text)), ..self }
    }

    /// Ends its text inside the thought instead of closing it.
    #[must_use]
    pub fn stops_thinking(self) -> ScriptedReply {
        ScriptedReply { stops: true, ..self }
    }

    /// Ends its answer like that rather than with an end-of-text token.
    #[must_use]
    pub fn ends(self, ending: GenerationEnd) -> ScriptedReply {
        ScriptedReply { ending: Some(ending), ..self }
    }

    /// Calls a tool after its answer; it costs no tokens.
    #[must_use]
    pub fn calls(mut self, delta: ToolCallDelta) -> ScriptedReply {
        self.tool_calls.push(delta);
        self.ends(GenerationEnd::ToolCalls)
    }

    /// Does not show its thoughts, only counts them (in [`GenerationPart::Total`]).
    #[must_use]
    pub fn hides_thoughts(self) -> ScriptedReply {
        ScriptedReply { hidden: true, ..self }
    }

    /// Says nothing of usage.
    #[must_use]
    pub fn counts_nothing(self) -> ScriptedReply {
        ScriptedReply { uncounted: true, ..self }
    }

    /// Refuses the call.
    #[must_use]
    pub fn refuses(self, failure: Failure) -> ScriptedReply {
        ScriptedReply { refuses: Some(failure), ..self }
    }

    /// Breaks off after so many pieces.
    #[must_use]
    pub fn breaks_after(self, pieces: usize, failure: Failure) -> ScriptedReply {
        ScriptedReply { breaks: Some((pieces, failure)), ..self }
    }

    /// Waits so long before every piece, by tokio's clock.
    #[must_use]
    pub fn pauses(self, pause: Duration) -> ScriptedReply {
        ScriptedReply { pause, ..self }
    }

    /// Passes this gate before it accepts or refuses the call.
    #[must_use]
    pub fn begins_at(self, gate: &PieceGate) -> ScriptedReply {
        ScriptedReply { start_gate: Some(gate.clone()), ..self }
    }

    /// Passes this gate before every piece.
    #[must_use]
    pub fn waits_at(self, gate: &PieceGate) -> ScriptedReply {
        ScriptedReply { piece_gate: Some(gate.clone()), ..self }
    }

    /// What comes of it under the limits of a part.
    pub(super) fn pieces(&self, call: &BackendCall, prompt: Tokens) -> Vec<Piece> {
        let mut pieces = match &call.part {
            GenerationPart::Whole { solution, .. }
            | GenerationPart::Solution { solution, .. }
            | GenerationPart::Total { tokens: solution, .. }
                if call.request.kind == CompletionKind::Text =>
            {
                self.solve(&self.answer, count(*solution))
            }
            GenerationPart::Whole { thinking: Tokens::ZERO, solution }
                if call.class != EnforcementClass::Inline =>
            {
                self.solve(self.cut_answer(), count(*solution))
            }
            GenerationPart::Whole { thinking, solution } => self.whole(count(*thinking), count(*solution)),
            GenerationPart::Thought { thinking, .. } => self.think(count(*thinking)),
            GenerationPart::Solution { thought, solution, .. } => self.resume(thought, count(*solution)),
            GenerationPart::Total { tokens, .. } => return self.total(count(*tokens), prompt),
        };
        let written = pieces.iter().map(cost).sum();
        self.report(&mut pieces, TokenUsage { prompt, completion: written, ..TokenUsage::default() });
        pieces
    }

    /// As the class `inline`: a thought that reaches its budget is cut, whatever it would say next. One that may
    /// not begin is handed off at once, as where a template opens every thought.
    fn whole(&self, thinking: usize, solution: usize) -> Vec<Piece> {
        if thinking == 0 {
            let hand_off = Piece::HandOff { tokens: HAND_OFF };
            return std::iter::once(hand_off).chain(self.solve(self.cut_answer(), solution)).collect();
        }
        let mut pieces = self.think(thinking);
        match pieces.pop() {
            Some(Piece::End(GenerationEnd::Limit)) => {
                pieces.push(Piece::HandOff { tokens: HAND_OFF });
                pieces.extend(self.solve(self.cut_answer(), solution));
            }
            Some(end) if self.stops => pieces.push(end),
            _ => pieces.extend(self.solve(&self.answer, solution)),
        }
        pieces
    }

    fn think(&self, thinking: usize) -> Vec<Piece> {
        let shown = self.thought.iter().take(thinking).zip(0..);
        let thought =
            shown.map(|(text, id)| Piece::Thought { text: text.clone(), tokens: Tokens(1), ids: vec![id] });
        let mut pieces: Vec<Piece> = thought.collect();
        if self.thought.len() >= thinking {
            pieces.push(Piece::End(GenerationEnd::Limit));
        } else if self.stops {
            pieces.push(Piece::End(GenerationEnd::Stop { tokens: Tokens(1) }));
        } else {
            pieces.push(Piece::Tag { tokens: Tokens(1), edge: TagEdge::End });
            pieces.push(Piece::End(GenerationEnd::Stop { tokens: Tokens::ZERO }));
        }
        pieces
    }

    fn resume(&self, thought: &Thought, solution: usize) -> Vec<Piece> {
        if thought.closed {
            return self.solve(&self.answer, solution);
        }
        let mut pieces = vec![Piece::HandOff { tokens: HAND_OFF }];
        pieces.extend(self.solve(self.cut_answer(), solution));
        pieces
    }

    fn solve(&self, answer: &[String], solution: usize) -> Vec<Piece> {
        let said = answer.iter().take(solution);
        let mut pieces: Vec<Piece> =
            said.map(|text| Piece::Answer { text: text.clone(), tokens: Tokens(1) }).collect();
        if answer.len() >= solution {
            pieces.push(Piece::End(GenerationEnd::Limit));
            return pieces;
        }
        pieces.extend(self.tool_calls.iter().cloned().map(Piece::ToolCall));
        pieces.push(Piece::End(self.ending.unwrap_or(GenerationEnd::Stop { tokens: Tokens(1) })));
        pieces
    }

    /// As a chat API: one limit, tokens reported only at the end.
    fn total(&self, tokens: usize, prompt: Tokens) -> Vec<Piece> {
        let mut pieces = self.think(tokens);
        if !matches!(pieces.last(), Some(Piece::End(GenerationEnd::Limit))) {
            pieces.retain(|piece| matches!(piece, Piece::Thought { .. }));
            pieces.extend(self.solve(&self.answer, tokens - self.thought.len()));
        }
        let completion = pieces.iter().map(cost).sum();
        let thinking = Tokens(self.thought.len().min(tokens) as u64);
        if self.hidden {
            pieces.retain(|piece| !matches!(piece, Piece::Thought { .. }));
        }
        pieces.iter_mut().for_each(uncount);
        self.report(
            &mut pieces,
            TokenUsage { prompt, completion, thinking: Some(thinking), ..TokenUsage::default() },
        );
        pieces
    }

    fn cut_answer(&self) -> &[String] {
        self.answer_cut.as_ref().unwrap_or(&self.answer)
    }

    fn report(&self, pieces: &mut Vec<Piece>, usage: TokenUsage) {
        if !self.uncounted {
            pieces.insert(pieces.len().saturating_sub(1), Piece::Usage(usage));
        }
    }
}

fn cost(piece: &Piece) -> Tokens {
    match piece {
        Piece::Thought { tokens, .. }
        | Piece::Answer { tokens, .. }
        | Piece::Tag { tokens, .. }
        | Piece::HandOff { tokens }
        | Piece::End(GenerationEnd::Stop { tokens }) => *tokens,
        Piece::Summary(_)
        | Piece::Signed(_)
        | Piece::Remark(_)
        | Piece::Unthought
        | Piece::Logprobs(_)
        | Piece::Note(_)
        | Piece::ToolCall(_)
        | Piece::Usage(_)
        | Piece::End(_) => Tokens::ZERO,
    }
}

fn uncount(piece: &mut Piece) {
    match piece {
        Piece::Thought { tokens, ids, .. } => {
            *tokens = Tokens::ZERO;
            ids.clear();
        }
        Piece::Answer { tokens, .. } | Piece::End(GenerationEnd::Stop { tokens }) => *tokens = Tokens::ZERO,
        _ => {}
    }
}

fn count(tokens: Tokens) -> usize {
    usize::try_from(tokens.0).unwrap_or(usize::MAX)
}

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}
