//! What a database's error says of why it does not work.

use std::io;

use stint_ledger::DatabaseFault;

/// The file that is open is no longer at its path.
#[derive(Debug, thiserror::Error)]
#[error(
    "the file was deleted or replaced while it was open: move it back to its path, or stop the gateway and bring a backup there by \
     `stint ledger restore`; nothing is written until then"
)]
pub(super) struct FileGone;

impl FileGone {
    /// As the database itself would say it.
    pub(super) fn as_error() -> sqlx::Error {
        sqlx::Error::Io(io::Error::new(io::ErrorKind::NotFound, FileGone))
    }
}

fn is_file_gone(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    cause.is::<FileGone>()
}

/// Why the database does not work; nothing where the error does not say that.
pub(super) fn fault_of(error: &sqlx::Error) -> Option<DatabaseFault> {
    match error {
        sqlx::Error::Io(error) if error.get_ref().is_some_and(is_file_gone) => Some(DatabaseFault::FileGone),
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Some(DatabaseFault::Unreachable),
        // A refused connection is tried again until then, and so is one beyond the server's own limit.
        sqlx::Error::PoolTimedOut => Some(DatabaseFault::NoConnectionInTime),
        sqlx::Error::Database(error) => of_code(&error.code()?),
        _ => None,
    }
}

/// The states of SQL have five characters, and `SQLite`'s codes are numbers of fewer digits.
fn of_code(code: &str) -> Option<DatabaseFault> {
    match code.parse() {
        Ok(number) if code.len() < 5 => of_sqlite(number),
        _ => of_sql_state(code),
    }
}

/// The low byte of an extended code is the code: <https://sqlite.org/rescode.html>.
fn of_sqlite(code: u32) -> Option<DatabaseFault> {
    Some(match code & 0xff {
        5 | 6 => DatabaseFault::Busy,
        8 => DatabaseFault::ReadOnly,
        10 | 14 => DatabaseFault::DiskFailed,
        11 | 26 => DatabaseFault::Damaged,
        13 => DatabaseFault::DiskFull,
        _ => return None,
    })
}

/// The first two characters are the class: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_sql_state(code: &str) -> Option<DatabaseFault> {
    Some(match code {
        "53100" => DatabaseFault::DiskFull,
        "53300" => DatabaseFault::NoConnectionFree,
        "25006" => DatabaseFault::ReadOnly,
        "57014" | "55P03" => DatabaseFault::Silent,
        "58030" => DatabaseFault::DiskFailed,
        "XX001" | "XX002" => DatabaseFault::Damaged,
        _ if code.starts_with("08") || code.starts_with("57P") => DatabaseFault::Unreachable,
        _ if code.starts_with("28") => DatabaseFault::LoginRefused,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_both_databases_say_why_they_do_not_work() {
        let check = |code: &str, expected| assert_eq!(of_code(code), expected, "{code}");
        check("13", Some(DatabaseFault::DiskFull));
        check("778", Some(DatabaseFault::DiskFailed));
        check("1032", Some(DatabaseFault::ReadOnly));
        check("1", None);
        check("53100", Some(DatabaseFault::DiskFull));
        check("57P01", Some(DatabaseFault::Unreachable));
        check("28P01", Some(DatabaseFault::LoginRefused));
        check("23505", None);
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_said_to_be_so() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(fault_of(&sqlx::Error::Io(refused)), Some(DatabaseFault::Unreachable));
        // It does not say which of several causes it has.
        assert_eq!(fault_of(&sqlx::Error::PoolTimedOut), Some(DatabaseFault::NoConnectionInTime));
        assert_eq!(fault_of(&sqlx::Error::RowNotFound), None);
    }
}
