//! How an upstream is reached: its address, its credential, and a limit on every wait. Every dialect's settings have these.

use std::time::Duration;

use reqwest::Url;
use sha2::{Digest, Sha256};

use stint_types::catalog::{ImageTokens, MemberRules};
use stint_types::chat::SigningDomain;

use super::caller_headers::CallerHeaderRules;
use super::prompt_cache::PromptCacheRules;
use super::secret::Secret;
use super::sse::SseLimits;

/// The longest that counting a prompt or listing models may keep silent.
const WITHOUT_MODEL_MAX: Duration = Duration::from_secs(60);

/// How the key is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// As a bearer token.
    #[default]
    Bearer,
    /// As it is, in a header of that name.
    Header(&'static str),
}

/// Which times a caller's deadline lengthens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LengthenedTimes {
    /// That for the first byte.
    pub first_byte: bool,
    /// That for the whole.
    pub total: bool,
}

/// How an upstream is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where the API begins, as OpenAI's SDKs want it: `https://api.example.com/v1`.
    pub base_url: String,
    /// Sent as `auth` says.
    pub api_key: Option<Secret>,
    /// How the key is sent.
    pub auth: Auth,
    /// The organisation of the credential, if it is stated. All its targets can verify what one of them signs.
    pub organization: Option<String>,
    /// Sent with every request: a header's name, and what it says.
    pub headers: Vec<(&'static str, String)>,
    /// The proxy to go through; the environment's is not looked at.
    pub proxy: Option<String>,
    /// Whether a connection is used again for the next request.
    pub keep_alive: bool,
    /// Whether to send a request once more if its connection was lost, and probably before anybody read it. Nothing proves
    /// that nobody has.
    pub sent_too: bool,
    /// How long to wait for a connection, TLS included.
    pub connect: Duration,
    /// How long to wait for the first byte of an answer, unless the upstream may think before.
    pub first_byte: Duration,
    /// Which of these times a caller's deadline lengthens: those that nobody set.
    pub lengthened: LengthenedTimes,
    /// True of a server of one's own. It may load a model or read for minutes, and goes on reading what nobody waits for any
    /// more: a call without a first byte is not sent there again.
    pub reads_for_long: bool,
    /// How long to wait between two pieces of an answer; where the thought is hidden, from the first token on.
    pub idle: Duration,
    /// How long the end of a stream may lag behind its last event, if its connection is to be used again.
    pub release_wait: Duration,
    /// How long an answer may take altogether.
    pub total: Duration,
    /// The longest `Retry-After` that is believed.
    pub retry_after_max: Duration,
    /// How long lines and events may be. The limit on events holds for whole bodies too.
    pub limits: SseLimits,
    /// Whether its messages about refusals are logged, beside their codes.
    pub logs_messages: bool,
    /// What becomes of members of a request that the gateway gives no meaning to.
    pub members: MemberRules,
    /// What an image costs the model at most.
    pub images: ImageTokens,
    /// Who shares its prompt cache.
    pub prompt_cache: PromptCacheRules,
    /// What goes on to it of its callers' headers.
    pub caller_headers: CallerHeaderRules,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            base_url: String::new(),
            api_key: None,
            auth: Auth::Bearer,
            organization: None,
            headers: Vec::new(),
            proxy: None,
            keep_alive: true,
            sent_too: true,
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            lengthened: LengthenedTimes::default(),
            reads_for_long: false,
            idle: Duration::from_secs(60),
            release_wait: Duration::from_millis(20),
            total: Duration::from_secs(600),
            retry_after_max: Duration::from_secs(60),
            limits: SseLimits::default(),
            logs_messages: false,
            members: MemberRules::default(),
            images: ImageTokens::default(),
            prompt_cache: PromptCacheRules::default(),
            caller_headers: CallerHeaderRules::default(),
        }
    }
}

impl Settings {
    /// How long to wait for the first byte of what a caller with that deadline asks.
    pub(super) fn first_byte_within(&self, deadline: Option<Duration>) -> Duration {
        let stated = deadline.filter(|_| self.lengthened.first_byte);
        stated.map_or(self.first_byte, |stated| stated.max(self.first_byte))
    }

    /// How long the whole of it may take.
    pub(super) fn total_within(&self, deadline: Option<Duration>) -> Duration {
        let stated = deadline.filter(|_| self.lengthened.total);
        stated.map_or(self.total, |stated| stated.max(self.total))
    }

    /// How long to wait for the first byte of what no model works on.
    pub(super) fn first_byte_without_model(&self) -> Duration {
        self.first_byte.min(WITHOUT_MODEL_MAX)
    }

    /// Says which targets can verify what this one signs: those at the same address with the same credential, or those of
    /// the same organisation. It is 32 bits of a hash, too few to find a credential by.
    pub fn origin(&self) -> SigningDomain {
        let (base, key) = (self.base_url.trim_end_matches('/'), self.api_key.as_ref().map(Secret::expose));
        let parts = match &self.organization {
            Some(name) => ["organization", name, ""],
            None => ["credential", base, key.unwrap_or_default()],
        };
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        SigningDomain(u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }

    /// The base URL, which must have no credentials and no query.
    pub(super) fn parsed_base_url(&self) -> Result<Url, SettingsError> {
        let url = Url::parse(&self.base_url).map_err(|_| SettingsError::Url)?;
        let plain =
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
        if !plain || !url.has_host() || url.query().is_some() {
            return Err(SettingsError::Url);
        }
        Ok(url)
    }
}

/// Why an upstream cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The base URL is not usable.
    #[error("the base URL of an upstream must be an absolute http or https URL without credentials")]
    Url,
    /// The key has characters that no header may have.
    #[error("the API key of an upstream has characters that no header may have")]
    Key,
    /// A header has a name or a value that none may have.
    #[error("a header for an upstream has characters that no header may have")]
    Header,
    /// The proxy is not a URL.
    #[error("the proxy of an upstream is not a URL")]
    Proxy,
    /// The HTTP client could not be built.
    #[error("the HTTP client of an upstream could not be made")]
    Client(#[source] reqwest::Error),
    /// The certificates that the system trusts cannot be read.
    #[error(
        "the certificates that the system trusts cannot be read; install them (ca-certificates), or name them in SSL_CERT_FILE"
    )]
    Roots(#[source] rustls::Error),
}
