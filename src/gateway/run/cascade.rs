//! Runs a cascade: decides which answers are delivered, and whether a stronger model is asked first.

use tokio::time::timeout_at;

use crate::execute::{ChoiceProgress, SamplingResult, event_channel};
use crate::gateway::RequestUpdate;
use crate::gateway::feedback::AnswerSignal;
use crate::gateway::request::{RequestContext, RequestReservation};
use stint_backend::fleet::Permit;
use stint_decide::learn::SamplingEvidence;
use stint_types::catalog::{Offer, VerdictSource};
use stint_types::units::Chance;

use super::attempt::run_offer;
use super::attempt_result::AttemptResult;
use super::attempts::{Attempts, acquire};
use super::offer_attempt::OfferAttempt;
use super::outcome::{RequestOutcome, spent_by_choice};
use super::running_request::RunningRequest;
use super::selection::{SelectedAnswer, ask_judge, count_samples};
use super::voting::sum_samples;

/// What a verifier's score counts beside a person's word, and what the agreement of several answers does.
const SCORED: f64 = 0.5;
const AGREED: f64 = 0.2;

/// What may come of asking a stronger model.
const ANSWERED: &str = "answered";
const KEPT: &str = "kept";
pub(crate) const OUTCOMES: [&str; 2] = [ANSWERED, KEPT];

/// Chooses among samples, goes on to the second step of a cascade where they are in doubt, and delivers.
pub(super) async fn conclude<'p>(
    running: RunningRequest<'_>,
    offer: &'p Offer,
    result: AttemptResult,
    progress: Vec<ChoiceProgress>,
    reservation: &mut RequestReservation,
) -> RequestOutcome<'p> {
    let AttemptResult::Sampled(sampled) = result else {
        return RequestOutcome::of(offer, result, progress);
    };
    sampled.iter().for_each(|sampled| count_samples(running.context, offer, sampled));
    let Some(mut chosen) = sampled.iter().map(SelectedAnswer::of).collect::<Option<Vec<SelectedAnswer>>>()
    else {
        // A choice without a sample that came to its end has failed, and is no `Sampled`.
        return RequestOutcome::of(offer, AttemptResult::HungUp, progress);
    };
    let is_doubtful = is_doubtful(running.context, &chosen);
    record_evidence(running.context, offer, &sampled, &chosen, is_doubtful);
    if let Some(second) = offer.escalate.as_deref().filter(|_| is_doubtful) {
        let outcome = escalate(running, offer, second, &progress, reservation).await;
        let label = if outcome.is_some() { ANSWERED } else { KEPT };
        running.context.parts().metrics.votes.cascades.with_label_values(&[&*offer.model, label]).inc();
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
    let spent = spent_by_choice(&progress);
    for (chosen, sampled) in chosen.iter_mut().zip(&sampled) {
        ask_judge(running, chosen, sampled, offer, &spent, reservation).await;
    }
    deliver(running, offer, chosen, progress).await
}

/// Tells the route's recipe, where it has one, what this vote or first step was good for.
fn record_evidence(
    context: &RequestContext,
    offer: &Offer,
    sampled: &[SamplingResult],
    chosen: &[SelectedAnswer],
    is_doubtful: bool,
) {
    let route = &context.policy;
    if route.recipe.is_none() {
        return;
    }
    let has_score = sampled.iter().any(|sampled| sampled.finished.iter().any(|one| one.score.is_some()));
    let is_first = |(sampled, chosen): (&SamplingResult, &SelectedAnswer)| {
        sampled.finished.first().is_some_and(|first| first.index == chosen.sample.index)
    };
    let evidence = SamplingEvidence {
        // With a verifier one good answer is enough, so that none may be there to agree with it.
        compared: route.verifier.is_none() && sampled.iter().any(|sampled| sampled.finished.len() > 1),
        agreed: chosen.iter().any(|chosen| chosen.tally.agreed > 1),
        verified: route.verifier.is_some().then_some(has_score),
        changed: !sampled.iter().zip(chosen).all(is_first),
        escalated: offer.escalate.as_ref().map(|_| is_doubtful),
    };
    context.state.recipes.record_sampling(&route.name, evidence, &context.parts().metrics);
}

fn is_doubtful(context: &RequestContext, chosen: &[SelectedAnswer]) -> bool {
    let floor = context.policy.verifier.as_ref().map(|verifier| verifier.floor);
    let budget = &context.request.budget;
    // If the caller limits the answer, another answer would end at the same limit.
    let is_limited = budget.solution.is_some() || budget.total.is_some();
    chosen.iter().any(|chosen| chosen.is_doubtful(floor, is_limited))
}

