//! Reads the settings from a file, the environment and the catalogue's files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stint_types::catalog::Catalog;
use stint_types::tenant::DeclaredTenants;
use stint_types::units::nearest;

use super::backend::{CatalogSources, KnownModels};
use super::reader::{
    ConfigErrors, ConfigFiles, Diagnostic, Document, ReadContext, SecretsPolicy, Section, source,
};
use super::settings::Settings;
use super::{
    account, admin, agents, alerts, backend, engine, guardrail, idempotency, issuer, key, learn, resilience,
    responses, route, server, storage, traces,
};

/// Reads the settings: from `file`, else from the file that `STINT_CONFIG` names, else from defaults alone.
///
/// `env` looks up environment variables; a running server passes [`environment`].
pub fn load(file: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    load_with(file, env, SecretsPolicy::Required, &ConfigFiles::default())
}

/// The same for those who start a server or check what one is to start with: a file that is named and has nothing in it is refused. It
/// would mean all defaults, and is more likely what a full disk or a wrong mount left.
pub fn load_to_serve(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    let settings = load(file, env)?;
    match named(file, env) {
        Some(empty) if !settings.is_written => Err(source::empty_file(&empty)),
        _ => Ok(settings),
    }
}

/// The file that is named, as an argument or by the environment.
fn named(file: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    file.map(Path::to_owned).or_else(|| env("STINT_CONFIG").map(PathBuf::from))
}

/// How long files that are read while a server runs may go on changing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same while a server runs: any of the files may be in the middle of being written, and half of one may be valid. All
/// are read until they stand still, for a few seconds at most; blocks for so long. What is no regular file is refused: nobody may
/// ever write to a pipe.
pub fn load_again(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    let began = Instant::now();
    loop {
        let files = ConfigFiles::of_running_server();
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

/// The same for those who need no more than the sections of these names, with the mistakes elsewhere: after a refused reload the
/// gateway runs on, and is looked after by verbs that read the refused file.
///
/// # Errors
/// Those of the sections, and those that may hide one of them: what is no TOML, what stands twice, and a section whose name is nearly
/// one of these.
pub fn load_sections(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    needed: &[&str],
) -> Result<(Settings, Option<ConfigErrors>), ConfigErrors> {
    let parsed = parse_with(file, env, SecretsPolicy::Optional, &ConfigFiles::default())?;
    let (own, mut elsewhere): (Vec<_>, Vec<_>) =
        parsed.errors.into_iter().partition(|mistake| concerns_section(mistake, needed));
    elsewhere.extend(parsed.file_errors.into_iter().flat_map(|mistakes| mistakes.errors));
    let source = parsed.source.clone();
    let settings = without_errors(own, parsed.source, parsed.settings)?;
    let elsewhere = (!elsewhere.is_empty()).then_some(ConfigErrors { source, errors: elsewhere });
    Ok((settings, elsewhere))
}

/// True if one of the sections may not say what its writer meant.
fn concerns_section(mistake: &Diagnostic, needed: &[&str]) -> bool {
    let section = match &*mistake.key {
        "STINT_LISTEN" => "server",
        "STINT_LEDGER" => "ledger",
        key => key.split('.').next().unwrap_or_default(),
    };
    let is_whole_section = !mistake.key.contains('.');
    section.is_empty()
        || needed.contains(&section)
        || (is_whole_section && nearest(section, needed.iter().copied()).is_some())
        || mistake.what == source::STANDS_TWICE
}

/// What could be read of a configuration, and what is wrong with it.
struct ParsedConfig {
    settings: Option<Settings>,
    source: String,
    /// Those of the file itself.
    errors: Vec<Diagnostic>,
    /// Those of the first mistaken file that it names.
    file_errors: Option<ConfigErrors>,
}

fn load_with(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: SecretsPolicy,
    files: &ConfigFiles,
) -> Result<Settings, ConfigErrors> {
    let parsed = parse_with(file, env, secrets, files)?;
    let settings = without_errors(parsed.errors, parsed.source, parsed.settings)?;
    parsed.file_errors.map_or(Ok(settings), Err)
}

fn parse_with(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: SecretsPolicy,
    files: &ConfigFiles,
) -> Result<ParsedConfig, ConfigErrors> {
    let named = named(file, env);
    let (text, source) = source::read(named.as_deref(), files)?;
    let folder = named.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let place = ReadContext { folder, env, secrets, files };
    let document = Document::new(&text, place);
    let (settings, file_errors) = match source::parse(&document) {
        None => (None, None),
        Some(table) => {
            let root = Section::root(&document, &table);
            let CatalogSources { files, prices, learned, own_price } = backend::catalog_sources(&root, place);
            let documents: Vec<Document<'_>> =
                files.iter().map(|file| Document::new(&file.text, place)).collect();
            let settings = {
                let parsed = |document| Some((document, source::parse(document)?));
                let trees: Vec<_> = documents.iter().filter_map(parsed).collect();
                let known: Vec<_> =
                    trees.iter().map(|(document, table)| Section::root(document, table)).collect();
                let settings = read(&root, &KnownModels::from_files(&known, own_price));
                let openrouter = prices.and_then(|prices| prices.asked_of(&settings.backends));
                Settings { learned, openrouter, is_written: !table.is_empty(), ..settings }
            };
            (Some(settings), backend::first_errors(&files, documents))
        }
    };
    let mut warnings = document.warnings.take();
    warnings.sort_by_key(|warning| warning.line.unwrap_or(usize::MAX));
    let settings = settings.map(|settings| Settings { warnings, ..settings });
    Ok(ParsedConfig { settings, source, errors: errors_of(document), file_errors })
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
        let root = Section::root(&document, &table);
        let mut accounts = account::DeclaredAccounts::read(&root, catalog);
        let tenants = key::tenants(&root, &mut accounts, catalog, None);
        DeclaredTenants { tenants, terms: accounts.into_terms(), ..DeclaredTenants::default() }
    });
    without_errors(errors_of(document), source.to_owned(), declared)
}

