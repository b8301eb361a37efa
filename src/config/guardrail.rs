//! `[[guardrail]]`: hooks that judge requests before they run, and answers before they are given.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::Url;

use crate::guardrail::{FailurePolicy, GuardrailSecret, GuardrailSettings};
use stint_types::catalog::Catalog;
use stint_types::units::AccountId;

use super::reader::{Section, secret, suggest};

const SECRET: secret::SecretKeys =
    secret::SecretKeys { text: "secret", variable: "secret_env", file: "secret_file", is_for_servers: true };

/// A shorter secret could be guessed.
const SECRET_MIN: usize = 16;

const STAGES: [(&str, JudgedStage); 2] = [("before", JudgedStage::Before), ("after", JudgedStage::After)];

const POLICIES: [(&str, FailurePolicy); 2] =
    [("open", FailurePolicy::Open), ("closed", FailurePolicy::Closed)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JudgedStage {
    Before,
    After,
}

/// Every hook, in their order.
pub(super) fn guardrails(root: &Section<'_>, catalog: &Catalog) -> Vec<GuardrailSettings> {
    let mut names = HashSet::new();
    let mut guardrails = Vec::new();
    for section in root.sections("guardrail") {
        let Some(guardrail) = guardrail(&section, catalog) else { continue };
        if !names.insert(guardrail.name.clone()) {
            section.reject("name", "a second guardrail of that name", "give each a name of its own");
        }
        guardrails.push(guardrail);
    }
    guardrails
}

fn guardrail(section: &Section<'_>, catalog: &Catalog) -> Option<GuardrailSettings> {
    let name = section.require::<String>("name", "give it a name, for the metrics");
    let url =
        section.require::<String>("url", "write where it is called").and_then(|text| url(section, &text));
    let stages = section.words("stages", &STAGES);
    if stages.is_empty() {
        section.reject("stages", "missing", "write [\"before\"], [\"after\"] or both");
    }
    let deadline = section.within("deadline", Duration::from_millis(50)..=Duration::from_secs(60));
    let policy = section.word("on_failure", &POLICIES).unwrap_or(FailurePolicy::Closed);
    let (models, accounts) = (models(section, catalog), accounts(section));
    let secret = secret(section);
    Some(GuardrailSettings {
        name: name?.into(),
        url: url?,
        secret: secret?,
        before: stages.contains(&JudgedStage::Before),
        after: stages.contains(&JudgedStage::After),
        models,
        accounts,
        deadline: deadline.unwrap_or(Duration::from_secs(2)),
        on_failure: policy,
    })
}

fn url(section: &Section<'_>, text: &str) -> Option<Url> {
    let url =
        text.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        section.reject(
            "url",
            "not an address that can be posted to",
            "write it like \"https://guard.internal/judge\"",
        );
    }
    url
}

fn secret(section: &Section<'_>) -> Option<GuardrailSecret> {
    let is_named = [SECRET.text, SECRET.variable, SECRET.file].into_iter().any(|key| section.has(key));
    let text = secret::read(section, &SECRET);
    if !is_named {
        let remedy = "name an environment variable or a file that has it (secret_env or secret_file): calls are signed with it";
        section.reject(SECRET.variable, "no secret", remedy);
    }
    if text.as_ref().is_some_and(|text| text.len() < SECRET_MIN) {
        let key = if section.has(SECRET.file) { SECRET.file } else { SECRET.variable };
        let what = format!("a secret of fewer than {SECRET_MIN} characters");
        section.reject(key, what, "`stint keys new` makes one that cannot be guessed");
    }
    text.map(GuardrailSecret::new)
}

fn models(section: &Section<'_>, catalog: &Catalog) -> Vec<String> {
    let names = section.get_or("models", Vec::<String>::new());
    let known: Vec<&str> = catalog.models.keys().chain(catalog.routes.keys()).map(AsRef::as_ref).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let what = format!("there is no model and no route \"{name}\"");
        let remedy =
            suggest(name, known.iter().copied(), || format!("these are there: {}", known.join(", ")));
        section.reject("models", what, remedy);
    }
    names
}

fn accounts(section: &Section<'_>) -> Vec<AccountId> {
    let paths = section.get_or("accounts", Vec::<String>::new());
    paths.iter().filter_map(|path| super::account::path(section, "accounts", path)).collect()
}
