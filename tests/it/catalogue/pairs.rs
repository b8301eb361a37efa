//! The pairs: groups of them by the models that they hold for.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use stint::config::{self, BackendConfig, ModelConfig, ModelSource};
use stint_backend::Backend;
use stint_backend::remote::Connections;
use stint_backend::remote::anthropic::AnthropicBackend;
use stint_backend::remote::gemini::GeminiBackend;
use stint_backend::remote::llamacpp::LlamaCppBackend;
use stint_backend::remote::openai::OpenAiBackend;
use stint_backend::remote::responses::OpenAiResponsesBackend;
use stint_backend::remote::vllm::VllmBackend;
use stint_types::catalog::Model;

use crate::harness::World;
use crate::harness::emulators::{Arrived, KEY};

use super::upstream::Upstream;

/// Members that all requests have alike. They are compared where a pair names them.
const USUAL: [&str; 11] = [
    "path",
    "betas",
    "model",
    "messages",
    "input",
    "contents",
    "stream",
    "stream_options",
    "store",
    "include",
    "max_tokens",
];

/// In a pair, a text that is longer than any least length of a cache, one that is longer than 2048 tokens, and one that is longer
/// than 512.
const TEXTS: [(&str, usize); 3] = [("{long}", 4000), ("{large}", 300), ("{middle}", 70)];

/// A pair's message with the texts themselves in the place of what stands for them.
fn written_out(body: &Value) -> Value {
    let out = |text: String, (short, times): (&str, usize)| text.replace(short, &"a cat sat ".repeat(times));
    serde_json::from_str(&TEXTS.into_iter().fold(body.to_string(), out)).unwrap()
}

/// The same the other way round.
fn shortened(body: &Value) -> Value {
    let out = |text: String, (short, times): (&str, usize)| text.replace(&"a cat sat ".repeat(times), short);
    serde_json::from_str(&TEXTS.into_iter().fold(body.to_string(), out)).unwrap()
}

/// Models for which the same holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// The keys of the catalogue that the pairs are about.
    pub(super) rules: Vec<String>,
    /// The kind of backend, as it is written in stint.toml.
    pub(super) kind: String,
    /// Where it is served.
    #[serde(default = "somewhere")]
    pub(super) host: String,
    /// The models' names there.
    pub(super) models: Vec<String>,
    /// Where the caller asks.
    #[serde(default = "chat")]
    by: String,
    /// What is sent and what comes of it.
    #[serde(default)]
    pairs: Vec<Pair>,
    /// What is written and how it is read.
    #[serde(default)]
    pub(super) readings: Vec<Reading>,
}

/// What a caller sends and what the provider gets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// Members beside the model's name and a message.
    sends: Map<String, Value>,
    /// All members but the usual ones; where nothing is sent, `refused` has the member that is to blame.
    gets: Value,
    /// Members with which the provider, as it is emulated, refuses what it got.
    #[serde(default)]
    refuses: Vec<Map<String, Value>>,
}

/// What a model writes and how it is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reading {
    /// Its text; or a moment, where prices depend on it; or nothing.
    pub(super) writes: String,
    /// What is made of it.
    pub(super) reads: Value,
}

fn somewhere() -> String {
    "serves.example".to_owned()
}

fn chat() -> String {
    "/v1/chat/completions".to_owned()
}

impl Group {
    /// Those of all files.
    pub(super) fn all() -> Vec<Group> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/catalogue");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let read = |path: &std::path::PathBuf| -> Vec<Group> {
            let text = std::fs::read(path).unwrap();
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        files.iter().flat_map(read).collect()
    }

    fn path(&self) -> &'static str {
        match (&*self.kind, &*self.host) {
            ("gemini", _) => "/v1beta",
            (_, "api.deepseek.com") => "",
            _ => "/v1",
        }
    }

    /// Whether it is served by that kind of API at that host.
    fn is_at(&self, (kind, host): &(String, String)) -> bool {
        *kind == self.kind && *host == self.host
    }

    /// What one of its models is called in a fault.
    pub(super) fn label(&self, name: &str) -> String {
        format!("{} {name} {}", self.kind, self.rules.join("+"))
    }
}

