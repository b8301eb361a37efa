//! `[resilience]`: how the targets of a model are treated.

use std::ops::RangeInclusive;
use std::time::Duration;

use stint_backend::fleet::{BreakerSettings, ConcurrencySettings, RetrySettings, Settings};

use super::reader::{Section, ValueError};

/// The shortest and the longest time that stands here.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(24 * 3600);

/// The most of anything that is counted here.
const COUNT_MAX: u32 = 100_000;

/// `[resilience]`.
pub(super) fn resilience(root: &Section<'_>) -> Settings {
    let section = root.section("resilience");
    let usual = Settings::default();
    let waiting = section.within("queue_max", 0..=COUNT_MAX as usize);
    let retry = retry(&section, usual.retry);
    Settings {
        breaker: breaker(&section, usual.breaker),
        retry,
        hedge_after: hedge(&section, retry),
        concurrency: Some(concurrency(&section, usual.concurrency.unwrap_or_default())),
        queue_max: waiting.unwrap_or(usual.queue_max),
        wait_max: time(&section, "queue_wait_max", usual.wait_max),
        load_every: time(&section, "load_every", usual.load_every),
    }
}

fn retry(section: &Section<'_>, usual: RetrySettings) -> RetrySettings {
    RetrySettings {
        attempts_max: section.within("attempts_max", 1..=10).unwrap_or(usual.attempts_max),
        share: section.within("retry_share", 0.0..=1.0).unwrap_or(usual.share),
        per_second: section.within("retry_per_second", 0..=10_000).unwrap_or(usual.per_second),
        wait_first: time(section, "retry_wait", usual.wait_first),
        wait_max: time(section, "retry_wait_max", usual.wait_max),
        sent_too: section.get_or("retry_sent", usual.sent_too),
    }
}

/// Both attempts may be billed, and each is one of those that a request may have.
fn hedge(section: &Section<'_>, retry: RetrySettings) -> Option<Duration> {
    let after = section.within("hedge_after", TIMES)?;
    if !retry.sent_too {
        let wrong =
            ValueError::new("retry_sent = false rules it out", "take one of them away: both may be billed");
        section.reject_value("hedge_after", wrong);
    }
    if retry.attempts_max < 2 {
        let wrong = ValueError::new("attempts_max = 1 rules it out", "write attempts_max = 2 or more");
        section.reject_value("hedge_after", wrong);
    }
    Some(after)
}

fn breaker(section: &Section<'_>, usual: BreakerSettings) -> BreakerSettings {
    let settings = BreakerSettings {
        failures_max: section.within("failures_max", 1..=COUNT_MAX).unwrap_or(usual.failures_max),
        success_min: section.within("success_min", 0.0..=1.0).unwrap_or(usual.success_min),
        requests_min: section.within("requests_min", 1..=COUNT_MAX).unwrap_or(usual.requests_min),
        rest_min: time(section, "rest_min", usual.rest_min),
        rest_max: time(section, "rest_max", usual.rest_max),
        credential_rest: time(section, "credential_rest", usual.credential_rest),
    };
    if settings.rest_max < settings.rest_min {
        section.reject("rest_max", "shorter than rest_min", "write the longer one here");
    }
    settings
}

fn concurrency(section: &Section<'_>, usual: ConcurrencySettings) -> ConcurrencySettings {
    let start = section.within("concurrency_start", 1..=COUNT_MAX);
    let min =
        section.within("concurrency_min", 1..=COUNT_MAX).unwrap_or(usual.min.min(start.unwrap_or(u32::MAX)));
    let max = section.within("concurrency_max", 1..=COUNT_MAX).unwrap_or(usual.max.max(start.unwrap_or(0)));
    let settings = ConcurrencySettings {
        min,
        // Where it is not said it gives way to what is.
        start: start.unwrap_or(usual.start.min(max).max(min)),
        max,
        tolerance: section.within("first_token_tolerance", 1.0..=100.0).unwrap_or(usual.tolerance),
        // Each backend has its own.
        ..usual
    };
    if !(settings.min..=settings.max).contains(&settings.start) {
        let remedy = "write concurrency_min ≤ concurrency_start ≤ concurrency_max";
        section.reject("concurrency_start", "not between its bounds", remedy);
    }
    settings
}

fn time(section: &Section<'_>, key: &'static str, usual: Duration) -> Duration {
    section.within(key, TIMES).unwrap_or(usual)
}
