//! The spans of a request: its stages, its attempts with the thought and the answer of the last, and its settling.

use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SpanData;

use stint_types::catalog::{ChoiceOutcome, DecisionOutcome, ThinkingStopReason};
use stint_types::units::Tokens;

use super::live_trace::EndedTrace;
use super::moments::Attempt;
use super::root_span::root_span;
use super::span_maker::{SpanDraft, SpanMaker};

/// All spans of a trace that has ended, the request's own first.
pub(super) fn spans_of(trace: &EndedTrace) -> Vec<SpanData> {
    let mut maker = SpanMaker::new(&trace.moments, trace.trace, trace.root);
    let (parent, is_remote) = (trace.parent.unwrap_or_default(), trace.parent.is_some());
    maker.with_id(trace.root, parent, is_remote, root_span(trace));
    stages(&mut maker, trace);
    trace.moments.attempts.iter().for_each(|attempt| attempt_span(&mut maker, trace, attempt));
    if let Some(last) = trace.moments.attempts.last() {
        phases(&mut maker, trace, last);
    }
    settle(&mut maker, trace);
    maker.finish()
}

/// What was done before anything was sent: each begins where the one before it ended.
fn stages(maker: &mut SpanMaker<'_>, trace: &EndedTrace) {
    let (mut from, record) = (trace.moments.began(), trace.moments.record.as_deref());
    for (name, to) in &trace.moments.stages {
        let draft = SpanDraft::new(*name, from, *to);
        let decision = record.map(|record| &record.decision);
        let draft = match *name {
            "step" => {
                let episode = decision.and_then(|decision| decision.episode.as_ref());
                draft.with("gen_ai.conversation.id", episode.map(|episode| episode.as_str().to_owned()))
            }
            "demand" => draft
                .with("stint.class", decision.map(|decision| decision.class.as_str()))
                .with("stint.difficulty", decision.map(|decision| decision.difficulty.get())),
            "plan" => draft
                .with("stint.why", decision.map(|decision| decision.why.clone()))
                .with("stint.candidates", decision.map(|decision| count(decision.candidates.len())))
                .with("stint.policy", decision.map(|decision| decision.policy.to_string())),
            "reserve" => {
                let reserved = record.map(|record| record.outcome.reserved.to_string());
                draft.with("stint.reserved_usd", reserved)
            }
            _ => draft,
        };
        maker.child(draft);
        from = *to;
    }
}

fn attempt_span(maker: &mut SpanMaker<'_>, trace: &EndedTrace, attempt: &Attempt) {
    let (to, ended) = attempt.ended.unwrap_or((trace.ended, "cancelled"));
    let is_last = trace.moments.attempts.last().is_some_and(|last| last.span == attempt.span);
    let outcome = trace.moments.record.as_deref().map(|record| &record.outcome).filter(|_| is_last);
    let input = outcome.and_then(|outcome| outcome.choices.first()).map(|choice| tokens(choice.prompt));
    let output = outcome.map(|outcome| sum(outcome, |it| it.thinking + it.overhead + it.solution));
    let draft = SpanDraft::new(format!("chat {}", attempt.model), attempt.began, to)
        .of_kind(SpanKind::Client)
        .with("gen_ai.operation.name", Some("chat"))
        .with("gen_ai.request.model", Some(attempt.model.to_string()))
        .with("gen_ai.response.model", outcome.map(|outcome| outcome.model.to_string()))
        .with("gen_ai.usage.input_tokens", input)
        .with("gen_ai.usage.output_tokens", output)
        .with("stint.target", Some(attempt.target.to_string()))
        .with("stint.attempt.ended", Some(ended))
        .failed(attempt.error.clone());
    maker.with_id(attempt.span, trace.root, false, draft);
}

/// The thought and the answer of the attempt that was delivered, by its first tokens of each. Of several choices it is the first
/// that began, with the tokens of all.
fn phases(maker: &mut SpanMaker<'_>, trace: &EndedTrace, last: &Attempt) {
    let Some(record) = trace.moments.record.as_deref() else { return };
    let outcome = &record.outcome;
    let to = last.ended.map_or(trace.ended, |(at, _)| at);
    let answered = outcome.first_answer.map(|seconds| trace.moments.after(seconds));
    let Some(first) = outcome.choices.first() else { return };
    if first.thinking_ended != ThinkingStopReason::None || outcome.thinking > Tokens::ZERO {
        // Where thoughts are hidden nothing shows when they begin.
        let shown = outcome.first_token.map(|seconds| trace.moments.after(seconds));
        let from = shown.filter(|shown| answered.is_none_or(|answered| *shown < answered));
        let draft = SpanDraft::new("think", from.unwrap_or(last.began), answered.unwrap_or(to))
            .with("stint.thinking.budget", Some(tokens(outcome.thinking)))
            .with("stint.thinking.used", Some(sum(outcome, |it| it.thinking)))
            .with("stint.thinking.ended", Some(first.thinking_ended.as_str()))
            .with("stint.enforced", Some(outcome.enforced.as_str()));
        maker.below(last.span, draft);
    }
    if let Some(from) = answered {
        let draft = SpanDraft::new("solve", from, to)
            .with("stint.solution.budget", Some(tokens(outcome.solution)))
            .with("stint.solution.used", Some(sum(outcome, |it| it.solution)))
            .with("stint.solution.ended", Some(first.solution_ended.as_str()))
            .with("stint.tool_calls", trace.moments.tool_calls.map(whole));
        maker.below(last.span, draft);
    }
}

fn settle(maker: &mut SpanMaker<'_>, trace: &EndedTrace) {
    let Some(from) = trace.moments.settling else { return };
    let outcome = trace.moments.record.as_deref().map(|record| &record.outcome);
    let to = outcome.map_or(trace.ended, |outcome| trace.moments.after(outcome.seconds));
    let cost = outcome.filter(|outcome| !outcome.unbooked).map(|outcome| outcome.cost.to_string());
    let draft = SpanDraft::new("settle", from, to)
        .with("stint.cost_usd", cost)
        .with("stint.attempts_given_up", outcome.map(|outcome| i64::from(outcome.attempts)));
    maker.child(draft);
}

fn sum(outcome: &DecisionOutcome, of: fn(&ChoiceOutcome) -> Tokens) -> i64 {
    tokens(outcome.choices.iter().map(of).sum())
}

fn tokens(tokens: Tokens) -> i64 {
    whole(tokens.0)
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
