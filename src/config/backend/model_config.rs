//! The settings of backends and of each of their models, as a running gateway takes them.

use std::sync::Arc;

use reqwest::Url;

use stint_decide::estimate::ability::AbilityEvidence;
use stint_types::catalog::{CurveRecord, EnforcementClass};
use stint_types::units::Tokens;

use super::deployment::Deployment;
use super::kind::KINDS;
use super::model_source::ModelSource;

/// Something that serves models, and which.
#[derive(Debug, Clone)]
pub struct BackendConfig {
    /// Its name in metrics and the log.
    pub name: Arc<str>,
    /// The models it serves, one at least.
    pub models: Vec<ModelConfig>,
}

/// One model of a backend: what serves it; the catalog has the rest under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The name that callers use.
    pub name: Arc<str>,
    /// The word for its kind of backend; none for the embedded model, of which everything is known.
    pub kind: Option<&'static str>,
    /// The upstream's name for it.
    pub upstream: String,
    /// The upstream's host, where it has one.
    pub host: Option<String>,
    /// Every way in which its kind of backend can hold a model's thinking, the strongest first.
    pub possible_classes: Vec<EnforcementClass>,
    /// Where its answers come from.
    pub source: ModelSource,
    /// What tells how able it is; nothing of the embedded model, which has coefficients of its own.
    pub ability: Option<AbilityEvidence>,
    /// What was measured of it on the operator's own tasks.
    pub curve: Option<Arc<CurveRecord>>,
    /// The context that its section states; a catalogue's is not stated.
    pub context: Option<Tokens>,
    /// Where it is served, and with which credentials; none for a local model.
    pub deployments: Vec<Deployment>,
    /// Whether one tokenizer and one template stand behind its name wherever it is served; nothing if its kind tells.
    pub reads_alike: Option<bool>,
}

impl ModelConfig {
    /// Who counts the prompts that are sent to a deployment: the same word, the same tokenizer and template. Nothing if
    /// that is not known.
    pub fn tokenizer_key(&self, deployment: &Deployment) -> Option<Arc<str>> {
        let (word, kind) = KINDS.iter().find(|(word, _)| Some(*word) == self.kind)?;
        let url = Url::parse(&deployment.client.base_url).ok()?;
        let upstream = deployment.upstream.as_ref().unwrap_or(&self.upstream);
        let reads_alike = self.reads_alike.unwrap_or_else(|| kind.reads_alike_at(url.host_str()));
        reads_alike.then(|| format!("{word} {upstream}").into())
    }
}
