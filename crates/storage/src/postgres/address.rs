//! The address of a PostgreSQL database, and the user there.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, PgConnection};

use crate::{DatabaseUrl, StorageError};

/// How long a connection may take to come about.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Where a database is, and who we are there. It has a password in it, so it does not show itself.
#[derive(Clone)]
pub(crate) struct PostgresAddress {
    options: PgConnectOptions,
    /// The same in words, without the password.
    pub(super) place: String,
}

impl PostgresAddress {
    /// Reads an address as it is written.
    ///
    /// # Errors
    /// When it is no address of a PostgreSQL database.
    pub(crate) fn of(url: &DatabaseUrl) -> Result<PostgresAddress, StorageError> {
        let options = url.options()?;
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        let place = format!("{}:{}/{database}", options.get_host(), options.get_port());
        Ok(PostgresAddress { options, place })
    }

    /// How to connect, in sessions that are set up like this.
    pub(super) fn options(&self, session: &[(&str, &str)]) -> PgConnectOptions {
        self.options.clone().options(session.iter().copied()).disable_statement_logging()
    }

    /// Connects.
    pub(super) async fn connect(&self, session: &[(&str, &str)]) -> Result<PgConnection, StorageError> {
        let options = self.options(session);
        let connected = tokio::time::timeout(CONNECT_MAX, options.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err(late()));
        connected.map_err(|source| StorageError::Connect { place: self.place.clone(), source })
    }

    /// The same for PostgreSQL's own programs, by the environment: what is on a command line, every user of the machine
    /// can read.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let options = &self.options;
        let socket = options.get_socket().map(|socket| socket.display().to_string());
        let host = socket.unwrap_or_else(|| options.get_host().trim_matches(['[', ']']).to_owned());
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        let mut variables = vec![
            ("PGHOST", host),
            ("PGPORT", options.get_port().to_string()),
            ("PGUSER", options.get_username().to_owned()),
            ("PGDATABASE", database.to_owned()),
            ("PGSSLMODE", ssl_mode(options.get_ssl_mode()).to_owned()),
            ("PGAPPNAME", "stint".to_owned()),
            ("PGCONNECT_TIMEOUT", CONNECT_MAX.as_secs().to_string()),
        ];
        variables.extend(options.get_options().map(|options| ("PGOPTIONS", options.to_owned())));
        // The options give the rest only in this form.
        let url = options.to_url_lossy();
        let decoded = |text: &str| percent_decoded(text);
        variables.extend(url.password().map(|password| ("PGPASSWORD", decoded(password))));
        for (name, value) in url.query_pairs() {
            let variable = match &*name {
                "sslrootcert" => "PGSSLROOTCERT",
                "sslcert" => "PGSSLCERT",
                "sslkey" => "PGSSLKEY",
                _ => continue,
            };
            // There is no variable for certificates that are in the address itself.
            variables.extend(value.strip_prefix("file: ").map(|path| (variable, path.to_owned())));
        }
        variables
    }
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.place)
    }
}

fn ssl_mode(mode: PgSslMode) -> &'static str {
    match mode {
        PgSslMode::Disable => "disable",
        PgSslMode::Allow => "allow",
        PgSslMode::Prefer => "prefer",
        PgSslMode::Require => "require",
        PgSslMode::VerifyCa => "verify-ca",
        PgSslMode::VerifyFull => "verify-full",
    }
}

/// A text of a URL, with its percent-encoded bytes decoded.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(meant) => {
                decoded.push(meant);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn late() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &[(&str, &str)]) {
        let variables = PostgresAddress::of(&DatabaseUrl::new(url)).unwrap().variables();
        for (name, value) in expected {
            let found = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            assert_eq!(found, Some(*value), "{name} of {url}");
        }
    }

    #[test]
    fn an_address_is_the_same_for_postgresqls_own_programs() {
        check(
            "postgres://al%40ice:s%25%2Fe%C3%A9cret@db.internal:6432/books?sslmode=verify-full&sslrootcert=/ca.pem",
            &[
                ("PGHOST", "db.internal"),
                ("PGPORT", "6432"),
                ("PGUSER", "al@ice"),
                ("PGPASSWORD", "s%/eécret"),
                ("PGDATABASE", "books"),
                ("PGSSLMODE", "verify-full"),
                ("PGSSLROOTCERT", "/ca.pem"),
            ],
        );
        check("postgresql://alice@[::1]/", &[("PGHOST", "::1"), ("PGDATABASE", "alice")]);
        check("postgres:///books?host=/run/pg&user=alice", &[("PGHOST", "/run/pg"), ("PGUSER", "alice")]);
        check("postgres://a@b/c?options[search_path]=x", &[("PGOPTIONS", "-c search_path=x")]);
    }
}
