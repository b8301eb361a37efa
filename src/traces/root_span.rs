//! The request's own span: what came in, what was decided, and what became of it.

use opentelemetry::trace::SpanKind;

use super::live_trace::EndedTrace;
use super::span_maker::SpanDraft;

/// The span of the whole request.
pub(super) fn root_span(trace: &EndedTrace) -> SpanDraft {
    let (details, record) = (&trace.details, trace.moments.record.as_deref());
    let outcome = record.map(|record| &record.outcome);
    let status = details.status.map(i64::from);
    let is_ours = details.outcome == "failed";
    let error = details.code.clone().or_else(|| is_ours.then(|| details.outcome.to_owned()));
    let cost = outcome.filter(|outcome| !outcome.unbooked).map(|outcome| outcome.cost.to_string());
    let draft = SpanDraft::new(
        format!("{} {}", details.method, details.endpoint),
        trace.moments.began(),
        trace.ended,
    )
    .of_kind(SpanKind::Server)
    .with("http.request.method", Some(details.method.clone()))
    .with("http.route", Some(details.endpoint))
    .with("http.response.status_code", status)
    .with("stint.request.id", details.id.clone())
    .with("stint.account", details.account.clone())
    .with("stint.outcome", Some(details.outcome))
    .with("stint.refused_by", trace.moments.refusal.clone())
    .with("gen_ai.request.model", record.map(|record| record.decision.route.to_string()))
    .with("gen_ai.response.model", outcome.map(|outcome| outcome.model.to_string()))
    .with("stint.why", record.map(|record| record.decision.why.clone()))
    .with("stint.cost_usd", cost);
    // A refusal is its caller's matter, and no error of the server by the conventions.
    let refused = details.outcome == "refused";
    if refused { draft.with("error.type", error) } else { draft.failed(error) }
}
