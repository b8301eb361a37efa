//! A second attempt beside one that says nothing for long, on another target of the same model. Whichever says something
//! first is the answer; the other one is let go at once, and what it took is paid.
//!
//! The worst cases of both are set aside before the second is sent, and it counts as a retry of its target. Where money,
//! places or retries lack, there is none, and the first goes on alone.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

use crate::backend::fleet::Seat;
use crate::catalog::Offer;
use crate::execute::Progress;
use crate::metrics::Metrics;

use super::Report;
use super::attempts::Attempts;
use super::books::Books;
use super::flying::{Flying, taken};
use super::growth::Growth;
use super::landing::Landing;
use super::runner::{News, Runner};

/// The second attempt is the answer.
const WON: &str = "won";
/// It was made, and is not.
const LOST: &str = "lost";
/// It was due, and was not made.
const REFUSED: &str = "refused";

/// Begins the count of what becomes of a model's second attempts.
pub(super) fn begin(metrics: &Metrics, model: &str) {
    for outcome in [WON, LOST, REFUSED] {
        metrics.backends.hedges.with_label_values(&[model, outcome]);
    }
}

/// What became of a second attempt that was due.
enum Second {
    /// It can be made there.
    On(Seat),
    /// It cannot.
    Refused,
    /// The first is not silent any more.
    Late(News),
}

/// Which of two attempts goes on, and what comes of it next, where that is known.
enum Ahead {
    First(Option<News>),
    Second(Option<News>),
}

