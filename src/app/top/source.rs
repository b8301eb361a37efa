//! Where snapshots come from: the admin API of a running gateway, or its API as long as no key exists.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use serde_json::Value;

use crate::app::local_listener::{LocalListener, LocalListenerError, server_client};
use crate::app::server_call::{KEY, ServerCallError};
use crate::config::{self, Settings};

use super::snapshot::Snapshot;

/// How long the server may take for one part.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The parts of a snapshot, with how much of each is wanted.
const PARTS: [&str; 3] = ["now?limit=60", "requests?limit=100", "money?limit=60"];

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum TopError {
    #[error(transparent)]
    Call(#[from] ServerCallError),
    #[error(transparent)]
    Local(#[from] LocalListenerError),
    #[error(
        "the server at {0} shows nothing here: it does so on its admin API, or beside its API while no key exists. Name the \
         configuration with its [admin] by --config, or give the admin API's address by --url and a key with a role by {KEY}"
    )]
    NoPage(String),
    #[error("no thread can be started to ask the server")]
    Thread(#[from] std::io::Error),
}

/// Whom to ask, and by what right.
#[derive(Debug)]
pub(super) struct SnapshotSource {
    client: reqwest::Client,
    base: String,
    key: Option<String>,
}

impl SnapshotSource {
    /// The server at the stated address, else that of the configuration.
    pub(super) fn new(settings: &Settings, stated: Option<&str>) -> Result<SnapshotSource, TopError> {
        let own = config::environment(KEY);
        if let (None, Some(admin)) = (stated, &settings.admin) {
            let local = LocalListener::new(admin.listen, admin.tls.as_ref());
            let key = own.unwrap_or_else(|| admin.token.reveal().to_owned());
            return Ok(SnapshotSource { client: local.client(TIMEOUT)?, base: local.url(), key: Some(key) });
        }
        let (client, base) = server_client(settings, stated, TIMEOUT)?;
        Ok(SnapshotSource { client, base, key: own })
    }

    /// What there is to see now.
    pub(super) fn ask_once(&self) -> Result<Snapshot, TopError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.ask())
    }

    /// Asks again and again in a thread of its own, until nobody takes the answers any more. What nobody has taken yet is not
    /// followed by more.
    pub(super) fn start(self, every: Duration) -> Result<Receiver<Result<Snapshot, TopError>>, TopError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (answers, taken) = sync_channel(1);
        let asking = move || runtime.block_on(self.keep_asking(every, &answers));
        std::thread::Builder::new().name("top".to_owned()).spawn(asking)?;
        Ok(taken)
    }

    async fn keep_asking(&self, every: Duration, answers: &SyncSender<Result<Snapshot, TopError>>) {
        let mut clock = tokio::time::interval(every);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            if let Err(TrySendError::Disconnected(_)) = answers.try_send(self.ask().await) {
                return;
            }
        }
    }

    async fn ask(&self) -> Result<Snapshot, TopError> {
        let [now, requests, money] = PARTS.map(|part| self.part(part));
        let (now, requests, money) = futures_util::try_join!(now, requests, money)?;
        Ok(Snapshot::of(&now, &requests, &money))
    }

    async fn part(&self, part: &str) -> Result<Value, TopError> {
        let unreachable = |error| ServerCallError::Unreachable(self.base.clone(), error);
        let mut request = self.client.get(format!("{}/admin/page/{part}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await.map_err(unreachable)?;
        let (status, text) =
            (answer.status().as_u16(), answer.text().await.map_err(ServerCallError::BrokenOff)?);
        match status {
            200..300 => Ok(serde_json::from_str(&text)
                .map_err(|_| ServerCallError::InvalidResponse(self.base.clone()))?),
            404 => Err(TopError::NoPage(self.base.clone())),
            _ => Err(ServerCallError::of_answer(&self.base, status, self.key.is_some(), &text).into()),
        }
    }
}
