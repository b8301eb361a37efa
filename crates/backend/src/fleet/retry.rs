//! Decides whether a call is retried, and limits how many retries there are.
//!
//! A target takes as many retries as a fifth of its requests of the last ten seconds, plus ten a second. So an upstream
//! that fails completely gets only a few more calls than one that works.

use std::time::Duration;

use tokio::time::Instant;

/// When a call is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrySettings {
    /// How often a request's call is made altogether, for one model.
    pub attempts_max: u32,
    /// Retries for each request, on average: a share.
    pub share: f64,
    /// Additional retries a second, for targets with few requests.
    pub per_second: u32,
    /// The first wait before the same target is asked again, at most; it doubles.
    pub wait_first: Duration,
    /// The longest wait for the same target. One that wants to be left alone for longer is not waited for.
    pub wait_max: Duration,
    /// Try again also where a model may have been at work, so that both attempts may be paid for.
    pub sent_too: bool,
}

impl Default for RetrySettings {
    fn default() -> RetrySettings {
        RetrySettings {
            attempts_max: 3,
            share: 0.2,
            per_second: 10,
            wait_first: Duration::from_millis(200),
            wait_max: Duration::from_secs(5),
            sent_too: true,
        }
    }
}

impl RetrySettings {
    /// How long to wait before the same target is asked for the attempt after `tried`: a random part of a time that
    /// doubles, or what it asked for. Nothing if that is too long.
    pub(super) fn wait(&self, tried: u32, asked: Duration, jitter: f64) -> Option<Duration> {
        let doubled = self.wait_first.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1)));
        let random = doubled.min(self.wait_max).mul_f64(jitter.clamp(0.0, 1.0));
        (asked <= self.wait_max).then_some(asked + random)
    }
}

/// How long a request's share of a retry lasts, in seconds.
const CREDIT_SECONDS: usize = 10;
/// What one retry takes. Shares are counted in thousandths, so that nothing is lost in rounding.
const RETRY_COST: u64 = 1_000;

/// How many retries a target takes now.
#[derive(Debug, Clone)]
pub(super) struct RetryBudget {
    share: u64,
    per_second: u64,
    began: Instant,
    credits: [RetryCredit; CREDIT_SECONDS],
    /// What `per_second` has brought and was not taken, and until when that is reckoned.
    steady: u64,
    steady_at: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct RetryCredit {
    second: u64,
    left: u64,
}

impl RetryBudget {
    pub(super) fn new(settings: &RetrySettings, now: Instant) -> RetryBudget {
        let per_second = u64::from(settings.per_second) * RETRY_COST;
        RetryBudget {
            share: thousandths(settings.share),
            per_second,
            began: now,
            credits: [RetryCredit::default(); CREDIT_SECONDS],
            steady: per_second,
            steady_at: now,
        }
    }

    /// Sets how quickly it fills from now on. What it holds is kept, as far as there is room.
    pub(super) fn reconfigure(&mut self, settings: &RetrySettings) {
        self.share = thousandths(settings.share);
        self.per_second = u64::from(settings.per_second) * RETRY_COST;
        self.steady = self.steady.min(self.per_second);
    }

    /// So many requests come, which are no retries.
    pub(super) fn deposit(&mut self, now: Instant, calls: u32) {
        let second = self.second(now);
        let credit = &mut self.credits[usize::try_from(second).unwrap_or(0) % CREDIT_SECONDS];
        if credit.second != second {
            *credit = RetryCredit { second, left: 0 };
        }
        credit.left = credit.left.saturating_add(self.share * u64::from(calls));
    }

    /// Takes so many retries; false, and nothing is taken, where they are not there.
    pub(super) fn withdraw(&mut self, now: Instant, calls: u32) -> bool {
        self.refill(now);
        let needed = RETRY_COST * u64::from(calls);
        if self.left(now) < needed {
            return false;
        }
        let mut needed = needed - self.take_steady(needed);
        let oldest = (self.second(now) + 1).saturating_sub(CREDIT_SECONDS as u64);
        let mut live: Vec<&mut RetryCredit> =
            self.credits.iter_mut().filter(|it| it.second >= oldest).collect();
        live.sort_by_key(|credit| credit.second);
        for credit in live {
            let taken = credit.left.min(needed);
            credit.left -= taken;
            needed -= taken;
        }
        true
    }

    /// True if one retry would be taken.
    pub(super) fn allows(&self, now: Instant, calls: u32) -> bool {
        let mut then = self.clone();
        then.withdraw(now, calls)
    }

    fn take_steady(&mut self, needed: u64) -> u64 {
        let taken = self.steady.min(needed);
        self.steady -= taken;
        taken
    }

