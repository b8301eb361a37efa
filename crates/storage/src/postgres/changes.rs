//! Notices of changes between replicas, over LISTEN and NOTIFY.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};

use crate::sql::Statement;
use stint_ledger::{AccountId, ChangeNotice, JournalError, ReplicaEpoch};

use super::database::Postgres;

/// The channel. Its messages are a word, and for a recall the replica that recalls and the account.
const CHANNEL: &str = "stint";

/// How long a listener that lost its connection waits before it tries again.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);

/// The changes that others notify us of, from now on.
#[derive(Debug)]
pub struct ChangeListener {
    pool: PgPool,
    listener: Option<PgListener>,
}

impl Postgres {
    /// Listens for changes: of terms and keys, and recalls.
    pub fn listen(&self) -> ChangeListener {
        ChangeListener { pool: self.pool.clone(), listener: None }
    }

    /// Notifies all listeners of a change.
    pub async fn notify(&self, change: &ChangeNotice) -> Result<(), JournalError> {
        let sent = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(encode_notice(change));
        sent.execute(&self.pool).await.map(drop).map_err(|source| self.failed(source))
    }
}

impl ChangeListener {
    /// The next one. May be dropped and called again. Where the connection was lost, something may have been missed, and
    /// the first change after it is an unknown one.
    pub async fn next(&mut self) -> ChangeNotice {
        loop {
            let Some(listener) = &mut self.listener else {
                if self.connect().await.is_ok() {
                    return ChangeNotice::Unknown;
                }
                tokio::time::sleep(RECONNECT_DELAY).await;
                continue;
            };
            match listener.try_recv().await {
                Ok(Some(notification)) => {
                    return decode_notice(notification.payload());
                }
                Ok(None) | Err(_) => self.listener = None,
            }
        }
    }

    async fn connect(&mut self) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        self.listener = Some(listener);
        Ok(())
    }
}

/// How a change is written.
fn encode_notice(change: &ChangeNotice) -> String {
    match change {
        ChangeNotice::Recall { account, by } => format!("recall {} {account}", by.0),
        ChangeNotice::Terms => "terms".to_owned(),
        ChangeNotice::Keys => "keys".to_owned(),
        ChangeNotice::Unknown => "unknown".to_owned(),
    }
}

/// A notice of a newer version may be of anything.
fn decode_notice(message: &str) -> ChangeNotice {
    match message {
        "terms" => ChangeNotice::Terms,
        "keys" => ChangeNotice::Keys,
        message => decode_recall(message).unwrap_or(ChangeNotice::Unknown),
    }
}

fn decode_recall(message: &str) -> Option<ChangeNotice> {
    let (by, account) = message.strip_prefix("recall ")?.split_once(' ')?;
    Some(ChangeNotice::Recall { account: AccountId::new(account), by: ReplicaEpoch(by.parse().ok()?) })
}

/// Notifies listeners that keys or terms have changed, when the transaction is committed.
pub(crate) fn keys_changed_notice() -> Statement {
    Statement::new("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(encode_notice(&ChangeNotice::Keys))
}

/// Sends recalls when the transaction is committed.
pub(super) async fn notify_recalls(
    connection: &mut sqlx::PgConnection,
    by: ReplicaEpoch,
    accounts: impl Iterator<Item = &AccountId>,
) -> Result<(), sqlx::Error> {
    let messages: Vec<String> = accounts
        .map(|account| encode_notice(&ChangeNotice::Recall { account: account.clone(), by }))
        .collect();
    if messages.is_empty() {
        return Ok(());
    }
    let statement = "SELECT pg_notify($1, message) FROM UNNEST($2::text[]) AS m (message)";
    sqlx::query(statement).bind(CHANNEL).bind(messages).execute(connection).await.map(drop)
}
