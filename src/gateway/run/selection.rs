//! Selects which of several answers is delivered: the one the verifier scores best, else the judge's choice if no two
//! agree, else the most frequent one.

use crate::execute::{AnswerSample, SamplingResult};
use crate::gateway::request::{RequestContext, RequestReservation};
use crate::gateway::{Chooser, VoteTally};
use stint_types::catalog::{ChoiceUsage, Offer};
use stint_types::chat::FinishReason;
use stint_types::units::Chance;

use super::judge::judge_answers;
use super::running_request::RunningRequest;

/// An answer that was chosen for one choice.
pub(super) struct SelectedAnswer {
    pub(super) sample: AnswerSample,
    pub(super) tally: VoteTally,
    /// False if more than half were to agree and did not.
    has_majority: bool,
}

impl SelectedAnswer {
    /// By the verifier where it has seen any, else by counting.
    pub(super) fn of(sampled: &SamplingResult) -> Option<SelectedAnswer> {
        match sampled.best_verified() {
            Some(best) => Some(SelectedAnswer::by(Chooser::Verifier, best, sampled)),
            None => sampled.vote_winner().map(|sample| SelectedAnswer::by(Chooser::Vote, sample, sampled)),
        }
    }

    fn by(by: Chooser, sample: &AnswerSample, sampled: &SamplingResult) -> SelectedAnswer {
        let agreed = sampled.votes(sample);
        let tally = VoteTally {
            most: sampled.ballot.samples_max(),
            asked: sampled.asked,
            cancelled: sampled.cancelled,
            agreed: agreed.max(1),
            by,
            ended: sampled.ended.as_str(),
        };
        SelectedAnswer { sample: sample.clone(), tally, has_majority: sampled.ballot.has_quorum() }
    }

    /// Whether another model should be asked: the answer is incomplete, has a bad score, or hardly two answers agree.
    pub(super) fn is_doubtful(&self, floor: Option<Chance>, is_limited: bool) -> bool {
        let is_cut = self.sample.finish == FinishReason::Length && !is_limited;
        let half = is_cut || self.sample.events.is_empty();
        let unsure = match (self.sample.score, floor) {
            (Some(score), Some(floor)) => score < floor,
            _ => !self.has_majority,
        };
        half || (self.sample.finish == FinishReason::Stop && unsure)
    }
}

/// What becomes of samples.
pub(crate) const OUTCOMES: [&str; 3] = ["asked", "cancelled", "dropped"];

/// Asks the judge where the samples say nothing alike, and nobody has scored them.
pub(super) async fn ask_judge(
    running: RunningRequest<'_>,
    chosen: &mut SelectedAnswer,
    sampled: &SamplingResult,
    offer: &Offer,
    spent: &[ChoiceUsage],
    reservation: &mut RequestReservation,
) {
    if chosen.tally.by == Chooser::Verifier || chosen.tally.agreed > 1 {
        return;
    }
    let whole: Vec<&AnswerSample> =
        sampled.finished.iter().filter(|sample| sample.finish == FinishReason::Stop).collect();
    let answers: Vec<String> = whole.iter().map(|sample| sample.answer()).collect();
    if let Some(at) = judge_answers(running, &answers, offer, spent, reservation).await {
        *chosen = SelectedAnswer::by(Chooser::Judge, whole[at], sampled);
    }
}

/// Counts the samples' results in Prometheus.
pub(super) fn count_samples(context: &RequestContext, offer: &Offer, sampled: &SamplingResult) {
    let votes = &context.parts().metrics.votes;
    let finished = u32::try_from(sampled.finished.len()).unwrap_or(u32::MAX);
    let counted: u32 = sampled.candidates().iter().map(|(standing, _)| standing.votes).sum();
    let counts = [sampled.asked, sampled.cancelled, finished.saturating_sub(counted)];
    for (outcome, count) in OUTCOMES.into_iter().zip(counts) {
        votes.samples.with_label_values(&[&*offer.model, outcome]).inc_by(count.into());
    }
    votes.ended.with_label_values(&[sampled.ended.as_str()]).inc();
}
