//! What the program is built of and from: what runs at build time, what is not safe code, and what starts other programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::process::Command;

use serde_json::Value;

use super::for_each_source;
use super::paths::tokens;
use crate::watching::is_up_to_date;

/// Where code that the compiler does not check may stand: the graphics driver, two settings of the C library's allocator, and one
/// variable of the environment.
const UNSAFE: [&str; 4] = [
    "crates/engine/src/gpu/adapter.rs",
    "crates/engine/src/gpu/kernel.rs",
    "src/app/allocator.rs",
    "src/app/runtime_dir.rs",
];

/// What starts programs: the verifier that an operator names, and PostgreSQL's own for backups.
const STARTS_PROGRAMS: [&str; 2] = ["crates/storage/src/postgres/tools.rs", "src/execute/verify/command.rs"];

/// The files of the product with this word in their code.
fn files_with(word: &str) -> io::Result<Vec<String>> {
    let mut found = BTreeSet::new();
    for_each_source(&mut |file, text| {
        let is_test = file.contains("/tests/") || file.ends_with("tests.rs") || file.contains("conformance");
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if !is_test && tokens(product).iter().any(|token| token.text == word) {
            found.insert(file.to_owned());
        }
    })?;
    Ok(found.into_iter().collect())
}

/// SC-07: a new place of unsafe code is named here, and looked at.
#[test]
fn code_that_is_not_checked_stands_where_it_is_named() -> io::Result<()> {
    assert_eq!(files_with("unsafe")?, UNSAFE);
    Ok(())
}

/// CF-11: one setting names a program, the verifier's; nothing else of a configuration or a request is ever run.
#[test]
fn programs_are_started_in_two_places() -> io::Result<()> {
    let starts: Vec<String> = files_with("Command")?
        .into_iter()
        .filter(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("Command::new(")))
        .collect();
    assert_eq!(starts, STARTS_PROGRAMS);
    let reference = fs::read_to_string("docs/reference/configuration.md")?;
    let names =
        reference.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name));
    let runs = ["command", "program", "exec", "script", "plugin"];
    let settings: Vec<&str> = names.filter(|name| runs.iter().any(|word| name.contains(word))).collect();
    assert_eq!(settings, ["command"], "of [route.verifier]");
    Ok(())
}

/// SC-01: every build takes the versions of `Cargo.lock` or fails.
#[test]
fn every_build_is_locked() -> io::Result<()> {
    let scripts = fs::read_dir("scripts")?.map(|entry| Ok(entry?.path()));
    let files: Vec<_> = scripts
        .chain(["Makefile", ".ci/run", "Dockerfile"].map(|name| Ok(name.into())))
        .collect::<io::Result<_>>()?;
    let mut builds = 0;
    for file in files {
        for line in fs::read_to_string(&file)?.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let is_build = [
                "cargo build",
                "cargo run",
                "cargo test",
                "cargo bench",
                "cargo clippy",
                "cargo doc",
                "cargo install mdbook",
            ]
            .iter()
            .any(|verb| line.contains(verb));
            assert!(!is_build || line.contains("--locked"), "{}: {line}", file.display());
            builds += u32::from(is_build);
        }
    }
    assert!(builds > 15, "the builds are not read: {builds}");
    Ok(())
}

/// SC-05: what tests and checks install is of one version, and what judges dependencies is one file.
#[test]
fn tools_are_pinned() -> io::Result<()> {
    let mut pins = 0;
    for entry in fs::read_dir("tests")? {
        let path = entry?.path();
        if path.extension().is_none_or(|end| end != "txt") || path.ends_with("build-time.txt") {
            continue;
        }
        let text = fs::read_to_string(&path)?.replace("\\\n", " ");
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let is_pinned =
                line.contains("==") && (!path.ends_with("audit.txt") || line.contains("--hash=sha256:"));
            assert!(is_pinned, "{}: {line}", path.display());
            pins += 1;
        }
    }
    assert!(pins > 20, "{pins}");
    Ok(())
}

/// SC-04: what runs on the machine of whoever builds is a list that a change shows. `STINT_UPDATE=1` writes it anew; look at what is new.
#[test]
fn what_runs_at_build_time_is_listed() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut lines = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let kinds = package["targets"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|target| target["kind"].as_array().unwrap());
        for kind in
            kinds.filter_map(Value::as_str).filter(|kind| ["custom-build", "proc-macro"].contains(kind))
        {
            lines.insert(format!("{kind} {}", package["name"].as_str().unwrap()));
        }
    }
    assert!(lines.len() > 20, "{lines:?}");
    let mut list = "# Crates that run while something is built: build scripts and procedural macros. A new line is to be looked at.\n".to_owned();
    for line in lines {
        let _ = writeln!(list, "{line}");
    }
    is_up_to_date("tests/build-time.txt", &list);
}
