//! Asks `OpenRouter` for its prices now and then, keeps them in a file, and has the configuration read again where they changed.
//!
//! Requests never wait for it. What was kept holds until a newer list is there, over restarts too.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::config::{OpenRouterPrices, is_other_catalogue};
use stint_backend::Failure;
use stint_backend::remote::price_list::PriceLister;
use stint_backend::remote::{Connections, SettingsError};
use stint_types::tasks::Tasks;

use super::config_snapshot::ConfigSnapshot;
use super::error::error_chain;
use super::reload_handle::ReloadHandle;
use super::whole_file::write_whole_file;

/// How long the list may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// After a list that was not to be had: the first wait, which doubles up to the time between two lists.
const RETRY_MIN: Duration = Duration::from_secs(60);

/// How often is looked whether another configuration wants prices, or others have written them.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Why there are no new prices.
#[derive(Debug, thiserror::Error)]
enum PriceError {
    #[error(transparent)]
    Client(#[from] SettingsError),
    #[error(transparent)]
    Upstream(#[from] Failure),
    #[error("it lists no model with a price")]
    Nothing,
    #[error("they cannot be written to the file")]
    File(#[source] io::Error),
}

/// Runs until shutdown begins.
pub(super) async fn keep_prices(current: Arc<ArcSwap<ConfigSnapshot>>, reloads: ReloadHandle, tasks: Tasks) {
    let mut stopping = pin!(tasks.stopping());
    let mut retry = RETRY_MIN;
    loop {
        let prices = current.load().settings.openrouter.clone();
        let due = prices.filter(|prices| age(prices).is_none_or(|age| age >= prices.every));
        let wait = match due {
            None => time_left(&current),
            Some(prices) => {
                let refreshed = tokio::select! {
                    biased;
                    () = &mut stopping => return,
                    refreshed = refresh(&prices) => refreshed,
                };
                report(refreshed, &reloads, &mut retry, prices.every)
            }
        };
        tokio::select! {
            biased;
            () = &mut stopping => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Until the prices in the file are too old, or another configuration may be there.
fn time_left(current: &ArcSwap<ConfigSnapshot>) -> Duration {
    let snapshot = current.load();
    let prices = snapshot.settings.openrouter.as_ref();
    let left = prices.and_then(|prices| Some(prices.every.saturating_sub(age(prices)?)));
    left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)
}

/// Says what came of it; how long to wait then.
fn report(
    refreshed: Result<bool, PriceError>,
    reloads: &ReloadHandle,
    retry: &mut Duration,
    every: Duration,
) -> Duration {
    match refreshed {
        Ok(is_changed) => {
            *retry = RETRY_MIN;
            if is_changed {
                tracing::info!("OpenRouter lists other prices than before; the configuration is read again");
                reloads.request_reload();
            }
            every.min(LOOK_AGAIN)
        }
        Err(error) => {
            let pause = every.min(*retry);
            tracing::warn!(error = %error_chain(&error), again_in = ?pause, "no new prices from OpenRouter; the stored ones stay in force");
            *retry = pause.saturating_mul(2);
            pause
        }
    }
}

/// How long ago the file was written; nothing without one.
fn age(prices: &OpenRouterPrices) -> Option<Duration> {
    let written = std::fs::metadata(&prices.file).and_then(|file| file.modified()).ok()?;
    // One of the future is as good as new.
    Some(written.elapsed().unwrap_or_default())
}

/// Asks, and keeps the answer; true if it says something else than what was kept.
async fn refresh(prices: &OpenRouterPrices) -> Result<bool, PriceError> {
    let listed = PriceLister::new(&Connections::default(), &prices.client, PATIENCE)?.prices().await?;
    if listed.is_empty() {
        return Err(PriceError::Nothing);
    }
    let text = prices.catalogue(&listed, &jiff::Timestamp::now().strftime("%Y-%m-%d").to_string());
    let file = prices.file.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        write_whole_file(&file, &text).map(|()| is_other_catalogue(&before, &text))
    });
    writing.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(PriceError::File)
}
