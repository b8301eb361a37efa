//! Every `stint …` and `curl …` in the documentation is one that the program knows.

use std::process::Command;

use clap::Parser as _;

use super::programs::{BASE, server};
use super::{Page, pages};

#[test]
fn every_command_line_is_one_that_stint_takes() {
    let mut tried = 0;
    let mut faults = Vec::new();
    for page in pages() {
        for line in lines(&page).filter(|line| line.starts_with("stint ")) {
            tried += 1;
            if let Err(error) = stint::app::Cli::try_parse_from(words(&line)) {
                let help = error.kind() == clap::error::ErrorKind::DisplayHelp;
                if !help && error.kind() != clap::error::ErrorKind::DisplayVersion {
                    faults.push(format!("{}: {line}\n{error}", page.path.display()));
                }
            }
        }
    }
    assert!(tried > 30, "the commands are not read");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Against a server on which every model that the pages name is the embedded one. Those that want another server, a file or an id are
/// left out.
#[test]
fn every_request_by_curl_is_answered() {
    let server = server();
    let mut tried = 0;
    let mut faults = Vec::new();
    for page in pages() {
        for line in lines(&page).filter(|line| line.starts_with("curl ") && line.contains(BASE)) {
            if ["…", "8090", "@"].iter().any(|part| line.contains(part)) {
                continue;
            }
            let line = line.replace(BASE, &server.base).replace("$KEY", "none-needed");
            let output = Command::new("sh")
                .args(["-c", &format!("{line} -s -o /dev/null -w '%{{http_code}}'")])
                .output()
                .unwrap();
            let status = String::from_utf8_lossy(&output.stdout).into_owned();
            // A run that nobody began is not there.
            if status != "200" && !(status == "404" && line.contains("/v1/episodes/")) {
                faults.push(format!("{}: {status}: {line}", page.path.display()));
            }
            tried += 1;
        }
    }
    assert!(tried > 5, "the requests are not read");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The command lines of a page's blocks for a shell: continued lines put together, prompts and comments taken off.
fn lines(page: &Page) -> impl Iterator<Item = String> {
    let shells =
        page.code.iter().filter(|code| ["", "sh", "shell", "bash"].contains(&code.language.as_str()));
    let mut lines: Vec<String> = Vec::new();
    for code in shells {
        let mut open = false;
        for line in code.text.lines() {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            if open {
                let last = lines.last_mut().unwrap();
                *last = format!("{last}\n{line}");
            } else {
                lines.push(line.trim_start().to_owned());
            }
            let whole = lines.last().unwrap();
            open = whole.ends_with('\\') || whole.matches('\'').count() % 2 == 1;
        }
    }
    lines.into_iter()
}

/// The words of a command line up to a comment or another command.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), c) => words.last_mut().unwrap().push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '#' | '>' | '<' | '|' | '&' | ';') if words.last().unwrap().is_empty() => break,
            (None, ' ') => {
                if !words.last().unwrap().is_empty() {
                    words.push(String::new());
                }
            }
            (None, c) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
