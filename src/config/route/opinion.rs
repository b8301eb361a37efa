//! What a route says of votes and second opinions: `vote`, `verifier`, `judge`, `probe`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use crate::config::backend::ModelMap;
use crate::config::reader::Section;
use stint_types::catalog::{
    AnswerComparison, Checker, DifficultyProbe, VerifierSettings, Vote, VoteAssumptions, VotePolicy,
};
use stint_types::units::{Chance, Tokens};

use super::known_model::known_model;

/// The most checks at once.
const CHECKS_MAX: usize = 256;

/// What holds of a vote where the route does not say.
#[derive(Debug, Clone)]
pub(super) struct VoteDefaults {
    pub(super) samples_max: u32,
    /// Nothing where the route has to say it.
    pub(super) compare: Option<AnswerComparison>,
    pub(super) temperature: Option<f32>,
}

/// Of a vote that no recipe asks for.
const WRITTEN: VoteDefaults =
    VoteDefaults { samples_max: 5, compare: Some(AnswerComparison::Number), temperature: None };

/// A route's vote, where it has one.
pub(super) fn vote(route: &Section<'_>) -> Option<Vote> {
    route.has("vote").then(|| vote_with(route, WRITTEN)).flatten()
}

/// A vote by what the route says, and by `usual` where it says nothing; none where neither says when two answers are the same.
pub(super) fn vote_with(route: &Section<'_>, usual: VoteDefaults) -> Option<Vote> {
    let section = route.section("vote");
    let compare = compare(&section);
    let most = section.within("samples_max", 2..=Vote::SAMPLES_MAX);
    let poll = VotePolicy::default();
    let share = |key, usual| section.within(key, 0.0..=1.0).map_or(usual, Chance::new);
    let is_missing = !section.has("compare") && usual.compare.is_none();
    let compare = compare.or(usual.compare).unwrap_or(AnswerComparison::Number);
    let assumptions = compare.default_assumptions();
    let assumptions = VoteAssumptions {
        distinct_wrong: section.within("wrong", 1..=1_000_000).unwrap_or(assumptions.distinct_wrong),
        correlation: share("alike", assumptions.correlation),
    };
    let poll = VotePolicy {
        concurrency: section.within("at_once", 1..=Vote::SAMPLES_MAX).unwrap_or(poll.concurrency),
        temperature: section.within("temperature", 0.01..=2.0).map(narrow).or(usual.temperature),
        stop_probability: share("doubt", poll.stop_probability),
    };
    let vote = Vote::new(most.unwrap_or(usual.samples_max), compare, assumptions).with_policy(poll);
    (!is_missing).then_some(vote)
}

#[expect(clippy::cast_possible_truncation, reason = "engines take 32 bits")]
fn narrow(temperature: f64) -> f32 {
    temperature as f32
}

/// `"number"`, `"choice"`, `"exact"`, or a pointer into JSON: `"json"` for the whole, `"json:/answer"` for a member.
fn compare(section: &Section<'_>) -> Option<AnswerComparison> {
    let word = section.get::<String>("compare")?;
    match (&*word, word.strip_prefix("json:")) {
        ("number", _) => Some(AnswerComparison::Number),
        ("choice", _) => Some(AnswerComparison::Choice),
        ("exact", _) => Some(AnswerComparison::Exact),
        ("json", _) => Some(AnswerComparison::Json("".into())),
        (_, Some(pointer)) if pointer.starts_with('/') => Some(AnswerComparison::Json(pointer.into())),
        _ => {
            let remedy = "write \"number\", \"choice\", \"exact\", \"json\" or \"json:/member\"";
            section.reject("compare", format!("\"{word}\" is unknown"), remedy);
            None
        }
    }
}

/// A route's verifier, where it has one.
pub(super) fn verifier(route: &Section<'_>) -> Option<VerifierSettings> {
    let section = route.has("verifier").then(|| route.section("verifier"))?;
    let times = Duration::from_millis(10)..=Duration::from_secs(600);
    let (floor, timeout) = (section.within("floor", 0.0..=1.0), section.within("timeout", times));
    let concurrency = section.within("concurrency", 1..=CHECKS_MAX);
    let command = section.get::<Vec<String>>("command");
    let by = match (command, section.get::<String>("url")) {
        (Some(words), None) if !words.is_empty() => Some(Checker::Command(words)),
        (None, Some(url)) => address(&section, &url).map(Checker::Url),
        (Some(_), Some(_)) => {
            section.reject("url", "a second verifier", "write command or url");
            None
        }
        _ => {
            let remedy = "write command = [\"/path/to/program\", \"argument\"] or url = \"http://…\"";
            section.reject("command", "missing", remedy);
            None
        }
    };
    Some(VerifierSettings {
        by: by?,
        floor: Chance::new(floor.unwrap_or(0.5)),
        timeout: timeout.unwrap_or(Duration::from_secs(10)),
        concurrency: concurrency.unwrap_or(4),
    })
}

fn address(section: &Section<'_>, url: &str) -> Option<String> {
    let good = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !good {
        section.reject("url", "not an address", "write it like \"http://127.0.0.1:9000/score\"");
    }
    good.then(|| url.to_owned())
}

/// A route's judge, where it has one.
pub(super) fn judge(route: &Section<'_>, models: &ModelMap) -> Option<Arc<str>> {
    known_model(route, "judge", &route.get::<String>("judge")?, models)
}

/// A route's probe, where it has one.
pub(super) fn probe(route: &Section<'_>, models: &ModelMap) -> Option<DifficultyProbe> {
    let section = route.has("probe").then(|| route.section("probe"))?;
    let name = section.require::<String>("model", "name a small model, whose drafts cost little");
    let (drafts, most) = (section.within("drafts", 2..=8), Tokens(1)..=Tokens(4096));
    let (tokens, thinking) =
        (section.within("tokens", most.clone()), section.within("thinking", Tokens::ZERO..=Tokens(4096)));
    let model = known_model(&section, "model", &name?, models)?;
    Some(DifficultyProbe {
        model,
        drafts: drafts.unwrap_or(3),
        thinking: thinking.unwrap_or(Tokens::ZERO),
        tokens: tokens.unwrap_or(Tokens(16)),
    })
}
