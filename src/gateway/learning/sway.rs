//! How much what one account says of answers may weigh.
//!
//! A word on an answer moves what is believed for everybody. Who has asked much may say a lot at once, of all that is still
//! remembered, and nobody can tell whether it is true; so what one account says counts in full only up to so much in an
//! hour. What comes beyond that is written down and not learned. As long as a process serves one account alone, there is
//! nobody else whom that could concern, and nothing is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::units::{AccountId, Timestamp};

const WINDOW: Duration = Duration::from_secs(3600);
/// Of what an account may say, one part in so many counts in the alarm that a model has changed. At the usual measure that is
/// half an alarm: one account alone raises none within an hour.
const ALARM_PART: f64 = 50.0;
/// Accounts that are remembered; those whose window is over go first, and all of them where none is.
const ACCOUNTS_MAX: usize = 4096;

/// What each account has said lately. Its lock is held for moments.
#[derive(Debug)]
pub(super) struct Sway {
    /// What an account's words may weigh in a window.
    most: f64,
    served: Mutex<Served>,
}

#[derive(Debug, Default)]
struct Served {
    first: Option<AccountId>,
    /// Whether there was another one since.
    has_others: bool,
    windows: HashMap<AccountId, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Timestamp,
    said: Weight,
}

/// What a word counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weight {
    /// For what is believed, as a share of a person's plain word.
    pub(super) learned: f64,
    /// For the alarm that a model has changed.
    pub(super) alarm: f64,
}

impl Sway {
    pub(super) fn new(most: u32) -> Sway {
        Sway { most: f64::from(most), served: Mutex::default() }
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of this account has landed.
    pub(super) fn serves(&self, account: &AccountId) {
        let mut served = self.served();
        if !served.has_others {
            let first = served.first.get_or_insert_with(|| account.clone());
            served.has_others = first != account;
        }
    }

    /// What is left for a word of this account that would count `weight`.
    pub(super) fn take(&self, account: &AccountId, weight: f64, now: Timestamp) -> Weight {
        let mut served = self.served();
        let has_others = served.has_others;
        let said = &mut served.window(account, now).said;
        let part = |said: f64, most: f64| if has_others { weight.min(most - said).max(0.0) } else { weight };
        let counts = Weight {
            learned: part(said.learned, self.most),
            alarm: part(said.alarm, self.most / ALARM_PART),
        };
        (said.learned, said.alarm) = (said.learned + counts.learned, said.alarm + counts.alarm);
        counts
    }
}

impl Served {
    fn window(&mut self, account: &AccountId, now: Timestamp) -> &mut Window {
        if !self.windows.contains_key(account) && self.windows.len() >= ACCOUNTS_MAX {
            self.windows.retain(|_, window| now < window.began + WINDOW);
            if self.windows.len() >= ACCOUNTS_MAX {
                self.windows.clear();
            }
        }
        let fresh = Window { began: now, said: Weight { learned: 0.0, alarm: 0.0 } };
        let window = self.windows.entry(account.clone()).or_insert(fresh);
        if now >= window.began + WINDOW {
            *window = fresh;
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Demand, Source, Verdict};
    use crate::gateway::learning::{LearnSettings, lesson};
    use crate::history::{Story, conformance};
    use crate::learn::{Book, Settings};
    use crate::units::Chance;

    /// A gateway's sway by the usual measure, after requests of these accounts.
    fn sway(accounts: &[&str]) -> Sway {
        let sway = Sway::new(LearnSettings::default().feedback_max);
        accounts.iter().for_each(|account| sway.serves(&AccountId::new(*account)));
        sway
    }

    fn taken(sway: &Sway, account: &str, words: usize, at: i64) -> Weight {
        let account = AccountId::new(account);
        let each = (0..words).map(|_| sway.take(&account, 1.0, Timestamp(at)));
        each.fold(Weight { learned: 0.0, alarm: 0.0 }, |sum, one| Weight {
            learned: sum.learned + one.learned,
            alarm: sum.alarm + one.alarm,
        })
    }

    #[test]
    fn an_account_among_others_has_its_say_each_hour_and_no_more() {
        let sway = sway(&["one", "other"]);
        let all = Weight { learned: 200.0, alarm: 4.0 };
        assert_eq!(taken(&sway, "one", 10_000, 0), all);
        assert_eq!(taken(&sway, "one", 10_000, 3_599_999), Weight { learned: 0.0, alarm: 0.0 });
        assert_eq!(taken(&sway, "other", 10_000, 3_599_999), all, "what one says is not taken from others");
        assert_eq!(taken(&sway, "one", 10_000, 3_600_000), all, "another hour");
    }

    #[test]
    fn who_is_served_alone_may_say_what_it_wants_until_another_comes() {
        let sway = sway(&["one", "one"]);
        let all = Weight { learned: 1000.0, alarm: 1000.0 };
        assert_eq!(taken(&sway, "one", 1000, 0), all);
        sway.serves(&AccountId::new("other"));
        assert_eq!(taken(&sway, "one", 1000, 1), Weight { learned: 0.0, alarm: 0.0 });
    }

    #[test]
    fn however_many_accounts_there_are_no_more_are_remembered() {
        let sway = sway(&["one", "other"]);
        for at in 0..2 * ACCOUNTS_MAX {
            taken(&sway, &format!("a{at}"), 1, 0);
        }
        assert!(sway.served().windows.len() <= ACCOUNTS_MAX);
    }

    /// What a book believes of the model of a story.
    fn believed(book: &Book, story: &Story) -> f64 {
        let decision = &story.decision;
        let models = decision.candidates.iter().map(|each| (each.model.clone(), each.prior.clone()));
        let mut demand = Demand {
            class: decision.class,
            difficulty: decision.difficulty,
            confidence: decision.confidence,
            models: models.collect(),
        };
        book.adjust(&mut demand);
        demand.models[&story.outcome.model].done.get()
    }

    /// How far a model's standing falls, on which there are 2,000 words of many, when one account says a great deal against
    /// it at once.
    fn fall(sway: &Sway) -> f64 {
        let story = conformance::story(1);
        let say = |book: &mut Book, success: f64, weight: Weight| {
            let verdict = Verdict {
                success: Chance::new(success),
                weight: weight.learned,
                ..conformance::verdict(&story, Source::Feedback, 0.0)
            };
            let lesson = lesson::of_verdict(&story, &verdict).unwrap();
            book.judge(&crate::learn::Lesson { alarm: weight.alarm, ..lesson });
        };
        let mut book = Book::new(Settings::default());
        (0..2000).for_each(|_| say(&mut book, 1.0, Weight { learned: 1.0, alarm: 1.0 }));
        let before = believed(&book, &story);
        let one = AccountId::new("one");
        (0..5000).for_each(|_| say(&mut book, 0.0, sway.take(&one, 1.0, Timestamp(0))));
        before - believed(&book, &story)
    }

    #[test]
    fn a_flood_of_one_account_moves_a_standing_by_its_say_at_most() {
        // 200 words among 2,200, and no alarm.
        let (bounded, free) = (fall(&sway(&["one", "other"])), fall(&sway(&["one"])));
        assert!(bounded < 0.12, "{bounded}");
        assert!(free > 0.5, "{free}: there would be nothing to bound");
    }
}
