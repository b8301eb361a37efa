//! Every program in the pages for newcomers runs as it stands, but for the address.

use std::process::Command;

use super::pages;
use crate::harness::{Folder, Process};

/// Where the pages have the server.
pub(super) const BASE: &str = "http://127.0.0.1:8080";

/// A server on which every model that the pages name is the embedded one, by another name.
pub(super) fn server() -> Process {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let names = ["gpt-5", "gpt-5-mini", "claude-sonnet-5-5", "claude-haiku-5-5"];
    let routes: String =
        names.iter().map(|name| format!("[[route]]\nname = '{name}'\nmodels = ['qwen3-8b']\n")).collect();
    Folder::new(&format!(
        "[[backend]]\nkind = 'local'\nfile = '{file}'\n[[backend.model]]\nname = 'qwen3-8b'\nprice_input = '0.05'\n\
         price_output = '0.2'\n{routes}"
    ))
    .serve()
}

#[test]
fn every_program_of_the_first_pages_runs() {
    let server = server();
    let mut ran = 0;
    for page in pages().iter().filter(|page| page.path.starts_with("docs/start")) {
        for code in page.code.iter().filter(|code| code.language == "python") {
            let program = code.text.replace(BASE, &server.base);
            let output = Command::new(".venv/bin/python").args(["-c", &program]).output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {words}", page.path.display());
            ran += 1;
        }
    }
    assert!(ran >= 2, "the programs are not read");
}

/// On the server that the page says, by OpenAI's own client and by its Agents SDK, whose tools are strict.
#[test]
fn the_programs_of_the_page_on_agents_find_what_is_behind_k() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/seeker.gguf");
    let settings = include_str!("../../../load-tests/heed.toml").replace("../models/seeker.gguf", model);
    let server = Folder::new(&settings).serve();
    let mut ran = 0;
    for page in pages().iter().filter(|page| page.path.ends_with("docs/agents.md")) {
        for code in page.code.iter().filter(|code| code.language == "python") {
            let program = code.text.replace(BASE, &server.base);
            let output = Command::new(".venv/bin/python").args(["-c", &program]).output().unwrap();
            let (said, words) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(said.lines().last().is_some_and(|last| last.starts_with('7')), "{said}{words}");
            ran += 1;
        }
    }
    assert_eq!(ran, 2, "the programs are not read");
}
