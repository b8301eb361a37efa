//! `stint ledger` and `stint usage`: what an operator does with the ledger, whether or not the server runs.

mod export;
mod usage;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::config;
use stint_ledger::{AccountId, JournalError};
use stint_storage::{self as storage, Archive, Database, Settings, StorageError, VerifyReport, restore};
use stint_types::units::Timestamp;

use super::needed_sections::load_needed;
use super::output::{VerbResult, print_line};

pub(super) use usage::UsageOptions;

/// What can be done with the books.
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Recompute everything from all entries; fails if anything differs. The server may run.
    Verify,
    /// Seal what was resolved until now. A running server does so once a day; while one runs, this works with PostgreSQL only.
    Seal,
    /// Copy the ledger to a new file and verify the copy; of PostgreSQL everything of Stint's, by `pg_dump`. The
    /// server may run.
    Backup {
        /// Where to; there must be no such file.
        file: PathBuf,
    },
    /// Verify a backup and put it in the ledger's place. The server must not run; in PostgreSQL, the database is a new one. There
    /// it may also be a file of `SQLite`, which moves the books from one to the other.
    Restore {
        /// The backup.
        file: PathBuf,
        /// Move the file that is there aside.
        #[arg(long)]
        force: bool,
    },
    /// Write one line of CSV for each resolution to standard output, and one more for what each other model took of it (`how` is
    /// `part`). The server may run.
    Export {
        /// Requests admitted at this moment or later: a day, which begins in UTC, or a time.
        #[arg(long)]
        from: Option<Timestamp>,
        /// Requests admitted before this moment.
        #[arg(long)]
        to: Option<Timestamp>,
    },
}

/// Why something could not be done with the books.
#[derive(Debug, thiserror::Error)]
enum LedgerCommandError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the books could not be sealed")]
    Seal(#[from] JournalError),
    #[error("cannot run")]
    Runtime(#[source] io::Error),
    #[error("--to {to} is not after --from {from}, so nothing lies between them")]
    Times { from: Timestamp, to: Timestamp },
    #[error(
        "there is no account {0}: nothing was ever used under it, and neither the configuration nor the database has a key or an account \
         of that path; `stint keys list` shows those of the database"
    )]
    UnknownAccount(AccountId),
}

pub(super) fn ledger(config: Option<&Path>, verb: LedgerCommand) -> VerbResult {
    run(config, async |config::Settings { storage: settings, .. }| match verb {
        LedgerCommand::Verify => Ok(print_report(&Archive::open(&settings).await?.verify().await?)),
        LedgerCommand::Seal => seal(&settings).await,
        LedgerCommand::Backup { file } => back_up(&settings, &file).await,
        LedgerCommand::Restore { file, force } => restore_backup(&settings, &file, force).await,
        LedgerCommand::Export { from, to } => {
            usage::check_times(from, to)?;
            export::export(&mut Archive::open(&settings).await?, from, to).await?;
            Ok(ExitCode::SUCCESS)
        }
    })
}

pub(super) fn usage(config: Option<&Path>, options: &UsageOptions) -> VerbResult {
    run(config, async |settings| {
        usage::check_times(options.from(), options.to())?;
        let mut archive = Archive::open(&settings.storage).await?;
        let used = archive.usage(&options.query()).await?;
        if let Some(account) = options.account().filter(|_| used.is_empty())
            && !usage::is_known(account, &settings, &mut archive).await?
        {
            return Err(LedgerCommandError::UnknownAccount(account.clone()));
        }
        print_line(&usage::table(options, &used));
        Ok(ExitCode::SUCCESS)
    })
}

fn run(
    config: Option<&Path>,
    work: impl AsyncFnOnce(config::Settings) -> Result<ExitCode, LedgerCommandError>,
) -> VerbResult {
    let (settings, _) = load_needed(config, &["ledger"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(LedgerCommandError::Runtime)?.block_on(work(settings))?)
}

async fn seal(settings: &Settings) -> Result<ExitCode, LedgerCommandError> {
    // Where there are no books, none are made to be sealed.
    drop(Archive::open(settings).await?);
    let database = Database::open_as_it_is(settings).await?;
    let (journal, now) = (database.journal(), database.now().await?);
    let mut seals = 0;
    while let Some(seal) = journal.seal(now).await? {
        seals += 1;
        print_line(&format!("seal {}: {} resolutions, {}", seal.number, seal.resolutions, seal.hex()));
    }
    if seals == 0 {
        print_line("everything is sealed already");
    }
    Ok(ExitCode::SUCCESS)
}

async fn back_up(settings: &Settings, file: &Path) -> Result<ExitCode, LedgerCommandError> {
    let report = storage::back_up(settings, file).await?;
    print_line(&format!("copied to {}", file.display()));
    let Some(report) = report else {
        print_line(
            "an older stint wrote it, so the copy is not verified; `stint ledger restore` brings it up to date and verifies it",
        );
        return Ok(ExitCode::SUCCESS);
    };
    Ok(print_report(&report))
}

async fn restore_backup(
    settings: &Settings,
    file: &Path,
    force: bool,
) -> Result<ExitCode, LedgerCommandError> {
    let restored = restore(file, settings, force).await?;
    if let Some(aside) = restored.aside {
        print_line(&format!("what was there is now {}", aside.display()));
    }
    print_line(&format!("{} is restored to {}", file.display(), restored.place));
    Ok(print_report(&restored.report))
}

/// Reports the result of a verification, to a person and to the shell.
fn print_report(report: &VerifyReport) -> ExitCode {
    let VerifyReport { resolutions, open, seals, sealed, spent, found, .. } = report;
    print_line(&format!(
        "{resolutions} resolutions, {spent} USD spent; {seals} seals cover {sealed}; {open} open"
    ));
    if report.changes > 0 {
        print_line(&format!("{} changes of admins", report.changes));
    }
    if report.is_right() {
        print_line("the books are right");
        return ExitCode::SUCCESS;
    }
    print_line(&format!("the books are wrong, {found} differences:"));
    for difference in &report.differences {
        print_line(&format!("- {difference}"));
    }
    ExitCode::FAILURE
}
