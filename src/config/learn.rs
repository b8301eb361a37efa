//! `[learn]`: what is learned from outcomes, and what is kept of them.

use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::LearnSettings;
use stint_decide::learn;
use stint_sessions::history::DecisionLogSettings;
use stint_storage as storage;

use super::reader::{ByteSize, Section};
use super::storage::data_folder;

const HOUR: Duration = Duration::from_secs(3600);
/// How long a story may be kept.
const KEEP: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(90 * 24 * 3600));
/// How many of them: the boundary between too many and enough is looked for by reading so many entries of an index.
const STORIES_MAX: (u32, u32) = (1_000, 10_000_000);
/// How often what was learned may be saved.
const SAVE_EVERY: (Duration, Duration) = (Duration::from_secs(1), HOUR);
/// What one account's words may weigh.
const FEEDBACK_MAX: (u32, u32) = (1, 1_000_000);
/// The size of one file of the log.
const LOG_MAX: (ByteSize, ByteSize) = (ByteSize(64 << 10), ByteSize(1 << 30));
const LOG_MAX_USUAL: ByteSize = ByteSize(32 << 20);
const LOG_FILES_USUAL: u32 = 4;
/// The log's name where the operator gives none.
const LOG_NAME: &str = "decisions.jsonl";

/// `[learn]`.
pub(super) fn learn(root: &Section<'_>, storage: &storage::Settings) -> LearnSettings {
    let section = root.section("learn");
    let usual = LearnSettings::default();
    LearnSettings {
        enabled: section.get_or("enabled", usual.enabled),
        beliefs: learner_settings(&section),
        log: log(&section, storage),
        keep: section.within("keep", KEEP.0..=KEEP.1).unwrap_or(usual.keep),
        stories_max: section
            .within("stories_max", STORIES_MAX.0..=STORIES_MAX.1)
            .unwrap_or(usual.stories_max),
        save_every: section.within("save_every", SAVE_EVERY.0..=SAVE_EVERY.1).unwrap_or(usual.save_every),
        feedback_max: section
            .within("feedback_max", FEEDBACK_MAX.0..=FEEDBACK_MAX.1)
            .unwrap_or(usual.feedback_max),
        asked_again: section.within("asked_again", Duration::ZERO..=HOUR).unwrap_or(usual.asked_again),
    }
}

fn learner_settings(section: &Section<'_>) -> learn::Settings {
    let usual = learn::Settings::default();
    learn::Settings {
        forget: section.within("forget", 0.5..=0.999_999).unwrap_or(usual.forget),
        prior_weight: section.within("prior_weight", 1.0..=100_000.0).unwrap_or(usual.prior_weight),
        spread: section.within("spread", 0.0..=10.0).unwrap_or(usual.spread),
        ..usual
    }
}

/// The decision log, unless it is switched off; beside a ledger that is a file, else in the data folder. Where nothing is to
/// survive, or there is no such folder, there is none but where the operator says.
fn log(section: &Section<'_>, storage: &storage::Settings) -> Option<DecisionLogSettings> {
    let is_on = section.get_or("log", true);
    let named = section.path("log_file");
    if !is_on && named.is_some() {
        section.reject("log_file", "a place for a log that is off", "write log = true, or take it out");
    }
    let size_max = section.within("log_max", LOG_MAX.0..=LOG_MAX.1).unwrap_or(LOG_MAX_USUAL).0;
    let files_max = section.within("log_files", 0..=1000).unwrap_or(LOG_FILES_USUAL);
    let path = named.or_else(|| usual_path(section, storage)).filter(|_| is_on)?;
    Some(DecisionLogSettings { path, size_max: u64::try_from(size_max).unwrap_or(u64::MAX), files_max })
}

fn usual_path(section: &Section<'_>, storage: &storage::Settings) -> Option<PathBuf> {
    match storage {
        storage::Settings::Memory => None,
        storage::Settings::Sqlite(file) => Some(file.path.with_file_name(LOG_NAME)),
        storage::Settings::Postgres(_) => data_folder(section).map(|folder| folder.join(LOG_NAME)),
    }
}
