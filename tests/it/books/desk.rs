//! An operator's desk: a configuration, and the books that it names, in a file or in PostgreSQL.

use std::process::{Command, Output};

use crate::harness::cluster::cluster;
use crate::harness::{Folder, Process};

/// A folder with a configuration, whose ledger is a file in it or a server's database.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) folder: Folder,
    /// The address of the database, with a password that the server does not ask for.
    pub(super) url: Option<String>,
}

/// Of both output and errors.
pub(super) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A key `sk-test` with money enough, beside whatever else the configuration is to say.
fn keyed(more: &str) -> String {
    let hash = stint_types::tenant::hash_key("sk-test");
    format!(
        "{more}[[key]]\nname = \"test\"\nhash = \"{hash}\"\nlimits = [{{ money = \"5\", per = \"total\" }}]\n"
    )
}

impl Desk {
    pub(super) fn file() -> Desk {
        Desk { folder: Folder::new(&keyed("")), url: None }
    }

    pub(super) fn server() -> Desk {
        Desk::server_with("")
    }

    pub(super) fn server_with(more: &str) -> Desk {
        let ledger = format!("[ledger]\nurl_env = \"DATABASE_URL\"\nlease = \"2s\"\n{more}");
        let url = cluster().database().replace("postgres@", "postgres:sesame@");
        Desk { folder: Folder::new(&keyed(&ledger)), url: Some(url) }
    }

    /// A verb of the command line.
    pub(super) fn stint(&self, verb: &str) -> Command {
        let mut command = self.folder.stint(verb);
        if let Some(url) = &self.url {
            command.env_remove("STINT_LEDGER").env("DATABASE_URL", url);
        }
        command
    }

    pub(super) fn serve(&self) -> Process {
        self.folder.serve_by(self.stint("serve"))
    }

    /// A path in its folder.
    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a verb to its good end; gives back what it printed.
    pub(super) fn run(&self, verb: &str, arguments: &[&str]) -> String {
        let output = self.stint(verb).args(arguments).output().unwrap();
        assert!(output.status.success(), "{verb} {arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a verb that must fail; gives back what it said.
    pub(super) fn refused(&self, verb: &str, arguments: &[&str]) -> String {
        let output = self.stint(verb).args(arguments).output().unwrap();
        assert!(!output.status.success(), "{verb} {arguments:?}: {}", text(&output));
        text(&output)
    }

    pub(super) fn ledger(&self, arguments: &[&str]) -> String {
        self.run("ledger", arguments)
    }
}
