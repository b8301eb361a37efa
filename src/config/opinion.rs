//! What a route says of votes and second opinions: `vote`, `verifier`, `judge`, `probe`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use crate::catalog::{Checker, Compare, Poll, Probe, Scatter, Verifier, Vote};
use crate::units::{Chance, Tokens};

use super::mistake::Wrong;
use super::reader::Section;
use super::route::{Models, unknown};

/// The most checks at once.
const CHECKS_MAX: usize = 256;

/// A route's vote, where it has one.
pub(super) fn vote(route: &Section<'_>) -> Option<Vote> {
    let section = route.has("vote").then(|| route.section("vote"))?;
    let compare = compare(&section);
    let most = section.within("samples_max", 2..=Vote::SAMPLES_MAX);
    let (scatter, poll) = (compare.usual(), Poll::default());
    let share = |key, usual| section.within(key, 0.0..=1.0).map_or(usual, Chance::new);
    let scatter = Scatter {
        wrong: section.within("wrong", 1..=1_000_000).unwrap_or(scatter.wrong),
        alike: share("alike", scatter.alike),
    };
    let poll = Poll {
        at_once: section.within("at_once", 1..=Vote::SAMPLES_MAX).unwrap_or(poll.at_once),
        temperature: section.within("temperature", 0.01..=2.0).map(narrow),
        doubt: share("doubt", poll.doubt),
    };
    Some(Vote::new(most.unwrap_or(5), compare, scatter).held(poll))
}

#[expect(clippy::cast_possible_truncation, reason = "engines take 32 bits")]
fn narrow(temperature: f64) -> f32 {
    temperature as f32
}

/// `"number"`, `"choice"`, `"exact"`, or a pointer into JSON: `"json"` for the whole, `"json:/answer"` for a member.
fn compare(section: &Section<'_>) -> Compare {
    let Some(word) = section.get::<String>("compare") else { return Compare::Number };
    match (&*word, word.strip_prefix("json:")) {
        ("number", _) => Compare::Number,
        ("choice", _) => Compare::Choice,
        ("exact", _) => Compare::Exact,
        ("json", _) => Compare::Json("".into()),
        (_, Some(pointer)) if pointer.starts_with('/') => Compare::Json(pointer.into()),
        _ => {
            let remedy = "write \"number\", \"choice\", \"exact\", \"json\" or \"json:/member\"";
            section.wrong("compare", Wrong::new(format!("\"{word}\" is unknown"), remedy));
            Compare::Number
        }
    }
}

/// A route's verifier, where it has one.
pub(super) fn verifier(route: &Section<'_>) -> Option<Verifier> {
    let section = route.has("verifier").then(|| route.section("verifier"))?;
    let times = Duration::from_millis(10)..=Duration::from_secs(600);
    let (floor, timeout) = (section.within("floor", 0.0..=1.0), section.within("timeout", times));
    let concurrency = section.within("concurrency", 1..=CHECKS_MAX);
    let command = section.get::<Vec<String>>("command");
    let by = match (command, section.get::<String>("url")) {
        (Some(words), None) if !words.is_empty() => Some(Checker::Command(words)),
        (None, Some(url)) => address(&section, &url).map(Checker::Url),
        (Some(_), Some(_)) => {
            section.wrong("url", Wrong::new("a second verifier", "write command or url"));
            None
        }
        _ => {
            let remedy = "write command = [\"/path/to/program\", \"argument\"] or url = \"http://…\"";
            section.wrong("command", Wrong::new("missing", remedy));
            None
        }
    };
    Some(Verifier {
        by: by?,
        floor: Chance::new(floor.unwrap_or(0.5)),
        timeout: timeout.unwrap_or(Duration::from_secs(10)),
        concurrency: concurrency.unwrap_or(4),
    })
}

fn address(section: &Section<'_>, url: &str) -> Option<String> {
    let good = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !good {
        section.wrong("url", Wrong::new("not an address", "write it like \"http://127.0.0.1:9000/score\""));
    }
    good.then(|| url.to_owned())
}

/// A route's judge, where it has one.
pub(super) fn judge(route: &Section<'_>, models: &Models) -> Option<Arc<str>> {
    known(route, "judge", &route.get::<String>("judge")?, models)
}

/// A route's probe, where it has one.
pub(super) fn probe(route: &Section<'_>, models: &Models) -> Option<Probe> {
    let section = route.has("probe").then(|| route.section("probe"))?;
    let name = section.need::<String>("model", "name a small model, whose drafts cost little");
    let (drafts, most) = (section.within("drafts", 2..=8), Tokens(1)..=Tokens(4096));
    let (tokens, thinking) =
        (section.within("tokens", most.clone()), section.within("thinking", Tokens::ZERO..=Tokens(4096)));
    let model = known(&section, "model", &name?, models)?;
    Some(Probe {
        model,
        drafts: drafts.unwrap_or(3),
        thinking: thinking.unwrap_or(Tokens::ZERO),
        tokens: tokens.unwrap_or(Tokens(16)),
    })
}

fn known(section: &Section<'_>, key: &'static str, name: &str, models: &Models) -> Option<Arc<str>> {
    let known = models.get_key_value(name).map(|(known, _)| known.clone());
    if known.is_none() {
        section.wrong(key, unknown(name, models));
    }
    known
}
