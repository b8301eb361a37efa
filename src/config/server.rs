//! The sections about the server itself: `[server]`, `[gateway]`, `[thinking]`, `[log]`.

use std::time::Duration;

use crate::execute::EventLimits;
use crate::gateway;
use crate::http;
use crate::http::{ImageUrls, Origins};
use stint_decide::plan;
use stint_types::units::Chance;

use super::reader::{ByteSize, Section, ValueError, address};
use super::{efforts, tls};

/// The log, on standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingSettings {
    /// What is logged, as `tracing` filters say it: `info`, or `info,stint::execute=debug`.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
    /// Whether every request has its line.
    pub requests: bool,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

const IMAGE_URLS: [(&str, ImageUrls); 4] = [
    ("data", ImageUrls::Data),
    ("https", ImageUrls::Https),
    ("http", ImageUrls::Http),
    ("private", ImageUrls::Private),
];

/// `[server]` and `[thinking]`.
pub(super) fn http(root: &Section<'_>, flights_max: usize) -> http::Settings {
    let server = root.section("server");
    let listen = server.document().env_value("STINT_LISTEN", address).or(server.get("listen"));
    let metrics_listen = server.get("metrics_listen");
    let body_max = bytes(&server, "body_max", 32 << 20);
    let connections_max = server.within("connections_max", 1..=1_000_000).unwrap_or(2048);
    let settings = http::Settings {
        listen: listen.unwrap_or(([127, 0, 0, 1], 8080).into()),
        hosts: hosts(&server),
        metrics_listen,
        tls: tls::tls(&server),
        connections_max,
        address_connections_max: server
            .within("address_connections_max", 1..=1_000_000)
            .unwrap_or(connections_max.div_ceil(2)),
        account_requests_max: server
            .within("account_requests_max", 1..=1_000_000)
            .unwrap_or(connections_max.min(flights_max).div_ceil(2)),
        http2_requests_max: server.within("http2_requests_max", 0..=10_000).unwrap_or(100),
        trusted_proxies: server.get_or("trusted_proxies", Vec::new()),
        body_max,
        bodies_max: bodies_max(&server, body_max),
        headers_max: server.within("headers_max", 8..=1000).unwrap_or(64),
        head_max: bytes(&server, "head_max", 32 << 10),
        head_timeout: seconds(&server, "head_timeout", 10),
        body_timeout: seconds(&server, "body_timeout", 15),
        body_total: seconds(&server, "body_total", 120),
        write_timeout: seconds(&server, "write_timeout", 30),
        drain: seconds(&server, "drain", 30),
        heartbeat: seconds(&server, "heartbeat", 15),
        image_urls: server.word("image_urls", &IMAGE_URLS).unwrap_or_default(),
        mirror_reasoning: server.get_or("mirror_reasoning", false),
        cors: cors(&server),
        efforts: efforts::table(&root.section("thinking").section("efforts")),
    };
    if settings.metrics_listen == Some(settings.listen) && settings.listen.port() != 0 {
        let remedy = "give it a port of its own, or leave it out to serve both on one";
        server.reject("metrics_listen", "the same address as listen", remedy);
    }
    settings
}

/// The names by which the API may be called.
fn hosts(server: &Section<'_>) -> Vec<String> {
    let hosts = server.get_or("hosts", Vec::<String>::new());
    let is_name = |host: &String| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    if let Some(wrong) = hosts.iter().find(|host| !is_name(host)) {
        let remedy = "write the name alone, without scheme and port, like \"host.docker.internal\"";
        server.reject("hosts", format!("{wrong:?}, which is no host's name"), remedy);
    }
    hosts
}

/// `[server.cors]`: nobody, where it is absent or lists nobody.
fn cors(server: &Section<'_>) -> Option<Origins> {
    if !server.has("cors") {
        return None;
    }
    let cors = server.section("cors");
    let listed = cors.get_or("origins", Vec::<String>::new());
    let is_any = listed.iter().any(|origin| origin == "*");
    if let Some(wrong) = listed.iter().find(|origin| !(is_any || is_origin(origin))) {
        let remedy = "write each as a browser does, scheme, host and port alone, like \"https://app.example\" or \
                      \"http://localhost:3000\"; or \"*\" for every page";
        cors.reject("origins", format!("{wrong:?}, which is no origin"), remedy);
    }
    if is_any {
        return Some(Origins::Any);
    }
    (!listed.is_empty()).then_some(Origins::Listed(listed))
}

/// As a browser would write it: another form would never match.
fn is_origin(text: &str) -> bool {
    reqwest::Url::parse(text)
        .is_ok_and(|url| url.origin().ascii_serialization() == text || is_origin_of_an_app(&url, text))
}

/// Applications that are browsers inside, and extensions of browsers, have schemes of their own: `app://obsidian.md`.
fn is_origin_of_an_app(url: &reqwest::Url, text: &str) -> bool {
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let is_bare = url.path().is_empty() && url.query().is_none() && url.fragment().is_none();
    let is_anybody = url.username().is_empty() && url.password().is_none();
    !url.origin().is_tuple() && has_host && is_bare && is_anybody && url.as_str() == text
}

