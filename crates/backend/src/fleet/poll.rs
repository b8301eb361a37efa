//! Polls inference engines for their load at intervals.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, redirect};

use crate::remote::Secret;
use stint_types::tasks::Tasks;

use super::{Fleet, ReportedLoad};

/// How long an engine may take to say it, connection included.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest page that is read.
const PAGE_MAX: usize = 4 << 20;

/// Where an engine publishes its load.
#[derive(Debug, Clone)]
pub struct LoadEndpoint {
    /// Its address, like `http://127.0.0.1:8000/metrics`.
    pub url: String,
    /// Sent as a bearer token, as to the engine itself; nothing if the page is on another host.
    pub api_key: Option<Secret>,
}

/// What asks for pages: one HTTP client for all of them. Clones share it.
#[derive(Debug, Clone)]
pub struct LoadPoller(Client);

impl LoadPoller {
    /// One that has not asked yet.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new() -> Result<LoadPoller, reqwest::Error> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        Ok(LoadPoller(client))
    }

    /// Polls the load of one of a fleet's targets and reports it to the fleet, until shutdown or until the fleet is
    /// dropped.
    pub fn poll(&self, tasks: &Tasks, fleet: &Arc<Fleet>, place: usize, page: LoadEndpoint) {
        let client = self.0.clone();
        let (fleet, stopping) = (Arc::downgrade(fleet), tasks.stopping());
        tasks.spawn(async move {
            tokio::pin!(stopping);
            let mut speaks = true;
            loop {
                let load = fetch_load(&client, &page).await;
                let Some(fleet) = fleet.upgrade() else { return };
                if speaks != load.is_some() {
                    speaks = load.is_some();
                    log_change(fleet.name(place), speaks);
                }
                if let Some(load) = load {
                    fleet.record_load(place, load);
                }
                let pause = fleet.settings().load_every;
                drop(fleet);
                tokio::select! {
                    () = &mut stopping => return,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
    }
}

/// Said once when it changes, and not with the address in it.
fn log_change(target: &str, speaks: bool) {
    if speaks {
        tracing::info!(target, "the engine says again how busy it is");
    } else {
        tracing::warn!(target, "the engine does not say how busy it is; look at metrics_url");
    }
}

async fn fetch_load(client: &Client, page: &LoadEndpoint) -> Option<ReportedLoad> {
    let request = client.get(&page.url);
    let request = match &page.api_key {
        Some(key) => request.bearer_auth(key.expose()),
        None => request,
    };
    let mut response = request.send().await.ok()?.error_for_status().ok()?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if text.len() + chunk.len() > PAGE_MAX {
            return None;
        }
        text.extend_from_slice(&chunk);
    }
    ReportedLoad::parse(&String::from_utf8_lossy(&text))
}
