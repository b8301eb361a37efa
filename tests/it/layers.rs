//! The module structure. Crates depend on each other in one direction, which cargo sees to. Inside a crate of several
//! modules a module names only modules on lower levels of the ladder in its `lib.rs`.

mod circles;
mod paths;
mod supply;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use paths::{paths, tokens};

/// Words that belong to one house and its guests only, with the reason.
const AT_HOME: [(&str, &[&str], &str); 5] = [
    ("sqlx", &["storage"], "only storage holds SQL"),
    ("wgpu", &["engine"], "only engine touches the GPU"),
    ("axum", &["http", "app"], "only http speaks the wire"),
    (
        "StatusCode",
        &["http", "backend"],
        "only http chooses the caller's status; backend reads an upstream's",
    ),
    ("env::var", &["config"], "only config reads the environment"),
];

/// Crates that are one module each, with a façade in `lib.rs`. The others are a ladder of modules.
const FACADES: [&str; 6] = ["backend", "engine", "gguf", "ledger", "prompt", "storage"];

/// Crates that compute: they neither wait nor speak to anything outside, so they need no runtime.
const PURE: [&str; 4] = ["decide", "gguf", "lab", "prompt"];

#[test]
fn every_module_names_only_modules_on_lower_rungs() -> io::Result<()> {
    let mut faults = Vec::new();
    for root in sources()? {
        let is_facade = FACADES.iter().any(|name| root.parent().is_some_and(|folder| folder.ends_with(name)));
        if is_facade {
            continue;
        }
        let ladder = Ladder::read(&fs::read_to_string(root.join("lib.rs"))?);
        for_each_file(&root, &mut |file, text| faults.extend(ladder.faults(file, text)))?;
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    Ok(())
}

#[test]
fn what_only_computes_has_no_runtime() -> io::Result<()> {
    for name in PURE {
        let manifest = fs::read_to_string(format!("crates/{name}/Cargo.toml"))?;
        let found =
            ["tokio", "reqwest", "hyper", "sqlx", "futures"].iter().find(|word| manifest.contains(**word));
        assert_eq!(found, None, "{name}");
    }
    Ok(())
}

#[test]
fn databases_graphics_wire_and_environment_have_one_home_each() -> io::Result<()> {
    let mut faults = Vec::new();
    for_each_source(&mut |file, text| faults.extend(strangers(file, text)))?;
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    Ok(())
}

const LADDER: &str = "//! Words.\n\npub mod top;\n\npub mod left;\npub mod right;\n\npub mod low;\n";

/// What is wrong with `text` as the file `file`, as `line: module`.
fn check(file: &str, text: &str, expected: &[&str]) {
    let faults = Ladder::read(LADDER).faults(file, text);
    let shown: Vec<String> = faults.iter().map(|fault| fault.trim_start_matches(file).to_owned()).collect();
    let expected: Vec<String> = expected.iter().map(|fault| format!(":{fault}")).collect();
    assert_eq!(shown.len(), expected.len(), "{text}: {shown:?}");
    for (fault, start) in shown.iter().zip(&expected) {
        assert!(fault.starts_with(start.as_str()), "{text}: {fault} is not {start}");
    }
}

#[test]
fn a_lower_rung_and_the_module_itself_may_be_named() {
    check("src/left/mod.rs", "use crate::low::Thing;\nuse crate::left::part;\nuse super::low;", &[]);
    check("src/left/part.rs", "use super::other::Thing;\nuse super::super::low;\nuse self::inner::X;", &[]);
    check("src/top/mod.rs", "use crate::{left, low::{a, b::{c, d}}, right};", &[]);
}

#[test]
fn a_higher_rung_and_the_same_rung_are_refused() {
    check("src/left/mod.rs", "use crate::top::Thing;", &["1: left names top"]);
    check("src/left/mod.rs", "\n\nuse crate::right;", &["3: left names right"]);
    check("src/low.rs", "pub use crate::left::Thing;", &["1: low names left"]);
}

#[test]
fn groups_are_looked_into() {
    check(
        "src/left/mod.rs",
        "use crate::{\n    low,\n    right::{a, b},\n    top as summit,\n};",
        &["3: left names right", "4: left names top"],
    );
    check("src/left/part.rs", "use super::{other, super::top};", &["1: left names top"]);
    check("src/left/part.rs", "use super::super::{low, right::X};", &["1: left names right"]);
    check("src/left/mod.rs", "use {crate::low::X, crate::top::Y};", &["1: left names top"]);
}

#[test]
fn chains_of_super_are_followed() {
    check("src/left/deep/part.rs", "use super::super::super::right::X;", &["1: left names right"]);
    check("src/left/deep/mod.rs", "fn f() { super::super::top::go() }", &["1: left names top"]);
    check("src/left/mod.rs", "use self::super::right;", &["1: left names right"]);
    check(
        "src/left/mod.rs",
        "mod tests {\n    use super::*;\n    use super::super::top;\n}\nuse super::low;",
        &["3: left names top"],
    );
    check(
        "src/left/mod.rs",
        "mod tests { mod more { use super::super::x; } }\nuse super::top;",
        &["2: left names top"],
    );
}

#[test]
fn paths_in_code_count_and_those_in_comments_and_texts_do_not() {
    check("src/low.rs", "fn f<'a>(x: &'a crate::left::X) -> char { '\"' }", &["1: low names left"]);
    check(
        "src/low.rs",
        "// crate::top\n/* crate::top /* nested */ crate::top */\n/// [`crate::top`]\nfn f() {}",
        &[],
    );
    check(
        "src/low.rs",
        "const A: &str = \"crate::top \\\" crate::top\";\nconst B: &str = r#\"crate::top \" \"#;",
        &[],
    );
    check("src/low.rs", "const Q: char = '\\'';\nfn f() { crate::top::go() }", &["2: low names top"]);
    check("src/low.rs", "macro_rules! m { () => { $crate::top::go() } }", &["1: low names top"]);
    check("src/low.rs", "pub(crate) fn f() {}\npub(super) fn g() {}\npub(in crate::low) fn h() {}", &[]);
}

#[test]
fn the_whole_crate_is_not_a_way_around() {
    check("src/low.rs", "use crate::*;", &["1: low names the whole crate"]);
    check("src/low.rs", "use crate as root;", &["1: low names the whole crate"]);
    check("src/left/part.rs", "use super::super as up;", &["1: left names the whole crate"]);
    check("src/low.rs", "use crate::{self as root, low};", &["1: low names the whole crate"]);
    check("src/low.rs", "use crate::Reexported;", &["1: low names Reexported, which is not on the ladder"]);
}

#[test]
fn a_word_away_from_home_is_refused() {
    let count = |file, text| strangers(file, text).len();
    assert_eq!(count("crates/ledger/src/lib.rs", "use sqlx::Row;\nfn f() { std::env::var(\"HOME\"); }"), 2);
    assert_eq!(count("crates/storage/src/keys/store.rs", "use sqlx::Row; // std::env::var"), 0);
    assert_eq!(count("src/main.rs", "fn main() { std::env::vars_os(); }"), 1);
}

/// The level of each module, counted from the top.
struct Ladder(BTreeMap<String, usize>);

impl Ladder {
    /// Each paragraph of `mod` lines is a level.
    fn read(lib: &str) -> Ladder {
        let mut levels = BTreeMap::new();
        for (level, paragraph) in lib.split("\n\n").enumerate() {
            let modules =
                paragraph.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
            levels.extend(modules.map(|module| (module.trim_end_matches(';').to_owned(), level)));
        }
        Ladder(levels)
    }

    fn faults(&self, file: &str, text: &str) -> Vec<String> {
        let place = place(file);
        let Some(own) = place.first().cloned() else { return Vec::new() };
        let mut faults: Vec<String> = paths(&tokens(text), &place)
            .iter()
            .filter(|named| !named.is_relative)
            .filter_map(|named| {
                Some(format!("{file}:{}: {own} {}", named.line, self.fault(&own, &named.path)?))
            })
            .collect();
        faults.dedup();
        faults
    }

    fn fault(&self, own: &str, path: &[String]) -> Option<String> {
        let name = match path.first().map(String::as_str) {
            None | Some("*") => return Some("names the whole crate".to_owned()),
            Some(name) if name == own => return None,
            Some(name) => name,
        };
        match (self.0.get(own), self.0.get(name)) {
            (_, None) => Some(format!("names {name}, which is not on the ladder")),
            (Some(own), Some(other)) if other > own => None,
            _ => Some(format!("names {name}, which does not stand lower")),
        }
    }
}

/// The module that a file is in its crate; none for the crate's roots, which may name everything.
fn place(file: &str) -> Vec<String> {
    let path = file.split_once("src/").map_or(file, |(_, path)| path);
    match path.trim_end_matches(".rs").trim_end_matches("/mod") {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// The crate that a file is in; for the server's files their module.
fn home(file: &str) -> String {
    let name = file.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    name.map_or_else(|| place(file).first().cloned().unwrap_or_default(), |(name, _)| name.to_owned())
}

fn strangers(file: &str, text: &str) -> Vec<String> {
    let home = home(file);
    let tokens = tokens(text);
    let mut faults = Vec::new();
    for (word, homes, why) in AT_HOME {
        let (last, before) =
            word.rsplit_once("::").map_or((word, None), |(before, last)| (last, Some(before)));
        for (i, token) in tokens.iter().enumerate() {
            let meant = match before {
                None => token.text == last,
                Some(before) => {
                    token.text.starts_with(last)
                        && i >= 2
                        && tokens[i - 1].text == "::"
                        && tokens[i - 2].text == before
                }
            };
            if meant && !homes.contains(&home.as_str()) {
                faults.push(format!("{file}:{}: {word}: {why}", token.line));
            }
        }
    }
    faults
}

/// The folders of all crates' sources.
fn sources() -> io::Result<Vec<PathBuf>> {
    let crates = fs::read_dir("crates")?.map(|entry| Ok(entry?.path().join("src")));
    crates.chain([Ok(PathBuf::from("src"))]).collect()
}

fn for_each_source(visit: &mut dyn FnMut(&str, &str)) -> io::Result<()> {
    sources()?.iter().try_for_each(|root| for_each_file(root, visit))
}

fn for_each_file(folder: &Path, visit: &mut dyn FnMut(&str, &str)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            for_each_file(&path, visit)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path.to_string_lossy(), &fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
