//! Files and environment, read into each module's settings.
//!
//! Nothing else reads either. A configuration is taken whole or not at all: every mistake in it is reported
//! at once, each with its line and its remedy. Secrets come from the environment or from files of their own,
//! never from the configuration's text. Loading again is how a reload begins.

mod account;
mod admin;
mod agents;
mod alerts;
mod backend;
mod base_url;
mod coherence;
mod deployment;
mod diagnostic;
mod dialect;
mod efforts;
mod embedded;
mod engine;
mod files;
mod idempotency;
mod ineffective;
mod key;
mod kind;
mod known_models;
mod learn;
mod members;
mod model;
mod model_warnings;
mod non_thinking;
mod opinion;
mod provider;
mod reader;
mod resilience;
mod responses;
mod rollout;
mod route;
mod secret;
mod server;
mod source;
mod storage;
mod tariff;
mod value;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::Url;

use crate::backend::fleet;
use crate::catalog::Catalog;
use crate::tenant::{AccountTerms, DeclaredTenants, Tenant};
use crate::{gateway, http};

use diagnostic::ValueError;
use files::ConfigFiles;
use known_models::{CatalogSources, KnownModels};
use reader::{Document, ReadContext, SecretsPolicy, Section};

pub use backend::{BackendConfig, LocalModelSettings, ModelConfig, ModelSource};
pub use deployment::Deployment;
pub use diagnostic::{ConfigErrors, Diagnostic};
pub use server::{LogFormat, LoggingSettings};

/// Everything that the parts of a running gateway need to know, each in its own words.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The wire.
    pub http: http::Settings,
    /// The life of a request.
    pub gateway: gateway::Settings,
    /// How runs of agents are held.
    pub agents: crate::agent::Settings,
    /// What is remembered of requests with an idempotency key.
    pub idempotency: crate::idempotency::Settings,
    /// What is kept of responses that callers may come back to.
    pub responses: crate::agent::stored::Settings,
    /// What is learned from outcomes, and what is kept of them.
    pub learn: gateway::LearnSettings,
    /// How the ledger keeps up with its journal.
    pub ledger: crate::ledger::Settings,
    /// Where the ledger's journal is.
    pub storage: crate::storage::Settings,
    /// The local engine.
    pub engine: crate::engine::Settings,
    /// True where a local model that cannot be loaded does not keep the others from being served.
    pub skips_unusable: bool,
    /// Models and routes.
    pub catalog: Catalog,
    /// Where what was found out about models is written down, where there is a place for it.
    pub learned: Option<PathBuf>,
    /// What serves the models.
    pub backends: Vec<BackendConfig>,
    /// How the targets of a model are treated.
    pub resilience: fleet::Settings,
    /// What accounts may spend, those of the tenants included.
    pub terms: Vec<AccountTerms>,
    /// Whom to tell of limits that are nearly used up, and of overruns.
    pub webhook: Option<Url>,
    /// Who may call; open to everyone who reaches the address where empty, `first_key` is absent, no key was ever
    /// stored and none is required.
    pub tenants: Vec<Tenant>,
    /// True where nobody is served without a key, though there be none.
    pub keys_required: bool,
    /// The listener of those who manage keys and accounts.
    pub admin: Option<http::AdminSettings>,
    /// Where the first start writes a key that it makes, and later starts find it.
    pub first_key: Option<PathBuf>,
    /// The log.
    pub log: LoggingSettings,
    /// True where there is a file, and anything in it.
    pub is_written: bool,
    /// What is right and hardly meant, each with its remedy.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the settings: from `file`, else from the file that `STINT_CONFIG` names, else from defaults alone.
///
/// `env` looks up environment variables; a running server passes [`environment`].
pub fn load(file: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    load_with(file, env, SecretsPolicy::Required, &ConfigFiles::default())
}

/// How long files that are read while a server runs may go on changing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same while a server runs: any of the files may be in the middle of being written, and half of one may be valid. All
/// are read until they stand still, for a few seconds at most; blocks for so long.
pub fn load_again(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    let began = Instant::now();
    loop {
        let files = ConfigFiles::default();
        let loaded = load_with(file, env, SecretsPolicy::Required, &files);
        match files.wait_until_stable() {
            Ok(()) => return loaded,
            Err(restless) if began.elapsed() >= PATIENCE => return Err(source::unstable_file(&restless)),
            Err(_) => {}
        }
    }
}

/// The same for those who serve nobody and call no upstream: the secrets for that, the admin API's token and upstreams'
/// keys, need not be there, and what needs them is left out.
pub fn load_offline(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    load_with(file, env, SecretsPolicy::Optional, &ConfigFiles::default())
}

