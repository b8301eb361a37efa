//! Learning and pacing, as the gateway does them, in virtual time.

use crate::catalog::Demand;
use crate::learn::{Book, Course, Lesson, Pace, PaceSettings, Settings};
use crate::ledger::Line;
use crate::units::{Amount, Money, Timestamp};

/// What one policy has learned, and how it keeps to each tenant's budget.
#[derive(Debug)]
pub(super) struct Learner {
    book: Book,
    paces: Vec<Pace>,
    settings: PaceSettings,
}

impl Learner {
    /// Nothing learned yet.
    pub(super) fn new(tenants: usize) -> Learner {
        Learner {
            book: Book::new(Settings::default()),
            paces: vec![Pace::default(); tenants],
            settings: PaceSettings::default(),
        }
    }

    /// Turns what was told into what is believed.
    pub(super) fn adjust(&self, demand: &mut Demand) {
        self.book.adjust(demand);
    }

    /// What a tenant's dollar counts.
    pub(super) fn price(&self, tenant: usize) -> f64 {
        self.paces[tenant].price()
    }

    /// Takes in an outcome.
    pub(super) fn observe(&mut self, lesson: &Lesson) {
        self.book.observe(lesson);
    }

    /// A tenant has spent something; these are its limits.
    pub(super) fn settle(&mut self, tenant: usize, now: Timestamp, spent: Money, lines: &[Line]) {
        let limits = lines.iter().filter_map(|line| match (line.left, line.resets_at) {
            (Amount::Money(left), Some(end)) => {
                let length = i64::try_from(line.limit.window.length().as_millis()).unwrap_or(i64::MAX);
                Some(Course { start: Timestamp(end.0.saturating_sub(length)), end, left })
            }
            _ => None,
        });
        let rate = |course: &Course| (course.left.as_dollars(), (course.end.0 - now.0).max(1));
        let tightest = limits.min_by(|one, other| {
            let ((a, s), (b, t)) = (rate(one), rate(other));
            (a * span(t)).total_cmp(&(b * span(s)))
        });
        if let Some(course) = tightest {
            // Nobody waits here between admission and settlement: what is expected is what was spent.
            self.paces[tenant].expect(now, spent, &course, &self.settings);
            self.paces[tenant].settle(spent, spent, &self.settings);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a span of time, for statistics")]
fn span(milliseconds: i64) -> f64 {
    milliseconds as f64
}
