//! The end of a run: which answers are delivered, and whether a stronger model is asked first.

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::backend::fleet::Permit;
use crate::catalog::{ChoiceUsage, Offer, VerdictSource};
use crate::execute::ChoiceProgress;
use crate::units::Chance;

use super::attempts::Attempts;
use super::growth::ReservationGrowth;
use super::running_request::{RunningRequest, spent_by_choice};
use super::selection::SelectedAnswer;
use super::voting::sum_samples;
use crate::gateway::finish::AttemptResult;
use crate::gateway::request::reservation::RequestReservation;
use crate::gateway::{RequestUpdate, VoteTally};

/// What a verifier's score counts beside a person's word, and what the agreement of several answers does.
const SCORED: f64 = 0.5;
const AGREED: f64 = 0.2;

/// A run that came to its end, whatever that is.
pub(in crate::gateway) struct RequestOutcome<'p> {
    pub(in crate::gateway) offer: &'p Offer,
    pub(in crate::gateway) landing: AttemptResult,
    /// Of each choice that is delivered; of everything that ran, where nothing is.
    pub(in crate::gateway) progress: Vec<ChoiceProgress>,
    /// What each of them took, answers that were not chosen included.
    pub(in crate::gateway) spent: Vec<ChoiceUsage>,
    /// How each was chosen, where there were several.
    pub(in crate::gateway) tallies: Vec<VoteTally>,
}

impl<'p> RequestOutcome<'p> {
    fn of(offer: &'p Offer, landing: AttemptResult, progress: Vec<ChoiceProgress>) -> RequestOutcome<'p> {
        let spent = spent_by_choice(&progress);
        RequestOutcome { offer, landing, progress, spent, tallies: Vec::new() }
    }
}

/// What may come of asking a stronger model.
const ANSWERED: &str = "answered";
const KEPT: &str = "kept";
pub(in crate::gateway) const OUTCOMES: [&str; 2] = [ANSWERED, KEPT];

impl RunningRequest {
    /// Chooses among samples, goes on to the second step of a cascade where they are in doubt, and delivers.
    pub(in crate::gateway) async fn conclude<'p>(
        &self,
        offer: &'p Offer,
        landing: AttemptResult,
        progress: Vec<ChoiceProgress>,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> RequestOutcome<'p> {
        let AttemptResult::Sampled(sampled) = landing else {
            return RequestOutcome::of(offer, landing, progress);
        };
        sampled.iter().for_each(|sampled| self.count_samples(offer, sampled));
        let Some(mut chosen) =
            sampled.iter().map(SelectedAnswer::of).collect::<Option<Vec<SelectedAnswer>>>()
        else {
            // A choice without a sample that came to its end has failed, and is no `Sampled`.
            return RequestOutcome::of(offer, AttemptResult::HungUp, progress);
        };
        if let Some(second) = offer.escalate.as_deref().filter(|_| self.is_doubtful(&chosen)) {
            let flown = self.escalate(offer, second, &progress, books, reports).await;
            let outcome = if flown.is_some() { ANSWERED } else { KEPT };
            self.parts.metrics.votes.cascades.with_label_values(&[&*offer.model, outcome]).inc();
            if let Some(flown) = flown {
                return flown;
            }
        }
        let spent = spent_by_choice(&progress);
        for (chosen, sampled) in chosen.iter_mut().zip(&sampled) {
            self.ask_judge(chosen, sampled, (offer, &spent), books, reports).await;
        }
        self.deliver(offer, chosen, progress, reports).await
    }

    fn is_doubtful(&self, chosen: &[SelectedAnswer]) -> bool {
        let floor = self.policy.verifier.as_ref().map(|verifier| verifier.floor);
        let budget = &self.request.budget;
        // Who says where an answer is to end is not helped by another that ends there.
        let is_limited = budget.solution.is_some() || budget.total.is_some();
        chosen.iter().any(|chosen| chosen.is_doubtful(floor, is_limited))
    }

