//! `[[backend]]`: what serves the models.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Url;

use crate::backend::local;
use crate::backend::remote::openai::LimitMember;
use crate::backend::remote::{self, anthropic, gemini, llamacpp, openai, responses};
use crate::catalog::EnforcementClass;
use crate::units::{Chance, Tokens};

use super::base_url;
use super::deployment::{self, Deployment};
use super::diagnostic::ValueError;
use super::kind::{BackendKind, KINDS};
use super::known_models::KnownModels;
use super::members;
use super::model::DeclaredModel;
use super::reader::{SecretsPolicy, Section};
use super::server::time;
use super::{model, secret};
use crate::units::nearest;

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
    /// The share of MMLU-Pro that it gets right, where that is said.
    pub ability: Option<Chance>,
    /// The context that its section states; a catalogue's is not stated.
    pub context: Option<Tokens>,
    /// Where it is served, and with which credentials; none for a local model.
    pub deployments: Vec<Deployment>,
    /// Whether one tokenizer and one template stand behind its name wherever it is served; nothing where its kind tells.
    pub reads_alike: Option<bool>,
}

/// Where a model's answers come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSource {
    /// The model that ships with the binary, in the local engine.
    Embedded(LocalModelSettings),
    /// A GGUF file, in the local engine.
    File(PathBuf, LocalModelSettings),
    /// An upstream that speaks OpenAI's chat completions.
    OpenAi(openai::Settings),
    /// A vLLM server, over its raw completions too.
    Vllm(openai::Settings),
    /// A llama.cpp server, over its own `/completion`.
    LlamaCpp(llamacpp::Settings),
    /// An upstream that speaks Anthropic's Messages.
    Anthropic(anthropic::Settings),
    /// An upstream that speaks Gemini's own API.
    Gemini(gemini::Settings),
    /// An upstream that speaks OpenAI's Responses.
    Responses(responses::Settings),
}

impl ModelConfig {
    /// Who counts the prompts that are sent to a deployment: the same word, the same tokenizer and template. Nothing where that
    /// cannot be told.
    pub fn tokenizer_key(&self, deployment: &Deployment) -> Option<Arc<str>> {
        let (word, kind) = KINDS.iter().find(|(word, _)| Some(*word) == self.kind)?;
        let url = Url::parse(&deployment.client.base_url).ok()?;
        let upstream = deployment.upstream.as_ref().unwrap_or(&self.upstream);
        let reads_alike = self.reads_alike.unwrap_or_else(|| kind.reads_alike_at(url.host_str()));
        reads_alike.then(|| format!("{word} {upstream}").into())
    }
}

impl ModelSource {
    /// The same, as it is reached and called there.
    #[must_use]
    pub fn at_deployment(&self, deployment: &Deployment) -> ModelSource {
        let mut source = self.clone();
        if let Some(client) = source.client_mut() {
            client.clone_from(&deployment.client);
        }
        if let Some((model, upstream)) = source.model_mut().zip(deployment.upstream.as_ref()) {
            model.clone_from(upstream);
        }
        source
    }

    fn client_mut(&mut self) -> Option<&mut remote::Settings> {
        match self {
            ModelSource::Embedded(_) | ModelSource::File(..) => None,
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(&mut settings.client),
            ModelSource::LlamaCpp(settings) => Some(&mut settings.client),
            ModelSource::Anthropic(settings) => Some(&mut settings.client),
            ModelSource::Gemini(settings) => Some(&mut settings.client),
            ModelSource::Responses(settings) => Some(&mut settings.client),
        }
    }

    /// What its upstream calls the model, where it has to be told.
    pub(super) fn model_mut(&mut self) -> Option<&mut String> {
        match self {
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(&mut settings.model),
            ModelSource::Anthropic(settings) => Some(&mut settings.model),
            ModelSource::Gemini(settings) => Some(&mut settings.model),
            ModelSource::Responses(settings) => Some(&mut settings.model),
            ModelSource::Embedded(_) | ModelSource::File(..) | ModelSource::LlamaCpp(_) => None,
        }
    }

    /// How its chat completions are spoken to, where it has some.
    pub(super) fn chat_mut(&mut self) -> Option<&mut openai::Settings> {
        match self {
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(settings),
            _ => None,
        }
    }
}

