//! `[idempotency]`: what is remembered of requests with a key of their own.

use std::time::Duration;

use stint_sessions::idempotency::Settings;

use super::reader::{ByteSize, Section};

/// The longest that an answer may be kept.
const KEEP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The largest answer that may be kept: rows are read and written whole.
const ANSWER_MAX: ByteSize = ByteSize(64 << 20);

/// `[idempotency]`. What still runs must not be forgotten, so nothing is kept for less than a request may run.
pub(super) fn idempotency(root: &Section<'_>, time_max: Duration, running_max: usize) -> Settings {
    let section = root.section("idempotency");
    let usual = Settings::default();
    let answer_max = section.within("answer_max", ByteSize(1 << 10)..=ANSWER_MAX);
    let settings = Settings {
        keep: section.within("keep", Duration::ZERO..=KEEP_MAX).unwrap_or(usual.keep.max(time_max)),
        answer_max: answer_max.map_or(usual.answer_max, |bytes| bytes.0),
        replay_streams: section.get_or("replay_streams", usual.replay_streams),
        running_max,
        ..usual
    };
    if !settings.keep.is_zero() && settings.keep < time_max {
        let remedy = "write at least time_max of [gateway], or \"0s\" to switch idempotency off";
        section.reject("keep", "shorter than a request may run", remedy);
    }
    settings
}
