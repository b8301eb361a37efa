//! `[traces]`: where traces of requests go. What the file does not say, OpenTelemetry's usual variables do.

use std::time::Duration;

use reqwest::Url;

use crate::traces::{Protocol, Settings, TraceSampling};

use super::reader::{Section, secret};

/// What a collector's address usually ends in, over HTTP.
const HTTP_PATH: &str = "v1/traces";

const HEADERS: secret::SecretKeys = secret::SecretKeys {
    text: "headers",
    variable: "headers_env",
    file: "headers_file",
    is_for_servers: true,
};

const PROTOCOLS: [(&str, Protocol); 2] =
    [("http/protobuf", Protocol::HttpProtobuf), ("grpc", Protocol::Grpc)];

/// `[traces]`; none where nobody says where they go, or `OTEL_SDK_DISABLED` and `OTEL_TRACES_EXPORTER` say nowhere.
pub(super) fn traces(root: &Section<'_>) -> Option<Settings> {
    let traces = root.section("traces");
    let env = |name: &str| (traces.document().env)(name).filter(|value| !value.trim().is_empty());
    let of_traces = |name: &str| {
        env(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| env(&format!("OTEL_EXPORTER_OTLP_{name}")))
    };
    let protocol = traces
        .word("protocol", &PROTOCOLS)
        .or_else(|| word_of(&of_traces("PROTOCOL")?))
        .unwrap_or(Protocol::HttpProtobuf);
    let written = traces.get::<String>("endpoint");
    let headers = secret::read(&traces, &HEADERS);
    let sampler = sampler(&traces, &env);
    let queue_max = traces.within("queue_max", 1..=100_000).unwrap_or(2048);
    let patience = traces.within("timeout", Duration::from_millis(100)..=Duration::from_secs(60));
    let timeout_of_env =
        of_traces("TIMEOUT").and_then(|millis| millis.trim().parse().ok()).map(Duration::from_millis);
    let propagates = traces.get_or("propagate", true);
    let service = traces.get::<String>("service");
    let is_off = env("OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"))
        || env("OTEL_TRACES_EXPORTER").is_some_and(|word| word == "none");
    if is_off {
        return None;
    }
    let endpoint = match &written {
        Some(base) => endpoint(&traces, base, protocol, false)?,
        None => match env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            Some(whole) => endpoint(&traces, &whole, protocol, true)?,
            None => endpoint(&traces, &env("OTEL_EXPORTER_OTLP_ENDPOINT")?, protocol, false)?,
        },
    };
    let headers = headers.or_else(|| of_traces("HEADERS")).map(|text| pairs(&text)).unwrap_or_default();
    Some(Settings {
        endpoint,
        protocol,
        headers,
        sampler,
        queue_max,
        timeout: patience.or(timeout_of_env).unwrap_or(Duration::from_secs(10)),
        propagates,
        resource: resource(service.or_else(|| env("OTEL_SERVICE_NAME")), env("OTEL_RESOURCE_ATTRIBUTES")),
    })
}

fn word_of(word: &str) -> Option<Protocol> {
    PROTOCOLS.iter().find(|(known, _)| *known == word.trim()).map(|(_, protocol)| *protocol)
}

/// The address that batches are sent to. A base over HTTP gets the usual path; `whole` is taken as it is.
fn endpoint(traces: &Section<'_>, text: &str, protocol: Protocol, whole: bool) -> Option<String> {
    let url = text.trim().parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url.filter(Url::has_host) else {
        let remedy = "write it like \"http://127.0.0.1:4318\", or \"http://127.0.0.1:4317\" for grpc";
        // Not said again, since it may have a password in it.
        traces.reject("endpoint", "no address of a collector", remedy);
        return None;
    };
    if !url.username().is_empty() || url.password().is_some() {
        let remedy = "name what it wants beside each batch in headers_env or headers_file";
        traces.reject("endpoint", "has a password in it", remedy);
        return None;
    }
    if url.query().is_some() || url.fragment().is_some() {
        traces.reject("endpoint", "has more than a path", "write it without a ? or #");
        return None;
    }
    let base = url.as_str().trim_end_matches('/');
    let is_whole = whole || protocol == Protocol::Grpc || base.ends_with(HTTP_PATH);
    Some(if is_whole { base.to_owned() } else { format!("{base}/{HTTP_PATH}") })
}

/// Which are recorded: by the file, else by the usual samplers' names.
fn sampler(traces: &Section<'_>, env: &dyn Fn(&str) -> Option<String>) -> TraceSampling {
    let written_ratio = traces.within("sample", 0.0..=1.0);
    let follows = traces.get::<bool>("follow_caller");
    let word = env("OTEL_TRACES_SAMPLER").unwrap_or_else(|| "parentbased_always_on".to_owned());
    let share = || env("OTEL_TRACES_SAMPLER_ARG").and_then(|share| share.trim().parse::<f64>().ok());
    let ratio = match word.trim_start_matches("parentbased_") {
        "always_off" => 0.0,
        "traceidratio" => share().filter(|share| (0.0..=1.0).contains(share)).unwrap_or(1.0),
        _ => 1.0,
    };
    let follows_caller = follows.unwrap_or_else(|| word.starts_with("parentbased_"));
    TraceSampling { ratio: written_ratio.unwrap_or(ratio), follows_caller }
}

fn resource(service: Option<String>, more: Option<String>) -> Vec<(String, String)> {
    let mut attributes = more.map(|text| pairs(&text)).unwrap_or_default();
    let is_named = attributes.iter().any(|(name, _)| name == "service.name");
    if let Some(service) = service.or_else(|| (!is_named).then(|| "stint".to_owned())) {
        attributes.retain(|(name, _)| name != "service.name");
        attributes.push(("service.name".to_owned(), service));
    }
    if !attributes.iter().any(|(name, _)| name == "service.version") {
        attributes.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    }
    attributes
}

/// `name=value,name=value`, as the standard writes headers and attributes; values may be percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        // What a form gives a meaning is itself here.
        let form = text.trim().replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
        let pair = form_urlencoded::parse(form.as_bytes()).next();
        pair.map(|(text, _)| text.into_owned()).unwrap_or_default()
    };
    let parts = text.split(',').filter_map(|part| part.split_once('='));
    parts.map(|(name, value)| (name.trim().to_lowercase(), decoded(value))).collect()
}
