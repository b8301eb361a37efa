//! `stint config schema`: editors take what `stint check` takes, and refuse the names that it refuses.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Folder;
use crate::harness::tools::{printed, tool};

/// What is wrong with each text by the schema that the binary prints, told by Python's `jsonschema`.
fn faults(texts: &[String]) -> Vec<Vec<String>> {
    let output = Folder::new("").stint("config").arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut python = tool("python");
    python.arg("tests/python/config_schema.py");
    let found = printed(&mut python, &json!({ "schema": schema, "texts": texts }).to_string());
    serde_json::from_str(&found).unwrap()
}

/// The examples of a commented file, with their `#` taken away.
fn with_examples(text: &str) -> String {
    let taken = text.lines().map(|line| match line.strip_prefix('#') {
        Some(example)
            if example.starts_with(|first: char| first.is_ascii_lowercase() || "[]{".contains(first)) =>
        {
            example
        }
        Some(example) if example.starts_with("  {") || example.starts_with("  \"") => example,
        _ => line,
    });
    taken.collect::<Vec<_>>().join("\n")
}

fn files(folder: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(path.to_str().unwrap(), found);
        } else {
            found.push(path);
        }
    }
}

/// Every configuration that ships or stands in the documentation, by where it stands.
fn configurations() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["config", "deploy", "docs"] {
        files(folder, &mut found);
    }
    found.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let mut texts = Vec::new();
    for path in found {
        let name = path.display().to_string();
        match path.extension().and_then(|end| end.to_str()) {
            // What is known of models is written in another form.
            Some("toml") if !name.ends_with("models.toml") => {
                let text = std::fs::read_to_string(&path).unwrap();
                texts.push((format!("{name} with its examples"), with_examples(&text)));
                texts.push((name, text));
            }
            Some("md") => {
                let text = std::fs::read_to_string(&path).unwrap();
                let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
                texts.extend(blocks.map(|block| (name.clone(), block.to_owned())));
            }
            _ => {}
        }
    }
    texts
}

#[test]
fn every_configuration_that_ships_or_is_shown_fits_the_schema() {
    let all = configurations();
    assert!(all.len() > 25, "the configurations are not found");
    let texts: Vec<String> = all.iter().map(|(_, text)| text.clone()).collect();
    let found = faults(&texts).into_iter().zip(&all).filter(|(faults, _)| !faults.is_empty());
    let wrong: Vec<String> = found.map(|(faults, (name, _))| format!("{name}: {faults:#?}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_name_that_check_does_not_know_the_schema_does_not_know_either() {
    let texts = [
        "[server]\nlissen = '127.0.0.1:1'",
        "[serveur]",
        "[server.tls]\ncertificate = 'a'\nkey = 'b'\npassword = 'c'",
        "[agents.words]\nhigher = 'x'",
        "[tools.search]\nprise = '1'",
        "[[route]]\nname = 'r'\nvote = { most = 9 }",
        "[[key]]\nname = 'k'\nhash = 'sha256:…'\nlimits = [{ cash = '1', per = 'day' }]",
        "[[account]]\nname = 'a'\nowner = 'b'",
        "[[backend]]\nkind = 'vllm'\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m']\ncaller_version = true",
        "[[backend]]\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\nname = 'm'\nsampling = true",
        "[[backend]]\nkind = 'vlm'\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m']",
        "[[backend]]\napi_key = 'sk-1'\nmodels = ['m']",
        "[log]\nformat = 'xml'",
        "[gateway]\nchoices_max = 1000",
        "[gateway]\ntime_max = 5",
        "[plan]\nopening_quantile = 0.1",
    ]
    .map(str::to_owned);
    let told = faults(&texts);
    for (text, faults) in texts.iter().zip(told) {
        assert!(!faults.is_empty(), "the schema takes {text}");
        let output = Folder::new(text).stint("check").output().unwrap();
        assert!(!output.status.success(), "check takes {text}");
    }
}

#[test]
fn editors_show_what_a_setting_is_for_and_what_holds_without_it() {
    let schema = stint::config::json_schema();
    let listen = &schema["properties"]["server"]["properties"]["listen"];
    assert_eq!(listen["default"], "127.0.0.1:8080");
    assert!(listen["description"].as_str().unwrap().starts_with("Where the API is served."), "{listen}");
    let kinds = &schema["properties"]["backend"]["items"]["properties"]["kind"]["enum"];
    assert_eq!(kinds.as_array().map(Vec::len), Some(14), "{kinds}");
    let choices = &schema["properties"]["gateway"]["properties"]["choices_max"];
    assert_eq!((&choices["minimum"], &choices["maximum"]), (&json!(1), &json!(128)));
}
