//! `load_on_startup` and `keep_alive`: when a local model is loaded, and for how long it stays.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::reader::Section;

/// How long a model that is loaded at a request stays when nobody uses it, where nothing is said.
const KEEP_ALIVE_USUAL: Duration = Duration::from_mins(5);

const KEEP_ALIVES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(365 * 24 * 3600);

/// When a local model is loaded, and for how long it stays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loading {
    /// At the first request where not at the start.
    pub(super) load_on_startup: bool,
    /// How long it stays when nobody uses it; for good without it.
    pub(super) keep_alive: Option<Duration>,
}

impl Default for Loading {
    fn default() -> Loading {
        Loading { load_on_startup: true, keep_alive: None }
    }
}

/// What a local backend says of it.
pub(super) fn read(section: &Section<'_>) -> Loading {
    let load_on_startup = section.get_or("load_on_startup", true);
    let stated = section.within("keep_alive", KEEP_ALIVES);
    Loading { load_on_startup, keep_alive: stated.or((!load_on_startup).then_some(KEEP_ALIVE_USUAL)) }
}
