//! Every upstream, asked once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::backend::remote::reach::{Listing, Reach};
use crate::backend::remote::{Connections, Settings as Upstream};
use crate::backend::{Failure, Fault};
use crate::config::{Backend, Settings, Source};

use super::super::command::say;

/// How long each may take to connect, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// One place where models of a backend are served.
struct Place {
    name: String,
    upstream: Upstream,
    listing: Listing,
    /// What the models are called there.
    models: Vec<String>,
}

/// Asks all at once, and says what each answered; true where all can be used.
pub(super) fn all(settings: &Settings) -> bool {
    let places: Vec<Place> = settings.backends.iter().flat_map(places).collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("  upstreams cannot be asked: {error}"));
            return false;
        }
    };
    let connections = Connections::default();
    runtime.block_on(join_all(places.iter().map(|place| ask(place, &connections)))).iter().all(|it| *it)
}

/// The places of a backend, each once, with all models that are served there.
fn places(backend: &Backend) -> Vec<Place> {
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for model in &backend.models {
        let Some(listing) = listing(&model.source) else { continue };
        for deployment in &model.deployments {
            let name = match *deployment.name == *backend.name {
                true => backend.name.to_string(),
                false => format!("{} {}", backend.name, deployment.name),
            };
            let upstream = deployment.client.clone();
            let place =
                places.entry(name.clone()).or_insert(Place { name, upstream, listing, models: Vec::new() });
            place.models.push(deployment.upstream.clone().unwrap_or_else(|| model.upstream.clone()));
        }
    }
    places.into_values().collect()
}

fn listing(source: &Source) -> Option<Listing> {
    match source {
        Source::Embedded(_) | Source::File(..) => None,
        Source::OpenAi(_) | Source::Vllm(_) | Source::Responses(_) => Some(Listing::OpenAi),
        Source::LlamaCpp(_) => Some(Listing::LlamaCpp),
        Source::Anthropic(_) => Some(Listing::Anthropic),
        Source::Gemini(_) => Some(Listing::Gemini),
    }
}

/// Asks one, and says what came of it; true where it can be used.
async fn ask(place: &Place, connections: &Connections) -> bool {
    let began = Instant::now();
    let answered = match Reach::new(connections, &place.upstream, place.listing, PATIENCE) {
        Ok(reach) => reach.models().await,
        Err(error) => {
            say(&format!("  {}: {error}", place.name));
            return false;
        }
    };
    let (told, is_usable) = told(place, answered, began.elapsed());
    say(&format!("  {} at {}: {told}", place.name, place.upstream.base_url));
    is_usable
}

fn told(place: &Place, answered: Result<Vec<String>, Failure>, took: Duration) -> (String, bool) {
    let took = took.as_millis();
    match answered {
        Ok(listed) => {
            let is_missing = |model: &&String| !listed.is_empty() && !listed.contains(model);
            // A llama.cpp server has one model, whatever it is called.
            let missing: Vec<&str> = match place.listing {
                Listing::LlamaCpp => Vec::new(),
                _ => place.models.iter().filter(is_missing).map(String::as_str).collect(),
            };
            match missing[..] {
                [] => (format!("answers, in {took} ms"), true),
                _ => (format!("answers, in {took} ms, but does not list {}", missing.join(", ")), true),
            }
        }
        Err(failure) if failure.fault == Fault::Credential => (format!("refuses the key: {failure}"), false),
        // It is there, and has no list.
        Err(failure) if failure.fault == Fault::Caller => {
            (format!("answers, in {took} ms, and lists no models"), true)
        }
        Err(failure) => (format!("cannot be used: {failure}"), false),
    }
}
