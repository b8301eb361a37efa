//! Copies the parsers out of the other crates, each once as it is and once with each mistake of `planted/`.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A parser: its name here, its folder, and its modules' source, in which `mod x;` stands for a file of that folder.
struct Parser {
    name: &'static str,
    folder: &'static str,
    source: Source,
}

enum Source {
    /// That file, and those that it names.
    File(&'static str),
    /// What is written here.
    Modules(&'static str),
}

const PARSERS: [Parser; 10] = [
    Parser { name: "scanner", folder: "../crates/backend/src/remote", source: Source::File("sse.rs") },
    Parser { name: "tags", folder: "../crates/prompt/src", source: Source::File("tags.rs") },
    Parser { name: "calls", folder: "../crates/prompt/src/tool_calls", source: Source::File("mod.rs") },
    Parser { name: "heads", folder: "../src/http", source: Source::File("framing.rs") },
    Parser { name: "json", folder: "../crates/types/src", source: Source::File("strict_json.rs") },
    Parser {
        name: "requests",
        folder: "../src/http",
        source: Source::Modules(
            "mod cache_control;\nmod documents;\nmod fields;\nmod hosted_tools;\nmod metadata;\nmod signed;\nmod tool_choice;\nmod tool_pairing;\nmod unknown_members;\nmod openai/checks;\nmod openai/parse;\nmod openai/prefill;\nuse crate::requests::error;",
        ),
    },
    Parser {
        name: "money",
        folder: "../crates/types/src/units",
        source: Source::Modules(
            "mod money;\nmod price;\nmod tokens;\npub use money::*;\npub use price::*;\npub use tokens::*;",
        ),
    },
    Parser {
        name: "config",
        folder: "../src/config/reader",
        source: Source::Modules(
            "mod diagnostic;\nmod document;\nmod files;\nmod section;\nmod shape;\nmod source;\nmod value;",
        ),
    },
    Parser {
        name: "images",
        folder: "../crates/prompt/src",
        source: Source::Modules("mod encoded_bytes;\nmod image_size;"),
    },
    Parser { name: "gguf", folder: "../crates/gguf/src", source: Source::File("lib.rs") },
];

/// What is open to few there is open to all here.
const VISIBILITIES: [&str; 5] = [
    "pub(in crate::config)",
    "pub(in crate::http)",
    "pub(in crate::http::openai)",
    "pub(crate)",
    "pub(super)",
];

#[expect(clippy::disallowed_methods, reason = "cargo talks to build scripts by the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=planted");
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    for parser in &PARSERS {
        fs::write(Path::new(&out).join(format!("{}.rs", parser.name)), copies(parser)?)?;
    }
    Ok(())
}

fn source(parser: &Parser) -> Result<String, Box<dyn Error>> {
    let (root, below) = match parser.source {
        Source::File(file @ ("lib.rs" | "mod.rs")) => (text(parser, file)?, String::new()),
        Source::File(file) => (text(parser, file)?, file.replace(".rs", "/")),
        Source::Modules(modules) => (modules.to_owned(), String::new()),
    };
    // Made-up models are for tests.
    let root = root.replace("#[cfg(any(test, feature = \"synth\"))]\npub mod synth;", "");
    with_modules(parser, &root, &below)
}

/// A text with the modules that it names written out, those in their files as well. `below` is their folder.
fn with_modules(parser: &Parser, root: &str, below: &str) -> Result<String, Box<dyn Error>> {
    let mut whole = String::new();
    for line in root.lines() {
        match line.strip_prefix("mod ").and_then(|line| line.strip_suffix(';')) {
            Some(path) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let module = text(parser, &format!("{below}{path}.rs"))?;
                let module = with_modules(parser, &module, &format!("{below}{path}/"))?;
                writeln!(whole, "pub mod {name} {{\n{module}\n}}")?;
            }
            None => writeln!(whole, "{line}")?,
        }
    }
    Ok(whole)
}

/// A file without its tests, open to all.
fn text(parser: &Parser, file: &str) -> Result<String, Box<dyn Error>> {
    let path = Path::new(parser.folder).join(file);
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let text = VISIBILITIES.iter().fold(text.to_owned(), |text, visibility| text.replace(visibility, "pub"));
    let errors = ["ApiError;", "{ApiError, codes};"];
    let here = |text: String, names: &str| {
        text.replace(&format!("use super::error::{names}"), &format!("use crate::requests::error::{names}"))
    };
    Ok(errors.iter().fold(text, |text, names| here(text, names)))
}

fn copies(parser: &Parser) -> Result<String, Box<dyn Error>> {
    let source = source(parser)?;
    let mut all = copy(parser, "sound", "As it is", &source)?;
    let mut planted = Vec::new();
    let mut files: Vec<_> = fs::read_dir(format!("planted/{}", parser.name))?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        let path = file.path();
        let stem =
            path.file_stem().and_then(|stem| stem.to_str()).ok_or("a mistake without a name")?.to_owned();
        let wrong = mistaken(&source, &fs::read_to_string(&path)?).map_err(|why| format!("{stem}: {why}"))?;
        all += &copy(parser, &stem, "Mistaken", &wrong)?;
        planted.push(stem);
    }
    writeln!(all, "subjects! {{ {} }}", planted.join(", "))?;
    Ok(all)
}

fn copy(parser: &Parser, name: &str, what: &str, source: &str) -> Result<String, std::fmt::Error> {
    // The way to a neighbour leads through the copy.
    let here = format!("crate::{}::{name}::", parser.name);
    let source = source.replace("crate::http::", &here);
    let source = source.replace("crate::encoded_bytes::", &format!("{here}encoded_bytes::"));
    let mut copy = String::new();
    write!(copy, "/// {what}.\n#[allow(warnings, clippy::all)]\npub mod {name} {{\n{source}\n}}\n")?;
    Ok(copy)
}

/// The source with the mistake: what stands between the lines `---` and `+++` is replaced by what follows.
fn mistaken(source: &str, mistake: &str) -> Result<String, String> {
    let (_, change) = mistake.split_once("\n---\n").ok_or("no line ---")?;
    let (right, wrong) = change.split_once("\n+++\n").ok_or("no line +++")?;
    match source.matches(right).count() {
        1 => Ok(source.replace(right, wrong.trim_end_matches('\n'))),
        count => Err(format!("its place is there {count} times; write it anew for the parser of today")),
    }
}
