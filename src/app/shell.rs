//! `stint completions SHELL` and `stint man`: made from the command line's own definition.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::command::Cli;
use super::output::VerbResult;

/// For which shell.
#[derive(Debug, Args)]
pub(super) struct CompletionsOptions {
    shell: Shell,
}

/// Where the pages go.
#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// The folder for a page of each command. Without it the page of `stint` itself is printed.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Prints what a shell completes by.
pub(super) fn completions(options: &CompletionsOptions) -> VerbResult {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "stint", &mut script);
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all of them.
pub(super) fn man(options: &ManOptions) -> VerbResult {
    let mut command = Cli::command();
    command.build();
    match &options.into {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print(&page)?;
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            write_pages(&command, "stint", folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A pipe whose reader has gone is no error.
fn print(text: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The page of a command and those below it, like `stint-keys-create.1`.
fn write_pages(command: &Command, name: &str, folder: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    // Clap wants names that live as long as the program; the pages are few.
    let title: &'static str = String::leak(name.to_owned());
    clap_mangen::Man::new(command.clone().name(title)).render(&mut page)?;
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    for verb in shown {
        write_pages(verb, &format!("{name}-{}", verb.get_name()), folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_and_is_completed() {
        let folder = tempfile::TempDir::new().unwrap();
        man(&ManOptions { into: Some(folder.path().to_owned()) }).unwrap();
        for page in ["stint.1", "stint-serve.1", "stint-keys-create.1", "stint-config-show.1"] {
            let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
            assert!(text.contains(".SH SYNOPSIS"), "{page}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stint", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("completions") && script.contains("rotate"), "{shell}");
        }
    }
}
