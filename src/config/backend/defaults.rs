//! What all models of a backend share: its kind, and how it is reached.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::reader::{SecretsPolicy, Section, secret};
use stint_backend::remote;
use stint_backend::remote::openai::LimitMember;
use stint_types::regular_file;

use super::base_url::{base_url, check_url};
use super::deployment::Deployment;
use super::host::host_of;
use super::kind::BackendKind;
use super::loading::{self, Loading};

/// What all models of a backend have in common.
#[derive(Debug, Clone)]
pub(super) struct BackendDefaults {
    pub(super) kind: BackendKind,
    pub(super) file: PathBuf,
    pub(super) loading: Loading,
    pub(super) client: remote::Settings,
    pub(super) deployments: Vec<Deployment>,
    pub(super) limit: Option<LimitMember>,
    /// True if the kind that is written is none, and this one was guessed.
    pub(super) is_guess: bool,
}

/// How long a server of one's own may need for its first byte: as long as the official SDKs wait.
const READING_MAX: Duration = Duration::from_mins(10);

/// What every model file begins with.
const GGUF: &[u8] = b"GGUF";

const LIMITS: [(&str, LimitMember); 2] =
    [("max_completion_tokens", LimitMember::MaxCompletionTokens), ("max_tokens", LimitMember::MaxTokens)];

impl BackendDefaults {
    /// A backend of that kind without any configuration.
    pub(super) fn new(kind: BackendKind) -> BackendDefaults {
        let (file, client) = (PathBuf::new(), remote::Settings::default());
        let (loading, deployments) = (Loading::default(), Vec::new());
        BackendDefaults { kind, file, loading, client, deployments, limit: None, is_guess: false }
    }

    /// The host of its address.
    pub(super) fn host(&self) -> Option<String> {
        host_of(&self.client.base_url)
    }

    /// True if it is one's own in every place.
    pub(super) fn is_self_hosted(&self) -> bool {
        self.hosts().all(|host| self.kind.is_self_hosted(host.as_deref()))
    }

    /// True if it is a server of open models of one's own in every place.
    pub(super) fn is_self_hosted_server(&self) -> bool {
        self.hosts().all(|host| self.kind.is_self_hosted_server(host.as_deref()))
    }

    fn hosts(&self) -> impl Iterator<Item = Option<String>> {
        let places = self.deployments.iter().map(|deployment| host_of(&deployment.client.base_url));
        std::iter::once(self.host()).chain(places)
    }
}

/// What a section says of its backend, its deployments not yet among it.
pub(super) fn read(section: &Section<'_>, kind: BackendKind) -> BackendDefaults {
    let mut base = BackendDefaults::new(kind);
    if kind == BackendKind::Local {
        if !section.has("file") {
            section.reject("file", "missing", "name the model's GGUF file");
        }
        let file = section.path("file");
        check_gguf(section, file.as_deref());
        base.file = file.unwrap_or_default();
        base.loading = loading::read(section);
    } else {
        base.client = client(section, kind);
    }
    if !matches!(kind, BackendKind::Local | BackendKind::LlamaCpp) {
        base.limit = section.word("token_limit", &LIMITS);
    }
    base
}

/// A server could not start without the file. Verbs that do not serve do not need it.
fn check_gguf(section: &Section<'_>, file: Option<&Path>) {
    let Some(file) = file.filter(|_| section.document().secrets == SecretsPolicy::Required) else { return };
    let mut head = Vec::new();
    section.document().files.track(file);
    let read =
        regular_file::open(file).and_then(|opened| opened.take(GGUF.len() as u64).read_to_end(&mut head));
    let what = match read {
        Err(error) => format!("{} cannot be read: {error}", file.display()),
        Ok(_) if head != GGUF => format!("{} is no GGUF file: it does not begin with GGUF", file.display()),
        Ok(_) => return,
    };
    section.reject("file", what, "name the model's GGUF file, by a path that starts from this file's folder");
}

fn client(section: &Section<'_>, kind: BackendKind) -> remote::Settings {
    let remedy = match kind {
        BackendKind::OpenAi | BackendKind::Responses => {
            "write where its API begins: \"https://api.openai.com/v1\", or your own server's like \"http://127.0.0.1:8000/v1\""
        }
        _ => "write where its API begins, like \"http://127.0.0.1:8000/v1\"",
    };
    let stated = match kind.base_url() {
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
        connect: section.time("connect_timeout", usual.connect),
        first_byte: section.time("first_byte_timeout", usual.first_byte),
        idle: section.time("idle_timeout", usual.idle),
        total: section.time("total_timeout", usual.total),
        lengthened: remote::LengthenedTimes {
            first_byte: !section.has("first_byte_timeout"),
            total: !section.has("total_timeout"),
        },
        logs_messages: section.get_or("log_messages", false),
        ..usual
    };
    check_url(section, "proxy", settings.proxy.as_deref());
    let base_url = stated.map(|stated| base_url(section, kind, &stated)).unwrap_or_default();
    with_patience(kind, remote::Settings { base_url, ..settings })
}

/// What reads for long is given the time, where nobody said how much.
pub(super) fn with_patience(kind: BackendKind, settings: remote::Settings) -> remote::Settings {
    let (usual, unset) = (remote::Settings::default(), settings.lengthened);
    let reads_for_long = kind.reads_for_long(host_of(&settings.base_url).as_deref());
    let (first_byte, total) = if reads_for_long {
        (READING_MAX, READING_MAX + usual.total)
    } else {
        (usual.first_byte, usual.total)
    };
    remote::Settings {
        first_byte: if unset.first_byte { first_byte } else { settings.first_byte },
        total: if unset.total { total } else { settings.total },
        reads_for_long,
        ..settings
    }
}
