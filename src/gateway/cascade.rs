//! The end of a run: which answers are delivered, and whether a stronger model is asked first.

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::backend::fleet::Seat;
use crate::catalog::{Offer, Source, Spent};
use crate::execute::Progress;
use crate::units::Chance;

use super::attempts::Attempts;
use super::books::Books;
use super::choosing::Chosen;
use super::flying::{Flying, taken};
use super::growth::Growth;
use super::landing::Landing;
use super::voting::account;
use super::{Report, Tally};

/// What a verifier's score counts beside a person's word, and what the agreement of several answers does.
const SCORED: f64 = 0.5;
const AGREED: f64 = 0.2;

/// A run that came to its end, whatever that is.
pub(super) struct Flown<'p> {
    pub(super) offer: &'p Offer,
    pub(super) landing: Landing,
    /// Of each choice that is delivered; of everything that ran, where nothing is.
    pub(super) progress: Vec<Progress>,
    /// What each of them took, answers that were not chosen included.
    pub(super) spent: Vec<Spent>,
    /// How each was chosen, where there were several.
    pub(super) tallies: Vec<Tally>,
}

impl<'p> Flown<'p> {
    fn of(offer: &'p Offer, landing: Landing, progress: Vec<Progress>) -> Flown<'p> {
        let spent = taken(&progress);
        Flown { offer, landing, progress, spent, tallies: Vec::new() }
    }
}

/// What may come of asking a stronger model.
const ANSWERED: &str = "answered";
const KEPT: &str = "kept";
pub(super) const OUTCOMES: [&str; 2] = [ANSWERED, KEPT];

impl Flying {
    /// Chooses among samples, goes on to the second step of a cascade where they are in doubt, and delivers.
    pub(super) async fn conclude<'p>(
        &self,
        offer: &'p Offer,
        landing: Landing,
        progress: Vec<Progress>,
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Flown<'p> {
        let Landing::Sampled(sampled) = landing else { return Flown::of(offer, landing, progress) };
        sampled.iter().for_each(|sampled| self.tell(offer, sampled));
        let Some(mut chosen) = sampled.iter().map(Chosen::of).collect::<Option<Vec<Chosen>>>() else {
            // A choice without a sample that came to its end has failed, and is no `Sampled`.
            return Flown::of(offer, Landing::HungUp, progress);
        };
        if let Some(second) = offer.escalate.as_deref().filter(|_| self.is_doubtful(&chosen)) {
            let flown = self.go_on(offer, second, &progress, books, reports).await;
            let outcome = if flown.is_some() { ANSWERED } else { KEPT };
            self.parts.metrics.votes.cascades.with_label_values(&[&*offer.model, outcome]).inc();
            if let Some(flown) = flown {
                return flown;
            }
        }
        let spent = taken(&progress);
        for (chosen, sampled) in chosen.iter_mut().zip(&sampled) {
            self.reconsider(chosen, sampled, (offer, &spent), books, reports).await;
        }
        self.deliver(offer, chosen, progress, reports).await
    }

    fn is_doubtful(&self, chosen: &[Chosen]) -> bool {
        let floor = self.policy.verifier.as_ref().map(|verifier| verifier.floor);
        let budget = &self.request.budget;
        // Who says where an answer is to end is not helped by another that ends there.
        let is_limited = budget.solution.is_some() || budget.total.is_some();
        chosen.iter().any(|chosen| chosen.is_doubtful(floor, is_limited))
    }

    /// Runs the second step of a cascade, whose worst case was set aside with the first's. Nothing where it came to no
    /// answer: what it took is booked then, and the first step's answer is delivered after all.
    async fn go_on<'p>(
        &self,
        first: &'p Offer,
        second: &'p Offer,
        progress: &[Progress],
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Option<Flown<'p>> {
        let (before, spent) = (books.lost(), taken(progress));
        if !books.go_on_to(second, self.bill(first, &spent)).await {
            return None;
        }
        let (mut made, mut growth) = self.prepare(second);
        let (landing, said) = match self.board(&mut Attempts::only(second), reports).await {
            Ok(seat) => self.run_unseen(&seat, second, (&mut made, &mut growth), books, reports).await,
            Err(landing) => {
                made.clear();
                (landing, Vec::new())
            }
        };
        match landing {
            Landing::Finished(finishes) => {
                for report in said {
                    if !matches!(timeout_at(self.deadline, reports.send(report)).await, Ok(Ok(()))) {
                        return Some(Flown::of(second, Landing::HungUp, made));
                    }
                }
                Some(Flown::of(second, Landing::Finished(finishes), made))
            }
            Landing::Failed(failure) => {
                tracing::warn!(request = %self.id, model = %second.model, %failure, "the first answer is delivered after all");
                let lost = taken(&made);
                books.return_to(first, before, self.bill(second, &lost)).await;
                None
            }
            Landing::Sampled(sampled) => {
                sampled.iter().for_each(|sampled| self.tell(second, sampled));
                let chosen = sampled.iter().map(Chosen::of).collect::<Option<Vec<Chosen>>>()?;
                Some(self.deliver(second, chosen, made, reports).await)
            }
            landing => Some(Flown::of(second, landing, made)),
        }
    }

    /// Runs an offer whose answer is shown when it is whole: where it fails, another one is, and the two must not mix.
    async fn run_unseen(
        &self,
        seat: &Seat,
        offer: &Offer,
        made: (&mut Vec<Progress>, &mut Option<Growth>),
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> (Landing, Vec<Report>) {
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
            () = reports.closed() => (Landing::HungUp, Vec::new()),
            ended = futures_util::future::join(run, collect) => ended,
        }
    }

    /// What the choice says of the answer, for those who learn from it: a verifier's score, or how many agree.
    fn testify(&self, chosen: &Chosen) {
        match chosen.sample.score {
            Some(score) => self.grounds.say(Source::Verifier, score, SCORED),
            None if chosen.tally.agreed > 1 => {
                let share = {
                    let ended = chosen.tally.asked.saturating_sub(chosen.tally.cancelled);
                    f64::from(chosen.tally.agreed) / f64::from(ended.max(1))
                };
                self.grounds.say(Source::Vote, Chance::new(share), AGREED);
            }
            None => {}
        }
    }

    /// Shows the caller what was chosen.
    async fn deliver<'p>(
        &self,
        offer: &'p Offer,
        chosen: Vec<Chosen>,
        progress: Vec<Progress>,
        reports: &mpsc::Sender<Report>,
    ) -> Flown<'p> {
        let now = tokio::time::Instant::now();
        let each = usize::try_from(offer.samples.max(1)).unwrap_or(usize::MAX);
        let mut flown = Flown {
            offer,
            landing: Landing::HungUp,
            progress: Vec::new(),
            spent: Vec::new(),
            tallies: Vec::new(),
        };
        let (mut finishes, mut left) = (Vec::new(), false);
        for ((index, chosen), samples) in (0..).zip(chosen).zip(progress.chunks(each)) {
            let at = usize::try_from(chosen.sample.index).unwrap_or(usize::MAX);
            self.testify(&chosen);
            flown.spent.push(account(samples, chosen.sample.index));
            flown.progress.extend(samples.get(at).map(|sample| sample.clone().shown(now)));
            flown.tallies.push(chosen.tally);
            finishes.push(chosen.sample.finish);
            for event in chosen.sample.events {
                let sent = timeout_at(self.deadline, reports.send(Report::Event(index, event))).await;
                left |= !matches!(sent, Ok(Ok(())));
            }
        }
        if !left {
            flown.landing = Landing::Finished(finishes);
        }
        flown
    }
}
