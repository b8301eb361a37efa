//! What the verbs of the command line print, and how they end.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use super::server_call::harmless;

/// How a verb ends. `command` prints its error.
pub(super) type VerbResult = Result<ExitCode, Box<dyn Error>>;

/// Why something that was printed did not arrive: the first time, since a verb prints on.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Prints a line to standard output, [`harmless`] since it may name what a file or a server says of itself. A pipe whose reader
/// has gone is no error; another failure is kept for [`check_printed`].
pub(super) fn print_line(text: &str) {
    keep_failure(writeln!(io::stdout(), "{}", harmless(text)));
}

/// How a verb ends that came to a good end: badly, if not all that it printed has arrived.
///
/// # Errors
/// Why not.
pub(super) fn check_printed(ended: ExitCode) -> VerbResult {
    keep_failure(io::stdout().flush());
    match FAILURE.get() {
        None => Ok(ended),
        Some(error) => Err(format!("cannot write to standard output: {error}").into()),
    }
}

/// True if the reader of a pipe has gone.
pub(super) fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn keep_failure(printed: io::Result<()>) {
    if let Err(error) = printed
        && !is_broken_pipe(&error)
    {
        let _ = FAILURE.set(error);
    }
}

/// A table whose columns are as wide as their widest cell. The first `texts` columns are texts, aligned left; the others are
/// numbers, aligned right.
pub(super) fn align_columns<R: AsRef<[String]>>(rows: &[R], texts: usize) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row.as_ref()[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, |row| row.as_ref().len())).map(width).collect();
    let align = |(column, (cell, &width)): (usize, (&String, &usize))| {
        if column < texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let line = |row: &R| {
        let cells: Vec<String> = row.as_ref().iter().zip(&widths).enumerate().map(align).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
