//! PostgreSQL's own programs, which copy a whole database and put it back.

use std::ffi::OsString;
use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::StorageError;

use super::address::PostgresAddress;

/// How many lines of a program's errors are shown.
const OUTPUT_LINES_MAX: usize = 5;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostgresTool {
    Dump,
    Restore,
}

impl PostgresTool {
    fn name(self) -> &'static str {
        match self {
            PostgresTool::Dump => "pg_dump",
            PostgresTool::Restore => "pg_restore",
        }
    }

    /// Checks that it is there and knows a server of that major version.
    pub(super) async fn check(self, address: &PostgresAddress, server: i32) -> Result<(), StorageError> {
        let output = self.output(address, vec!["--version".into()], None).await?;
        let version_line = String::from_utf8_lossy(&output.stdout).into_owned();
        match version(&version_line) {
            Some(version) if version >= server => Ok(()),
            Some(version) => Err(StorageError::OldTool { tool: self.name(), version, server }),
            None => Err(self.failed(&output)),
        }
    }

    /// Runs it until it succeeds; what it prints goes into a file, if one is named.
    pub(super) async fn run(
        self,
        address: &PostgresAddress,
        arguments: Vec<OsString>,
        into: Option<File>,
    ) -> Result<(), StorageError> {
        let output = self.output(address, arguments, into).await?;
        if output.status.success() { Ok(()) } else { Err(self.failed(&output)) }
    }

    async fn output(
        self,
        address: &PostgresAddress,
        arguments: Vec<OsString>,
        into: Option<File>,
    ) -> Result<Output, StorageError> {
        let mut command = Command::new(self.name());
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(into.map_or_else(Stdio::piped, Stdio::from));
        // The operator's own settings could name another database.
        command.env_remove("PGSERVICE").env_remove("PGHOSTADDR").envs(address.variables());
        let tool = self.name();
        let ran = tokio::task::spawn_blocking(move || command.output()).await;
        let ran = ran.unwrap_or_else(|broken| Err(std::io::Error::other(broken)));
        ran.map_err(|source| StorageError::NoTool { tool, source })
    }

    fn failed(self, output: &Output) -> StorageError {
        let errors = String::from_utf8_lossy(&output.stderr);
        let mut lines: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
        lines.truncate(OUTPUT_LINES_MAX);
        let errors = if lines.is_empty() { output.status.to_string() } else { lines.join("\n  ") };
        StorageError::Tool { tool: self.name(), errors }
    }
}

/// The first number of `pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version(line: &str) -> Option<i32> {
    let number = line.split_once("(PostgreSQL) ")?.1;
    number.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_first_number() {
        assert_eq!(version("pg_dump (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(version("pg_restore (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(version("something else"), None);
    }
}