/// How a local model marks its thoughts, and how it is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalModelSettings {
    /// The tag that opens a thought.
    pub start_tag: String,
    /// The tag that closes it.
    pub end_tag: String,
    /// What closes a cut thought, and how tokens are drawn.
    pub settings: local::Settings,
}

/// What all models of a backend have in common.
#[derive(Debug, Clone)]
pub(super) struct BackendDefaults {
    pub(super) kind: BackendKind,
    pub(super) file: PathBuf,
    pub(super) client: remote::Settings,
    pub(super) deployments: Vec<Deployment>,
    pub(super) limit: Option<LimitMember>,
    /// True where the kind that is written is none, and this one was guessed.
    pub(super) is_guess: bool,
}

/// What every model file begins with.
const GGUF: &[u8] = b"GGUF";

/// The keys that only some kinds have.
const KIND_SPECIFIC_KEYS: [&str; 14] = [
    "file",
    "concurrency_signal",
    "base_url",
    "deployment",
    "metrics_url",
    "api_key_env",
    "api_key_file",
    "organization",
    "proxy",
    "connect_timeout",
    "first_byte_timeout",
    "idle_timeout",
    "total_timeout",
    "unknown_members",
];

const LIMITS: [(&str, LimitMember); 2] =
    [("max_completion_tokens", LimitMember::MaxCompletionTokens), ("max_tokens", LimitMember::MaxTokens)];

impl BackendDefaults {
    /// A backend of that kind of which nothing is said.
    pub(super) fn new(kind: BackendKind) -> BackendDefaults {
        let (file, client) = (PathBuf::new(), remote::Settings::default());
        BackendDefaults { kind, file, client, deployments: Vec::new(), limit: None, is_guess: false }
    }

    /// The host of its address.
    pub(super) fn host(&self) -> Option<String> {
        host(&self.client.base_url)
    }

    /// True where it is one's own in every place.
    pub(super) fn is_self_hosted(&self) -> bool {
        self.hosts().all(|host| self.kind.is_self_hosted(host.as_deref()))
    }

    /// True where it is a server of open models of one's own in every place.
    pub(super) fn is_self_hosted_server(&self) -> bool {
        self.hosts().all(|host| self.kind.is_self_hosted_server(host.as_deref()))
    }

    fn hosts(&self) -> impl Iterator<Item = Option<String>> {
        let places = self.deployments.iter().map(|deployment| host(&deployment.client.base_url));
        std::iter::once(self.host()).chain(places)
    }
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase)
}

/// All backends of the file, each as the models that it declares.
pub(super) fn backends(
    root: &Section<'_>,
    known: &KnownModels<'_>,
) -> Vec<(BackendConfig, Vec<DeclaredModel>)> {
    let mut backends: Vec<(BackendConfig, Vec<DeclaredModel>)> = Vec::new();
    for section in root.sections("backend") {
        let Some((backend, models)) = backend(&section, known) else { continue };
        if backends.iter().any(|(other, _)| other.name == backend.name) {
            let what = format!("a second backend \"{}\"", backend.name);
            section.reject("name", ValueError::new(what, "give each a name of its own"));
        }
        backends.push((backend, models));
    }
    backends
}

fn backend(section: &Section<'_>, known: &KnownModels<'_>) -> Option<(BackendConfig, Vec<DeclaredModel>)> {
    let written = if section.has("kind") { section.word("kind", &KINDS) } else { Some(BackendKind::OpenAi) };
    let Some(kind) = written.or_else(|| guess(section)) else {
        // Nothing tells which keys are right, so none of them is called wrong.
        section.allow_all();
        return None;
    };
    let name = section.get::<String>("name").unwrap_or_else(|| kind.as_str().to_owned());
    let mut base = BackendDefaults { is_guess: written.is_none(), ..base(section, kind) };
    if base.is_guess {
        section.allow(&KIND_SPECIFIC_KEYS);
    }
    if kind != BackendKind::Local {
        base.deployments = deployment::deployments(section, kind, &name, &base.client);
        let members = members::rules(section, kind, base.is_self_hosted_server());
        base.client.members = members;
        base.deployments.iter_mut().for_each(|deployment| deployment.client.members = members);
        deployment::warn_keyless(section, kind, &base.deployments);
    }
    let mut models = model::read_models(section, &base, known);
    deployment::apply_upstream_names(section, &mut models);
    let served = models.iter().map(|declared| declared.config.clone()).collect();
    Some((BackendConfig { name: name.into(), models: served }, models))
}

