//! `[responses]`: what is kept of responses that callers may come back to.

use std::time::Duration;

use stint_sessions::agent::stored::Settings;

use super::reader::{ByteSize, Section};

/// How long a response may be kept at least and at most.
const KEEP: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(365 * 24 * 3600);

/// The largest response that may be kept: rows are read and written whole.
const RESPONSE_MAX: ByteSize = ByteSize(64 << 20);

/// The most that may be kept for one account, or be continued.
const ALL_MAX: ByteSize = ByteSize(64 << 30);

/// `[responses]`.
pub(super) fn responses(root: &Section<'_>) -> Settings {
    let section = root.section("responses");
    let usual = Settings::default();
    let bytes = |key, most, usual: usize| {
        section.within(key, ByteSize(1 << 10)..=most).map_or(usual, |bytes: ByteSize| bytes.0)
    };
    let settings = Settings {
        store: section.get_or("store", usual.store),
        keep: section.within("keep", KEEP).unwrap_or(usual.keep),
        response_max: bytes("response_max", RESPONSE_MAX, usual.response_max),
        account_max: bytes("account_max", ALL_MAX, usual.account_max),
        history_max: bytes("history_max", ALL_MAX, usual.history_max),
        write_rate: bytes("write_rate", ALL_MAX, usual.write_rate),
        ..usual
    };
    for (key, most) in [("account_max", settings.account_max), ("history_max", settings.history_max)] {
        if most < settings.response_max {
            let remedy = "write at least response_max of [responses]";
            section.reject(key, "smaller than one response may be", remedy);
        }
    }
    settings
}
