//! How `stint keys` calls the admin API: in this process over the opened database where no server holds it, else at the running
//! server. Both get the same requests.

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

use crate::app::directory::{self, StoredParts};
use crate::app::local_listener::{LocalListener, LocalListenerError};
use crate::config::{ConfigErrors, Settings};
use crate::http;
use crate::http::AdminSettings;
use stint_ledger::JournalError;
use stint_storage::{self as storage, Database, StorageError};
use stint_types::tenant::{KeyChangeError, KeyError, NewKey, SecretToken};
use stint_types::units::AccountId;

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why keys could not be managed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminClientError {
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
    Unreachable(String, #[source] reqwest::Error),
    #[error("the server refuses the token: it was started with another one than [admin] names here")]
    WrongToken,
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Local(#[from] LocalListenerError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Keys(#[from] KeyChangeError),
    #[error(transparent)]
    Secret(#[from] KeyError),
    #[error("the books cannot be read")]
    Ledger(#[from] JournalError),
    #[error("the first key's file cannot be read")]
    FirstKey(#[source] std::io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the answer cannot be read: {0}")]
    InvalidResponse(String),
    #[error("{0} cannot be read")]
    File(String, #[source] std::io::Error),
}

/// Something to be asked of the admin API.
#[derive(Debug)]
pub(super) struct AdminRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: String,
    pub(super) kind: &'static str,
    pub(super) body: String,
}

/// What is to be seen where the database is opened here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// Keys, accounts and their limits.
    Terms,
    /// And how these stand, which takes reading the books.
    Statement,
}

/// Who is asked.
pub(super) enum AdminClient {
    /// Nobody holds the database, so it is opened here.
    InProcess(Router, SecretToken),
    /// The server that holds it.
    Remote(reqwest::Client, String, SecretToken),
}

impl AdminClient {
    /// Finds the way.
    ///
    /// # Errors
    /// When there is none; the error says what to do.
    pub(super) async fn connect(
        settings: &Settings,
        seen: DetailLevel,
    ) -> Result<AdminClient, AdminClientError> {
        if settings.storage == storage::Settings::Memory {
            return AdminClient::remote(settings)?.ok_or(AdminClientError::InMemory);
        }
        match Database::open_as_it_is(&settings.storage).await {
            Ok(database) => AdminClient::open_in_process(settings, &database, seen).await,
            Err(StorageError::InUse(_)) => AdminClient::remote(settings)?.ok_or(AdminClientError::NoAdmin),
            Err(error) => Err(error.into()),
        }
    }

    async fn open_in_process(
        settings: &Settings,
        database: &Database,
        seen: DetailLevel,
    ) -> Result<AdminClient, AdminClientError> {
        let first = directory::existing_first_key(settings.first_key.as_deref())
            .map_err(AdminClientError::FirstKey)?;
        let keys = Arc::new(directory::open(settings, first, database).await?);
        // Nobody else can call it, so the token is made up.
        let token = SecretToken::new(NewKey::generate()?.reveal());
        let listen = ([127, 0, 0, 1], 0).into();
        let access = AdminSettings { listen, token: token.clone(), hosts: Vec::new(), tls: None };
        let statement = match seen {
            DetailLevel::Terms => Box::new(|_: &AccountId| None),
            DetailLevel::Statement => directory::stored_statement(database, &keys).await?,
        };
        let nobody = Box::new(|| async { None }.boxed());
        let stored = StoredParts { keys, statement, content: directory::content(database) };
        let admin = directory::admin(settings, access, "/command line", stored, nobody, None);
        Ok(AdminClient::InProcess(http::admin::admin(&admin), token))
    }

    fn remote(settings: &Settings) -> Result<Option<AdminClient>, AdminClientError> {
        let Some(admin) = settings.admin.clone() else { return Ok(None) };
        let local = LocalListener::new(admin.listen, admin.tls.as_ref());
        let client = local.client(TIMEOUT)?;
        Ok(Some(AdminClient::Remote(client, local.url(), admin.token)))
    }

    /// Asks, and gives back a good answer's text.
    ///
    /// # Errors
    /// In the words of the refusal, where it is refused.
    pub(super) async fn send(&self, ask: AdminRequest<'_>) -> Result<String, AdminClientError> {
        let (status, text) = match self {
            AdminClient::InProcess(router, token) => send_in_process(router, token, ask).await?,
            AdminClient::Remote(client, base, token) => send_remote(client, base, token, ask).await?,
        };
        match status {
            200..300 => Ok(text),
            401 => Err(AdminClientError::WrongToken),
            _ => Err(AdminClientError::Refused(
                error_message(&text).unwrap_or_else(|| format!("status {status}: {text}")),
            )),
        }
    }
}

async fn send_in_process(
    router: &Router,
    token: &SecretToken,
    ask: AdminRequest<'_>,
) -> Result<(u16, String), AdminClientError> {
    let nonsense = |error: &dyn std::error::Error| AdminClientError::InvalidResponse(error.to_string());
    let request = Request::builder().method(ask.method).uri(&ask.path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {}", token.reveal()));
    let request = request.header("content-type", ask.kind).body(Body::from(ask.body));
    let request = request.map_err(|error| nonsense(&error))?;
    let Ok(response) = TowerToHyperService::new(router.clone()).call(request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| nonsense(&error))?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn send_remote(
    client: &reqwest::Client,
    base: &str,
    token: &SecretToken,
    ask: AdminRequest<'_>,
) -> Result<(u16, String), AdminClientError> {
    let silent = |error| AdminClientError::Unreachable(base.to_owned(), error);
    let method = reqwest::Method::from_bytes(ask.method.as_bytes()).unwrap_or_default();
    let request = client.request(method, format!("{base}{}", ask.path)).bearer_auth(token.reveal());
    let request = request.header("content-type", ask.kind).body(ask.body);
    let response = request.send().await.map_err(silent)?;
    let status = response.status().as_u16();
    Ok((status, response.text().await.map_err(silent)?))
}

fn error_message(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    Some(answer["error"]["message"].as_str()?.to_owned())
}
