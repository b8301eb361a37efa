//! The way to the keys: the database itself where no server holds it, else the server's admin API. Both are asked in
//! the same words.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use crate::app::directory;
use crate::config::Settings;
use crate::http;
use crate::http::AdminSettings;
use crate::ledger::JournalError;
use crate::storage::{self, Database, StorageError};
use crate::tenant::{KeyError, KeyRefused, NewKey, Token};
use crate::units::AccountId;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why keys could not be managed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReachError {
    #[error(
        "a server holds the database, and the configuration has no [admin] to reach that server by: add one and restart \
         the server, or stop it first"
    )]
    NoAdmin,
    #[error(
        "the ledger is \":memory:\", so keys live in the server alone: add [admin] to the configuration to reach it, or \
         give the ledger a file"
    )]
    InMemory,
    #[error(
        "no server answers at {0}, though one holds the database; is its [admin] the one of this configuration?"
    )]
    Silent(String, #[source] reqwest::Error),
    #[error("the server refuses the token: it was started with another one than [admin] names here")]
    Token,
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Keys(#[from] KeyRefused),
    #[error(transparent)]
    Secret(#[from] KeyError),
    #[error("the books cannot be read")]
    Books(#[from] JournalError),
    #[error("the first key's file cannot be read")]
    FirstKey(#[source] std::io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the answer makes no sense: {0}")]
    Nonsense(String),
    #[error("{0} cannot be read")]
    File(String, #[source] std::io::Error),
}

/// Something to be asked of the admin API.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) path: String,
    pub(super) kind: &'static str,
    pub(super) body: String,
}

/// What is to be seen where the database is opened here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Keys, accounts and their limits.
    Terms,
    /// And how these stand, which takes reading the books.
    Standing,
}

/// Who is asked.
pub(super) enum Way {
    /// Nobody holds the database, so it is opened here.
    Here(Router, Token),
    /// The server that holds it.
    There(reqwest::Client, AdminSettings),
}

impl Way {
    /// Finds the way.
    ///
    /// # Errors
    /// When there is none; the error says what to do.
    pub(super) async fn find(settings: &Settings, seen: Seen) -> Result<Way, ReachError> {
        if settings.storage == storage::Settings::Memory {
            return Way::there(settings).ok_or(ReachError::InMemory);
        }
        match Database::open(&settings.storage).await {
            Ok(database) => Way::here(settings, &database, seen).await,
            Err(StorageError::InUse(_)) => Way::there(settings).ok_or(ReachError::NoAdmin),
            Err(error) => Err(error.into()),
        }
    }

    async fn here(settings: &Settings, database: &Database, seen: Seen) -> Result<Way, ReachError> {
        let first = directory::first(settings.first_key.as_deref()).map_err(ReachError::FirstKey)?;
        let keys = Arc::new(directory::open(settings, first, database).await?);
        // Nobody else can call it, so the token is made up.
        let token = Token::new(NewKey::generate()?.reveal());
        let listen = ([127, 0, 0, 1], 0).into();
        let access = AdminSettings { listen, token: token.clone(), hosts: Vec::new() };
        let statement = match seen {
            Seen::Terms => Box::new(|_: &AccountId| None),
            Seen::Standing => directory::stored_standing(database, &keys).await?,
        };
        let nobody = Box::new(|| async { None }.boxed());
        let admin = directory::admin(settings, access, keys, statement, nobody, None);
        Ok(Way::Here(http::admin::admin(&admin), token))
    }

    fn there(settings: &Settings) -> Option<Way> {
        let admin = settings.admin.clone()?;
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().ok()?;
        Some(Way::There(client, admin))
    }

    /// Asks, and gives back a good answer's text.
    ///
    /// # Errors
    /// In the words of the refusal, where it is refused.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<String, ReachError> {
        let (status, text) = match self {
            Way::Here(router, token) => here(router, token, ask).await?,
            Way::There(client, admin) => there(client, admin, ask).await?,
        };
        match status {
            200..300 => Ok(text),
            401 => Err(ReachError::Token),
            _ => {
                Err(ReachError::Refused(message(&text).unwrap_or_else(|| format!("status {status}: {text}"))))
            }
        }
    }
}

async fn here(router: &Router, token: &Token, ask: Ask<'_>) -> Result<(u16, String), ReachError> {
    let nonsense = |error: &dyn std::error::Error| ReachError::Nonsense(error.to_string());
    let request = Request::builder().method(ask.method).uri(&ask.path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {}", token.reveal()));
    let request = request.header("content-type", ask.kind).body(Body::from(ask.body));
    let request = request.map_err(|error| nonsense(&error))?;
    let Ok(response) = TowerToHyperService::new(router.clone()).call(request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| nonsense(&error))?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn there(
    client: &reqwest::Client,
    admin: &AdminSettings,
    ask: Ask<'_>,
) -> Result<(u16, String), ReachError> {
    let base = format!("http://{}", http::reachable(admin.listen));
    let silent = |error| ReachError::Silent(base.clone(), error);
    let method = reqwest::Method::from_bytes(ask.method.as_bytes()).unwrap_or_default();
    let request = client.request(method, format!("{base}{}", ask.path)).bearer_auth(admin.token.reveal());
    let request = request.header("content-type", ask.kind).body(ask.body);
    let response = request.send().await.map_err(silent)?;
    let status = response.status().as_u16();
    Ok((status, response.text().await.map_err(silent)?))
}

fn message(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    Some(answer["error"]["message"].as_str()?.to_owned())
}
