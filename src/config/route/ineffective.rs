//! Warnings about votes and second opinions of a route that can never take effect: valid, but probably not intended.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::Path;

use crate::config::backend::ModelMap;
use crate::config::reader::Section;
use stint_types::catalog::{Checker, Route, Service};

/// Keys that do something only beside a vote.
const VOTE_KEYS: [&str; 4] = ["cascade", "verifier", "judge", "holds_streams"];

/// Notes what of a route's section is idle.
pub(super) fn warn_ineffective(section: &Section<'_>, route: &Route, models: &ModelMap) {
    warn_without_vote(section, route);
    warn_too_few_models(section, route, models);
    let checker = route.verifier.as_ref().map(|verifier| &verifier.by);
    if let Some(Checker::Command(words)) = checker
        && let Some(why) = words.first().and_then(|program| why_unusable(program))
    {
        let remedy =
            "name a program that this user may run; until then every verdict fails and the vote decides";
        section.warn("verifier", why, remedy);
    }
}

fn warn_without_vote(section: &Section<'_>, route: &Route) {
    let says = |key: &'static str| match key {
        "cascade" => route.cascade,
        "holds_streams" => route.buffers_streams,
        _ => section.has(key),
    };
    for key in VOTE_KEYS.into_iter().filter(|key| route.vote.is_none() && says(key)) {
        let remedy = "write vote = { compare = \"number\" } or the like, or take it out";
        section.warn(key, "of no effect on a route without a vote", remedy);
    }
}

fn warn_too_few_models(section: &Section<'_>, route: &Route, models: &ModelMap) {
    if route.vote.is_none() {
        return;
    }
    let own = models.values().filter(|model| route.models.is_empty() || route.models.contains(&model.name));
    let answering = own.filter(|model| model.services.contains(&Service::Chat)).count();
    if answering == 0 {
        let remedy = "add a model that serves \"chat\", or take the vote out";
        section.warn("vote", "none of the route's models gives answers to vote among", remedy);
    } else if answering == 1 && route.cascade {
        let remedy = "add a stronger model to the route, or take the cascade out";
        section.warn("cascade", "there is one model only, and no other to go on to", remedy);
    }
}

/// Why a program cannot be run, where it cannot. What is no path is looked for as a shell would.
fn why_unusable(program: &str) -> Option<String> {
    let named = Path::new(program);
    if named.components().count() > 1 {
        return match std::fs::metadata(named) {
            Err(error) => Some(format!("{program} cannot be run: {error}")),
            Ok(file) if !is_program(&file) => Some(format!("{program} cannot be run: it is no program")),
            Ok(_) => None,
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |folder: &Path| {
        std::fs::metadata(folder.join(OsStr::new(program))).is_ok_and(|file| is_program(&file))
    };
    let nowhere = !std::env::split_paths(&path).any(|folder| found(&folder));
    nowhere.then(|| format!("there is no program {program} on the PATH"))
}

#[cfg(unix)]
fn is_program(file: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.is_file() && file.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_program(file: &Metadata) -> bool {
    file.is_file()
}