    fn left(&self, now: Instant) -> u64 {
        let oldest = (self.second(now) + 1).saturating_sub(CREDIT_SECONDS as u64);
        let credits = self.credits.iter().filter(|credit| credit.second >= oldest).map(|credit| credit.left);
        credits.fold(self.steady, u64::saturating_add)
    }

    /// A second's worth is kept at most. Of the time, what brought nothing whole yet counts at the next call.
    fn refill(&mut self, now: Instant) {
        const SECOND: u64 = 1_000_000_000;
        let passed = now.saturating_duration_since(self.steady_at).min(Duration::from_secs(1));
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(SECOND);
        let brought = self.per_second.saturating_mul(passed) / SECOND;
        if brought == 0 {
            return;
        }
        self.steady += brought;
        self.steady_at += Duration::from_nanos(brought.saturating_mul(SECOND) / self.per_second);
        if self.steady >= self.per_second {
            (self.steady, self.steady_at) = (self.per_second, now);
        }
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_secs()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 10, rounded")]
fn thousandths(share: f64) -> u64 {
    (share.clamp(0.0, 10.0) * RETRY_COST as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn budget(now: Instant) -> RetryBudget {
        RetryBudget::new(&RetrySettings::default(), now)
    }

    fn taken(budget: &mut RetryBudget, now: Instant) -> u32 {
        (0..10_000).take_while(|_| budget.withdraw(now, 1)).count().try_into().unwrap()
    }

    #[test]
    fn who_asks_often_loses_nothing_of_the_steady_rate() {
        let start = Instant::now();
        let settings = RetrySettings { share: 0.0, per_second: 10, ..RetrySettings::default() };
        let mut budget = RetryBudget::new(&settings, start);
        assert_eq!(taken(&mut budget, start), 10);
        // Every 1.9 ms for ten seconds.
        let asked =
            (1..=5_264_u64).filter(|&at| budget.withdraw(start + Duration::from_micros(at * 1_900), 1));
        assert_eq!(asked.count(), 100);
    }

    #[test]
    fn a_fifth_of_the_requests_and_ten_a_second_may_be_tried_again() {
        let now = Instant::now();
        let mut budget = budget(now);
        assert_eq!(taken(&mut budget, now), 10);
        budget.deposit(now, 100);
        assert_eq!(taken(&mut budget, now), 20);
        assert_eq!(taken(&mut budget, now + Duration::from_millis(500)), 5);
        assert_eq!(taken(&mut budget, now + Duration::from_secs(60)), 10, "a second's worth is kept");
    }

    #[test]
    fn what_was_not_used_lasts_ten_seconds() {
        let now = Instant::now();
        let mut budget = budget(now);
        budget.deposit(now, 100);
        assert_eq!(taken(&mut budget.clone(), now + Duration::from_secs(9)), 30);
        assert_eq!(taken(&mut budget, now + Duration::from_secs(10)), 10);
    }

    #[test]
    fn several_calls_are_taken_together_or_not_at_all() {
        let now = Instant::now();
        let mut budget = budget(now);
        assert!(!budget.withdraw(now, 11));
        assert!(budget.allows(now, 10) && budget.withdraw(now, 10));
        assert!(!budget.allows(now, 1));
    }

    #[test]
    fn waits_double_have_a_random_part_and_obey_what_was_asked() {
        let settings = RetrySettings::default();
        let check = |tried, asked: u64, jitter, expected: Option<u64>| {
            let wait = settings.wait(tried, Duration::from_millis(asked), jitter);
            assert_eq!(wait, expected.map(Duration::from_millis), "{tried} {asked} {jitter}");
        };
        check(1, 0, 1.0, Some(200));
        check(2, 0, 1.0, Some(400));
        check(2, 0, 0.25, Some(100));
        check(2, 0, 0.0, Some(0));
        check(30, 0, 1.0, Some(5_000));
        check(1, 2_000, 0.5, Some(2_100));
        check(1, 5_001, 0.0, None);
    }

    proptest! {
        /// Over any stretch from the beginning: retries ≤ 0.2 × requests + 10 × seconds + 10.
        #[test]
        fn retries_never_pass_their_share(steps in proptest::collection::vec((0_u64..3_000, 0_u32..20, 0_u32..20), 1..300)) {
            let began = Instant::now();
            let (mut now, mut budget) = (began, budget(began));
            let (mut requests, mut retries) = (0_u32, 0_u32);
            for (millis, asked, again) in steps {
                now += Duration::from_millis(millis);
                budget.deposit(now, asked);
                requests += asked;
                retries += (0..again).map(|_| u32::from(budget.withdraw(now, 1))).sum::<u32>();
                let most = 0.2 * f64::from(requests) + 10.0 * (now - began).as_secs_f64() + 10.0;
                prop_assert!(f64::from(retries) <= most + 1e-6, "{retries} of {requests}");
            }
        }
    }
}