/// Room for one body at least.
fn bodies_max(server: &Section<'_>, body_max: usize) -> usize {
    let stated = server.within("bodies_max", ByteSize(1 << 10)..=ByteSize(1 << 40)).map(|bytes| bytes.0);
    if stated.is_some_and(|stated| stated < body_max) {
        let remedy = "give it room for one body at least; for several, some times body_max";
        server.reject("bodies_max", "less than body_max", remedy);
    }
    stated.unwrap_or_else(|| body_max.max(256 << 20))
}

/// The latest deadline that a caller may state where the operator set no limit.
const DEADLINE_MAX: Duration = Duration::from_hours(1);

/// `[gateway]`.
pub(super) fn gateway(root: &Section<'_>, opening_quantile: Chance) -> gateway::Settings {
    let gateway = root.section("gateway");
    let time_max = seconds(&gateway, "time_max", 600);
    gateway::Settings {
        time_max,
        // Who set a limit has set it for all.
        deadline_max: if gateway.has("time_max") { time_max } else { DEADLINE_MAX },
        settle_patience: seconds(&gateway, "settle_patience", 2),
        meter_every: seconds(&gateway, "meter_every", 5),
        wait_max: gateway
            .within("wait_max", Duration::ZERO..=Duration::from_secs(600))
            .unwrap_or(Duration::from_secs(30)),
        events: EventLimits {
            events: gateway.within("events_max", 1..=65_536).unwrap_or(64),
            bytes: gateway
                .within("events_bytes", ByteSize(1 << 10)..=ByteSize(1 << 30))
                .map_or(16 << 10, |bytes| bytes.0),
        },
        choices_max: gateway.within("choices_max", 1..=128).unwrap_or(8),
        flights_max: gateway.within("flights_max", 1..=1_000_000).unwrap_or(1024),
        opening_quantile,
    }
}

/// What is said of all plans.
pub(super) struct PlanKeys {
    /// What share of answers a first reservation covers.
    pub(super) opening_quantile: Chance,
    /// Whether `auto` tries models that look worse where nobody wrote that route.
    pub(super) auto_explores: bool,
}

/// `[plan]`.
pub(super) fn plan(root: &Section<'_>) -> PlanKeys {
    let plan = root.section("plan");
    let stated = plan.within("opening_quantile", 0.5..=0.999);
    PlanKeys {
        opening_quantile: Chance::new(stated.unwrap_or(plan::OPENING_QUANTILE)),
        auto_explores: plan.get_or("auto_explores", true),
    }
}

/// `[log]`; `STINT_LOG` overrides its filter.
pub(super) fn log(root: &Section<'_>) -> LoggingSettings {
    let log = root.section("log");
    let from_env = log.document().env_value("STINT_LOG", |text| filter(text).map(|()| text.to_owned()));
    let from_file = log.get::<String>("filter");
    if let Some(Err(wrong)) = from_file.as_deref().map(filter) {
        log.reject_value("filter", wrong);
    }
    LoggingSettings {
        filter: from_env.or(from_file).unwrap_or_else(|| "info".to_owned()),
        format: log
            .word("format", &[("text", LogFormat::Text), ("json", LogFormat::Json)])
            .unwrap_or(LogFormat::Text),
        requests: log.get_or("requests", true),
    }
}

fn seconds(section: &Section<'_>, key: &'static str, usual: u64) -> Duration {
    section.time(key, Duration::from_secs(usual))
}

fn bytes(section: &Section<'_>, key: &'static str, default: usize) -> usize {
    section.within(key, ByteSize(1 << 10)..=ByteSize(1 << 30)).map_or(default, |bytes| bytes.0)
}

/// Modules whose bare name is a filter. Any other word is a misspelt level, which would silence all.
const LOGGING: [&str; 14] = [
    "axum",
    "h2",
    "hyper",
    "hyper_util",
    "naga",
    "reqwest",
    "rustls",
    "sqlx",
    "tokio",
    "tower",
    "wgpu",
    "wgpu_core",
    "wgpu_hal",
    "stint",
];

fn filter(text: &str) -> Result<(), ValueError> {
    let remedy = "write it like \"info\" or \"info,stint::execute=debug\"";
    let parsed = text.parse::<tracing_subscriber::filter::Targets>();
    parsed.map_err(|error| ValueError::new(error.to_string(), remedy))?;
    let is_level = |word: &str| word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    let is_module = |word: &str| {
        let name = word.split("::").next().unwrap_or_default();
        LOGGING.contains(&name) || name.starts_with("stint_")
    };
    let mut bare = text.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains('='));
    match bare.find(|word| !is_level(word) && !is_module(word)) {
        None => Ok(()),
        Some(word) => {
            let what = format!("\"{word}\" is no level, and nothing here logs by that name");
            let levels = "the levels are off, error, warn, info, debug and trace; a module has one, like \"info,hyper=debug\"";
            Err(ValueError::new(what, levels))
        }
    }
}
