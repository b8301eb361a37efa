//! Limits how much one account may change what is learned for everybody.
//!
//! An account has influence in two ways: by its verdicts on answers, and by signals that its requests leave (whether an
//! answer fits a schema that the account wrote, ends within its budgets, or is asked for again). An account with many
//! requests can give many verdicts at once. An account that writes the schemas decides what fits them. Nobody can tell
//! whether any of it is honest. So each of the two counts in full only up to a limit for each hour. They are counted
//! separately, since the verdicts of a caller whose answers all have schemas must still count. Beyond the limit they are
//! stored and not learned from. Verdicts of an operator's verifier are not limited.
//!
//! If a gateway serves a single key, or nobody but this machine without any, nobody else is affected, and nothing is limited.
//! The verdicts of a key that the operator trusts are not limited either; the signals of its requests are.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use stint_types::tenant::{FeedbackTrust, Tenant};
use stint_types::units::{AccountId, Timestamp};

use super::windows::AccountWindows;

/// One part in so many of an account's influence counts towards the alarm that a model has changed, for its verdicts and
/// for its signals. With the default limit that is a quarter of an alarm each: one account alone raises none within an
/// hour.
const ALARM_PART: f64 = 100.0;

/// Whether the gateway serves a single caller.
pub(super) type SingleKeyCheck = Box<dyn Fn() -> bool + Send + Sync>;

/// How much influence each account has used lately. Its lock is held for moments.
pub(super) struct InfluenceCap {
    /// The most weight of an account's verdicts in a window, and of its signals.
    most: f64,
    /// If it is not set, there are other keys.
    single_key_check: OnceLock<SingleKeyCheck>,
    moved: Mutex<AccountWindows<AccountInfluence>>,
}

/// The influence that an account has used in a window.
#[derive(Debug, Default)]
struct AccountInfluence {
    by_feedback: SignalWeight,
    by_signals: SignalWeight,
}

/// The weight of a verdict or a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SignalWeight {
    /// For the beliefs, as a share of a plain verdict of a person.
    pub(super) learned: f64,
    /// For the alarm that a model has changed.
    pub(super) alarm: f64,
}

impl InfluenceCap {
    pub(super) fn new(most: u32) -> InfluenceCap {
        InfluenceCap { most: f64::from(most), single_key_check: OnceLock::new(), moved: Mutex::default() }
    }

    /// Uses this check from now on, unless one was set before.
    pub(super) fn set_single_key_check(&self, is_alone: SingleKeyCheck) {
        let _ = self.single_key_check.set(is_alone);
    }

    /// What is left for a verdict of this caller that would count `weight`.
    pub(super) fn cap_feedback(&self, tenant: &Tenant, weight: f64, now: Timestamp) -> SignalWeight {
        match tenant.feedback {
            FeedbackTrust::Trusted => SignalWeight { learned: weight, alarm: weight },
            FeedbackTrust::Bounded => self.take(&tenant.account, weight, now, |moved| &mut moved.by_feedback),
        }
    }

    /// What is left for a sign by a request of this account that would count `weight`.
    pub(super) fn cap_signal(&self, account: &AccountId, weight: f64, now: Timestamp) -> SignalWeight {
        self.take(account, weight, now, |moved| &mut moved.by_signals)
    }

    fn take(
        &self,
        account: &AccountId,
        weight: f64,
        now: Timestamp,
        by: impl FnOnce(&mut AccountInfluence) -> &mut SignalWeight,
    ) -> SignalWeight {
        let is_alone = self.single_key_check.get().is_some_and(|is_alone| is_alone());
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = by(&mut moved.of(account, now).done);
        let part = |moved: f64, most: f64| if is_alone { weight } else { weight.min(most - moved).max(0.0) };
        let counts = SignalWeight {
            learned: part(moved.learned, self.most),
            alarm: part(moved.alarm, self.most / ALARM_PART),
        };
        (moved.learned, moved.alarm) = (moved.learned + counts.learned, moved.alarm + counts.alarm);
        counts
    }
}

