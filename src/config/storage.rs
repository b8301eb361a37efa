//! `[ledger]`: where what was spent is written down.

use std::path::PathBuf;
use std::time::Duration;

use stint_ledger as ledger;
use stint_storage::{PostgresSettings, Settings, SqliteSettings, Synchronous};

use super::reader::{Section, secret};

/// Long enough for a server that is slow, short enough for those who wait for what a dead replica held.
const LEASE: Duration = Duration::from_secs(10);

/// `[ledger]`; `STINT_LEDGER` overrides its path. Beside a url it is a mistake: an operator who set it for a file of one machine
/// would take this gateway away from the accounts that the others share, and nobody would notice.
pub(super) fn storage(root: &Section<'_>) -> (Settings, ledger::Settings) {
    let ledger = root.section("ledger");
    let usual_pace = ledger::Settings::default();
    let pace = ledger::Settings {
        pending_max: ledger.within("pending_max", 1..=1_000_000).unwrap_or(usual_pace.pending_max),
        dispatch_max: ledger.time("dispatch_max", usual_pace.dispatch_max),
        stall_max: ledger.time("stall_max", usual_pace.stall_max),
        ..usual_pace
    };
    let words = [("full", Synchronous::Full), ("normal", Synchronous::Normal)];
    let synchronous = ledger.word("synchronous", &words).unwrap_or(Synchronous::Full);
    let from_env = ledger.document().env_value("STINT_LEDGER", |text| Ok(PathBuf::from(text)));
    let (from_file, url) = (ledger.path("path"), secret::database_url(&ledger));
    if let (Some(_), Some(_)) = (&from_file, &url) {
        ledger.reject("path", "a second place for the ledger", "take it out, or the url");
    }
    if let (Some(_), Some(_)) = (&from_env, &url) {
        let key = if ledger.has("url_file") { "url_file" } else { "url_env" };
        let what = "a second place for the ledger: STINT_LEDGER is set, and names a file";
        ledger.reject(key, what, "unset STINT_LEDGER, or take the url out");
    }
    let lease = ledger.within("lease", Duration::from_secs(2)..=Duration::from_secs(300)).unwrap_or(LEASE);
    let settings = match (from_env, url) {
        (None, Some(url)) => Settings::Postgres(PostgresSettings { url, lease }),
        (from_env, _) => {
            let path = from_env.or(from_file).or_else(|| default_path(&ledger)).unwrap_or_default();
            if path.as_os_str() == ":memory:" {
                Settings::Memory
            } else {
                Settings::Sqlite(SqliteSettings { path, synchronous })
            }
        }
    };
    (settings, pace)
}

/// The data folder, by the XDG base directory specification: `$XDG_DATA_HOME` where it is absolute, else
/// `~/.local/share`.
pub(super) fn data_folder(section: &Section<'_>) -> Option<PathBuf> {
    let env = section.document().env;
    let absolute = |variable: &str| env(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("stint"))
}

fn default_path(ledger: &Section<'_>) -> Option<PathBuf> {
    let data = data_folder(ledger);
    if data.is_none() {
        let what = "there is no home directory to keep the ledger in";
        ledger.reject("path", what, "write path = \"…\", or set STINT_LEDGER or XDG_DATA_HOME");
    }
    data.map(|data| data.join("ledger.db"))
}
