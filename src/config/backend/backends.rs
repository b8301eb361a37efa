//! `[[backend]]`: every backend of the file, each with the models that it declares.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::reader::{Document, Section, ValueError};
use stint_types::catalog::Model;
use stint_types::units::nearest;

use super::declared_model::DeclaredModel;
use super::defaults::{self, BackendDefaults};
use super::embedded::embedded;
use super::kind::{BackendKind, KINDS};
use super::known_models::KnownModels;
use super::model_config::BackendConfig;
use super::model_warnings::warn_models;
use super::upstream_names::apply_upstream_names;
use super::{caller_headers, deployment, members, model, prompt_cache};

/// The keys that only some kinds have.
const KIND_SPECIFIC_KEYS: [&str; 20] = [
    "file",
    "load_on_startup",
    "keep_alive",
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
    "log_messages",
    "unknown_members",
    "prompt_cache",
    "caller_version",
    "caller_betas",
];

/// Models by name, as the catalog holds them.
pub(in crate::config) type ModelMap = BTreeMap<Arc<str>, Arc<Model>>;

/// All backends, the embedded one first where it is served, and the models of all of them.
pub(in crate::config) fn backends(
    root: &Section<'_>,
    known: &KnownModels<'_>,
    with_embedded: bool,
) -> (Vec<BackendConfig>, ModelMap) {
    let mut backends: Vec<BackendConfig> = Vec::new();
    let mut declared = Vec::new();
    for section in root.sections("backend") {
        let Some((backend, models)) = read_backend(&section, known) else { continue };
        if backends.iter().any(|other| other.name == backend.name) {
            let what = format!("a second backend \"{}\"", backend.name);
            section.reject("name", what, "give each a name of its own");
        }
        backends.push(backend);
        declared.extend(models);
    }
    if with_embedded {
        let (backend, model) = embedded();
        backends.insert(0, backend);
        declared.insert(0, model);
    } else if !root.has("backend") {
        let remedy = if cfg!(feature = "local") {
            "add a [[backend]], or take embedded = false out of [engine]"
        } else {
            "add a [[backend]]: this stint was built without local models"
        };
        root.reject("engine", "no model to serve", remedy);
    }
    let models = models_by_name(root.document(), &declared);
    warn_models(root.document(), &declared);
    (backends, models)
}

/// Models by name; two of one name are a mistake.
fn models_by_name(document: &Document<'_>, all: &[DeclaredModel]) -> ModelMap {
    let mut catalog = BTreeMap::new();
    for DeclaredModel { model, line, .. } in all {
        if catalog.insert(model.name.clone(), Arc::new(model.clone())).is_some() {
            let what = format!("a second model \"{}\"", model.name);
            let remedy = "give it another name, and say upstream = \"…\" for its name there; for a second place of one model \
                          write [[backend.deployment]]";
            document.reject(*line, "backend.model.name".to_owned(), ValueError::new(what, remedy));
        }
    }
    catalog
}

fn read_backend(
    section: &Section<'_>,
    known: &KnownModels<'_>,
) -> Option<(BackendConfig, Vec<DeclaredModel>)> {
    let written = if section.has("kind") { section.word("kind", &KINDS) } else { Some(BackendKind::OpenAi) };
    let Some(kind) = written.or_else(|| guess(section)) else {
        // Nothing tells which keys are right, so none of them is called wrong.
        section.allow_all();
        return None;
    };
    let name = section.get::<String>("name").unwrap_or_else(|| kind.as_str().to_owned());
    let mut base = BackendDefaults { is_guess: written.is_none(), ..defaults::read(section, kind) };
    if base.is_guess {
        section.allow(&KIND_SPECIFIC_KEYS);
    }
    if kind == BackendKind::Local {
        base.client.members = members::local_rules();
    } else {
        base.deployments = deployment::deployments(section, kind, &name, &base.client);
        let members = members::rules(section, kind, base.is_self_hosted_server());
        base.client.members = members;
        base.deployments.iter_mut().for_each(|deployment| deployment.client.members = members);
        let places = base.deployments.iter_mut().map(|deployment| &mut deployment.client);
        prompt_cache::apply(section, kind, places.chain([&mut base.client]));
        let places = base.deployments.iter_mut().map(|deployment| &mut deployment.client);
        caller_headers::apply(section, kind, places.chain([&mut base.client]));
        deployment::warn_keyless(section, kind, &base.deployments);
    }
    let mut models = model::read_models(section, &base, known);
    apply_upstream_names(section, &mut models);
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