impl fmt::Debug for InfluenceCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InfluenceCap").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::gateway::feedback::LearnSettings;
    use crate::gateway::feedback::samples;
    use stint_decide::learn::{BeliefStore, Settings};
    use stint_sessions::history::{RequestRecord, conformance};
    use stint_types::catalog::{Demand, RequestTraits, Verdict, VerdictSource};
    use stint_types::units::Chance;

    /// The influence cap of a gateway with default settings, without a single-key check.
    fn sway() -> InfluenceCap {
        InfluenceCap::new(LearnSettings::default().feedback_max)
    }

    fn alone() -> InfluenceCap {
        let sway = sway();
        sway.set_single_key_check(Box::new(|| true));
        sway
    }

    type CapFn = fn(&InfluenceCap, &AccountId, f64, Timestamp) -> SignalWeight;

    /// A caller with that account whom nobody vouches for.
    fn bounded(account: &AccountId) -> Tenant {
        Tenant { account: account.clone(), ..Tenant::anonymous() }
    }

    fn by_words(sway: &InfluenceCap, account: &AccountId, weight: f64, now: Timestamp) -> SignalWeight {
        sway.cap_feedback(&bounded(account), weight, now)
    }

    fn taken(sway: &InfluenceCap, take: CapFn, account: &str, times: usize, at: i64) -> SignalWeight {
        let account = AccountId::new(account);
        let each = (0..times).map(|_| take(sway, &account, 1.0, Timestamp(at)));
        each.fold(SignalWeight::default(), |sum, one| SignalWeight {
            learned: sum.learned + one.learned,
            alarm: sum.alarm + one.alarm,
        })
    }

    #[test]
    fn an_account_among_others_has_its_say_each_hour_and_no_more() {
        let sway = sway();
        let all = SignalWeight { learned: 200.0, alarm: 2.0 };
        for take in [by_words as CapFn, InfluenceCap::cap_signal] {
            assert_eq!(taken(&sway, take, "one", 10_000, 0), all, "words and signs are counted apart");
            assert_eq!(taken(&sway, take, "one", 10_000, 3_599_999), SignalWeight::default());
            assert_eq!(taken(&sway, take, "other", 10_000, 3_599_999), all, "it is not taken from others");
        }
        assert_eq!(taken(&sway, by_words, "one", 10_000, 3_600_000), all, "another hour");
    }

    #[test]
    fn the_words_of_a_trusted_key_all_count_and_take_nothing_from_what_it_may_say_untrusted() {
        let (sway, bounded) = (sway(), bounded(&AccountId::new("one")));
        let trusted = Tenant { feedback: FeedbackTrust::Trusted, ..bounded.clone() };
        let whole = SignalWeight { learned: 1.0, alarm: 1.0 };
        assert!((0..1_500).all(|_| sway.cap_feedback(&trusted, 1.0, Timestamp(0)) == whole));
        assert_eq!(sway.cap_feedback(&bounded, 1.0, Timestamp(0)), whole, "the guard stays for all others");
        let signals = taken(&sway, InfluenceCap::cap_signal, "one", 1_500, 0);
        assert!(
            (signals.learned - 200.0).abs() < 1e-9,
            "the measure of signals is the caller's: {signals:?}"
        );
    }

    #[test]
    fn who_is_served_alone_may_say_what_it_wants_until_another_has_a_key() {
        let (sway, is_alone) = (sway(), Arc::new(AtomicBool::new(true)));
        let asked = is_alone.clone();
        sway.set_single_key_check(Box::new(move || asked.load(Ordering::Relaxed)));
        let all = SignalWeight { learned: 1000.0, alarm: 1000.0 };
        assert_eq!(taken(&sway, by_words, "one", 1000, 0), all);
        assert_eq!(taken(&sway, InfluenceCap::cap_signal, "one", 1000, 0), all);
        is_alone.store(false, Ordering::Relaxed);
        assert_eq!(taken(&sway, by_words, "one", 1000, 1), SignalWeight::default());
        assert_eq!(taken(&sway, InfluenceCap::cap_signal, "one", 1000, 1), SignalWeight::default());
    }

    /// What is believed of the model of a story.
    fn believed(beliefs: &BeliefStore, story: &RequestRecord) -> f64 {
        let decision = &story.decision;
        let models = decision.candidates.iter().map(|each| (each.model.clone(), each.prior.clone()));
        let mut demand = Demand {
            class: decision.class,
            difficulty: decision.difficulty,
            confidence: decision.confidence,
            request: RequestTraits::default(),
            models: models.collect(),
        };
        beliefs.adjust(&mut demand);
        demand.models[&story.outcome.model].done.get()
    }

    /// How far a model's standing falls, on which there are 2,000 words of many, when one account says a great deal against
    /// it at once, and as much by its requests.
    fn fall(sway: &InfluenceCap) -> f64 {
        let story = conformance::story(1);
        let say = |beliefs: &mut BeliefStore, success: f64, weight: SignalWeight| {
            let verdict = Verdict {
                success: Chance::new(success),
                weight: weight.learned,
                ..conformance::verdict(&story, VerdictSource::Feedback, 0.0)
            };
            let sample = samples::of_verdict(&story, &verdict).unwrap();
            beliefs.judge(&stint_decide::learn::OutcomeSample { alarm: weight.alarm, ..sample });
        };
        let mut beliefs = BeliefStore::new(Settings::default());
        (0..2000).for_each(|_| say(&mut beliefs, 1.0, SignalWeight { learned: 1.0, alarm: 1.0 }));
        let before = believed(&beliefs, &story);
        let one = AccountId::new("one");
        for _ in 0..5000 {
            say(&mut beliefs, 0.0, by_words(sway, &one, 1.0, Timestamp(0)));
            say(&mut beliefs, 0.0, sway.cap_signal(&one, 0.5, Timestamp(0)));
        }
        before - believed(&beliefs, &story)
    }

    #[test]
    fn a_flood_of_one_account_moves_a_standing_by_its_say_at_most() {
        // 400 words after 2,000 that have faded to some 1,600 by then, and no alarm.
        let (bounded, free) = (fall(&sway()), fall(&alone()));
        assert!(bounded < 0.25, "{bounded}");
        assert!(free > 0.5, "{free}: there would be nothing to bound");
    }
}