/// What a section of an unknown kind is most like, so that its other mistakes are found at once.
fn guess(section: &Section<'_>) -> Option<BackendKind> {
    let word = section.get::<String>("kind").unwrap_or_default();
    let near = nearest(&word, KINDS.iter().map(|(known, _)| *known));
    let near = KINDS.iter().find(|(known, _)| Some(*known) == near).map(|(_, kind)| *kind);
    let by_keys = || match (section.has("file"), section.has("base_url")) {
        (true, false) => Some(BackendKind::Local),
        (false, true) => Some(BackendKind::OpenAi),
        _ => None,
    };
    near.or_else(by_keys)
}

fn base(section: &Section<'_>, kind: BackendKind) -> BackendDefaults {
    let mut base = BackendDefaults::new(kind);
    if kind == BackendKind::Local {
        if !section.has("file") {
            section.reject("file", ValueError::new("missing", "name the model's GGUF file"));
        }
        let file = section.path("file");
        check_gguf(section, file.as_deref());
        base.file = file.unwrap_or_default();
    } else {
        base.client = client(section, kind);
    }
    if !matches!(kind, BackendKind::Local | BackendKind::LlamaCpp) {
        base.limit = section.word("token_limit", &LIMITS);
    }
    base
}

/// A server could not start without the file. Whoever does not serve does not need it.
fn check_gguf(section: &Section<'_>, file: Option<&Path>) {
    let Some(file) = file.filter(|_| section.document().secrets == SecretsPolicy::Required) else { return };
    let mut head = Vec::new();
    section.document().files.track(file);
    let read = File::open(file).and_then(|opened| opened.take(GGUF.len() as u64).read_to_end(&mut head));
    let what = match read {
        Err(error) => format!("{} cannot be read: {error}", file.display()),
        Ok(_) if head != GGUF => format!("{} is no GGUF file: it does not begin with GGUF", file.display()),
        Ok(_) => return,
    };
    section.reject(
        "file",
        ValueError::new(what, "name the model's GGUF file, by a path that starts from this file's folder"),
    );
}

fn client(section: &Section<'_>, kind: BackendKind) -> remote::Settings {
    let remedy = match kind {
        BackendKind::OpenAi | BackendKind::Responses => {
            "write where its API begins: \"https://api.openai.com/v1\", or your own server's like \"http://127.0.0.1:8000/v1\""
        }
        _ => "write where its API begins, like \"http://127.0.0.1:8000/v1\"",
    };
    let base_url = match kind.base_url() {
        Some(usual) => Some(section.get_or("base_url", usual.to_owned())),
        // Each deployment may have its own.
        None if section.has("deployment") => section.get::<String>("base_url"),
        None => section.require::<String>("base_url", remedy),
    };
    let usual = remote::Settings::default();
    let settings = remote::Settings {
        api_key: secret::api_key(section),
        organization: section.get("organization"),
        proxy: section.get("proxy"),
        connect: time(section, "connect_timeout", usual.connect),
        first_byte: time(section, "first_byte_timeout", usual.first_byte),
        idle: time(section, "idle_timeout", usual.idle),
        total: time(section, "total_timeout", usual.total),
        ..usual
    };
    check_url(section, "proxy", settings.proxy.as_deref());
    let base_url = base_url.map(|stated| base_url::base_url(section, kind, &stated));
    remote::Settings { base_url: base_url.unwrap_or_default(), ..settings }
}

/// An address that may stand in a file.
pub(super) fn check_url(section: &Section<'_>, key: &str, url: Option<&str>) {
    let remedy = "write it like \"https://api.example.com/v1\"";
    let what = match url.map(Url::parse) {
        None => return,
        Some(Err(error)) => format!("not a URL: {error}"),
        Some(Ok(url)) if !matches!(url.scheme(), "http" | "https") => "neither http nor https".to_owned(),
        Some(Ok(url)) if !url.username().is_empty() || url.password().is_some() => {
            "has a password in it".to_owned()
        }
        Some(Ok(url)) if url.query().is_some() || url.fragment().is_some() => {
            "has more than a path".to_owned()
        }
        Some(Ok(_)) => return,
    };
    section.reject(key, ValueError::new(what, remedy));
}