/// What was read, where nothing is wrong with it.
fn without_errors<T>(errors: Vec<Diagnostic>, source: String, read: Option<T>) -> Result<T, ConfigErrors> {
    match read {
        Some(read) if errors.is_empty() => Ok(read),
        _ => Err(ConfigErrors { source, errors }),
    }
}

/// What was found wrong with a document, in the order of its lines.
fn errors_of(document: Document<'_>) -> Vec<Diagnostic> {
    let mut list = document.errors.into_inner();
    list.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    list
}

/// Settings as far as the document is right; what is wrong is noted in it.
pub(super) fn read(root: &Section<'_>, known: &KnownModels<'_>) -> Settings {
    let plan = server::plan(root);
    let gateway = server::gateway(root, plan.opening_quantile);
    let http = server::http(root, gateway.flights_max);
    let (engine, with_embedded, skips_unusable) = engine::engine(root);
    let (backends, models) = backend::backends(root, known, with_embedded);
    let (storage, ledger) = storage::storage(root);
    let routes = route::routes(root, &models, plan.auto_explores);
    let catalog = Catalog { models, routes };
    let (first_key, keys_required) = key::keys(root);
    let mut accounts = account::DeclaredAccounts::read(root, &catalog);
    let tenants = key::tenants(root, &mut accounts, &catalog, first_key.as_ref());
    let issuers = issuer::issuers(root, &catalog, &tenants);
    // A faulty key has a mistake of its own, and still counts as one.
    let has_any = root.has_items("key") || root.has_items("issuer");
    key::check_open(root, http.listen, keys_required || has_any || first_key.is_some());
    let listeners: Vec<_> = [Some(http.listen), http.metrics_listen].into_iter().flatten().collect();
    let admin = admin::admin(root, &listeners);
    let terms = accounts.into_terms();
    let guardrails = guardrail::guardrails(root, &catalog);
    let idempotency = idempotency::idempotency(root, gateway.time_max, gateway.flights_max);
    let gateway = gateway.remembered_for(idempotency.keep);
    Settings {
        http,
        idempotency,
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
        openrouter: None,
        resilience: resilience::resilience(root),
        backends,
        terms,
        webhook: alerts::webhook(root),
        traces: traces::traces(root),
        tenants,
        keys_required,
        issuers,
        guardrails,
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