/// The models of all groups, group by group, as one configuration makes them. They are reached at `address`.
pub(super) fn configured(
    groups: &[Group],
    address: impl Fn(&Group) -> String,
) -> Vec<Vec<(Model, ModelSource)>> {
    let mut text = "[engine]\nembedded = false\n".to_owned();
    for (number, group) in groups.iter().enumerate() {
        let base = format!("https://{}{}", group.host, group.path());
        let _ = writeln!(
            text,
            "[[backend]]\nname = 'b{number}'\nkind = '{}'\nbase_url = '{base}'\napi_key_env = 'THE_KEY'",
            group.kind
        );
        for (place, upstream) in group.models.iter().enumerate() {
            let _ = writeln!(text, "[[backend.model]]\nname = 'm{number}-{place}'\nupstream = '{upstream}'");
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let env = |name: &str| match name {
        "STINT_LEDGER" => Some(":memory:".to_owned()),
        "THE_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    let settings = config::load(Some(file.path()), &env).unwrap_or_else(|error| panic!("{error}"));
    let reached = |(group, backend): (&Group, &BackendConfig)| {
        let model = |served: &ModelConfig| {
            let mut deployment = served.deployments[0].clone();
            deployment.client.base_url = address(group) + group.path();
            let model = settings.catalog.models[&served.name].as_ref().clone();
            (model, served.source.at_deployment(&deployment))
        };
        backend.models.iter().map(model).collect()
    };
    groups.iter().zip(&settings.backends).map(reached).collect()
}

/// The gateway with the models of all groups, and their providers.
pub(super) struct Scene {
    groups: Vec<Group>,
    /// By kind and host.
    upstreams: Vec<((String, String), Upstream)>,
    world: World,
}

impl Scene {
    pub(super) async fn new(groups: Vec<Group>) -> Scene {
        let groups: Vec<Group> = groups.into_iter().filter(|group| !group.pairs.is_empty()).collect();
        let mut upstreams: Vec<((String, String), Upstream)> = Vec::new();
        for group in &groups {
            if !upstreams.iter().any(|(place, _)| group.is_at(place)) {
                let place = (group.kind.clone(), group.host.clone());
                upstreams.push((place, Upstream::of(&group.kind, &group.host)));
            }
        }
        let address = |group: &Group| upstream(&upstreams, group).address();
        let models = configured(&groups, address).into_iter().flatten();
        let models = models.map(|(model, source)| (model, backend(source))).collect();
        let world = World::with(models, Vec::new(), |_| ()).await;
        Scene { groups, upstreams, world }
    }

    /// Where pairs do not hold. All models are asked at once, each of them one pair after the other.
    pub(super) async fn faults(&self) -> Vec<String> {
        let models = self.upstreams.iter().flat_map(|(place, _)| {
            let there = self.groups.iter().filter(|group| group.is_at(place));
            let names: BTreeSet<&str> = there.flat_map(|group| &group.models).map(|name| &**name).collect();
            names.into_iter().map(move |name| (place, name))
        });
        let faults = models.map(|(place, name)| self.faults_of_model(place, name));
        futures_util::future::join_all(faults).await.concat()
    }

    async fn faults_of_model(&self, at: &(String, String), name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        for (number, group) in self.groups.iter().enumerate().filter(|(_, group)| group.is_at(at)) {
            let Some(place) = group.models.iter().position(|model| model == name) else { continue };
            for pair in &group.pairs {
                let found = self.faults_of(group, pair, (&format!("m{number}-{place}"), name)).await;
                faults.extend(found.into_iter().map(|fault| format!("{} {fault}", group.label(name))));
            }
        }
        faults
    }

    async fn faults_of(&self, group: &Group, pair: &Pair, model: (&str, &str)) -> Vec<String> {
        let got = self.got(group, pair, model).await;
        let gets = match &got {
            Ok(arrived) => shown(arrived, &pair.gets),
            Err(param) => json!({ "refused": param }),
        };
        let mut faults = Vec::new();
        if gets != pair.gets {
            let (sends, right) = (Value::Object(pair.sends.clone()), &pair.gets);
            faults.push(format!("{sends}\n   gets {gets}\n    not {right}"));
        }
        for more in &pair.refuses {
            if let Ok(arrived) = &got {
                faults.extend(upstream(&self.upstreams, group).takes(arrived, more).await);
            }
        }
        faults
    }

    /// What came to the upstream first, or the member for which the gateway refused it. The model is known by its name here and
    /// by the upstream's.
    async fn got(&self, group: &Group, pair: &Pair, (model, name): (&str, &str)) -> Result<Arrived, Value> {
        let mut body = match &*group.by {
            "/v1/responses" => json!({ "input": "hi" }),
            "/v1/messages" => {
                json!({ "max_tokens": 4000, "messages": [{ "role": "user", "content": "hi" }] })
            }
            _ => json!({ "messages": [{ "role": "user", "content": "hi" }] }),
        };
        body.as_object_mut().unwrap().extend(pair.sends.clone());
        body["model"] = json!(model);
        let body = written_out(&body);
        let upstream = upstream(&self.upstreams, group);
        let before = upstream.arrived(name).len();
        let answer = self.world.post(&group.by, "", &body).await;
        let first = upstream.arrived(name).into_iter().nth(before);
        first.ok_or_else(|| answer.error()["param"].clone())
    }
}

fn upstream<'u>(upstreams: &'u [((String, String), Upstream)], group: &Group) -> &'u Upstream {
    &upstreams.iter().find(|(place, _)| group.is_at(place)).unwrap().1
}

/// What came, so far as a pair compares it.
fn shown(arrived: &Arrived, named: &Value) -> Value {
    let mut body = arrived.body.as_object().unwrap().clone();
    body.insert("path".to_owned(), json!(arrived.path));
    body.insert("betas".to_owned(), json!(arrived.betas));
    if let Some(refusal) = &arrived.refusal {
        body.insert("the emulator refuses it".to_owned(), refusal.clone());
    }
    body.retain(|name, _| !USUAL.contains(&&**name) || named.get(name).is_some());
    shortened(&Value::Object(body))
}

fn backend(source: ModelSource) -> Arc<dyn Backend> {
    let connections = Connections::default();
    match source {
        ModelSource::OpenAi(upstream) => Arc::new(OpenAiBackend::new(&connections, upstream).unwrap()),
        ModelSource::Vllm(upstream) => Arc::new(VllmBackend::new(&connections, upstream).unwrap()),
        ModelSource::LlamaCpp(upstream) => Arc::new(LlamaCppBackend::new(&connections, upstream).unwrap()),
        ModelSource::Anthropic(upstream) => Arc::new(AnthropicBackend::new(&connections, upstream).unwrap()),
        ModelSource::Gemini(upstream) => Arc::new(GeminiBackend::new(&connections, upstream).unwrap()),
        ModelSource::Responses(upstream) => {
            Arc::new(OpenAiResponsesBackend::new(&connections, upstream).unwrap())
        }
        ModelSource::Embedded(_) | ModelSource::File(..) => panic!("it is served elsewhere"),
    }
}
