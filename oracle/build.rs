//! Copies the parsers out of the main crate, each once as it is and once with each mistake of `planted/`.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A parser: its name here, and its file.
const PARSERS: [(&str, &str); 3] = [
    ("scanner", "../crates/backend/src/remote/sse.rs"),
    ("tags", "../crates/prompt/src/tags.rs"),
    ("json", "../src/http/strict.rs"),
];

#[expect(clippy::disallowed_methods, reason = "cargo talks to build scripts by the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=planted");
    for (name, file) in PARSERS {
        println!("cargo::rerun-if-changed={file}");
        fs::write(Path::new(&out).join(format!("{name}.rs")), copies(name, &source(file)?)?)?;
    }
    Ok(())
}

/// The file without its tests, open to all.
fn source(file: &str) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let end = text.find("\n#[cfg(test)]\nmod tests").ok_or("the parser's tests are not at its end")?;
    let text = text[..end].replace("pub(super)", "pub");
    Ok(text.replace("use super::error::ApiError;", "use crate::json::ApiError;"))
}

fn copies(name: &str, source: &str) -> Result<String, Box<dyn Error>> {
    let mut all = format!("/// As it is.\n#[allow(warnings, clippy::all)]\npub mod sound {{\n{source}\n}}\n");
    let mut planted = Vec::new();
    let mut files: Vec<_> = fs::read_dir(format!("planted/{name}"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        let path = file.path();
        let stem =
            path.file_stem().and_then(|stem| stem.to_str()).ok_or("a mistake without a name")?.to_owned();
        let wrong = mistaken(source, &fs::read_to_string(&path)?).map_err(|why| format!("{stem}: {why}"))?;
        write!(all, "/// Mistaken.\n#[allow(warnings, clippy::all)]\npub mod {stem} {{\n{wrong}\n}}\n")?;
        planted.push(stem);
    }
    writeln!(all, "subjects! {{ {} }}", planted.join(", "))?;
    Ok(all)
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
