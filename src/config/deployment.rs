//! `[[backend.deployment]]`: where the models of a backend are served, each place with a credential of its own.

use std::sync::Arc;

use crate::backend::remote;

use super::backend::check_url;
use super::mistake::Wrong;
use super::reader::Section;
use super::secret;

/// A place where the models of a backend are served.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// Its name in metrics and the log.
    pub name: Arc<str>,
    /// How it is reached.
    pub client: remote::Settings,
    /// Where it publishes its load.
    pub metrics_url: Option<String>,
}

/// The keys of a credential.
const CREDENTIAL: [&str; 3] = ["api_key", "api_key_env", "api_key_file"];

/// The deployments of a backend; the backend itself where it names none.
pub(super) fn deployments(backend: &Section<'_>, name: &str, client: &remote::Settings) -> Vec<Deployment> {
    let sections = backend.sections("deployment");
    if sections.is_empty() {
        let metrics_url = metrics_url(backend);
        return vec![Deployment { name: name.into(), client: client.clone(), metrics_url }];
    }
    if backend.has("metrics_url") {
        let remedy = "write it into each [[backend.deployment]]";
        backend.wrong("metrics_url", Wrong::new("whose is it?", remedy));
    }
    let mut deployments: Vec<Deployment> = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let name = section.get::<String>("name").unwrap_or_else(|| (number + 1).to_string());
        if deployments.iter().any(|other| *other.name == *name) {
            let what = format!("a second deployment \"{name}\"");
            section.wrong("name", Wrong::new(what, "give each a name of its own"));
        }
        let metrics_url = metrics_url(section);
        deployments.push(Deployment { name: name.into(), client: reached(section, client), metrics_url });
    }
    deployments
}

/// As the backend is, but for what is said here.
fn reached(section: &Section<'_>, usual: &remote::Settings) -> remote::Settings {
    if !section.has("base_url") && usual.base_url.is_empty() {
        let remedy = "write where its API begins, here or in the backend";
        section.wrong("base_url", Wrong::new("missing", remedy));
    }
    let mut client = usual.clone();
    section.set("base_url", &mut client.base_url);
    check_url(section, "base_url", section.has("base_url").then_some(&*client.base_url));
    if CREDENTIAL.iter().any(|key| section.has(key)) {
        client.api_key = secret::api_key(section);
    }
    if section.has("proxy") {
        client.proxy = section.get("proxy");
        check_url(section, "proxy", client.proxy.as_deref());
    }
    client
}

fn metrics_url(section: &Section<'_>) -> Option<String> {
    let url = section.get::<String>("metrics_url");
    check_url(section, "metrics_url", url.as_deref());
    url
}