    /// Runs the second step of a cascade, whose worst case was set aside with the first's. Nothing where it came to no
    /// answer: what it took is booked then, and the first step's answer is delivered after all.
    async fn escalate<'p>(
        &self,
        first: &'p Offer,
        second: &'p Offer,
        progress: &[ChoiceProgress],
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> Option<RequestOutcome<'p>> {
        let (before, spent) = (books.undelivered(), spent_by_choice(progress));
        if !books.switch_offer(second, self.bill(first, &spent)).await {
            return None;
        }
        let (mut made, mut growth) = self.prepare(second);
        let (landing, said) = match self.acquire(&mut Attempts::only(second), reports).await {
            Ok(seat) => self.run_buffered(&seat, second, (&mut made, &mut growth), books, reports).await,
            Err(landing) => {
                made.clear();
                (landing, Vec::new())
            }
        };
        match landing {
            AttemptResult::Finished(finishes) => {
                for report in said {
                    if !matches!(timeout_at(self.deadline, reports.send(report)).await, Ok(Ok(()))) {
                        return Some(RequestOutcome::of(second, AttemptResult::HungUp, made));
                    }
                }
                Some(RequestOutcome::of(second, AttemptResult::Finished(finishes), made))
            }
            AttemptResult::Failed(failure) => {
                tracing::warn!(request = %self.id, model = %second.model, %failure, "the first answer is delivered after all");
                let lost = spent_by_choice(&made);
                books.revert_to(first, before, self.bill(second, &lost)).await;
                None
            }
            AttemptResult::Sampled(sampled) => {
                sampled.iter().for_each(|sampled| self.count_samples(second, sampled));
                let chosen =
                    sampled.iter().map(SelectedAnswer::of).collect::<Option<Vec<SelectedAnswer>>>()?;
                Some(self.deliver(second, chosen, made, reports).await)
            }
            landing => Some(RequestOutcome::of(second, landing, made)),
        }
    }

    /// Runs an offer whose answer is shown when it is whole: where it fails, another one is, and the two must not mix.
    async fn run_buffered(
        &self,
        seat: &Permit,
        offer: &Offer,
        made: (&mut Vec<ChoiceProgress>, &mut Option<ReservationGrowth>),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> (AttemptResult, Vec<RequestUpdate>) {
        let (own, mut kept) = mpsc::channel(self.parts.settings.events_max);
        let collect = async {
            let mut said = Vec::new();
            while let Some(report) = kept.recv().await {
                said.push(report);
            }
            said
        };
        let run = async move { self.run(seat, offer, made, books, &own).await };
        tokio::select! {
            biased;
            () = reports.closed() => (AttemptResult::HungUp, Vec::new()),
            ended = futures_util::future::join(run, collect) => ended,
        }
    }

    /// What the choice says of the answer, for those who learn from it: a verifier's score, or how many agree.
    fn record_answer_signal(&self, chosen: &SelectedAnswer) {
        match chosen.sample.score {
            Some(score) => self.decision_context.add_signal(VerdictSource::Verifier, score, SCORED),
            None if chosen.tally.agreed > 1 => {
                let share = {
                    let ended = chosen.tally.asked.saturating_sub(chosen.tally.cancelled);
                    f64::from(chosen.tally.agreed) / f64::from(ended.max(1))
                };
                self.decision_context.add_signal(VerdictSource::Vote, Chance::new(share), AGREED);
            }
            None => {}
        }
    }

    /// Shows the caller what was chosen.
    async fn deliver<'p>(
        &self,
        offer: &'p Offer,
        chosen: Vec<SelectedAnswer>,
        progress: Vec<ChoiceProgress>,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> RequestOutcome<'p> {
        let now = tokio::time::Instant::now();
        let each = usize::try_from(offer.samples.max(1)).unwrap_or(usize::MAX);
        let mut flown = RequestOutcome {
            offer,
            landing: AttemptResult::HungUp,
            progress: Vec::new(),
            spent: Vec::new(),
            tallies: Vec::new(),
        };
        let (mut finishes, mut left) = (Vec::new(), false);
        for ((index, chosen), samples) in (0..).zip(chosen).zip(progress.chunks(each)) {
            let at = usize::try_from(chosen.sample.index).unwrap_or(usize::MAX);
            self.record_answer_signal(&chosen);
            flown.spent.push(sum_samples(samples, chosen.sample.index));
            flown.progress.extend(samples.get(at).map(|sample| sample.clone().shown_at(now)));
            flown.tallies.push(chosen.tally);
            finishes.push(chosen.sample.finish);
            for event in chosen.sample.events {
                let sent = timeout_at(self.deadline, reports.send(RequestUpdate::Event(index, event))).await;
                left |= !matches!(sent, Ok(Ok(())));
            }
        }
        if !left {
            flown.landing = AttemptResult::Finished(finishes);
        }
        flown
    }
}
