//! Every configuration in the documentation is one that `stint check` takes.

use super::pages;
use crate::harness::Folder;
use crate::harness::authority::Authority;

/// A hash of no key, in place of the one that is left out.
const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Beside each: models and a route that examples name and another part of the page configures, where a whole file says nothing of them.
const AROUND: &str = "\n[[backend]]\nname = 'around'\nbase_url = 'http://127.0.0.1:9/v1'\nmodels = [NAMES]\n";
const NAMES: [&str; 7] = [
    "qwen3-8b",
    "gpt-5",
    "gpt-5-mini",
    "gpt-4.1-mini",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "qwen3-235b",
];

#[test]
fn every_configuration_is_taken_by_check() {
    let mut checked = 0;
    let mut faults = Vec::new();
    for page in pages() {
        for code in page.code.iter().filter(|code| code.language == "toml") {
            let toml = whole(&code.text);
            let folder = Folder::new(&toml);
            certificates(&folder);
            let mut check = folder.stint("check");
            check.env_remove("STINT_LEDGER");
            for name in [
                "OPENAI_API_KEY",
                "AZURE_OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "OPENROUTER_API_KEY",
                "SECOND_KEY",
                "STINT_ADMIN_TOKEN",
                "GUARD_SECRET",
            ] {
                check.env(name, "text-in-place-of-a-secret");
            }
            check.env("DATABASE_URL", "postgres://127.0.0.1:1/none");
            let output = check.output().unwrap();
            if !output.status.success() {
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                faults.push(format!("{}:\n{toml}\n{words}", page.path.display()));
            }
            checked += 1;
        }
    }
    assert!(checked > 15, "the configurations are not read");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// As whoever takes the comment signs away has it.
#[test]
fn the_example_for_compose_is_taken_with_its_backend() {
    let text = include_str!("../../../deploy/compose/stint.example.toml");
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(example) if !example.starts_with(' ') => format!("{example}\n"),
        _ => format!("{line}\n"),
    };
    let toml: String = text.lines().map(uncommented).collect();
    assert!(toml.contains("\n[[backend]]\n"), "{toml}");
    let folder = Folder::new(&toml);
    let mut check = folder.stint("check");
    check.env_remove("STINT_LEDGER").env("OPENAI_API_KEY", "text-in-place-of-a-secret");
    let output = check.env("STINT_LEDGER_URL", "postgres://127.0.0.1:1/none").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The files that examples name for TLS.
fn certificates(folder: &Folder) {
    let (authority, tls) = (Authority::new(), folder.path().join("tls"));
    let signed = authority.sign(&["localhost"], 2040);
    std::fs::create_dir(&tls).unwrap();
    let files =
        [("server.crt", &signed.certificate), ("server.key", &signed.key), ("callers.crt", &authority.pem)];
    files.into_iter().for_each(|(name, text)| std::fs::write(tls.join(name), text).unwrap());
}

/// The example as a file of its own.
fn whole(text: &str) -> String {
    let toml =
        text.replace("sha256:…the new one…", HASH).replace("sha256:…the old one…", &HASH.replace('0', "1"));
    let toml = toml.replace("sha256:…", HASH);
    let missing: Vec<String> = NAMES
        .iter()
        .filter(|name| toml.contains(**name) && !configures(&toml, name))
        .map(|name| format!("'{name}'"))
        .collect();
    if missing.is_empty() { toml } else { toml + &AROUND.replace("NAMES", &missing.join(", ")) }
}

fn configures(toml: &str, name: &str) -> bool {
    let document: toml::Table = toml.parse().unwrap_or_default();
    let backends = document.get("backend").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    backends.iter().any(|backend| {
        let listed =
            backend.get("models").is_some_and(|models| models.to_string().contains(&format!("\"{name}\"")));
        let own = backend.get("model").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        listed || own.iter().any(|model| model.get("name").and_then(toml::Value::as_str) == Some(name))
    })
}
