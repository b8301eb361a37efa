//! `[[backend.deployment]]`: where the models of a backend are served, each place with a credential of its own.

use std::sync::Arc;

use reqwest::Url;

use crate::config::reader::{Section, secret};
use stint_backend::fleet::OverloadSignal;
use stint_backend::remote;

use super::base_url::{base_url, check_url};
use super::defaults::with_patience;
use super::host::is_host;
use super::kind::BackendKind;

/// A place where the models of a backend are served.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// Its name in metrics and the log.
    pub name: Arc<str>,
    /// How it is reached.
    pub client: remote::Settings,
    /// What the model is called there, where that is something else than in other places.
    pub upstream: Option<String>,
    /// Where it publishes its load.
    pub metrics_url: Option<String>,
    /// The signal that it has too many calls.
    pub signal: OverloadSignal,
}

/// The signals as they are written.
const SIGNALS: [(&str, OverloadSignal); 2] =
    [("waits", OverloadSignal::Waits), ("refusals", OverloadSignal::Refusals)];

/// The keys of a credential.
const CREDENTIAL: [&str; 3] = ["api_key", "api_key_env", "api_key_file"];

/// The deployments of a backend; the backend itself where it names none.
pub(super) fn deployments(
    backend: &Section<'_>,
    kind: BackendKind,
    name: &str,
    client: &remote::Settings,
) -> Vec<Deployment> {
    let sections = backend.sections("deployment");
    let stated = backend.word("concurrency_signal", &SIGNALS);
    let own_metrics = metrics_url(backend);
    if sections.is_empty() {
        let (client, metrics_url) = (client.clone(), own_metrics);
        let signal = stated.unwrap_or(default_signal(kind, &client));
        return vec![Deployment { name: name.into(), client, upstream: None, metrics_url, signal }];
    }
    if backend.has("metrics_url") {
        let remedy = "write it into each [[backend.deployment]]";
        backend.reject("metrics_url", "whose is it?", remedy);
    }
    let mut deployments: Vec<Deployment> = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let name = section.get::<String>("name").unwrap_or_else(|| (number + 1).to_string());
        if deployments.iter().any(|other| *other.name == *name) {
            let what = format!("a second deployment \"{name}\"");
            section.reject("name", what, "give each a name of its own");
        }
        section.allow(&["upstream", "upstreams"]);
        let (client, metrics_url) = (deployment_client(section, kind, client), metrics_url(section));
        let signal = stated.unwrap_or(default_signal(kind, &client));
        deployments.push(Deployment { name: name.into(), client, upstream: None, metrics_url, signal });
    }
    deployments
}

/// Doubts deployments that have no key at a host where nothing is to be had without one.
pub(super) fn warn_keyless(backend: &Section<'_>, kind: BackendKind, deployments: &[Deployment]) {
    let says_one = |section: &Section<'_>| CREDENTIAL.iter().any(|key| section.has(key));
    let Some(host) = kind.key_required_host().filter(|_| !says_one(backend)) else { return };
    let own: Vec<Section<'_>> = backend.sections("deployment");
    own.iter().for_each(Section::allow_all);
    for (place, deployment) in deployments.iter().enumerate() {
        let section = own.get(place).unwrap_or(backend);
        let at = Url::parse(&deployment.client.base_url).ok();
        let is_there = at.is_some_and(|url| is_host(url.host_str(), host));
        if is_there && !says_one(section) {
            let remedy = "export the key, and name its variable: api_key_env = \"…\"";
            section.warn("api_key_env", format!("no key, and {host} answers no request without one"), remedy);
        }
    }
}

/// A provider says when there are too many calls; one's own server lets them wait.
fn default_signal(kind: BackendKind, client: &remote::Settings) -> OverloadSignal {
    let url = Url::parse(&client.base_url).ok();
    let is_self_hosted = kind.is_self_hosted_server(url.as_ref().and_then(Url::host_str));
    if is_self_hosted { OverloadSignal::Waits } else { OverloadSignal::Refusals }
}

/// The backend's settings, overridden by those of this section.
fn deployment_client(section: &Section<'_>, kind: BackendKind, usual: &remote::Settings) -> remote::Settings {
    if !section.has("base_url") && usual.base_url.is_empty() {
        let remedy = "write where its API begins, here or in the backend";
        section.reject("base_url", "missing", remedy);
    }
    let mut client = usual.clone();
    if let Some(stated) = section.get::<String>("base_url") {
        client.base_url = base_url(section, kind, &stated);
    }
    if CREDENTIAL.iter().any(|key| section.has(key)) {
        client.api_key = secret::api_key(section);
    }
    if section.has("proxy") {
        client.proxy = section.get("proxy");
        check_url(section, "proxy", client.proxy.as_deref());
    }
    section.set("organization", &mut client.organization);
    with_patience(kind, client)
}

fn metrics_url(section: &Section<'_>) -> Option<String> {
    let url = section.get::<String>("metrics_url");
    check_url(section, "metrics_url", url.as_deref());
    url
}
