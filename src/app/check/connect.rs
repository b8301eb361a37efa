//! `stint check --connect`: asks every upstream once for its models, and prints what each answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::app::output::print_line;
use crate::config::{self, BackendConfig, ModelSource, Settings};
use stint_backend::remote::model_lister::{ModelListApi, ModelLister};
use stint_backend::remote::{Connections, Settings as Upstream};
use stint_backend::{Failure, Fault};

/// How long each may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One endpoint at which models of a backend are served.
struct UpstreamEndpoint {
    name: String,
    upstream: Upstream,
    listing: ModelListApi,
    /// Whether prompts are counted there, beside `/v1`.
    has_tokenize: bool,
    /// What the models are called there.
    models: Vec<String>,
}

/// Asks all at once, and says what each answered; true if all can be used and have their models.
pub(super) fn check_all(settings: &Settings) -> bool {
    let places: Vec<UpstreamEndpoint> = settings.backends.iter().flat_map(endpoints).collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_line(&format!("  upstreams cannot be asked: {error}"));
            return false;
        }
    };
    let connections = Connections::default();
    runtime
        .block_on(join_all(places.iter().map(|endpoint| check_endpoint(endpoint, &connections))))
        .iter()
        .all(|it| *it)
}

/// The endpoints of a backend, each once, with all models that are served there.
fn endpoints(backend: &BackendConfig) -> Vec<UpstreamEndpoint> {
    let mut places: BTreeMap<String, UpstreamEndpoint> = BTreeMap::new();
    for model in &backend.models {
        let Some(listing) = listing(&model.source) else { continue };
        for deployment in &model.deployments {
            let name = if *deployment.name == *backend.name {
                backend.name.to_string()
            } else {
                format!("{} {}", backend.name, deployment.name)
            };
            let upstream = deployment.client.clone();
            let endpoint = places.entry(name.clone()).or_insert(UpstreamEndpoint {
                name,
                upstream,
                listing,
                has_tokenize: matches!(model.source, ModelSource::Vllm(_)),
                models: Vec::new(),
            });
            endpoint.models.push(deployment.upstream.clone().unwrap_or_else(|| model.upstream.clone()));
        }
    }
    places.into_values().collect()
}

fn listing(source: &ModelSource) -> Option<ModelListApi> {
    match source {
        ModelSource::Embedded(_) | ModelSource::File(..) => None,
        ModelSource::OpenAi(_) | ModelSource::Vllm(_) | ModelSource::Responses(_) => {
            Some(ModelListApi::OpenAi)
        }
        ModelSource::LlamaCpp(_) => Some(ModelListApi::LlamaCpp),
        ModelSource::Anthropic(_) => Some(ModelListApi::Anthropic),
        ModelSource::Gemini(_) => Some(ModelListApi::Gemini),
    }
}

/// Asks one, and says what came of it; true if it can be used.
async fn check_endpoint(endpoint: &UpstreamEndpoint, connections: &Connections) -> bool {
    let began = Instant::now();
    let answered = match ModelLister::new(connections, &endpoint.upstream, endpoint.listing, TIMEOUT) {
        Ok(reach) => reach.models().await,
        Err(error) => {
            print_line(&format!("  {}: {error}", endpoint.name));
            return false;
        }
    };
    let (result, is_usable) = describe_result(endpoint, answered, began.elapsed());
    let result = if is_usable && !counts_tokens(endpoint, connections).await {
        format!(
            "{result}, but does not offer /tokenize beside its /v1: prompts are estimated, and thoughts cut by the stream's own counts"
        )
    } else {
        result
    };
    print_line(&format!("  {} at {}: {result}", endpoint.name, endpoint.upstream.base_url));
    is_usable
}

/// False where a server that is to count tokens does not.
async fn counts_tokens(endpoint: &UpstreamEndpoint, connections: &Connections) -> bool {
    let Some(model) = endpoint.models.first().filter(|_| endpoint.has_tokenize) else { return true };
    let Ok(upstream) = ModelLister::new(connections, &endpoint.upstream, endpoint.listing, TIMEOUT) else {
        return true;
    };
    // Whatever else fails shows when it is asked.
    upstream.offers_tokenize(model).await.unwrap_or(true)
}

fn describe_result(
    endpoint: &UpstreamEndpoint,
    answered: Result<Vec<String>, Failure>,
    took: Duration,
) -> (String, bool) {
    let took = took.as_millis();
    match answered {
        Ok(listed) => {
            let is_missing = |model: &&String| !listed.is_empty() && !listed.contains(model);
            // A llama.cpp server has one model, whatever it is called.
            let missing: Vec<&str> = match endpoint.listing {
                ModelListApi::LlamaCpp => Vec::new(),
                _ => endpoint.models.iter().filter(is_missing).map(String::as_str).collect(),
            };
            match missing[..] {
                [] => (format!("answers, in {took} ms"), true),
                _ => (format!("answers, in {took} ms, but does not list {}", missing.join(", ")), false),
            }
        }
        Err(failure) if failure.fault == Fault::Credential => (format!("refuses the key: {failure}"), false),
        // It is there, and has no list.
        Err(failure) if failure.fault == Fault::Caller => {
            (format!("answers, in {took} ms, and lists no models"), true)
        }
        Err(failure) => {
            let hint = hint(&failure.message, &endpoint.upstream, &config::environment);
            (format!("cannot be used: {failure}{hint}"), false)
        }
    }
}

/// What an operator may have overlooked.
fn hint(message: &str, upstream: &Upstream, env: &dyn Fn(&str) -> Option<String>) -> String {
    if message == "the upstream answered 404" {
        return "; its API may begin elsewhere: compare base_url with the provider's page, most end with /v1"
            .to_owned();
    }
    // Plain http is for servers nearby, to which no proxy leads.
    let is_far = upstream.base_url.starts_with("https://") && upstream.proxy.is_none();
    let variables = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let proxy = variables.into_iter().find(|name| env(name).is_some());
    match proxy.filter(|_| is_far && !message.starts_with("the upstream answered")) {
        Some(name) => {
            format!("; {name} is set and not used here: name the proxy by proxy on the [[backend]]")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_its_version_and_a_proxy_of_the_environment_are_pointed_out() {
        let env = |name: &str| (name == "https_proxy").then(|| "http://proxy:3128".to_owned());
        let at = |base_url: &str| Upstream { base_url: base_url.to_owned(), ..Upstream::default() };
        let far = at("https://api.example.com/v1");
        assert!(hint("the upstream answered 404", &far, &env).contains("most end with /v1"));
        assert_eq!(hint("the upstream answered 500", &far, &env), "");
        let lost = "the upstream could not be connected to in time";
        let told = "; https_proxy is set and not used here: name the proxy by proxy on the [[backend]]";
        assert_eq!(hint(lost, &far, &env), told);
        assert_eq!(hint(lost, &far, &|_| None), "");
        assert_eq!(hint(lost, &at("http://127.0.0.1:8000/v1"), &env), "");
        let named = Upstream { proxy: Some("http://proxy:3128".to_owned()), ..far };
        assert_eq!(hint(lost, &named, &env), "");
    }
}