fn load_with(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: SecretsPolicy,
    files: &ConfigFiles,
) -> Result<Settings, ConfigErrors> {
    let named = file.map(Path::to_owned).or_else(|| env("STINT_CONFIG").map(PathBuf::from));
    let (text, source) = source::read(named.as_deref(), files)?;
    let folder = named.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let place = ReadContext { folder, env, secrets, files };
    let document = Document::new(&text, place);
    let (settings, mistaken) = match source::parse(&document) {
        None => (None, None),
        Some(table) => {
            let root = document.root(&table);
            let CatalogSources { files, learned, own_price } = known_models::catalog_sources(&root);
            let documents: Vec<Document<'_>> =
                files.iter().map(|file| Document::new(&file.text, place)).collect();
            let settings = {
                let parsed = |document| Some((document, source::parse(document)?));
                let trees: Vec<_> = documents.iter().filter_map(parsed).collect();
                let known: Vec<_> = trees.iter().map(|(document, table)| document.root(table)).collect();
                Settings {
                    learned,
                    is_written: !table.is_empty(),
                    ..read(&root, &KnownModels::from_files(&known, own_price))
                }
            };
            (Some(settings), known_models::first_errors(&files, documents))
        }
    };
    let mut warnings = document.warnings.take();
    warnings.sort_by_key(|warning| warning.line.unwrap_or(usize::MAX));
    let settings = Settings { warnings, ..without_errors(document, source, settings)? };
    mistaken.map_or(Ok(settings), Err)
}

/// Keys and accounts alone, from a text in the form of the configuration: what an import takes. Models and routes that
/// they name must be in the catalog.
pub fn keys(text: &str, source: &str, catalog: &Catalog) -> Result<DeclaredTenants, ConfigErrors> {
    let files = ConfigFiles::default();
    let place = ReadContext {
        folder: Path::new(""),
        env: &|_| None,
        secrets: SecretsPolicy::Required,
        files: &files,
    };
    let document = Document::new(text, place);
    let declared = source::parse(&document).map(|table| {
        let root = document.root(&table);
        let mut accounts = account::DeclaredAccounts::read(&root, catalog);
        let tenants = key::tenants(&root, &mut accounts, catalog, None);
        DeclaredTenants { tenants, terms: accounts.into_terms() }
    });
    without_errors(document, source.to_owned(), declared)
}

/// What was read, where nothing is wrong with it.
fn without_errors<T>(document: Document<'_>, source: String, read: Option<T>) -> Result<T, ConfigErrors> {
    let mut list = document.errors.into_inner();
    list.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    match read {
        Some(read) if list.is_empty() => Ok(read),
        _ => Err(ConfigErrors { source, errors: list }),
    }
}

/// Settings as far as the document is right; what is wrong is noted in it.
fn read(root: &Section<'_>, known: &KnownModels<'_>) -> Settings {
    let http = server::http(root);
    let (engine, with_embedded, skips_unusable) = engine::engine(root);
    let mut declared = Vec::new();
    if with_embedded {
        declared.push(embedded::embedded());
    }
    declared.extend(backend::backends(root, known));
    if !with_embedded && !root.has("backend") {
        let remedy = "add a [[backend]], or take embedded = false out of [engine]";
        root.reject("engine", ValueError::new("no model to serve", remedy));
    }
    let models = model::catalog(root.document(), declared.iter().flat_map(|(_, models)| models));
    model_warnings::warn_models(root.document(), declared.iter().flat_map(|(_, models)| models));
    let (storage, ledger) = storage::storage(root);
    let routes = route::routes(root, &models);
    let catalog = Catalog { models, routes };
    let (first_key, keys_required) = key::keys(root);
    let mut accounts = account::DeclaredAccounts::read(root, &catalog);
    let tenants = key::tenants(root, &mut accounts, &catalog, first_key.as_ref());
    // A key that stands there and is faulty is told of as that.
    key::check_open(root, http.listen, keys_required || root.has_items("key") || first_key.is_some());
    let listeners: Vec<_> = [Some(http.listen), http.metrics_listen].into_iter().flatten().collect();
    let admin = admin::admin(root, &listeners);
    let gateway = server::gateway(root);
    let terms = accounts.into_terms();
    Settings {
        http,
        idempotency: idempotency::idempotency(root, gateway.time_max, gateway.flights_max),
        agents: agents::agents(root, gateway.time_max),
        gateway,
        responses: responses::responses(root),
        learn: learn::learn(root, &storage),
        ledger,
        storage,
        engine,
        skips_unusable,
        catalog,
        learned: None,
        resilience: resilience::resilience(root),
        backends: declared.into_iter().map(|(backend, _)| backend).collect(),
        terms,
        webhook: alerts::webhook(root),
        tenants,
        keys_required,
        admin,
        first_key,
        log: server::log(root),
        is_written: false,
        warnings: Vec::new(),
    }
}

/// The process's environment, for [`load`].
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