impl Flying {
    /// Makes one attempt on that seat, or two of which one goes on. Says how it ended and where; what it took is in
    /// `progress`, and what the other took is booked.
    pub(super) async fn attempt(
        &self,
        seat: Seat,
        attempts: &mut Attempts<'_>,
        (progress, growth): (&mut Vec<Progress>, &mut Option<Growth>),
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> (Landing, Seat) {
        let offer = attempts.offer;
        let after = self.fleet(offer).ok().and_then(|fleet| fleet.hedge_after());
        match after.filter(|_| !self.votes(offer)) {
            Some(after) => self.hedged(seat, after, attempts, (progress, growth), books, reports).await,
            None => (self.run(&seat, offer, (progress, growth), books, reports).await, seat),
        }
    }

    /// Makes one attempt, and a second beside it where that is silent for so long.
    async fn hedged(
        &self,
        seat: Seat,
        after: Duration,
        attempts: &mut Attempts<'_>,
        (progress, growth): (&mut Vec<Progress>, &mut Option<Growth>),
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> (Landing, Seat) {
        let offer = attempts.offer;
        let mut first = Runner::new(self, &seat, offer, progress);
        let due = match timeout(after, self.news(&mut first, offer, (growth, books), reports)).await {
            Ok(news) => Second::Late(news),
            Err(_) => self.second(&mut first, attempts, books, reports).await,
        };
        let other = match due {
            Second::On(other) => other,
            Second::Refused => return (self.show(first, None, offer, (growth, books), reports).await, seat),
            Second::Late(news) => {
                return (self.show(first, Some(news), offer, (growth, books), reports).await, seat);
            }
        };
        attempts.sets_out(&other);
        let (mut made, mut second_growth) = self.prepare(offer);
        let mut second = Runner::new(self, &other, offer, &mut made);
        let both = ((&mut first, &seat), (&mut second, &other));
        match self.ahead(both, offer, books, reports).await {
            Ahead::First(news) => {
                drop((second, other));
                self.let_go(offer, &made, books);
                attempts.stays_on(&seat);
                self.goes_to(&seat, attempts.offer);
                self.count_hedge(offer, LOST);
                (self.show(first, news, offer, (growth, books), reports).await, seat)
            }
            Ahead::Second(news) => {
                drop((first, seat));
                self.let_go(offer, progress, books);
                let landing = self.show(second, news, offer, (&mut second_growth, books), reports).await;
                let lost = matches!(landing, Landing::Failed(_));
                self.count_hedge(offer, if lost { LOST } else { WON });
                *progress = made;
                (landing, other)
            }
        }
    }

    /// What comes of an attempt next; its caller's leaving is its end.
    async fn news(
        &self,
        runner: &mut Runner<'_>,
        offer: &Offer,
        (growth, books): (&mut Option<Growth>, &mut Books),
        reports: &mpsc::Sender<Report>,
    ) -> News {
        let meters = runner.meters.clone();
        tokio::select! {
            biased;
            () = reports.closed() => News::Ended(Landing::HungUp),
            news = runner.next() => news,
            never = self.beside(offer, &meters, growth.as_mut(), books) => match never {},
        }
    }

    /// A place for a second attempt, whose worst case is set aside beside the first's while that runs on.
    async fn second(
        &self,
        first: &mut Runner<'_>,
        attempts: &Attempts<'_>,
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Second {
        let offer = attempts.offer;
        let Some(seat) = self.seat_beside(attempts) else {
            self.count_hedge(offer, REFUSED);
            return Second::Refused;
        };
        let covered = tokio::select! {
            biased;
            () = reports.closed() => return Second::Late(News::Ended(Landing::HungUp)),
            news = first.next() => return Second::Late(news),
            covered = books.cover_two(offer) => covered,
        };
        if !covered {
            self.count_hedge(offer, REFUSED);
            return Second::Refused;
        }
        let (model, target) = (&*offer.model, &**seat.target());
        tracing::info!(request = %self.id, model, target, "asked beside one that is silent");
        Second::On(seat)
    }

    fn seat_beside(&self, attempts: &Attempts<'_>) -> Option<Seat> {
        let fleet = self.fleet(attempts.offer).ok()?;
        let been = attempts.been_below(fleet.settings().retry.attempts_max)?;
        fleet.board_beside(&self.want(attempts.offer), been)
    }

    /// Waits until one of two attempts says something or ends. One that fails leaves the answer to the other.
    async fn ahead(
        &self,
        ((first, seat), (second, other)): ((&mut Runner<'_>, &Seat), (&mut Runner<'_>, &Seat)),
        offer: &Offer,
        books: &mut Books,
        reports: &mpsc::Sender<Report>,
    ) -> Ahead {
        let meters = [&*first.meters, &*second.meters].concat();
        let (is_second, news) = tokio::select! {
            biased;
            () = reports.closed() => (false, News::Ended(Landing::HungUp)),
            news = first.next() => (false, news),
            news = second.next() => (true, news),
            never = self.beside(offer, &meters, None, books) => match never {},
        };
        match news {
            News::Ended(Landing::Failed(failure)) => {
                let failed = if is_second { other } else { seat };
                self.count(offer, failed, &failure);
                if is_second { Ahead::First(None) } else { Ahead::Second(None) }
            }
            news if is_second => Ahead::Second(Some(news)),
            news => Ahead::First(Some(news)),
        }
    }

    /// Shows everything that an attempt says, until it ends or its caller is gone.
    async fn show(
        &self,
        mut runner: Runner<'_>,
        mut news: Option<News>,
        offer: &Offer,
        (growth, books): (&mut Option<Growth>, &mut Books),
        reports: &mpsc::Sender<Report>,
    ) -> Landing {
        let meters = runner.meters.clone();
        let shown = async {
            loop {
                let next = match news.take() {
                    Some(news) => news,
                    None => runner.next().await,
                };
                match next {
                    News::Ended(landing) => return landing,
                    // A caller who takes nothing until the deadline has left.
                    News::Said(report) => match timeout_at(self.deadline, reports.send(report)).await {
                        Ok(Ok(())) => {}
                        _ => return Landing::HungUp,
                    },
                }
            }
        };
        tokio::select! {
            biased;
            () = reports.closed() => Landing::HungUp,
            landing = shown => landing,
            never = self.beside(offer, &meters, growth.as_mut(), books) => match never {},
        }
    }

    /// Books an attempt that does not go on.
    fn let_go(&self, offer: &Offer, progress: &[Progress], books: &mut Books) {
        let spent = taken(progress);
        books.let_go(self.bill(offer, &spent));
    }

    fn count_hedge(&self, offer: &Offer, outcome: &str) {
        self.parts.metrics.backends.hedges.with_label_values(&[&*offer.model, outcome]).inc();
    }
}
