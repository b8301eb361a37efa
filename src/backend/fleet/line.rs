//! The line of those who wait for a seat.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::backend::{Failure, Fault};

use super::fleet::State;
use super::queue::Pushed;
use super::roster::{Answer, Need, Roster};
use super::{Fleet, Seat, Want};

/// Somebody who waits for a seat.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) want: Want,
    pub(super) tell: oneshot::Sender<Told>,
}

/// What comes of waiting.
pub(super) type Told = Result<Seat, Failure>;

/// What is to be told to those who waited, once the lock is let go: a seat that nobody takes gives its place back, and
/// needs the lock for it.
pub(super) type News = Vec<(oneshot::Sender<Told>, Told)>;

/// What came of wanting a seat.
pub(super) enum Joined {
    /// One was free.
    Seated(Seat),
    /// It will be told.
    InLine(oneshot::Receiver<Told>),
}

/// Tells it. A seat that nobody takes gives its place back.
pub(super) fn tell(news: News) {
    for (tell, told) in news {
        let _ = tell.send(told);
    }
}

impl Fleet {
    /// Changes what is known, and lets those go who wait and now can.
    pub(super) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Roster, Instant) -> T) -> T {
        let now = Instant::now();
        let mut news = News::new();
        let mut state = self.lock();
        let changed = change(&mut state.roster, now);
        self.advance(&mut state, now, &mut news);
        drop(state);
        tell(news);
        changed
    }

    fn advance(self: &Arc<Self>, state: &mut State, now: Instant, news: &mut News) {
        let mut late = Vec::new();
        while let Some(first) = state.queue.first(now, &mut late) {
            let want = first.want;
            if first.tell.is_closed() {
                state.queue.pop();
                continue;
            }
            let Some(seated) = self.seated(&mut state.roster, &want, now) else { break };
            news.extend(state.queue.pop().map(|waiter| (waiter.tell, seated)));
        }
        news.extend(
            late.into_iter().map(|waiter| (waiter.tell, Err(self.shed("late", Duration::from_secs(1))))),
        );
    }

    /// A seat, or why there is none; nothing where all places are taken.
    fn seated(self: &Arc<Self>, roster: &mut Roster, want: &Want, now: Instant) -> Option<Told> {
        let need = Need { beginning: want.beginning, calls: want.calls, again: false, not: &[] };
        match roster.find(&need, now) {
            Answer::To { place, probe } => Some(Ok(Seat::new(self.clone(), place, want, probe))),
            Answer::Resting(wait) => {
                let wait = jittered(wait, roster.chance() / 10.0);
                Some(Err(self.refusal(
                    "resting",
                    "every target of the model is left alone for a while",
                    wait,
                )))
            }
            Answer::Full | Answer::Spent => None,
        }
    }

    /// A seat, or a place in the line. Nobody overtakes those whose turn it is.
    pub(super) fn join(
        self: &Arc<Self>,
        want: Want,
        until: Instant,
        now: Instant,
        news: &mut News,
    ) -> Result<Joined, Failure> {
        let mut state = self.lock();
        self.advance(&mut state, now, news);
        if let Some(seated) = self.seated_next(&mut state, &want, now) {
            return seated.map(Joined::Seated);
        }
        // Nobody is refused for the sake of a trial.
        if self.is_pressed(&state, &want, until, now) && state.roster.make_way(now) {
            self.advance(&mut state, now, news);
            if let Some(seated) = self.seated_next(&mut state, &want, now) {
                return seated.map(Joined::Seated);
            }
        }
        self.line_up(&mut state, want, until, now, news).map(Joined::InLine)
    }

    /// A seat for who comes now, where nobody else's turn it is.
    fn seated_next(self: &Arc<Self>, state: &mut State, want: &Want, now: Instant) -> Option<Told> {
        if state.queue.calls_before(want.priority, want.party) > 0 {
            return None;
        }
        let seated = self.seated(&mut state.roster, want, now)?;
        state.queue.passed(want.priority, want.party, want.calls);
        Some(seated)
    }

    /// True where the line is so long that somebody may be refused soon.
    fn is_pressed(&self, state: &State, want: &Want, until: Instant, now: Instant) -> bool {
        let is_half_full = state.queue.len() * 2 >= self.settings().queue_max;
        is_half_full || wait_of(state, want, now) > until.saturating_duration_since(now)
    }

    /// Waits in line, unless that is hopeless.
    fn line_up(
        &self,
        state: &mut State,
        want: Want,
        until: Instant,
        now: Instant,
        news: &mut News,
    ) -> Result<oneshot::Receiver<Told>, Failure> {
        state.queue.retain(|waiter| !waiter.tell.is_closed());
        let wait = wait_of(state, &want, now);
        let chance = state.roster.chance();
        if wait > until.saturating_duration_since(now) {
            return Err(self.shed("hopeless", jittered(wait.min(self.settings().wait_max), chance)));
        }
        let (tell, answered) = oneshot::channel();
        match state.queue.push(want.priority, want.party, until, want.calls, Waiter { want, tell }) {
            Pushed::In => Ok(answered),
            Pushed::InPlaceOf(other) => {
                news.push((
                    other.tell,
                    Err(self.shed("evicted", jittered(Duration::from_secs(1), 2.0 * chance))),
                ));
                Ok(answered)
            }
            Pushed::Full(_) => {
                let wait = wait.clamp(Duration::from_secs(1), self.settings().wait_max);
                Err(self.shed("full", jittered(wait, chance)))
            }
        }
    }

    pub(super) fn shed(&self, why: &'static str, retry_after: Duration) -> Failure {
        self.refusal(why, "too many requests wait for the model", retry_after)
    }

    fn refusal(&self, why: &'static str, message: &str, retry_after: Duration) -> Failure {
        self.metrics.backends.sheds.with_label_values(&[&*self.model, why]).inc();
        let failure = Failure::new(Fault::Overload, message).unsent().elsewhere();
        Failure { retry_after: Some(retry_after), ..failure }
    }
}

/// How long a request waits until it has its place.
fn wait_of(state: &State, want: &Want, now: Instant) -> Duration {
    let before = state.queue.calls_before(want.priority, want.party).saturating_add(want.calls);
    Duration::try_from_secs_f64(state.roster.wait_behind(before, now)).unwrap_or(Duration::MAX)
}

/// Why there may be no place, in the words of metrics.
pub(super) const SHEDS: [&str; 5] = ["late", "resting", "hopeless", "evicted", "full"];

/// A time and a share of it more, so that those who are told it do not come back at once.
pub(super) fn jittered(time: Duration, share: f64) -> Duration {
    time.saturating_add(Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(Duration::ZERO))
}