/// Runs the second step of a cascade, whose worst case was set aside with the first's. Nothing if it came to no
/// answer: what it took is booked then, and the first step's answer is delivered after all.
async fn escalate<'p>(
    running: RunningRequest<'_>,
    first: &'p Offer,
    second: &'p Offer,
    progress: &[ChoiceProgress],
    reservation: &mut RequestReservation,
) -> Option<RequestOutcome<'p>> {
    let (before, spent) = (reservation.undelivered(), spent_by_choice(progress));
    if !reservation.switch_offer(second, running.context.bill(first, &spent)).await {
        return None;
    }
    let mut attempt = OfferAttempt::new(running.context, second);
    let (result, updates) = match acquire(running, &mut Attempts::only(second)).await {
        Ok(permit) => run_buffered(running, &permit, second, &mut attempt, reservation).await,
        Err(result) => {
            attempt.progress.clear();
            (result, Vec::new())
        }
    };
    let made = attempt.progress;
    match result {
        AttemptResult::Finished(finishes) => {
            running.context.answering.set(&second.model);
            for update in updates {
                let sent = timeout_at(running.context.deadline, running.updates.send(update)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return Some(RequestOutcome::of(second, AttemptResult::HungUp, made));
                }
            }
            Some(RequestOutcome::of(second, AttemptResult::Finished(finishes), made))
        }
        AttemptResult::Failed(failure) => {
            tracing::warn!(request = %running.context.id, model = %second.model, %failure, "the first answer is delivered after all");
            let lost = spent_by_choice(&made);
            reservation.revert_to(first, before, running.context.bill(second, &lost)).await;
            None
        }
        AttemptResult::Sampled(sampled) => {
            sampled.iter().for_each(|sampled| count_samples(running.context, second, sampled));
            let chosen = sampled.iter().map(SelectedAnswer::of).collect::<Option<Vec<SelectedAnswer>>>()?;
            Some(deliver(running, second, chosen, made).await)
        }
        result => Some(RequestOutcome::of(second, result, made)),
    }
}

/// Runs an offer whose answer is shown when it is whole: where it fails, another one is, and the two must not mix.
async fn run_buffered(
    running: RunningRequest<'_>,
    permit: &Permit,
    offer: &Offer,
    attempt: &mut OfferAttempt,
    reservation: &mut RequestReservation,
) -> (AttemptResult, Vec<RequestUpdate>) {
    let (own, mut kept) = event_channel(running.context.parts().settings.events);
    let collect = async {
        let mut updates = Vec::new();
        while let Some(update) = kept.recv().await {
            updates.push(update);
        }
        updates
    };
    let run = async move {
        let buffered = RunningRequest { updates: &own, ..running };
        run_offer(buffered, permit, offer, attempt, reservation).await
    };
    tokio::select! {
        biased;
        () = running.updates.closed() => (AttemptResult::HungUp, Vec::new()),
        ended = futures_util::future::join(run, collect) => ended,
    }
}

/// What the choice shows about the answer, to learn from: a verifier's score, or how many agree.
fn answer_signal(chosen: &SelectedAnswer) -> Option<AnswerSignal> {
    let tally = &chosen.tally;
    match chosen.sample.score {
        Some(score) => Some((VerdictSource::Verifier, score, SCORED)),
        None if tally.agreed > 1 => {
            let ended = tally.asked.saturating_sub(tally.cancelled);
            let share = f64::from(tally.agreed) / f64::from(ended.max(1));
            Some((VerdictSource::Vote, Chance::new(share), AGREED))
        }
        None => None,
    }
}

/// Shows the caller what was chosen.
async fn deliver<'p>(
    running: RunningRequest<'_>,
    offer: &'p Offer,
    chosen: Vec<SelectedAnswer>,
    progress: Vec<ChoiceProgress>,
) -> RequestOutcome<'p> {
    running.context.answering.set(&offer.model);
    let now = tokio::time::Instant::now();
    let each = usize::try_from(offer.samples.max(1)).unwrap_or(usize::MAX);
    let mut outcome = RequestOutcome::of(offer, AttemptResult::HungUp, Vec::new());
    let (mut finishes, mut left) = (Vec::new(), false);
    for ((index, chosen), samples) in (0..).zip(chosen).zip(progress.chunks(each)) {
        let at = usize::try_from(chosen.sample.index).unwrap_or(usize::MAX);
        outcome.signals.extend(answer_signal(&chosen));
        outcome.spent.push(sum_samples(samples, chosen.sample.index));
        outcome.progress.extend(samples.get(at).map(|sample| sample.clone().shown_at(now)));
        outcome.tallies.push(chosen.tally);
        finishes.push(chosen.sample.finish);
        for event in chosen.sample.events {
            let sent = timeout_at(
                running.context.deadline,
                running.updates.send(RequestUpdate::Event(index, event)),
            )
            .await;
            left |= !matches!(sent, Ok(Ok(())));
        }
    }
    if !left {
        outcome.result = AttemptResult::Finished(finishes);
    }
    outcome
}
