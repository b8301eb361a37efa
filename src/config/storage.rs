//! `[ledger]`: where what was spent is written down.

use std::path::PathBuf;

use crate::ledger;
use crate::storage::{Settings, SqliteSettings, Synchronous};

use super::mistake::Wrong;
use super::reader::Section;
use super::server::time;

/// `[ledger]`; `STINT_LEDGER` goes before its path.
pub(super) fn storage(root: &Section<'_>) -> (Settings, ledger::Settings) {
    let ledger = root.section("ledger");
    let usual_pace = ledger::Settings::default();
    let pace = ledger::Settings {
        pending_max: ledger.within("pending_max", 1..=1_000_000).unwrap_or(usual_pace.pending_max),
        dispatch_max: time(&ledger, "dispatch_max", usual_pace.dispatch_max),
        stall_max: time(&ledger, "stall_max", usual_pace.stall_max),
        ..usual_pace
    };
    let words = [("full", Synchronous::Full), ("normal", Synchronous::Normal)];
    let synchronous = ledger.word("synchronous", &words).unwrap_or(Synchronous::Full);
    let from_env = ledger.document().variable("STINT_LEDGER", |text| Ok(PathBuf::from(text)));
    let from_file = ledger.path("path");
    let path = from_env.or(from_file).or_else(|| usual(&ledger));
    let path = path.unwrap_or_default();
    let settings = match path.as_os_str() == ":memory:" {
        true => Settings::Memory,
        false => Settings::Sqlite(SqliteSettings { path, synchronous }),
    };
    (settings, pace)
}

/// The XDG base directory specification: `$XDG_DATA_HOME` where it is absolute, else `~/.local/share`.
fn usual(ledger: &Section<'_>) -> Option<PathBuf> {
    let env = ledger.document().env;
    let absolute = |variable: &str| env(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    if data.is_none() {
        let what = "there is no home directory to keep the ledger in";
        ledger.wrong("path", Wrong::new(what, "write path = \"…\", or set STINT_LEDGER or XDG_DATA_HOME"));
    }
    data.map(|data| data.join("stint/ledger.db"))
}
